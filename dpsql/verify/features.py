"""What a compiled statement had in it, so that a report can say what was tried and how often."""

from __future__ import annotations

from dpsql.compile import Compiled, ReleaseStep
from dpsql.plan.bundles import CovarianceBundle
from dpsql.plan.nodes import Distinct, Weigh
from dpsql.plan.relations import (
    Expand,
    Filter,
    Join,
    JoinKind,
    Mark,
    PerUnit,
    PublicScan,
    RowsHole,
    SetOperation,
    UnitWindow,
    is_public,
)
from dpsql.plan.walk import walk_nodes
from dpsql.privacy.mechanisms import Gaussian

FEATURES = (
    "one group", "listed groups", "selected groups", "mixed keys", "grouping sets", "holes", "joins", "outer joins",
    "joins with public rows", "EXISTS and IN", "per-unit blocks", "windows", "set operations", "DISTINCT", "quantiles",
    "moments of pairs", "weighted units", "laplace noise", "gaussian noise", "filters",
)  # fmt: skip


def features(compiled: Compiled) -> frozenset[str]:
    return frozenset(name for step in compiled.steps for name in _of_step(step))


def _of_step(step: ReleaseStep) -> set[str]:
    calibrated = step.calibrated
    gather, found = calibrated.gather, set[str]()
    if not gather.keys:
        found.add("one group")
    elif gather.selection is None:
        found.add("listed groups")
    else:
        found.add("mixed keys" if gather.listed is not None else "selected groups")
    if step.holes:
        found.add("holes")
    if calibrated.choice is not None:
        found.add("quantiles")
    for bundle in calibrated.bundles:
        found.add("gaussian noise" if isinstance(bundle.mechanism, Gaussian) else "laplace noise")
    for node in walk_nodes(gather):
        found |= _of_node(node)
    for part in gather.parts:
        for own in getattr(part, "bundles", ()):
            if isinstance(own, CovarianceBundle):
                found.add("moments of pairs")
    return found


def _of_node(node: object) -> set[str]:
    match node:
        case Join():
            found = {"joins with public rows" if is_public(node.right) else "joins"}
            return found if node.kind is JoinKind.INNER else found | {"outer joins"}
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
        case Weigh():
            return {"weighted units"}
        case PublicScan():
            return {"joins with public rows"}
        case RowsHole():
            return {"holes"}
        case Filter():
            return {"filters"}
        case _:
            return set()
