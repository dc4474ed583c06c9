"""What to say where values that would be summed have no bounds: which column it is, and what can be written."""

from __future__ import annotations

from typing import assert_never

from dpsql.analysis.domains import node_domains
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
from dpsql.plan.walk import walk


def need_bounds(arg: Expr, asked: Measure, node: Rows, assume: int | None) -> UnboundedValues:
    """`arg` is a column of `node`, whose own expression tells where it comes from."""
    columns = _without_bounds(arg, node, assume)
    clipped = _clipped(arg, asked)
    if len(columns) == 1:
        name = columns[0].rpartition(".")[2]
        return UnboundedValues(
            f'column "{columns[0]}" has no bounds, and {_name(asked)} needs some',
            hint=f"Declare them in the schema, {name}: {{bounds: [0, 100]}} under {columns[0].rpartition('.')[0]}. "
            f"Or write {clipped} with bounds of your own.",
            span=asked.span,
        )
    what = f"columns {', '.join(columns)} have" if columns else f"the values of {_name(asked)} have"
    return UnboundedValues(f"{what} no bounds", hint=f"Write {clipped} with bounds of your own.", span=asked.span)


def _without_bounds(arg: Expr, node: Rows, assume: int | None) -> list[str]:
    """Declared columns among those that the argument is computed from."""
    while isinstance(node, Filter | Expand):  # grouping sets leave arguments as they are
        node = node.input
    if not isinstance(node, Project):
        return []
    expr = next((c.expr for c in node.columns if isinstance(arg, Column) and c.name == arg.name), arg)
    env = node_domains(node.input, assume)
    found = (part for part in walk(expr) if isinstance(part, Column) and part.type.is_number and part.origin)
    return list(dict.fromkeys(str(part.origin) for part in found if part.name in env and not env[part.name].bounded))


def _name(asked: Measure) -> str:
    match asked:
        case SumValues():
            return "SUM"
        case MeanValues():
            return "AVG"
        case VarianceValues():
            return ("STDDEV" if asked.root else "VAR") + ("_SAMP" if asked.sample else "_POP")
        case DistinctValues():
            return "SUM(DISTINCT …)" if asked.function == "sum" else "AVG(DISTINCT …)"
        case PairValues():
            return asked.function.value.upper()
        case Truth():
            return "BOOL_AND" if asked.every else "BOOL_OR"
        case Blockwise():
            return "BLOCKWISE"
        case ConjugatePosterior():
            return f"{asked.family.upper()}_POSTERIOR"
        case CountRows() | CountValues() | CountDistinctUnits() | Quantile() | Extreme() | Frequent():
            return "the aggregate"
        case Best() | Posterior() | SharesPosterior():
            return "the aggregate"
        case _:
            assert_never(asked)


def _clipped(arg: Expr, asked: Measure) -> str:
    if isinstance(asked, PairValues):
        texts = [f"CLIP({text}, 0, 100)" if arg == part else text
                 for part, text in zip((asked.y, asked.x), asked.texts, strict=True)]  # fmt: skip
        return f"{_name(asked)}({', '.join(texts)})"
    if isinstance(asked, Blockwise):
        return f"CLIP({asked.text}, 0, 100) in its place,"
    text = f"CLIP({getattr(asked, 'text', '…')}, 0, 100)"
    return _name(asked).replace("…", text) if isinstance(asked, DistinctValues) else f"{_name(asked)}({text})"
