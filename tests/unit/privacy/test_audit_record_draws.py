"""The noise that is drawn is the noise that is charged, and all of it reaches the cell that it was drawn for.

What each study, choice and bundle asks of its sampler is compared, draw by draw, with the record of which the ledger's
checker works out the loss.
"""

from __future__ import annotations

import json
from fractions import Fraction as F
from math import prod
from typing import Any

import numpy as np
import pytest

from dpsql.compiler.calibrate.calibrate import CalibratedPlan, NoiseKind
from dpsql.compiler.compile import compile_query
from dpsql.compiler.settings import Settings
from dpsql.privacy.exact import Exact
from dpsql.privacy.noise import Gaussian, Laplace, Mechanism
from dpsql.privacy.randomized_response import RandomizedResponse
from dpsql.privacy.regression import objective_perturbation, output_perturbation
from dpsql.privacy.regression.noisy_moments import (
    NoisyMoments,
    calibrate_moments_by_epsilon,
    calibrate_moments_by_rho,
    moment_pairs,
)
from dpsql.privacy.regression.objective_perturbation import (
    ObjectivePerturbation,
    calibrate_objective_by_epsilon,
    calibrate_objective_by_rho,
)
from dpsql.privacy.regression.output_perturbation import (
    OutputPerturbation,
    calibrate_output_by_epsilon,
    calibrate_output_by_rho,
)
from dpsql.privacy.release import perturb
from dpsql.privacy.synthetic import mst, mwem
from dpsql.privacy.synthetic.measure import Marginal, MarginalMeasurer
from dpsql.privacy.synthetic.synthesis import (
    Synthesis,
    SynthesisMethod,
    SynthesisRequest,
    calibrate_synthesis_by_epsilon,
    calibrate_synthesis_by_rho,
)
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows
from dpsql.schema.model import Resolved
from tests.support.recording_sampler import Call, Recording
from tests.support.regression_data import AXES, DESIGN, LINEAR_AXES, tally
from tests.support.weighted_rows import tally_of

ROW = UnitMass(1, 1, True, 1, False)
WEIGHED = UnitMass(3 << 16, 1 << 16, False, 2, True)
ROWS = {(0, 1, 2): 30, (1, 4, 0): 25, (1, 2, 1): 7}
SIZES = (2, 3, 4)
WIDE = F(1 << 30)
"""The scale of draws that only shuffle what is already released (`rounding`)."""


def noise_call(part: dict[str, str], n: int) -> Call:
    return part["kind"], n, F(part["scale"])


# --- models ----------------------------------------------------------------------------------------------------------


def models(mass: UnitMass) -> list[Any]:
    found: list[Any] = [calibrate_output_by_epsilon(DESIGN, AXES, mass, F(1, 100), rows, F(1)) for rows in (None, 1000)]
    found += [calibrate_output_by_rho(DESIGN, AXES, mass, F(1, 100), rows, F(1, 50)) for rows in (None, 1000)]
    if mass.one_row:
        found += [calibrate_objective_by_epsilon(DESIGN, AXES, mass, F(1, 100), rows, F(1)) for rows in (None, 1000)]
        found.append(calibrate_objective_by_rho(DESIGN, AXES, mass, F(1, 100), None, F(1, 50)))
    return found


LOGISTIC = [study for mass in (ROW, WEIGHED) for study in models(mass)]
LINEAR = [make(DESIGN, LINEAR_AXES, mass, F(0), F(1, 2)) for mass in (ROW, WEIGHED)
          for make in (calibrate_moments_by_epsilon, calibrate_moments_by_rho)]  # fmt: skip
Logistic = OutputPerturbation | ObjectivePerturbation


def before(study: Logistic) -> list[Call]:
    """The draws before the noise of the coefficients: a count, a slope."""
    record, d = study.to_audit_record(), study.design.width
    counting = [noise_call(record["count"], 1)] if "count" in record else []
    return counting + ([("laplace", d, F(record["slope_steps"]))] if "slope_steps" in record else [])


@pytest.mark.parametrize("study", LOGISTIC, ids=lambda study: study.kind)
def test_a_logistic_model_draws_what_it_records(study: Logistic) -> None:
    d, first = study.design.width, before(study)
    assert study.to_audit_record()["cells"] == str(d)
    given = [[1001] if n == 1 else [(place - 2) * 10**6 + 1 for place in range(n)] for _, n, _ in first]
    noisy, still = Recording(*given, [7, -9, 11, 1, -3]), Recording(*given, [0] * d)
    (cells,), (quiet,) = (study.perform(tally(ROWS), sampler) for sampler in (noisy, still))
    assert noisy.calls == [*first, noise_call(study.to_audit_record()["noise"], d)]
    assert (cells - quiet).tolist() == [0, 7, -9, 11, 1, -3]
    assert cells[0] == (sum(ROWS.values()) + 1001 if "count" in study.to_audit_record() else 0)


