"""The loss of a release, computed again from the record of its mechanisms (`privacy/audit_record.py`).

Law: independent. It imports nothing of `privacy`: the formulas below are derived here once more, in exact fractions,
and the tails are summed (`series`), not bounded. So one mistake in calibration does not vouch for itself. What a
record holds that is not known here makes it unreadable: it might lose more.

Noise in cells. Neighbors move the cells of a bundle by a vector d of integers, |d|_1 <= l1, |d|_2^2 <= l2_squared.
    laplace     ln P(x)/P(x + d) <= |d|_1 / b: epsilon = l1/b. Cell by cell that is zCDP with (d_i/b)^2/2, and
                independent draws add: rho = min(l2_squared, l1^2) / (2 b^2), since |d|_2 <= |d|_1.
    gaussian    Renyi divergence at order a: a |d|_2^2 / (2 sigma^2), so rho = l2_squared / (2 sigma^2); not pure.

Selection. k units, each with at most l0 keys, come (and under change_one k others leave: c = 2 sides, else 1). On one
side the moves v of the keys' counts are at most k each and k l0 together.
    noise       sum of v^2 <= k * k l0 on each side: rho = c k^2 l0 / (2 scale^2). Weighted: a unit with t keys adds
                weight/sqrt(t) to each, norm `weight`; k of them k weight; the two sides of change_one overlap with no
                negative product: rho = c (k weight)^2 / (2 sigma^2).
    threshold   a key that only one neighbor has, with count v, shows with p(v) = P(X > limit - v). All of one side:
                sum of p(v_i) = sum of v_i (p(v_i)/v_i) <= k l0 max over v of p(v)/v, which is looked for at every v.
    truncated   |X| <= limit. A key whose count moves by v has no counterpart on the other side with probability
                p(v) = P(X > limit - v), whether it is new or not: both sides count, c k l0 max p(v)/v.
    epsilon     of laplace and truncated: common keys are l1/scale-DP, by basic composition, and the rest is in delta
                (that no exclusive key shows has probability 1 - p and 1 - p': they are (0, max(p, p'))-DP).
    weighted    masses m_i of keys that only one neighbor has: sum of m_i^2 <= (k weight)^2 = M^2, so with
                m = M/sqrt(t) the sum of p is at most t p(M/sqrt(t)), for a t from 1 to k^2 l0 (the least mass is
                weight/sqrt(l0)); looked for over t. Masses are whole numbers, rounded down.

Picks. P(bin) is proportional to exp(-s/b), and the score s of a block moves by D: ln P/P' spans an interval of length
2D/b around 0, so epsilon = 2 sum D/b, and rho = sum (2D/b)^2/8 (bounded range). Rows of weight w that come move a
score by at most f w, with f = max(a, 1 - a) for the quantile a and 1 for min and max; at the same place, rows that
leave move it the same way by at most g w, g = min(a, 1 - a) or 0. A unit's weights have norm N over the blocks:
    add_remove                sum D = f N,          sum D^2 = f^2 N^2
    change_one, one block     sum D = (f + g) N,    sum D^2 = (f + g)^2 N^2
    change_one                sum D = 2 f N,        sum D^2 = 2 (f^2 + g^2) N^2   (Cauchy and Schwarz)
times k for D and k^2 for D^2. sum D is known only if the norm is that of a sum, or there is one block.
Elements of weight 1 that only take other values leave and enter at once: each moves the score of its group by at most
f + g. A unit changes one in each of G groups, and with the one that takes its place e = 2 (change_one; else e = 1):
sum D = (f + g) e G and sum D^2 = (f + g)^2 e^2 G, again times k and k^2.

More in `selections.py`: the best of some, medians by local sensitivity, thresholds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from dpsql.ledger.loss_checker.selections import (
    LocalMedianRecord,
    PtrMedianRecord,
    ScoreRecord,
    SmoothMedianRecord,
    SparseVectorRecord,
    read_median,
    read_scores,
    read_sparse,
    score_record_loss,
    sparse_vector_loss,
)
from dpsql.ledger.loss_checker.studies import study_loss

# Tails of discrete noise, summed in decimal arithmetic for the checker.
#
# Not shared with `privacy/tails.py`, which picks thresholds: those are bounds from above, these are the probabilities
# themselves, to a relative error below 1e-9, so that an error there does not repeat here.

_DECIMAL_CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
_NEGLIGIBLE = Decimal("1e-40")
_MAX_SUMMED_SIGMA = 1024
"""Below this sigma tails are summed term by term; above, the formula of Euler and Maclaurin errs by (m/sigma^2)^4/720
of the tail: less than 1e-9 for m <= 24 sigma, beyond which nothing is charged for."""
_FRACTION_LEVELS = 400
"""Levels of the continued fraction: its error is some exp(-2 z sqrt(2 levels)), below 1e-70 for z >= 3."""


def _to_decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def discrete_laplace_tail(scale: Fraction, m: int) -> Fraction:
    """P(X >= m) where P(x) is proportional to q^|x|, q = exp(-1/scale): a geometric series over another."""
    if m < 1:
        return 1 - discrete_laplace_tail(scale, 1 - m)
    with localcontext(_DECIMAL_CONTEXT):
        return Fraction(_to_decimal(-m / scale).exp() / (1 + _to_decimal(-1 / scale).exp()))


def truncated_laplace_tail(scale: Fraction, bound: int, m: int) -> Fraction:
    """P(X >= m) where P(x) is proportional to q^|x| for |x| <= bound, and 0 beyond."""
    if m > bound:
        return Fraction(0)
    if m <= -bound:
        return Fraction(1)
    if m < 1:
        return 1 - truncated_laplace_tail(scale, bound, 1 - m)
    with localcontext(_DECIMAL_CONTEXT):
        # Both series times 1 - q, which cancels.
        beyond = _to_decimal(-(bound + 1) / scale).exp()
        tail = _to_decimal(-m / scale).exp() - beyond
        return Fraction(tail / (1 + _to_decimal(-1 / scale).exp() - 2 * beyond))


def discrete_gaussian_tail(sigma: Fraction, m: int) -> Fraction:
    """P(X >= m) where P(x) is proportional to exp(-x^2/(2 sigma^2)) over the integers."""
    if m < 1:
        return 1 - discrete_gaussian_tail(sigma, 1 - m)
    with localcontext(_DECIMAL_CONTEXT):
        s = _to_decimal(sigma)
        tail = (
            _sum_gaussian_tail(s, m) / _gaussian_normalizer(s)
            if sigma < _MAX_SUMMED_SIGMA
            else _integrate_gaussian_tail(s, m)
        )
        return Fraction(tail)


def _sum_gaussian_tail(sigma: Decimal, m: int) -> Decimal:
    """The sum of exp(-x^2/(2 sigma^2)) for x >= m >= 1; the ratio of neighboring terms falls by a constant factor."""
    step = -1 / (2 * sigma * sigma)
    term, ratio, factor = (step * m * m).exp(), (step * (2 * m + 1)).exp(), (2 * step).exp()
    total = Decimal(0)
    while term > total * _NEGLIGIBLE:
        total += term
        term *= ratio
        ratio *= factor
    return total


def _gaussian_normalizer(sigma: Decimal) -> Decimal:
    """The sum over all integers: term by term, or by Poisson's formula, where the next term is below 1e-130."""
    if sigma < 2:
        return 1 + 2 * _sum_gaussian_tail(sigma, 1)
    return sigma * (2 * _PI).sqrt() * (1 + 2 * (-2 * _PI * _PI * sigma * sigma).exp())


