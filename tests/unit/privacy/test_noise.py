"""Noise is the least that its charge allows, and shares of a budget add up to no more than it."""

import math
from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.privacy.filters import NO_CUMULATIVE_LOSS, FilterLimits, admit_charge, cost_of
from dpsql.privacy.loss import round_down
from dpsql.privacy.noise import (
    SCALE_GRID,
    Gaussian,
    Laplace,
    Sensitivity,
    calibrate_gaussian,
    calibrate_laplace,
    interval_factor,
    noise_loss,
    standard_error,
)
from dpsql.privacy.sampling import MIN_SCALE

ONE = Sensitivity(1, 1, 1)
sensitivities = st.builds(
    lambda linf, cells: Sensitivity(linf * cells, linf**2 * cells, linf), st.integers(1, 10**6), st.integers(1, 1000)
)
shares = st.fractions(F(1, 1000), F(20))


@pytest.mark.parametrize("parts", [3, 7, 10, 1000])
def test_equal_shares_fit_exactly(parts: int) -> None:
    """As many releases as the budget has shares are granted, and not one more."""
    sensitivity = Sensitivity(20, 40, 3)
    pure, concentrated = FilterLimits(F(1), F(0), F(0)), FilterLimits(F(0), F(1), F(0))
    for calibrate, limit in [(calibrate_laplace, pure), (calibrate_gaussian, concentrated)]:
        charge = noise_loss(calibrate(sensitivity, F(1, parts)), sensitivity)
        spent = NO_CUMULATIVE_LOSS
        for _ in range(parts):
            after = admit_charge(limit, spent, cost_of(charge))
            assert after is not None
            spent = after
        assert admit_charge(limit, spent, cost_of(charge)) is None


@given(sensitivities, shares)
def test_laplace_is_the_least(sensitivity: Sensitivity, epsilon: F) -> None:
    mechanism = calibrate_laplace(sensitivity, epsilon)
    charged = noise_loss(mechanism, sensitivity)
    assert charged.epsilon is not None
    assert charged.epsilon <= round_down(epsilon)
    assert charged.delta == 0
    if mechanism.scale > MIN_SCALE:
        less = noise_loss(Laplace(mechanism.scale - F(1, SCALE_GRID)), sensitivity)
        assert less.epsilon is not None
        assert less.epsilon > round_down(epsilon)


@given(sensitivities, shares)
def test_gaussian_is_the_least(sensitivity: Sensitivity, rho: F) -> None:
    mechanism = calibrate_gaussian(sensitivity, rho)
    charged = noise_loss(mechanism, sensitivity)
    assert charged.epsilon is None
    assert charged.rho <= round_down(rho)
    assert mechanism.sigma**2 >= F(sensitivity.l2_squared) / (2 * rho)
    if mechanism.sigma > MIN_SCALE:
        assert noise_loss(Gaussian(mechanism.sigma - F(1, SCALE_GRID)), sensitivity).rho > round_down(rho)


def test_known_answers() -> None:
    assert noise_loss(Laplace(F(4)), Sensitivity(2, 4, 2)).epsilon == F(1, 2)
    assert noise_loss(Laplace(F(4)), Sensitivity(2, 4, 2)).rho == F(1, 8)
    assert noise_loss(Laplace(F(4)), Sensitivity(2, 2, 1)).rho == F(1, 16)
    assert noise_loss(Gaussian(F(8)), Sensitivity(2, 2, 1)).rho == F(1, 64)
    assert calibrate_laplace(ONE, F(1, 8)).scale == 8
    assert calibrate_gaussian(ONE, F(1, 32)).sigma == 4


def renyi(order: float, scale: float, shift: int) -> float:
    """The exact Renyi divergence of discrete Laplace noise from itself moved by `shift`."""
    span = range(-int(60 * scale), int(60 * scale) + 1)
    q = math.exp(-1 / scale)
    terms = (math.exp((-order * abs(x) - (1 - order) * abs(x - shift)) / scale) for x in span)
    return math.log(math.fsum(terms) * (1 - q) / (1 + q)) / (order - 1)


@pytest.mark.parametrize("moves", [(1, 1, 1, 1), (3, 1), (2, 2, 2), (1,)])
@pytest.mark.parametrize("scale", [1, 5, 20])
def test_laplace_rho_over_independent_cells(moves: tuple[int, ...], scale: int) -> None:
    """The divergence of all cells together stays below rho * order, for all orders."""
    sensitivity = Sensitivity(sum(moves), sum(move**2 for move in moves), max(moves))
    rho = float(noise_loss(Laplace(F(scale)), sensitivity).rho)
    for order in (1.01, 1.5, 2, 4, 16, 64):
        assert sum(renyi(order, scale, move) for move in moves) <= rho * order
    # Teeth: at high noise rho is nearly attained, so four fifths of it would be seen to be too little.
    if scale == 20:
        assert sum(renyi(1.01, scale, move) for move in moves) > 0.8 * rho * 1.01


@pytest.mark.parametrize("figures", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (-1, 1, 1)])
def test_no_sensitivity_no_mechanism(figures: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="sensitivity"):
        Sensitivity(*figures)


@pytest.mark.parametrize("share", [F(0), F(-1), F(1, 1 << 90)])
def test_no_share_no_noise(share: F) -> None:
    for calibrate in (calibrate_laplace, calibrate_gaussian):
        with pytest.raises(ValueError, match="share"):
            calibrate(ONE, share)


def test_scales_that_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="noise scale"):
        calibrate_laplace(Sensitivity(1 << 39, 1 << 78, 1 << 39), F(1, 10))
    with pytest.raises(ValueError, match="noise scale"):
        Gaussian(F(0))
    assert calibrate_laplace(ONE, F(10**9)).scale == MIN_SCALE


def pmf(mechanism: Laplace | Gaussian) -> dict[int, float]:
    match mechanism:
        case Laplace(scale):
            weights = {x: math.exp(-abs(x) / float(scale)) for x in range(-1500, 1501)}
        case Gaussian(sigma):
            weights = {x: math.exp(-((x / float(sigma)) ** 2) / 2) for x in range(-1500, 1501)}
    total = math.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


@pytest.mark.parametrize("scale", [F(1, 4), F(1), F(3, 2), F(4), F(37, 10), F(30)])
def test_intervals_cover(scale: F) -> None:
    for mechanism in (Laplace(scale), Gaussian(scale)):
        masses = pmf(mechanism)
        deviation = math.sqrt(math.fsum(x * x * mass for x, mass in masses.items()))
        assert deviation <= standard_error(mechanism) * (1 + 1e-9)
        for confidence in (0.5, 0.95, 0.999):
            half_width = interval_factor(mechanism, confidence) * standard_error(mechanism)
            assert math.fsum(mass for x, mass in masses.items() if abs(x) <= half_width + 1e-9) >= confidence


def test_interval_factors_of_smooth_noise() -> None:
    assert interval_factor(Gaussian(F(2**20))) == pytest.approx(1.959964)
    assert interval_factor(Laplace(F(2**20))) == pytest.approx(2.118303)
    assert interval_factor(Laplace(F(4095))) == pytest.approx(2.118303, rel=1e-3)
    assert standard_error(Laplace(F(2**20))) == pytest.approx(2**20.5)
    with pytest.raises(ValueError, match="confidence"):
        interval_factor(Laplace(F(1)), 1.0)
