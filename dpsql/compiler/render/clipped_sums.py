"""Sums of units that are scaled down to a norm, and histograms of units by norm, as DuckDB SQL.

A heavy unit is one whose rows add up to more than a norm in absolute value: only heavy units have their sums formed
group by group, and their weights worked out. All rows are summed as they stand, and what heavy units have too much is
taken away again: these are sums of integers, so nothing is lost.

    steps      the rows, with each cell's whole number of steps
    sums       all rows by the keys
    heavy      the ids of heavy units
    partials   the sums of each heavy unit, group by group: `t` as they are, `x` within 2^43
    weights    the weights of each unit that is beyond a norm, one for each part, from the norms of its own sums
    totals     all rows by the keys, less what units have too much

Parts that sum the same rows by the same keys share all of these. Where there are several cells, most
rows belong to a unit that is heavy in one of them: then the partials are those of all units, `sums` are the sums of
these, and rows are read once, however many cells there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from dpsql.compiler.plan.clipped_sums import (
    MAX_PARTIAL,
    MAX_SQUARED_COUNT,
    MAX_STEPS,
    MEAN_GRID,
    MEAN_POWERS,
    NORM_STEPS,
    USUAL_SIZE,
    WEIGHT_STEPS,
    ClippedCell,
    ClippedSum,
    CountMeans,
    CountNorms,
    Magnitude,
    Norm,
    find_magnitude,
    is_beyond_doubles,
    magnitudes_of_sizes,
    subtract_center,
)
from dpsql.compiler.plan.expressions import UID, Column
from dpsql.compiler.plan.relations import Filter, Project, Rows, Scan
from dpsql.compiler.render.expressions import quote_identifier, render_double, render_expr, render_literal
from dpsql.types import DOUBLE, TEXT

ROOT_MARGIN = "(1 + pow(2, -50))"
"""A root is rounded up by this and by one more: it is never below the true one (rule 4)."""

MAX_ENUM_VALUES = 255
"""A text key of at most so many listed values is grouped by as one byte."""


def render_clipped_sum(
    part: ClippedSum, siblings: Mapping[int, ClippedSum], rows: str, number: int, ctes: dict[str, str]
) -> str:
    """The cells of the part by its keys; `rows` is where its input stands. `siblings` are all parts of the release, by
    their numbers, that sum the same rows by the same keys."""
    keys = [quote_identifier(key) for key in part.keys]
    if part.copies is not None:
        source, names = _scale_rows(part, rows)
        sums = [f"SUM({name}) AS {quote_identifier(cell.cell)}" for cell, name in zip(part.cells, names, strict=True)]
        return f"SELECT {', '.join([*keys, *sums])} FROM {source}{_group_by(keys)}"
    first = min(siblings)
    if f"totals{first}" not in ctes:
        _add_shared_sums(part, [cell for sibling in siblings.values() for cell in sibling.cells], rows, first, ctes)
        _add_totals(siblings, first, ctes)
    own = _places_of_cells(siblings)[number]
    texts = [
        f"CAST({name} AS VARCHAR) AS {name}" if _find_listed_texts(part.input, key) else name
        for key, name in zip(part.keys, keys, strict=True)
    ]
    cells = [f"t{n} AS {quote_identifier(cell.cell)}" for n, cell in zip(own, part.cells, strict=True)]
    return f"SELECT {', '.join([*texts, *cells])} FROM totals{first}"


def _group_by(keys: list[str]) -> str:
    return f" GROUP BY {', '.join(keys)}" if keys else ""


def _places_of_cells(siblings: Mapping[int, ClippedSum]) -> dict[int, range]:
    """The numbers of each part's cells among those of all siblings."""
    places, before = dict[int, range](), 0
    for number, sibling in siblings.items():
        places[number] = range(before + 1, before + len(sibling.cells) + 1)
        before += len(sibling.cells)
    return places