def _integrate_gaussian_tail(sigma: Decimal, m: int) -> Decimal:
    """Euler and Maclaurin: the integral from m, half of the first term, and a twelfth of the slope there."""
    z = m / sigma
    density = (-z * z / 2).exp() / (sigma * (2 * _PI).sqrt())
    return _normal_tail(z) + density * (Decimal("0.5") + m / (12 * sigma * sigma))


def _normal_tail(z: Decimal) -> Decimal:
    """P(Z >= z) of the standard normal distribution, z >= 0."""
    density = (-z * z / 2).exp() / (2 * _PI).sqrt()
    if z >= 3:  # Laplace's continued fraction, from its end
        below = z
        for level in range(_FRACTION_LEVELS, 0, -1):
            below = z + level / below
        return density / below
    term, total, odd = z, Decimal(0), 1
    while term > _NEGLIGIBLE:
        total += term
        odd += 2
        term *= z * z / odd
    return Decimal("0.5") - density * total


RECORD_FORMAT = 1

TAIL_TOLERANCE = Fraction(1, 10**9)
"""Relative error of the deltas here, which come from series that are cut off. Epsilon and rho are exact."""
MAX_EXCESS = 2
"""A charge of more than twice what is lost is a mistake too: someone's budget is gone for nothing. Honest charges
exceed it by rounding, and by some percent where the tail of a small Gaussian is bounded by an integral."""
_ROUNDING = Fraction(1, 1 << 70)
"""Charges round up to multiples of 2^-80, for each mechanism of a statement (up to a thousand) once."""


