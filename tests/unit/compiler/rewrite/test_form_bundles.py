"""Bundles: which measures share cells, and that recipes give the exact answers back."""

import statistics
from fractions import Fraction

import pytest

from dpsql.compiler.analysis.sensitivity import Neighboring
from dpsql.compiler.calibrate.calibrate import LossNeed, NoiseKind, calibrate, split_loss
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.plan.aggregate import CountUnits, Distinct, Gather, Sum
from dpsql.compiler.plan.bundles import Bundle, CountBundle, CovarianceBundle, MomentBundle, SumBundle, VarianceBundle
from dpsql.compiler.plan.clipped_sums import Norm
from dpsql.compiler.plan.estimators import Linear, Mean, Paired, Recipe, Terms, Variance
from dpsql.compiler.plan.relations import Filter
from dpsql.compiler.rewrite.bound_contributions import ContributionPolicy
from dpsql.compiler.rewrite.grids import NOISE_SCALE_BITS, coarsen_bundles, shift_for
from dpsql.compiler.rewrite.pipeline import rewrite_plan
from dpsql.compiler.rewrite.release_plan import RewrittenPlan, RuleContext
from dpsql.compiler.split.split import split_query
from dpsql.schema.model import Resolved


def rewritten(aggregates: str, resolved: Resolved, table: str = "visits") -> RewrittenPlan:
    (release,) = split_query(parse_query(f"SELECT {aggregates} FROM {table}"), resolved.schema).releases
    return rewrite_plan(release.aggregate, RuleContext(resolved, ContributionPolicy(8, 4, Norm.L2)))


def bundles(gather: Gather) -> tuple[Bundle, ...]:
    return tuple(bundle for part in gather.parts if isinstance(part, Sum) for bundle in part.bundles)


@pytest.mark.parametrize(
    ("aggregates", "kinds"),
    [
        ("COUNT(*)", (CountBundle,)),
        ("COUNT(cost)", (CountBundle,)),
        ("COUNT(cost), COUNT(score)", (CountBundle, CountBundle)),
        ("COUNT(*), COUNT(cost)", (CountBundle, CountBundle)),
        ("SUM(cost)", (SumBundle,)),
        ("AVG(cost)", (MomentBundle,)),
        ("SUM(cost), COUNT(cost)", (MomentBundle,)),
        ("SUM(cost), AVG(cost), COUNT(cost), COUNT(*)", (MomentBundle,)),
        ("SUM(cost), SUM(paid)", (SumBundle, SumBundle)),
        ("COUNT(*), SUM(cost), SUM(paid)", (MomentBundle, SumBundle)),
        ("AVG(cost), AVG(paid), COUNT(*)", (MomentBundle, MomentBundle)),
        ("COUNT(*), SUM(2), AVG(2)", (CountBundle,)),
        ("COUNT(coalesce(cost, 0)), COUNT(*)", (CountBundle,)),  # never NULL: the same rows
        ("VAR_POP(cost)", (VarianceBundle,)),
        ("SUM(cost), AVG(cost), COUNT(cost), STDDEV(cost), VAR_SAMP(cost)", (VarianceBundle,)),
        ("STDDEV(cost), AVG(paid), COUNT(*)", (MomentBundle, VarianceBundle)),
        ("STDDEV(cost), COUNT(*)", (VarianceBundle, CountBundle)),  # cost may be NULL, which squares do not count
        ("STDDEV(coalesce(cost, 0)), COUNT(*)", (VarianceBundle,)),
        ("VAR_POP(2)", (CountBundle,)),
        ("CORR(cost, paid), REGR_SLOPE(paid, cost), REGR_COUNT(cost, paid)", (CovarianceBundle,)),
        ("CORR(cost, paid), CORR(cost, nights)", (CovarianceBundle, CovarianceBundle)),
        ("REGR_COUNT(cost, paid)", (CountBundle,)),
        ("BOOL_AND(cost > 3), BOOL_OR(cost > 3), AVG((cost > 3)::int)", (MomentBundle,)),
    ],
)
def test_measures_share_cells(aggregates: str, kinds: tuple[type, ...], clinic: Resolved) -> None:
    assert tuple(type(bundle) for bundle in bundles(rewritten(aggregates, clinic).gather)) == kinds


def test_units_have_a_part_of_their_own(clinic: Resolved) -> None:
    gather = rewritten("COUNT(*), COUNT(DISTINCT patient_id)", clinic).gather
    assert [type(part).__name__ for part in gather.parts] == ["Sum", "CountUnits"]


def test_distinct_values_have_a_part_of_their_own(clinic: Resolved) -> None:
    """Functions of the same distinct values share it; each unit keeps as many of them as it has rows to count."""
    gather = rewritten("COUNT(DISTINCT nights), SUM(DISTINCT nights), COUNT(DISTINCT ward), COUNT(*)", clinic).gather
    distinct = [part for part in gather.parts if isinstance(part, Sum) and isinstance(part.input, Distinct)]
    assert {type(part.bundles[0]) for part in distinct} == {MomentBundle, CountBundle} and len(distinct) == 2
    assert {part.input.limit for part in distinct if isinstance(part.input, Distinct)} == {8}
    (one,) = rewritten("COUNT(DISTINCT sex)", clinic, "patients").gather.parts
    assert isinstance(one, Sum) and isinstance(one.input, Distinct) and one.input.limit is None  # one row per patient


def test_units_with_a_condition_are_counted_over_the_rows_that_meet_it(clinic: Resolved) -> None:
    asked = "COUNT(DISTINCT patient_id), COUNT(DISTINCT patient_id) FILTER (WHERE nights > 3), SUM(cost)"
    parts = rewritten(asked, clinic).gather.parts
    units = [part for part in parts if isinstance(part, CountUnits)]
    assert sorted(isinstance(part.input, Filter) for part in units) == [False, True]
    assert len({part.cell for part in units}) == 2


