"""What to say where values that would be summed have no bounds: which column it is, and what can be written."""

from __future__ import annotations

from typing import assert_never

from dpsql.analysis.domains import derive_domains
from dpsql.errors import UnboundedValues
from dpsql.plan.expr import Column, Expr
from dpsql.plan.measures import (
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
from dpsql.plan.relations import Expand, Filter, Project, Rows
from dpsql.plan.walk import walk_exprs


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
    number_columns = (part for part in walk_exprs(expr) if isinstance(part, Column) and part.type.is_number and part.origin)
    return list(dict.fromkeys(str(part.origin) for part in number_columns if part.name in env and not env[part.name].is_bounded))


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
    return _measure_name(measure).replace("…", text) if isinstance(measure, DistinctValues) else f"{_measure_name(measure)}({text})"
