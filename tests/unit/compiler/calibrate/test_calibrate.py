"""Calibration: shares add up to the statement's loss and never pass it; noise follows the plan that runs."""

from fractions import Fraction

import pytest

from dpsql.compiler.calibrate.calibrate import SELECTION_SHARE, CalibratedPlan, LossNeed, NoiseKind, split_loss
from dpsql.compiler.compile import Compiled, Settings, compile_query
from dpsql.compiler.plan.aggregate import Sum
from dpsql.errors import InvalidParameter
from dpsql.privacy.loss import epsilon_to_rho
from dpsql.privacy.noise import Gaussian, Laplace, noise_loss
from dpsql.privacy.score_selection import LIKELIHOOD_STEPS, PosteriorDraws, score_loss
from dpsql.schema.model import Resolved

EPSILON, DELTA = Fraction(1, 3), Fraction(1, 10**7)
STATEMENTS = [
    "SELECT COUNT(*) FROM visits",
    "SELECT kind, COUNT(*), AVG(cost), SUM(paid), COUNT(score) FROM visits GROUP BY kind",
    "SELECT ward, COUNT(*), COUNT(DISTINCT patient_id) FROM visits GROUP BY ward",
    "SELECT DISTINCT ward FROM visits",
    "SELECT (SELECT COUNT(*) FROM visits) AS a, (SELECT AVG(cost) FROM visits) AS b, (SELECT COUNT(*) FROM patients)",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward UNION ALL SELECT note, COUNT(*) FROM visits GROUP BY note",
    "SELECT ward, kind, SUM(cost) FROM visits GROUP BY 1, 2",
]


def settings(noise: NoiseKind, epsilon: Fraction = EPSILON, delta: Fraction = DELTA) -> Settings:
    return Settings(epsilon, delta, 8, 4, noise)


def compiled(sql: str, resolved: Resolved, chosen: Settings) -> Compiled:
    return compile_query(sql, resolved, chosen)


@pytest.mark.parametrize("sql", STATEMENTS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 3), Fraction(7)])
def test_a_gaussian_statement_is_charged_at_most_its_rho_and_delta(
    sql: str, epsilon: Fraction, clinic: Resolved
) -> None:
    total = compiled(sql, clinic, settings(NoiseKind.GAUSSIAN, epsilon)).loss
    selects = any(step.calibrated.selection for step in compiled(sql, clinic, settings(NoiseKind.GAUSSIAN)).steps)
    conversion = DELTA * 9 / 10 if selects else DELTA
    assert total.rho <= epsilon_to_rho(epsilon, conversion)
    assert total.delta <= DELTA - conversion
    assert total.rho > epsilon_to_rho(epsilon, conversion) * Fraction(99, 100)  # and not much is left over


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_laplace_statement_is_charged_at_most_its_epsilon_and_delta(sql: str, clinic: Resolved) -> None:
    statement = compiled(sql, clinic, settings(NoiseKind.LAPLACE))
    values = [bundle.loss for step in statement.steps for bundle in step.calibrated.bundles]
    assert all(value.epsilon is not None and value.delta == 0 for value in values)
    spent = sum((value.epsilon for value in values if value.epsilon is not None), Fraction(0))
    for_selection = sum(
        (SELECTION_SHARE[False] if step.calibrated.bundles else 1)
        for step in statement.steps
        if step.calibrated.selection
    )
    assert spent <= EPSILON - EPSILON / len(statement.steps) * for_selection
    assert statement.loss.delta <= DELTA / 10


def test_pure_statements_stay_pure(clinic: Resolved) -> None:
    total = compiled(STATEMENTS[1], clinic, settings(NoiseKind.LAPLACE)).loss
    assert total.epsilon is not None and total.epsilon <= EPSILON and total.delta == 0


def test_delta_is_for_the_conversion_alone_where_nothing_is_selected() -> None:
    (share,) = split_loss(NoiseKind.GAUSSIAN, EPSILON, DELTA, (LossNeed.EPSILON,))
    assert share.rho == epsilon_to_rho(EPSILON, DELTA) and (share.delta, share.delta_conv) == (0, 0)


def test_a_tenth_of_delta_is_shared_by_the_selections() -> None:
    one, other, third = split_loss(
        NoiseKind.GAUSSIAN, EPSILON, DELTA, (LossNeed.DELTA, LossNeed.EPSILON, LossNeed.DELTA)
    )
    assert one.delta == third.delta == DELTA / 20 and other.delta == 0
    assert one.delta_conv == DELTA * 9 / 20
    assert one.rho == other.rho == epsilon_to_rho(EPSILON, DELTA * 9 / 10) / 3
    assert one.epsilon == EPSILON / 3


