"""What a release loses, computed again from the record of its mechanisms (`privacy/records` writes them).

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

More in `check_scores` (the best of some), `check_medians` (by local sensitivity), `check_sparse` (thresholds).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from dpsql.ledger.check_medians import Localised, Smoothed, Tested, read_median
from dpsql.ledger.check_scores import Scoring, lost, read_scores
from dpsql.ledger.check_sparse import Sparse, lost_in, read_sparse
from dpsql.ledger.check_studies import lost_by
from dpsql.ledger.series import gaussian_from, laplace_from, truncated_from

FORMAT = 1

TAIL_TOLERANCE = Fraction(1, 10**9)
"""Relative error of the deltas here, which come from series that are cut off. Epsilon and rho are exact."""
EXCESS = 2
"""A charge of more than twice what is lost is a mistake too: someone's budget is gone for nothing. Honest charges
exceed it by rounding, and by some percent where the tail of a small Gaussian is bounded by an integral."""
_ROUNDING = Fraction(1, 1 << 70)
"""Charges round up to multiples of 2^-80, for each mechanism of a statement (up to a thousand) once."""


class Unreadable(ValueError):
    """A record that is damaged, or that holds a mechanism which is not known here."""


@dataclass(frozen=True)
class Figures:
    """A `delta`-approximate `rho`-zCDP loss, pure where `epsilon` is not None."""

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction


class Charged(Protocol):
    """The loss that an entry charges."""

    @property
    def epsilon(self) -> Fraction | None: ...
    @property
    def rho(self) -> Fraction: ...
    @property
    def delta(self) -> Fraction: ...


@dataclass(frozen=True)
class Noise:
    """Noise in the cells of a bundle; `kind` is laplace or gaussian."""

    kind: str
    cells: int
    scale: Fraction
    l1: int
    l2_squared: int
    linf: int


@dataclass(frozen=True)
class Selecting:
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
class Weights:
    """What one unit adds to the blocks that picks look at."""

    norm: int
    summed: bool
    single: bool
    group_size: int
    change_one: bool


@dataclass(frozen=True)
class Changes:
    """Elements that take other values: one in so many groups for one unit, and again for one in its place."""

    groups: int
    group_size: int
    change_one: bool


@dataclass(frozen=True)
class Picking:
    """A bin picked in every block; `target` is rank, min or max."""

    target: str
    at: Fraction
    scale: Fraction
    weights: Weights | Changes


@dataclass(frozen=True)
class Studying:
    """A mechanism that looks at a tally, whose loss `check_studies` works out."""

    kind: str
    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction


Mechanism = Noise | Selecting | Picking | Localised | Scoring | Studying | Sparse


@lru_cache(maxsize=4096)
def recompute(record: str) -> Figures:
    """What the mechanisms of a record lose together; Unreadable if they are not known here."""
    return add(figures_of(mechanism) for mechanism in read_record(record))


def covers(charged: Charged, lost: Figures) -> bool:
    """The charge is at least what was lost.

    Privacy: with this, and the sums of the chain, an account never lost more than its budget. A charge that is not
    called pure may be so; one that is called pure must be.
    """
    if charged.epsilon is not None and (lost.epsilon is None or charged.epsilon < lost.epsilon):
        return False
    return charged.rho >= lost.rho and charged.delta >= lost.delta * (1 - TAIL_TOLERANCE)


def exceeds(charged: Charged, lost: Figures) -> bool:
    """The charge is absurdly more than what was lost."""
    pairs = [(charged.rho, lost.rho), (charged.delta, lost.delta)]
    if charged.epsilon is not None and lost.epsilon is not None:
        pairs.append((charged.epsilon, lost.epsilon))
    return any(much > EXCESS * little + _ROUNDING for much, little in pairs)


def add(losses: Iterable[Figures]) -> Figures:
    epsilon: Fraction | None = Fraction(0)
    rho = delta = Fraction(0)
    for loss in losses:
        epsilon = None if epsilon is None or loss.epsilon is None else epsilon + loss.epsilon
        rho, delta = rho + loss.rho, delta + loss.delta
    return Figures(epsilon, rho, delta)


@lru_cache(maxsize=4096)
def figures_of(mechanism: Mechanism) -> Figures:
    """What one mechanism loses."""
    match mechanism:
        case Noise("laplace"):
            square = min(mechanism.l1**2, mechanism.l2_squared)
            return Figures(mechanism.l1 / mechanism.scale, _concentrated(square, mechanism.scale), Fraction(0))
        case Noise("gaussian"):
            return Figures(None, _concentrated(mechanism.l2_squared, mechanism.scale), Fraction(0))
        case Selecting():
            return Figures(None, _concentrated(mechanism.l2_squared, mechanism.scale), _shown(mechanism))
        case Picking():
            return _picked(mechanism)
        case Studying():
            return Figures(mechanism.epsilon, mechanism.rho, mechanism.delta)
        case Scoring():
            return Figures(*lost(mechanism), Fraction(0))
        case Sparse():
            return Figures(*lost_in(mechanism), Fraction(0))
        case Smoothed() | Tested():
            return Figures(None, *mechanism.figures)
        case _:
            raise Unreadable(f"noise of an unknown kind: {mechanism.kind}")


def _concentrated(square: int | Fraction, scale: Fraction) -> Fraction:
    return square / (2 * scale**2)


def _shown(selecting: Selecting) -> Fraction:
    """The probability that a selection shows what one neighbor has alone."""
    k, l0, limit, scale = selecting.group_size, selecting.l0, selecting.limit, selecting.scale
    match selecting.kind:
        case "truncated":
            mass = selecting.sides * _worst(k, l0, lambda v: truncated_from(scale, limit, limit - v + 1))
        case "laplace":
            mass = _worst(k, l0, lambda v: laplace_from(scale, limit - v + 1))
        case "gaussian":
            mass = _worst(k, l0, lambda v: gaussian_from(scale, limit - v + 1))
        case "weighted":
            mass = _worst_spread(selecting)
        case _:
            raise Unreadable(f"a selection of an unknown kind: {selecting.kind}")
    return min(Fraction(1), mass)


def _worst(k: int, l0: int, shows: Callable[[int], Fraction]) -> Fraction:
    """k l0 max p(v)/v over the counts v that k units can give to a key."""
    return max(k * l0 * shows(v) / v for v in _some(k))


def _worst_spread(selecting: Selecting) -> Fraction:
    """The maximum of t p(M/sqrt(t)) over the numbers t of keys that k units can spread their weights over."""
    most = selecting.group_size * selecting.weight
    masses = ((t, math.isqrt(most**2 // t)) for t in _some(selecting.group_size**2 * selecting.l0))
    return max(t * gaussian_from(selecting.scale, selecting.limit - mass + 1) for t, mass in masses)


def _some(last: int) -> list[int]:
    """All of 1 to `last` if they are few, else both ends and what lies between them, ever further apart."""
    if last <= 64:
        return list(range(1, last + 1))
    return sorted({round(last ** (i / 63)) for i in range(63)} | {last})


def _picked(pick: Picking) -> Figures:
    weights, b = pick.weights, pick.scale
    f, g = (max(pick.at, 1 - pick.at), min(pick.at, 1 - pick.at)) if pick.target == "rank" else (1, 0)
    if isinstance(weights, Changes):
        in_one = (f + g) * (2 if weights.change_one else 1) * weights.group_size
        return Figures(2 * in_one * weights.groups / b, _concentrated(weights.groups * in_one**2, b), Fraction(0))
    if not weights.change_one:
        moved, square = f, f**2
    elif weights.single:
        moved, square = f + g, (f + g) ** 2
    else:
        moved, square = 2 * f, 2 * (f**2 + g**2)
    most = weights.group_size * weights.norm
    epsilon = Fraction(2 * moved * most) / b if weights.summed or weights.single else None
    return Figures(epsilon, _concentrated(square * most**2, b), Fraction(0))


@lru_cache(maxsize=4096)
def read_record(record: str) -> tuple[Mechanism, ...]:
    """The mechanisms of a record; Unreadable if it holds anything else."""
    try:
        document = json.loads(record)
        _only(document, {"mechanisms"}, {"bundles", "selection", "picks", "weights", "scores", "study", "sparse"})
        if document["mechanisms"] != FORMAT:
            raise Unreadable("the record has a format that this version does not read")
        found: list[Mechanism] = [*_bundles(document), *_selection(document), *_picks(document)]
        found += [read_scores(document["scores"])] if "scores" in document else []
        found += [read_sparse(document["sparse"])] if "sparse" in document else []
        return (*found, *_study(document))
    except (TypeError, KeyError, ValueError, ZeroDivisionError, RecursionError) as error:
        raise error if isinstance(error, Unreadable) else Unreadable("the record is damaged") from error


def relations(record: str) -> set[tuple[int, bool]]:
    """The group sizes, and whether one unit is changed, for which selection, picks, scores or a study were made."""
    document = json.loads(record)
    parts = [document[name] for name in ("selection", "weights", "scores") if name in document]
    parts += [document["study"]["mass"]] if "study" in document else []
    return {(_whole(part["group_size"]), _truth(part["change_one"])) for part in parts}


def _only(part: Any, names: set[str], others: Set[str] = frozenset()) -> None:
    if not isinstance(part, dict) or not names <= part.keys() <= names | others:
        raise Unreadable("the record has names that are not known here, or lacks some")


def _whole(text: Any) -> int:
    """A positive integer."""
    value = _figure(text)
    if value.denominator != 1:
        raise Unreadable("the record has a fraction where it needs a whole number")
    return value.numerator


def _figure(text: Any) -> Fraction:
    if not isinstance(text, str) or (value := Fraction(text)) <= 0:
        raise Unreadable("a figure of the record is no positive number")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unreadable("the record has a figure where it needs true or false")
    return value


def _one_of(text: Any, *known: str) -> str:
    if text not in known:
        raise Unreadable("the record has a mechanism that is not known here")
    return str(text)


def _bundles(document: dict[str, Any]) -> list[Noise]:
    result = []
    for part in document.get("bundles", []):
        _only(part, {"kind", "cells", "scale", "l1", "l2_squared", "linf"})
        kind = _one_of(part["kind"], "laplace", "gaussian")
        whole = (_whole(part[name]) for name in ("l1", "l2_squared", "linf"))
        result.append(Noise(kind, _whole(part["cells"]), _figure(part["scale"]), *whole))
    return result


def _selection(document: dict[str, Any]) -> list[Selecting]:
    if "selection" not in document:
        return []
    part = document["selection"]
    kind = _one_of(part["kind"], "truncated", "laplace", "gaussian", "weighted")
    weighing = {"weight"} if kind == "weighted" else set()
    _only(part, {"kind", "scale", "limit", "l0", "group_size", "change_one"} | weighing)
    limit, l0, group_size = (_whole(part[name]) for name in ("limit", "l0", "group_size"))
    weight = _whole(part["weight"]) if weighing else 1
    return [Selecting(kind, _figure(part["scale"]), limit, l0, group_size, _truth(part["change_one"]), weight)]


def _picks(document: dict[str, Any]) -> list[Picking | Localised]:
    if ("picks" in document) != ("weights" in document):
        raise Unreadable("the record has picks without weights, or weights without picks")
    if "picks" not in document:
        return []
    weights = _weights(document["weights"])
    result: list[Picking | Localised] = []
    for part in document["picks"]:
        if "kind" in part:
            result.append(read_median(part, document["weights"]))
            continue
        _only(part, {"target", "at", "scale"})
        target = _one_of(part["target"], "rank", "min", "max")
        at = Fraction(part["at"])
        if not (0 < at < 1 if target == "rank" else at >= 0):
            raise Unreadable("a quantile lies between 0 and 1")
        result.append(Picking(target, at, _figure(part["scale"]), weights))
    return result


def _study(document: dict[str, Any]) -> list[Studying]:
    if "study" not in document:
        return []
    return [Studying(str(document["study"]["kind"]), *lost_by(document["study"]))]


def _weights(part: Any) -> Weights | Changes:
    if "groups" in part:
        _only(part, {"groups", "group_size", "change_one"})
        return Changes(_whole(part["groups"]), _whole(part["group_size"]), _truth(part["change_one"]))
    _only(part, {"norm", "summed", "single", "group_size", "change_one"})
    summed, single, change_one = (_truth(part[name]) for name in ("summed", "single", "change_one"))
    return Weights(_whole(part["norm"]), summed, single, _whole(part["group_size"]), change_one)
