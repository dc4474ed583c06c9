"""Bounds on a probability from counted hits, by Clopper and Pearson (1934): sound for every n, however rare the event.

The chance of `hits` or more among n falls short of alpha below `probability_lower_bound`, and that of `hits` or fewer above
`probability_upper_bound`. Found by bisection on the binomial tail in logarithms; the last step goes outward.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

_BISECTIONS = 60
_SLACK = 1e-9
"""Relative: far above the rounding of a tail that is summed in doubles."""


def probability_lower_bound(hits: int, n: int, alpha: float) -> float:
    """A lower bound on the probability, wrong with a chance of at most alpha."""
    if hits == 0:
        return 0.0
    low, high = 0.0, hits / n
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _binomial_tail(hits, n, n, middle) > alpha:
            high = middle
        else:
            low = middle
    return low * (1 - _SLACK)


def probability_upper_bound(hits: int, n: int, alpha: float) -> float:
    """An upper bound on the probability, wrong with a chance of at most alpha."""
    return 1.0 - probability_lower_bound(n - hits, n, alpha)


def _binomial_tail(first: int, last: int, n: int, p: float) -> float:
    """The chance of `first` to `last` hits among n."""
    if p <= 0.0:
        return 0.0
    counts = np.arange(first, last + 1, dtype=np.float64)
    logs = _log_binomials(n)[first : last + 1] + counts * math.log(p) + (n - counts) * math.log1p(-p)
    return float(np.exp(logs).sum())


@lru_cache(maxsize=8)
def _log_binomials(n: int) -> npt.NDArray[np.float64]:
    """The logarithms of the binomial coefficients of n."""
    factorials = np.array([math.lgamma(k + 1) for k in range(n + 1)])
    coefficients: npt.NDArray[np.float64] = factorials[n] - factorials - factorials[::-1]
    return coefficients