def test_a_selection_takes_a_fifth_and_bundles_share_the_rest(clinic: Resolved) -> None:
    (step,) = compiled("SELECT ward, AVG(cost), AVG(paid) FROM visits GROUP BY ward", clinic,
                       settings(NoiseKind.GAUSSIAN)).steps  # fmt: skip
    whole = epsilon_to_rho(EPSILON, DELTA * 9 / 10)
    assert step.calibrated.selection is not None
    parts = [step.calibrated.selection.loss.rho, *(bundle.loss.rho for bundle in step.calibrated.bundles)]
    for rho, part in zip(parts, (Fraction(1, 5), Fraction(2, 5), Fraction(2, 5)), strict=True):
        assert whole * part * Fraction(99, 100) < rho <= whole * part


def test_a_selection_alone_takes_all(clinic: Resolved) -> None:
    (step,) = compiled("SELECT DISTINCT ward FROM visits", clinic, settings(NoiseKind.GAUSSIAN)).steps
    whole = epsilon_to_rho(EPSILON, DELTA * 9 / 10)
    assert whole * Fraction(99, 100) < step.loss.rho <= whole


@pytest.mark.parametrize("noise", list(NoiseKind))
def test_each_bundle_is_charged_for_the_sensitivity_of_the_plan_that_runs(noise: NoiseKind, clinic: Resolved) -> None:
    for sql in STATEMENTS:
        for step in compiled(sql, clinic, settings(noise)).steps:
            for bundle in step.calibrated.bundles:
                assert bundle.loss == noise_loss(bundle.mechanism, bundle.claim.sensitivity)
                assert isinstance(bundle.mechanism, Gaussian if noise is NoiseKind.GAUSSIAN else Laplace)


def only(statement: Compiled) -> CalibratedPlan:
    (step,) = statement.steps
    return step.calibrated


def test_every_column_has_a_grid_and_belongs_to_one_mechanism(clinic: Resolved) -> None:
    for sql in STATEMENTS:
        for step in compiled(sql, clinic, settings(NoiseKind.GAUSSIAN)).steps:
            spec = step.calibrated.spec  # its constructor refuses a column without a mechanism
            assert len(spec.grids) == len(step.calibrated.columns) and all(grid > 0 for grid in spec.grids)


def test_a_grid_counts_weight_value_and_shift(clinic: Resolved) -> None:
    calibrated = only(compiled("SELECT SUM(cost) FROM visits", clinic, settings(NoiseKind.GAUSSIAN)))
    (part,) = calibrated.gather.parts
    assert isinstance(part, Sum)
    assert calibrated.grids == (Fraction(1, 2) / 2**16 * 2 ** part.bundles[0].shift,)
    assert only(compiled("SELECT COUNT(*) FROM patients", clinic, settings(NoiseKind.GAUSSIAN))).grids == (1,)


def test_less_epsilon_is_more_error_in_the_units_of_the_values(clinic: Resolved) -> None:
    """Errors compare stored releases, whatever the resolution of each."""
    sql = "SELECT ward, SUM(cost), COUNT(*) FROM visits GROUP BY ward"
    errors = [
        only(compiled(sql, clinic, settings(NoiseKind.GAUSSIAN, epsilon))).errors
        for epsilon in (Fraction(4), Fraction(1), Fraction(1, 100))
    ]
    assert all(a < b < c for a, b, c in zip(*errors, strict=True))


def test_a_mixed_key_is_drawn_once_for_each_block(clinic: Resolved) -> None:
    spec = only(compiled("SELECT ward, kind, COUNT(*) FROM visits GROUP BY 1, 2", clinic,
                         settings(NoiseKind.GAUSSIAN))).spec  # fmt: skip
    assert spec.selection is not None and spec.selection.keys == 1


# --- scores ----------------------------------------------------------------------------------------------------------

