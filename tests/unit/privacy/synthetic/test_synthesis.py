"""Synthetic tables: known answers, what comes out, how it is stored, and figures that hold."""

import json
from fractions import Fraction as F
from itertools import combinations

import numpy as np
import pytest

from dpsql.base.cancellation import cancel_scope
from dpsql.ledger.loss_checker.checker import UnreadableRecord, recompute_loss
from dpsql.privacy.audit_record import write_study_record
from dpsql.privacy.exact import Exact
from dpsql.privacy.noise import Laplace
from dpsql.privacy.release import ReleaseSpec, perturb, release_from_bytes, release_to_bytes
from dpsql.privacy.sampling import ExactSampler
from dpsql.privacy.synthetic.marginal_error import estimate_marginal_errors, mean_noise_size
from dpsql.privacy.synthetic.measure import Marginal, MarginalMeasurer
from dpsql.privacy.synthetic.mst import (
    candidate_edges,
    combine_totals,
    count_edges,
    edges_joining_trees,
    project_to_simplex,
)
from dpsql.privacy.synthetic.mwem import (
    MAX_CELLS,
    MarginalMeasurement,
    fit_estimate,
    marginal_of,
    multiply_weights,
    uniform_estimate,
)
from dpsql.privacy.synthetic.sample_rows import draw_bin_offsets, draw_uniforms, round_counts, sample_cell_rows
from dpsql.privacy.synthetic.synthesis import (
    FIGURE_GRID,
    FITTED,
    MEASURED,
    ROW,
    TOTAL,
    Synthesis,
    SynthesisMethod,
    SynthesisRequest,
    calibrate_synthesis_by_epsilon,
    calibrate_synthesis_by_rho,
    default_method,
    synthesis_from_json,
)
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows
from tests.support.loss_checker import agree
from tests.support.weighted_rows import Still, tally_of

SIZES = (2, 4, 8)
ONE_ROW = UnitMass(1, 1, True, 1, False)


def correlated(n: int = 4000, seed: int = 1) -> np.ndarray:
    draws = np.random.default_rng(seed)
    first = draws.integers(0, 2, n)
    second = np.clip(first * 2 + draws.integers(0, 2, n), 0, 3)
    third = np.clip(second * 2 + draws.integers(0, 2, n), 0, 7)
    return np.stack([first, second, third], axis=1)


def tallied(rows: np.ndarray, whole: int = 1) -> WeightedRows:
    return tally_of([[(tuple(map(int, row)), whole)] for row in rows], SIZES)


def counts(rows: np.ndarray, marginal: Marginal) -> np.ndarray:
    shape = tuple(SIZES[axis] for axis in marginal)
    places = np.ravel_multi_index(tuple(rows[:, axis] for axis in marginal), shape)
    return np.bincount(places, minlength=int(np.prod(shape)))


def synthesis(
    method: SynthesisMethod = SynthesisMethod.MWEM,
    epsilon: F = F(10),
    mass: UnitMass = ONE_ROW,
    widths: tuple[tuple[int, ...], ...] = ((), (), ()),
    most_rows: int = 100_000,
    rounds: int | None = None,
) -> Synthesis:
    return calibrate_synthesis_by_epsilon(
        SynthesisRequest(method, Axes((0, 0, 0), SIZES), mass, widths, most_rows, rounds), epsilon
    )


def made(study: Synthesis, tally: WeightedRows) -> tuple[np.ndarray, dict[Marginal, tuple[int, float]]]:
    """The rows, and what is told of each marginal."""
    parts, values, *codes = study.perform(tally, ExactSampler())
    rows = np.stack([column[parts == ROW] for column in codes[: len(SIZES)]], axis=1)
    told = {}
    for place in np.flatnonzero((parts == MEASURED) | (parts == FITTED)):
        marginal = tuple(axis for axis in range(len(SIZES)) if codes[axis][place] == 0)
        told[marginal] = (int(parts[place]), float(values[place] * FIGURE_GRID))
    return rows, told


# --- known answers ---------------------------------------------------------------------------------------------------


def test_one_step_of_multiplicative_weights() -> None:
    """Domain {0, 1}, n = 10, A = (5, 5), q = (1, 0), m = 8: weights e^0.15 to 1."""
    found = multiply_weights(np.array([5.0, 5.0]), [((0,), np.array([8.0 - 5.0, 0.0]))], 1 / (2 * 10), 10)
    assert found == pytest.approx([5.374, 4.626], abs=5e-4)


