"""The mechanisms of a release as one text, from which its loss can be computed again without any other knowledge.

Law: canonical and complete. The text is JSON with sorted names and no spaces; every figure is an exact integer or
fraction in decimal text; equal mechanisms have equal texts. An entry of the ledger keeps it, under its hash, and
`ledger/loss_checker` reads it, which shares no arithmetic with this package.

    bundles     kind, cells, scale, and the joint sensitivity: l1, l2_squared, linf, with neighbors and group size in it
    selection   kind, scale, limit (a key leaves above it), l0, group_size, change_one; weighted: what one key weighs
    picks       target, at (its fraction, or the weight it skips), scale; or of a median by its local sensitivity: kind,
                epsilon, rate (smooth) or proposal and limit (ptr), steps and blocks in which neighbors differ
    weights     of what picks look at: norm, summed, single, group_size, change_one; of elements that take other values
                and neither come nor go: groups, group_size, change_one
    scores      kind, scale, rounds, and of the cells that they are made of: l1, l2_squared, linf, non_negative, single,
                group_size, change_one; of a posterior its grid: first, steps, fine
    study       kind, mass (what one unit adds to its tally), and the figures of its own that its loss follows from
    sparse      kind (threshold, or thresholdout, which gives numbers), answers, l1 with neighbors and group size in it,
                threshold_scale, query_scale, and answer_scale of the second kind
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpsql.privacy.exponential import ChangedElements, Exponential, ExtremeTarget, Pick, Rank, Target, UnitWeights
from dpsql.privacy.median import BlockReach, ProposeTestRelease, SmoothMedian
from dpsql.privacy.noise import Gaussian, Laplace, Mechanism, Sensitivity
from dpsql.privacy.partition_selection import (
    WEIGHT_ONE,
    GaussianThreshold,
    LaplaceThreshold,
    OptimalSelection,
    Selection,
    WeightedGaussian,
)
from dpsql.privacy.score_selection import LIKELIHOOD_STEPS, SHARE_STEPS, CellMoves, PosteriorDraws, Ranking, Scores
from dpsql.privacy.sparse_vector import SparseVector
from dpsql.privacy.weighted_rows import WeightedRowsMechanism

RECORD_FORMAT = 1


@dataclass(frozen=True)
class NoisedColumns:
    """So many columns of cells, the noise in each, and how far neighbors move them all together."""

    cells: int
    sensitivity: Sensitivity
    mechanism: Mechanism


def write_release_record(
    bundles: Sequence[NoisedColumns],
    selection: Selection | None = None,
    picks: Sequence[Pick] = (),
    weights: UnitWeights | None = None,
    scores: tuple[Scores, CellMoves] | None = None,
) -> str:
    """The record of a release; `weights` are those that the picks look at, and scores have the moves of their cells."""
    if bool(picks) != (weights is not None):
        raise ValueError("picks look at weights, and nothing else does")
    document: dict[str, Any] = {"mechanisms": RECORD_FORMAT}
    if bundles:
        document["bundles"] = [_bundle_record(bundle) for bundle in bundles]
    if selection is not None:
        document["selection"] = _selection_record(selection)
    if weights is not None:
        document["picks"] = [_pick_record(pick) for pick in picks]
        document["weights"] = _weights_record(weights)
    if scores is not None:
        document["scores"] = _scores_record(*scores)
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def write_study_record(mechanism: WeightedRowsMechanism) -> str:
    """The record of a release that a study makes."""
    part = {"kind": mechanism.kind, "mass": mechanism.mass.to_json(), **mechanism.to_audit_record()}
    return json.dumps({"mechanisms": RECORD_FORMAT, "study": part}, separators=(",", ":"), sort_keys=True)


def write_sparse_vector_record(sparse: SparseVector) -> str:
    """The record of an interactive mechanism: threshold queries, or the holdout."""
    scales = {"threshold_scale": str(sparse.threshold_scale), "query_scale": str(sparse.query_scale)}
    kind = "threshold"
    if sparse.answer_scale is not None:
        kind, scales["answer_scale"] = "thresholdout", str(sparse.answer_scale)
    part = {"kind": kind, "answers": str(sparse.answers), "l1": str(sparse.steps), **scales}
    return json.dumps({"mechanisms": RECORD_FORMAT, "sparse": part}, separators=(",", ":"), sort_keys=True)


def _bundle_record(bundle: NoisedColumns) -> dict[str, Any]:
    match bundle.mechanism:
        case Laplace(scale):
            kind = "laplace"
        case Gaussian(scale):
            kind = "gaussian"
    sensitivity = bundle.sensitivity
    return {
        "kind": kind,
        "cells": str(bundle.cells),
        "scale": str(scale),
        "l1": str(sensitivity.l1),
        "l2_squared": str(sensitivity.l2_squared),
        "linf": str(sensitivity.linf),
    }


def _selection_record(selection: Selection) -> dict[str, Any]:
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


def _pick_record(pick: Pick) -> dict[str, Any]:
    target, at = _target_record(pick.target)
    match pick.mechanism:
        case Exponential(scale):
            return {"target": target, "at": at, "scale": str(scale)}
        case SmoothMedian(epsilon, rate, reached):
            return {"kind": "smooth", "epsilon": str(epsilon), "rate": str(rate), **_reach_record(reached)}
        case ProposeTestRelease(epsilon, proposal, limit, reached):
            tested = {"proposal": str(proposal), "limit": str(limit)}
            return {"kind": "ptr", "epsilon": str(epsilon), **tested, **_reach_record(reached)}


def _reach_record(reached: BlockReach) -> dict[str, str]:
    return {"steps": str(reached.steps), "blocks": str(reached.blocks)}


def _target_record(target: Target) -> tuple[str, str]:
    match target:
        case Rank(fraction):
            return "rank", str(fraction)
        case ExtremeTarget(high, rank):
            return "max" if high else "min", str(rank)


def _weights_record(weights: UnitWeights) -> dict[str, Any]:
    if isinstance(weights, ChangedElements):
        sizes = {"groups": str(weights.groups), "group_size": str(weights.group_size)}
        return {**sizes, "change_one": weights.change_one}
    return {
        "norm": str(weights.norm),
        "summed": weights.summed,
        "single": weights.single,
        "group_size": str(weights.group_size),
        "change_one": weights.change_one,
    }


def _scores_record(scores: Scores, moves: CellMoves) -> dict[str, Any]:
    grid = {}
    match scores:
        case Ranking():
            kind = "flip" if scores.flips else "exponential"
        case PosteriorDraws():
            kind, grid = (
                "posterior",
                {"first": str(scores.first), "steps": str(SHARE_STEPS), "fine": str(LIKELIHOOD_STEPS)},
            )
    return {
        "kind": kind,
        "scale": str(scores.scale),
        "rounds": str(scores.rounds),
        "l1": str(moves.norms.l1),
        "l2_squared": str(moves.norms.l2_squared),
        "linf": str(moves.norms.linf),
        "non_negative": moves.non_negative,
        "single": moves.single,
        "group_size": str(moves.group_size),
        "change_one": moves.change_one,
        **grid,
    }
