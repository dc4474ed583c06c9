"""Errors of threshold queries, and of the reusable holdout beside one that is reused without protection.

    python -m benchmarks.accuracy_holdout               200 runs of threshold queries, 10 of the holdout
    python -m benchmarks.accuracy_holdout --quick       20 runs and 2

Threshold queries: 100 counts, of which the last is above 1,000 by a margin and all others below it by the same. "right"
is the share of runs in which all 100 are answered rightly; "90 % at" is the least margin, of the powers of 2, with
which nine in ten are; "claimed" is the margin that `explain` tells for 90 %.

Holdout: Freedman's paradox. 10,000 units in the training set and in the holdout, 2,000 features and a label, all of
them coins that know nothing of each other. The analyst asks the holdout how often each feature is the label, keeps the
features that look good in both sets, and lets them vote. The accuracy of that vote, as each holdout tells it, is
compared with the truth, 0.5. Reused without protection, the holdout tells what the analyst has fitted to it.
Thresholdout has threshold 4/100, one overfit, and the epsilon of the row; "refused" is the share of runs in which noise
used the overfit up before the vote was asked about, and the analyst is left with the training set. Sums are made here;
judging and noise are dpsql's.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpsql.privacy.exact import Exact
from dpsql.privacy.release import evaluate_threshold_query
from dpsql.privacy.sampling import ExactSampler
from dpsql.privacy.sparse_vector import (
    SparseVectorState,
    ThresholdAnswer,
    ThresholdQuery,
    calibrate_above_threshold,
    calibrate_thresholdout,
)

Coins = npt.NDArray[np.int8]

EPSILONS = ("1/10", "1/2", "1", "2", "10")
QUESTIONS, THRESHOLD = 100, 1_000
UNITS, FEATURES, OVERFITS, APART = 10_000, 2_000, 1, Fraction(4, 100)
GOOD = 0.005
"""One standard deviation of a mean of coins."""


def put(watch: SparseVectorState, value: int, question: ThresholdQuery, number: int) -> ThresholdAnswer:
    return evaluate_threshold_query(Exact([()], [np.array([value], np.int64)]), question, watch, number)


def all_right(epsilon: Fraction, margin: int) -> bool:
    watch = SparseVectorState(calibrate_above_threshold(Fraction(THRESHOLD), Fraction(1), epsilon, 1), ExactSampler())
    counts = [THRESHOLD - margin] * (QUESTIONS - 1) + [THRESHOLD + margin]
    for number, count in enumerate(counts, 1):
        if put(watch, count, ThresholdQuery(Fraction(1), 1), number).above:
            return number == QUESTIONS
    return False


def share_right(epsilon: Fraction, margin: int, runs: int) -> float:
    return sum(all_right(epsilon, margin) for _ in range(runs)) / runs


def thresholds(runs: int) -> None:
    print(f"threshold queries, {QUESTIONS} of them, sensitivity 1, {runs} runs")
    print(f"{'epsilon':>8} {'right at 8':>11} {'at 64':>7} {'at 512':>7} {'90 % at':>8} {'claimed':>8}")
    for text in EPSILONS:
        epsilon = Fraction(text)
        shares = {margin: share_right(epsilon, margin, runs) for margin in (8, 64, 512)}
        least = next(m for m in (2**k for k in range(20)) if share_right(epsilon, m, runs) >= 0.9)
        claimed = calibrate_above_threshold(Fraction(THRESHOLD), Fraction(1), epsilon, 1).accuracy_margin(
            QUESTIONS, 0.1
        )
        print(f"{text:>8} " + f"{shares[8]:11.0%} {shares[64]:7.0%} {shares[512]:7.0%} {least:8} {claimed:8.0f}")


# --- the holdout -----------------------------------------------------------------------------------------------------


class Reused:
    """A holdout that tells its exact means, as often as it is asked."""

    refused = False

    def mean(self, rows: Coins, beside: float) -> float:
        return float(rows.mean())


class Reusable:
    def __init__(self, epsilon: Fraction) -> None:
        self.watch = SparseVectorState(
            calibrate_thresholdout(APART, Fraction(1, UNITS), epsilon, OVERFITS), ExactSampler()
        )
        self.number = self.overfits = 0

    @property
    def refused(self) -> bool:
        return self.overfits == OVERFITS

    def mean(self, rows: Coins, beside: float) -> float:
        if self.refused:
            return beside
        self.number += 1
        question = ThresholdQuery(Fraction(1, UNITS), 1, Fraction(beside))
        verdict = put(self.watch, int(rows.sum(dtype=np.int64)), question, self.number)
        self.overfits += verdict.above
        return beside if verdict.value is None else float(verdict.value)


def agreement(features: Coins, label: Coins) -> Coins:
    """1 where a feature is the label."""
    result: Coins = (features == label[:, None]).astype(np.int8)
    return result


def vote(agrees: Coins, chosen: npt.NDArray[np.intp], signs: npt.NDArray[np.float64]) -> Coins:
    """1 where most of the chosen features, each as it looked, are right about the label."""
    votes = np.where(signs > 0, agrees[:, chosen], 1 - agrees[:, chosen])
    result: Coins = (2 * votes.sum(axis=1, dtype=np.int64) > votes.shape[1]).astype(np.int8)
    return result


def told(holdout: Reused | Reusable, train: Coins, held: Coins) -> tuple[float, float, bool]:
    """The accuracy of the vote as the holdout tells it, and on the training set; whether it was refused."""
    means = train.mean(axis=0)
    seen = np.array([holdout.mean(held[:, j], float(means[j])) for j in range(FEATURES)])
    good = ((means - 0.5) * (seen - 0.5) > 0) & (np.minimum(abs(means - 0.5), abs(seen - 0.5)) > GOOD)
    chosen = np.flatnonzero(good)
    chosen = chosen[: len(chosen) - (len(chosen) + 1) % 2]  # an odd number has no ties
    signs = np.sign(means[chosen] - 0.5)
    fitted, fresh = vote(train, chosen, signs), vote(held, chosen, signs)
    refused = holdout.refused
    return holdout.mean(fresh, float(fitted.mean())), float(fitted.mean()), refused


def holdouts(runs: int) -> None:
    print(f"\nholdout, {UNITS} units, {FEATURES} coins, {OVERFITS} overfit, {runs} runs; the truth is 0.5")
    print(f"{'':>20} {'accuracy told':>14} {'off by':>8} {'refused':>8}")
    random = np.random.default_rng(7)
    rows: dict[str, list[tuple[float, bool]]] = {}
    for _ in range(runs):
        train, held = (agreement(coins(random, FEATURES), coins(random, 1)[:, 0]) for _ in range(2))
        accuracy, fitted, _ = told(Reused(), train, held)
        rows.setdefault("training set", []).append((fitted, False))
        rows.setdefault("reused", []).append((accuracy, False))
        for text in EPSILONS:
            accuracy, _, refused = told(Reusable(Fraction(text)), train, held)
            rows.setdefault(f"epsilon {text}", []).append((accuracy, refused))
    for name, found in rows.items():
        accuracies, refusals = (np.array(values, float) for values in zip(*found, strict=True))
        off = np.abs(accuracies - 0.5).mean()
        print(f"{name:>20} {accuracies.mean():14.3f} {off:8.3f} {refusals.mean():8.0%}")


def coins(random: np.random.Generator, features: int) -> Coins:
    return random.integers(0, 2, (UNITS, features), np.int8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    thresholds(20 if quick else 200)
    holdouts(2 if quick else 10)


if __name__ == "__main__":
    main()