def _add_totals(siblings: Mapping[int, ClippedSum], first: int, ctes: dict[str, str]) -> None:
    """All cells by the keys: the sums of all rows, and what units have too much, each by the weight of its part."""
    places, partials = _places_of_cells(siblings), f"partials{first}"
    norm, keys = siblings[first].norm, [quote_identifier(key) for key in siblings[first].keys]
    weights, beyond = list[str](), list[str]()
    for number, sibling in siblings.items():
        place = dict(zip(sibling.cell_names, places[number], strict=True))
        together = [[f"x{place[cell.cell]}" for cell in cells] for cells in sibling.bundles]
        shares = (f"{WEIGHT_STEPS * NORM_STEPS} // GREATEST({_render_norm(norm, names)}, 1)" for names in together)
        weights.append(f"LEAST({WEIGHT_STEPS}, {', '.join(shares)}) AS w{number}")
        beyond += [_lies_beyond_norm(norm, names) for names in together]
    ctes[f"weights{first}"] = (
        f"MATERIALIZED (SELECT {', '.join([UID, *weights])} FROM {partials} GROUP BY {UID} "
        f"HAVING {' OR '.join(beyond)})"
    )
    # Toward zero, and after the unit's sum: `//` truncates.
    scaled = [f"(x{n} * w{number}) // {WEIGHT_STEPS} - t{n} AS t{n}" for number, own in places.items() for n in own]
    names = [f"t{n}" for own in places.values() for n in own]
    sums = [f"SUM({name}) AS {name}" for name in names]
    ctes[f"totals{first}"] = (
        f"{'MATERIALIZED' if len(siblings) > 1 else 'NOT MATERIALIZED'} (SELECT {', '.join([*keys, *sums])} FROM "
        f"(SELECT {', '.join([*keys, *names])} FROM sums{first} UNION ALL "
        f"SELECT {', '.join([*keys, *scaled])} FROM {partials} JOIN weights{first} USING ({UID})){_group_by(keys)})"
    )


def _add_shared_sums(part: ClippedSum, cells: list[ClippedCell], rows: str, first: int, ctes: dict[str, str]) -> None:
    steps, heavy, partials = f"steps{first}", f"heavy{first}", f"partials{first}"
    keys = [quote_identifier(key) for key in part.keys]
    columns = [f"{_render_row(cell)} AS v{n}" for n, cell in enumerate(cells, 1)]
    totals = [f"{_render_total(cell, f'v{n}')} AS t{n}" for n, cell in enumerate(cells, 1)]
    limited = ", ".join(f"{_limit_partial(f't{n}')} AS x{n}" for n in range(1, len(cells) + 1))
    grouped = ", ".join([UID, *keys])
    coded = _code_columns(part.input, part.keys)
    ctes[steps] = f"NOT MATERIALIZED (SELECT {', '.join([UID, *coded, *columns])} FROM {rows})"
    if len(cells) > 1:
        ctes[partials] = (
            f"MATERIALIZED (SELECT *, {limited} FROM (SELECT {', '.join([grouped, *totals])} "
            f"FROM {steps} GROUP BY {grouped}))"
        )
        summed = [f"SUM(t{n}) AS t{n}" for n in range(1, len(cells) + 1)]
        ctes[f"sums{first}"] = f"MATERIALIZED (SELECT {', '.join([*keys, *summed])} FROM {partials}{_group_by(keys)})"
        return
    ctes[f"sums{first}"] = f"MATERIALIZED (SELECT {', '.join([*keys, *totals])} FROM {steps}{_group_by(keys)})"
    ctes[heavy] = f"MATERIALIZED (SELECT {UID} FROM {steps} GROUP BY {UID} HAVING {_render_beyond(cells[0], 'v1')})"
    ctes[partials] = (
        f"MATERIALIZED (SELECT *, {limited} FROM (SELECT {', '.join([grouped, *totals])} "
        f"FROM {steps} SEMI JOIN {heavy} USING ({UID}) GROUP BY {grouped}))"
    )


def _render_row(cell: ClippedCell) -> str:
    """What a row is summed by: its steps, or whether it counts."""
    if cell.value is not None:
        return f"COALESCE({render_expr(cell.value)}, CAST(0 AS BIGINT))"
    return "TRUE" if cell.arg is None else f"CASE WHEN {render_expr(cell.arg)} IS NOT NULL THEN TRUE END"


def _render_total(cell: ClippedCell, name: str) -> str:
    if cell.value is not None:
        return f"SUM({name})"
    return f"CAST({_render_count(cell, name)} AS HUGEINT) * {cell.row_steps}"


def _render_count(cell: ClippedCell, name: str) -> str:
    return "COUNT(*)" if cell.arg is None else f"COUNT({name})"


def _render_beyond(cell: ClippedCell, name: str) -> str:
    """Whether a unit's rows add up to more than the norm, each in absolute value."""
    if cell.value is None:
        return f"{_render_count(cell, name)} > {NORM_STEPS // cell.row_steps}"
    size = name if cell.non_negative else f"abs({name})"
    return f"SUM({size}) > {NORM_STEPS}"


