"""How good PRIVATE_ARGMAX is against the exact one, by epsilon: the exponential mechanism and permute-and-flip.

    python -m benchmarks.accuracy_selection              1,000,000 draws each
    python -m benchmarks.accuracy_selection --quick      100,000 draws

One row for each privacy unit, 100 rows over 20 values, as frequent as Zipf's law has it (the best has 28, the next
14); "close" has 20 values of 45 to 55 rows. The same epsilon is charged for both (`delta = 0`). "right" is how often
the best value is chosen, "short" by how many rows the value chosen is below the best on average; a uniform guess is
there to compare with. "noisy" is what one would do without: Laplace noise in every count, then the largest.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpsql.privacy.noise import Sensitivity
from dpsql.privacy.sampling import ExactSampler
from dpsql.privacy.score_selection import CellMoves, Ranking, calibrate_scale_by_epsilon, rank_candidates

Counts = npt.NDArray[np.int64]

EPSILONS = (Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(5), Fraction(10))
VALUES = 20
ONE = CellMoves(Sensitivity(1, 1, 1), non_negative=True, single=True)


def zipf() -> Counts:
    shares = 1 / np.arange(1, VALUES + 1)
    counts: Counts = np.rint(100 * shares / shares.sum()).astype(np.int64)
    return counts


def close() -> Counts:
    return np.array([45 + place % 11 for place in range(VALUES)], np.int64)


def draws(counts: Counts, epsilon: Fraction, how: str, n: int) -> Counts:
    """The places chosen, `n` times."""
    sampler = ExactSampler()
    if how == "noisy":
        noise = sampler.laplace(n * len(counts), 1 / epsilon).reshape(n, -1)
        noisy: Counts = np.argmax(counts + noise, axis=1)
        return noisy
    ranking = Ranking(calibrate_scale_by_epsilon(1, 1, ONE, epsilon), 1, how == "flips", 0)
    return rank_candidates(ranking, np.tile(counts, (n, 1)), sampler)[:, 0]


def figures(counts: Counts, places: Counts) -> tuple[float, float]:
    short = counts.max() - counts[places]
    return float((short == 0).mean()), float(short.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    n = 100_000 if parser.parse_args().quick else 1_000_000
    for name, counts in (("zipf", zipf()), ("close", close())):
        guess = figures(counts, np.arange(VALUES))
        print(f"{name}: a guess is right {guess[0]:.1%}, short {guess[1]:.1f}")
        print("epsilon   exponential          permute-and-flip     noisy counts")
        for epsilon in EPSILONS:
            cells = []
            for how in ("exponential", "flips", "noisy"):
                right, short = figures(counts, draws(counts, epsilon, how, n))
                cells.append(f"right {right:6.1%} short {short:6.2f}")
            print(f"{float(epsilon):<9g} {'   '.join(cells)}")


if __name__ == "__main__":
    main()
