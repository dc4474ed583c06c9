"""A plan as text: every operator and expression is shown, and none looks like another."""

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import get_args

import pytest

from dpsql.compiler.plan import aggregate, expressions, relations
from dpsql.compiler.plan.bundles import CountBundle, CovarianceBundle, MomentBundle, SumBundle, VarianceBundle
from dpsql.compiler.plan.measures import (
    Best,
    BlockAggregate,
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
    PairFunction,
    PairValues,
    Posterior,
    Quantile,
    SharesPosterior,
    Statistic,
    SumValues,
    Truth,
    VarianceValues,
)
from dpsql.compiler.plan.show import show_domain, show_expr, show_measure, show_plan
from dpsql.schema.model import Domain, EngineTable, Files
from dpsql.types import BIGINT, BOOLEAN, DATE, DOUBLE, TEXT, TIMESTAMP, decimal_type

X, Y = expressions.Column("x", BIGINT), expressions.Column("y", DOUBLE)
ONE, TWO = expressions.Literal(1, BIGINT), expressions.Literal(2, BIGINT)
LESS = expressions.Compare("<", X, ONE)

EXPRESSIONS = {
    "x": X,
    "'it''s'": expressions.Literal("it's", TEXT),
    "null": expressions.Literal(None, TEXT),
    "true": expressions.TRUE,
    "1.50": expressions.Literal(Decimal("1.50"), decimal_type(3, 2)),
    "2024-01-02": expressions.Literal(dt.date(2024, 1, 2), DATE),
    "x < 1": LESS,
    "(x < 1) and (x is null)": expressions.And((LESS, expressions.IsNull(X))),
    "(x < 1) or (not (x < 1))": expressions.Or((LESS, expressions.Not(LESS))),
    "not (x is null)": expressions.Not(expressions.IsNull(X)),
    "x is null": expressions.IsNull(X),
    "x in (1, 2)": expressions.InList(X, (ONE, TWO)),
    "x +:wide 1": expressions.Arithmetic("+", X, ONE, BIGINT),
    "(x + 1) * 2": expressions.Arithmetic("*", expressions.Arithmetic("+", X, ONE, BIGINT, True), TWO, BIGINT, True),
    "y / 2": expressions.Arithmetic("/", Y, TWO, DOUBLE),
    "case when x < 1 then 1 else null end": expressions.Case(((LESS, ONE),), expressions.Literal(None, BIGINT), BIGINT),
    "cast(x as text)": expressions.Cast(X, TEXT),
    "abs(x)": expressions.Call("abs", (X,), BIGINT),
    "clip(x, -1/2, 3)": expressions.Clip(X, Fraction(-1, 2), Fraction(3)),
    "y in steps of 1/2, 0 to 20": expressions.Quantise(Y, Fraction(1, 2), 0, 20),
    "$h1": expressions.HoleValue("h1", Domain(BIGINT)),
    "x in $h2": expressions.InHole(X, "h2", Domain(BIGINT)),
}


@pytest.mark.parametrize(("text", "expr"), EXPRESSIONS.items(), ids=list(EXPRESSIONS))
def test_expressions_are_written_as_people_write_them(text: str, expr: expressions.Expr) -> None:
    assert show_expr(expr) == text


def test_every_kind_of_expression_is_shown() -> None:
    assert {type(expr) for expr in EXPRESSIONS.values()} == set(get_args(expressions.Expr))


MAD = Statistic((BlockAggregate("a1", "mad", X),), expressions.Column("a1", DOUBLE))
MEASURES: list[tuple[str, Measure]] = [
    (
        "dirichlet_posterior_mean:concentration=1,confidence=19/20 x",
        SharesPosterior(X, "mean", (("concentration", Fraction(1)),), Fraction(19, 20)),
    ),
    (
        "beta_posterior_low:alpha=2,confidence=9/10 x",
        ConjugatePosterior(X, "beta", "low", (("alpha", Fraction(2)),), Fraction(9, 10)),
    ),
    ("count rows", CountRows()),
    ("count x", CountValues(X)),
    ("count units", CountDistinctUnits()),
    ("count units where x < 1", CountDistinctUnits(LESS)),
    ("sum x", SumValues(X)),
    ("mean x", MeanValues(X)),
    ("count distinct x, y", DistinctValues("count", (X, Y))),
    ("variance x, of a population", VarianceValues(X, False, False)),
    ("standard deviation x, of a sample", VarianceValues(X, True, True)),
    ("regr_slope x, y", PairValues(PairFunction.SLOPE, X, Y)),
    ("every x", Truth(X, True)),
    ("any x", Truth(X, False)),
    ("discrete quantile x at 1/4, 1/2 as a list", Quantile(X, (Fraction(1, 4), Fraction(1, 2)), True, True)),
    ("quantile x at 1/2", Quantile(X, (Fraction(1, 2),), False, False)),
    ("max x", Extreme(X, True)),
    ("min x", Extreme(X, False)),
    ("mode x", Frequent(X, None, "mode")),
    ("top x, 3 at most", Frequent(X, 3, "top")),
    ("histogram x", Frequent(X, None, "histogram")),
    ("mean of 9 blocks, clipped to [0, 1]: a1 of a1 = mad(x)", Blockwise(MAD, Fraction(0), Fraction(1), 9, "mean")),
    ("best x by count rows", Best(X, CountRows(), 1, False)),
    ("best x by sum y, 3 at most", Best(X, SumValues(Y), 3, True)),
    (
        "posterior x, 4 draws as a list, prior 1, 1/2, 50 thousandths from the ends",
        Posterior(X, 4, True, 50, Fraction(1), Fraction(1, 2)),
    ),
]


def test_every_kind_of_measure_is_shown() -> None:
    assert {type(measure) for _, measure in MEASURES} == set(get_args(Measure))