MOVES = [  # what is asked, whether no row adds less than nothing, and whether there is one block
    ("SELECT PRIVATE_ARGMAX(kind, COUNT(*)) FROM visits", True, True),
    ("SELECT PRIVATE_ARGMAX(kind, SUM(cost)) FROM visits", True, True),
    ("SELECT PRIVATE_ARGMAX(kind, SUM(paid)) FROM visits", False, True),
    ("SELECT PRIVATE_ARGMAX(kind, SUM(cost - 100)) FROM visits", False, True),
    ("SELECT paid > 5, PRIVATE_ARGMAX(kind, COUNT(*)) FROM visits GROUP BY 1", True, False),
    ("SELECT paid > 5, PRIVATE_ARGMAX(kind, SUM(paid)) FROM visits GROUP BY 1", False, False),
    ("SELECT POSTERIOR_SAMPLE(cost > 100) FROM visits", True, True),
    ("SELECT kind, POSTERIOR_SAMPLE(cost > 100) FROM visits GROUP BY kind", True, False),
]


@pytest.mark.parametrize("noise", list(NoiseKind))
@pytest.mark.parametrize(("sql", "non_negative", "single"), MOVES)
def test_scores_move_as_the_plan_that_runs_says(
    sql: str, non_negative: bool, single: bool, noise: NoiseKind, clinic: Resolved
) -> None:
    calibrated = compiled(sql, clinic, settings(noise)).steps[-1].calibrated
    moves, scores, counted = calibrated.moves, calibrated.scores, calibrated.counted
    assert moves is not None and scores is not None and counted is not None
    assert (moves.non_negative, moves.single) == (non_negative, single)
    assert moves.norms == counted.sensitivity and (moves.group_size, moves.change_one) == (1, False)
    assert calibrated.loss.rho == score_loss(scores, moves).rho


@pytest.mark.parametrize("noise", list(NoiseKind))
def test_a_signed_score_in_many_groups_is_charged_for_both_its_sides(noise: NoiseKind, clinic: Resolved) -> None:
    """In squares 2 l2^2; in one group of a count l2^2, and not more than its largest cell."""
    found = [compiled(sql, clinic, settings(noise)).steps[-1].calibrated.moves for sql, *_ in MOVES]
    signed, counts, one = found[5], found[4], found[0]
    assert signed is not None and counts is not None and one is not None
    assert signed.l2_squared == min(2 * signed.norms.l2_squared, signed.norms.l1**2)
    assert counts.l2_squared == min(counts.norms.l2_squared, counts.norms.l1**2) and counts.l1 == counts.norms.l1
    assert one.l1 == one.norms.linf


@pytest.mark.parametrize(("sql", "whole"), [
    ("SELECT POSTERIOR_SAMPLE(cost > 100) FROM visits", 1 << 16),
    ("SELECT POSTERIOR_SAMPLE(birth_year > 1970) FROM patients", 1),
])  # fmt: skip
def test_the_temper_of_a_posterior_is_that_of_a_complete_row(sql: str, whole: int, clinic: Resolved) -> None:
    scores = only(compiled(sql, clinic, settings(NoiseKind.LAPLACE))).scores
    assert isinstance(scores, PosteriorDraws)
    assert scores.whole == whole and scores.likelihood_power == LIKELIHOOD_STEPS * whole / scores.scale
    rich = only(compiled(sql, clinic, settings(NoiseKind.LAPLACE, Fraction(1000)))).scores
    assert isinstance(rich, PosteriorDraws) and rich.likelihood_power == 1


@pytest.mark.parametrize(
    ("noise", "epsilon", "delta", "sql"),
    [
        (NoiseKind.GAUSSIAN, "1", "0", "SELECT COUNT(*) FROM visits"),
        (NoiseKind.LAPLACE, "1", "0", "SELECT ward, COUNT(*) FROM visits GROUP BY ward"),
        (NoiseKind.GAUSSIAN, "1", "0", "SELECT ward, COUNT(*) FROM visits GROUP BY ward"),
        (NoiseKind.LAPLACE, "1e-13", "0", "SELECT COUNT(*) FROM visits"),
        (NoiseKind.LAPLACE, "1e-30", "0", "SELECT COUNT(*) FROM visits"),
        (NoiseKind.GAUSSIAN, "1e-30", "1e-30", "SELECT COUNT(*) FROM visits"),
        (NoiseKind.GAUSSIAN, "1", "1e-30", "SELECT ward, COUNT(*) FROM visits GROUP BY ward"),
    ],
)
def test_what_cannot_be_drawn_or_charged_is_refused(
    noise: NoiseKind, epsilon: str, delta: str, sql: str, clinic: Resolved
) -> None:
    with pytest.raises(InvalidParameter):
        compiled(sql, clinic, settings(noise, Fraction(epsilon), Fraction(delta)))
