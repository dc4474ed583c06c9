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
from dpsql.privacy.exact import Row
from dpsql.privacy.exponential import MEDIAN, Exponential, ExtremeTarget, Pick, Rank, Target
from dpsql.privacy.median import BlockReach, ProposeTestRelease, SmoothMedian
from dpsql.privacy.noise import Gaussian, Laplace, Mechanism
from dpsql.privacy.partition_selection import (
    GaussianThreshold,
    KeyReach,
    LaplaceThreshold,
    OptimalSelection,
    Selection,
    WeightedGaussian,
)
from dpsql.privacy.release_spec import BinPicks, KeySelection, NoiseBundle, Release, ReleaseSpec
from dpsql.privacy.score_selection import PosteriorDraws, Ranking, Scores
from dpsql.privacy.study_codec import study_from_json, study_to_json

RELEASE_FORMAT = 2

_MECHANISMS: dict[str, Callable[[Fraction], Mechanism]] = {"laplace": Laplace, "gaussian": Gaussian}
_SELECTIONS: dict[str, Callable[[Fraction, int, KeyReach], Selection]] = {
    "truncated": OptimalSelection,
    "laplace": LaplaceThreshold,
    "gaussian": GaussianThreshold,
    "weighted": WeightedGaussian,
}
_TARGETS: dict[str, Callable[[str], Target]] = {
    "rank": lambda fraction: Rank(Fraction(fraction)),
    "min": lambda rank: ExtremeTarget(False, int(rank)),
    "max": lambda rank: ExtremeTarget(True, int(rank)),
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


def release_to_bytes(release: Release) -> bytes:
    """The release as bytes that `release_from_bytes` reads back without loss."""
    document = {
        "dpsql_release": RELEASE_FORMAT,
        "grids": [str(grid) for grid in release.spec.grids],
        "bundles": [[list(bundle.columns), *_write_mechanism(bundle.mechanism)] for bundle in release.spec.bundles],
        "selection": None if release.spec.selection is None else _write_selection(release.spec.selection),
        "choice": None if release.spec.choice is None else _write_choice(release.spec.choice),
        **({} if release.spec.study is None else {"study": study_to_json(release.spec.study)}),
        "keys": [[scalar_to_json(value) for value in key] for key in release.keys],
        "cells": [column.tolist() for column in release.cells],
    }
    if release.spec.scores is not None:
        document["scores"] = _write_scores(release.spec.scores)
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def release_from_bytes(data: bytes) -> Release:
    """The release that `release_to_bytes` wrote; IntegrityError if it did not write these bytes."""
    try:
        document = json.loads(data.decode("utf-8", "surrogatepass"))
        if document["dpsql_release"] != RELEASE_FORMAT:
            raise IntegrityError("the stored release has a format that this version does not read")
        return _read_release(document)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise IntegrityError("the stored release is damaged") from error


def _read_release(document: dict[str, Any]) -> Release:
    selection = None if document["selection"] is None else _read_selection(document["selection"])
    choice = None if document["choice"] is None else _read_choice(document["choice"])
    bundles = tuple(
        NoiseBundle(tuple(columns), _MECHANISMS[kind](Fraction(scale))) for columns, kind, scale in document["bundles"]
    )
    study = study_from_json(document["study"]) if "study" in document else None
    scores = _read_scores(document["scores"]) if "scores" in document else None
    grids = tuple(Fraction(grid) for grid in document["grids"])
    spec = ReleaseSpec(grids, bundles, selection, choice, study, scores)
    keys: tuple[Row, ...] = tuple(tuple(scalar_from_json(value) for value in key) for key in document["keys"])
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
    parameters = [kind, str(scale), limit, reach.l0, reach.group_size, reach.change_one]
    return [selection.column, selection.keys, *parameters]


def _read_selection(stored: list[Any]) -> KeySelection:
    column, keys, kind, scale, limit, l0, group_size, change_one = stored
    return KeySelection(column, _SELECTIONS[kind](Fraction(scale), limit, KeyReach(l0, group_size, change_one)), keys)


def _write_choice(choice: BinPicks) -> list[Any]:
    return [choice.lower, choice.upper, choice.whole, [_write_pick(pick) for pick in choice.picks]]


def _write_pick(pick: Pick) -> list[str]:
    match pick.mechanism:
        case Exponential(scale):
            return [*_write_target(pick.target), str(scale)]
        case SmoothMedian(epsilon, rate, reached):
            return ["smooth", str(epsilon), str(rate), str(reached.steps), str(reached.blocks)]
        case ProposeTestRelease(epsilon, proposal, limit, reached):
            return ["ptr", str(epsilon), str(proposal), str(limit), str(reached.steps), str(reached.blocks)]


def _write_target(target: Target) -> tuple[str, str]:
    match target:
        case Rank(fraction):
            return "rank", str(fraction)
        case ExtremeTarget(high, rank):
            return "max" if high else "min", str(rank)


def _read_choice(stored: list[Any]) -> BinPicks:
    lower, upper, whole, picks = stored
    return BinPicks(tuple(_read_pick(*pick) for pick in picks), lower, upper, whole)


def _read_pick(kind: str, *figures: str) -> Pick:
    match kind:
        case "smooth":
            epsilon, rate, steps, blocks = figures
            return Pick(MEDIAN, SmoothMedian(Fraction(epsilon), Fraction(rate), BlockReach(int(steps), int(blocks))))
        case "ptr":
            epsilon, proposal, limit, steps, blocks = figures
            reached = BlockReach(int(steps), int(blocks))
            return Pick(MEDIAN, ProposeTestRelease(Fraction(epsilon), int(proposal), int(limit), reached))
        case _:
            level, scale = figures
            return Pick(_TARGETS[kind](level), Exponential(Fraction(scale)))


def _write_scores(scores: Scores) -> list[Any]:
    match scores:
        case Ranking(scale, max_candidates, flips, key_index):
            return ["ranking", str(scale), max_candidates, flips, key_index]
        case PosteriorDraws(scale, draws, first, alpha, beta, whole):
            return ["drawing", str(scale), draws, first, str(alpha), str(beta), whole]


def _read_scores(stored: list[Any]) -> Scores:
    kind, scale, *rest = stored
    if kind == "ranking":
        max_candidates, flips, key_index = rest
        return Ranking(Fraction(scale), max_candidates, flips, key_index)
    if kind == "drawing":
        draws, first, alpha, beta, whole = rest
        return PosteriorDraws(Fraction(scale), draws, first, Fraction(alpha), Fraction(beta), whole)
    raise ValueError("scores of an unknown kind")


def scalar_to_json(value: Any) -> bool | list[str] | None:
    match value:
        case np.generic():
            return scalar_to_json(value.item())
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


def scalar_from_json(stored: bool | list[str] | None) -> Any:
    if stored is None or isinstance(stored, bool):
        return stored
    kind, text = stored
    return _SCALARS[kind](text)
