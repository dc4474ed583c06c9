"""MEDIAN by the exponential mechanism, by smooth sensitivity and by propose-test-release, against the exact median.

    python -m benchmarks.accuracy_median              400 draws each
    python -m benchmarks.accuracy_median --quick      100 draws

One value for each privacy unit, between 0 and 1000 in 1,001 bins: lognormal, so that values are dense around the median
and thin further up. All three are charged the same (epsilon, delta = 1e-6): propose-test-release takes half of epsilon
for its test and half for its noise, and proposes 20 of 1,000. The figure is the mean of |answer - exact|; of
propose-test-release also how often it answers at all.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import numpy as np

from dpsql.privacy.exact import Cells
from dpsql.privacy.exponential import Rank, UnitContribution, calibrate_picks_by_epsilon, choose_bins
from dpsql.privacy.median import (
    NO_ANSWER,
    BlockReach,
    calibrate_propose_test_release,
    calibrate_smooth_median,
    release_noisy_medians,
    release_tested_medians,
)
from dpsql.privacy.sampling import ExactSampler

EPSILONS = (Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(5), Fraction(10))
DELTA = Fraction(1, 10**6)
UNITS = (100, 1_000, 10_000)
BINS = 1_001
PROPOSAL = 20
ONE = BlockReach(steps=1, blocks=1)


def histogram(units: int) -> tuple[Cells, int]:
    """The counts of all bins, and the place of the lower median."""
    values = np.clip(np.random.default_rng(1).lognormal(5.0, 0.6, units), 0, BINS - 1).astype(np.int64)
    counts = np.bincount(values, minlength=BINS)
    return counts, int(np.sort(values)[(units + 1) // 2 - 1])


def answers(how: str, counts: Cells, epsilon: Fraction, draws: int) -> Cells:
    sampler, blocks = ExactSampler(), np.tile(counts, (draws, 1))
    match how:
        case "smooth":
            return release_noisy_medians(calibrate_smooth_median(epsilon, DELTA, ONE, BINS), blocks, sampler)
        case "ptr":
            return release_tested_medians(
                calibrate_propose_test_release(epsilon / 2, DELTA, PROPOSAL, ONE), blocks, sampler
            )
        case _:
            (pick,) = calibrate_picks_by_epsilon(
                (Rank(Fraction(1, 2)),), UnitContribution(1, True, True), BINS, epsilon
            )
            return choose_bins(pick, blocks, sampler)


def figure(found: Cells, exact: int) -> str:
    there = found[found != NO_ANSWER]
    error = f"{np.abs(there - exact).mean():8.1f}" if len(there) else "       -"
    return error if len(there) == len(found) else f"{error} ({len(there) / len(found):.0%})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    draws = 100 if parser.parse_args().quick else 400
    print("units   epsilon  exponential   smooth        ptr (answered)")
    for units in UNITS:
        counts, exact = histogram(units)
        for epsilon in EPSILONS:
            cells = [figure(answers(how, counts, epsilon, draws), exact) for how in ("exponential", "smooth", "ptr")]
            print(f"{units:<7} {float(epsilon):<8g} {'      '.join(cells)}")


if __name__ == "__main__":
    main()
