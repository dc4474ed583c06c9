"""Integer grids: on which the values of a sum are counted, and which values are clipped or divided for them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import isqrt
from typing import assert_never

from dpsql.compiler.analysis.domains import derive_domains
from dpsql.compiler.plan.aggregate import CountBlocks, CountUnits, Distinct, Gather, Part, Sum, SumBlocks, Weigh
from dpsql.compiler.plan.bundles import CountBundle
from dpsql.compiler.plan.clipped_sums import ClippedSum, subtract_center
from dpsql.compiler.plan.expressions import Call, Column, Expr, Quantise
from dpsql.compiler.plan.measures import (
    Best,
    Blockwise,
    ConjugatePosterior,
    CountDistinctUnits,
    CountRows,
    CountValues,
    DistinctValues,
    Extreme,
    Frequent,
    MeanValues,
    Measure,
    PairValues,
    Posterior,
    Quantile,
    SharesPosterior,
    SumValues,
    Truth,
    VarianceValues,
)
from dpsql.compiler.plan.relations import (
    Expand,
    Filter,
    Join,
    Mark,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    ScanColumn,
    SetOperation,
    Table,
    UnitWindow,
)
from dpsql.compiler.plan.walk import columns_of, map_rows, walk_exprs, walk_nodes
from dpsql.errors import UnboundedValues
from dpsql.schema.model import Domain
from dpsql.types import BIGINT, Kind

STEP_BITS = 24
"""A range of values has about 2^24 steps. A row is then rounded by 2^-25 of the range, and a sum of n rows by about the
root of n times that: for a billion rows a thousandth of the range, where noise is a good part of the range itself."""

MAX_STEPS = 1 << 45
"""Steps on either side of zero: times a weight of 2^16 this is below 2^62, within BIGINT."""


MAX_MAGNITUDE = Fraction(10) ** 100
"""Of the values of a sum: the square of 10^100, for as many rows as there may be, is still a double."""


def declared_grids(node: Rows) -> dict[str, Fraction]:
    """The owner's grid of each column that is passed on as it is."""
    match node:
        case Scan() | PublicScan():
            return {column.name: column.grid for column in node.columns if column.grid is not None}
        case Project():
            inner = declared_grids(node.input)
            return {
                c.name: inner[c.expr.name] for c in node.columns if isinstance(c.expr, Column) and c.expr.name in inner
            }
        case Join():
            return declared_grids(node.left) | declared_grids(node.right)
        case Filter() | UnitWindow() | Expand():
            return declared_grids(node.input)
        case Mark() | SetOperation():
            return declared_grids(node.left) if isinstance(node, Mark) else {}
        case RowsHole() | PerUnit():
            return {}
        case Table() | PublicTable():
            raise TypeError("grids are those of sanitised rows")
        case _:
            assert_never(node)


def quantize_arg(
    arg: Expr, domain: Domain, declared: Fraction | None, widest: int | None = None, fine: int = STEP_BITS
) -> Quantise:
    """The argument on its grid, clipped to its domain; the bounds move inward to whole steps.

    With `widest`, a power of two, there are at most so many steps between the bounds. Without a grid that the column's
    type or owner gives, there are about 2^fine.
    """
    if max(map(abs, domain.bounds)) > MAX_MAGNITUDE:
        raise UnboundedValues(
            "the values that are added up have bounds beyond 1e100",
            hint="Write CLIP(…, 0, 100) around them, with bounds of your own.",
        )
    grid = _pick_grid(domain, declared, fine)
    if widest is not None:
        grid = _coarsen_grid(grid, domain, widest)
    lower, upper = domain.bounds
    first_step, last_step = (lower / grid).__ceil__(), (upper / grid).__floor__()
    if first_step > last_step:  # both bounds lie between two steps
        first_step = last_step = round((lower + upper) / 2 / grid)
    return Quantise(arg, grid, first_step, last_step)


