"""Answers from noisy cells: the right functions, errors that noise keeps, nothing impossible."""

import math
import statistics
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpsql.compiler.plan.bundles import Bundle, CovarianceBundle, MomentBundle, VarianceBundle
from dpsql.compiler.plan.estimators import Evidence, Linear, Mean, Paired, Recipe
from dpsql.compiler.plan.expressions import Column, Quantise
from dpsql.compiler.plan.measures import PairFunction
from dpsql.compiler.rewrite.form_bundles import (
    ArgumentSums,
    make_mean_sums,
    make_pair_product_sums,
    make_total_sums,
    make_variance_sums,
)
from dpsql.privacy.noise import Gaussian
from dpsql.privacy.release import NoiseBundle as NoisyCells
from dpsql.privacy.release import Release, ReleaseSpec
from dpsql.session.postprocess.estimates import estimate_covariance, estimate_measure
from dpsql.types import BIGINT, DOUBLE, decimal_type

X, Y = Column("x", DOUBLE), Column("y", DOUBLE)
XS = [3.0, -2.0, 7.5, 0.0, 10.0, 4.5]
YS = [1.0, 0.5, 4.0, 0.25, 3.0, 2.0]
XQ, YQ = Quantise(X, Fraction(1, 2), -10, 30), Quantise(Y, Fraction(1, 4), 0, 20)
ORIGINS = (Fraction(0), Fraction(0))


def steps(values: list[float], quantise: Quantise) -> list[int]:
    return [int(Fraction(value) / quantise.grid) for value in values]


def cells(bundle: Bundle, xs: list[float], ys: list[float]) -> list[int]:
    """Exact cells of these values, all of which are on their grids."""
    if isinstance(bundle, MomentBundle):
        v = steps(xs, bundle.value)
        return [sum(i - bundle.value.lower for i in v), sum(bundle.value.upper - i for i in v)]
    if isinstance(bundle, VarianceBundle):
        z, wide = [2 * i - bundle.value.lower - bundle.value.upper for i in steps(xs, bundle.value)], bundle.max_width
        return [sum(wide**2 - i * i for i in z), sum(i * i for i in z), sum(wide * i for i in z)]
    assert isinstance(bundle, CovarianceBundle)
    a = [bundle.scales[0] * (2 * i - bundle.first.lower - bundle.first.upper) for i in steps(xs, bundle.first)]
    b = [bundle.scales[1] * (2 * i - bundle.second.lower - bundle.second.upper) for i in steps(ys, bundle.second)]
    wide = bundle.max_width
    return [sum(wide**2 - i * i for i in a), sum(i * i for i in a), sum(wide * i for i in a), sum(wide * i for i in b),
            sum(i * i for i in b), sum(i * j for i, j in zip(a, b, strict=True))]  # fmt: skip


def release(bundle: Bundle, groups: list[list[int]], sigma: Fraction = Fraction(1)) -> Release:
    """As it would be stored, with large cells divided by a power of two."""
    shift = max(0, bundle.row_linf.bit_length() - 24)
    columns = tuple(np.array(column, np.int64) >> shift for column in zip(*groups, strict=True))
    noise = NoisyCells(tuple(range(len(columns))), Gaussian(max(Fraction(1), sigma / (1 << shift))))
    spec = ReleaseSpec((bundle.grid * (1 << shift),) * len(bundle.cells), (noise,), None)
    return Release(tuple((number,) for number in range(len(groups))), columns, spec)


def answer(recipe: Recipe, bundle: Bundle, group: list[int]) -> float | None:
    found = estimate_measure(recipe, release(bundle, [group]), bundle.cells)
    return found.values[0]  # type: ignore[no-any-return]


# --- what is worked out ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sample", "root", "expected"),
    [(False, False, statistics.pvariance), (True, False, statistics.variance),
     (False, True, statistics.pstdev), (True, True, statistics.stdev)],
)  # fmt: skip
def test_variances(sample: bool, root: bool, expected: Callable[[list[float]], float]) -> None:
    sums = make_variance_sums(XQ, True, "c")
    found = answer(sums.make_variance(sample, root), sums.bundle, cells(sums.bundle, XS, YS))
    assert found == pytest.approx(expected(XS))