class UnreadableRecord(ValueError):
    """A record that is damaged, or that holds a mechanism which is not known here."""


@dataclass(frozen=True)
class LossFigures:
    """A `delta`-approximate `rho`-zCDP loss, and (`epsilon`, `delta`)-DP where `epsilon` is not None.

    `direct` is the sum of the epsilons of the mechanisms that have one, `gaussian_rho` the rho of the others. A charge
    of `coarse_delta` would have paid for a selection that shows more.
    """

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction
    direct: Fraction = Fraction(0)
    gaussian_rho: Fraction = Fraction(0)
    coarse_delta: Fraction = Fraction(0)


class ChargedLoss(Protocol):
    """The loss that an entry charges."""

    @property
    def epsilon(self) -> Fraction | None: ...
    @property
    def rho(self) -> Fraction: ...
    @property
    def delta(self) -> Fraction: ...


@dataclass(frozen=True)
class CellNoise:
    """Noise in the cells of a bundle; `kind` is laplace or gaussian."""

    kind: str
    cells: int
    scale: Fraction
    l1: int
    l2_squared: int
    linf: int


@dataclass(frozen=True)
class SelectionRecord:
    """A selection of keys; `kind` is truncated, laplace, gaussian or weighted; `weight` of the last only."""

    kind: str
    scale: Fraction
    limit: int
    l0: int
    group_size: int
    change_one: bool
    weight: int

    @property
    def sides(self) -> int:
        return 2 if self.change_one else 1

    @property
    def l1(self) -> int:
        """How far the counts of all keys move, together."""
        return self.sides * self.group_size * self.l0

    @property
    def l2_squared(self) -> int:
        if self.kind == "weighted":
            return self.sides * (self.group_size * self.weight) ** 2
        return self.sides * self.group_size**2 * self.l0


@dataclass(frozen=True)
class BlockWeights:
    """What one unit adds to the blocks that picks look at."""

    norm: int
    summed: bool
    single: bool
    group_size: int
    change_one: bool


@dataclass(frozen=True)
class ValueChanges:
    """Elements that take other values: one in so many groups for one unit, and again for one in its place."""

    groups: int
    group_size: int
    change_one: bool


@dataclass(frozen=True)
class BinPick:
    """A bin picked in every block; `target` is rank, min or max."""

    target: str
    at: Fraction
    scale: Fraction
    weights: BlockWeights | ValueChanges


@dataclass(frozen=True)
class StudyRecord:
    """A mechanism over weighted rows, whose loss `studies.py` works out."""

    kind: str
    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction


MechanismRecord = (
    CellNoise | SelectionRecord | BinPick | LocalMedianRecord | ScoreRecord | StudyRecord | SparseVectorRecord
)


@lru_cache(maxsize=4096)
def recompute_loss(record: str) -> LossFigures:
    """What the mechanisms of a record lose together; Unreadable if they are not known here."""
    return add_losses(mechanism_loss(mechanism) for mechanism in read_record(record))


def covers_loss(charged: ChargedLoss, lost: LossFigures) -> bool:
    """The charge is at least what was lost.

    Privacy: with this, and the sums of the chain, an account never lost more than its budget. A charge without an
    epsilon may be of mechanisms that have one. One with an epsilon covers those of all mechanisms; where some have a
    rho alone, what is charged in delta beyond theirs is for its conversion.
    """
    if charged.rho < lost.rho or charged.delta < lost.delta * (1 - TAIL_TOLERANCE):
        return False
    if charged.epsilon is None:
        return True
    if lost.epsilon is not None:
        return charged.epsilon >= lost.epsilon
    converted = _epsilon_of_rho(lost.gaussian_rho, charged.delta - lost.delta)
    return converted is not None and float(charged.epsilon) * (1 + 1e-9) >= float(lost.direct) + converted


