"""Every tail is an upper bound, and a close one."""

from decimal import Decimal, localcontext
from fractions import Fraction as F

import pytest

from dpsql.privacy.tails import find_least_integer, gaussian_tail, laplace_tail, truncated_tail


def summed(exponent, span: int, m: int) -> F:
    """P(X >= m) for P(x) ~ exp(exponent(x)) on [-span, span], in 50 digits."""
    with localcontext() as context:
        context.prec = 50
        half = [exponent(Decimal(x)).exp() for x in range(span + 1)]
        return F(sum(half[m:]) / (2 * sum(half) - half[0]))


@pytest.mark.parametrize("sigma", [F(3, 10), F(1), F(5), F(159, 10), F(16), F(60), F(300)], ids=str)
@pytest.mark.parametrize("deviations", [1, 2, 4, 6])
def test_gaussian(sigma: F, deviations: int) -> None:
    m, s = int(deviations * sigma) + 2, Decimal(sigma.numerator) / sigma.denominator
    true = summed(lambda x: -((x / s) ** 2) / 2, m + int(20 * sigma) + 10, m)
    assert true <= gaussian_tail(sigma, m) <= F(102, 100) * true


def test_gaussian_below_one_deviation() -> None:
    for sigma, m in [(F(100), 30), (F(100), 100), (F(3), 1)]:
        s = Decimal(sigma.numerator) / sigma.denominator
        true = summed(lambda x, s=s: -((x / s) ** 2) / 2, int(20 * sigma), m)
        assert true <= gaussian_tail(sigma, m) <= F(102, 100) * true


@pytest.mark.parametrize("scale", [F(1, 3), F(1), F(15, 2), F(40)], ids=str)
def test_laplace(scale: F) -> None:
    s = Decimal(scale.numerator) / scale.denominator
    for m in (1, 2, int(10 * scale) + 1):
        true = summed(lambda x: -x / s, int(150 * scale) + 10, m)
        assert true <= laplace_tail(scale, m) <= F(100001, 100000) * true


@pytest.mark.parametrize("scale", [F(1, 3), F(1), F(15, 2), F(2**20)], ids=str)
def test_truncated(scale: F) -> None:
    s = Decimal(scale.numerator) / scale.denominator
    for bound, width in [(1, 1), (12, 1), (12, 5), (30, 30)]:
        true = summed(lambda x: -x / s, bound, bound - width + 1)
        assert true * (1 - F(1, 10**20)) <= truncated_tail(scale, bound, width) <= F(100001, 100000) * true


def test_nonsense_is_certain() -> None:
    assert laplace_tail(F(1), 0) == gaussian_tail(F(1), 0) == truncated_tail(F(1), 3, 4) == 1


def test_underflow_is_never_zero() -> None:
    assert gaussian_tail(F(1), 100) >= F(10) ** -290
    assert gaussian_tail(F(100), 10**6) >= F(10) ** -290


def test_least_integer() -> None:
    for answer in (3, 4, 5, 11, 1000):
        assert find_least_integer(lambda n, answer=answer: n >= answer, 3) == answer
    with pytest.raises(ValueError, match="too small"):
        find_least_integer(lambda n: False, 0)
