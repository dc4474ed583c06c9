"""Samples per second of CPU: our exact sampler, and OpenDP's where it is installed, measured in one run.

python -m benchmarks.sampler
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from dpsql.privacy.sampling import ExactSampler

SCALES = [(f"2^{power}", Fraction(1 << power)) for power in (0, 10, 20, 30, 36)]
OURS, THEIRS, ROUNDS = 500_000, 20_000, 5


def opendp() -> Any:
    """OpenDP's prelude, or None."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    return dp


def rate(draw: Callable[[], object], samples: int) -> float:
    start = time.process_time()
    draw()
    return samples / (time.process_time() - start)


def oracle(dp: Any, name: str, scale: Fraction) -> Callable[[], object]:
    metric = dp.l1_distance(T="i64") if name == "laplace" else dp.l2_distance(T="f64")
    noise = dp.m.then_laplace if name == "laplace" else dp.m.then_gaussian
    measurement = (dp.vector_domain(dp.atom_domain(T="i64")), metric) >> noise(scale=float(scale))
    zeros = [0] * THEIRS
    return lambda: measurement(zeros)


def main() -> None:
    dp, sampler = opendp(), ExactSampler()
    print(f"{'noise':<10}{'scale':>6}{'M samples/s':>14}{'OpenDP M/s':>14}{'ratio':>9}")
    for name in ("laplace", "gaussian"):
        for label, scale in SCALES:
            samples = OURS if scale <= 1 << 30 else OURS // 20
            draw = getattr(sampler, name)
            theirs = None if dp is None else oracle(dp, name, scale)
            ours_rates, their_rates = [], []
            for _ in range(ROUNDS):  # interleaved, so that a busy machine slows both
                ours_rates.append(rate(partial(draw, samples, scale), samples))
                if theirs is not None:
                    their_rates.append(rate(theirs, THEIRS))
            ours = statistics.median(ours_rates)
            line = f"{name:<10}{label:>6}{ours / 1e6:>14.2f}"
            if their_rates:
                other = statistics.median(their_rates)
                line += f"{other / 1e6:>14.3f}{ours / other:>9.0f}"
            print(line)


if __name__ == "__main__":
    main()