@pytest.mark.parametrize("study", [study for study in LOGISTIC if study.ridge.rows is None], ids=lambda s: s.kind)
def test_the_ridge_follows_from_the_noisy_count_alone(study: Logistic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two crowds that differ, counted with noise that makes up for it: the same ridge is solved for, and is told."""
    seen: list[F] = []

    def spied(*args: Any) -> Any:
        seen.append(args[3])
        return regression_problem(*args)

    regression_problem = output_perturbation.build_problem
    for module in (output_perturbation, objective_perturbation):
        monkeypatch.setattr(module, "build_problem", spied)
    counted = 9_000 * study.mass.whole
    for weight in (4_000, 14_000):
        rows = tally({(0, 1, 2): weight * study.mass.whole, (1, 2, 1): weight * study.mass.whole})
        (cells,) = study.perform(rows, Recording([counted - 2 * weight * study.mass.whole], *[[0] * 5] * 2))
        assert cells[0] == counted
    assert seen == [study.ridge.ridge_at(counted, study.mass)] * 2


def test_a_ridge_grows_with_the_count() -> None:
    """Else equal ridges would say nothing of where they come from."""
    study = calibrate_output_by_epsilon(DESIGN, AXES, ROW, F(1, 100), None, F(1))
    assert len({study.ridge.ridge_at(rows, ROW) for rows in (8_000, 9_000, 28_000)}) == 3


@pytest.mark.parametrize("study", LINEAR, ids=lambda study: study.kind)
def test_moments_draw_what_they_record(study: NoisyMoments) -> None:
    cells, noisy = len(moment_pairs(study.design)), Recording()
    (found,) = study.perform(tally(ROWS), noisy)
    (quiet,) = study.perform(tally(ROWS), Recording([0] * cells))
    assert noisy.calls == [noise_call(study.to_audit_record()["noise"], cells)]
    assert (found - quiet).tolist() == noisy.drawn[0].tolist()


def test_answers_are_randomized_one_by_one() -> None:
    study = RandomizedResponse(Axes((0,), (3,)), UnitMass(1, 1, True, 1, True), F(1, 3))
    sampler = Recording()
    (counts,) = study.perform(WeightedRows(np.array([[0], [2]]), np.array([4, 5])), sampler)
    assert sampler.calls == [("choose", 9, 1 / F(study.to_audit_record()["epsilon"]))]
    assert counts.tolist() == [0, 0, 9]


# --- synthetic tables ------------------------------------------------------------------------------------------------


def table(method: SynthesisMethod, mass: UnitMass, pure: bool) -> Synthesis:
    wanted = SynthesisRequest(
        method, Axes((0,) * 3, SIZES), mass, ((),) * 3, 50, 2 if method is SynthesisMethod.MWEM else None
    )
    return calibrate_synthesis_by_epsilon(wanted, F(1)) if pure else calibrate_synthesis_by_rho(wanted, F(1, 8))


def looked(study: Synthesis) -> list[Call]:
    """Looks in the order in which they are made, where the last candidate is chosen each time; as the record has it."""
    told = {(look["at"], place): look for place, look in enumerate(study.to_audit_record()["looks"])}
    looks = [look for (at, _), look in told.items() if at != "furthest"]
    choice = [("choose", 1, F(look["scale"])) for (at, _), look in told.items() if at == "furthest"]
    rounds = int(looks[-1]["times"]) if choice else 0

    def measured(look: dict[str, str], marginal: Marginal) -> Call:
        return look["noise"], prod(SIZES[axis] for axis in marginal), F(look["scale"])

    total = [measured(looks[0], ())]
    if study.method is SynthesisMethod.MWEM:
        return total + [*choice, measured(looks[1], mwem.marginal_workload(SIZES)[-1])] * rounds
    ones = [measured(looks[1], (axis,)) for axis in range(len(SIZES))]
    chosen: list[Marginal] = []
    for _ in range(rounds):
        chosen.append(mst.edges_joining_trees(mst.candidate_edges(SIZES), chosen)[-1])
    return total + ones + choice * rounds + [measured(looks[-1], pair) for pair in chosen]


@pytest.mark.parametrize("method", SynthesisMethod)
@pytest.mark.parametrize("pure", [True, False], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("mass", [ROW, WEIGHED], ids=["row", "weighed"])
def test_a_synthetic_table_draws_what_it_records(method: SynthesisMethod, pure: bool, mass: UnitMass) -> None:
    study, sampler = table(method, mass, pure), Recording()
    study.perform(tally_of([[((0, 1, 2), 40 * mass.whole)], [((1, 2, 3), 9 * mass.whole)]], SIZES), sampler)
    assert [call for call in sampler.calls if call[2] != WIDE] == looked(study)
    times = sum(int(look["times"]) for look in study.to_audit_record()["looks"])
    assert len(looked(study)) == times


@pytest.mark.parametrize("mechanism", [Laplace(F(5)), Gaussian(F(5))], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("marginal", [(), (2,), (0, 1), (0, 1, 2)])
def test_each_cell_of_a_measurement_has_a_draw_of_its_own(marginal: Marginal, mechanism: Mechanism) -> None:
    rows = tally_of([[((0, 1, 2), 40)], [((1, 2, 3), 9)], [((1, 0, 3), 2)]], SIZES)
    cells, sampler = prod(SIZES[axis] for axis in marginal), Recording()
    noisy = MarginalMeasurer(rows, SIZES, sampler).measure_marginal(marginal, mechanism)
    exact = MarginalMeasurer(rows, SIZES, Recording([0] * cells)).measure_marginal(marginal, mechanism)
    assert (noisy - exact).reshape(-1).tolist() == [1 + 2 * place for place in range(cells)]
    assert exact.sum() == 51


def test_a_selection_of_the_furthest_marginal_is_as_sharp_as_it_is_charged() -> None:
    sampler = Recording()
    looks = MarginalMeasurer(tally_of([[((0, 1, 2), 40)]], SIZES), SIZES, sampler)
    contest = looks.compare_marginals({(0,): np.zeros(2), (1,): np.zeros(3)}, {(0,): 0, (1,): 0})
    assert contest.choose_furthest([(0,), (1,)], F(7, 3)) == (1,)
    assert sampler.calls == [("choose", 1, F(7, 3))]


# --- statements ------------------------------------------------------------------------------------------------------

STATEMENTS = [
    "SELECT COUNT(*), SUM(cost), AVG(paid) FROM visits",
    "SELECT kind, COUNT(*), AVG(cost) FROM visits GROUP BY kind",
    "SELECT MEDIAN(birth_year), MIN(birth_year) FROM patients",
    "SELECT PRIVATE_ARGMAX(kind, COUNT(*)) FROM visits",
    "SELECT PRIVATE_TOP_K(kind, SUM(cost), 2) FROM visits",
    "SELECT POSTERIOR_SAMPLE(cost > 100, draws => 3) FROM visits",
    "SELECT kind, POSTERIOR_SAMPLE(cost > 100) FROM visits GROUP BY kind",
]
GROUPS = 3


def cells_for(calibrated: CalibratedPlan) -> Exact:
    """Made-up cells, in as many groups as `GROUPS` where there are keys."""
    spec, keys = calibrated.spec, len(calibrated.gather.keys)
    if spec.choice is not None:
        rows: list[tuple[object, ...]] = [(one,) for one in range(spec.choice.lower, spec.choice.upper + 1)]
    else:
        rows = [(f"g{place}", *("x",) * (keys - 1)) for place in range(GROUPS)] if keys else [()]
    return Exact(rows, [np.arange(len(rows), dtype=np.int64) * 5 for _ in range(spec.columns)])


def recorded(calibrated: CalibratedPlan, blocks: int) -> list[Call]:
    record = json.loads(calibrated.record)
    calls = [noise_call(one, int(one["cells"]) * blocks) for one in record.get("bundles", [])]
    calls += [("choose", blocks, F(pick["scale"]) * steps_of(pick)) for pick in record.get("picks", [])]
    if (scores := record.get("scores")) is not None:
        kind = "flip" if scores["kind"] == "flip" else "choose"
        calls += [(kind, blocks, F(scores["scale"]))] * int(scores["rounds"])
    return calls


def steps_of(pick: dict[str, str]) -> int:
    """Scores of the quantile a/b are counted in b-ths of a row, those of MIN and MAX in halves."""
    return F(pick["at"]).denominator if pick["target"] == "rank" else 2


@pytest.mark.parametrize("noise", list(NoiseKind))
@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_statement_draws_what_it_records(sql: str, noise: NoiseKind, clinic: Resolved) -> None:
    steps = compile_query(sql, clinic, Settings(F(1), F(1, 10**7), 8, 4, noise)).steps
    assert steps
    for step in steps:
        calibrated, sampler = step.calibrated, Recording()
        exact = cells_for(calibrated)
        spec = calibrated.spec
        release = perturb(exact, spec, sampler)
        ranks = calibrated.scores is not None and calibrated.scores.columns == 1
        blocks = 1 if ranks or spec.choice is not None or not calibrated.gather.keys else GROUPS
        assert sampler.calls == recorded(calibrated, blocks)
        if spec.bundles:
            drawn = [int(one) for noise in sampler.drawn for one in noise]
            places = [column for bundle in spec.bundles for column in bundle.columns]
            left = [release.cells[column] - exact.reveal().cells[column] for column in places]
            assert [int(one) for column in left for one in column] == drawn and len(set(drawn)) == len(drawn)
