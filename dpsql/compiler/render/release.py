"""A release's plan as DuckDB SQL: one statement, cells as 64-bit integers, rows in the order of their keys.

keys first, then one column per cell: the selection's, then those of each part
"""

from __future__ import annotations

import re
from typing import assert_never

from dpsql.compiler.plan.aggregate import (
    CountBlocks,
    CountUnits,
    Distinct,
    Factor,
    Gather,
    Listed,
    ListedHole,
    ListedRange,
    ListedRows,
    ListedSets,
    Part,
    Sum,
    SumBlocks,
    Tally,
    Weigh,
    cells_of,
    node_fields,
)
from dpsql.compiler.plan.bundles import (
    Bundle,
    CountBundle,
    CovarianceBundle,
    MomentBundle,
    SumBundle,
    VarianceBundle,
    step_width,
)
from dpsql.compiler.plan.clipped_sums import ClippedSum, CountMeans, CountNorms, Norm
from dpsql.compiler.plan.expressions import ROW_WEIGHT, UID, WEIGHT, Quantise
from dpsql.compiler.plan.relations import SET_COLUMN, Expand, Field, Join, Rows
from dpsql.compiler.plan.walk import walk_nodes
from dpsql.compiler.render.blockwise import fill_empty_blocks, render_count_blocks, render_sum_blocks
from dpsql.compiler.render.clipped_sums import (
    ROOT_MARGIN,
    render_clipped_sum,
    render_count_means,
    render_count_norms,
)
from dpsql.compiler.render.expressions import quote_identifier, render_expr, render_literal, render_type_name
from dpsql.compiler.render.relations import render_expanded_rows, render_rows
from dpsql.errors import InternalError, LimitExceeded

MAX_CELL = 1 << 62
"""Finished cells are clamped to this on either side: 1-Lipschitz, so no sensitivity changes."""

MAX_SQL_LENGTH = 2_000_000
"""Characters of a release's SQL."""

MAX_SQL_DEPTH = 500
"""DuckDB refuses expressions that are nested 1,000 deep: after the charge, so it must not come to that."""

ROOT_STEPS = 1 << 10
"""Steps that a unit's norm is rounded up to: a whole row would scale down units in three groups to a norm of two."""

SQRT_MARGIN = "(1 - pow(2, -40))"
"""Covers the round-off of sqrt and division in weights of 2^16/sqrt(t)."""


def render_release(gather: Gather | Tally) -> str:
    """The exact cells of a release, to be run as one statement on one snapshot."""
    ctes: dict[str, str] = {}
    if isinstance(gather, Tally):
        return _prepend_ctes(ctes, _render_tally(gather, _render_part(gather.part, 1, (gather.part,), ctes)))
    names = [_render_part(part, number, gather.all_parts, ctes) for number, part in enumerate(gather.all_parts, 1)]
    if gather.listed is not None and gather.keys:
        ctes |= _render_listed(gather.listed)
    return _prepend_ctes(ctes, _render_gather(gather, names))


def _prepend_ctes(ctes: dict[str, str], select: str) -> str:
    if not ctes:
        return select
    sql = "WITH " + ",\n".join(f"{name} AS {body}" for name, body in ctes.items()) + "\n" + select
    if len(sql) > MAX_SQL_LENGTH or _parenthesis_depth(sql) > MAX_SQL_DEPTH:
        raise LimitExceeded("the statement is too long, or nested too deeply, when it is rewritten")
    return sql


_QUOTED_TEXT = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")


def find_runtime_parameters(sql: str) -> frozenset[str]:
    """The holes of a rendered statement. Listed groups of which nothing is asked read no rows, nor their holes."""
    return frozenset(re.findall(r"\$(\w+)", _QUOTED_TEXT.sub("", sql)))


def _parenthesis_depth(sql: str) -> int:
    """How deeply parentheses are nested; those within quotes only make it larger."""
    depth = deepest = 0
    for character in sql:
        if character == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif character == ")":
            depth -= 1
    return deepest


# --- the last step: groups with their cells --------------------------------------------------------------------------