def _scale_rows(part: ClippedSum, rows: str) -> tuple[str, list[str]]:
    """Each copy of a row on its own, to its part of the norm: together the copies are within it."""
    assert part.copies is not None
    keys = [quote_identifier(key) for key in part.keys]
    names = [f"x{n}" for n in range(1, len(part.cells) + 1)]
    columns = [f"{_render_row_steps(cell)} AS {name}" for cell, name in zip(part.cells, names, strict=True)]
    bound = WEIGHT_STEPS * (NORM_STEPS // part.copies)
    place = dict(zip(part.cell_names, names, strict=True))
    sizes = (" + ".join(f"CAST(abs({place[cell.cell]}) AS HUGEINT)" for cell in cells) for cells in part.bundles)
    shares = ", ".join(f"{bound} // GREATEST({size}, 1)" for size in sizes)
    steps = f"(SELECT {', '.join([*keys, *columns])} FROM {rows})"
    weighted = f"(SELECT *, LEAST({WEIGHT_STEPS}, {shares}) AS w FROM {steps})"
    scaled = ", ".join([*keys, *(f"(CAST({name} AS HUGEINT) * w) // {WEIGHT_STEPS} AS {name}" for name in names)])
    return f"(SELECT {scaled} FROM {weighted})", names


def _render_row_steps(cell: ClippedCell) -> str:
    if cell.value is not None:
        return _render_row(cell)
    return f"CASE WHEN {_render_row(cell)} THEN CAST({cell.row_steps} AS BIGINT) ELSE CAST(0 AS BIGINT) END"


def _limit_partial(total: str) -> str:
    return f"CAST(GREATEST(LEAST({total}, {MAX_PARTIAL}), {-MAX_PARTIAL}) AS HUGEINT)"


def _lies_beyond_norm(norm: Norm, names: list[str]) -> str:
    """Whether a unit is to be scaled: of integers, so that no root decides."""
    return f"SUM({_render_sizes(norm, names)}) > {NORM_STEPS if norm is Norm.L1 else NORM_STEPS**2}"


def _render_norm(norm: Norm, names: list[str]) -> str:
    """Of a unit's sums in these cells together, at least: roots are rounded up."""
    sizes = f"SUM({_render_sizes(norm, names)})"
    return sizes if norm is Norm.L1 else f"CAST(ceil(sqrt(CAST({sizes} AS DOUBLE)) * {ROOT_MARGIN}) AS HUGEINT) + 1"


def _render_sizes(norm: Norm, names: list[str]) -> str:
    """What the sums of one group add to the norm, or to its square."""
    return " + ".join(f"abs({name})" if norm is Norm.L1 else f"{name} * {name}" for name in names)


# --- histograms ------------------------------------------------------------------------------------------------------


def render_count_norms(part: CountNorms, rows: str) -> str:
    """Units by the bin of their norm. Empty bins are added by the list of all bins."""
    name, cell = quote_identifier(part.bin), quote_identifier(part.cell)
    first, last = part.binning.first, part.binning.last
    factor = render_double(Fraction(part.binning.per_doubling, 2 if part.is_squared else 1))
    limited = f"CAST(GREATEST(LEAST(floor(log2(n) * {factor}), {last}), {first}) AS BIGINT)"
    norms = f"SELECT CAST(n AS DOUBLE) AS n FROM ({_render_unit_norms(part, rows)})"
    return f"SELECT {limited} AS {name}, COUNT(*) AS {cell} FROM ({norms}) WHERE n > 0 GROUP BY {limited}"


def _render_unit_norms(part: CountNorms, rows: str) -> str:
    """One row per unit with its norm `n`, or the square of it."""
    if part.distinct is not None:
        columns = ", ".join([UID, *(quote_identifier(name) for name in part.distinct)])
        rows = f"(SELECT DISTINCT {columns} FROM {rows})"
    if part.copies is not None:
        size = "1" if part.arg is None else f"abs({_render_centered(part)})"
        return f"SELECT CASE WHEN isfinite(v) THEN v END AS n FROM (SELECT {size} * {part.copies}.0 AS v FROM {rows})"
    if part.arg is not None:
        return _render_value_norms(part, rows)
    if not part.is_squared:
        return f"SELECT COUNT(*) AS n FROM {rows} GROUP BY {UID}"
    grouped = ", ".join([UID, *(quote_identifier(name) for name in part.spread)])
    counts = (
        f"SELECT {UID}, LEAST(COUNT(*), {MAX_SQUARED_COUNT}) AS s FROM {_code_keys(part, [], rows)} GROUP BY {grouped}"
    )
    return f"SELECT SUM(s * s) AS n FROM ({counts}) GROUP BY {UID}"


def _render_value_norms(part: CountNorms, rows: str) -> str:
    """Norms of a column whose size is not known.

    Rows of one magnitude are summed apart, in whole steps of its grid: so these sums are exact, whatever the order of
    the rows, and no rows are read twice. The size of a sum is a function of it alone. Sizes of one magnitude are again
    added up in whole steps, and the two largest of these sums are the unit's norm.
    """
    grouped = [UID, *(quote_identifier(name) for name in part.spread)]
    levels = part.magnitudes
    usual = find_magnitude(levels, USUAL_SIZE)
    # Whatever is computed for each row stands below its aggregate: as an argument of SUM it takes twice as long.
    steps = _by_magnitude("abs(v)", levels, [_render_steps("v", magnitude) for magnitude in levels], usual)
    columns, grid = [f"{steps} AS x"], render_double(levels[0].grid)
    if len(levels) > 1:
        columns.append(f"{_render_place('abs(v)', levels, usual)} AS level")
        grid = _render_grid_of_place("level", levels)
    centered = _code_keys(part, [f"{_render_centered(part)} AS v"], rows)
    values = f"SELECT {', '.join([*grouped, *columns])} FROM {centered}"
    grouped += ["level"] if len(levels) > 1 else []
    sums = f"SELECT {', '.join(grouped)}, SUM(x) AS s FROM ({values}) GROUP BY {', '.join(grouped)}"
    size = f"abs(CAST(s AS DOUBLE)) * {grid}"
    if grouped == [UID]:
        return f"SELECT {size} AS n FROM ({sums})"
    sizes = f"SELECT {UID}, {size} AS a FROM ({sums})"
    if part.is_squared:
        sizes = f"SELECT {UID}, a * a AS a FROM ({sizes})"
    sorts = magnitudes_of_sizes(levels, part.is_squared)
    usual = find_magnitude(sorts, USUAL_SIZE)
    steps = _by_magnitude("a", sorts, [_render_steps("a", magnitude) for magnitude in sorts], usual)
    placed = f"SELECT {UID}, {steps} AS x, {_render_place('a', sorts, usual)} AS sort FROM ({sizes})"
    totals = f"SELECT {UID}, sort, SUM(x) AS s FROM ({placed}) GROUP BY {UID}, sort"
    # The two largest, the larger first: a sum of three doubles would depend on their order.
    norms = f"list_sum(max(CAST(s AS DOUBLE) * {_render_grid_of_place('sort', sorts)}, 2)) AS n"
    return f"SELECT {norms} FROM ({totals}) GROUP BY {UID}"


def _render_place(size: str, magnitudes: tuple[Magnitude, ...], usual: int) -> str:
    places = _by_magnitude(size, magnitudes, [str(place) for place in range(len(magnitudes))], usual)
    return f"CAST({places} AS TINYINT)"


def _render_grid_of_place(name: str, magnitudes: tuple[Magnitude, ...]) -> str:
    cases = (f"WHEN {place} THEN {render_double(magnitude.grid)}" for place, magnitude in enumerate(magnitudes))
    return f"CASE {name} {' '.join(cases)} END"


def _render_centered(part: CountNorms) -> str:
    distance = _render_distance(part)
    return f"({distance} * {distance})" if part.squared else distance


def _render_distance(part: CountNorms) -> str:
    assert part.arg is not None
    if is_beyond_doubles(part.arg.type, part.center):
        return f"CAST({render_expr(subtract_center(part.arg, part.center))} AS DOUBLE)"
    value = f"CAST({render_expr(part.arg)} AS DOUBLE)" if part.arg.type != DOUBLE else render_expr(part.arg)
    return f"({value} - {render_double(part.center)})" if part.center else value


def _by_magnitude(size: str, magnitudes: tuple[Magnitude, ...], results: list[str], usual: int) -> str:
    """The usual one first, and for 0 and NULL, too."""
    rest = []
    for place, magnitude in enumerate(magnitudes):
        if place != usual:
            rest.append(f"WHEN {_lies_within(size, magnitude)} AND {size} > 0 THEN {results[place]}")
    if not rest:
        return results[usual]
    first = f"WHEN {_lies_within(size, magnitudes[usual])} THEN {results[usual]}"
    return f"CASE {first} {' '.join(rest)} ELSE {results[usual]} END"


def _lies_within(size: str, magnitude: Magnitude) -> str:
    bounds = [] if magnitude.lower is None else [f"{size} >= {render_double(magnitude.lower)}"]
    bounds += [] if magnitude.upper is None else [f"{size} < {render_double(magnitude.upper)}"]
    return " AND ".join(bounds) or "TRUE"


def _render_steps(value: str, magnitude: Magnitude) -> str:
    """NULL where there is no finite number. A product with a power of two is exact."""
    steps = f"{value} * {render_double(1 / magnitude.grid)}"
    if magnitude.upper is None:
        ends = render_double(Fraction(-MAX_STEPS)), render_double(Fraction(MAX_STEPS))
        return (
            f"CASE WHEN isfinite({value}) THEN TRY_CAST(GREATEST(LEAST({steps}, {ends[1]}), {ends[0]}) AS BIGINT) END"
        )
    return f"TRY_CAST({steps} AS BIGINT)"


def _code_keys(part: CountNorms, columns: list[str], rows: str) -> str:
    """The rows with their keys, texts of a short list as one byte each: groups of a unit are found twice as fast."""
    return f"(SELECT {', '.join([UID, *_code_columns(part.input, part.spread), *columns])} FROM {rows})"


def _code_columns(rows: Rows, keys: tuple[str, ...]) -> list[str]:
    coded = []
    for key in keys:
        name, values = quote_identifier(key), _find_listed_texts(rows, key)
        listed = ", ".join(render_literal(value, TEXT) for value in values)
        coded.append(f"TRY_CAST({name} AS ENUM({listed})) AS {name}" if values else name)
    return coded


def _find_listed_texts(rows: Rows, name: str) -> tuple[str, ...]:
    """The values of a text that a scan lets through. Others there are none, so that no cast fails: that would be slow,
    and tell."""
    if isinstance(rows, Filter):
        return _find_listed_texts(rows.input, name)
    if isinstance(rows, Project):
        expr = next(column.expr for column in rows.columns if column.name == name)
        return _find_listed_texts(rows.input, expr.name) if isinstance(expr, Column) else ()
    if not isinstance(rows, Scan):
        return ()
    column = next(column for column in rows.columns if column.name == name)
    values = column.domain.values
    if column.domain.type != TEXT or column.is_id or column.as_stored or values is None:
        return ()
    return tuple(dict.fromkeys(map(str, values))) if len(values) <= MAX_ENUM_VALUES else ()


def render_count_means(part: CountMeans, rows: str) -> str:
    """Units by the bin of the mean of their values, in one pass."""
    value = render_expr(part.arg) if part.arg.type == DOUBLE else f"CAST({render_expr(part.arg)} AS DOUBLE)"
    unit, group = ([UID], f" GROUP BY {UID}") if part.copies is None else ([], "")
    values = f"(SELECT {', '.join([*unit, f'{value} AS v'])} FROM {rows})"
    steps = f"(SELECT {', '.join([*unit, f'{_render_mean_steps()} AS x'])} FROM {values})"
    sums = "SUM(x) AS s, COUNT(x) AS n" if part.copies is None else "x AS s, CASE WHEN x IS NOT NULL THEN 1 END AS n"
    mean = f"CAST(s AS DOUBLE) * {render_double(MEAN_GRID)} / n"
    means = f"(SELECT {mean} AS mean FROM (SELECT {sums} FROM {steps}{group}) WHERE n > 0)"
    first, last, per = MEAN_POWERS[0], part.last, part.per_doubling
    size = f"CAST(LEAST(floor((log2(abs(mean)) - ({first})) * {per}) + 1, {last}) AS BIGINT)"
    smallest = render_double(Fraction(2) ** first)
    bins = f"CASE WHEN abs(mean) < {smallest} THEN 0 WHEN mean > 0 THEN {size} ELSE -{size} END"
    name, cell = quote_identifier(part.bin), quote_identifier(part.cell)
    return f"SELECT {name}, COUNT(*) AS {cell} FROM (SELECT {bins} AS {name} FROM {means}) GROUP BY {name}"


def _render_mean_steps() -> str:
    """NULL where there is no finite number. As 64 bits where these hold it, which nearly all rows take."""
    top, per_step = Fraction(2) ** MEAN_POWERS[1], render_double(1 / MEAN_GRID)
    far = int(top / MEAN_GRID)
    return (
        f"CASE WHEN abs(v) < {render_double(MAX_STEPS * MEAN_GRID)} THEN TRY_CAST(v * {per_step} AS BIGINT) "
        f"WHEN abs(v) < {render_double(top)} THEN TRY_CAST(v * {per_step} AS HUGEINT) "
        f"WHEN isfinite(v) THEN CASE WHEN v > 0 THEN CAST({far} AS HUGEINT) ELSE CAST({-far} AS HUGEINT) END END"
    )
