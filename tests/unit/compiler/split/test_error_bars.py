"""Error bars of arithmetic: the SQL that is written out agrees with numeric derivatives."""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import duckdb
import pytest
from sqlglot import exp

from dpsql.compiler.bind.aggregates import is_aggregate
from dpsql.compiler.parse.dialect import AnalystDialect
from dpsql.compiler.split.error_bars import ErrorBarExpressions, NoErrorBar, propagate_error

NAMES = ("m0", "m1", "m2")
COVARIANCE = [[4.0, 1.0, -0.5], [1.0, 9.0, 2.0], [-0.5, 2.0, 1.0]]
FACTOR = 1.96
CLIPPING = [("0.25", "0.25"), ("0.5", "0"), ("0.125", "-0.125")]
"""How far clipping may have moved each: the first up only, the second both ways, the third down only."""


def over_columns(node: exp.Expr) -> exp.Expr:
    return node.copy().transform(lambda n: exp.column(n.this.name) if is_aggregate(n) else n)


@dataclass(frozen=True)
class Given:
    covariances: list[list[float]]
    value: Callable[[exp.Expr], exp.Expr] = over_columns

    def find_measure(self, node: exp.Expr) -> int | None:
        """SUM(m0) stands for measure 0, and so on; MIN has no error."""
        return NAMES.index(node.this.name) if isinstance(node, exp.Sum) else None

    def is_constant(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and node.name == "key"

    def covariance_of(self, one: int, other: int) -> exp.Expr:
        return exp.Literal.number(str(self.covariances[one][other]))

    def interval_factor(self) -> exp.Expr:
        return exp.Literal.number(str(FACTOR))

    def clipping_of(self, measure: int) -> tuple[exp.Expr, exp.Expr]:
        half, mid = CLIPPING[measure]
        return exp.Literal.number(half), exp.Literal.number(mid)


COLUMNS = Given(COVARIANCE)


def parsed(text: str) -> exp.Expr:
    return AnalystDialect().parse(f"SELECT {text}")[0].expressions[0]


def run(items: list[exp.Expr], values: list[float]) -> tuple[float | None, ...]:
    texts = ", ".join(item.sql(dialect="duckdb") for item in items)
    names = ", ".join([*NAMES, "key"])
    inner = ", ".join("?::DOUBLE" for _ in (*NAMES, "key"))
    with duckdb.connect() as db:  # the shared connection would keep the result open for whoever comes next
        row = db.execute(f"SELECT {texts} FROM (VALUES ({inner})) t({names})", [*values, 3.0]).fetchone()
    assert row is not None
    return row


def numeric_gradient(text: str, values: list[float]) -> list[float]:
    """Derivatives by differences."""
    node = over_columns(parsed(text))
    gradient = []
    for place in range(len(NAMES)):
        step = 1e-4 * max(1.0, abs(values[place]))
        sides = []
        for sign in (1, -1):
            moved = [v + sign * step * (at == place) for at, v in enumerate(values)]
            sides.append(run([node], moved)[0])
        gradient.append((sides[0] - sides[1]) / (2 * step))
    return gradient


def numeric(text: str, values: list[float]) -> float:
    """The delta method."""
    gradient, both = numeric_gradient(text, values), range(len(NAMES))
    return math.sqrt(sum(gradient[i] * gradient[j] * COVARIANCE[i][j] for i in both for j in both))


SMOOTH = [
    "SUM(m0) + SUM(m1)",
    "SUM(m0) - SUM(m1)",
    "-SUM(m0)",
    "SUM(m0) - SUM(m0)",
    "2 * SUM(m0) + 1",
    "SUM(m0) * SUM(m1)",
    "SUM(m0) / SUM(m1)",
    "100.0 * SUM(m0) / NULLIF(SUM(m1), 0)",
    "SUM(m0) / (SUM(m0) + SUM(m1))",
    "ABS(SUM(m0) - SUM(m2))",
    "COALESCE(SUM(m0) / SUM(m1), 0)",
    "SUM(m0)::double precision / SUM(m1)",
    "(SUM(m0) + SUM(m1)) * (SUM(m1) - SUM(m2))",
    "SQRT(ABS(SUM(m0)))",
    "SUM(m0) * key + SUM(m1) / key",
    "SUM(m0) * SUM(m0) * SUM(m1) / (1 + SUM(m2))",
]


@pytest.mark.parametrize("text", SMOOTH)
def test_bars_agree_with_numeric_derivatives(text: str) -> None:
    chance = random.Random(text)
    bars = propagate_error(parsed(text), COLUMNS)
    assert isinstance(bars, ErrorBarExpressions)
    for _ in range(2):
        values = [chance.choice((-1, 1)) * chance.uniform(2, 50) for _ in NAMES]
        value = run([over_columns(parsed(text))], values)[0]
        stderr, low, high, clipped = (float(bar or 0) for bar in run(list(bars.columns), values))
        assert stderr == pytest.approx(numeric(text, values), rel=1e-3, abs=1e-6)
        reach = [
            sum(max(g * (float(mid) - float(half)) * side, g * (float(mid) + float(half)) * side)
                for g, (half, mid) in zip(numeric_gradient(text, values), CLIPPING, strict=True))
            for side in (-1, 1)
        ]  # fmt: skip
        assert clipped == pytest.approx(max(reach), rel=1e-3, abs=1e-6)
        assert low == pytest.approx(value - FACTOR * stderr - reach[0], rel=1e-3, abs=1e-6)
        assert high == pytest.approx(value + FACTOR * stderr + reach[1], rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("text", ["ROUND(SUM(m0), 1)", "CEIL(SUM(m0))", "SUM(m0)::bigint", "ROUND(SUM(m0)::real, 2)"])
def test_rounding_leaves_the_bar_as_it_was(text: str) -> None:
    bars = propagate_error(parsed(text), COLUMNS)
    assert isinstance(bars, ErrorBarExpressions)
    assert run([bars.stderr], [10.5, 1, 1])[0] == pytest.approx(2.0)


@pytest.mark.parametrize("text", ["SUM(m0) / SUM(m1)", "NULLIF(SUM(m1), 0)", "SUM(m0) / NULLIF(SUM(m1), 0)"])
def test_no_answer_has_no_bar(text: str) -> None:
    bars = propagate_error(parsed(text), COLUMNS)
    assert isinstance(bars, ErrorBarExpressions)
    stderr = run([bars.stderr], [1, 0, 1])[0]
    assert stderr is None


def test_clipping_that_is_not_known_is_not_in_the_bar() -> None:
    class Unknown(Given):
        def clipping_of(self, measure: int) -> tuple[exp.Expr, exp.Expr]:
            return (exp.Null(), exp.Null()) if measure == 1 else super().clipping_of(measure)

    bars = propagate_error(parsed("SUM(m0) + SUM(m1)"), Unknown(COVARIANCE))
    assert isinstance(bars, ErrorBarExpressions)
    stderr, low, high, clipped = run(list(bars.columns), [10, 20, 1])
    assert clipped is None and (high - low) / 2 == pytest.approx(FACTOR * stderr)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("1 + 2", "1 + 2"), ("key", "key"), ("SUM(m0) || 'a'", "SUM(m0) || 'a'"), ("MIN(m0) + 1", "MIN(m0)"),
        ("RANK() OVER (ORDER BY SUM(m0))", "RANK() OVER (ORDER BY SUM(m0))"),
        ("SUM(m0)::text", "CAST(SUM(m0) AS TEXT)"),
        ("SUM(m0) + other", "other"), ("COALESCE(SUM(m0), SUM(m1))", "COALESCE(SUM(m0), SUM(m1))"),
        ("CASE WHEN SUM(m0) > 1 THEN 1 END", "CASE WHEN SUM(m0) > 1 THEN 1 END"), ("SUM(m0) + 'a'", "'a'"),
    ],
)  # fmt: skip
def test_what_has_no_derivative_is_named(text: str, part: str) -> None:
    result = propagate_error(parsed(text), COLUMNS)
    assert isinstance(result, NoErrorBar) and result.node.sql(dialect="postgres") == part


def test_a_variance_that_rounds_below_zero_is_no_error() -> None:
    bars = propagate_error(parsed("SUM(m0) - SUM(m1)"), Given([[1, 1.0000001], [1.0000001, 1]]))
    assert isinstance(bars, ErrorBarExpressions)
    assert run([bars.stderr], [1, 1, 1])[0] == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("factors", [20, 25, 1000])
def test_bars_that_would_be_larger_than_the_statement_are_left_out_in_time(factors: int) -> None:
    node = parsed(" * ".join(f"(SUM(m{n % 3}) + {n})" for n in range(factors)))
    start = time.process_time()
    assert isinstance(propagate_error(node, COLUMNS), NoErrorBar)
    assert time.process_time() - start < 1
