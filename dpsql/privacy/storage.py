"""A release as bytes, and back: what the ledger stores before anyone sees it.

Law: exact and self-describing. The bytes are JSON in UTF-8 with a format number; integers and fractions are decimal
text, floats are hexadecimal, and each key value carries its type.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from dpsql.errors import IntegrityError
from dpsql.exact import Row
from dpsql.privacy.choice import MEDIAN, Exponential, Extreme, Pick, Rank, Target
from dpsql.privacy.mechanisms import Gaussian, Laplace, Mechanism
from dpsql.privacy.ptr import Proposed
from dpsql.privacy.scores import Drawing, Ranking, Scores
from dpsql.privacy.selection import (
    GaussianThreshold,
    LaplaceThreshold,
    OptimalSelection,
    Reach,
    Selection,
    WeightedGaussian,
)
from dpsql.privacy.smooth import Reached, Smooth
from dpsql.privacy.spec import Bundle, Choice, KeySelection, Release, Spec
from dpsql.privacy.studies import read_study, write_study

FORMAT = 2

_MECHANISMS: dict[str, Callable[[Fraction], Mechanism]] = {"laplace": Laplace, "gaussian": Gaussian}
_SELECTIONS: dict[str, Callable[[Fraction, int, Reach], Selection]] = {
    "truncated": OptimalSelection,
    "laplace": LaplaceThreshold,
    "gaussian": GaussianThreshold,
    "weighted": WeightedGaussian,
}
_TARGETS: dict[str, Callable[[str], Target]] = {
    "rank": lambda fraction: Rank(Fraction(fraction)),
    "min": lambda rank: Extreme(False, int(rank)),
    "max": lambda rank: Extreme(True, int(rank)),
}
_SCALARS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "float": float.fromhex,
    "decimal": Decimal,
    "str": str,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "time": time.fromisoformat,
    "interval": lambda text: timedelta(*map(int, text.split())),
    "uuid": UUID,
}


def to_bytes(release: Release) -> bytes:
    """The release as bytes that `from_bytes` reads back without loss."""
    document = {
        "dpsql_release": FORMAT,
        "grids": [str(grid) for grid in release.spec.grids],
        "bundles": [[list(bundle.columns), *_write_mechanism(bundle.mechanism)] for bundle in release.spec.bundles],
        "selection": None if release.spec.selection is None else _write_selection(release.spec.selection),
        "choice": None if release.spec.choice is None else _write_choice(release.spec.choice),
        **({} if release.spec.study is None else {"study": write_study(release.spec.study)}),
        "keys": [[write_scalar(value) for value in key] for key in release.keys],
        "cells": [column.tolist() for column in release.cells],
    }
    if release.spec.scores is not None:
        document["scores"] = _write_scores(release.spec.scores)
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def from_bytes(data: bytes) -> Release:
    """The release that `to_bytes` wrote; IntegrityError if it did not write these bytes."""
    try:
        document = json.loads(data.decode("utf-8", "surrogatepass"))
        if document["dpsql_release"] != FORMAT:
            raise IntegrityError("the stored release has a format that this version does not read")
        return _read(document)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise IntegrityError("the stored release is damaged") from error


def _read(document: dict[str, Any]) -> Release:
    selection = None if document["selection"] is None else _read_selection(document["selection"])
    choice = None if document["choice"] is None else _read_choice(document["choice"])
    bundles = tuple(
        Bundle(tuple(columns), _MECHANISMS[kind](Fraction(scale))) for columns, kind, scale in document["bundles"]
    )
    study = read_study(document["study"]) if "study" in document else None
    scores = _read_scores(document["scores"]) if "scores" in document else None
    grids = tuple(Fraction(grid) for grid in document["grids"])
    spec = Spec(grids, bundles, selection, choice, study, scores)
    keys: tuple[Row, ...] = tuple(tuple(read_scalar(value) for value in key) for key in document["keys"])
    cells = tuple(np.array(column, dtype=np.int64) for column in document["cells"])
    if len(cells) != len(spec.grids) or any(column.shape != (len(keys),) for column in cells):
        raise ValueError("cells do not fit keys and columns")
    return Release(keys, cells, spec)


def _write_mechanism(mechanism: Mechanism) -> list[str]:
    match mechanism:
        case Laplace(scale):
            return ["laplace", str(scale)]
        case Gaussian(sigma):
            return ["gaussian", str(sigma)]


def _write_selection(selection: KeySelection) -> list[Any]:
    match selection.mechanism:
        case OptimalSelection(scale, limit, reach):
            kind = "truncated"
        case LaplaceThreshold(scale, limit, reach):
            kind = "laplace"
        case GaussianThreshold(scale, limit, reach):
            kind = "gaussian"
        case WeightedGaussian(scale, limit, reach):
            kind = "weighted"
    how = [kind, str(scale), limit, reach.l0, reach.group_size, reach.change_one]
    return [selection.column, selection.keys, *how]


def _read_selection(stored: list[Any]) -> KeySelection:
    column, keys, kind, scale, limit, l0, group_size, change_one = stored
    return KeySelection(column, _SELECTIONS[kind](Fraction(scale), limit, Reach(l0, group_size, change_one)), keys)


def _write_choice(choice: Choice) -> list[Any]:
    return [choice.lower, choice.upper, choice.whole, [_write_pick(pick) for pick in choice.picks]]


def _write_pick(pick: Pick) -> list[str]:
    match pick.mechanism:
        case Exponential(scale):
            return [*_write_target(pick.target), str(scale)]
        case Smooth(epsilon, rate, reached):
            return ["smooth", str(epsilon), str(rate), str(reached.steps), str(reached.blocks)]
        case Proposed(epsilon, proposal, limit, reached):
            return ["ptr", str(epsilon), str(proposal), str(limit), str(reached.steps), str(reached.blocks)]


def _write_target(target: Target) -> tuple[str, str]:
    match target:
        case Rank(fraction):
            return "rank", str(fraction)
        case Extreme(high, rank):
            return "max" if high else "min", str(rank)


def _read_choice(stored: list[Any]) -> Choice:
    lower, upper, whole, picks = stored
    return Choice(tuple(_read_pick(*pick) for pick in picks), lower, upper, whole)


def _read_pick(kind: str, *figures: str) -> Pick:
    match kind:
        case "smooth":
            epsilon, rate, steps, blocks = figures
            return Pick(MEDIAN, Smooth(Fraction(epsilon), Fraction(rate), Reached(int(steps), int(blocks))))
        case "ptr":
            epsilon, proposal, limit, steps, blocks = figures
            reached = Reached(int(steps), int(blocks))
            return Pick(MEDIAN, Proposed(Fraction(epsilon), int(proposal), int(limit), reached))
        case _:
            where, scale = figures
            return Pick(_TARGETS[kind](where), Exponential(Fraction(scale)))


def _write_scores(scores: Scores) -> list[Any]:
    match scores:
        case Ranking(scale, most, flips, place):
            return ["ranking", str(scale), most, flips, place]
        case Drawing(scale, draws, first, alpha, beta, whole):
            return ["drawing", str(scale), draws, first, str(alpha), str(beta), whole]


def _read_scores(stored: list[Any]) -> Scores:
    kind, scale, *rest = stored
    if kind == "ranking":
        most, flips, place = rest
        return Ranking(Fraction(scale), most, flips, place)
    if kind == "drawing":
        draws, first, alpha, beta, whole = rest
        return Drawing(Fraction(scale), draws, first, Fraction(alpha), Fraction(beta), whole)
    raise ValueError("scores of an unknown kind")


def write_scalar(value: Any) -> bool | list[str] | None:
    match value:
        case np.generic():
            return write_scalar(value.item())
        case None | bool():
            return value
        case int():
            return ["int", str(value)]
        case float():
            return ["float", value.hex()]
        case Decimal():
            return ["decimal", str(value)]
        case str():
            return ["str", value]
        case datetime():  # before date, of which it is a kind
            return ["datetime", value.isoformat()]
        case date():
            return ["date", value.isoformat()]
        case time():
            return ["time", value.isoformat()]
        case timedelta():
            return ["interval", f"{value.days} {value.seconds} {value.microseconds}"]
        case UUID():
            return ["uuid", str(value)]
        case _:
            raise TypeError(f"a key of type {type(value).__name__} cannot be stored")


def read_scalar(stored: bool | list[str] | None) -> Any:
    if stored is None or isinstance(stored, bool):
        return stored
    kind, text = stored
    return _SCALARS[kind](text)
