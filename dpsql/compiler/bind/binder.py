"""FROM, WHERE and owned sub-selects to plan nodes over private rows, each row with its unit.

What touches private rows stays *owned*: a unit's rows in the result are a function of its own rows and of public values
(SOUNDNESS 2). What would break this is refused, with a form that would not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from sqlglot import exp

from dpsql.compiler.bind.expressions import bind_condition, bind_expr
from dpsql.compiler.bind.joins import bind_join_tree, has_subquery, order_inner_joins, split_condition
from dpsql.compiler.bind.lateral import bind_lateral
from dpsql.compiler.bind.outputs import output_name
from dpsql.compiler.bind.per_unit import bind_per_unit_select, groups_by_unit
from dpsql.compiler.bind.relation import BoundRelation
from dpsql.compiler.bind.scope import BoundColumn, ColumnNamer, Scope, expand_star, is_star
from dpsql.compiler.bind.set_operations import bind_set_operation
from dpsql.compiler.bind.sources import Ctes, bind_source
from dpsql.compiler.bind.subqueries import bind_subquery_or_window
from dpsql.compiler.bind.windows import refuse_row_selection, refuse_windows
from dpsql.compiler.parse.dialect import refuse_other_args, span_of
from dpsql.compiler.plan.expressions import Column, Expr, HoleValue
from dpsql.compiler.plan.relations import Filter, Join, Named, Project, Rows, RowsHole
from dpsql.errors import InvalidSyntax
from dpsql.schema.model import Domain, Schema


class RuntimeParameterBinder(Protocol):
    """Binds sub-queries that are not over private rows, within a block that is: earlier steps fill in their values."""

    def is_owned(self, query: exp.Expr) -> bool:
        """Whether a query or source would give out private rows."""

    def is_cte_or_view(self, source: exp.Table) -> bool:
        """Whether a name means a CTE or a view."""

    def add_value(self, query: exp.Expr) -> HoleValue: ...

    def add_list(self, query: exp.Expr) -> tuple[str, Domain]:
        """A list hole: its name, and the domain of its values."""

    def add_table(self, source: exp.Expr, namer: ColumnNamer, keys: int = 0) -> tuple[RowsHole, tuple[str, ...]]:
        """A table hole, and the names of its columns as the statement knows them."""

    def allow_keyed_rows(self, hole: RowsHole) -> RowsHole:
        """The hole with more rows: of a join in which its unique key finds one of them."""

    def add_grouped_release(self, select: exp.Select, scope: Scope) -> tuple[exp.Subquery, tuple[exp.Expr, ...]] | None:
        """A sub-select grouped by what it equates with the block around it: a release, and the outer side of each."""

    def scratch_copy(self) -> RuntimeParameterBinder:
        """The same, for a look that leaves no hole behind."""


@dataclass(frozen=True)
class Binder:
    """`scopes` has, for each block over private rows, the CTEs that its names can mean: those of its definition."""

    schema: Schema
    scopes: Mapping[int, Ctes] = field(default_factory=dict)
    namer: ColumnNamer = field(default_factory=ColumnNamer)
    outside: RuntimeParameterBinder | None = None
    told: list[str] = field(default_factory=list)  # notices

    # --- blocks ------------------------------------------------------------------------------------------------------

    def bind_rows(self, select: exp.Select) -> BoundRelation:
        """FROM and WHERE of a block over private rows."""
        relation = self.bind_from(select)
        self.enable_subqueries(relation, select)
        self.bind_where(relation, select)
        relation.require_one_unit()
        return relation

    def bind_from(self, select: exp.Select) -> BoundRelation:
        from_ = select.args.get("from_")
        if from_ is None:
            raise InvalidSyntax("a block over private rows needs FROM", span=span_of(select))
        refuse_other_args(from_, "this")
        joins, ctes = select.args.get("joins"), self.ctes_of(select)
        if not joins:
            return self.bind_from_item(from_.this, ctes, alone=True)
        return bind_join_tree(self, from_.this, joins, ctes)

    def bind_from_item(self, source: exp.Expr, ctes: Ctes, alone: bool = False) -> BoundRelation:
        return bind_source(self, source, ctes, alone)

    def bind_lateral_join(self, left: BoundRelation, join: exp.Join, ctes: Ctes) -> BoundRelation:
        return bind_lateral(self, left, join, ctes)

    def ctes_of(self, select: exp.Expr) -> Ctes:
        """The owned CTEs in scope: those of the nearest block around that has any noted."""
        ancestor: exp.Expr | None = select
        while ancestor is not None:
            if id(ancestor) in self.scopes:
                return self.scopes[id(ancestor)]
            ancestor = ancestor.parent
        return {}

    def enable_subqueries(
        self, relation: BoundRelation, select: exp.Select | None = None, outer: Scope | None = None
    ) -> None:
        """Let expressions over the relation hold sub-selects and window functions, which add to it."""
        windows = {w.this.name.lower(): w for w in (select.args.get("windows") or ())} if select is not None else {}
        inner = partial(bind_subquery_or_window, self, relation, windows)
        relation.scope = replace(relation.scope, inner=inner, outer=outer)

    def bind_where(self, relation: BoundRelation, select: exp.Select) -> None:
        """Plain conditions go first: sub-selects then look at fewer rows, and know what equates the units."""
        where = select.args.get("where")
        if where is not None:
            refuse_other_args(where, "this")
            refuse_windows(where, "WHERE")
        nodes = [] if where is None else split_condition(where.this)
        relation.filter([bind_condition(node, relation.scope) for node in nodes if not has_subquery(node)])
        if isinstance(relation.node, Filter | Join):
            relation.node = order_inner_joins(relation.node, self.schema)
        relation.filter([bind_condition(node, relation.scope) for node in nodes if has_subquery(node)])

    # --- queries that give out rows ----------------------------------------------------------------------------------

    def bind_owned_query(self, query: exp.Expr) -> tuple[Rows, tuple[BoundColumn, ...]]:
        """A query over private rows that gives out rows, each with its unit: a select or a set operation."""
        while isinstance(query, exp.Subquery):
            refuse_other_args(query, "this", "alias")
            query = query.this
        if isinstance(query, exp.SetOperation):
            return bind_set_operation(self, query)
        assert isinstance(query, exp.Select)
        refuse_row_selection(query)
        if query.args.get("distinct") is not None or query.args.get("group") is not None:
            return bind_per_unit_select(self, query)
        return self.bind_owned_select(query)

    def bind_owned_select(self, select: exp.Select) -> tuple[Rows, tuple[BoundColumn, ...]]:
        """A block over private rows that gives out rows: filters and computed columns only."""
        refuse_other_args(
            select, "expressions", "from_", "joins", "where", "order", "with_", "limit", "windows", "qualify"
        )
        refuse_row_selection(select)
        return self.bind_projection(select, self.bind_rows(select), select.expressions)

    def bind_projection(
        self, select: exp.Select, relation: BoundRelation, nodes: list[exp.Expr]
    ) -> tuple[Rows, tuple[BoundColumn, ...]]:
        """The output columns over what is below; later ones may name earlier ones."""
        items: list[tuple[str, Expr, BoundColumn | None]] = []
        for number, node in enumerate(nodes):
            for name, expr, source_column in self.bind_output_item(node, relation.scope):
                if _is_named_later(name, nodes[number + 1 :], relation.scope):
                    column = relation.add_column(self.namer.reserve_name(name), expr)
                    source_column = source_column or BoundColumn(name, column)
                    aliases = {**relation.scope.aliases, name.lower(): source_column.with_name(name, column)}
                    relation.scope = replace(relation.scope, aliases=aliases)
                    expr = column
                items.append((name, expr, source_column))
        self._bind_qualify(relation, select, items)
        self._check_order_by(select, relation.scope, {name.lower() for name, _, _ in items})
        named: list[Named] = []
        columns: list[BoundColumn] = []
        for name, expr, source_column in items:
            column = Column(self.namer.reserve_name(name), expr.type, expr.origin if isinstance(expr, Column) else None)
            named.append(Named(column.name, expr))
            columns.append(
                BoundColumn(name, column) if source_column is None else source_column.with_name(name, column)
            )
        return Project(relation.node, tuple(named)), tuple(columns)

    def bind_output_item(self, item: exp.Expr, scope: Scope) -> list[tuple[str, Expr, BoundColumn | None]]:
        """The name, expression and (where it is one) column that an output item gives out."""
        if is_star(item):
            return self._bind_star(item, scope)
        inner = item.this if isinstance(item, exp.Alias) else item
        expr = bind_expr(inner, scope)
        source_column = scope.resolve_column(inner) if isinstance(inner, exp.Column) else None
        if source_column is not None and expr != source_column.column:
            source_column = None  # a column that is read in another type
        return [
            (
                item.alias or (source_column.name if source_column is not None else output_name(inner)),
                expr,
                source_column,
            )
        ]

    def _bind_star(self, item: exp.Expr, scope: Scope) -> list[tuple[str, Expr, BoundColumn | None]]:
        star = item.this if isinstance(item, exp.Column) else item
        refuse_other_args(star, "except_", "replace")
        replaced = {alias.alias.lower(): alias.this for alias in star.args.get("replace") or ()}
        result: list[tuple[str, Expr, BoundColumn | None]] = []
        for column in expand_star(item, scope):
            new = replaced.pop(column.name.lower(), None)
            result.append((column.name, column.column, column) if new is None else
                          (column.name, bind_expr(new, scope), None))  # fmt: skip
        for name, node in replaced.items():
            raise InvalidSyntax(f'column "{name}" in REPLACE does not exist', span=span_of(node))
        return result

    def _bind_qualify(
        self, relation: BoundRelation, select: exp.Select, items: list[tuple[str, Expr, BoundColumn | None]]
    ) -> None:
        """QUALIFY is a filter over window functions; it may name output columns."""
        qualify = select.args.get("qualify")
        if qualify is None:
            return
        refuse_other_args(qualify, "this")
        for name, expr, _ in items:
            if name.lower() not in relation.scope.aliases and _has_output_reference(qualify, name, relation.scope):
                column = relation.add_column(self.namer.reserve_name(name), expr)
                aliases = {**relation.scope.aliases, name.lower(): BoundColumn(name, column)}
                relation.scope = replace(relation.scope, aliases=aliases)
        relation.filter([bind_condition(qualify.this, relation.scope)])

    def _check_order_by(self, select: exp.Select, scope: Scope, outputs: set[str]) -> None:
        """The order of rows that are aggregated has no meaning, but its names must be right."""
        order = select.args.get("order")
        for ordered in order.expressions if order is not None else ():
            inner = ordered.this
            is_output = isinstance(inner, exp.Column) and not inner.table and inner.name.lower() in outputs
            if not is_output and not isinstance(inner, exp.Literal):
                bind_expr(inner, replace(scope, inner=None) if not has_subquery(inner) else scope)

    def is_per_unit(self, select: exp.Select) -> bool:
        """Whether GROUP BY or DISTINCT contains the privacy unit, so that a block gives out rows of single units."""
        scratch = replace(self, namer=ColumnNamer(), told=[])
        return groups_by_unit(scratch, select)


def _is_named_later(name: str, nodes: list[exp.Expr], scope: Scope) -> bool:
    return any(_has_output_reference(node, name, scope) for node in nodes)


def _has_output_reference(node: exp.Expr, name: str, scope: Scope) -> bool:
    """Whether an expression names an output column that is no column of the input."""
    for part in node.walk(prune=lambda part: isinstance(part, exp.Query)):
        if isinstance(part, exp.Column) and not part.table and part.name.lower() == name.lower() and not is_star(part):
            return scope.find_column(part) is None
    return False
