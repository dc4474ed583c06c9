"""Multiplicative weights: an estimate keeps its total, whatever its cells are multiplied by."""

from __future__ import annotations

import numpy as np

from dpsql.privacy.synthetic.mwem import multiply_weights


def test_weights_that_are_lost_to_rounding_are_spread_evenly() -> None:
    """Also where a weight too small to divide by is left."""
    estimate = np.array([0.0, 5e-324])
    assert multiply_weights(estimate, [((0,), np.array([0.0, 0.0]))], 1.0, 10.0).tolist() == [5.0, 5.0]
