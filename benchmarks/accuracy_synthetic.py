"""Errors of synthetic tables against the exact marginals, by method and epsilon.

    python -m benchmarks.accuracy_synthetic              five tables of each kind
    python -m benchmarks.accuracy_synthetic --quick      one

20,000 made-up patients of one row each: sex, ward (8), age (16 bins), cost (16 bins) and smoker, which hang together.
The error of a marginal is the sum over its cells of |synthetic - exact|, divided by the number of patients; shown are
means over all one-way and all two-way marginals, and over the tables made. Laplace noise; the loss is epsilon, pure.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dpsql.privacy.sampling import ExactSampler
from dpsql.privacy.synthetic.synthesis import ROW, SynthesisMethod, SynthesisRequest, calibrate_synthesis_by_epsilon
from dpsql.privacy.weighted_rows import Axes, UnitMass, WeightedRows

Rows = npt.NDArray[np.int64]

PATIENTS = 20_000
SIZES = (2, 8, 16, 16, 2)
EPSILONS = (Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(10))
ONES = tuple((axis,) for axis in range(len(SIZES)))
PAIRS = tuple(combinations(range(len(SIZES)), 2))


def patients(seed: int = 1) -> Rows:
    draws = np.random.default_rng(seed)
    sex = draws.integers(0, 2, PATIENTS)
    age = np.clip(draws.normal(8 + 2 * sex, 4), 0, 15).astype(np.int64)
    ward = np.clip(age / 3 + draws.normal(0, 1.5, PATIENTS), 0, 7).astype(np.int64)
    cost = np.clip(draws.gamma(2, 1 + ward / 2), 0, 15).astype(np.int64)
    smoker = (draws.random(PATIENTS) < 0.1 + 0.3 * (age > 8)).astype(np.int64)
    return np.stack([sex, ward, age, cost, smoker], axis=1)


def counts(rows: Rows, marginal: tuple[int, ...]) -> Rows:
    shape = tuple(SIZES[axis] for axis in marginal)
    places = np.ravel_multi_index(tuple(rows[:, axis] for axis in marginal), shape)
    return np.bincount(places, minlength=int(np.prod(shape)))


def error(rows: Rows, synthetic: Rows, marginals: tuple[tuple[int, ...], ...]) -> float:
    off = [np.abs(counts(rows, one) - counts(synthetic, one)).sum() for one in marginals]
    return float(np.mean(off)) / PATIENTS


def made(method: SynthesisMethod, epsilon: Fraction, tally: WeightedRows) -> Rows:
    axes = Axes((0,) * len(SIZES), SIZES)
    study = calibrate_synthesis_by_epsilon(
        SynthesisRequest(method, axes, UnitMass(1, 1, True, 1, False), ((),) * len(SIZES), 100_000), epsilon
    )
    parts, _, *codes = study.perform(tally, ExactSampler())
    return np.stack([column[parts == ROW] for column in codes], axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    runs = 1 if parser.parse_args().quick else 5
    rows = patients()
    columns = tuple(np.ascontiguousarray(column) for column in rows.T)
    tally = Axes((0,) * len(SIZES), SIZES).to_weighted_rows((*columns, np.ones(PATIENTS, np.int64)))
    print("| epsilon | " + " | ".join(f"{method.value}, one-way | two-way" for method in SynthesisMethod) + " |")
    print("|---|" + "---|" * (2 * len(SynthesisMethod)))
    for epsilon in EPSILONS:
        figures = []
        for method in SynthesisMethod:
            tables = [made(method, epsilon, tally) for _ in range(runs)]
            for marginals in (ONES, PAIRS):
                figures.append(f"{100 * np.mean([error(rows, table, marginals) for table in tables]):.1f} %")
        print(f"| {float(epsilon):g} | {' | '.join(figures)} |")


if __name__ == "__main__":
    main()