def _render_gather(gather: Gather, names: list[str]) -> str:
    parts = list(zip(gather.all_parts, names, strict=True))
    listed = [f.name for f in gather.listed.keys] if gather.listed is not None and gather.keys else []
    owner = _listed_owners(gather.listed) if gather.listed is not None else {}
    if gather.selection is not None:
        owner |= dict.fromkeys(gather.selection.keys, names[0])
    columns = [f"{owner[key.name]}.{quote_identifier(key.name)}" for key in gather.keys]
    columns += [
        _render_cell(cell, _cell_value(part, name, cell, owner)) for part, name in parts for cell in cells_of(part)
    ]
    base = ([names[0]] if gather.selection is not None else []) + list(dict.fromkeys(owner[key] for key in listed))
    joined = parts[1:] if gather.selection is not None else parts
    if not gather.keys:
        return f"SELECT {', '.join(columns)} FROM {', '.join(names)}"
    sources = " CROSS JOIN ".join(base) + "".join(_join_part(part, name, owner) for part, name in joined)
    order = [
        f"{owner[key.name]}.{quote_identifier(key.name)} NULLS LAST" for key in gather.keys if key.name not in listed
    ]
    order += [f'{name}."_order"' for name in dict.fromkeys(owner[key] for key in listed)]
    return f"SELECT {', '.join(columns)}\nFROM {sources}\nORDER BY {', '.join(order)}"


def _render_tally(tally: Tally, name: str) -> str:
    codes = [f"CAST({name}.{quote_identifier(key)} AS BIGINT) AS {quote_identifier(key)}" for key in tally.part.keys]
    cells = ", ".join([*codes, *(_render_cell(name, cell) for cell in cells_of(tally.part))])
    return f"SELECT {cells}\nFROM {name}\nORDER BY {', '.join(quote_identifier(key) for key in tally.part.keys)}"


def _join_part(part: Part, name: str, owner: dict[str, str]) -> str:
    on = " AND ".join(
        f"{name}.{quote_identifier(key)} IS NOT DISTINCT FROM {owner[key]}.{quote_identifier(key)}" for key in part.keys
    )
    return f"\nLEFT JOIN {name} ON {on}"


def _cell_value(part: Part, name: str, cell: str, owner: dict[str, str]) -> str:
    """What stands in a cell; of groups that a part knows nothing of, 0."""
    return (
        fill_empty_blocks(part, name, owner)
        if isinstance(part, CountBlocks)
        else f"COALESCE({name}.{quote_identifier(cell)}, 0)"
    )


def _render_cell(cell: str, value: str) -> str:
    return f"CAST(LEAST(GREATEST({value}, {-MAX_CELL}), {MAX_CELL}) AS BIGINT) AS {quote_identifier(cell)}"


def _factor_names(listed: Listed) -> list[str]:
    return [f"listed{number}" if number > 1 else "listed" for number in range(1, len(listed.factors) + 1)]


def _listed_owners(listed: Listed) -> dict[str, str]:
    names = zip(_factor_names(listed), listed.factors, strict=True)
    return {key.name: name for name, factor in names for key in factor.keys}


def _render_listed(listed: Listed) -> dict[str, str]:
    """A table for each factor, with the place of each of its rows."""
    return {name: _render_factor(factor) for name, factor in zip(_factor_names(listed), listed.factors, strict=True)}


def _render_factor(factor: Factor) -> str:
    match factor:
        case ListedRows():
            return _render_listed_rows(factor)
        case ListedRange(key, lower, upper):
            number = f"CAST(i AS {render_type_name(key.type)}) AS {quote_identifier(key.name)}"
            return f'(SELECT i AS "_order", {number} FROM range({lower}, {upper + 1}) AS numbers(i))'
        case ListedHole():
            return _render_listed_public(factor)
        case ListedSets():
            return _render_listed_sets(factor)
        case _:
            assert_never(factor)


def _render_listed_public(factor: ListedHole) -> str:
    pairs = zip(factor.columns, factor.keys, strict=True)
    named = ", ".join(f"{quote_identifier(column)} AS {quote_identifier(key.name)}" for column, key in pairs)
    order = ", ".join(f"{quote_identifier(key.name)} NULLS LAST" for key in factor.keys)
    distinct = f"SELECT DISTINCT {named} FROM ({render_rows(factor.rows)})"
    if factor.and_null:
        distinct += f" UNION SELECT {', '.join(f'CAST(NULL AS {render_type_name(key.type)})' for key in factor.keys)}"
    return f'(SELECT row_number() OVER (ORDER BY {order}) AS "_order", * FROM ({distinct}))'


