"""What the splitter keeps while it works: query blocks and what they became, steps, and the names in scope."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from sqlglot import exp

from dpsql.plan.nodes import Aggregate
from dpsql.plan.relations import Field
from dpsql.plan.stages import ReleaseColumn, Shape
from dpsql.schema.domain import Domain
from dpsql.schema.model import Schema
from dpsql.sql.bind import Ctes
from dpsql.sql.block import ErrorBar
from dpsql.sql.outputs import Output

RECURSIVE_KEY = "recursive"
"""The note of a query that reads itself, as a CTE."""


class Ownership(Enum):
    PUBLIC = "public"
    OWNED = "owned"
    RELEASED = "released"


@dataclass(frozen=True)
class Block:
    """A query block and what it became; `outputs` is None where its columns are not known."""

    ownership: Ownership
    post: exp.Query
    errors: tuple[ErrorBar | None, ...] = ()
    outputs: tuple[Output, ...] | None = None


Environment = dict[str, Block]
GroupedSubSelect = tuple[exp.Subquery, tuple[exp.Expr, ...]]
"""A sub-select grouped by what it equates with the block around it, and the outer side of each."""


@dataclass(frozen=True)
class BoundRuntimeParameter:
    """A place in a release that an earlier step fills: `source` is post-processing over earlier steps."""

    name: str
    shape: Shape
    columns: tuple[Field, ...]
    domains: tuple[Domain, ...]
    most: int
    source: exp.Query
    unique: frozenset[str] = frozenset()


@dataclass(frozen=True)
class BoundRelease:
    """What a release asks of private rows, and the columns that post-processing reads of it."""

    name: str
    aggregate: Aggregate
    columns: tuple[ReleaseColumn, ...]
    holes: tuple[BoundRuntimeParameter, ...] = ()
    notices: tuple[str, ...] = ()
    epsilon: Fraction | None = None  # of randomized answers of all units: with which each is told


@dataclass(frozen=True)
class PublicRead:
    """A public table, or one of the catalog (`place` is its schema), that post-processing reads whole."""

    name: str
    place: str
    table: str
    columns: tuple[Field, ...]


@dataclass
class SplitState:
    schema: Schema
    preview: bool = False  # made-up rows stand in the place of every private table
    releases: dict[str, BoundRelease] = field(default_factory=dict)
    reads: dict[tuple[str, str], PublicRead] = field(default_factory=dict)
    scopes: dict[int, Ctes] = field(default_factory=dict)  # of each block over private rows, its owned CTEs
    environments: dict[int, Environment] = field(default_factory=dict)  # of each block, what its names mean
    inner: dict[int, tuple[exp.Expr, Block]] = field(default_factory=dict)  # sub-selects that became holes, once each
    grouped: dict[int, tuple[exp.Select, GroupedSubSelect | None]] = field(default_factory=dict)  # those that read an outer row
    views: dict[str, Block] = field(default_factory=dict)
    kept_views: list[exp.CTE] = field(default_factory=list)
    made_up: dict[str, str] = field(default_factory=dict)  # of a preview: private tables, and what stands for each
    names: int = 0

    def next_release_name(self) -> str:
        self.names += 1
        return f"_r{self.names}"

    def environment_of(self, node: exp.Expr) -> Environment:
        """What names mean where a node stands: the scope of the block around it."""
        ancestor: exp.Expr | None = node
        while ancestor is not None:
            if id(ancestor) in self.environments:
                return self.environments[id(ancestor)]
            ancestor = ancestor.parent
        return {}


def order_releases(releases: dict[str, BoundRelease]) -> tuple[BoundRelease, ...]:
    """By name, but what a hole's source reads comes first."""
    done: dict[str, BoundRelease] = {}

    def add(release: BoundRelease) -> None:
        for table in (table for hole in release.holes for table in hole.source.find_all(exp.Table)):
            if table.name in releases and table.name not in done:
                add(releases[table.name])
        done.setdefault(release.name, release)

    for name in sorted(releases, key=lambda name: int(name.removeprefix("_r"))):
        add(releases[name])
    return tuple(done.values())
