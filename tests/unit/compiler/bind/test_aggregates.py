"""Aggregates as they are bound: every spelling, the type of its answer, and why some are refused."""

from fractions import Fraction

import pytest

from dpsql.compiler.bind.aggregates import measure_type
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.plan.clipped_sums import Norm
from dpsql.compiler.plan.expressions import Case, Literal
from dpsql.compiler.plan.measures import (
    Best,
    CountDistinctUnits,
    CountRows,
    CountValues,
    DistinctValues,
    Extreme,
    Frequent,
    MeanValues,
    Measure,
    PairFunction,
    PairValues,
    Posterior,
    Quantile,
    SumValues,
    Truth,
    VarianceValues,
)
from dpsql.compiler.rewrite.bound_contributions import ContributionPolicy
from dpsql.compiler.rewrite.pipeline import rewrite_plan
from dpsql.compiler.rewrite.release_plan import RuleContext
from dpsql.compiler.split.declared_range import RangeSource
from dpsql.compiler.split.split import split_query
from dpsql.errors import Error, InvalidParameter, TypeMismatch, UnboundedValues, Unsupported
from dpsql.schema.model import Resolved
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, TEXT, TIMESTAMP, decimal_type


def bound(aggregate: str, resolved: Resolved) -> Measure:
    (release,) = split_query(
        parse_query(f"SELECT {aggregate} FROM visits"), resolved.schema, ranges=RangeSource.RELEASE
    ).releases
    (measure,) = release.aggregate.measures
    return measure


@pytest.mark.parametrize(
    ("aggregate", "kind", "type_"),
    [
        ("COUNT(*)", CountRows, BIGINT),
        ("COUNT(cost)", CountValues, BIGINT),
        ("COUNT_IF(cost > 3)", CountValues, BIGINT),
        ("COUNTIF(cost > 3)", CountValues, BIGINT),
        ("COUNT(DISTINCT patient_id)", CountDistinctUnits, BIGINT),
        ("COUNT(DISTINCT ward)", DistinctValues, BIGINT),
        ("COUNT(DISTINCT ward, kind)", DistinctValues, BIGINT),
        ("COUNT(DISTINCT (ward, kind))", DistinctValues, BIGINT),
        ("APPROX_COUNT_DISTINCT(ward)", DistinctValues, BIGINT),
        ("SUM(nights)", SumValues, BIGINT),
        ("SUM(paid)", SumValues, decimal_type(38, 2)),
        ("SUM(cost)", SumValues, DOUBLE),
        ("AVG(nights)", MeanValues, DOUBLE),
        ("MEAN(nights)", MeanValues, DOUBLE),
        ("SUM(DISTINCT nights)", DistinctValues, BIGINT),
        ("AVG(DISTINCT nights)", DistinctValues, DOUBLE),
        ("VAR_POP(nights)", VarianceValues, DOUBLE),
        ("VARIANCE(cost)", VarianceValues, DOUBLE),
        ("STDDEV(cost)", VarianceValues, DOUBLE),
        ("CORR(cost, nights)", PairValues, DOUBLE),
        ("REGR_COUNT(cost, nights)", PairValues, BIGINT),
        ("BOOL_AND(cost > 3)", Truth, BOOLEAN),
        ("EVERY(cost > 3)", Truth, BOOLEAN),
        ("LOGICAL_OR(cost > 3)", Truth, BOOLEAN),
        ("MEDIAN(cost)", Quantile, DOUBLE),
        ("MIN(nights)", Extreme, None),
        ("MAX(at)", Extreme, TIMESTAMP),
        ("MODE(ward)", Frequent, TEXT),
        ("MODE() WITHIN GROUP (ORDER BY ward)", Frequent, TEXT),
        ("HISTOGRAM(ward)", Frequent, TEXT),
        ("APPROX_TOP_K(ward, 3)", Frequent, TEXT),
        ("PRIVATE_ARGMAX(ward, COUNT(*))", Best, TEXT),
        ("PRIVATE_ARGMAX(ward, cost) FILTER (WHERE cost > 1)", Best, TEXT),
        ("PRIVATE_TOP_K(ward, COUNT(*) FILTER (WHERE cost > 1), 3)", Best, TEXT),
        ("POSTERIOR_SAMPLE(cost > 100)", Posterior, DOUBLE),
        ("POSTERIOR_SAMPLE(cost > 100, draws := 3)", Posterior, DOUBLE),
    ],
)
def test_each_spelling_has_its_measure_and_type(aggregate: str, kind: type, type_: object, clinic: Resolved) -> None:
    measure = bound(aggregate, clinic)
    assert type(measure) is kind
    assert type_ is None or measure_type(measure) == type_