@pytest.mark.parametrize("sums", [make_variance_sums(XQ, True, "c"), make_mean_sums(XQ, True, "c", with_rows=False)])
def test_count_sum_and_mean_from_either_bundle(sums: ArgumentSums) -> None:
    exact = cells(sums.bundle, XS, YS)
    assert answer(Linear(sums.count, BIGINT), sums.bundle, exact) == 6
    assert answer(Linear(sums.total, DOUBLE), sums.bundle, exact) == sum(XS)
    assert answer(sums.mean, sums.bundle, exact) == pytest.approx(statistics.mean(XS))


def paired(function: PairFunction, swapped: bool = False) -> tuple[Paired, Bundle]:
    sums = make_pair_product_sums(XQ, YQ, True, "p", ORIGINS)
    assert sums.moments is not None
    x, y = sums.moments
    return Paired(function, sums.count, *((x, y) if swapped else (y, x)), sums.product), sums.bundle


def test_steps_may_be_counted_from_elsewhere() -> None:
    """Means move with the centers; what is measured about the mean does not."""
    near, far = (make_pair_product_sums(XQ, YQ, True, "p", at) for at in (ORIGINS, (Fraction(1000), Fraction(-50))))
    assert near.moments is not None and far.moments is not None
    answers = []
    for sums, moments in ((near, near.moments), (far, far.moments)):
        for function in (PairFunction.AVGX, PairFunction.AVGY, PairFunction.COVAR_POP):
            recipe = Paired(function, sums.count, moments[1], moments[0], sums.product)
            answers.append(answer(recipe, sums.bundle, cells(sums.bundle, XS, YS)))
    assert answers == pytest.approx([MX, MY, SXY / 6, MX + 1000, MY - 50, SXY / 6])


MX, MY = statistics.mean(XS), statistics.mean(YS)
SXX, SYY = 6 * statistics.pvariance(XS), 6 * statistics.pvariance(YS)
SXY = 6 * statistics.covariance(XS, YS) * 5 / 6
SLOPE, INTERCEPT = statistics.linear_regression(XS, YS)
PAIRS = {
    PairFunction.COVAR_POP: SXY / 6, PairFunction.COVAR_SAMP: SXY / 5, PairFunction.SXY: SXY, PairFunction.SXX: SXX,
    PairFunction.SYY: SYY, PairFunction.CORR: statistics.correlation(XS, YS), PairFunction.COUNT: 6,
    PairFunction.R2: statistics.correlation(XS, YS) ** 2, PairFunction.SLOPE: SLOPE,
    PairFunction.INTERCEPT: INTERCEPT, PairFunction.AVGX: MX, PairFunction.AVGY: MY,
}  # fmt: skip


@pytest.mark.parametrize("function", PairFunction)
def test_functions_of_two_values(function: PairFunction) -> None:
    recipe, bundle = paired(function)
    assert answer(recipe, bundle, cells(bundle, XS, YS)) == pytest.approx(PAIRS[function])


def test_the_other_order_is_the_other_regression() -> None:
    recipe, bundle = paired(PairFunction.SLOPE, swapped=True)
    assert answer(recipe, bundle, cells(bundle, XS, YS)) == pytest.approx(statistics.linear_regression(YS, XS).slope)


def test_sums_keep_their_type() -> None:
    sums = make_total_sums(Quantise(X, Fraction(1, 100), 0, 1000), "c")
    one = release(sums.bundle, [[123456]])
    assert estimate_measure(Linear(sums.total, decimal_type(38, 2)), one, ("c",)).values == [Decimal("1234.56")]
    assert estimate_measure(Linear(sums.total, BIGINT), one, ("c",)).values == [1235]
    # What noise takes past the type is its end, and no digit of 38 is rounded away.
    assert estimate_measure(Linear(sums.total, decimal_type(5, 2)), one, ("c",)).values == [Decimal("999.99")]
    assert estimate_measure(Linear(sums.total, decimal_type(38, 34)), one, ("c",)).values == [
        Decimal("1234.56" + "0" * 32)
    ]
    wide = replace(one, cells=(np.array([2**62 - 1]),), spec=replace(one.spec, grids=(Fraction(10) ** 12,)))
    assert estimate_measure(Linear(sums.total, decimal_type(38, 2)), wide, ("c",)).values == [
        (2**62 - 1) * Decimal(10) ** 12
    ]
    assert estimate_measure(
        Linear(sums.total, BIGINT), release(sums.bundle, [[-5]]), ("c",), nonnegative=True
    ).values == [0]