def _render_listed_sets(factor: ListedSets) -> str:
    """The lists of all sets, one after the other. A group stands once: sets differ in their numbers."""
    rows = " UNION ALL ".join(_render_set(number, of, factor.keys) for number, of in enumerate(factor.sets))
    names = ", ".join(quote_identifier(key.name) for key in factor.keys)
    order = f'row_number() OVER (ORDER BY "{SET_COLUMN}", "_place") AS "_order"'
    return f"(SELECT {order}, {names} FROM ({rows}))"


def _render_set(number: int, listed: Listed, keys: tuple[Field, ...]) -> str:
    owner, values = _listed_owners(listed), {SET_COLUMN: str(number)}
    values |= {key: f"{name}.{quote_identifier(key)}" for key, name in owner.items()}
    columns = ", ".join(
        f"CAST({values.get(key.name, 'NULL')} AS {render_type_name(key.type)}) AS {quote_identifier(key.name)}"
        for key in keys
    )
    lists = [f"{sql} AS {name}" for name, sql in _render_listed(listed).items()]
    place = ", ".join(f'{name}."_order"' for name in _factor_names(listed))
    numbered = f"row_number() OVER ({f'ORDER BY {place}' if place else ''})"
    source = f" FROM {' CROSS JOIN '.join(lists)}" if lists else ""
    return f'SELECT {numbered} AS "_place", {columns}{source}'


def _render_listed_rows(listed: ListedRows) -> str:
    def row(number: int, values: tuple[object, ...]) -> str:
        cells = (render_literal(value, f.type) for value, f in zip(values, listed.keys, strict=True))  # type: ignore[arg-type]
        return f"({', '.join([str(number), *cells])})"

    names = ", ".join(['"_order"', *(quote_identifier(f.name) for f in listed.keys)])
    if len({row(0, values) for values in listed.rows}) != len(listed.rows):
        raise InternalError("a public group is listed twice")  # it would be drawn twice for one charge
    rows = ", ".join(row(number, values) for number, values in enumerate(listed.rows))
    where = "" if listed.where is None else f" WHERE {render_expr(listed.where)}"
    if not rows:  # an IN list of which nothing is possible
        rows, where = row(0, tuple(None for _ in listed.keys)), " WHERE FALSE"
    return f"(SELECT * FROM (VALUES {rows}) AS listed({names}){where})"


# --- parts -----------------------------------------------------------------------------------------------------------


def _render_part(part: Part, number: int, parts: tuple[Part, ...], ctes: dict[str, str]) -> str:
    match part:
        case Sum():
            body = _render_sum(part, ctes)
        case ClippedSum():
            rows, siblings = _render_input_rows(part.input, ctes), _find_siblings(part, parts)
            body = render_clipped_sum(part, siblings, rows, number, ctes)
        case CountNorms():
            body = render_count_norms(part, _render_input_rows(part.input, ctes))
        case CountMeans():
            body = render_count_means(part, _render_input_rows(part.input, ctes))
        case CountUnits():
            body = _render_count_units(part, number, ctes)
        case SumBlocks():
            body = render_sum_blocks(part, _render_input_rows(part.input, ctes))
        case CountBlocks():
            body = render_count_blocks(part, _render_input_rows(part.input, ctes))
        case _:
            assert_never(part)
    name = f"part{number}"
    ctes[name] = f"({body})"
    return name


def _find_siblings(part: ClippedSum, parts: tuple[Part, ...]) -> dict[int, ClippedSum]:
    """The parts, by their numbers, that sum the same rows by the same keys, and have the same kind of norm."""
    return {
        number: other
        for number, other in enumerate(parts, 1)
        if isinstance(other, ClippedSum) and (other.input, other.keys, other.norm) == (part.input, part.keys, part.norm)
    }