def test_a_fit_meets_what_was_measured() -> None:
    measured = [
        MarginalMeasurement((0,), np.array([30, 10]), 1.0),
        MarginalMeasurement((0, 1), np.array([[25, 5], [2, 8]]), 1.0),
    ]
    found = fit_estimate(uniform_estimate((2, 2), 40.0), measured, 40.0)
    assert marginal_of(found, (0,)) == pytest.approx([30, 10], abs=0.5)
    assert found == pytest.approx(np.array([[25, 5], [2, 8]]), abs=0.5)


def test_a_fit_survives_noise_that_drowns_everything() -> None:
    wild = np.array([1 << 55, -(1 << 55)])
    found = fit_estimate(uniform_estimate((2, 3), 1.0), [MarginalMeasurement((0,), wild, 1.0)], 1.0)
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(1.0)


def test_the_nearest_table_without_negative_cells() -> None:
    assert project_to_simplex(np.array([3.0, 1.0, -1.0]), 3.0) == pytest.approx([2.5, 0.5, 0.0])
    assert project_to_simplex(np.array([5.0]), 2.0) == pytest.approx([2.0])
    assert project_to_simplex(np.array([-5.0, -7.0]), 2.0) == pytest.approx([2.0, 0.0])


def test_totals_count_by_how_exact_they_are() -> None:
    alone = MarginalMeasurement((), np.array(100), 4.0)
    summed = MarginalMeasurement((0,), np.array([40, 70]), 6.0)  # 110, with a variance of 12
    assert combine_totals([alone, summed]) == pytest.approx((100 / 4 + 110 / 12) / (1 / 4 + 1 / 12))


def test_trees_are_joined_until_one_is_left() -> None:
    pairs = candidate_edges((2, 3, 4, 5))
    assert count_edges((2, 3, 4, 5)) == 3
    assert edges_joining_trees(pairs, [(0, 1), (2, 3)]) == [(0, 2), (0, 3), (1, 2), (1, 3)]
    assert edges_joining_trees(pairs, [(0, 1), (2, 3), (1, 2)]) == []
    assert count_edges((1 << 10, 1 << 10, 2)) == 2  # the two large ones are no pair
    assert count_edges((7,)) == 0


def test_rounding_keeps_the_sum_and_is_fair() -> None:
    amounts = np.array([0.5, 1.25, 0.25, 8.0])
    starts = (np.arange(64) + 0.5) / 64
    found = np.array([round_counts(amounts, 10, start) for start in starts])
    assert (found.sum(axis=1) == 10).all()
    assert (np.abs(found - amounts) < 1).all()
    assert found.mean(axis=0) == pytest.approx(amounts, abs=0.02)
    assert round_counts(np.zeros(3), 4, 0.5).sum() == 4
    assert round_counts(np.zeros(3), 0, 0.5).sum() == 0


def test_sampled_rows_follow_no_regular_pattern() -> None:
    """Of 64 equal cells and 32 rows, plain systematic rounding would take every second cell."""
    rows = np.stack(sample_cell_rows(np.ones((8, 8)), 32, ExactSampler()), axis=1)
    assert np.bincount(rows[:, 0], minlength=8).tolist() == [4] * 8
    assert len({int(value) for value in rows[:, 1]}) > 4


def test_uniform_numbers_and_positions_in_bins() -> None:
    found = draw_uniforms(20_000, ExactSampler())
    assert found.min() >= 0
    assert found.max() < 1
    assert abs(found.mean() - 0.5) < 0.02
    places = draw_bin_offsets(np.repeat([0, 1], 500), (1, 10), ExactSampler())
    assert set(places[:500]) == {0}
    assert set(places[500:]) == set(range(10))


# --- what comes out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", SynthesisMethod)
@pytest.mark.parametrize("whole", [1, 65536])
def test_marginals_are_near_where_noise_is_small(method: SynthesisMethod, whole: int) -> None:
    rows = correlated()
    mass = UnitMass(whole, whole, whole == 1, 1, False)
    found, _ = made(synthesis(method, mass=mass), tallied(rows, whole))
    parts, values, *_ = synthesis(method, mass=mass).perform(tallied(rows, whole), ExactSampler())
    assert [float(value * FIGURE_GRID) for value in values[parts == TOTAL]] == [pytest.approx(4000, abs=30)]
    assert abs(len(found) - len(rows)) < 30
    for axis in range(3):
        assert np.abs(counts(rows, (axis,)) - counts(found, (axis,))).sum() < 200
    pair = np.abs(counts(rows, (0, 1)) - counts(found, (0, 1))).sum()
    assert pair > 1000 if method is SynthesisMethod.INDEPENDENT else pair < 300