def _epsilon_of_rho(rho: Fraction, delta: Fraction) -> float | None:
    """An epsilon at which rho-zCDP is (epsilon, delta)-DP, by Canonne, Kamath and Steinke (2020), Corollary 13.

    Renyi divergence at the order a is at most a rho, so epsilon = a rho + (ln(1/delta) - ln a)/(a - 1) + ln(1 - 1/a).
    Every a > 1 is valid; the least is looked for among many.
    """
    if delta <= 0:
        return None
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)

    def epsilon_at(exponent: float) -> float:
        below = math.exp(exponent)  # a - 1
        return (below + 1) * float(rho) - (log_delta + math.log1p(below)) / below - math.log1p(1 / below)

    low, high = -30.0, 40.0
    for _ in range(200):  # it falls, then rises, in ln(a - 1)
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if epsilon_at(left) <= epsilon_at(right) else (left, high)
    return max(0.0, epsilon_at((low + high) / 2))


def exceeds_loss(charged: ChargedLoss, lost: LossFigures) -> bool:
    """The charge is absurdly more than what was lost.

    An (epsilon, delta) may be charged epsilon^2/2 of rho, and a selection the delta at which one that shows more would
    still be too dear: prices that do not depend on how many groups a unit may have.
    """
    limits = [(charged.rho, max(lost.rho, charged.epsilon**2 / 2 if charged.epsilon is not None else Fraction(0)))]
    if charged.epsilon is None or lost.epsilon is not None:
        limits.append((charged.delta, max(lost.delta, lost.coarse_delta / MAX_EXCESS)))
    if charged.epsilon is not None and lost.epsilon is not None:
        limits.append((charged.epsilon, lost.epsilon))
    return any(much > MAX_EXCESS * little + _ROUNDING for much, little in limits)


def add_losses(losses: Iterable[LossFigures]) -> LossFigures:
    parts = list(losses)
    whole = all(loss.epsilon is not None for loss in parts)
    rho, delta, coarse = (
        sum((getattr(loss, name) for loss in parts), Fraction(0)) for name in ("rho", "delta", "coarse_delta")
    )
    direct = sum((loss.direct if loss.epsilon is None else loss.epsilon for loss in parts), Fraction(0))
    gaussian_rho = sum((_gaussian_rho(loss) for loss in parts), Fraction(0))
    return LossFigures(direct if whole else None, rho, delta, direct, gaussian_rho, coarse)


def _gaussian_rho(loss: LossFigures) -> Fraction:
    """The rho of mechanisms without an epsilon: all of it in a loss that is not a sum."""
    return Fraction(0) if loss.epsilon is not None else loss.gaussian_rho or loss.rho


@lru_cache(maxsize=4096)
def mechanism_loss(mechanism: MechanismRecord) -> LossFigures:
    """What one mechanism loses."""
    match mechanism:
        case CellNoise("laplace"):
            square = min(mechanism.l1**2, mechanism.l2_squared)
            return LossFigures(mechanism.l1 / mechanism.scale, _rho_of(square, mechanism.scale), Fraction(0))
        case CellNoise("gaussian"):
            return LossFigures(None, _rho_of(mechanism.l2_squared, mechanism.scale), Fraction(0))
        case SelectionRecord():
            epsilon = mechanism.l1 / mechanism.scale if mechanism.kind in ("truncated", "laplace") else None
            coarse = replace(mechanism, limit=mechanism.limit - 1) if _may_show_more(mechanism) else None
            return LossFigures(
                epsilon,
                _rho_of(mechanism.l2_squared, mechanism.scale),
                _selection_delta(mechanism),
                coarse_delta=Fraction(1) if coarse is None else _selection_delta(coarse),
            )
        case BinPick():
            return _pick_loss(mechanism)
        case StudyRecord():
            return LossFigures(mechanism.epsilon, mechanism.rho, mechanism.delta)
        case ScoreRecord():
            return LossFigures(*score_record_loss(mechanism), Fraction(0))
        case SparseVectorRecord():
            return LossFigures(*sparse_vector_loss(mechanism), Fraction(0))
        case SmoothMedianRecord() | PtrMedianRecord():
            return LossFigures(None, *mechanism.loss_figures)
        case _:
            raise UnreadableRecord(f"noise of an unknown kind: {mechanism.kind}")