def _render_input_rows(node: Rows, ctes: dict[str, str]) -> str:
    """The release's input rows, once however many parts read them.

    A scan is cheaper to repeat than to keep; a join is not.
    """
    joins = any(isinstance(part, Join) for part in walk_nodes(node))
    if joins and isinstance(node, Expand):  # each grouping set has rows of its own: the join below is that of all
        body = f"NOT MATERIALIZED ({render_expanded_rows(node, _render_input_rows(node.input, ctes))})"
    else:
        body = f"{'MATERIALIZED' if joins else 'NOT MATERIALIZED'} ({render_rows(node)})"
    for name, cte in ctes.items():
        if cte == body and name.startswith("rows"):
            return name
    name = f"rows{sum(name.startswith('rows') for name in ctes) + 1}"
    ctes[name] = body
    return name


def _render_sum(part: Sum, ctes: dict[str, str]) -> str:
    counted = _render_sum_of_pairs(part, ctes)
    if counted is not None:
        return counted
    match part.input:
        case Weigh():
            source = _render_weighted_rows(part.input, ctes)
        case Distinct():
            source = render_distinct_rows(part.input, _render_input_rows(part.input.input, ctes), ctes)
        case _:
            source = _render_input_rows(part.input, ctes)
    keys = [quote_identifier(key) for key in part.keys]
    computed, cells = render_bundles(part.bundles, WEIGHT if part.weighted else None)
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    if computed:
        source = f"(SELECT *, {', '.join(computed)} FROM {source})"
    return f"SELECT {', '.join([*keys, *cells])} FROM {source}{group}"


def _render_sum_of_pairs(part: Sum, ctes: dict[str, str]) -> str | None:
    """COUNT(*) alone, where the selection has counted rows per unit and group: n times a row's component for each."""
    if not isinstance(part.input, Weigh) or any(not is_row_count(bundle) for bundle in part.bundles):
        return None
    rows = _render_input_rows(part.input.input, ctes)
    pairs = next((name for name, cte in ctes.items() if cte == _render_pairs(rows, part.keys)), None)
    if pairs is None:
        return None
    _add_weights(part.input, rows, ctes)
    keys = ", ".join(f"{pairs}.{quote_identifier(key)}" for key in part.keys)  # weights may have a grouping set, too
    weight = f"COALESCE(weights.{WEIGHT}, {ROW_WEIGHT})"
    ones = ((bundle.cells[0], render_component("1", weight, bundle.shift, True)) for bundle in part.bundles)
    cells = ", ".join(f"SUM(n * {term}) AS {quote_identifier(cell)}" for cell, term in ones)
    matched = f"ON {_match_weights(part.input, pairs)}"
    if part.input.per_set:  # the set's number is one column then
        matched = f"USING ({_weight_key(part.input)})"
    joined = f"{pairs} LEFT JOIN weights {matched}"
    return f"SELECT {keys}, {cells} FROM {joined} GROUP BY {keys}"


def _render_weighted_rows(weigh: Weigh, ctes: dict[str, str]) -> str:
    rows = _render_input_rows(weigh.input, ctes)
    _add_weights(weigh, rows, ctes)
    others = ", ".join(f"{rows}.{quote_identifier(f.name)}" for f in node_fields(weigh.input) if f.name != UID)
    columns = f"{others}, " if others else ""
    return (
        f"(SELECT {columns}COALESCE(weights.{WEIGHT}, {ROW_WEIGHT}) AS {WEIGHT} "
        f"FROM {rows} LEFT JOIN weights ON {_match_weights(weigh, rows)})"
    )


def _match_weights(weigh: Weigh, rows: str) -> str:
    return " AND ".join(f"{rows}.{column} = weights.{column}" for column in _weight_key(weigh).split(", "))


def _weight_key(weigh: Weigh) -> str:
    """Each unit has a weight, or one in each grouping set."""
    return f'{UID}, "{SET_COLUMN}"' if weigh.per_set else UID


