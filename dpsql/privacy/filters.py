"""Privacy filters: whether an account's budget admits one more charge.

Law: every figure is an exact rational, and rounds so that privacy is never overstated.

An analyst picks each request and its loss after seeing the earlier answers. Four filters hold under such fully
adaptive composition, each with the losses so far and the asked one counted in:

    F1, pure: every loss is pure, and their epsilons sum to at most epsilon (Rogers et al. 2016);
    F2, concentrated: the rhos sum to at most rho, the deltas to at most delta (Whitehouse et al. 2023);
    F3, basic: each charge is (e, d)-DP; the es sum to at most epsilon, the ds to at most delta (Rogers et al. 2016);
    F4, advanced: the same, with sqrt(2 ln(1/d') S) + S/2 <= epsilon, S the sum of the squares of the es, and the ds
        sum to at most delta - d' (Whitehouse et al. 2023; the textbook form needs all es fixed first).

F1 makes the transcript (epsilon, 0)-DP; F2 makes it delta-approximate rho-zCDP, so (epsilon, delta + delta_conv)-DP
when rho comes from (epsilon, delta_conv); F3 and F4 make it (epsilon, delta)-DP. The owner names one of F2, F3 and F4
for an account, and a charge is granted if F1 *or* that one holds; a refusal spends nothing.

Union-filter lemma. Let F be the named one, and (epsilon, d) what it makes of the transcript. The rule is (epsilon,
d)-DP. Proof. Spending only grows, so a filter that fails once fails ever after; hence of each finished transcript at
least one filter holds at the end, and then it held at each grant. Let A be the transcripts of which F1 holds at the
end, and B the others. Let M1 be the same interaction under F1 alone (a request that F1 refuses is answered by
"refused"), with the same analyst. On A each grant satisfied F1, and each refusal was one of both filters; so every t
in A has the same probability under our rule as under M1, on the data and on its neighbor. For an event S, P(S and A)
<= e^epsilon P'(S and A). In the same way with F, P(S and B) <= e^epsilon P'(S and B) + d. The sum is the claim.
Because F1 is pure, joining it costs no delta. A grant depends on declared losses only, never on rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction

from dpsql.privacy.loss import (
    LOSS_DENOMINATOR,
    NO_LOSS,
    Loss,
    epsilon_to_rho,
    log_rounded_up,
    rho_to_epsilon,
    sum_losses,
)

SELECTION_SHARE = Fraction(9, 10)
"""The part of an account's delta that selections may spend; the rest is for the conversion from rho."""
ADVANCED_SHARE = Fraction(1, 2)
"""The part of an account's delta that the charges may sum to under advanced composition; the rest is d'."""
_ZERO = Fraction(0)


_DECIMALS = 10**40


