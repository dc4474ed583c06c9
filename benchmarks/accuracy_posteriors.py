"""Credible intervals of posteriors from noisy sums, beside those of exact ones, for epsilon from 0.1 to 10.

    python -m benchmarks.accuracy_posteriors            4,000 parameters for each cell
    python -m benchmarks.accuracy_posteriors --quick    400

Parameters are drawn from the prior, rows from the parameter, noise from the sampler of releases, of one unit with one
row. "holds" is how often the 95 % interval has the parameter in it, "plug-in" the same of the posterior that takes
noisy sums for exact ones, "width" the mean width over that of the posterior without noise. Then a share told in
two ways for the same epsilon: the root mean square error of BETA_POSTERIOR's mean, of one draw of POSTERIOR_SAMPLE, and
of the mean and one draw of the posterior without noise. At the end, the CPU that 10,000 groups take.
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpsql.privacy.noise import Sensitivity
from dpsql.privacy.sampling import ExactSampler
from dpsql.privacy.score_selection import (
    SHARE_STEPS,
    CellMoves,
    PosteriorDraws,
    calibrate_scale_by_epsilon,
    draw_shares,
    penalty_span,
)
from dpsql.session.postprocess.latent_sums import SumNoise
from dpsql.session.postprocess.posteriors import (
    MeanPosterior,
    NormalPrior,
    ProportionPosterior,
    infer_mean,
    infer_proportion,
)

Floats = npt.NDArray[np.float64]
Told = ProportionPosterior | MeanPosterior

RUNS, QUICK_RUNS, GROUPS = 4_000, 400, 10_000
EPSILONS, ROWS = (0.1, 0.3, 1.0, 3.0, 10.0), (30, 300, 10_000)
STEP = 1 << 16
"""What a row weighs in a cell."""
SURE = SumNoise(False, 1e-9)


def noise(epsilon: float, sensitivity: float, columns: int, runs: int) -> tuple[SumNoise, Floats]:
    scale = Fraction(sensitivity / epsilon).limit_denominator(1000)
    drawn = ExactSampler().laplace(runs * columns, scale * STEP)
    return SumNoise(True, float(scale)), drawn.reshape(columns, runs) / STEP


def shares(epsilon: float, rows: int, runs: int) -> tuple[float, float, float]:
    random = np.random.default_rng(7)
    truth, prior = random.uniform(size=runs), np.ones(runs)
    ones = random.binomial(rows, truth).astype(np.float64)
    how, drawn = noise(epsilon, 1.0, 2, runs)
    noisy = np.stack([ones, rows - ones]) + drawn

    def told(sums: Floats, how: SumNoise) -> ProportionPosterior:
        return infer_proportion(sums[0], sums[1], (how, how), prior, prior, 0.95)

    exact = told(np.stack([ones, rows - ones]), SURE)
    return figures(told(noisy, how), told(np.maximum(noisy, 0), SURE), exact, truth)


def means(epsilon: float, rows: int, runs: int) -> tuple[float, float, float]:
    """Of values within bounds that are some ten deviations apart."""
    random = np.random.default_rng(8)
    truth, sigma = random.uniform(-0.5, 0.5, runs), random.uniform(0.03, 0.14, runs)
    mean = random.normal(truth, sigma / np.sqrt(rows))
    square = sigma**2 * random.chisquare(rows - 1, runs) + rows * mean**2
    sums = np.stack([rows - square, square, rows * mean])
    how, drawn = noise(epsilon, 2.0, 3, runs)

    def told(sums: Floats, how: SumNoise) -> MeanPosterior:
        return infer_mean(sums[0], sums[1], sums[2], (how,) * 3, NormalPrior(), 0.95)

    noisy = sums + drawn
    possible = np.stack([np.maximum(noisy[0], 2.5), np.maximum(noisy[1], 2.5), noisy[2]])
    edge = 0.999 * np.sqrt((possible[0] + possible[1]) * possible[1])
    possible[2] = np.clip(possible[2], -edge, edge)
    return figures(told(noisy, how), told(possible, SURE), told(sums, SURE), truth)


def figures(found: Told, plugged: Told, exact: Told, truth: Floats) -> tuple[float, float, float]:
    def holds(one: Told) -> float:
        return float(np.mean((one.low <= truth) & (truth <= one.high)))

    return holds(found), holds(plugged), float(np.mean(found.high - found.low) / np.mean(exact.high - exact.low))


def draws(epsilon: float, rows: int, runs: int) -> tuple[float, float, float, float]:
    """Errors of the noisy posterior's mean, of a tempered draw, and of the exact posterior's mean and draw."""
    random, prior = np.random.default_rng(9), np.ones(runs)
    truth = random.uniform(0.05, 0.95, runs)
    ones = random.binomial(rows, truth)
    how, drawn = noise(epsilon, 1.0, 2, runs)
    noisy = np.stack([ones, rows - ones]) + drawn
    mean = infer_proportion(noisy[0], noisy[1], (how, how), prior, prior, 0.95).mean
    first = SHARE_STEPS // 20
    unit = CellMoves(Sensitivity(STEP, STEP**2, STEP), non_negative=True, single=True)
    scale = calibrate_scale_by_epsilon(1, penalty_span(first), unit, Fraction(epsilon).limit_denominator(1000))
    drawing = PosteriorDraws(scale, 1, first, Fraction(1), Fraction(1), STEP)
    (tempered,) = draw_shares(drawing, np.stack([ones, rows - ones], axis=1) * STEP, ExactSampler())
    exact = (ones + 1) / (rows + 2), random.beta(ones + 1.0, rows - ones + 1.0)
    found = (mean, tempered / SHARE_STEPS, *exact)
    mean_error, draw_error, best, best_draw = (float(np.sqrt(np.mean((one - truth) ** 2))) for one in found)
    return mean_error, draw_error, best, best_draw


def seconds() -> None:
    ones, prior = np.full(GROUPS, 300.0), np.ones(GROUPS)
    for name, scale in (("small", 1.0), ("large", 200.0)):
        started = time.process_time()
        infer_proportion(ones, 2 * ones, (SumNoise(True, scale),) * 2, prior, prior, 0.95)
        middle = time.process_time()
        infer_mean(2 * ones, ones, ones / 10, (SumNoise(True, scale),) * 3, NormalPrior(), 0.95)
        ended = time.process_time()
        print(f"{GROUPS} groups, noise that is {name}: Beta {middle - started:.1f} s, normal {ended - middle:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    runs = QUICK_RUNS if parser.parse_args().quick else RUNS
    for name, asked in (("BETA_POSTERIOR", shares), ("NORMAL_POSTERIOR", means)):
        print(f"\n{name}\n\n| epsilon | rows | holds, % | plug-in, % | width |\n|---|---|---|---|---|")
        for epsilon in EPSILONS:
            for rows in ROWS:
                ours, plugged, width = asked(epsilon, rows, runs)
                print(f"| {epsilon:g} | {rows:,} | {100 * ours:.1f} | {100 * plugged:.1f} | {width:.2f} |", flush=True)
    print("\nerror of a share, %\n\n| epsilon | rows | BETA_POSTERIOR | POSTERIOR_SAMPLE | exact mean | exact draw |")
    print("|---|---|---|---|---|---|")
    for epsilon in EPSILONS:
        for rows in ROWS:
            errors = " | ".join(f"{100 * one:.2f}" for one in draws(epsilon, rows, runs))
            print(f"| {epsilon:g} | {rows:,} | {errors} |", flush=True)
    print()
    seconds()


if __name__ == "__main__":
    main()
