"""Coverage: the features of compiled statements, so that a report can say what was tried and how often."""

from __future__ import annotations

from dpsql.compiler.compile import Compiled, ReleaseStep
from dpsql.compiler.plan.aggregate import CountBlocks, Distinct, SumBlocks, Weigh
from dpsql.compiler.plan.bundles import CovarianceBundle
from dpsql.compiler.plan.clipped_sums import ClippedSum
from dpsql.compiler.plan.relations import (
    Expand,
    Filter,
    Join,
    JoinKind,
    Mark,
    PerUnit,
    PublicScan,
    RowsHole,
    Scan,
    SetOperation,
    UnitWindow,
    is_public,
)
from dpsql.compiler.plan.walk import walk_nodes
from dpsql.privacy.exponential import Exponential
from dpsql.privacy.noise import Gaussian
from dpsql.privacy.norm_choice import MeanBins
from dpsql.privacy.score_selection import Ranking

FEATURES = (
    "one group", "listed groups", "selected groups", "mixed keys", "grouping sets", "holes", "joins", "outer joins",
    "joins with public rows", "EXISTS and IN", "per-unit blocks", "windows", "set operations", "DISTINCT", "quantiles",
    "medians by local sensitivity", "moments of pairs", "blocks", "best values", "posteriors", "weighted units",
    "synthetic tables", "models", "randomized answers", "laplace noise", "gaussian noise", "filters", "chosen norms",
    "chosen centers", "composite keys", "rows found by a key",
)  # fmt: skip

STUDY_FEATURES = {"synthesis": "synthetic tables", "output": "models", "objective": "models", "moments": "models",
           "response": "randomized answers"}  # fmt: skip
"""What each kind of study is counted as."""


def find_features(compiled: Compiled) -> frozenset[str]:
    names = {name for step in compiled.steps for name in _step_features(step)}
    if any(isinstance(norm.bins, MeanBins) for norm in compiled.norm_steps):
        names.add("chosen centers")
    return frozenset(names)


def _step_features(step: ReleaseStep) -> set[str]:
    calibrated = step.calibrated
    if calibrated.study is not None:
        names = {STUDY_FEATURES[calibrated.study.kind]}
        return names.union(*(_node_features(node) for node in walk_nodes(calibrated.plan)))
    gather, names = calibrated.gather, set[str]()
    if not gather.keys:
        names.add("one group")
    elif gather.selection is None:
        names.add("listed groups")
    else:
        names.add("mixed keys" if gather.listed is not None else "selected groups")
    if step.holes:
        names.add("holes")
    if calibrated.choice is not None:
        local = any(not isinstance(pick.mechanism, Exponential) for pick in calibrated.choice.picks)
        names.add("medians by local sensitivity" if local else "quantiles")
    if calibrated.scores is not None:
        names.add("best values" if isinstance(calibrated.scores, Ranking) else "posteriors")
    for bundle in calibrated.bundles:
        names.add("gaussian noise" if isinstance(bundle.mechanism, Gaussian) else "laplace noise")
    for node in walk_nodes(gather):
        names |= _node_features(node)
    for part in gather.parts:
        for bundle_of_part in getattr(part, "bundles", ()):
            if isinstance(bundle_of_part, CovarianceBundle):
                names.add("moments of pairs")
    return names


def _node_features(node: object) -> set[str]:
    match node:
        case Join():
            names = {"joins with public rows" if is_public(node.right) else "joins"}
            return names if node.kind is JoinKind.INNER else names | {"outer joins"}
        case Mark():
            return {"EXISTS and IN"}
        case PerUnit():
            return {"per-unit blocks"}
        case UnitWindow():
            return {"windows"}
        case SetOperation():
            return {"set operations"}
        case Expand():
            return {"grouping sets"}
        case Distinct():
            return {"DISTINCT"}
        case SumBlocks() | CountBlocks():
            return {"blocks"}
        case Weigh():
            return {"weighted units"}
        case PublicScan():
            return {"joins with public rows"}
        case RowsHole():
            return {"holes", "rows found by a key"} if node.unique else {"holes"}
        case ClippedSum():
            return {"chosen norms"}
        case Scan() if node.unit is not None and any(hop.also for hop in node.unit.hops):
            return {"composite keys"}
        case Filter():
            return {"filters"}
        case _:
            return set()