@pytest.mark.parametrize(("text", "measure"), MEASURES)
def test_measures(text: str, measure: Measure) -> None:
    assert show_measure(measure) == text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("bigint", Domain(BIGINT)),
        ("bigint [0, …] not null", Domain(BIGINT, False, Fraction(0))),
        ("text of 'a', 'b'", Domain(TEXT, values=("a", "b"))),
        ("date [1970-01-02, 1970-01-11]", Domain(DATE, True, Fraction(1), Fraction(10))),
        ("timestamp [1970-01-01 00:00:01, …]", Domain(TIMESTAMP, True, Fraction(10**6))),
        ("boolean of false, true", Domain(BOOLEAN, values=(False, True))),
    ],
)
def test_domains(text: str, domain: Domain) -> None:
    assert show_domain(domain) == text


def column(name: str, **changes: object) -> relations.ScanColumn:
    return replace(relations.ScanColumn(name, name, BIGINT, Domain(BIGINT), 100, False), **changes)  # type: ignore[arg-type]


SCAN = relations.Scan(
    "t", EngineTable(("main", "t")), (column("x"),), relations.UnitId(column("id", is_id=True)), False, frozenset()
)
KEYED = relations.Project(SCAN, (relations.Named("k", X),))
KEY = relations.Field("k", BIGINT)


def test_a_bound_plan_is_a_tree() -> None:
    table = relations.Table("t", (("x", relations.Field("x", BIGINT)),), BIGINT)
    other = relations.Table("u", (("x", relations.Field("x_2", BIGINT)),), BIGINT)
    condition = expressions.Compare("=", X, expressions.Column("x_2", BIGINT))
    rows = relations.Filter(relations.Join(table, other, relations.JoinKind.LEFT, condition), LESS)
    assert show_plan(aggregate.Aggregate(rows, (relations.Named("k", X),), (CountRows(), SumValues(X)))) == (
        "Aggregate by k = x\n"
        "  - count rows\n"
        "  - sum x\n"
        "  Filter x < 1\n"
        "    Join left on x = x_2\n"
        "      Table t (unit bigint)\n"
        "      Table u (unit bigint): x as x_2"
    )


def test_a_rewritten_plan_shows_parts_weights_and_groups() -> None:
    bundles = (
        CountBundle("rows", None, 3),
        CountBundle("c1", X),
        SumBundle("c2", expressions.Quantise(X, Fraction(1), 0, 9)),
        MomentBundle("a", "b", "m", expressions.Quantise(X, Fraction(1), 0, 9)),
        MomentBundle("d", "f", None, expressions.Quantise(X, Fraction(1), 0, 9), null_as=0),
        VarianceBundle("g", "h", "i", expressions.Quantise(X, Fraction(1), 0, 9)),
        CovarianceBundle(tuple("jklopq"), *(expressions.Quantise(X, Fraction(1), 0, most) for most in (9, 3)), (2, 6)),  # type: ignore[arg-type]
    )
    sums = aggregate.Sum(aggregate.Weigh(KEYED, ("k",), 5, aggregate.Norm.L1), ("k",), bundles)
    selection = aggregate.CountUnits(KEYED, ("k",), "units", 4, False, True)
    text = show_plan(aggregate.Gather((KEY,), None, selection, (sums,)))
    assert text.splitlines()[:3] == [
        "Gather by k bigint",
        "  - selected k: by units",
        "  CountUnits units by k: units, at most 4 groups each, weighted",
    ]
    for line in (
        "    - rows: rows, divided by 2^3",
        "    - c1: rows where x is not null",
        "    - c2: x in steps of 1, 0 to 9",
        "    - a, b, m: moments of x in steps of 1, 0 to 9",
        "    - d, f: moments of x in steps of 1, 0 to 9, NULL as 0",
        "    - g, h, i: squares of x in steps of 1, 0 to 9",
        "    - j, k, l, o, p, q: products of x in steps of 1, 0 to 9 (times 2) and x in steps of 1, 0 to 3 (times 6)",
        "    Weigh each unit as at most 5 rows, l1 norm by k",
        "        Scan main.t (unit id)",
    ):
        assert line in text.splitlines()


def test_listed_groups_are_written_out_or_counted() -> None:
    few = aggregate.Gather((KEY,), aggregate.Listed((aggregate.ListedRows((KEY,), ((1,), (None,))),)), None, ())
    assert "listed k, 2 groups: 1, NULL" in show_plan(few)
    many = aggregate.Gather(
        (KEY,), aggregate.Listed((aggregate.ListedRows((KEY,), tuple((i,) for i in range(99))),)), None, ()
    )
    assert "listed k, 99 groups: 0, 1, …, 98" in show_plan(many)
    assert "listed k, 0 groups" in show_plan(
        aggregate.Gather((KEY,), aggregate.Listed((aggregate.ListedRows((KEY,), ()),)), None, ())
    )


def test_a_scan_shows_how_it_finds_the_unit_and_what_it_does_to_columns() -> None:
    hop = relations.Hop(column("visit"), Files(("a.parquet",), "parquet"), column("id"))
    odd = column("x", physical=None, null_group=True, grid=Fraction(1, 2), as_stored=True)
    scan = relations.Scan(
        "t", EngineTable(("t",)), (odd,), relations.UnitId(column("patient"), (hop,)), True, frozenset()
    )
    assert show_plan(scan).splitlines() == [
        "Scan t (unit visit -> a.parquet.id, patient, one row per unit)",
        "  - x, bigint, cast from an unknown type, NULL is a group, grid 1/2, as stored",
    ]
    assert (
        show_plan(relations.Scan("t", EngineTable(("t",)), (), None, False, frozenset()))
        == "Scan t (each row is a unit)"
    )
