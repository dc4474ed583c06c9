"""What a session tells of units that were scaled down: beside the noise, and where it is unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpsql.compiler.clipping import find_scaled_cells
from dpsql.compiler.compile import compile_query
from dpsql.interfaces.cli.query import explanation_to_json
from dpsql.interfaces.pgwire.backend_session.notices import format_error_bars
from dpsql.interfaces.pgwire.protocol.extension import StatementMetadata, encode_answer_notices
from dpsql.privacy.noise import Laplace
from dpsql.privacy.norm_choice import NormBins, NormHistogram
from dpsql.privacy.release import Release
from dpsql.session.dataset.dataset import Dataset, open_dataset
from dpsql.session.postprocess.release_tables import build_released_tables
from dpsql.session.session import Session
from tests.support.store import open_store, write_store

SCHEMA = """
privacy:
  unit: sales.buyer
  budget: {epsilon: 1000, delta: 0.1}
  query: {epsilon: 1, delta: 1e-6}
  contributions: auto
tables:
  sales:
    unit: buyer
    columns:
      buyer: {type: bigint}
      even: {type: boolean}
      amount: {type: double}
      cost: {type: double, bounds: [0, 50]}
"""
UNKNOWN_ROWS = "how much contributions.rows = 5 scales down is unknown"
UNKNOWN_BOUNDS = "how much declared bounds clip is unknown"
# A few buyers have ten times the rows of the others.
DATA = (
    "CREATE TABLE sales AS "
    "SELECT CASE WHEN i < 40000 THEN i % 5000 ELSE 5000 + i % 100 END AS buyer, i % 2 = 0 AS even, "
    "(i % 100)::DOUBLE AS amount, (i % 60)::DOUBLE AS cost FROM range(48000) t(i)"
)


@pytest.fixture
def dataset(tmp_path: Path) -> Iterator[Dataset]:
    with open_store(tmp_path, SCHEMA, DATA) as dataset:
        yield dataset


@pytest.fixture()
def session(dataset: Dataset) -> Session:
    return Session(dataset)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_clipping_is_a_part_of_the_bar_of_its_own(session: Session, noise: str) -> None:
    session.set("noise", noise)
    sql = "SELECT COUNT(*), SUM(amount), AVG(amount), SUM(amount) / COUNT(*), COUNT(*) * 2, -COUNT(*) FROM sales"
    answer = session.execute(sql)
    count, *_, twice, negative = answer.errors[0]
    for bar, value in zip(answer.errors[0], answer.rows[0], strict=True):
        assert bar is not None and bar.clipped is not None and bar.clipped >= 0
        assert bar.low <= value - bar.stderr < value + bar.stderr <= bar.high
    assert count is not None and twice is not None and negative is not None and count.clipped and twice.clipped
    assert twice.clipped == pytest.approx(2 * count.clipped) and negative.clipped == pytest.approx(count.clipped)
    # What is lost is missing from a count: the truth lies above, and below what is negated.
    value = answer.rows[0][0]
    assert count.high - value == pytest.approx(value - count.low + count.clipped, abs=1)
    assert -value - negative.low == pytest.approx(negative.high + value + negative.clipped, abs=1)


def test_a_difference_may_be_off_by_what_both_may_have_lost(session: Session) -> None:
    sql = "SELECT SUM(amount), COUNT(*), SUM(amount) - COUNT(*) FROM sales"
    total, count, difference = session.execute(sql).errors[0]
    assert total is not None and count is not None and difference is not None
    assert total.clipped is not None and count.clipped is not None and difference.clipped is not None
    most = total.clipped + count.clipped
    assert max(total.clipped, count.clipped) <= difference.clipped * (1 + 1e-9) <= most * (1 + 1e-6)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_groups_of_as_many_rows_lose_as_much_with_values_and_without(session: Session, noise: str) -> None:
    """COUNT(*) is a sum of two cells here: in odd rows all that is lost is of rows without a value."""
    session.set("noise", noise)
    sql = "SELECT even, COUNT(*), COUNT(CASE WHEN even THEN amount END) FROM sales GROUP BY even"
    answer = session.execute(sql)
    (odd, _), (even, of_values) = [[bar for bar in bars if bar is not None] for bars in answer.errors]
    assert odd.clipped and even.clipped and of_values.clipped
    assert odd.clipped == pytest.approx(even.clipped, rel=0.2)


def test_sql_shows_it_too(session: Session) -> None:
    answer = session.execute("SELECT COUNT(*), DP_CLIPPED(COUNT(*)) AS clipped FROM sales")
    bar = answer.errors[0][0]
    assert bar is not None and answer.rows[0][1] == bar.clipped


def test_nothing_is_clipped_where_the_plan_scales_nothing(session: Session) -> None:
    answer = session.execute("SELECT COUNT(DISTINCT buyer) FROM sales")
    assert answer.errors[0][0] is not None and answer.errors[0][0].clipped == 0


def test_what_is_unknown_is_said_once_in_a_session(dataset: Dataset, session: Session) -> None:
    session.set("contributions.rows", "5")
    first, second = (session.execute(f"SELECT COUNT(*) FROM sales WHERE {where}") for where in ("even", "NOT even"))
    assert UNKNOWN_ROWS in first.notices and UNKNOWN_ROWS not in second.notices
    assert first.errors[0][0] is not None and first.errors[0][0].clipped is None
    total = session.execute("SELECT SUM(cost) FROM sales")
    assert UNKNOWN_BOUNDS in total.notices and UNKNOWN_ROWS not in total.notices
    other = Session(dataset)
    other.set("contributions.rows", "5")
    assert UNKNOWN_ROWS in other.execute("SELECT COUNT(*) FROM sales WHERE even").notices
    for _ in range(2):
        assert UNKNOWN_ROWS in session.explain("SELECT COUNT(*) FROM sales").notices


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(DISTINCT even) FROM sales",
        "SELECT even, MAX(cost) FROM sales GROUP BY even",
        "SELECT even, MAX(cost) FROM sales GROUP BY ROLLUP (even)",
        "SELECT even, VAR_POP(cost) FROM sales GROUP BY GROUPING SETS ((even))",
    ],
)
def test_no_cap_is_said_to_scale_down_where_none_is_declared(session: Session, sql: str) -> None:
    result = session.execute(sql)
    assert not any("contributions" in notice for notice in result.notices)


def test_a_column_without_bounds_has_none_that_clip(session: Session) -> None:
    assert UNKNOWN_BOUNDS not in session.execute("SELECT SUM(amount) FROM sales").notices


def test_describe_says_which_caps_hold(session: Session) -> None:
    assert any("contributions.rows is chosen for each answer" in n for n in session.execute("DESCRIBE sales").notices)
    session.set("contributions.rows", "5")
    described = session.execute("DESCRIBE sales").notices
    assert any(notice.startswith("contributions.rows is 5:") for notice in described)


def test_what_max_error_needs_is_known_once_the_norm_is(session: Session) -> None:
    session.set("max_error", "200")
    sql = "SELECT COUNT(*) FROM sales"
    before = session.explain(sql)
    text = str(before)
    assert before.price_open and "at most epsilon" not in text and "and then what max_error needs" in text
    assert explanation_to_json(before)["price_open"] and "you could ask" not in text
    session.execute(sql)
    after = session.explain(sql)
    assert not after.price_open and after.expected[0] is not None


def test_before_the_norm_is_chosen_declared_caps_are_shown(session: Session) -> None:
    bounded, unbounded = (session.explain(f"SELECT SUM({column}) FROM sales") for column in ("cost", "amount"))
    assert bounded.releases[0].caps == ("cost of a row counts within 0 and 50",)
    assert "caps until then: cost of a row counts within 0 and 50" in str(bounded)
    assert "caps until then: none is declared" in str(unbounded)


def test_the_wire_carries_it_in_a_field_that_older_clients_do_not_read(session: Session) -> None:
    answer = session.execute("SELECT even, COUNT(*) AS n FROM sales GROUP BY even ORDER BY even")
    told = StatementMetadata()
    for detail in encode_answer_notices(answer, session.charged, None):
        told.add_notice(detail)
    assert [told.error_bars_of(row) for row in range(len(answer.rows))] == answer.errors
    assert any(bar is not None and bar.clipped for bar in told.bars.values())
    before = [(None, None if bar is None else replace(bar, clipped=None)) for _, bar in answer.errors]
    assert not any(
        '"clipped"' in d for d in encode_answer_notices(replace(answer, errors=before), session.charged, None)
    )


def test_people_at_other_clients_read_how_much_of_the_bar_is_for_clipping(session: Session) -> None:
    (line,) = format_error_bars(session.execute("SELECT COUNT(*) AS n FROM sales"))
    assert line.startswith("95 % intervals: n ± ") and line.endswith(" for clipping)")


def test_neighbors_with_the_same_released_histogram_get_the_same_words(dataset: Dataset, tmp_path: Path) -> None:
    """Whether a unit really is beyond the norm is an exact fact: what is told does not depend on it."""
    folder = tmp_path / "other"
    folder.mkdir()
    other = open_dataset(write_store(folder, SCHEMA, f"{DATA} UNION ALL SELECT 9999, TRUE, 1, 1 FROM range(5000)"))
    sql, told = "SELECT COUNT(*) FROM sales", list[object]()
    for each in (dataset, other):
        settings = Session(each).settings.statement
        (norm,) = compile_query(sql, each.resolved, settings).norm_steps
        assert isinstance(norm.bins, NormBins)
        counts = [900, 5000, 5000, 5000, 90, *(0 for _ in range(norm.bins.count - 5))]
        histogram = NormHistogram(norm.bins, tuple(counts), Laplace(Fraction(5)))
        compiled = compile_query(sql, each.resolved, settings, norms={norm.step.plan_hash: histogram})
        (step,) = compiled.steps
        release = Release(((),), (np.array([1000 * 10**6]),), step.calibrated.spec)
        (table,) = build_released_tables(compiled, {0: release}, nonnegative=False)
        told.append((compiled.notices, compiled.unknown_clipping, table.rows, find_scaled_cells(step)))
    other.close()
    assert told[0] == told[1] and "COUNT(*) was scaled down" in str(told[0])