@pytest.mark.parametrize(
    ("name", "sample", "root"),
    [("VAR_POP", False, False), ("VAR_SAMP", True, False), ("VARIANCE", True, False),
     ("STDDEV_POP", False, True), ("STDDEV_SAMP", True, True), ("STDDEV", True, True)],
)  # fmt: skip
def test_variances_are_of_a_sample_or_a_population(name: str, sample: bool, root: bool, clinic: Resolved) -> None:
    measure = bound(f"{name}(cost)", clinic)
    assert isinstance(measure, VarianceValues) and (measure.sample, measure.root) == (sample, root)


@pytest.mark.parametrize("function", PairFunction)
def test_functions_of_two_values_take_y_first(function: PairFunction, clinic: Resolved) -> None:
    measure = bound(f"{function.value}(cost, nights)", clinic)
    assert isinstance(measure, PairValues) and measure.function is function
    assert (measure.y.origin, measure.x.origin) == ("visits.cost", "visits.nights")  # type: ignore[union-attr]


HALF, TENTH = Fraction(1, 2), Fraction(1, 10)


@pytest.mark.parametrize(
    ("aggregate", "fractions", "discrete", "container"),
    [
        ("MEDIAN(cost)", (HALF,), False, None),
        ("PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY cost)", (TENTH,), False, None),
        ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY cost DESC)", (TENTH,), False, None),
        ("PERCENTILE_DISC(ARRAY[0.1, 0.5]) WITHIN GROUP (ORDER BY cost)", (TENTH, HALF), True, "list"),
        ("QUANTILE_CONT(cost, 0.1)", (TENTH,), False, None),
        ("QUANTILE_DISC(cost, [0.5, 0.1])", (HALF, TENTH), True, "list"),
        ("QUANTILE(cost, 0.5)", (HALF,), True, None),
        ("APPROX_QUANTILE(cost, 0.5)", (HALF,), True, None),
        ("QUANTILE_CONT(cost, [0])", (Fraction(0),), False, "list"),
    ],
)
def test_quantiles(
    aggregate: str, fractions: tuple[Fraction, ...], discrete: bool, container: str | None, clinic: Resolved
) -> None:
    measure = bound(aggregate, clinic)
    assert isinstance(measure, Quantile)
    assert (measure.fractions, measure.discrete, measure.container) == (fractions, discrete, container)


def test_lists_and_maps_are_distinguished_from_values(clinic: Resolved) -> None:
    containers = {a: getattr(bound(a, clinic), "container", None) for a in
                  ("HISTOGRAM(ward)", "APPROX_TOP_K(ward, 3)", "MODE(ward)", "MAX(cost)", "COUNT(*)")}  # fmt: skip
    assert list(containers.values()) == ["map", "list", None, None, None]


@pytest.mark.parametrize(
    "aggregate",
    ["COUNT(*)", "COUNT(cost)", "SUM(cost)", "AVG(cost)", "SUM(DISTINCT cost)", "COUNT(DISTINCT (ward, kind))",
     "STDDEV(cost)", "CORR(cost, nights)", "BOOL_OR(nights > 3)", "MEDIAN(cost)", "MIN(cost)", "MODE(ward)",
     "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost)", "HISTOGRAM(ward)", "QUANTILE_CONT(cost, 0.5)"],
)  # fmt: skip
def test_a_filter_makes_null_of_other_rows(aggregate: str, clinic: Resolved) -> None:
    measure = bound(f"{aggregate} FILTER (WHERE nights > 2)", clinic)
    if isinstance(measure, DistinctValues):
        arg = measure.args[0]
    elif isinstance(measure, PairValues):
        arg = measure.y
    else:
        arg = measure.arg  # type: ignore[union-attr]
    assert isinstance(arg, Case) and isinstance(arg.otherwise, Literal) and arg.otherwise.value is None


def test_a_filter_of_units_is_kept_as_a_condition(clinic: Resolved) -> None:
    measure = bound("COUNT(DISTINCT patient_id) FILTER (WHERE nights > 2)", clinic)
    assert isinstance(measure, CountDistinctUnits) and measure.where is not None and measure.where.type == BOOLEAN


