"""MEDIAN by its local sensitivity, from SQL to what is charged and told."""

from __future__ import annotations

from fractions import Fraction as F
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.compiler.calibrate.local_sensitivity import neighbor_reach
from dpsql.compiler.compile import Compiled, compile_query
from dpsql.compiler.plan.measures import Local, MedianBy, Quantile
from dpsql.compiler.settings import change_setting, default_settings
from dpsql.errors import InvalidParameter, Unsupported
from dpsql.ledger.loss_checker.checker import UnreadableRecord, covers_loss, recompute_loss
from dpsql.privacy.audit_record import write_release_record
from dpsql.privacy.exponential import MEDIAN, ExtremeTarget, Pick, UnitContribution
from dpsql.privacy.loss import epsilon_to_rho
from dpsql.privacy.median import (
    BlockReach,
    ProposeTestRelease,
    SmoothMedian,
    calibrate_propose_test_release,
    calibrate_smooth_median,
)
from dpsql.schema.model import Resolved
from dpsql.session.explain import explain
from tests.support.loss_checker import agree

PATIENTS = "SELECT MEDIAN(birth_year) FROM patients"
PER_UNIT = "SELECT MEDIAN(v) FROM (SELECT patient_id, AVG(cost) AS v FROM visits GROUP BY patient_id) AS t"
HALF = "SELECT QUANTILE_CONT(birth_year, 0.5) FROM patients"
LOCAL = ("smooth", "ptr")


def compiled(sql: str, resolved: Resolved, **settings: str) -> Compiled:
    chosen = default_settings(resolved.schema.privacy)
    for name, value in settings.items():
        chosen = change_setting(chosen, resolved.schema.privacy, name, value)
    return compile_query(sql, resolved, chosen.statement)


def pick_of(sql: str, resolved: Resolved, **settings: str) -> SmoothMedian | ProposeTestRelease:
    (step,) = compiled(sql, resolved, **settings).steps
    assert step.calibrated.choice is not None
    (pick,) = step.calibrated.choice.picks
    assert isinstance(pick.mechanism, SmoothMedian | ProposeTestRelease)
    return pick.mechanism


# --- what is asked ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", LOCAL)
@pytest.mark.parametrize("sql", [PATIENTS, PER_UNIT, HALF])
def test_one_value_for_each_unit_is_answered(by: str, sql: str, clinic: Resolved) -> None:
    assert pick_of(sql, clinic, mechanism=by).reached == BlockReach(1, 1)


@pytest.mark.parametrize("by", LOCAL)
def test_several_rows_of_a_unit_are_refused(by: str, clinic: Resolved) -> None:
    with pytest.raises(Unsupported, match="one value for each privacy unit") as refused:
        compiled("SELECT MEDIAN(cost) FROM visits", clinic, mechanism=by)
    assert "GROUP BY unit" in str(refused.value.hint)


@pytest.mark.parametrize("asked", ["MAX({})", "QUANTILE_CONT({}, 0.9)", "QUANTILE_CONT({}, [0.5])"])
def test_other_quantiles_are_chosen_as_ever(asked: str, clinic: Resolved) -> None:
    sql = f"SELECT {asked.format('birth_year')} FROM patients WHERE birth_year > 1950"
    assert compiled(sql, clinic, mechanism="smooth").steps == compiled(sql, clinic).steps


def test_each_mechanism_is_another_question(clinic: Resolved) -> None:
    settings = [{}, {"mechanism": "smooth"}, {"mechanism": "ptr"}, {"mechanism": "ptr", "proposal": "3"}]
    assert len({compiled(PATIENTS, clinic, **one).steps[0].plan_hash for one in settings}) == 4


def test_options_of_one_statement(clinic: Resolved) -> None:
    options = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (mechanism = 'ptr', proposal = 5) "
    own = pick_of(PATIENTS.replace("SELECT ", options), clinic)
    assert own == pick_of(PATIENTS, clinic, mechanism="ptr", proposal="5")


@pytest.mark.parametrize(("name", "value"), [("mechanism", "laplace"), ("proposal", "0"), ("proposal", "-1")])
def test_settings_out_of_range(name: str, value: str, clinic: Resolved) -> None:
    with pytest.raises(InvalidParameter):
        compiled(PATIENTS, clinic, **{name: value})


