"""The mechanisms of a release as one text, from which its loss can be computed again without any other knowledge.

Law: canonical and complete. The text is JSON with sorted names and no spaces; every figure is an exact integer or
fraction in decimal text; equal mechanisms have equal texts. An entry of the ledger keeps it, under its hash, and
`ledger/checker` reads it, which shares no arithmetic with this room.

    bundles     kind, cells, scale, and the joint sensitivity: l1, l2_squared, linf, with neighbors and group size in it
    selection   kind, scale, limit (a key leaves above it), l0, group_size, change_one; weighted: what one key weighs
    picks       target, at (its fraction, or the weight it skips), scale
    weights     of what picks look at: norm, summed, single, group_size, change_one
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpsql.privacy.choice import Contribution, Extreme, Pick, Rank, Target
from dpsql.privacy.mechanisms import Gaussian, Laplace, Mechanism, Sensitivity
from dpsql.privacy.selection import (
    WEIGHT_ONE,
    GaussianThreshold,
    LaplaceThreshold,
    OptimalSelection,
    Selection,
    WeightedGaussian,
)

FORMAT = 1


@dataclass(frozen=True)
class Noised:
    """So many columns of cells, the noise in each, and how far neighbors move them all together."""

    cells: int
    sensitivity: Sensitivity
    mechanism: Mechanism


def write_record(
    bundles: Sequence[Noised],
    selection: Selection | None = None,
    picks: Sequence[Pick] = (),
    weights: Contribution | None = None,
) -> str:
    """The record of a release; `weights` are those that the picks look at."""
    if bool(picks) != (weights is not None):
        raise ValueError("picks look at weights, and nothing else does")
    document: dict[str, Any] = {"mechanisms": FORMAT}
    if bundles:
        document["bundles"] = [_bundle(bundle) for bundle in bundles]
    if selection is not None:
        document["selection"] = _selection(selection)
    if weights is not None:
        document["picks"] = [_pick(pick) for pick in picks]
        document["weights"] = _weights(weights)
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def _bundle(bundle: Noised) -> dict[str, Any]:
    match bundle.mechanism:
        case Laplace(scale):
            kind = "laplace"
        case Gaussian(scale):
            kind = "gaussian"
    moved = bundle.sensitivity
    return {
        "kind": kind,
        "cells": str(bundle.cells),
        "scale": str(scale),
        "l1": str(moved.l1),
        "l2_squared": str(moved.l2_squared),
        "linf": str(moved.linf),
    }


def _selection(selection: Selection) -> dict[str, Any]:
    extra = {}
    match selection:
        case OptimalSelection(scale, limit, reach):
            kind = "truncated"
        case LaplaceThreshold(scale, limit, reach):
            kind = "laplace"
        case GaussianThreshold(scale, limit, reach):
            kind = "gaussian"
        case WeightedGaussian(scale, limit, reach):
            kind, extra = "weighted", {"weight": str(WEIGHT_ONE)}
    return {
        "kind": kind,
        "scale": str(scale),
        "limit": str(limit),
        "l0": str(reach.l0),
        "group_size": str(reach.group_size),
        "change_one": reach.change_one,
        **extra,
    }


def _pick(pick: Pick) -> dict[str, Any]:
    target, at = _target(pick.target)
    return {"target": target, "at": at, "scale": str(pick.mechanism.scale)}


def _target(target: Target) -> tuple[str, str]:
    match target:
        case Rank(fraction):
            return "rank", str(fraction)
        case Extreme(high, rank):
            return "max" if high else "min", str(rank)


def _weights(weights: Contribution) -> dict[str, Any]:
    return {
        "norm": str(weights.norm),
        "summed": weights.summed,
        "single": weights.single,
        "group_size": str(weights.group_size),
        "change_one": weights.change_one,
    }
