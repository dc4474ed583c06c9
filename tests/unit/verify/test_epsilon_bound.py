"""Clopper and Pearson's bounds, against scipy's."""

from __future__ import annotations

import pytest
from scipy.stats import beta

from dpsql.verify.epsilon_bound import probability_lower_bound, probability_upper_bound


@pytest.mark.parametrize("alpha", [0.05, 1e-6])
@pytest.mark.parametrize(
    ("hits", "n"), [(0, 10), (1, 10), (5, 10), (10, 10), (3, 20_000), (7000, 20_000), (19_999, 20_000)]
)
def test_bounds_are_those_of_the_beta_distribution(hits: int, n: int, alpha: float) -> None:
    low = 0.0 if hits == 0 else beta.ppf(alpha, hits, n - hits + 1)
    high = 1.0 if hits == n else beta.ppf(1 - alpha, hits + 1, n - hits)
    assert probability_lower_bound(hits, n, alpha) == pytest.approx(low, rel=1e-6, abs=1e-12)
    assert probability_upper_bound(hits, n, alpha) == pytest.approx(high, abs=2e-9)
    assert probability_lower_bound(hits, n, alpha) <= low and probability_upper_bound(hits, n, alpha) >= high - 1e-12


def test_more_hits_prove_more() -> None:
    found = [probability_lower_bound(hits, 100, 0.01) for hits in range(0, 101, 10)]
    assert found == sorted(found) and found[0] == 0.0 < found[1]
