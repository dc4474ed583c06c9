"""FROM, WHERE and owned sub-selects to plan nodes over private rows, each row with its unit.

What touches private rows stays *owned*: a unit's rows in the result are a function of its own rows and of public values
(SOUNDNESS 2). What would break this is refused, with a form that would not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from sqlglot import exp

from dpsql.errors import InvalidSyntax
from dpsql.plan.expr import Column, Expr, HoleValue
from dpsql.plan.relations import Named, Project, Rows, RowsHole
from dpsql.schema.domain import Domain
from dpsql.schema.model import Schema
from dpsql.sql.bind_expr import bind_condition, bind_expr
from dpsql.sql.choosing import refuse_choice
from dpsql.sql.dialect import only, span_of
from dpsql.sql.inner import bind_inner
from dpsql.sql.join_order import arranged
from dpsql.sql.joins import conjunct_nodes, holds_query, join_tree
from dpsql.sql.laterals import bind_lateral
from dpsql.sql.names import BoundColumn, Namer, Scope, is_star, starred
from dpsql.sql.names import star_columns as star_columns
from dpsql.sql.output_names import output_name
from dpsql.sql.per_unit import groups_by_unit, per_unit_select
from dpsql.sql.relation import Relation as Relation
from dpsql.sql.set_operations import bind_set_operation
from dpsql.sql.sources import Ctes as Ctes
from dpsql.sql.sources import bind_source
from dpsql.sql.sources import find_table as find_table
from dpsql.sql.windows import refuse_windows


class Outside(Protocol):
    """What is not over private rows, within a block that is: it becomes holes that earlier steps fill."""

    def is_owned(self, query: exp.Expr) -> bool:
        """Whether a query or source would give out private rows."""

    def is_named(self, source: exp.Table) -> bool:
        """Whether a name means a CTE or a view."""

    def value(self, query: exp.Expr) -> HoleValue: ...

    def values(self, query: exp.Expr) -> tuple[str, Domain]:
        """A list hole: its name, and the domain of its values."""

    def rows(self, source: exp.Expr, namer: Namer, keys: int = 0) -> tuple[RowsHole, tuple[str, ...]]:
        """A table hole, and the names of its columns as the statement knows them."""

    def grouped(
        self, select: exp.Select, is_inner: Callable[[exp.Column], bool]
    ) -> tuple[exp.Subquery, tuple[exp.Expr, ...]] | None:
        """A sub-select grouped by what it equates with the block around it: a release, and the outer side of each."""

    def apart(self) -> Outside:
        """The same, for a look that leaves no hole behind."""


@dataclass(frozen=True)
class Binder:
    """`scopes` has, for each block over private rows, the CTEs that its names can mean: those of its definition."""

    schema: Schema
    scopes: Mapping[int, Ctes] = field(default_factory=dict)
    namer: Namer = field(default_factory=Namer)
    outside: Outside | None = None
    told: list[str] = field(default_factory=list)  # notices

    # --- blocks ------------------------------------------------------------------------------------------------------

    def rows(self, select: exp.Select) -> Relation:
        """FROM and WHERE of a block over private rows."""
        relation = self.from_rows(select)
        self.open(relation, select)
        self.where(relation, select)
        relation.require_one_unit()
        return relation

    def from_rows(self, select: exp.Select) -> Relation:
        from_ = select.args.get("from_")
        if from_ is None:
            raise InvalidSyntax("a block over private rows needs FROM", span=span_of(select))
        only(from_, "this")
        return join_tree(self, from_.this, select.args.get("joins") or (), self.ctes_of(select))

    def source(self, source: exp.Expr, ctes: Ctes, alone: bool = False) -> Relation:
        return bind_source(self, source, ctes, alone)

    def lateral(self, left: Relation, join: exp.Join, ctes: Ctes) -> Relation:
        return bind_lateral(self, left, join, ctes)

    def ctes_of(self, select: exp.Expr) -> Ctes:
        """The owned CTEs in scope: those of the nearest block around that has any noted."""
        place: exp.Expr | None = select
        while place is not None:
            if id(place) in self.scopes:
                return self.scopes[id(place)]
            place = place.parent
        return {}

    def open(self, relation: Relation, select: exp.Select | None = None, outer: Scope | None = None) -> None:
        """Let expressions over the relation hold sub-selects and window functions, which add to it."""
        windows = {w.this.name.lower(): w for w in (select.args.get("windows") or ())} if select is not None else {}
        inner = partial(bind_inner, self, relation, windows)
        relation.scope = replace(relation.scope, inner=inner, outer=outer)

    def where(self, relation: Relation, select: exp.Select) -> None:
        """Plain conditions go first: sub-selects then look at fewer rows, and know what equates the units."""
        where = select.args.get("where")
        if where is not None:
            only(where, "this")
            refuse_windows(where, "WHERE")
        nodes = [] if where is None else conjunct_nodes(where.this)
        relation.filter([bind_condition(node, relation.scope) for node in nodes if not holds_query(node)])
        relation.node = arranged(relation.node, self.schema)
        relation.filter([bind_condition(node, relation.scope) for node in nodes if holds_query(node)])

    # --- queries that give out rows ----------------------------------------------------------------------------------

    def owned_query(self, query: exp.Expr) -> tuple[Rows, tuple[BoundColumn, ...]]:
        """A query over private rows that gives out rows, each with its unit: a select or a set operation."""
        while isinstance(query, exp.Subquery):
            only(query, "this", "alias")
            query = query.this
        if isinstance(query, exp.SetOperation):
            return bind_set_operation(self, query)
        assert isinstance(query, exp.Select)
        refuse_choice(query)
        if query.args.get("distinct") is not None or query.args.get("group") is not None:
            return per_unit_select(self, query)
        return self.owned_select(query)

    def owned_select(self, select: exp.Select) -> tuple[Rows, tuple[BoundColumn, ...]]:
        """A block over private rows that gives out rows: filters and computed columns only."""
        only(select, "expressions", "from_", "joins", "where", "order", "with_", "limit", "windows", "qualify")
        refuse_choice(select)
        return self.project(select, self.rows(select), select.expressions)

    def project(
        self, select: exp.Select, relation: Relation, nodes: list[exp.Expr]
    ) -> tuple[Rows, tuple[BoundColumn, ...]]:
        """The output columns over what is below; later ones may name earlier ones."""
        items: list[tuple[str, Expr, BoundColumn | None]] = []
        for number, node in enumerate(nodes):
            for name, expr, known in self.items(node, relation.scope):
                if _is_named_later(name, nodes[number + 1 :], relation.scope):
                    column = relation.add_column(self.namer.name(name), expr)
                    known = known or BoundColumn(name, column)
                    aliases = {**relation.scope.aliases, name.lower(): known.renamed(name, column)}
                    relation.scope = replace(relation.scope, aliases=aliases)
                    expr = column
                items.append((name, expr, known))
        self._qualify(relation, select, items)
        self._check_order(select, relation.scope, {name.lower() for name, _, _ in items})
        named: list[Named] = []
        columns: list[BoundColumn] = []
        for name, expr, known in items:
            column = Column(self.namer.name(name), expr.type, expr.origin if isinstance(expr, Column) else None)
            named.append(Named(column.name, expr))
            columns.append(BoundColumn(name, column) if known is None else known.renamed(name, column))
        return Project(relation.node, tuple(named)), tuple(columns)

    def items(self, item: exp.Expr, scope: Scope) -> list[tuple[str, Expr, BoundColumn | None]]:
        """The name, expression and (where it is one) column that an output item gives out."""
        if is_star(item):
            return self._star(item, scope)
        inner = item.this if isinstance(item, exp.Alias) else item
        expr = bind_expr(inner, scope)
        known = scope.resolve(inner) if isinstance(inner, exp.Column) else None
        if known is not None and expr != known.column:
            known = None  # a column that is read in another type
        return [(item.alias or (known.name if known is not None else output_name(inner)), expr, known)]

    def _star(self, item: exp.Expr, scope: Scope) -> list[tuple[str, Expr, BoundColumn | None]]:
        star = item.this if isinstance(item, exp.Column) else item
        only(star, "except_", "replace")
        replaced = {alias.alias.lower(): alias.this for alias in star.args.get("replace") or ()}
        result: list[tuple[str, Expr, BoundColumn | None]] = []
        for column in starred(item, scope):
            new = replaced.pop(column.name.lower(), None)
            result.append((column.name, column.column, column) if new is None else
                          (column.name, bind_expr(new, scope), None))  # fmt: skip
        for name, node in replaced.items():
            raise InvalidSyntax(f'column "{name}" in REPLACE does not exist', span=span_of(node))
        return result

    def _qualify(
        self, relation: Relation, select: exp.Select, items: list[tuple[str, Expr, BoundColumn | None]]
    ) -> None:
        """QUALIFY is a filter over window functions; it may name output columns."""
        qualify = select.args.get("qualify")
        if qualify is None:
            return
        only(qualify, "this")
        for name, expr, _ in items:
            if name.lower() not in relation.scope.aliases and _names(qualify, name, relation.scope):
                column = relation.add_column(self.namer.name(name), expr)
                aliases = {**relation.scope.aliases, name.lower(): BoundColumn(name, column)}
                relation.scope = replace(relation.scope, aliases=aliases)
        relation.filter([bind_condition(qualify.this, relation.scope)])

    def _check_order(self, select: exp.Select, scope: Scope, outputs: set[str]) -> None:
        """The order of rows that are aggregated has no meaning, but its names must be right."""
        order = select.args.get("order")
        for ordered in order.expressions if order is not None else ():
            inner = ordered.this
            is_output = isinstance(inner, exp.Column) and not inner.table and inner.name.lower() in outputs
            if not is_output and not isinstance(inner, exp.Literal):
                bind_expr(inner, replace(scope, inner=None) if not holds_query(inner) else scope)

    def is_per_unit(self, select: exp.Select) -> bool:
        """Whether GROUP BY or DISTINCT contains the privacy unit, so that a block gives out rows of single units."""
        scratch = replace(self, namer=Namer(), told=[])
        return groups_by_unit(scratch, select)


def _is_named_later(name: str, nodes: list[exp.Expr], scope: Scope) -> bool:
    return any(_names(node, name, scope) for node in nodes)


def _names(node: exp.Expr, name: str, scope: Scope) -> bool:
    """Whether an expression names an output column that is no column of the input."""
    for part in node.walk(prune=lambda part: isinstance(part, exp.Query)):
        if isinstance(part, exp.Column) and not part.table and part.name.lower() == name.lower() and not is_star(part):
            return scope.lookup(part) is None
    return False
