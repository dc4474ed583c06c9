"""The two mechanisms, as an analyst asks for them: what they are made of, and what may not be asked for.

    watch_threshold   the sparse vector technique: which of many numbers lie above a threshold
    watch_holdout     Thresholdout (Dwork et al. 2015): whether means of a training set hold on private rows. A mean is
                      a sum divided by a public n, so one unit moves it by C/n; the training set's are public or
                      released.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpsql.errors import InvalidParameter
from dpsql.interactive.decimals import plain
from dpsql.interactive.interaction import Interaction, Terms
from dpsql.interactive.question import Statement
from dpsql.privacy.threshold import SparseVector, above_threshold, thresholdout, thresholdout_under
from dpsql.queries import Queries

MOST_ANSWERS = 10_000
"""Above the threshold, of one mechanism: each costs."""


def watch_threshold(
    queries: Queries,
    threshold: Fraction,
    *,
    epsilon: Fraction | None,
    answers: int,
    sensitivity: Fraction | None,
    foreseen: Sequence[Statement] = (),
) -> Interaction:
    """Which of many questions lie above a threshold. Nothing is charged until the first one is asked."""
    epsilon = queries.settings.statement.epsilon if epsilon is None else epsilon
    _require_positive(epsilon=epsilon, sensitivity=sensitivity)
    _require_count("answers", answers)

    def spec(most: Fraction) -> SparseVector:
        return above_threshold(threshold, most, epsilon, answers)

    text = f"above_threshold({plain(threshold)}, epsilon => {plain(epsilon)}, answers => {answers}"
    terms = Terms("above_threshold", answers, spec, text, declared=sensitivity, epsilon=epsilon)
    return Interaction(queries, terms, foreseen)


def watch_holdout(
    queries: Queries,
    *,
    n: int,
    threshold: Fraction,
    sigma: Fraction | None,
    epsilon: Fraction | None,
    budget: int,
    sensitivity: Fraction | None,
) -> Interaction:
    """Whether means of a training set hold on private rows. Nothing is charged until the first one is asked."""
    if (sigma is None) == (epsilon is None):
        raise InvalidParameter(
            "a holdout has sigma or epsilon, one of the two",
            hint="With sigma the loss is 2 * budget * sensitivity / (sigma * n); with epsilon, sigma follows from it.",
        )
    _require_positive(threshold=threshold, sigma=sigma, epsilon=epsilon, sensitivity=sensitivity)
    _require_count("budget", budget)
    _require_count("n", n, 10**15)

    def spec(most: Fraction) -> SparseVector:
        if sigma is not None:
            return thresholdout(threshold, most, sigma, budget)
        assert epsilon is not None
        return thresholdout_under(threshold, most, epsilon, budget)

    noise = f"epsilon => {plain(epsilon)}" if epsilon is not None else f"sigma => {plain(sigma or Fraction(0))}"
    text = f"holdout(n => {n}, threshold => {plain(threshold)}, {noise}, budget => {budget}"
    terms = Terms("the holdout", budget, spec, text, Fraction(n), sensitivity, epsilon)
    return Interaction(queries, terms)


def _require_positive(**given: Fraction | None) -> None:
    for name, value in given.items():
        if value is not None and not 0 < value <= 10**18:
            raise InvalidParameter(f"{name} must be above 0")


def _require_count(name: str, value: int, most: int = MOST_ANSWERS) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidParameter(f"{name} must be a whole number from 1 to {most}")