def test_a_proposal_is_less_than_the_range(clinic: Resolved) -> None:
    with pytest.raises(InvalidParameter, match="less than the range"):
        compiled(PATIENTS, clinic, mechanism="ptr", proposal="130")
    rounded, whole = (pick_of(PATIENTS, clinic, mechanism="ptr", proposal=given) for given in ("2.5", "3"))
    assert rounded == whole


@pytest.mark.parametrize("by", LOCAL)
def test_a_delta_is_needed(by: str, clinic: Resolved) -> None:
    with pytest.raises(InvalidParameter, match="delta above 0"):
        compiled(PATIENTS, clinic, mechanism=by, delta="0")


# --- what is charged -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", LOCAL)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize(("schema", "sql", "blocks"), [
    ("schema", PATIENTS, 1),
    ("schema", "SELECT sex, MEDIAN(birth_year) FROM patients GROUP BY sex", 1),
    ("survey", "SELECT MEDIAN(age) FROM people", 1),
    ("survey", "SELECT region, MEDIAN(age) FROM people GROUP BY region", 4),
])  # fmt: skip
def test_the_charge_is_within_what_was_requested_and_the_checker_finds_it(
    by: str, noise: str, schema: str, sql: str, blocks: int, resolved: object
) -> None:
    known = resolved(schema)  # type: ignore[operator]
    statement = compiled(sql, known, mechanism=by, noise=noise, epsilon="1", delta="1e-7")
    step = statement.steps[-1]
    (pick,) = step.calibrated.choice.picks if step.calibrated.choice is not None else ()
    assert isinstance(pick.mechanism, SmoothMedian | ProposeTestRelease) and pick.mechanism.reached.blocks == blocks
    tenth = F(1, 10**8)
    assert step.loss.epsilon is None and tenth * F(9, 10) < step.loss.delta <= tenth + blocks * F(1, 1 << 79)
    assert step.loss.rho <= (F(1, 2) if noise == "laplace" else epsilon_to_rho(F(1), 9 * tenth))
    lost = recompute_loss(step.calibrated.record)
    agree(step.loss, lost)
    assert statement.conversion == F(9, 10) * F(1, 10**7)


@pytest.mark.parametrize("mechanism", [
    calibrate_smooth_median(F(1, 3), F(1, 10**7), BlockReach(2, 2), 300),
    calibrate_propose_test_release(F(1, 3), F(1, 10**7), 4, BlockReach(2, 2)),
], ids=LOCAL)  # fmt: skip
def test_a_record_that_says_less_is_caught(mechanism: SmoothMedian | ProposeTestRelease) -> None:
    weights = UnitContribution(1, True, False, 1, True)
    record = write_release_record([], None, (Pick(MEDIAN, mechanism),), weights)
    assert covers_loss(mechanism.loss, recompute_loss(record))
    more = record.replace('"epsilon":"', '"epsilon":"1')
    assert not covers_loss(mechanism.loss, recompute_loss(more))
    for damaged in (
        record.replace('"steps":"2"', '"steps":"1"'),
        record.replace('"blocks":"2"', '"blocks":"1"'),
        record.replace('"kind"', '"sort"'),
        record.replace('"blocks":"2"', '"blocks":"5/2"'),
        record.replace('"epsilon":"', '"epsilon":"-'),
    ):
        with pytest.raises(UnreadableRecord):
            recompute_loss(damaged)


@pytest.mark.parametrize(
    ("weights", "reached"),
    [
        (UnitContribution(1, True, True), BlockReach(1, 1)),
        (UnitContribution(1, True), BlockReach(1, 1)),
        (UnitContribution(1, True, True, 3, True), BlockReach(6, 1)),
        (UnitContribution(1, True, False, 1, True), BlockReach(2, 2)),
        (UnitContribution(5, True), BlockReach(1, 5)),
    ],
)
def test_where_neighbors_differ(weights: UnitContribution, reached: BlockReach) -> None:
    assert neighbor_reach(weights) == reached


