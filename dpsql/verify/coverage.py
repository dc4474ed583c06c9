"""Coverage: the features of compiled statements, so that a report can say what was tried and how often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpsql.compiler.compile import Compiled, ReleaseStep
from dpsql.compiler.plan.aggregate import CountBlocks, Distinct, Node, SumBlocks, Weigh
from dpsql.compiler.plan.bundles import CovarianceBundle
from dpsql.compiler.plan.clipped_sums import ClippedSum
from dpsql.compiler.plan.expressions import Column, Compare, IsNull, split_conjuncts
from dpsql.compiler.plan.relations import (
    Expand,
    Filter,
    Join,
    JoinKind,
    Mark,
    PerUnit,
    Project,
    PublicScan,
    RowsHole,
    Scan,
    SetOperation,
    UnitWindow,
    is_public,
    row_fields,
)
from dpsql.compiler.plan.walk import walk_exprs, walk_nodes, walk_rows
from dpsql.privacy.exponential import Exponential
from dpsql.privacy.noise import Gaussian
from dpsql.privacy.norm_choice import MeanBins
from dpsql.privacy.score_selection import Ranking
from dpsql.schema.model import Schema
from dpsql.verify.generate.key_links import KeyLink, Origin, find_key_links

FEATURES = (
    "one group", "listed groups", "selected groups", "mixed keys", "grouping sets", "holes", "joins", "outer joins",
    "joins with public rows", "EXISTS and IN", "per-unit blocks", "windows", "set operations", "DISTINCT", "quantiles",
    "medians by local sensitivity", "moments of pairs", "blocks", "best values", "posteriors", "weighted units",
    "synthetic tables", "models", "randomized answers", "laplace noise", "gaussian noise", "filters", "chosen norms",
    "chosen centers", "composite keys", "rows found by a key", "rows of a composite key",
    "rows of a determining column", "anti-joins", "counted joins",
)  # fmt: skip

STUDY_FEATURES = {"synthesis": "synthetic tables", "output": "models", "objective": "models", "moments": "models",
           "response": "randomized answers"}  # fmt: skip
"""What each kind of study is counted as."""


def find_features(compiled: Compiled, schema: Schema | None = None) -> frozenset[str]:
    """Those that joins along keys have are told apart where the schema is given."""
    names = {name for step in compiled.steps for name in _step_features(step)}
    if any(isinstance(norm.bins, MeanBins) for norm in compiled.norm_steps):
        names.add("chosen centers")
    if schema is not None:
        links = find_key_links(schema)
        names |= {name for step in compiled.steps for name in _key_features(step.calibrated.plan, links)}
    return frozenset(names)


def _key_features(plan: Node, links: Sequence[KeyLink]) -> set[str]:
    """By which keys rows of one unit meet: not those whose ids are equated."""
    origins, names = dict[str, Origin](), set[str]()
    for node in [*walk_nodes(plan)][::-1]:  # what is read first
        match node:
            case Scan():
                origins |= {column.name: (node.table, column.source) for column in node.columns}
            case Project():
                origins |= {c.name: origins[c.expr.name] for c in node.columns
                            if isinstance(c.expr, Column) and c.expr.name in origins}  # fmt: skip
            case Join() | Mark() if not is_public(node.right):
                equated = [*_equated_origins(node, origins)]
                for link in links:
                    if (link.width > 1 or link.determining) and link.is_equated(equated):
                        names.add("rows of a determining column" if link.determining else "rows of a composite key")
            case _:
                pass
    return names


def _equated_origins(node: Join | Mark, origins: Mapping[str, Origin]) -> Iterator[frozenset[Origin]]:
    parts = list(split_conjuncts(node.condition))
    if isinstance(node, Mark) and node.test is not None:
        parts.append(Compare("=", *node.test))
    for part in parts:
        if isinstance(part, Compare) and part.op == "=":
            pair = (part.left, part.right)
            names = [column.name for side in pair for column in walk_exprs(side) if isinstance(column, Column)]
            if len(names) == 2 and all(name in origins for name in names):
                yield frozenset(origins[name] for name in names)


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
            if node.matches is not None:
                names.add("counted joins")
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
            return {"filters", "anti-joins"} if _keeps_unmatched(node) else {"filters"}
        case _:
            return set()


def _keeps_unmatched(node: Filter) -> bool:
    """Whether it asks for rows without a partner: where a column of a side that may be missing is NULL."""
    missing = {part.arg.name for part in split_conjuncts(node.condition)
               if isinstance(part, IsNull) and isinstance(part.arg, Column)}  # fmt: skip
    outer = (join for join in walk_rows(node.input) if isinstance(join, Join) and join.kind is JoinKind.LEFT)
    return any(missing & {f.name for f in row_fields(join.right)} for join in outer)