# --- what is impossible ----------------------------------------------------------------------------------------------


def test_answers_stay_within_what_is_possible() -> None:
    """Noise can make a square smaller than the square of a mean, a covariance larger than both variances."""
    sums = make_variance_sums(XQ, True, "c")
    wide = 40 * 40
    below, above = [5 * wide, 0, 4 * wide], [0, 9 * wide, 0]
    assert answer(sums.make_variance(False, False), sums.bundle, below) == 0
    assert answer(sums.make_variance(False, True), sums.bundle, below) == 0
    assert answer(sums.make_variance(False, False), sums.bundle, above) == (15 - (-5)) ** 2 / 4
    assert answer(sums.mean, sums.bundle, [wide, 0, 40 * wide]) == 15
    for function, most in ((PairFunction.CORR, 1.0), (PairFunction.R2, 1.0)):
        recipe, bundle = paired(function)
        square = bundle.row_linf
        found = answer(recipe, bundle, [2 * square, square, 0, 0, square, 50 * square])
        assert found == most


def test_where_nothing_is_left_to_count_there_is_no_answer() -> None:
    sums = make_variance_sums(XQ, True, "c")
    wide = 40 * 40
    nothing, one = [-wide, 0, wide], [wide, 0, 0]
    for recipe in (sums.mean, sums.make_variance(False, False), sums.make_variance(True, True)):
        found = estimate_measure(recipe, release(sums.bundle, [nothing]), sums.bundle.cells)
        assert (found.values, found.stderr, found.low, found.high) == ([None], [None], [None], [None])
    assert answer(sums.make_variance(False, False), sums.bundle, one) == 0
    assert answer(sums.make_variance(True, False), sums.bundle, one) is None
    for function in (PairFunction.CORR, PairFunction.SLOPE, PairFunction.INTERCEPT, PairFunction.R2):
        recipe2, bundle = paired(function)
        assert answer(recipe2, bundle, [9 * bundle.row_linf, 0, 0, 0, 0, 0]) is None


# --- errors ----------------------------------------------------------------------------------------------------------


def recipes() -> list[tuple[str, Recipe, Bundle]]:
    variance, pairs = make_variance_sums(XQ, True, "c"), make_pair_product_sums(XQ, YQ, True, "p", ORIGINS)
    moments = make_mean_sums(XQ, True, "c", with_rows=False)
    assert pairs.moments is not None
    result: list[tuple[str, Recipe, Bundle]] = [("mean", moments.mean, moments.bundle)]
    for sample, root in ((False, False), (False, True), (True, False), (True, True)):
        result.append((f"variance {sample} {root}", variance.make_variance(sample, root), variance.bundle))
    result += [(f.value, Paired(f, pairs.count, *pairs.moments, pairs.product), pairs.bundle) for f in PairFunction]
    return result


@pytest.mark.parametrize(("name", "recipe", "bundle"), recipes(), ids=lambda part: part if type(part) is str else "")
def test_the_error_is_that_of_many_draws(name: str, recipe: Recipe, bundle: Bundle) -> None:
    """The delta method against simulation, where noise is small beside the cells; half of it would be seen."""
    rng, runs = np.random.default_rng(7), 4_000
    exact = np.array(cells(bundle, XS * 200, YS * 200))
    sigma = Fraction(bundle.row_linf) * 3
    groups = (exact + rng.normal(0, float(sigma), (runs, len(exact)))).round().astype(np.int64)
    found = estimate_measure(recipe, release(bundle, groups.tolist(), sigma), bundle.cells)
    spread = statistics.stdev(found.values)
    (claimed,) = estimate_measure(recipe, release(bundle, [exact.tolist()], sigma), bundle.cells).stderr
    assert claimed == pytest.approx(spread, rel=0.07)
    truth = answer(recipe, bundle, exact.tolist())
    inside = sum(low <= truth <= high for low, high in zip(found.low, found.high, strict=True))
    assert 0.93 < inside / runs < 0.97, name


