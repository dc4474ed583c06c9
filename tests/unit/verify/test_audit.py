"""The audit acquits what is sound and accuses what is not; a report says both."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpsql.engines.in_memory import InMemoryEngine
from dpsql.privacy import partition_selection
from dpsql.privacy.partition_selection import WEIGHT_ONE
from dpsql.privacy.sampling import ExactSampler, Integers
from dpsql.privacy.tails import gaussian_tail
from dpsql.verify.audit import TEMPLATES, AuditResult, Template, audit_template
from dpsql.verify.epsilon_bound import LossBound
from dpsql.verify.report import Counterexample, TrialCounts, VerifyReport

BY_NAME = {template.name: template for template in TEMPLATES}
SAMPLES = 16_000


@pytest.fixture(scope="module")
def engine() -> Iterator[InMemoryEngine]:
    scratch = InMemoryEngine(1)
    yield scratch
    scratch.close()


@pytest.mark.parametrize("name", ["one count", "a sum of weighted rows, gaussian", "selected groups", "a median",
                                  "listed groups, gaussian, change_one"])  # fmt: skip
def test_a_sound_release_is_acquitted_and_a_planted_bug_accused(name: str, engine: InMemoryEngine) -> None:
    found = audit_template(BY_NAME[name], ExactSampler(), engine, SAMPLES)
    assert found.holds and found.has_power, found


def test_the_audit_comes_close_to_what_is_claimed(engine: InMemoryEngine) -> None:
    """Or it would not see a small mistake either."""
    (shown,) = audit_template(BY_NAME["one count"], ExactSampler(), engine, 40_000).shown
    assert 0.8 < shown.shown <= shown.claimed == 1.0


class _Careless(Template):
    """A unit that counts as two: the rows say more than the plan knows."""

    @property
    def neighbor_pair(self):  # type: ignore[no-untyped-def]
        one, other = super().neighbor_pair
        doubled = tuple((str(100 + int(row[0])), *row[1:]) for row in one["people"] if row not in other["people"])
        return {**one, "people": one["people"] + doubled}, other


def test_a_sensitivity_that_the_rows_exceed_is_accused(engine: InMemoryEngine) -> None:
    found = audit_template(_Careless("two for one", "SELECT COUNT(*) FROM people"), ExactSampler(), engine, SAMPLES)
    assert not found.holds


def test_names_are_templates_of_their_own() -> None:
    assert len(BY_NAME) == len(TEMPLATES) >= 20


def report(**changes: object) -> VerifyReport:
    audited = AuditResult(
        "one count", 100, (LossBound("epsilon at delta 0", 0.9, 1.0),), (LossBound("epsilon", 1.9, 1.0),)
    )
    trials = TrialCounts(100, 120, Counter(answered=80, refused=20), Counter({"joins": 3}), Counter({"no": 20}))
    made = VerifyReport(None, 7, trials, (), (audited,), 2.0, 3.0)
    return replace(made, **changes)  # type: ignore[arg-type]


def test_a_report_that_holds() -> None:
    made = report()
    made = replace(made, trials=replace(made.trials, outcomes=Counter(answered=180, refused=20)))
    assert (
        made.holds
        and made.trials_per_second == 50.0
        and made.failure_rate_bound == pytest.approx(1 - 0.05 ** (1 / 180))
    )
    assert "All claims held." in str(made) and "50 a second" in str(made) and "found" in str(made)
    written = json.loads(json.dumps(made.as_json()))
    assert written["holds"] is True and written["trials"]["features"]["joins"] == 3
    assert written["statistics"][0]["planted_bug_found"] is True


@pytest.mark.parametrize(
    "changes",
    [
        {"findings": (Counterexample(3, "SELECT 1", ("L1 of x: 2 > 1",), "-- L1\nSELECT 1;"),)},
        {"audited": (AuditResult("x", 10, (LossBound("epsilon", 1.2, 1.0),), (LossBound("epsilon", 3.0, 1.0),)),)},
    ],
    ids=["a broken claim", "accused"],
)
def test_a_report_that_does_not_hold(changes: dict[str, object]) -> None:
    made = report(**changes)
    assert not made.holds and "NOT all claims held." in str(made) and made.as_json()["holds"] is False


def test_statistics_without_power_are_no_broken_claim() -> None:
    weak = AuditResult("x", 10, (LossBound("epsilon", 0.2, 1.0),), (LossBound("epsilon", 0.3, 1.0),))
    made = report(audited=(weak,))
    assert made.holds and not made.has_power and "raise --samples" in str(made) and "NOT FOUND" in str(made)


def test_few_statements_are_not_called_all() -> None:
    few = TrialCounts(5, 5, Counter(answered=5))
    assert "few statements" in report(trials=few).conclusion


class _Shared(ExactSampler):
    """The same noise in both cells of a pair: each is drawn right, and their difference tells all."""

    def laplace(self, n: int, scale: Fraction) -> Integers:
        return np.tile(super().laplace(n // 2, scale), 2) if n % 2 == 0 else super().laplace(n, scale)


def test_noise_that_is_drawn_once_for_two_cells_is_accused(engine: InMemoryEngine) -> None:
    template = BY_NAME["count, sum and average"]
    assert audit_template(template, ExactSampler(), engine, SAMPLES).holds
    assert not audit_template(template, _Shared(), engine, SAMPLES).holds


def test_a_threshold_for_one_key_is_accused_where_a_unit_has_thirty(
    engine: InMemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each key hides well enough, all together do not."""
    monkeypatch.setattr(
        partition_selection, "_gaussian_delta", lambda sigma, threshold, reach: gaussian_tail(sigma, threshold)
    )
    monkeypatch.setattr(
        partition_selection, "_weighted_delta", lambda sigma, t, reach: gaussian_tail(sigma, t + 1 - WEIGHT_ONE)
    )
    template = replace(BY_NAME["thirty keys of one unit, gaussian"], name="as one key")
    assert not audit_template(template, ExactSampler(), engine, 40_000).holds
