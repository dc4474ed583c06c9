"""The mechanisms to apply to an engine's cells, the release they give, and its bytes. No exact cell is seen here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from dpsql.errors import IntegrityError
from dpsql.privacy.exact import Cells, Row
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
from dpsql.privacy.score_selection import PosteriorDraws, Ranking, Scores
from dpsql.privacy.study_codec import study_from_json, study_to_json
from dpsql.privacy.weighted_rows import WeightedRowsMechanism


@dataclass(frozen=True)
class NoiseBundle:
    """Columns, by position, whose joint sensitivity the mechanism was calibrated to."""

    columns: tuple[int, ...]
    mechanism: Mechanism


@dataclass(frozen=True)
class KeySelection:
    """Partition selection on the column at `column`.

    Exact rows come in blocks of consecutive rows that share their first `keys` keys, the unknown part, and so the
    count: one draw decides for all of a block.
    """

    column: int
    mechanism: Selection
    keys: int

    def __post_init__(self) -> None:
        if self.keys < 1:
            raise ValueError("at least one key is selected")


@dataclass(frozen=True)
class BinPicks:
    """Bins chosen in the engine's only column, in which a whole row weighs `whole`.

    The last key of an exact row is its bin. Of a median by its local sensitivity, rows are units, and no answer is the
    bin before the first. Rows come in blocks that share all other keys, with one row for every bin
    from `lower` to `upper`, in ascending order.
    """

    picks: tuple[Pick, ...]
    lower: int
    upper: int
    whole: int

    def __post_init__(self) -> None:
        if not self.picks:
            raise ValueError("at least one bin is chosen")
        if not -(1 << 63) <= self.lower <= self.upper < 1 << 63:
            raise ValueError("bins are 64-bit integers, and at least one")
        if self.whole < 1:
            raise ValueError("a row has a weight")
        local = any(not isinstance(pick.mechanism, Exponential) for pick in self.picks)
        if local and (self.whole != 1 or self.lower == -(1 << 63)):
            raise ValueError("units are counted one by one, and a bin before the first stands for no answer")

    @property
    def bins(self) -> int:
        return self.upper - self.lower + 1


@dataclass(frozen=True)
class ReleaseSpec:
    """What is done to each column that the engine returns: noise, a selection; else a choice of bins or by scores; or
    a study.

    `grids[i]` is what 1 means in column i of the release.
    """

    grids: tuple[Fraction, ...]
    bundles: tuple[NoiseBundle, ...]
    selection: KeySelection | None = None
    choice: BinPicks | None = None
    study: WeightedRowsMechanism | None = None
    scores: Scores | None = None

    def __post_init__(self) -> None:
        if self.scores is not None:
            if self.bundles or self.selection is not None or self.choice is not None or self.study is not None:
                raise ValueError("a choice by scores stands alone")
            if len(self.grids) != count_score_columns(self.scores):
                raise ValueError("a ranking has a grid for its places, a drawing one for each draw")
        elif self.study is not None:
            if self.bundles or self.selection is not None or self.choice is not None or self.grids != self.study.grids:
                raise ValueError("a study stands alone, and has the grids of what it gives")
        elif self.choice is not None:
            # Bins are chosen in every listed group: a draw for a key that a selection hides would be in vain.
            if self.bundles or self.selection is not None or len(self.grids) != len(self.choice.picks):
                raise ValueError("a choice stands alone, and has a grid for each pick")
        elif sorted(self._covered_columns()) != list(range(len(self.grids))):
            raise ValueError("every column belongs to exactly one bundle, or to the selection")
        if any(grid <= 0 for grid in self.grids):
            raise ValueError("a grid is positive")

    def _covered_columns(self) -> list[int]:
        selected = [] if self.selection is None else [self.selection.column]
        return [column for bundle in self.bundles for column in bundle.columns] + selected

    @property
    def columns(self) -> int:
        """How many columns the engine returns behind the keys."""
        if self.study is not None:
            return len(self.study.axes.sizes) + 1
        if self.scores is not None:
            return self.scores.columns
        return len(self.grids) if self.choice is None else 1


def count_score_columns(scores: Scores) -> int:
    """How many columns a release by scores has: the place of each candidate chosen, or one for each draw."""
    match scores:
        case Ranking():
            return 1
        case PosteriorDraws(draws=draws):
            return draws


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy cells, in grid units, of the keys that appear.

    `cells` has one array for each of `spec.grids`. Under noise these are the engine's columns, in order; that of the
    selection, which is not released, holds zeros. Of a choice there is one array for each pick, which holds the bins
    chosen, and `keys` are without the bin. Of a ranking, `keys` are those of the candidates chosen, in blocks, and the
    only array holds their places, from 1; of a drawing there is one array of shares for each draw. Of a study they are
    what it gave, and the keys are empty.
    """

    keys: tuple[Row, ...]
    cells: tuple[Cells, ...]
    spec: ReleaseSpec

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        same = self.spec == other.spec and self.keys == other.keys and len(self.cells) == len(other.cells)
        return same and all(np.array_equal(a, b) for a, b in zip(self.cells, other.cells, strict=True))

    __hash__ = None  # type: ignore[assignment]


# --- a release as bytes ----------------------------------------------------------------------------------------------
# What the ledger stores before anyone sees it, and back.
#
# Law: exact and self-describing. The bytes are JSON in UTF-8 with a format number; integers and fractions are decimal
# text, floats are hexadecimal, and each key value carries its type.


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