def _may_show_more(selecting: SelectionRecord) -> bool:
    """Whether a lower limit is one of those that calibration picks from."""
    return selecting.limit > selecting.group_size * (2 * selecting.weight if selecting.kind == "weighted" else 1)


def _rho_of(square: int | Fraction, scale: Fraction) -> Fraction:
    return square / (2 * scale**2)


def _selection_delta(selecting: SelectionRecord) -> Fraction:
    """The probability that a selection shows what one neighbor has alone."""
    k, l0, limit, scale = selecting.group_size, selecting.l0, selecting.limit, selecting.scale
    match selecting.kind:
        case "truncated":
            mass = selecting.sides * _worst_delta(k, l0, lambda v: truncated_laplace_tail(scale, limit, limit - v + 1))
        case "laplace":
            mass = _worst_delta(k, l0, lambda v: discrete_laplace_tail(scale, limit - v + 1))
        case "gaussian":
            mass = _worst_delta(k, l0, lambda v: discrete_gaussian_tail(scale, limit - v + 1))
        case "weighted":
            mass = _worst_spread_delta(selecting)
        case _:
            raise UnreadableRecord(f"a selection of an unknown kind: {selecting.kind}")
    return min(Fraction(1), mass)


def _worst_delta(k: int, l0: int, shows: Callable[[int], Fraction]) -> Fraction:
    """k l0 max p(v)/v over the counts v that k units can give to a key."""
    return max(k * l0 * shows(v) / v for v in _sample_integers(k))