def _add_weights(weigh: Weigh, rows: str, ctes: dict[str, str]) -> None:
    """Only units with more than `rows` rows need a norm: the others weigh 2^16 whatever their groups are."""
    max_weight, unit = weigh.rows * ROW_WEIGHT, _weight_key(weigh)
    if weigh.norm is Norm.L1 or not weigh.keys:
        ctes["weights"] = (
            f"MATERIALIZED (SELECT {unit}, {max_weight} // COUNT(*) AS {WEIGHT} "
            f"FROM {rows} GROUP BY {unit} HAVING COUNT(*) > {weigh.rows})"
        )
    else:
        # The root is rounded up and one step is added, so that its round-off cannot make the norm too small.
        norm = f"(CAST(ceil(sqrt(CAST(squares AS DOUBLE)) * {ROOT_STEPS} * {ROOT_MARGIN}) AS BIGINT) + 1)"
        sizes = _add_heavy_sizes(weigh, rows, ctes)
        ctes["weights"] = (
            f"MATERIALIZED (SELECT {unit}, LEAST({ROW_WEIGHT}, {max_weight * ROOT_STEPS} // {norm}) AS {WEIGHT} "
            f"FROM {sizes} WHERE total > {weigh.rows})"
        )


def _add_heavy_sizes(weigh: Weigh, rows: str, ctes: dict[str, str]) -> str:
    """Rows and squares of heavy units at least: of all units where the selection has counted them already."""
    unit = _weight_key(weigh)
    grouped = sorted({*weigh.keys, SET_COLUMN} if weigh.per_set else weigh.keys)
    pairs = next((name for name, cte in ctes.items() if cte == _render_pairs(rows, tuple(grouped))), None)
    for name, cte in ctes.items():
        if pairs is not None and cte == _render_sizes(pairs, unit):
            return name
    names = ", ".join([UID, *(quote_identifier(key) for key in grouped)])
    ctes["heavy"] = f"MATERIALIZED (SELECT {unit} FROM {rows} GROUP BY {unit} HAVING COUNT(*) > {weigh.rows})"
    heavy = f"(SELECT {names}, COUNT(*) AS n FROM {rows} SEMI JOIN heavy USING ({unit}) GROUP BY {names})"
    ctes["heavy_sizes"] = _render_sizes(heavy, unit)
    return "heavy_sizes"


def _render_count_units(part: CountUnits, number: int, ctes: dict[str, str]) -> str:
    rows = _render_input_rows(part.input, ctes)
    keys = [quote_identifier(key) for key in part.keys]
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    cell = quote_identifier(part.cell)
    if part.one_row:
        return f"SELECT {', '.join([*keys, f'COUNT(*) AS {cell}'])} FROM {rows}{group}"
    if part.limit is None:
        return f"SELECT {', '.join([*keys, f'COUNT(DISTINCT {UID}) AS {cell}'])} FROM {rows}{group}"
    unit = (
        f"CAST(floor({ROW_WEIGHT} / sqrt(LEAST(t, {part.limit})) * {SQRT_MARGIN}) AS BIGINT)" if part.weighted else "1"
    )
    pairs = _render_limited_pairs(part, part.limit, number, rows, ctes)
    return f"SELECT {', '.join([*keys, f'SUM({unit}) AS {cell}'])} FROM {pairs}{group}"


def _render_limited_pairs(part: CountUnits, limit: int, number: int, rows: str, ctes: dict[str, str]) -> str:
    """(unit, key) pairs with t, how many the unit has: at most `limit` each; only units with more are ranked."""
    keys = ", ".join(quote_identifier(key) for key in part.keys)
    unit = f'{UID}, "{SET_COLUMN}"' if part.per_set else UID
    pairs, sizes = _add_pairs(rows, part.keys, ctes), f"sizes{number}"
    ctes[sizes] = _render_sizes(pairs, unit)
    sized = f"{pairs} JOIN {sizes} USING ({unit})"
    rank = f"row_number() OVER (PARTITION BY {unit} ORDER BY hash({UID}, {keys}), {keys})"
    ranked = f"SELECT {keys}, t, {rank} AS place FROM {sized} WHERE t > {limit}"
    return (
        f"(SELECT {keys}, t FROM {sized} WHERE t <= {limit} UNION ALL "
        f"SELECT {keys}, t FROM ({ranked}) WHERE place <= {limit})"
    )