def test_wrong_values_cannot_be_built() -> None:
    reached = BlockReach(1, 1)
    for build in (
        lambda: BlockReach(0, 1),
        lambda: SmoothMedian(F(1), F(2), reached),  # its delta would be above one half
        lambda: ProposeTestRelease(F(1), 0, 3, reached),
        lambda: Pick(ExtremeTarget(True), calibrate_smooth_median(F(1), F(1, 1000), reached, 10)),
        lambda: Local(MedianBy.SMOOTH, F(1)),
        lambda: calibrate_smooth_median(F(1), F(0), reached, 10),
    ):
        with pytest.raises(ValueError):
            build()
    with pytest.raises(ValueError):
        Quantile(None, (F(1, 3),), False, False, local=Local(MedianBy.SMOOTH))  # type: ignore[arg-type]


# --- what is told ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("by", "told"), [("smooth", "at most; what it is depends"), ("ptr", "no answer, or standard")])
def test_explain_and_notices_show_public_figures(by: str, told: str, clinic: Resolved) -> None:
    statement = compiled(PATIENTS, clinic, mechanism=by)
    (notice,) = [one for one in statement.notices if "rarely better" in one]
    assert "the exponential mechanism at the same rho is within" in notice
    assert told in str(explain(statement, "duckdb", [("median", "double")]))


@pytest.fixture
def few(tmp_path: Path) -> dpsql.Connection:
    """Nine people; the group `b` has nobody."""
    with duckdb.connect(str(tmp_path / "few.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT i AS id, 40 + i AS age, 'a' AS kind FROM range(9) AS t(i)")
    columns = {
        "id": {"type": "bigint"},
        "age": {"type": "integer", "bounds": [0, 100]},
        "kind": {"type": "text", "values": ["a", "b"]},
    }
    query = {"epsilon": 1, "delta": 1e-6}
    return dpsql.connect({
        "dpsql": 1,
        "engine": "duckdb:///few.duckdb",
        "ledger": "sqlite:///few.ledger",
        "privacy": {"unit": "people.id", "budget": {"epsilon": 100, "delta": 1e-3}, "query": query},
        "tables": {"people": {"unit": "id", "unique": ["id"], "columns": columns}},
    }, folder=tmp_path)  # fmt: skip


def test_a_failed_test_is_null_and_stored(few: dpsql.Connection) -> None:
    with few as connection:
        settings = {"mechanism": "ptr", "epsilon": "0.1"}
        first = connection.sql("SELECT MEDIAN(age) FROM people", settings=settings)
        again = connection.sql("SELECT MEDIAN(age) FROM people", settings=settings)
        assert first.rows == [(None,)] and first.loss and again.rows == first.rows and not again.loss
        assert any("no answer (NULL)" in notice for notice in first.notices)


def test_answers_stay_in_the_range_and_every_group_has_one(few: dpsql.Connection) -> None:
    with few as connection:
        rows = connection.sql(
            "SELECT kind, MEDIAN(age) FROM people GROUP BY kind ORDER BY kind",
            settings={"mechanism": "smooth", "empty_groups": "show"},
        ).rows
        assert [kind for kind, _ in rows] == ["a", "b"] and all(0 <= age <= 100 for _, age in rows)


# --- medians of blocks -----------------------------------------------------------------------------------------------

BLOCKS = "SELECT BLOCKWISE(mad(cost), 0, 5000, blocks => {}, combine => 'median') FROM visits"


def test_a_median_of_few_blocks_is_said_to_be_noise(clinic: Resolved) -> None:
    """At epsilon 1 it is within 57 blocks by rank, whatever their number."""
    (notice,) = compiled(BLOCKS.format(25), clinic).notices
    assert "off by 56.4 of them by rank" in notice and "take 230 blocks or more" in notice
    assert compiled(BLOCKS.format(112), clinic).notices and not compiled(BLOCKS.format(113), clinic).notices
    assert not compiled(BLOCKS.format(25), clinic, epsilon="20").notices
    assert not compiled(BLOCKS.format(25).replace("median", "mean"), clinic).notices
    (hopeless,) = compiled(BLOCKS.format(25), clinic, epsilon="0.001").notices
    assert "blocks or more" not in hopeless
