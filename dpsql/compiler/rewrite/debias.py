"""Counts of randomized answers, debiased: other recipes over the same cells.

    SELECT answer, COUNT(*) FROM survey GROUP BY answer   →   (c - n q) / (p - q) of each value's count c, n their sum

Privacy: the plan that runs, its noise and its loss are those without the declaration; only what is worked out of the
released cells differs. Nothing here rests on how answers were randomized, which nobody can check.

A recipe is changed where that is sound: where the recorded answer decides nothing but the group of a row, counts and
means; and the mean of a function of the answer alone. All else is told as it was recorded, and a notice says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpsql.compiler.analysis.key_values import evaluate_for_values
from dpsql.compiler.analysis.randomized_response import (
    NO_ORIGINS,
    Origin,
    Origins,
    find_randomized_reads,
    randomization_of,
)
from dpsql.compiler.analysis.units import derive_unit_facts
from dpsql.compiler.plan.aggregate import Aggregate, CountUnits, Gather
from dpsql.compiler.plan.estimators import BySet, Debiased, DebiasedMean, Linear, Mean, Recipe
from dpsql.compiler.plan.expressions import Column, Expr, IsNull, Not, split_conjuncts
from dpsql.compiler.plan.measures import (
    CountDistinctUnits,
    CountRows,
    CountValues,
    MeanValues,
    Measure,
)
from dpsql.compiler.plan.relations import Filter, Rows
from dpsql.compiler.plan.walk import columns_of, measure_args
from dpsql.compiler.rewrite.release_plan import RewrittenPlan
from dpsql.schema.model import Randomized, Schema, to_number


@dataclass(frozen=True)
class Debiasing:
    """The recipe of each measure, debiased where that is sound; and the notices for the analyst."""

    recipes: tuple[Recipe, ...]
    notices: tuple[str, ...]


def debias(aggregate: Aggregate, rewritten: RewrittenPlan, schema: Schema) -> Debiasing:
    """`aggregate` is canonical, and `rewritten` what was made of it: one recipe for each of its measures."""
    debiaser = _Debiaser(aggregate, schema)
    pairs = zip(aggregate.measures, rewritten.recipes, strict=True)
    recipes = tuple(debiaser.debias_recipe(measure, recipe, rewritten.gather) for measure, recipe in pairs)
    return Debiasing(recipes, debiaser.make_notices())


def recorded_notices(aggregate: Aggregate, schema: Schema) -> tuple[str, ...]:
    """What must be said where nothing is debiased, as of quantiles."""
    debiaser = _Debiaser(aggregate, schema)
    for measure in aggregate.measures:
        debiaser.as_recorded |= debiaser.origins_read_by(measure) | debiaser.grouped
    return debiaser.make_notices()


@dataclass
class _Debiaser:
    aggregate: Aggregate
    schema: Schema
    as_recorded: set[Origin] = field(default_factory=set)
    debiased: set[Origin] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.reads = find_randomized_reads(self.aggregate.input, self.schema)
        self.rows = self.reads.rows
        each = [self.reads.origins_of(key.expr) for key in self.aggregate.keys]
        self.grouped: Origins = frozenset(origin for origins in each for origin in origins)
        named = [(key.name, self.reads.recorded_origin(key.expr)) for key in self.aggregate.keys]
        # The same answer in two keys, or in WHERE beside a key, is not randomized once more.
        self.keys = {
            name: origin
            for name, origin in named
            if origin is not None and origin not in self.rows and sum(origin in origins for origins in each) == 1
        }
        if self.aggregate.measures:
            self.as_recorded |= self.rows

    def origins_read_by(self, measure: Measure) -> Origins:
        """COUNT(answer) asks only whether there is one."""
        if isinstance(measure, CountValues) and isinstance(measure.arg, Column):
            return NO_ORIGINS
        return frozenset(origin for arg in measure_args(measure) for origin in self.reads.origins_of(arg))

    def debias_recipe(self, measure: Measure, recipe: Recipe, gather: Gather) -> Recipe:
        if isinstance(recipe, BySet):
            return replace(recipe, recipes=tuple(self.debias_recipe(measure, r, gather) for r in recipe.recipes))
        read = self.origins_read_by(measure)
        if not read and not self.grouped:
            return recipe
        if not self.grouped and (mean := self._debias_mean(measure, recipe)) is not None:
            self.debiased |= read
            return mean
        self.as_recorded |= read
        # Of a key that is selected some answers may not appear, and those that do could not be debiased without them.
        selected = () if gather.selection is None else gather.selection.keys
        keys = {name: at for name, at in self.keys.items() if at not in read and name not in selected}
        if not _is_additive(measure, gather) or not isinstance(recipe, Linear | Mean):
            keys = {}
        self.as_recorded |= self.grouped - set(keys.values())
        self.debiased |= set(keys.values())
        if not keys:
            return recipe
        assert isinstance(recipe, Linear | Mean)
        indices = {key.name: index for index, key in enumerate(gather.keys)}
        randomized = ((indices[name], randomization_of(self.schema, origin)) for name, origin in keys.items())
        return Debiased(recipe, tuple(randomized), recipe.type)

    def _debias_mean(self, measure: Measure, recipe: Recipe) -> DebiasedMean | None:
        """AVG of a function of one answer and nothing else, which is NULL where that is, and only there."""
        if not isinstance(measure, MeanValues) or not isinstance(recipe, Mean):
            return None
        (name, *others) = columns_of(measure.arg)
        origin = self.reads.recorded.get(name)
        if others or origin is None or origin in self.rows:
            return None
        randomization = randomization_of(self.schema, origin)
        if not _is_never_null(self.aggregate.input, name) and evaluate_for_values(measure.arg, name, (None,)) != (
            None,
        ):
            return None
        values = _evaluate_answers(measure.arg, name, randomization)
        if values is None:
            return None
        return DebiasedMean(recipe, randomization, sum(values, Fraction(0)), sum((v * v for v in values), Fraction(0)))

    def make_notices(self) -> tuple[str, ...]:
        messages: list[str] = []
        for table, column in sorted(self.debiased):
            epsilon = f"{float(randomization_of(self.schema, (table, column)).epsilon):.5g}"
            messages.append(f"{table}.{column} holds answers that were randomized with epsilon {epsilon}: they are "
                        "debiased, and the error bars have the variance of the randomizing in them")  # fmt: skip
        for table, column in sorted(self.as_recorded):
            beside = "in other places " if (table, column) in self.debiased else ""
            messages.append(f"{table}.{column} holds randomized answers, and {beside}this statement takes them as they "
                        f"were recorded; COUNT(*) with GROUP BY {column} is debiased, and so is the AVG of a function "
                        f"of {column} alone that is NULL where {column} is")  # fmt: skip
        return tuple(messages)


def _is_additive(measure: Measure, gather: Gather) -> bool:
    """Whether the groups' figures add up to that of all rows: then a row that was recorded elsewhere is taken from one
    and given to another. Units that are counted in each group do so if each has one row."""
    if isinstance(measure, CountDistinctUnits):
        counts = [part for part in gather.parts if isinstance(part, CountUnits)]
        return all(derive_unit_facts(part.input).rows == 1 for part in counts)
    return isinstance(measure, CountRows | CountValues | MeanValues)


def _is_never_null(rows: Rows, name: str) -> bool:
    """Whether WHERE leaves out the rows in which a column is NULL."""
    while isinstance(rows, Filter):
        for part in split_conjuncts(rows.condition):
            column = part.arg.arg if isinstance(part, Not) and isinstance(part.arg, IsNull) else None
            if isinstance(column, Column) and column.name == name:
                return True
        rows = rows.input
    return False


def _evaluate_answers(expr: Expr, name: str, randomization: Randomized) -> list[Fraction] | None:
    """The function's value for each answer; None where one is NULL or cannot be told."""
    numbers: list[Fraction] = []
    for answer in randomization.values:
        values = evaluate_for_values(expr, name, (answer,))
        if values is None or values[0] is None or isinstance(values[0], str):
            return None
        numbers.append(to_number(values[0]))
    return numbers
