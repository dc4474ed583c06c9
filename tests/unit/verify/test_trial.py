"""Trials find planted bugs, and make what they find small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.compiler import weighted_rows
from dpsql.compiler.analysis import sensitivity
from dpsql.compiler.analysis.sensitivity import SensitivityBound
from dpsql.compiler.calibrate import calibrate
from dpsql.compiler.compile import compile_query
from dpsql.compiler.plan.aggregate import Gather
from dpsql.compiler.row_caps import RowCap
from dpsql.compiler.settings import Settings
from dpsql.ledger.base import ReleaseRequest
from dpsql.privacy.loss import Loss, LossTooSmall
from dpsql.privacy.noise import Sensitivity
from dpsql.privacy.study_codec import STUDY_READERS
from dpsql.privacy.weighted_rows import UnitMass
from dpsql.schema.load import load_schema
from dpsql.schema.model import Contributions, Neighbors
from dpsql.session import reuse
from dpsql.session.explain import explain
from dpsql.verify import run
from dpsql.verify.coverage import FEATURES, STUDY_FEATURES
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.neighbors import extreme_pair, random_pair
from dpsql.verify.generate.queries import random_blockwise_query, random_model, random_query
from dpsql.verify.generate.schemas import generate_from_schema, random_schema
from dpsql.verify.invariants import ExactCells, find_undercharges, find_violations
from dpsql.verify.report import Counterexample, TrialCounts, VerifyReport
from dpsql.verify.run import run_batch
from dpsql.verify.trial import TrialHarness, TrialStatement, open_harness

pytestmark = pytest.mark.slow

CLINIC = Path(__file__).parents[3] / "schemas" / "clinic.yaml"


@pytest.fixture(scope="module")
def bench() -> Iterator[TrialHarness]:
    with open_harness() as opened:
        yield opened


def batches(count: int) -> tuple[TrialCounts, list[Counterexample]]:
    trials, findings = TrialCounts(), list[Counterexample]()
    for number in range(count):
        one, found = run_batch(None, number)
        trials, findings = trials + one, findings + found
        if findings:
            break
    return trials, findings


def test_random_statements_keep_their_claims_and_cover_the_grammar() -> None:
    trials, findings = batches(12)
    assert not findings, findings[0].example
    assert trials.outcomes["answered"] > 2 * trials.outcomes["refused"]
    assert sum(trials.features[name] > 0 for name in FEATURES) > len(FEATURES) - 4, trials.features


FORMS = ("PRIVATE_", "POSTERIOR_SAMPLE", "(mechanism = ", "BLOCKWISE", "SYNTHETIC TABLE", "REGRESSION", "RANDOMIZED")


def test_each_form_beyond_aggregates_is_drawn_in_one_of_25_statements() -> None:
    drawn: Counter[str] = Counter()
    count = 4000
    for number in range(count // 8):
        draws = ChoiceStream(f"forms {number}")
        world = generate_from_schema(random_schema(draws), draws)
        for _ in range(8):
            sql = random_query(world, draws)
            drawn.update(form for form in FORMS if form in sql)
    assert all(drawn[form] > count / 25 for form in FORMS), drawn


def test_what_was_not_tried_is_reported() -> None:
    trials = TrialCounts(1, 1, Counter(answered=1), Counter({"models": 3}))
    told = str(VerifyReport(None, 0, trials, (), (), 1.0, 1.0))
    assert "     3 models" in told and "  not tried: one group, listed groups" in told and " 0 " not in told


def test_studies_are_counted_by_their_kind() -> None:
    assert set(STUDY_FEATURES) == set(STUDY_READERS) and set(STUDY_FEATURES.values()) <= set(FEATURES)


def test_a_number_gives_the_same_trials_again() -> None:
    assert run_batch(None, 7) == run_batch(None, 7) != run_batch(None, 8)


def test_the_owners_schema_is_tried_as_it_is_declared() -> None:
    trials, findings = run_batch(load_schema(CLINIC), 5)
    assert trials.count == run.STATEMENTS_PER_BATCH and not findings


def halved(sensitivity: Sensitivity) -> Sensitivity:
    return Sensitivity(max(1, sensitivity.l1 // 2), max(1, sensitivity.l2_squared // 4), max(1, sensitivity.linf // 2))


def test_a_sensitivity_that_is_too_small_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    real = calibrate.derive_sensitivity_bounds

    def claims(gather: Gather, relation: object) -> tuple[SensitivityBound, ...]:
        return tuple(replace(one, sensitivity=halved(one.sensitivity)) for one in real(gather, relation))  # type: ignore[arg-type]

    monkeypatch.setattr(calibrate, "derive_sensitivity_bounds", claims)
    monkeypatch.setattr(run, "SHRINK_SECONDS", 6.0)
    _, findings = batches(20)
    assert findings
    first = findings[0]
    assert any(finding.startswith(("L1", "L2", "Linf")) for finding in first.findings)
    assert len(first.sql) < 300, first.sql
    assert "CREATE OR REPLACE TABLE" in first.example and "-- D', its neighbor" in first.example


def test_one_block_under_change_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit that makes room for one of another id changes two blocks: with the same id it would change one."""
    monkeypatch.setattr(sensitivity, "_blocks_changed", lambda relation: 1)
    monkeypatch.setattr(run, "SHRINK_SECONDS", 6.0)
    monkeypatch.setattr(run, "random_query", random_blockwise_query)
    monkeypatch.setattr(run, "random_pair", extreme_pair)
    findings: list[Counterexample] = []
    for number in range(20, 60):
        schema = random_schema(ChoiceStream(f"planted {number}"), "own")
        schema = replace(schema, privacy=replace(schema.privacy, neighbors=Neighbors.CHANGE_ONE, group_size=1))
        findings += run_batch(schema, number)[1]
        if findings:
            break
    assert findings and "BLOCKWISE" in findings[0].sql