@pytest.mark.parametrize("method", SynthesisMethod)
def test_without_noise_the_table_is_that_of_its_marginals(method: SynthesisMethod) -> None:
    rows = correlated(2000)
    parts, _, *codes = synthesis(method, F(1000)).perform(tallied(rows), Still())
    assert (parts == ROW).sum() == 2000
    found = np.stack([column[parts == ROW] for column in codes], axis=1)
    assert np.abs(counts(rows, (0,)) - counts(found, (0,))).sum() < 60


@pytest.mark.parametrize("method", SynthesisMethod)
@pytest.mark.parametrize("rows", [[], [(0, 0, 0)]])
def test_a_table_of_next_to_nothing(method: SynthesisMethod, rows: list[tuple[int, ...]]) -> None:
    tally = tally_of([[(row, 1)] for row in rows], SIZES)
    for epsilon in (F(1, 100), F(100)):
        found, told = made(synthesis(method, epsilon), tally)
        assert found.shape[1] == 3
        assert len(told) == 6


def test_the_number_of_rows_is_noisy_and_capped() -> None:
    rows = correlated(1000)
    found = {len(made(synthesis(SynthesisMethod.INDEPENDENT, F(1, 2)), tallied(rows))[0]) for _ in range(8)}
    assert len(found) > 1
    assert len(made(synthesis(most_rows=100), tallied(rows))[0]) == 100


def test_values_within_bins() -> None:
    study = synthesis(widths=((), (1, 5, 5, 5), ()))
    assert len(study.grids) == 2 + 3 + 1
    given = study.perform(tallied(correlated()), ExactSampler())
    assert len(given) == len(study.grids)
    rows = given[0] == ROW
    codes, within = given[3][rows], given[5][rows]
    assert set(within[codes == 0]) == {0}
    assert set(within[codes == 2]) == set(range(5))


def test_a_total_that_noise_has_taken_away_bounds_no_error() -> None:
    """4,000 rows, of which noise left one: the table's own weight says nothing of how many there were."""
    noise = Laplace(F(8000))
    lost = MarginalMeasurement((0,), np.array([-8000, -3000]), 2 * 8000.0**2)
    (figure,) = estimate_marginal_errors(
        {(0,): np.array([1.0, 0.0])}, [(lost, noise)], [], 0.0, 0.0, mean_noise_size(noise)
    )
    assert figure.error is not None and 2 * figure.error >= 4000


@pytest.mark.parametrize("method", SynthesisMethod)
@pytest.mark.parametrize("epsilon", [F(1, 400), F(1, 4), F(2), F(20)], ids=str)
def test_expected_errors_bound_those_that_are_found(method: SynthesisMethod, epsilon: F) -> None:
    """On average over runs and marginals; and they say what was measured."""
    rows = correlated()
    claimed: dict[Marginal, list[float]] = {}
    found_off: dict[Marginal, list[float]] = {}
    for _ in range(6):
        found, told = made(synthesis(method, epsilon), tallied(rows))
        for marginal, (part, error) in told.items():
            if error < 0:
                assert part == FITTED
                continue
            claimed.setdefault(marginal, []).append(error)
            # Rows of the table stand for the total together; the total's own noise is in the errors.
            off = np.abs(counts(rows, marginal) - counts(found, marginal)).mean()
            found_off.setdefault(marginal, []).append(float(off))
    assert set(claimed) >= {(0,), (1,), (2,)}
    assert len(claimed) == (3 if method is SynthesisMethod.INDEPENDENT else 6)
    assert sum(map(np.mean, found_off.values())) <= sum(map(np.mean, claimed.values()))


def test_what_was_measured_is_reported() -> None:
    _, told = made(synthesis(SynthesisMethod.MARGINALS), tallied(correlated()))
    assert [told[(axis,)][0] for axis in range(3)] == [MEASURED] * 3
    assert sorted(told[pair][0] for pair in combinations(range(3), 2)) == [MEASURED, MEASURED, FITTED]
    assert told[(0, 1)][0] == told[(1, 2)][0] == MEASURED  # the pairs that hang together most


# --- shape, storage, refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", SynthesisMethod)
def test_a_study_is_written_and_read(method: SynthesisMethod) -> None:
    wanted = SynthesisRequest(
        method, Axes((0, -1, 5), SIZES), UnitMass(6, 2, False, 2, True), ((), (1, 5, 5, 5), ()), 77, 4
    )
    for study in (calibrate_synthesis_by_epsilon(wanted, F(1, 3)), calibrate_synthesis_by_rho(wanted, F(1, 7))):
        assert synthesis_from_json(json.loads(json.dumps(study.to_json()))) == study
        assert json.loads(json.dumps(study.to_audit_record())) == study.to_audit_record()


