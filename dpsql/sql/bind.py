"""FROM, WHERE and owned sub-selects to plan nodes over private rows, each row with its unit.

A join of private rows must equate the units, directly or along declared foreign keys; what the condition does
not say is refused, because adding it silently would change the answer (SOUNDNESS 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlglot import exp

from dpsql.errors import InternalError, InvalidSyntax, NotPrivate, UnknownTable, Unsupported
from dpsql.plan.expr import TRUE, Column, Compare, Expr, conjunction, conjuncts
from dpsql.plan.relations import Field, Filter, Join, JoinKind, Named, Project, Rows, Table
from dpsql.schema import model
from dpsql.schema.model import ForeignUnit, OwnUnit, RowUnit, Schema
from dpsql.sql.bind_expr import bind_condition, bind_expr
from dpsql.sql.coerce import meet
from dpsql.sql.dialect import only, span_of
from dpsql.sql.names import BoundColumn, Namer, Scope, SourceScope, same
from dpsql.types import Type


@dataclass(frozen=True)
class Relation:
    """Owned rows and the names under which their columns are in scope."""

    node: Rows
    scope: Scope


Ctes = Mapping[str, exp.Query]


@dataclass(frozen=True)
class Binder:
    """`scopes` has, for each block over private rows, the CTEs that its names can mean: those of its definition."""

    schema: Schema
    scopes: Mapping[int, Ctes] = field(default_factory=dict)
    namer: Namer = field(default_factory=Namer)

    # --- SELECT ------------------------------------------------------------------------------------------------------

    def rows(self, select: exp.Select) -> Relation:
        """FROM and WHERE of a block over private rows."""
        ctes = self.scopes.get(id(select), {})
        relation = self.source(select.args["from_"].this, ctes)
        for join in select.args.get("joins") or ():
            relation = self.join(relation, join, ctes)
        where = select.args.get("where")
        if where is not None:
            only(where, "this")
            condition = bind_condition(where.this, relation.scope)
            relation = Relation(Filter(relation.node, condition), relation.scope)
        return relation

    def owned_select(self, select: exp.Select) -> tuple[Rows, tuple[BoundColumn, ...]]:
        """A block over private rows that gives out rows: filters and computed columns only."""
        only(select, "expressions", "from_", "joins", "where", "order", "with_", "limit")
        if select.args.get("limit") is not None:
            raise NotPrivate(
                "LIMIT over private rows lets one unit move another's rows",
                hint="Aggregate first, then use LIMIT in the outer SELECT.",
                span=span_of(select.args["limit"]),
            )
        relation = self.rows(select)
        named: list[Named] = []
        columns: list[BoundColumn] = []
        for item in select.expressions:
            for name, expr, known in self._items(item, relation.scope):
                inner = self.namer.name(name)
                column = Column(inner, expr.type, expr.origin if isinstance(expr, Column) else None)
                named.append(Named(inner, expr))
                columns.append(_renamed(known, name, column))
        self._check_order(select, relation.scope, {column.name.lower() for column in columns})
        return Project(relation.node, tuple(named)), tuple(columns)

    def _check_order(self, select: exp.Select, scope: Scope, outputs: set[str]) -> None:
        """The order of rows that are aggregated has no meaning, but its names must be right."""
        order = select.args.get("order")
        for ordered in order.expressions if order is not None else ():
            inner = ordered.this
            is_output = isinstance(inner, exp.Column) and not inner.table and inner.name.lower() in outputs
            if not is_output and not isinstance(inner, exp.Literal):
                bind_expr(inner, scope)

    def _items(self, item: exp.Expr, scope: Scope) -> list[tuple[str, Expr, BoundColumn | None]]:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            return [(c.name, c.column, c) for c in star_columns(item, scope)]
        inner = item.this if isinstance(item, exp.Alias) else item
        expr = bind_expr(inner, scope)
        known = scope.resolve(inner) if isinstance(inner, exp.Column) else None
        return [(item.alias or inner.name or "column", expr, known)]

    # --- FROM --------------------------------------------------------------------------------------------------------

    def source(self, source: exp.Expr, ctes: Ctes) -> Relation:
        if isinstance(source, exp.Table):
            return self._table(source, ctes)
        if isinstance(source, exp.Subquery):
            only(source, "this", "alias")
            if source.args.get("alias") is not None:
                only(source.args["alias"], "this")
            return self._derived(source.this, source.alias or "subquery")
        raise Unsupported("this cannot stand in FROM with private rows", span=span_of(source))

    def _derived(self, query: exp.Expr, alias: str) -> Relation:
        if not isinstance(query, exp.Select):
            raise Unsupported("UNION and its like over private rows are not supported yet", span=span_of(query))
        node, columns = self.owned_select(query)
        return Relation(node, Scope((SourceScope(alias, columns),)))

    def _table(self, source: exp.Table, ctes: Ctes) -> Relation:
        only(source, "this", "db", "catalog", "alias")
        check_qualifier(source)
        alias = source.args.get("alias")
        if alias is not None:
            only(alias, "this")
        cte = None if source.db else ctes.get(source.name.lower())
        if cte is not None:
            return self._derived(cte, source.alias or source.name)
        table = find_table(self.schema, source)
        if table.public:
            raise Unsupported(
                f'joining the public table "{table.name}" with private rows is not supported yet', span=span_of(source)
            )
        return self._private(table, source.alias or table.name)

    def _private(self, table: model.Table, alias: str) -> Relation:
        columns = tuple(self._declared(table, column) for column in table.columns)
        node = Table(table.name, tuple((c.name, Field(c.column.name, c.column.type)) for c in columns),
                     self._unit_type(table))  # fmt: skip
        return Relation(node, Scope((SourceScope(alias, columns),)))

    def _declared(self, table: model.Table, column: model.Column) -> BoundColumn:
        bound = Column(self.namer.name(column.name), column.type, f"{table.name}.{column.name}")
        refers = None
        if isinstance(table.unit, ForeignUnit) and table.unit.column == column.name:
            refers = (table.unit.table, table.unit.key)
        return BoundColumn(
            name=column.name,
            column=bound,
            is_unit=self._is_unit(table, column.name),
            refers_to=refers,
            is_key_of=(table.name, column.name) if table.is_unique(column.name) else None,
        )

    def _is_unit(self, table: model.Table, column: str) -> bool:
        match table.unit:
            case OwnUnit(unit):
                return unit == column
            case ForeignUnit(own, target, key):
                other = self.schema.table(target)
                return own == column and other is not None and other.unit == OwnUnit(key)
            case _:
                return False

    def _unit_type(self, table: model.Table) -> Type | None:
        if isinstance(table.unit, RowUnit):
            return None
        path = self.schema.unit_path(table)
        owner, column = (path[-1].table, path[-1].key) if path else (table.name, self.schema.privacy.unit.split(".")[1])
        found = self.schema.table(owner)
        unit = found.column(column) if found is not None else None
        if unit is None:
            raise InternalError("the unit's column is not declared")
        return unit.type

    # --- joins -------------------------------------------------------------------------------------------------------

    def join(self, left: Relation, join: exp.Join, ctes: Ctes) -> Relation:
        only(join, "this", "on", "using", "side", "kind")
        kind = self._kind(join)
        right = self.source(join.this, ctes)
        if self.schema.privacy.unit == "row":
            raise NotPrivate(
                "where each row is its own privacy unit, private tables cannot be joined",
                hint="A joined row would belong to two units.",
                span=span_of(join),
            )
        _check_aliases(left.scope, right.scope, join)
        scope = Scope(left.scope.sources + right.scope.sources, left.scope.merged)
        condition, merged = self._condition(join, left, right, scope)
        if not _equates_units(condition, left.scope, right.scope):
            raise NotPrivate(
                "a join of private rows must equate their privacy units",
                detail="Otherwise a joined row belongs to two units.",
                hint=_join_hint(left.scope, right.scope),
                span=span_of(join),
            )
        sources = right.scope.sources
        if kind is JoinKind.LEFT:
            sources = tuple(SourceScope(s.alias, tuple(c.nullable() for c in s.columns)) for s in sources)
        scope = Scope(left.scope.sources + sources, left.scope.merged | merged)
        return Relation(Join(left.node, right.node, kind, condition), scope)

    def _kind(self, join: exp.Join) -> JoinKind:
        side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
        if (side, kind) in (("", ""), ("", "INNER")):
            return JoinKind.INNER
        if side == "LEFT" and kind in ("", "OUTER"):
            return JoinKind.LEFT
        raise Unsupported(f"{' '.join(filter(None, (side, kind)))} JOIN over private rows is not supported yet",
                          span=span_of(join))  # fmt: skip

    def _condition(self, join: exp.Join, left: Relation, right: Relation, scope: Scope) -> tuple[Expr, frozenset[str]]:
        using = join.args.get("using")
        if using:
            parts: list[Expr] = []
            for name in using:
                column = exp.Column(this=name)
                sides: list[Expr] = [bind_expr(column, side.scope) for side in (left, right)]
                (one, other), _ = meet(sides, [name, name], "comparison")
                parts.append(Compare("=", one, other))
            return conjunction(tuple(parts)), frozenset(name.name.lower() for name in using)
        on = join.args.get("on")
        return (TRUE if on is None else bind_condition(on, scope)), frozenset()


def check_qualifier(node: exp.Table | exp.Column) -> None:
    """`public.` may stand before a table's name; no other schema or database does."""
    if node.catalog or (node.db and node.db.lower() not in ("public", "main")):
        name = node.catalog or node.db
        raise UnknownTable(f'there is no schema "{name}"', hint="Write the table's name alone.", span=span_of(node))


