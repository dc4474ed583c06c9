"""How far a share is off when each answer was randomized before it was recorded, against the true share.

    python -m benchmarks.accuracy_randomized             10,000 people, 200 runs of randomizing and noise
    python -m benchmarks.accuracy_randomized --quick     20 runs

Epsilon is that of the randomizing, from 0.1 to 10; the release itself has epsilon 1 in every row. Beside the
root mean square error of the debiased share stand that of the share as it was recorded, and how often the 95 % interval
held the true share. With the statement's epsilon 1 on true answers the error would be that of the last line.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import numpy as np

from dpsql.compiler.plan.estimators import Debiased, Linear
from dpsql.privacy.exact import Exact
from dpsql.privacy.noise import Laplace
from dpsql.privacy.randomized_response import randomize_responses
from dpsql.privacy.release import NoiseBundle, Release, ReleaseSpec, perturb
from dpsql.privacy.sampling import ExactSampler
from dpsql.schema.model import Randomized
from dpsql.session.postprocess.estimates import estimate_measure
from dpsql.types import BIGINT

PEOPLE, RUNS, QUICK_RUNS = 10_000, 200, 20
EPSILONS = ("0.1", "0.2", "0.5", "1", "1.0986", "2", "5", "10")
SHARES = {2: (0.3, 0.7), 4: (0.3, 0.4, 0.2, 0.1)}
SPEC = ReleaseSpec((Fraction(1),), (NoiseBundle((0,), Laplace(Fraction(1))),))
COUNT = Linear((("c", Fraction(1)),), BIGINT)


def release(counts: np.ndarray, sampler: ExactSampler) -> Release:
    keys = [(str(place),) for place in range(len(counts))]
    return perturb(Exact(keys, [counts.astype(np.int64)]), SPEC, sampler)


def shares(epsilon: str, answers: int, runs: int, sampler: ExactSampler) -> tuple[float, float, float]:
    """Of the first answer: the errors of its debiased and recorded share, and how often the interval held."""
    own = np.repeat(np.arange(answers), [round(share * PEOPLE) for share in SHARES[answers]])
    how = Randomized(Fraction(epsilon), tuple(str(place) for place in range(answers)))
    recipe = Debiased(COUNT, ((0, how),), BIGINT)
    truth, errors, biases, held = SHARES[answers][0] * PEOPLE, [], [], 0
    for _ in range(runs):
        told = randomize_responses(own, answers, how.epsilon, sampler)
        noisy = release(np.bincount(told, minlength=answers), sampler)
        found = estimate_measure(recipe, noisy, ("c",))
        errors.append(found.values[0] - truth)
        biases.append(int(noisy.cells[0][0]) - truth)
        held += found.low[0] <= truth <= found.high[0]
    debiased, recorded = (float(np.sqrt(np.mean(np.square(part)))) / PEOPLE for part in (errors, biases))
    return debiased, recorded, held / runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 runs")
    runs = QUICK_RUNS if parser.parse_args().quick else RUNS
    sampler = ExactSampler()
    for answers in SHARES:
        print(f"share of one of {answers} answers, true {SHARES[answers][0]:.0%}, {PEOPLE:,} people, {runs} runs\n")
        print("| epsilon of the randomizing | error, debiased | error, as recorded | 95 % interval held |")
        print("|---|---|---|---|")
        for epsilon in EPSILONS:
            debiased, recorded, held = shares(epsilon, answers, runs, sampler)
            print(f"| {epsilon} | {debiased:.2%} | {recorded:.2%} | {held:.0%} |")
        counts = np.array([round(share * PEOPLE) for share in SHARES[answers]])
        plain = [int(release(counts, sampler).cells[0][0]) - counts[0] for _ in range(runs)]
        print(f"| none: true answers, noise alone | {float(np.sqrt(np.mean(np.square(plain)))) / PEOPLE:.2%} | | |\n")


if __name__ == "__main__":
    main()