def test_the_interval_of_a_deviation_holds_near_zero() -> None:
    """Where the variance drowns in noise, the root's own error says little; its interval still covers."""
    sums = make_variance_sums(XQ, True, "c")
    rng, runs = np.random.default_rng(3), 2_000
    exact = np.array(cells(sums.bundle, [2.0, 2.0, 2.5] * 20, []))
    sigma = Fraction(sums.bundle.row_linf)
    groups = (exact + rng.normal(0, float(sigma), (runs, 3))).round().astype(np.int64)
    found = estimate_measure(
        sums.make_variance(False, True), release(sums.bundle, groups.tolist(), sigma), sums.bundle.cells
    )
    truth = statistics.pstdev([2.0, 2.0, 2.5])
    inside = sum(low <= truth <= high for low, high in zip(found.low, found.high, strict=True))
    assert inside / runs > 0.93
    assert all(math.isfinite(error) for error in found.stderr)


def test_covariances_of_two_answers() -> None:
    """Of one release, by simulation; with itself it is the square of the error."""
    sums = make_variance_sums(XQ, True, "c")
    rng, runs = np.random.default_rng(11), 6_000
    exact = np.array(cells(sums.bundle, XS * 200, []))
    sigma = Fraction(sums.bundle.row_linf) * 3
    groups = (exact + rng.normal(0, float(sigma), (runs, 3))).round().astype(np.int64).tolist()
    total, mean, spread = Linear(sums.total, DOUBLE), sums.mean, sums.make_variance(False, False)
    noisy = release(sums.bundle, groups, sigma)
    draws = {r: estimate_measure(r, noisy, sums.bundle.cells).values for r in (total, mean, spread)}
    one = release(sums.bundle, [exact.tolist()], sigma)
    errors = {r: estimate_measure(r, one, sums.bundle.cells).stderr[0] for r in draws}
    for first in draws:
        for second in draws:
            (claimed,) = estimate_covariance(first, second, one, sums.bundle.cells)
            seen = statistics.covariance(draws[first], draws[second])
            assert claimed is not None
            assert abs(claimed - seen) < 0.07 * errors[first] * errors[second]
        assert estimate_covariance(first, first, one, sums.bundle.cells)[0] == pytest.approx(errors[first] ** 2)


def test_where_there_is_no_answer_there_is_no_covariance() -> None:
    sums = make_mean_sums(XQ, True, "c", with_rows=False)
    one = release(sums.bundle, [[-5, -5], [50, 50]])
    found = estimate_covariance(sums.mean, Linear(sums.count, BIGINT), one, sums.bundle.cells)
    assert found[0] is None and found[1] is not None
    evidence = Evidence(sums.total, sums.count, True)
    assert estimate_covariance(evidence, sums.mean, one, sums.bundle.cells) == [None, None]


# --- truth values ----------------------------------------------------------------------------------------------------


def test_a_truth_value_needs_witnesses_beyond_the_noise() -> None:
    """Sigma 10, so the half-width is 20 with its steps: 15 ones are noise, 60 are not; nothing counted, no answer."""
    sums = make_mean_sums(Quantise(X, Fraction(1), 0, 1), True, "c", with_rows=False)
    groups = [[15, 900], [60, 900], [900, 0], [-40, 12]]
    noisy = release(sums.bundle, groups, Fraction(10))
    found = estimate_measure(Evidence(sums.total, sums.count, True), noisy, sums.bundle.cells)
    assert found.values == [False, True, True, None]
    assert found.stderr == found.low == found.high == [None] * 4


def test_a_constant_mean_has_no_error() -> None:
    recipe = Mean((("n", Fraction(1)),), (), Fraction(7), Fraction(7), Fraction(7))
    two = Release(
        ((1,),), (np.array([5]),), ReleaseSpec((Fraction(1),), (NoisyCells((0,), Gaussian(Fraction(9))),), None)
    )
    found = estimate_measure(recipe, two, ("n",))
    assert (found.values, found.stderr) == ([7.0], [0.0])