def find_table(schema: Schema, source: exp.Table) -> model.Table:
    exact = schema.table(source.name)
    if exact is not None:
        return exact
    for table in schema.tables:
        if same(source.this, table.name):
            return table
    names = [table.name for table in schema.tables]
    close = get_close_matches(source.name, names, n=1)
    raise UnknownTable(
        f'table "{source.name}" does not exist',
        hint=f'Perhaps you meant "{close[0]}".' if close else f"Tables: {', '.join(names)}.",
        span=span_of(source),
    )


def star_columns(item: exp.Expr, scope: Scope) -> list[BoundColumn]:
    """`*` or `t.*` written out, columns merged by USING once."""
    if isinstance(item, exp.Column):
        only(item.this)
        chosen = [source for source in scope.sources if same(item.args["table"], source.alias)]
        if not chosen:
            raise UnknownTable(f'there is no table "{item.table}" in FROM', span=span_of(item))
        return [column for source in chosen for column in source.columns]
    only(item)
    result: list[BoundColumn] = []
    for column in scope.columns():
        folded = column.name.lower()
        if not (folded in scope.merged and any(c.name.lower() == folded for c in result)):
            result.append(column)
    return result


def _renamed(known: BoundColumn | None, name: str, column: Column) -> BoundColumn:
    if known is None:
        return BoundColumn(name, column)
    return BoundColumn(name, column, known.is_unit, known.refers_to, known.is_key_of)