def _render_sizes(pairs: str, unit: str) -> str:
    """Each unit's groups, t, with its rows and the sum of their squares, from which its weight follows."""
    squares = "SUM(CAST(n AS HUGEINT) * n)"
    return (
        f"MATERIALIZED (SELECT {unit}, COUNT(*) AS t, SUM(n) AS total, {squares} AS squares FROM {pairs} "
        f"GROUP BY {unit})"
    )


def _add_pairs(rows: str, keys: tuple[str, ...], ctes: dict[str, str]) -> str:
    """Each unit's rows per group, n, once however many parts read them."""
    body = _render_pairs(rows, keys)
    for name, cte in ctes.items():
        if cte == body:
            return name
    name = f"pairs{sum(name.startswith('pairs') for name in ctes) + 1}"
    ctes[name] = body
    return name


def _render_pairs(rows: str, keys: tuple[str, ...]) -> str:
    names = ", ".join([UID, *(quote_identifier(key) for key in sorted(keys))])
    return f"MATERIALIZED (SELECT {names}, COUNT(*) AS n FROM {rows} GROUP BY {names})"


# The cells of bundles as DuckDB SQL: components are formed, weighted and divided per row, then summed.


def render_bundles(bundles: tuple[Bundle, ...], weight: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns to compute for each row (the values on their grids), and the sums over them, both with their names."""
    computed: list[str] = []
    cells: list[str] = []
    for number, bundle in enumerate(bundles, 1):
        names = tuple(f"v{number}" + "_" * index for index in range(len(bundle.values)))
        computed += [f"{sql} AS {name}" for sql, name in zip(_render_row_values(bundle), names, strict=True)]
        sums = _render_sums(bundle, weight, names)
        cells += [f"{sql} AS {quote_identifier(cell)}" for cell, sql in zip(bundle.cells, sums, strict=True)]
    return tuple(computed), tuple(cells)


def is_row_count(bundle: Bundle) -> bool:
    return isinstance(bundle, CountBundle) and bundle.present is None


def render_component(value: str, weight: str | None, shift: int, non_negative: bool) -> str:
    """Toward zero: `//` truncates, and `>>` does the same, cheaper, where nothing is negative."""
    product = value if weight is None else weight if value == "1" else f"({value} * {weight})"
    if shift == 0:
        return product
    return f"({product} >> {shift})" if non_negative else f"({product} // {1 << shift})"


def _render_row_values(bundle: Bundle) -> tuple[str, ...]:
    """What is computed for each row: values on their grid, or centred, z = 2v - (lower + upper)."""
    match bundle:
        case CountBundle() | SumBundle():
            return tuple(render_expr(value) for value in bundle.values)
        case MomentBundle():
            value = render_expr(bundle.value)
            return (value if bundle.null_as is None else f"COALESCE({value}, CAST({bundle.null_as} AS BIGINT))",)
        case VarianceBundle():
            return (_render_centered(bundle.value, 1),)
        case CovarianceBundle():
            return _render_centered(bundle.first, bundle.scales[0]), _render_centered(bundle.second, bundle.scales[1])
        case _:
            assert_never(bundle)


def _render_centered(value: Quantise, scale: int) -> str:
    # The distance from the lower bound first: far from 0, twice the value times the scale would not fit 64 bits.
    above = f"({render_expr(value)} - CAST({value.lower} AS BIGINT))"
    return f"({scale} * (2 * {above} - {step_width(value)}))"


def _render_sums(bundle: Bundle, weight: str | None, names: tuple[str, ...]) -> tuple[str, ...]:
    match bundle:
        case CountBundle():
            return (_render_count(bundle, weight),)
        case SumBundle():
            return (f"SUM({render_component(names[0], weight, bundle.shift, bundle.value.lower >= 0)})",)
        case MomentBundle():
            return _render_moments(bundle, weight, names[0])
        case VarianceBundle():
            (z,) = names
            return _sum_components(bundle, weight, ((_square_rest(bundle.max_width, z), True), (f"({z} * {z})", True),
                                                 (_scaled_value(bundle.max_width, z), False)))  # fmt: skip
        case CovarianceBundle():
            # Only rows where both are there: a component of one alone would count what the others do not.
            a, b = (f"(CASE WHEN {other} IS NOT NULL THEN {value} END)" for value, other in (names, names[::-1]))
            return _sum_components(
                bundle,
                weight,
                (
                    (_square_rest(bundle.max_width, a), True),
                    (f"({a} * {a})", True),
                    (_scaled_value(bundle.max_width, a), False),
                    (_scaled_value(bundle.max_width, b), False),
                    (f"({b} * {b})", True),
                    (f"({a} * {b})", False),
                ),
            )
        case _:
            assert_never(bundle)


def _square_rest(wide: int, z: str) -> str:
    return f"(CAST({wide**2} AS BIGINT) - {z} * {z})"


def _scaled_value(wide: int, z: str) -> str:
    return f"(CAST({wide} AS BIGINT) * {z})"


def _sum_components(bundle: Bundle, weight: str | None, components: tuple[tuple[str, bool], ...]) -> tuple[str, ...]:
    """The sum of each component, which is never negative where its mark says so."""
    return tuple(f"SUM({render_component(sql, weight, bundle.shift, positive)})" for sql, positive in components)


def _render_count(bundle: CountBundle, weight: str | None) -> str:
    present = None if bundle.present is None else render_expr(bundle.present)
    if weight is None and bundle.shift == 0:
        return f"COUNT({present or '*'})"
    term = render_component("1", weight, bundle.shift, True)
    return f"SUM({term})" if present is None else f"SUM({term}) FILTER (WHERE {present} IS NOT NULL)"


def _render_moments(bundle: MomentBundle, weight: str | None, value: str) -> tuple[str, ...]:
    lower, upper = bundle.value.lower, bundle.value.upper
    if weight is None and bundle.shift == 0:
        # The same integers as the row-wise form below, at the price of one sum and one count.
        above = f"(SUM({value}) - COUNT({value}) * CAST({lower} AS HUGEINT))"
        below = f"(COUNT({value}) * CAST({upper} AS HUGEINT) - SUM({value}))"
        missing = f"((COUNT(*) - COUNT({value})) * CAST({upper - lower} AS HUGEINT))"
    else:
        above = f"SUM({render_component(f'({value} - {lower})', weight, bundle.shift, True)})"
        below = f"SUM({render_component(f'({upper} - {value})', weight, bundle.shift, True)})"
        whole = render_component(f"CAST({upper - lower} AS BIGINT)", weight, bundle.shift, True)
        missing = f"SUM({whole}) FILTER (WHERE {value} IS NULL)"
    return (above, below) if bundle.missing is None else (above, below, missing)


# The distinct values of each group as DuckDB SQL, of which a unit brings at most its limit.


def render_distinct_rows(node: Distinct, rows: str, ctes: dict[str, str]) -> str:
    """A source with one row for each group and value that some unit keeps.

    First the pairs of each unit, of which the heavy ones keep the first by hash, then by value; then DISTINCT over all
    units. Only units with more pairs than the limit are ranked.
    """
    names = ", ".join(quote_identifier(name) for name in (*node.keys, *node.columns))
    present = f"{quote_identifier(node.columns[0])} IS NOT NULL"
    if node.limit is None:
        return f"(SELECT DISTINCT {names} FROM {rows} WHERE {present})"
    number = sum(name.startswith("values") for name in ctes) + 1
    pairs, many = f"values{number}", f"many{number}"
    unit = f'{UID}, "{SET_COLUMN}"' if node.per_set else UID
    ctes[pairs] = f"MATERIALIZED (SELECT DISTINCT {UID}, {names} FROM {rows} WHERE {present})"
    ctes[many] = f"MATERIALIZED (SELECT {unit} FROM {pairs} GROUP BY {unit} HAVING COUNT(*) > {node.limit})"
    rank = f"row_number() OVER (PARTITION BY {unit} ORDER BY hash({UID}, {names}), {names})"
    ranked = f"SELECT {names}, {rank} AS place FROM {pairs} SEMI JOIN {many} USING ({unit})"
    return (
        f"(SELECT {names} FROM {pairs} ANTI JOIN {many} USING ({unit}) UNION "
        f"SELECT {names} FROM ({ranked}) WHERE place <= {node.limit})"
    )