def test_the_method_follows_from_the_domain() -> None:
    assert default_method((2, 4)) is SynthesisMethod.MWEM
    assert default_method((MAX_CELLS, 2)) is SynthesisMethod.MARGINALS


def test_one_column_needs_no_choice() -> None:
    study = calibrate_synthesis_by_epsilon(
        SynthesisRequest(SynthesisMethod.MWEM, Axes((0,), (5,)), ONE_ROW, ((),), 50), F(1)
    )
    assert (study.rounds, study.choosing) == (1, None)
    two = calibrate_synthesis_by_epsilon(
        SynthesisRequest(SynthesisMethod.MARGINALS, Axes((0, 0), (5, 3)), ONE_ROW, ((), ()), 50), F(1)
    )
    assert (two.rounds, two.choosing) == (1, None)


def test_measurements_are_sealed() -> None:
    looks = MarginalMeasurer(tallied(correlated(5)), SIZES, ExactSampler())
    assert repr(looks) == "Looks(sealed)"
    assert "sealed" in repr(looks.compare_marginals({}, {}))
    with pytest.raises(TypeError):
        json.loads(json.dumps(looks))
    with pytest.raises(TypeError):
        looks.__reduce__()


def test_a_study_that_does_not_fit_itself() -> None:
    wanted = {
        "method": SynthesisMethod.MWEM,
        "axes": Axes((0,), (2,)),
        "mass": ONE_ROW,
        "total": Laplace(F(1)),
        "ones": None,
    }
    with pytest.raises(ValueError, match="chosen"):
        Synthesis(**wanted, pairs=Laplace(F(1)), choosing=None, rounds=2, widths=((),), most_rows=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="measured"):
        Synthesis(**wanted, pairs=None, choosing=None, rounds=2, widths=((),), most_rows=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="width"):
        Synthesis(**wanted, pairs=Laplace(F(1)), choosing=None, rounds=1, widths=((1,),), most_rows=1)  # type: ignore[arg-type]


# --- the ledger's own arithmetic -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", SynthesisMethod)
@pytest.mark.parametrize("change_one", [False, True])
def test_the_checker_finds_the_same_loss(method: SynthesisMethod, change_one: bool) -> None:
    mass = UnitMass(3 << 16, 1 << 16, False, 2, change_one)
    wanted = SynthesisRequest(method, Axes((0, 0, 0), SIZES), mass, ((), (), ()), 100, 5)
    for study in (calibrate_synthesis_by_epsilon(wanted, F(1, 3)), calibrate_synthesis_by_rho(wanted, F(1, 7))):
        lost = recompute_loss(write_study_record(study))
        agree(study.loss, lost)
        assert (lost.epsilon is None) == (study.loss.epsilon is None)
        assert float(study.loss.rho) == pytest.approx(float(lost.rho))


def test_the_checker_reads_nothing_that_it_does_not_know() -> None:
    record = write_study_record(synthesis())
    for wrong in ('"times":"0"', '"times":"-1"', '"times":"1/2"', '"times":"1","more":"1"'):
        with pytest.raises(UnreadableRecord):
            recompute_loss(record.replace('"times":"1"', wrong))
    with pytest.raises(UnreadableRecord):
        recompute_loss(record.replace('"exponential"', '"gaussian"'))
    with pytest.raises(UnreadableRecord):
        recompute_loss(record.replace('"total"', '"everything"'))


def test_a_release_of_a_synthetic_table_is_stored_and_read() -> None:
    study, rows = synthesis(), correlated(300)
    exact = Exact([()] * len(rows), [*(rows[:, axis] for axis in range(3)), np.ones(len(rows), np.int64)])
    release = perturb(exact, ReleaseSpec(study.grids, (), study=study), ExactSampler())
    assert release_from_bytes(release_to_bytes(release)) == release


def test_what_explain_shows() -> None:
    lines = synthesis(SynthesisMethod.MARGINALS, F(1)).explain_lines()
    assert lines[0] == "synthetic table by marginals, 64 cells, at most 100,000 rows"
    assert [line.split(":")[0] for line in lines[1:3]] == ["total", "3 one-way marginals"]
    assert "2 two-way marginals, chosen to about" in lines[3]


def test_a_table_whose_time_is_over_ends() -> None:
    def late() -> None:
        looks.append(1)
        if len(looks) > 3:
            raise TimeoutError

    looks: list[int] = []
    with pytest.raises(TimeoutError), cancel_scope(late):
        synthesis(SynthesisMethod.MWEM).perform(tallied(correlated(100)), ExactSampler())