def quantize_about_center(
    arg: Expr, domain: Domain, declared: Fraction | None, widest: int | None = None, fine: int = STEP_BITS
) -> tuple[Quantise, Fraction]:
    """The argument on its grid, and the centre that its steps are counted from.

    That is 0, unless values lie so far from there that a finer grid fits about the middle of their bounds: of numbers
    between 2^50 and 2^50 + 99, all would be one step.
    """
    value, center = quantize_arg(arg, domain, declared, widest, fine), _find_center(domain, declared)
    about = _subtract_from_bounds(domain, center)
    if _pick_grid(about, declared, STEP_BITS) >= _pick_grid(domain, declared, STEP_BITS):
        return value, Fraction(0)
    return quantize_arg(subtract_center(arg, center), about, declared, widest, fine), center


def _find_center(domain: Domain, declared: Fraction | None) -> Fraction:
    """The middle of the bounds: on the grid of the values, or a double."""
    middle, natural = sum(domain.bounds, Fraction(0)) / 2, declared or natural_grid(domain)
    center = middle if natural is None else round(middle / natural) * natural
    return center if domain.type.kind is Kind.DECIMAL or domain.type.is_integer else Fraction(float(center))


def _subtract_from_bounds(domain: Domain, center: Fraction) -> Domain:
    lower, upper = domain.bounds
    return domain.with_bounds(lower - center, upper - center)


def _pick_grid(domain: Domain, declared: Fraction | None, fine: int) -> Fraction:
    lower, upper = domain.bounds
    largest = max(abs(lower), abs(upper), Fraction(1, 1 << 200))
    natural = declared or natural_grid(domain)
    if natural is not None and largest / natural < MAX_STEPS:
        return natural
    spread = max(upper - lower, largest / (1 << 20))
    return max(_power_of_two_below(spread) / (1 << fine), _power_of_two_below(largest) / (MAX_STEPS >> 2))


def _coarsen_grid(grid: Fraction, domain: Domain, widest: int) -> Fraction:
    """The grid times the least power of two that leaves at most `widest` steps."""
    lower, upper = domain.bounds
    while (upper - lower) / grid > widest:
        grid *= 2
    return grid


def natural_grid(domain: Domain) -> Fraction | None:
    if domain.type.is_integer:
        return Fraction(1)
    if domain.type.kind is Kind.DECIMAL:
        return Fraction(1, 10 ** (domain.type.scale or 0))
    return None


def _power_of_two_below(number: Fraction) -> Fraction:
    """The largest power of two that is not above the number."""
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= number else power / 2


def to_number_expr(value: Expr) -> Expr | None:
    """Days of a date, microseconds of a timestamp, a number as it is; None of what has no order in steps."""
    match value.type.kind:
        case Kind.DATE:
            return Call("epoch_days", (value,), BIGINT)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return Call("epoch_us", (value,), BIGINT)
        case _:
            return value if value.type.is_number else None