def _round_up_decimal(value: Fraction) -> Fraction:
    """Figures of basic and advanced composition are decimals, as people write them: ten times 0.1 is 1."""
    return Fraction(-(-value.numerator * _DECIMALS // value.denominator), _DECIMALS)


class Composition(Enum):
    """The filter that an account's charges must pass, or else the pure one."""

    ZCDP = "zcdp"
    BASIC = "basic"
    ADVANCED = "advanced"


@dataclass(frozen=True)
class Cost:
    """What a charge adds to an account: its loss, and the same as one (epsilon, delta); `squares` is epsilon^2.

    `epsilon` is None where the loss has no such figure, which basic and advanced composition then cannot pay.
    """

    loss: Loss
    epsilon: Fraction | None
    delta: Fraction
    squares: Fraction

    def __add__(self, other: Cost) -> Cost:
        epsilon = None if self.epsilon is None or other.epsilon is None else self.epsilon + other.epsilon
        return Cost(self.loss + other.loss, epsilon, self.delta + other.delta, self.squares + other.squares)

    def scaled_by(self, count: int) -> Cost:
        """The cost of so many charges like this one."""
        pure = None if self.loss.epsilon is None else count * self.loss.epsilon
        loss = Loss(pure, count * self.loss.rho, count * self.loss.delta)
        epsilon = None if self.epsilon is None else count * self.epsilon
        return Cost(loss, epsilon, count * self.delta, count * self.squares)


NO_COST = Cost(NO_LOSS, _ZERO, _ZERO, _ZERO)


def cost_of(loss: Loss, epsilon: Fraction = _ZERO, conversion: Fraction = _ZERO) -> Cost:
    """The cost of releases that lose `loss`, in a statement that asked for `epsilon`, of whose delta the part
    `conversion` was for the conversion from rho.

    Privacy: a loss with an epsilon is (epsilon, delta)-DP as it stands. Any other is (e, delta + conversion)-DP with e
    from its rho (Canonne, Kamath, Steinke 2020), and so also with the asked epsilon where the rho is at most what that
    one allows.
    """
    if loss.epsilon is not None:
        squared = _round_up_decimal(loss.epsilon**2)
        return Cost(loss, _round_up_decimal(loss.epsilon), _round_up_decimal(loss.delta), squared)
    if conversion <= 0:
        return Cost(loss, None, _round_up_decimal(loss.delta), _ZERO)
    converted = rho_to_epsilon(loss.rho, conversion)
    if epsilon < converted and loss.rho <= epsilon_to_rho(epsilon, conversion):
        converted = epsilon
    return Cost(
        loss, _round_up_decimal(converted), _round_up_decimal(loss.delta + conversion), _round_up_decimal(converted**2)
    )


def cost_of_losses(losses: Sequence[Loss], epsilon: Fraction = _ZERO, conversion: Fraction = _ZERO) -> Cost:
    """The cost of a charge for releases with these losses: of all as one, or of those with an epsilon of their own
    beside the others, whichever is the smaller epsilon. Such are the histograms that a Gaussian question needs first.

    Privacy: by basic composition (Rogers et al. 2016) what has (e, d) and what has (e', d') is (e + e', d + d')-DP.
    """
    whole = cost_of(sum_losses(list(losses)), epsilon, conversion)
    direct, others = ([x for x in losses if (x.epsilon is not None) is has_epsilon] for has_epsilon in (True, False))
    if not direct or not others:
        return whole
    split = cost_of(sum_losses(direct)) + cost_of(sum_losses(others), epsilon, conversion)
    if split.epsilon is None or (whole.epsilon is not None and whole.epsilon <= split.epsilon):
        return whole
    return replace(split, squares=_round_up_decimal(split.epsilon**2))


@dataclass(frozen=True)
class FilterLimits:
    """The most that an account may lose: `epsilon` by the pure filter, the rest by the one of its `composition`.

    `rho` is that of the concentrated filter; `log` is ln(1/d') of the advanced one.
    """

    epsilon: Fraction
    rho: Fraction
    delta: Fraction
    composition: Composition = Composition.ZCDP
    log: Fraction = _ZERO


def limits_for_budget(epsilon: Fraction, delta: Fraction, composition: Composition = Composition.ZCDP) -> FilterLimits:
    """The filter's limits for an account with this budget.

    Privacy: what `admit_charge` grants within them is (epsilon, delta)-DP: under zCDP 0.9 delta is for selections and
    0.1 delta for the conversion; under advanced composition half is d'.
    """
    match composition:
        case Composition.ZCDP:
            return FilterLimits(
                epsilon, epsilon_to_rho(epsilon, (1 - SELECTION_SHARE) * delta), SELECTION_SHARE * delta
            )
        case Composition.BASIC:
            return FilterLimits(epsilon, _ZERO, delta, composition)
        case Composition.ADVANCED:
            log = log_rounded_up(1 / ((1 - ADVANCED_SHARE) * delta)) if delta else _ZERO
            return FilterLimits(epsilon, _ZERO, ADVANCED_SHARE * delta, composition, log)


@dataclass(frozen=True)
class CumulativeLoss:
    """What an account has lost so far: the sums that the filters look at.

    `epsilon` is that of pure losses, None once a loss was not pure; `rho` and `delta` are those of the concentrated
    filter; the others those of basic and advanced composition, `basic_epsilon` None once a charge had no such figure.
    """

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction
    basic_epsilon: Fraction | None = _ZERO
    basic_delta: Fraction = _ZERO
    squares: Fraction = _ZERO


NO_CUMULATIVE_LOSS = CumulativeLoss(_ZERO, _ZERO, _ZERO)


def add_cost(spent: CumulativeLoss, cost: Cost) -> CumulativeLoss:
    # An epsilon beside a delta is no pure loss: the first filter has no delta to give.
    loss = cost.loss
    pure = loss.epsilon if loss.delta == 0 else None
    return CumulativeLoss(
        None if spent.epsilon is None or pure is None else spent.epsilon + pure,
        spent.rho + loss.rho,
        spent.delta + loss.delta,
        None if spent.basic_epsilon is None or cost.epsilon is None else spent.basic_epsilon + cost.epsilon,
        spent.basic_delta + cost.delta,
        spent.squares + cost.squares,
    )


def admit_charge(limits: FilterLimits, spent: CumulativeLoss, cost: Cost) -> CumulativeLoss | None:
    """What will have been spent if `cost` is granted; None if it is refused, and then nothing is spent.

    Privacy: the union of the pure filter and the one of the account's composition (lemma above).
    """
    after = add_cost(spent, cost)
    return after if is_within_limits(limits, after) else None


def is_within_limits(limits: FilterLimits, spent: CumulativeLoss) -> bool:
    if spent.epsilon is not None and spent.epsilon <= limits.epsilon:
        return True
    match limits.composition:
        case Composition.ZCDP:
            return spent.rho <= limits.rho and spent.delta <= limits.delta
        case Composition.BASIC:
            within = spent.basic_epsilon is not None and spent.basic_epsilon <= limits.epsilon
            return within and spent.basic_delta <= limits.delta
        case Composition.ADVANCED:
            return (
                spent.basic_epsilon is not None
                and spent.basic_delta <= limits.delta
                and _is_within_advanced(limits, spent)
            )


def _is_within_advanced(limits: FilterLimits, spent: CumulativeLoss) -> bool:
    """sqrt(2 ln(1/d') S) + S/2 <= epsilon, without a root."""
    remaining = limits.epsilon - spent.squares / 2
    return limits.log > 0 and remaining >= 0 and 2 * limits.log * spent.squares <= remaining**2


def cumulative_epsilon(limits: FilterLimits, spent: CumulativeLoss, conversion: Fraction) -> Fraction | None:
    """All that was lost as one epsilon: the smallest of the figures that the filters prove; None if there is none.

    `conversion` is the part of the account's delta that is kept for the conversion of rho.
    """
    figures = [] if spent.epsilon is None else [spent.epsilon]
    match limits.composition:
        case Composition.ZCDP:
            figures += [rho_to_epsilon(spent.rho, conversion)] if conversion > 0 else []
        case Composition.BASIC:
            figures += [] if spent.basic_epsilon is None else [spent.basic_epsilon]
        case Composition.ADVANCED:
            if spent.basic_epsilon is not None and limits.log > 0:
                figures.append(_sqrt_rounded_up(2 * limits.log * spent.squares) + spent.squares / 2)
    return min(figures, default=None)


def _sqrt_rounded_up(square: Fraction) -> Fraction:
    units = -(-square.numerator * LOSS_DENOMINATOR**2 // square.denominator)
    root = math.isqrt(units)
    return Fraction(root if root * root == units else root + 1, LOSS_DENOMINATOR)


def fraction_remaining(limits: FilterLimits, spent: CumulativeLoss, epsilon: Fraction) -> Fraction:
    """The unspent fraction of the filter that has more left; `epsilon` is what was lost."""
    parts = [_ZERO if spent.epsilon is None else 1 - spent.epsilon / limits.epsilon]
    match limits.composition:
        case Composition.ZCDP if limits.rho:
            parts.append(1 - max(spent.rho / limits.rho, spent.delta / limits.delta))
        case Composition.BASIC | Composition.ADVANCED if limits.delta and spent.basic_epsilon is not None:
            parts.append(1 - max(epsilon / limits.epsilon, spent.basic_delta / limits.delta))
        case _:
            pass
    return max(_ZERO, *parts)