def _worst_spread_delta(selecting: SelectionRecord) -> Fraction:
    """The maximum of t p(M/sqrt(t)) over the numbers t of keys that k units can spread their weights over."""
    max_mass = selecting.group_size * selecting.weight
    masses = ((t, math.isqrt(max_mass**2 // t)) for t in _sample_integers(selecting.group_size**2 * selecting.l0))
    return max(t * discrete_gaussian_tail(selecting.scale, selecting.limit - mass + 1) for t, mass in masses)


def _sample_integers(last: int) -> list[int]:
    """All of 1 to `last` if they are few, else both ends and what lies between them, ever further apart."""
    if last <= 64:
        return list(range(1, last + 1))
    return sorted({round(last ** (i / 63)) for i in range(63)} | {last})


def _pick_loss(pick: BinPick) -> LossFigures:
    weights, b = pick.weights, pick.scale
    f, g = (max(pick.at, 1 - pick.at), min(pick.at, 1 - pick.at)) if pick.target == "rank" else (1, 0)
    if isinstance(weights, ValueChanges):
        in_one = (f + g) * (2 if weights.change_one else 1) * weights.group_size
        return LossFigures(2 * in_one * weights.groups / b, _rho_of(weights.groups * in_one**2, b), Fraction(0))
    if not weights.change_one:
        moved, square = f, f**2
    elif weights.single:
        moved, square = f + g, (f + g) ** 2
    else:
        moved, square = 2 * f, 2 * (f**2 + g**2)
    max_weight = weights.group_size * weights.norm
    epsilon = Fraction(2 * moved * max_weight) / b if weights.summed or weights.single else None
    return LossFigures(epsilon, _rho_of(square * max_weight**2, b), Fraction(0))


@lru_cache(maxsize=4096)
def read_record(record: str) -> tuple[MechanismRecord, ...]:
    """The mechanisms of a record; Unreadable if it holds anything else."""
    try:
        document = json.loads(record)
        _require_names(
            document, {"mechanisms"}, {"bundles", "selection", "picks", "weights", "scores", "study", "sparse"}
        )
        if document["mechanisms"] != RECORD_FORMAT:
            raise UnreadableRecord("the record has a format that this version does not read")
        mechanisms: list[MechanismRecord] = [
            *_read_bundles(document),
            *_read_selection(document),
            *_read_picks(document),
        ]
        mechanisms += [read_scores(document["scores"])] if "scores" in document else []
        mechanisms += [read_sparse(document["sparse"])] if "sparse" in document else []
        return (*mechanisms, *_read_study(document))
    except (TypeError, KeyError, ValueError, ZeroDivisionError, RecursionError) as error:
        raise error if isinstance(error, UnreadableRecord) else UnreadableRecord("the record is damaged") from error


def neighbor_relations(record: str) -> set[tuple[int, bool]]:
    """The group sizes, and whether one unit is changed, for which selection, picks, scores or a study were made."""
    document = json.loads(record)
    parts = [document[name] for name in ("selection", "weights", "scores") if name in document]
    parts += [document["study"]["mass"]] if "study" in document else []
    return {(_read_integer(part["group_size"]), _read_boolean(part["change_one"])) for part in parts}


def _require_names(part: Any, names: set[str], others: Set[str] = frozenset()) -> None:
    if not isinstance(part, dict) or not names <= part.keys() <= names | others:
        raise UnreadableRecord("the record has names that are not known here, or lacks some")


def _read_integer(text: Any) -> int:
    """Read a positive integer."""
    value = _read_fraction(text)
    if value.denominator != 1:
        raise UnreadableRecord("the record has a fraction where it needs a whole number")
    return value.numerator


def _read_fraction(text: Any) -> Fraction:
    if not isinstance(text, str) or (value := Fraction(text)) <= 0:
        raise UnreadableRecord("a figure of the record is no positive number")
    return value


def _read_boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UnreadableRecord("the record has a figure where it needs true or false")
    return value


def _read_choice(text: Any, *allowed: str) -> str:
    if text not in allowed:
        raise UnreadableRecord("the record has a mechanism that is not known here")
    return str(text)


def _read_bundles(document: dict[str, Any]) -> list[CellNoise]:
    result = []
    for part in document.get("bundles", []):
        _require_names(part, {"kind", "cells", "scale", "l1", "l2_squared", "linf"})
        kind = _read_choice(part["kind"], "laplace", "gaussian")
        norms = (_read_integer(part[name]) for name in ("l1", "l2_squared", "linf"))
        result.append(CellNoise(kind, _read_integer(part["cells"]), _read_fraction(part["scale"]), *norms))
    return result


def _read_selection(document: dict[str, Any]) -> list[SelectionRecord]:
    if "selection" not in document:
        return []
    part = document["selection"]
    kind = _read_choice(part["kind"], "truncated", "laplace", "gaussian", "weighted")
    weighing = {"weight"} if kind == "weighted" else set()
    _require_names(part, {"kind", "scale", "limit", "l0", "group_size", "change_one"} | weighing)
    limit, l0, group_size = (_read_integer(part[name]) for name in ("limit", "l0", "group_size"))
    weight = _read_integer(part["weight"]) if weighing else 1
    return [
        SelectionRecord(
            kind, _read_fraction(part["scale"]), limit, l0, group_size, _read_boolean(part["change_one"]), weight
        )
    ]


def _read_picks(document: dict[str, Any]) -> list[BinPick | LocalMedianRecord]:
    if ("picks" in document) != ("weights" in document):
        raise UnreadableRecord("the record has picks without weights, or weights without picks")
    if "picks" not in document:
        return []
    weights = _read_weights(document["weights"])
    result: list[BinPick | LocalMedianRecord] = []
    for part in document["picks"]:
        if "kind" in part:
            result.append(read_median(part, document["weights"]))
            continue
        _require_names(part, {"target", "at", "scale"})
        target = _read_choice(part["target"], "rank", "min", "max")
        at = Fraction(part["at"])
        if not (0 < at < 1 if target == "rank" else at >= 0):
            raise UnreadableRecord("a quantile lies between 0 and 1")
        result.append(BinPick(target, at, _read_fraction(part["scale"]), weights))
    return result


def _read_study(document: dict[str, Any]) -> list[StudyRecord]:
    if "study" not in document:
        return []
    return [StudyRecord(str(document["study"]["kind"]), *study_loss(document["study"]))]


def _read_weights(part: Any) -> BlockWeights | ValueChanges:
    if "groups" in part:
        _require_names(part, {"groups", "group_size", "change_one"})
        return ValueChanges(
            _read_integer(part["groups"]), _read_integer(part["group_size"]), _read_boolean(part["change_one"])
        )
    _require_names(part, {"norm", "summed", "single", "group_size", "change_one"})
    summed, single, change_one = (_read_boolean(part[name]) for name in ("summed", "single", "change_one"))
    return BlockWeights(_read_integer(part["norm"]), summed, single, _read_integer(part["group_size"]), change_one)