@pytest.mark.parametrize(
    ("aggregate", "error", "message", "hint"),
    [
        ("ANY_VALUE(ward)", Unsupported, "would show the value of one row", "MODE"),
        ("ARBITRARY(ward)", Unsupported, "would show the value of one row", "MODE"),
        ("FIRST(ward)", Unsupported, "would show the value of one row", "MIN"),
        ("ARG_MAX(ward, cost)", Unsupported, "would show the value of one row", "MODE"),
        ("STRING_AGG(ward, ',')", Unsupported, "would show the values of all rows", "GROUP BY"),
        ("ARRAY_AGG(ward)", Unsupported, "would show the values of all rows", "HISTOGRAM"),
        ("LIST(ward)", Unsupported, "would show the values of all rows", "HISTOGRAM"),
        ("LISTAGG(ward)", Unsupported, "would show the values of all rows", "HISTOGRAM"),
        ("SKEWNESS(cost)", Unsupported, "is not supported yet", "BLOCKWISE(skewness(cost), 0, 100)"),
        ("BIT_AND(nights)", Unsupported, "is not supported yet", "BOOL_AND"),
        ("MIN(ward)", Unsupported, "is for numbers, dates and timestamps", "MODE(ward)"),
        ("MEDIAN(ward)", Unsupported, "is for numbers, dates and timestamps", "MODE(ward)"),
        ("MAX(cost > 3)", Unsupported, "is for numbers, dates and timestamps", "BOOL_OR"),
        ("PERCENTILE_CONT(0.5)", Unsupported, "needs WITHIN GROUP", "WITHIN GROUP"),
        ("SUM(cost) WITHIN GROUP (ORDER BY cost)", Unsupported, "takes no WITHIN GROUP", "Leave"),
        ("HISTOGRAM(ward, 3)", Unsupported, "takes one argument", "HISTOGRAM(ward)"),
        ("QUANTILE_CONT(cost)", Unsupported, "takes two arguments", "QUANTILE_CONT(cost, 0.5)"),
        ("QUANTILE_CONT(cost, 1.5)", InvalidParameter, "between 0 and 1", "0.9"),
        ("QUANTILE_CONT(cost, cost)", InvalidParameter, "between 0 and 1", "0.9"),
        ("APPROX_TOP_K(ward, 0)", InvalidParameter, "between 1 and 1000", None),
        ("STDDEV(DISTINCT cost)", Unsupported, "DISTINCT within", "Leave"),
        ("SUM(cost ORDER BY cost)", Unsupported, "ORDER BY within", "Leave"),
        ("MODE(DISTINCT ward)", Unsupported, "DISTINCT within", "Leave"),
        ("STDDEV(ward)", TypeMismatch, "needs numbers, not text", None),
        ("CORR(cost, ward)", TypeMismatch, "needs numbers, not text", None),
        ("SUM(DISTINCT ward)", TypeMismatch, "needs numbers, not text", None),
    ],
)
def test_refusals_say_why_and_what_else(
    aggregate: str, error: type[Error], message: str, hint: str | None, clinic: Resolved
) -> None:
    with pytest.raises(error) as refused:
        bound(aggregate, clinic)
    assert message in refused.value.message
    assert hint is None or hint in (refused.value.hint or "")
    assert refused.value.span is not None


@pytest.mark.parametrize(
    ("aggregate", "message", "hint"),
    [
        ("SUM(score)", 'column "visits.score" has no bounds, and SUM needs some', "SUM(CLIP(score, 0, 100))"),
        ("STDDEV(score)", 'column "visits.score" has no bounds', "STDDEV_SAMP(CLIP(score, 0, 100))"),
        ("CORR(cost, score)", 'column "visits.score" has no bounds', "CORR(cost, CLIP(score, 0, 100))"),
        ("AVG(DISTINCT score)", 'column "visits.score" has no bounds', "AVG(DISTINCT CLIP(score, 0, 100))"),
        ("SUM(score + cost)", 'column "visits.score" has no bounds', "SUM(CLIP(score + cost, 0, 100))"),
        ("SUM(cost / nights)", "the values of SUM have no bounds", "SUM(CLIP(cost / nights, 0, 100))"),
    ],
)
def test_the_column_without_bounds_is_named(aggregate: str, message: str, hint: str, clinic: Resolved) -> None:
    (release,) = split_query(parse_query(f"SELECT {aggregate} FROM visits"), clinic.schema).releases
    with pytest.raises(UnboundedValues) as refused:
        rewrite_plan(release.aggregate, RuleContext(clinic, ContributionPolicy(8, 4, Norm.L2)))
    assert message in refused.value.message and hint in (refused.value.hint or "")