def quantize_evenly(
    arg: Expr, domain: Domain, natural: Fraction | None, finest: Fraction, max_steps: int
) -> tuple[Quantise, Fraction]:
    """At most `max_steps` between the bounds: on the natural grid where it has one, or a multiple of it; else evenly.

    `finest` is the grid of an argument without a natural one, unless it has too many steps. Steps are counted from the
    number that comes with them: 0, unless values lie too far from there.
    """
    lower, upper = domain.bounds
    grid = natural or finest
    if (upper - lower) / grid >= max_steps:
        width = (upper - lower) / (max_steps - 1)
        grid = -(-width // natural) * natural if natural is not None else width
    if max(abs(lower), abs(upper)) / grid >= MAX_STEPS:
        center = Fraction(lower.__floor__()) if arg.type.is_integer else _find_center(domain, natural)
        arg, lower, upper = subtract_center(arg, center), lower - center, upper - center
    else:
        center = Fraction(0)
    first, last = (lower / grid).__ceil__(), (upper / grid).__floor__()
    if first > last:
        first = last = round((lower + upper) / 2 / grid)
    return Quantise(arg, grid, first, last), center


# Divide each row's components by a power of two where the grid is finer than the noise needs (SOUNDNESS 4).

NOISE_SCALE_BITS = 30
"""Noise of about 2^30 grid steps: finer is wasted under it, and slows the sampler."""


def coarsen_bundles(gather: Gather, shifts: dict[str, int]) -> Gather:
    """`shifts` maps the first cell of each bundle to its shift."""

    def change(part: Sum) -> Sum:
        return replace(part, bundles=tuple(replace(b, shift=shifts.get(b.cells[0], 0)) for b in part.bundles))

    return replace(gather, parts=tuple(change(part) if isinstance(part, Sum) else part for part in gather.parts))


def shift_for(scale_squared: int) -> int:
    """The shift that brings noise of this squared scale down to about 2^SCALE_BITS."""
    return max(0, isqrt(scale_squared).bit_length() - 1 - NOISE_SCALE_BITS)


# Leave the clip of a number to `Quantise` where nothing else reads the column: it clips again, in integers.
#
#     Sum(Quantise(x)) over Scan(clip x)  →  Sum(Quantise(x)) over Scan(x as stored)

_PASSING_NODES = (Scan, PublicScan, RowsHole, Filter, Join)
"""Operators that read a column only in their condition."""


def drop_clips(gather: Gather) -> Gather:
    sums = [part for part in gather.parts if isinstance(part, Sum)]
    if any(isinstance(part, SumBlocks | CountBlocks | ClippedSum) for part in gather.parts):
        return gather  # they also compare values, or read them on grids of their own
    rows = _rows_of_part(sums[0]) if sums else None
    if not isinstance(rows, Project) or any(_rows_of_part(part) != rows for part in gather.all_parts):
        return gather  # values are compared, or rows filtered, above the clip
    if not all(isinstance(n, _PASSING_NODES) for n in walk_nodes(rows.input)):
        return gather
    free = _columns_only_quantized(rows, sums) - _columns_read_below(rows.input)
    if not free:
        return gather
    return _replace_rows(gather, replace(rows, input=map_rows(rows.input, lambda node: _relax_scan(node, free))))


def _rows_of_part(part: Part) -> Rows | Distinct:
    return part.input.input if isinstance(part.input, Weigh) else part.input


def _columns_only_quantized(rows: Project, sums: list[Sum]) -> frozenset[str]:
    """Columns of the input that are passed on, and then only read by `Quantise`."""
    quantised: set[str] = set()
    otherwise: set[str] = set()
    for bundle in (bundle for part in sums for bundle in part.bundles):
        if isinstance(bundle, CountBundle):
            otherwise |= columns_of(bundle.present) if bundle.present is not None else frozenset()
        quantised |= {value.arg.name for value in bundle.values if isinstance(value.arg, Column)}
    passed: set[str] = set()
    computed: set[str] = set()
    for column in rows.columns:
        if isinstance(column.expr, Column) and column.name in quantised - otherwise:
            passed.add(column.expr.name)
        else:
            computed |= columns_of(column.expr)
    return frozenset(passed - computed)


def _columns_read_below(node: Rows) -> frozenset[str]:
    read: frozenset[str] = frozenset()
    for part in walk_nodes(node):
        if isinstance(part, Filter | Join):
            read |= columns_of(part.condition)
    return read


def _relax_scan(node: Rows, free: frozenset[str]) -> Rows:
    if not isinstance(node, Scan):
        return node
    return replace(
        node, columns=tuple(_relax_column(column) if column.name in free else column for column in node.columns)
    )


def _relax_column(column: ScanColumn) -> ScanColumn:
    if not column.domain.type.is_number or column.domain.values is not None or column.is_id:
        return column
    return replace(column, domain=column.domain.with_bounds(None, None), as_stored=True)


def _replace_rows(gather: Gather, rows: Rows) -> Gather:
    def change(part: Part) -> Part:
        if isinstance(part.input, Weigh):
            return replace(part, input=replace(part.input, input=rows))
        return replace(part, input=rows)

    selection = gather.selection
    if selection is not None:
        changed = change(selection)
        assert isinstance(changed, CountUnits)
        selection = changed
    return replace(gather, parts=tuple(change(part) for part in gather.parts), selection=selection)


# What to say where values that would be summed have no bounds: which column it is, and what can be written.


def unbounded_values_error(arg: Expr, measure: Measure, node: Rows, assume: int | None) -> UnboundedValues:
    """`arg` is a column of `node`, whose own expression tells where it comes from."""
    columns = _columns_without_bounds(arg, node, assume)
    clipped = _clip_suggestion(arg, measure)
    if len(columns) == 1:
        name = columns[0].rpartition(".")[2]
        return UnboundedValues(
            f'column "{columns[0]}" has no bounds, and {_measure_name(measure)} needs some',
            hint=f"Declare them in the schema, {name}: {{bounds: [0, 100]}} under {columns[0].rpartition('.')[0]}. "
            f"Or write {clipped} with bounds of your own.",
            span=measure.span,
        )
    subject = f"columns {', '.join(columns)} have" if columns else f"the values of {_measure_name(measure)} have"
    return UnboundedValues(f"{subject} no bounds", hint=f"Write {clipped} with bounds of your own.", span=measure.span)


def _columns_without_bounds(arg: Expr, node: Rows, assume: int | None) -> list[str]:
    """Declared columns among those that the argument is computed from."""
    while isinstance(node, Filter | Expand):  # grouping sets leave arguments as they are
        node = node.input
    if not isinstance(node, Project):
        return []
    expr = next((c.expr for c in node.columns if isinstance(arg, Column) and c.name == arg.name), arg)
    env = derive_domains(node.input, assume)
    number_columns = (
        part for part in walk_exprs(expr) if isinstance(part, Column) and part.type.is_number and part.origin
    )
    return list(
        dict.fromkeys(str(part.origin) for part in number_columns if part.name in env and not env[part.name].is_bounded)
    )


def _measure_name(measure: Measure) -> str:
    match measure:
        case SumValues():
            return "SUM"
        case MeanValues():
            return "AVG"
        case VarianceValues():
            return ("STDDEV" if measure.root else "VAR") + ("_SAMP" if measure.sample else "_POP")
        case DistinctValues():
            return "SUM(DISTINCT …)" if measure.function == "sum" else "AVG(DISTINCT …)"
        case PairValues():
            return measure.function.value.upper()
        case Truth():
            return "BOOL_AND" if measure.every else "BOOL_OR"
        case Blockwise():
            return "BLOCKWISE"
        case ConjugatePosterior():
            return f"{measure.family.upper()}_POSTERIOR"
        case CountRows() | CountValues() | CountDistinctUnits() | Quantile() | Extreme() | Frequent():
            return "the aggregate"
        case Best() | Posterior() | SharesPosterior():
            return "the aggregate"
        case _:
            assert_never(measure)


def _clip_suggestion(arg: Expr, measure: Measure) -> str:
    if isinstance(measure, PairValues):
        texts = [f"CLIP({text}, 0, 100)" if arg == part else text
                 for part, text in zip((measure.y, measure.x), measure.texts, strict=True)]  # fmt: skip
        return f"{_measure_name(measure)}({', '.join(texts)})"
    if isinstance(measure, Blockwise):
        return f"CLIP({measure.text}, 0, 100) in its place,"
    text = f"CLIP({getattr(measure, 'text', '…')}, 0, 100)"
    return (
        _measure_name(measure).replace("…", text)
        if isinstance(measure, DistinctValues)
        else f"{_measure_name(measure)}({text})"
    )
