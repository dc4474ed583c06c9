"""The domain of every column of a relation over private rows: as conditions narrow it, and as the scans enforce it."""

from __future__ import annotations

from typing import assert_never

from dpsql.analysis.narrow import Enforced, narrow
from dpsql.analysis.values import domain_of
from dpsql.plan.nodes import (
    Aggregate,
    CountUnits,
    Filter,
    Gather,
    Join,
    JoinKind,
    Node,
    Project,
    Scan,
    Sum,
    Table,
    Weigh,
)
from dpsql.schema.domain import Domain


def node_domains(node: Node) -> dict[str, Domain]:
    """The domain of every column of a relation over private rows."""
    match node:
        case Scan():
            return {column.name: column.domain for column in node.columns}
        case Filter():
            return narrow(node_domains(node.input), node.condition)
        case Project():
            inner = node_domains(node.input)
            return {column.name: domain_of(column.expr, inner) for column in node.columns}
        case Join():
            left, right = node_domains(node.left), node_domains(node.right)
            if node.kind is JoinKind.LEFT:
                return left | {name: domain.with_nullable(True) for name, domain in right.items()}
            return narrow(left | right, node.condition)
        case Weigh():
            return node_domains(node.input)
        case Table() | Aggregate() | Sum() | CountUnits() | Gather():
            raise TypeError("domains are derived from sanitised rows")
        case _:
            assert_never(node)


def enforced_domains(node: Node) -> Enforced:
    """The domains that the scans enforce, without what conditions say."""
    match node:
        case Scan():
            return Enforced(node_domains(node))
        case Filter() | Weigh():
            return enforced_domains(node.input)
        case Project():
            inner = enforced_domains(node.input)
            return Enforced({column.name: domain_of(column.expr, inner) for column in node.columns})
        case Join():
            return Enforced(enforced_domains(node.left) | enforced_domains(node.right))
        case Table() | Aggregate() | Sum() | CountUnits() | Gather():
            raise TypeError("domains are derived from sanitised rows")
        case _:
            assert_never(node)