def cells(values: list[int | None], bundle: Bundle, whole: int) -> dict[str, int]:
    """The cells that the engine would return for these values, which are on the grid, in steps."""
    if isinstance(bundle, CountBundle):
        present = len(values) if bundle.present is None else sum(value is not None for value in values)
        return {bundle.cell: present * whole}
    if isinstance(bundle, MomentBundle) and bundle.null_as is not None:
        values = [bundle.null_as if value is None else value for value in values]
    known = [value for value in values if value is not None]
    if isinstance(bundle, SumBundle):
        return {bundle.cell: sum(known) * whole}
    if isinstance(bundle, VarianceBundle):
        centred, wide = [2 * v - bundle.value.lower - bundle.value.upper for v in known], bundle.max_width
        sums = (sum(wide**2 - z * z for z in centred), sum(z * z for z in centred), sum(wide * z for z in centred))
        return {cell: total * whole for cell, total in zip(bundle.cells, sums, strict=True)}
    assert isinstance(bundle, MomentBundle)
    lower, upper = bundle.value.lower, bundle.value.upper
    result = {bundle.above: sum(v - lower for v in known) * whole, bundle.below: sum(upper - v for v in known) * whole}
    if bundle.missing is not None:
        result[bundle.missing] = (len(values) - len(known)) * (upper - lower) * whole
    return result


@pytest.mark.parametrize(
    "aggregates",
    [
        "COUNT(*), COUNT(paid), SUM(paid), AVG(paid)",
        "SUM(paid)",
        "COUNT(paid)",
        "COUNT(*)",
        "AVG(paid), SUM(paid)",
        "COUNT(*), SUM(paid)",
        "COUNT(*), COUNT(paid), SUM(paid), AVG(paid), VAR_POP(paid)",
    ],
)
def test_recipes_give_the_exact_answers_back(aggregates: str, clinic: Resolved) -> None:
    values = [-10_000, 250, None, 100_000, None, 0]  # paid in cents: -100 to 1000
    found = rewritten(aggregates, clinic)
    whole, known = 1 << 16, [value for value in values if value is not None]
    exact: dict[str, int] = {}
    grids: dict[str, Fraction] = {}
    for bundle in bundles(found.gather):
        exact |= cells(values, bundle, whole)
        grids |= dict.fromkeys(bundle.cells, bundle.grid / whole)
    (release,) = split_query(parse_query(f"SELECT {aggregates} FROM visits"), clinic.schema).releases
    expected = {
        "CountRows": Fraction(len(values)),
        "CountValues": Fraction(len(known)),
        "SumValues": Fraction(sum(known), 100),
        "MeanValues": Fraction(sum(known), 100 * len(known)),
        "VarianceValues": statistics.pvariance([Fraction(value, 100) for value in known]),
    }
    for measure, recipe in zip(release.aggregate.measures, found.recipes, strict=True):
        assert answer(recipe, {cell: exact[cell] * grids[cell] for cell in exact}) == expected[type(measure).__name__]


def answer(recipe: Recipe, cells: dict[str, Fraction]) -> Fraction:
    """By its definition, in exact numbers."""

    def total(terms: Terms) -> Fraction:
        return sum((coefficient * cells[cell] for cell, coefficient in terms), Fraction(0))

    match recipe:
        case Linear(terms):
            return total(terms)
        case Mean():
            return recipe.center + total(recipe.first) / total(recipe.count)
        case Variance():
            return total(recipe.second) / total(recipe.count) - (total(recipe.first) / total(recipe.count)) ** 2
        case _:
            raise TypeError(recipe)


def test_a_pair_knows_which_of_its_values_is_which(clinic: Resolved) -> None:
    one, other = (recipe for recipe in rewritten("REGR_SLOPE(cost, paid), REGR_SLOPE(paid, cost)", clinic).recipes)
    assert isinstance(one, Paired) and isinstance(other, Paired)
    assert (one.y, one.x) == (other.x, other.y) and one.y != one.x
    assert (one.count, one.product) == (other.count, other.product)


# --- coarser cells ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0, 1, 2**30, 2**31 - 1, 2**31, 2**36, 2**60])
def test_a_shift_brings_noise_down_to_its_bits(scale: int) -> None:
    shift = shift_for(scale**2)
    assert shift >= 0 and scale >> shift < 1 << (NOISE_SCALE_BITS + 1)
    assert shift == 0 or scale >> shift >= 1 << NOISE_SCALE_BITS


def test_only_the_bundles_that_are_named_get_coarser(clinic: Resolved) -> None:
    gather = rewritten("SUM(cost), SUM(paid)", clinic).gather
    first, second = bundles(gather)
    changed = bundles(coarsen_bundles(gather, {second.cells[0]: 3}))
    assert (changed[0].shift, changed[1].shift) == (0, 3) and changed[0].cells == first.cells


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1), Fraction(100)])
def test_coarsening_leaves_a_thousand_steps_to_the_largest_row(epsilon: Fraction, clinic: Resolved) -> None:
    gather = rewritten("SUM(cost), COUNT(*), SUM(paid), CORR(cost, paid), STDDEV(nights)", clinic).gather
    (share,) = split_loss(NoiseKind.GAUSSIAN, epsilon, Fraction(1, 10**7), (LossNeed.EPSILON,))
    for bundle in bundles(calibrate(gather, share, Neighboring(False, 1)).gather):
        assert (bundle.row_linf << 16) >> bundle.shift >= 1 << 10
