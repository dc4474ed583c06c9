"""The text of what a measure does, for the canonical form of a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from dpsql.plan.expr import Expr
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


def measure_function_text(measure: Measure, text: Callable[[Expr], str]) -> str:
    """Everything about a measure but its arguments."""
    match measure:
        case CountRows():
            return "count_rows"
        case CountDistinctUnits():
            return "count_units"
        case CountValues():
            return "count"
        case SumValues():
            return "sum"
        case MeanValues():
            return "mean"
        case DistinctValues():
            return f"distinct_{measure.function}"
        case VarianceValues():
            return f"variance:{measure.sample}:{measure.root}"
        case PairValues():
            return measure.function.value
        case Truth():
            return f"truth:{measure.every}"
        case Quantile():
            fractions = " ".join(map(str, measure.fractions))
            local = "" if measure.local is None else f":{measure.local.by.value}:{measure.local.proposal}"
            return f"quantile:{fractions}:{measure.discrete}:{measure.is_list}{local}"
        case Extreme():
            return f"extreme:{measure.high}"
        case Frequent():
            return f"frequent:{measure.shape}:{measure.most}"
        case Blockwise():
            statistic = measure.statistic
            named = " ".join(f"{aggregate.name}={aggregate.function}:{aggregate.fraction}" for aggregate in statistic.aggregates)
            combined = f"{measure.combine}:{measure.blocks}:{measure.lower}:{measure.upper}"
            return f"blockwise:{combined}:{named}:{text(statistic.result)}"
        case Best():
            return f"best:{measure_function_text(measure.score, text)}:{measure.most}:{measure.is_list}"
        case Posterior():
            prior = f"{measure.alpha}:{measure.beta}:{measure.first}"
            return f"posterior:{measure.draws}:{measure.is_list}:{prior}"
        case ConjugatePosterior() | SharesPosterior():
            return measure.signature
        case _:
            assert_never(measure)