def test_a_unit_that_is_changed_comes_back_as_itself_or_as_another() -> None:
    """With all of its rows: those that refer to it refer to what it is then."""
    seen: Counter[bool] = Counter()
    for number in range(40):
        draws = ChoiceStream(f"changed {number}")
        schema = random_schema(draws, "one hop")
        schema = replace(schema, privacy=replace(schema.privacy, neighbors=Neighbors.CHANGE_ONE, group_size=1))
        world = generate_from_schema(schema, draws)
        pair = random_pair(world, draws)
        (people, visits), ids = (world.table_named(name) for name in ("people", "visits")), []
        for rows in (pair.first, pair.second):
            own, linked = (
                {row[[column.name for column in laid.columns].index("uid")] for row in rows[laid.name]}
                for laid in (people, visits)
            )
            ids.append(own | linked)
        seen[ids[0] == ids[1]] += 1
        assert len(ids[0] ^ ids[1]) in (0, 2)
    assert min(seen[True], seen[False]) > 5, seen


def test_a_row_that_fails_the_engine_on_one_side_is_found(bench: TrialHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = ChoiceStream(3)
    world = generate_from_schema(random_schema(draws, "own"), draws)
    bench.load_pair(world, random_pair(world, draws))
    asked = TrialStatement("SELECT COUNT(*) FROM events", Fraction(1), Fraction(1, 10**6), 1, 1, None)
    assert bench.run_trial(asked).findings == ()
    bench.forget_answers()
    real = bench.paired_engine.second.run_release

    def fails(sql: str, keys: int, holes: dict[str, object]) -> object:
        return real("SELECT CAST(error('row 7') AS BIGINT)", keys, holes)

    monkeypatch.setattr(bench.paired_engine.second, "run_release", fails)
    outcome = bench.run_trial(asked)
    assert outcome.kind == "failed" and any("D'" in finding for finding in outcome.findings)


def test_a_refusal_that_follows_from_a_chosen_norm_ends_no_run(
    bench: TrialHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a study needs may be known only when its cap is; the histogram is charged by then."""
    draws = ChoiceStream(3)
    declared = random_schema(draws, "own")
    declared = replace(declared, privacy=replace(declared.privacy, contributions=Contributions(None, None)))
    world = generate_from_schema(declared, draws)
    bench.load_pair(world, random_pair(world, draws))
    sql = next(sql for number in range(99) if "events" in (sql := random_model(world, ChoiceStream(number))))
    asked = TrialStatement(sql, Fraction(10), Fraction(1, 10**6), None, None, None)
    assert bench.run_trial(asked).findings == ()
    bench.forget_answers()
    undecided, choose, derive = list[bool](), weighted_rows.choose_row_cap, weighted_rows.derive_unit_mass

    def choose_and_record(*args: Any) -> RowCap:
        cap = choose(*args)
        undecided.append(cap.undecided)
        return cap

    def derive_where_undecided(*args: Any) -> UnitMass:
        if not undecided[-1]:
            raise LossTooSmall("a scale is too large")
        return derive(*args)

    monkeypatch.setattr(weighted_rows, "choose_row_cap", choose_and_record)
    monkeypatch.setattr(weighted_rows, "derive_unit_mass", derive_where_undecided)
    outcome = bench.run_trial(asked)
    assert (outcome.kind, outcome.findings) == ("failed", ()) and "too small" in outcome.refusal


def test_cells_that_depend_on_the_order_of_rows_are_found(bench: TrialHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = ChoiceStream(4)
    world = generate_from_schema(random_schema(draws, "own"), draws)
    bench.load_pair(world, random_pair(world, draws))
    asked = TrialStatement("SELECT COUNT(*) FROM events", Fraction(1), Fraction(1, 10**6), 2, 2, None)
    real = bench.paired_engine.mixed.run_release
    monkeypatch.setattr(
        bench.paired_engine.mixed, "run_release", lambda sql, keys, holes: real("SELECT 12345::BIGINT", keys, holes)
    )
    assert any("order of rows" in finding for finding in bench.run_trial(asked).findings)


def test_a_charge_below_the_noise_is_found(bench: TrialHarness) -> None:
    resolved = generate_from_schema(load_schema(CLINIC), ChoiceStream(record=())).resolved_schema
    compiled = compile_query("SELECT COUNT(*) FROM visits", resolved, replace(DEFAULT, rows=3))
    assert find_undercharges(compiled) == []
    cheap = replace(compiled.steps[0].calibrated, loss=replace(compiled.steps[0].loss, rho=Fraction(1, 10**9)))
    assert find_undercharges(replace(compiled, steps=(replace(compiled.steps[0], calibrated=cheap),)))


DEFAULT = Settings(Fraction(1), Fraction(1, 10**6), 3, 3)


def test_a_selection_that_is_not_paid_for_is_found() -> None:
    resolved = generate_from_schema(load_schema(CLINIC), ChoiceStream(record=())).resolved_schema
    compiled = compile_query("SELECT DISTINCT ward FROM visits", resolved, DEFAULT)
    step = compiled.steps[0]
    assert step.calibrated.selection is not None and find_undercharges(compiled) == []
    cheap = replace(step.calibrated, loss=replace(step.loss, rho=step.loss.rho / 2))
    assert find_undercharges(replace(compiled, steps=(replace(step, calibrated=cheap),)))


@pytest.mark.parametrize("rho", [Fraction(1, 10**9), Fraction(1)])
def test_a_ledger_that_is_charged_too_little_or_too_much_is_found(
    rho: Fraction, bench: TrialHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = ChoiceStream(6)
    world = generate_from_schema(random_schema(draws, "own"), draws)
    bench.load_pair(world, random_pair(world, draws))
    sql = "SELECT COUNT(*) FROM events WHERE (SELECT COUNT(*) FROM events AS z WHERE z.e1 = 'k1') > 1"
    asked = TrialStatement(sql, Fraction(1), Fraction(1, 10**6), 1, 1, None)
    assert bench.run_trial(asked).findings == ()
    bench.forget_answers()
    real = reuse.ReleaseRequest
    wrong = Loss(None, rho, Fraction(0))

    def request_for_another(plan: str, version: int, loss: Loss, *rest: Any, **named: Any) -> ReleaseRequest:
        return real(plan, version, wrong, *rest, **named)

    monkeypatch.setattr(reuse, "ReleaseRequest", request_for_another)
    assert any(finding.startswith("charged") for finding in bench.run_trial(asked).findings)


@pytest.mark.parametrize(
    ("sql", "one", "other", "found"),
    [
        ("SELECT COUNT(*) FROM patients", [((), 5)], [((), 7)], "L1"),
        ("SELECT COUNT(*) FROM patients", [((), 5)], [((), 4)], ""),
        ("SELECT COUNT(*) FROM patients", [((), 5), ((), 5)], [((), 5)], "twice"),
        ("SELECT COUNT(*) FROM patients", [], [((), 5)], "always"),
        ("SELECT sex, COUNT(*) FROM patients GROUP BY sex", [(("f",), 1)], [(("m",), 1)], "public groups"),
    ],
)
def test_what_two_databases_may_not_show(
    sql: str, one: list[tuple[tuple[str, ...], int]], other: list[tuple[tuple[str, ...], int]], found: str
) -> None:
    resolved = generate_from_schema(load_schema(CLINIC), ChoiceStream(record=())).resolved_schema
    compiled = compile_query(sql, resolved, DEFAULT)
    (step,), (release,) = compiled.steps, explain(compiled, "duckdb", ()).releases
    wide = len(release.columns)
    cells = [ExactCells(tuple(k for k, _ in side), (tuple(n for _, n in side),) * wide) for side in (one, other)]
    said = find_violations(step, release, cells[0], cells[1], resolved.schema.privacy)
    assert any(found in text for text in said) if found else said == []


POLL = """\
dpsql: 1
engine: "duckdb:///poll.duckdb"
privacy:
  unit: people.pid
  neighbors: change_one
  budget: {epsilon: 9, delta: 1e-6}
  contributions: {rows: 1, groups: 1}
tables:
  people:
    unit: pid
    unique: [pid]
    columns: {pid: {type: bigint}, answer: {type: text, values: [a, b]}}
"""


@pytest.mark.parametrize(
    ("one", "other", "changed", "found"),
    [
        (((0, 1), (5, 3)), ((0, 1), (4, 4)), {}, ""),
        (((0, 1), (1, 1)), ((0,), (2,)), {}, ""),
        (((0, 1), (5, 3)), ((0, 1), (5, 4)), {}, "the number"),
        (((0, 1), (5, 3)), ((0, 2), (5, 4)), {}, "the number"),
        (((0, 1), (5, 3)), ((0, 1), (3, 5)), {}, "lose"),
        (((0, 1), (5, 3)), ((0, 1), (4, 4)), {"epsilon": Fraction(9, 10)}, "lose"),
        (((0, 1), (5, 3)), ((0, 1), (4, 4)), {"rho": Fraction(4, 10)}, "lose"),
    ],
)
def test_randomized_answers_that_two_databases_may_not_show(
    tmp_path: Path,
    one: tuple[tuple[int, ...], ...],
    other: tuple[tuple[int, ...], ...],
    changed: dict[str, Fraction],
    found: str,
) -> None:
    (tmp_path / "poll.yaml").write_text(POLL, encoding="utf-8")
    resolved = generate_from_schema(load_schema(tmp_path / "poll.yaml"), ChoiceStream(record=())).resolved_schema
    compiled = compile_query("SELECT RANDOMIZED(answer, 1) FROM people", resolved, DEFAULT)
    (step,), (release,) = compiled.steps, explain(compiled, "duckdb", ()).releases
    assert find_undercharges(compiled) == [] and find_undercharges(
        replace(compiled, settings=replace(compiled.settings, epsilon=Fraction(9, 10)))
    )
    step = replace(step, calibrated=replace(step.calibrated, loss=replace(step.loss, **changed)))
    cells = [ExactCells(((),) * len(side[0]), side) for side in (one, other)]
    said = find_violations(step, release, cells[0], cells[1], resolved.schema.privacy)
    assert any(found in text for text in said) if found else said == []


def test_a_statement_is_made_again_from_its_record() -> None:
    kinds = Counter[bool]()
    for seed in range(50):
        draws = ChoiceStream(seed)
        world = generate_from_schema(random_schema(draws), draws)
        choices = ChoiceStream(f"x{seed}")
        sql = random_query(world, choices)
        assert random_query(world, ChoiceStream(record=choices.record)) == sql
        kinds[" JOIN " in sql] += 1
    assert min(kinds.values()) > 3
