"""The two mechanisms, as an analyst asks for them: what they are made of, and what may not be asked for.

    watch_threshold   the sparse vector technique: which of many numbers lie above a threshold
    watch_holdout     Thresholdout (Dwork et al. 2015): whether means of a training set hold on private rows. A mean is
                      a sum divided by a public n, so one unit moves it by C/n; the training set's are public or
                      released.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.errors import InvalidParameter
from dpsql.interactive.decimals import format_fraction
from dpsql.interactive.interaction import Interaction, MechanismTerms
from dpsql.privacy.threshold import SparseVector, calibrate_above_threshold, thresholdout_from_sigma, calibrate_thresholdout
from dpsql.queries import QueryExecutor
from dpsql.sql.asked_commands import HOLDOUT, THRESHOLD

MAX_ANSWERS = 10_000
"""Above the threshold, of one mechanism: each costs."""


def declare_threshold(
    queries: QueryExecutor,
    threshold: Fraction,
    *,
    epsilon: Fraction | None = None,
    answers: Fraction = Fraction(1),
    sensitivity: Fraction | None = None,
) -> Interaction:
    """Which of many questions lie above a threshold. Nothing is charged until the first one is asked."""
    epsilon = queries.settings.statement.epsilon if epsilon is None else epsilon
    require_positive(epsilon=epsilon, sensitivity=sensitivity)
    times = _require_count("answers", answers)

    def spec(value_sensitivity: Fraction) -> SparseVector:
        return calibrate_above_threshold(threshold, value_sensitivity, epsilon, times)

    text = f"above_threshold({format_fraction(threshold)}, epsilon => {format_fraction(epsilon)}, answers => {times}"
    terms = MechanismTerms(THRESHOLD, "above_threshold", times, spec, text, declared=sensitivity, epsilon=epsilon)
    return Interaction(queries, terms)


def declare_holdout(
    queries: QueryExecutor,
    *,
    n: Fraction,
    threshold: Fraction,
    sigma: Fraction | None = None,
    epsilon: Fraction | None = None,
    budget: Fraction = Fraction(10),
    sensitivity: Fraction | None = None,
) -> Interaction:
    """Whether means of a training set hold on private rows. Nothing is charged until the first one is asked."""
    if (sigma is None) == (epsilon is None):
        raise InvalidParameter(
            "a holdout has sigma or epsilon, one of the two",
            hint="With sigma the loss is 2 * budget * sensitivity / (sigma * n); with epsilon, sigma follows from it.",
        )
    require_positive(threshold=threshold, sigma=sigma, epsilon=epsilon, sensitivity=sensitivity)
    overfits, rows = _require_count("budget", budget), _require_count("n", n, 10**15)

    def spec(value_sensitivity: Fraction) -> SparseVector:
        if sigma is not None:
            return thresholdout_from_sigma(threshold, value_sensitivity, sigma, overfits)
        assert epsilon is not None
        return calibrate_thresholdout(threshold, value_sensitivity, epsilon, overfits)

    noise = f"epsilon => {format_fraction(epsilon)}" if epsilon is not None else f"sigma => {format_fraction(sigma or Fraction(0))}"
    text = f"holdout(n => {rows}, threshold => {format_fraction(threshold)}, {noise}, budget => {overfits}"
    terms = MechanismTerms(HOLDOUT, "the holdout", overfits, spec, text, Fraction(rows), sensitivity, epsilon)
    return Interaction(queries, terms)


def require_positive(**parameters: Fraction | None) -> None:
    for name, value in parameters.items():
        if value is not None and not 0 < value <= 10**18:
            raise InvalidParameter(f"{name} must be above 0" if value <= 0 else f"{name} must be at most 1e18")


def _require_count(name: str, value: Fraction, max_value: int = MAX_ANSWERS) -> int:
    if value.denominator != 1 or not 1 <= value <= max_value:
        raise InvalidParameter(f"{name} must be a whole number from 1 to {max_value}")
    return int(value)
