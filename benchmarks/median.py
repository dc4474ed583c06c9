"""Error of quantiles by region on the common workload, at epsilon 1 and delta 1e-6, by bins and norm.

    python -m benchmarks.median                 median, ninth decile and MAX; 100 runs each
    python -m benchmarks.median --quick         20 runs

Error is the mean over regions of |answer - exact unbounded answer| / exact, in percent: what clipping and the width of
bins take away is in it. "sampled rows" is what other tools do, on the same rows: 60 rows of each user kept at random,
20 in each of 3 regions, every row weighing 1, and the exponential mechanism on the same bins (OpenDP 0.16, so set up,
was measured at 0.44 % for the median). Exact counts are made here as a rewritten plan makes them; draws are dpsql's.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from benchmarks.workload import REGIONS, Payments, payments
from dpsql.privacy.exact import Cells
from dpsql.privacy.exponential import (
    ExtremeTarget,
    Pick,
    Rank,
    Target,
    UnitContribution,
    calibrate_picks_by_epsilon,
    calibrate_picks_by_rho,
    choose_bins,
)
from dpsql.privacy.loss import epsilon_to_rho
from dpsql.privacy.sampling import ExactSampler

Floats = npt.NDArray[np.float64]

EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
UPPER = 100.0
WEIGHT = 16
NORMS, BINS = (10, 20, 30, 60), (256, 4096, 65536)
TARGETS: dict[str, Target] = {"median": Rank(Fraction(1, 2)), "p90": Rank(Fraction(9, 10)), "max": ExtremeTarget(True)}
REGIONS_KEPT, ROWS_KEPT = 3, 20


def weights(data: Payments, norm: int, summed: bool) -> Cells:
    """What each row weighs: its unit counts like at most `norm` rows (SOUNDNESS 4)."""
    users = int(data.user.max()) + 1
    rows = np.bincount(data.user, minlength=users)
    size = rows
    if not summed:
        per_group = np.bincount(data.user * REGIONS + data.region, minlength=users * REGIONS).reshape(users, REGIONS)
        size = np.ceil(np.sqrt((per_group**2).sum(axis=1))).astype(np.int64) + 1
    per_unit = np.where(rows <= norm, 1 << WEIGHT, np.minimum((norm << WEIGHT) // np.maximum(size, 1), 1 << WEIGHT))
    result: Cells = per_unit[data.user]
    return result


def histogram(data: Payments, weight: Cells, bins: int) -> Cells:
    """One row of weights for each region, one column for each bin of [0, UPPER]."""
    place = np.minimum((data.amount / UPPER * bins).astype(np.int64), bins - 1)
    # Sums stay below 2^53, where a float holds every whole number.
    sums = np.bincount(data.region * bins + place, weights=weight.astype(np.float64), minlength=REGIONS * bins)
    return sums.astype(np.int64).reshape(REGIONS, bins)


def sampled(data: Payments) -> Cells:
    """1 for the rows that are kept: at most ROWS_KEPT in each of at most REGIONS_KEPT regions of a user."""
    rng = np.random.default_rng(1)
    ranked = rng.permuted(np.tile(np.arange(REGIONS), (int(data.user.max()) + 1, 1)), axis=1)
    pair = data.user * REGIONS + data.region
    order = np.lexsort((rng.random(len(pair)), pair))
    first = np.append(True, pair[order][1:] != pair[order][:-1])
    place = np.arange(len(pair)) - np.maximum.accumulate(np.where(first, np.arange(len(pair)), 0))
    pairs = np.unique(pair)
    by_luck = pairs[np.lexsort((ranked[pairs // REGIONS, pairs % REGIONS], pairs // REGIONS))]
    new = np.append(True, by_luck[1:] // REGIONS != by_luck[:-1] // REGIONS)
    nth = np.arange(len(by_luck)) - np.maximum.accumulate(np.where(new, np.arange(len(by_luck)), 0))
    kept = np.zeros(len(pair), np.int64)
    kept[order[place < ROWS_KEPT]] = 1
    return kept * np.isin(pair, by_luck[nth < REGIONS_KEPT])


def exact(data: Payments, target: Target) -> Floats:
    values = [data.amount[data.region == region] for region in range(REGIONS)]
    if isinstance(target, ExtremeTarget):
        return np.array([v.max() if target.high else v.min() for v in values])
    return np.array([np.quantile(v, float(target.fraction)) for v in values])


def errors(cells: Cells, pick: Pick, true: Floats, runs: int) -> float:
    bins = cells.shape[1]
    answers = [(choose_bins(pick, cells, ExactSampler()) + 0.5) * (UPPER / bins) for _ in range(runs)]
    return 100 * float(np.abs(np.stack(answers) / true - 1).mean())


def pick_for(target: Target, noise: str, norm: int, bins: int) -> Pick:
    if noise == "laplace":
        by = UnitContribution(norm << WEIGHT, summed=True)
        return calibrate_picks_by_epsilon((target,), by, bins, EPSILON)[0]
    by = UnitContribution(norm << WEIGHT, summed=False)
    return calibrate_picks_by_rho((target,), by, bins, epsilon_to_rho(EPSILON, DELTA))[0]


def print_target(name: str, data: Payments, runs: int) -> None:
    target, true, kept = TARGETS[name], exact(data, TARGETS[name]), sampled(data)
    print(f"\n{name}: error in %; {runs} runs\n{'charged by':<14}{'rows':>5}" + "".join(f"{b:>9} bins" for b in BINS))
    for noise in ("laplace", "gaussian"):
        for norm in NORMS:
            weight = weights(data, norm, noise == "laplace")
            found = [errors(histogram(data, weight, b), pick_for(target, noise, norm, b), true, runs) for b in BINS]
            print(f"{'epsilon' if noise == 'laplace' else 'rho':<14}{norm:>5}" + "".join(f"{e:>14.2f}" for e in found))
    by = UnitContribution(REGIONS_KEPT * ROWS_KEPT, summed=True)
    picks = [calibrate_picks_by_epsilon((target,), by, bins, EPSILON)[0] for bins in BINS]
    found = [errors(histogram(data, kept, b), p, true, runs) for b, p in zip(BINS, picks, strict=True)]
    print(f"{'sampled rows':<14}{by.norm:>5}" + "".join(f"{e:>14.2f}" for e in found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 runs, not 100")
    runs = 20 if parser.parse_args().quick else 100
    data = payments()
    for name in TARGETS:
        print_target(name, data, runs)


if __name__ == "__main__":
    main()
