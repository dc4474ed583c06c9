"""The noise of groups that are added up, as error bars tell it."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpsql.compiler.reuse.derive import _sum_mechanism
from dpsql.privacy.noise import Gaussian, Laplace, interval_factor, standard_error
from dpsql.privacy.sampling import ExactSampler
from dpsql.verify.generate.choices import ChoiceStream

SCALES = (Fraction(1, 4), Fraction(1), Fraction(7, 2), Fraction(1000), Fraction(1 << 25))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("most", [1, 2, 3, 12, 365])
def test_the_standard_error_of_a_sum_is_no_smaller_than_reported(scale: Fraction, most: int) -> None:
    for mechanism in (Laplace(scale), Gaussian(scale)):
        told, real = standard_error(_sum_mechanism(mechanism, most)), math.sqrt(most) * standard_error(mechanism)
        assert told >= real * (1 - 1e-9)
        assert scale < 1 or told <= real * 1.15


@pytest.mark.parametrize("most", [2, 12])
def test_intervals_of_sums_hold_as_often_as_they_say(most: int) -> None:
    """Both kinds of noise, 40,000 sums: 95 % or more, and not of half the width."""
    sampler, count = ExactSampler(ChoiceStream("sums").random_bytes), 40_000
    for mechanism in (Laplace(Fraction(50)), Gaussian(Fraction(50))):
        draw = sampler.laplace if isinstance(mechanism, Laplace) else sampler.gaussian
        sums = abs(draw(count * most, Fraction(50)).reshape(count, most).sum(axis=1))
        told = _sum_mechanism(mechanism, most)
        half = interval_factor(told) * standard_error(told)
        assert (sums <= half).mean() > 0.945
        assert (sums <= half / 2).mean() < 0.9