def _equates_units(condition: Expr, left: Scope, right: Scope) -> bool:
    by_name = {c.column.name: c for c in (*left.columns(), *right.columns())}
    lefts = {c.column.name for c in left.columns()}
    for part in conjuncts(condition):
        match part:
            case Compare("=", Column() as a, Column() as b) if (a.name in lefts) != (b.name in lefts):
                one, other = by_name[a.name], by_name[b.name]
                if one.is_unit and other.is_unit:
                    return True
                if _linked(one, other) or _linked(other, one):
                    return True
            case _:
                pass
    return False


def _linked(child: BoundColumn, parent: BoundColumn) -> bool:
    """A declared foreign key meets the accepted unique key that it refers to: both rows have the same unit."""
    return child.refers_to is not None and child.refers_to == parent.is_key_of


def _check_aliases(left: Scope, right: Scope, join: exp.Join) -> None:
    taken = {source.alias.lower() for source in left.sources}
    for source in right.sources:
        if source.alias.lower() in taken:
            raise InvalidSyntax(
                f'table name "{source.alias}" is used more than once',
                hint=f"Give one of them another name: {source.alias} AS {source.alias}2.",
                span=span_of(join),
                sqlstate="42712",
            )


def _join_hint(left: Scope, right: Scope) -> str:
    def unit(scope: Scope) -> str | None:
        for source in scope.sources:
            for column in source.columns:
                if column.is_unit:
                    return f"{source.alias}.{column.name}"
        return None

    ours, theirs = unit(left), unit(right)
    if ours and theirs:
        return f"Join on the privacy unit: ON {ours} = {theirs}."
    return "Join along the foreign keys that the schema declares."


