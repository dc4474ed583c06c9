"""The two mechanisms, as an analyst asks for them: what they are made of, and what may not be asked for.

    watch_threshold   the sparse vector technique: which of many numbers lie above a threshold
    watch_holdout     Thresholdout (Dwork et al. 2015): whether means of a training set hold on private rows. A mean is
                      a sum divided by a public n, so one unit moves it by C/n; the training set's are public or
                      released.
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.errors import InvalidParameter
from dpsql.interactive.decimals import plain
from dpsql.interactive.interaction import Interaction, Terms
from dpsql.privacy.threshold import SparseVector, above_threshold, thresholdout, thresholdout_under
from dpsql.queries import Queries
from dpsql.sql.asked_commands import HOLDOUT, THRESHOLD

MOST_ANSWERS = 10_000
"""Above the threshold, of one mechanism: each costs."""


def watch_threshold(
    queries: Queries,
    threshold: Fraction,
    *,
    epsilon: Fraction | None = None,
    answers: Fraction = Fraction(1),
    sensitivity: Fraction | None = None,
) -> Interaction:
    """Which of many questions lie above a threshold. Nothing is charged until the first one is asked."""
    epsilon = queries.settings.statement.epsilon if epsilon is None else epsilon
    require_positive(epsilon=epsilon, sensitivity=sensitivity)
    times = _count("answers", answers)

    def spec(most: Fraction) -> SparseVector:
        return above_threshold(threshold, most, epsilon, times)

    text = f"above_threshold({plain(threshold)}, epsilon => {plain(epsilon)}, answers => {times}"
    terms = Terms(THRESHOLD, "above_threshold", times, spec, text, declared=sensitivity, epsilon=epsilon)
    return Interaction(queries, terms)


def watch_holdout(
    queries: Queries,
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
    overfits, rows = _count("budget", budget), _count("n", n, 10**15)

    def spec(most: Fraction) -> SparseVector:
        if sigma is not None:
            return thresholdout(threshold, most, sigma, overfits)
        assert epsilon is not None
        return thresholdout_under(threshold, most, epsilon, overfits)

    noise = f"epsilon => {plain(epsilon)}" if epsilon is not None else f"sigma => {plain(sigma or Fraction(0))}"
    text = f"holdout(n => {rows}, threshold => {plain(threshold)}, {noise}, budget => {overfits}"
    terms = Terms(HOLDOUT, "the holdout", overfits, spec, text, Fraction(rows), sensitivity, epsilon)
    return Interaction(queries, terms)


def require_positive(**given: Fraction | None) -> None:
    for name, value in given.items():
        if value is not None and not 0 < value <= 10**18:
            raise InvalidParameter(f"{name} must be above 0" if value <= 0 else f"{name} must be at most 1e18")


def _count(name: str, value: Fraction, most: int = MOST_ANSWERS) -> int:
    if value.denominator != 1 or not 1 <= value <= most:
        raise InvalidParameter(f"{name} must be a whole number from 1 to {most}")
    return int(value)
