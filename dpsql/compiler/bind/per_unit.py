"""Blocks that group by the privacy unit, or are DISTINCT with it: their rows belong to single units, and stay owned.

    SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id HAVING COUNT(*) > 2
    →  Project patient_id, n · Filter n > 2 · PerUnit by patient_id: count rows · Table visits

Stability: each group holds rows of one unit, so its results are a function of that unit's rows (SOUNDNESS 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.compiler.bind.aggregates import has_aggregate, is_aggregate
from dpsql.compiler.bind.expressions import bind_condition, bind_expr
from dpsql.compiler.bind.outputs import output_name
from dpsql.compiler.bind.relation import BoundRelation, nesting_level_error
from dpsql.compiler.bind.scope import BoundColumn, MergedColumn, Scope, SourceScope, expand_star, is_star
from dpsql.compiler.bind.unit_aggregates import UnitPickBinder, bind_unit_measure
from dpsql.compiler.bind.windows import refuse_row_selection, refuse_windows
from dpsql.compiler.parse.dialect import refuse_other_args, span_of
from dpsql.compiler.plan.expressions import Column, Expr
from dpsql.compiler.plan.relations import Named, PerUnit, Rows, UnitMeasure
from dpsql.compiler.plan.walk import columns_of, map_expr
from dpsql.errors import Error, GroupingError, InternalError, InvalidSyntax, Unsupported

if TYPE_CHECKING:
    from dpsql.compiler.bind.binder import Binder

GROUP_SOURCE = "_group"
"""The source that measures and computed keys are in, above the grouping."""


def groups_by_unit(binder: Binder, select: exp.Select) -> bool:
    group, distinct = select.args.get("group"), select.args.get("distinct")
    if select.args.get("from_") is None or (group is None and distinct is None):
        return False
    if group is None and any(has_aggregate(item) for item in select.expressions):
        return False
    scope = binder.bind_from(select).scope
    return any(_is_unit_key(node, scope) for node in _expand_key_nodes(select, scope))


def _is_unit_key(node: exp.Expr, scope: Scope) -> bool:
    while isinstance(node, exp.Paren | exp.Alias):
        node = node.this
    if is_star(node):
        return any(column.leads_to_unit for column in expand_star(node, scope))
    return isinstance(node, exp.Column) and (resolved := scope.find_column(node)) is not None and resolved.leads_to_unit


def _expand_key_nodes(select: exp.Select, scope: Scope) -> list[exp.Expr]:
    """GROUP BY written out: positions, aliases and ALL; or the columns of DISTINCT."""
    group = select.args.get("group")
    if group is None:
        return list(select.expressions)
    if group.args.get("all"):
        if group.expressions:
            raise InvalidSyntax("GROUP BY ALL takes no further keys", span=span_of(group.expressions[0]))
        return [item.unalias() for item in select.expressions if not has_aggregate(item)]
    return [_resolve_key_node(node, select, scope) for node in group.expressions]


def _resolve_key_node(node: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    """GROUP BY 2 and GROUP BY alias mean the SELECT item; an input column of that name goes first."""
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        position = int(node.this) if str(node.this).isdigit() else 0
        if not 1 <= position <= len(select.expressions):
            raise InvalidSyntax(f"GROUP BY position {node.this} is not in the select list", span=span_of(node),
                                sqlstate="42P10")  # fmt: skip
        return select.expressions[position - 1].unalias()  # type: ignore[no-any-return]
    if isinstance(node, exp.Column) and not node.table and scope.find_column(node) is None:
        for item in select.expressions:
            if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower():
                return item.this  # type: ignore[no-any-return]
    return node


# --- binding ---------------------------------------------------------------------------------------------------------


def bind_per_unit_select(binder: Binder, select: exp.Select) -> tuple[Rows, tuple[BoundColumn, ...]]:
    refuse_row_selection(select)
    refuse_other_args(
        select,
        "expressions",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "order",
        "with_",
        "distinct",
        "windows",
        "qualify",
    )
    relation = binder.bind_rows(select)
    if select.args.get("group") is None:
        node, columns = binder.bind_projection(select, relation, select.expressions)
    else:
        node, columns = _bind_grouped(binder, select, relation)
    if select.args.get("distinct") is None:
        return node, columns
    refuse_other_args(select.args["distinct"])
    return _bind_distinct(binder, select, node, columns)


def _bind_distinct(
    binder: Binder, select: exp.Select, node: Rows, columns: tuple[BoundColumn, ...]
) -> tuple[Rows, tuple[BoundColumn, ...]]:
    if not any(column.leads_to_unit for column in columns):
        raise Unsupported(
            "DISTINCT over rows of single units must contain the privacy unit",
            hint="Add the unit's column, or group in a sub-select: SELECT DISTINCT n FROM (… GROUP BY …) AS t.",
            span=span_of(select.expressions[0]),
        )
    keys, named = [], []
    for column in columns:
        name = binder.namer.reserve_name(column.name)
        named.append(Named(name, column.column))
        keys.append(column.with_name(column.name, Column(name, column.column.type, column.column.origin)))
    return PerUnit(node, tuple(named), ()), tuple(keys)


def _bind_grouped(binder: Binder, select: exp.Select, relation: BoundRelation) -> tuple[Rows, tuple[BoundColumn, ...]]:
    over = UnitGrouping(binder, relation, select)
    grouped, above, items = _group_rows(binder, select, over)
    if not any(column.leads_to_unit for column in over.key_columns):
        raise InternalError("a block that does not group by the unit gives out rows")
    return binder.bind_projection(above, grouped, items)


def bind_correlated_group(binder: Binder, select: exp.Select, relation: BoundRelation, node: exp.Expr) -> BoundRelation:
    """A grouped sub-select that reads the outer block: its conditions on keys choose whole groups, and go above."""
    if select.args.get("group") is None:
        raise Unsupported(
            "an aggregate cannot stand in this sub-select",
            hint="Compare it as a value: (SELECT COUNT(*) FROM …) > 2.",
            span=span_of(node),
        )
    refuse_other_args(select, "expressions", "from_", "joins", "where", "group", "having", "order")
    over = UnitGrouping(binder, relation, select)
    grouped, _, items = _group_rows(binder, select, over)
    moved = {key.expr.name: column.column for key, column in zip(over.keys, over.key_columns, strict=True)
             if isinstance(key.expr, Column)}  # fmt: skip
    for condition in relation.correlated:
        if not columns_of(condition) & relation.names <= moved.keys():
            raise Unsupported(
                "a grouped sub-select may compare its keys with the outer block, and nothing else",
                hint="Add the compared column to GROUP BY of the sub-select.",
                span=span_of(node),
            )
        grouped.correlated += (
            map_expr(condition, lambda e: moved[e.name] if isinstance(e, Column) and e.name in moved else e),
        )
    columns = []
    for item in items:
        for name, expr, bound in binder.bind_output_item(item, grouped.scope):
            column = grouped.add_column(binder.namer.reserve_name(name), expr)
            columns.append(BoundColumn(name, column) if bound is None else bound.with_name(name, column))
    grouped.scope = Scope((SourceScope("subquery", tuple(columns)),))
    return grouped


def _group_rows(
    binder: Binder, select: exp.Select, over: UnitGrouping
) -> tuple[BoundRelation, exp.Select, list[exp.Expr]]:
    """The grouped rows that HAVING keeps; the clauses above them and the output items, over their columns."""
    refuse_other_args(select.args["group"], "expressions", "all")
    for node in _expand_key_nodes(select, over.below.scope):
        over.add_key(node)
    items = [over.rewrite_item(item) for item in _expand_stars(select, over.below.scope)]
    having = select.args.get("having")
    if having is not None:
        refuse_other_args(having, "this")
        refuse_windows(having, "HAVING")
    condition = None if having is None else over.rewrite_expression(having.this)
    above = _clauses_above(select, over)
    over.check_levels()
    grouped = over.build_relation()
    binder.enable_subqueries(grouped, above)
    if condition is not None:
        grouped.filter([bind_condition(condition, grouped.scope)])
    return grouped, above, items


def _clauses_above(select: exp.Select, over: UnitGrouping) -> exp.Select:
    """The clauses that are read above the grouping, over its columns."""
    above = exp.Select()
    for clause in ("qualify", "order"):
        if select.args.get(clause) is not None:
            above.set(clause, over.rewrite_expression(select.args[clause]))
    above.set("windows", [over.rewrite_expression(window) for window in select.args.get("windows") or ()])
    above.parent = select.parent
    return above


def _expand_stars(select: exp.Select, scope: Scope) -> list[exp.Expr]:
    """SELECT items with * as columns."""
    result: list[exp.Expr] = []
    for item in select.expressions:
        if not is_star(item):
            result.append(item)
            continue
        refuse_other_args(item.this if isinstance(item, exp.Column) else item, "except_")
        by_name = {c.column.name: s.alias for s in scope.sources for c in s.columns}
        for column in expand_star(item, scope):
            alias = by_name.get(column.column.name)
            result.append(exp.column(exp.to_identifier(column.name, quoted=True), table=alias, quoted=True))
    return result


@dataclass
class UnitGrouping:
    """Collects keys and measures while expressions are rewritten to stand above the grouping."""

    binder: Binder
    below: BoundRelation
    select: exp.Select
    keys: list[Named] = field(default_factory=list)
    key_columns: list[BoundColumn] = field(default_factory=list)
    measures: list[UnitMeasure] = field(default_factory=list)
    _places: dict[str, str] = field(default_factory=dict)  # the text of an expression, its column above
    _inlining: set[str] = field(default_factory=set)

    def add_key(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            raise Unsupported("ROLLUP, CUBE and GROUPING SETS beside the privacy unit are not supported",
                              hint="Group by the unit in a sub-select first.", span=span_of(node))  # fmt: skip
        if has_aggregate(node):
            raise GroupingError("aggregates cannot stand in GROUP BY", span=span_of(node))
        if is_star(node):
            for column in expand_star(node, self.below.scope):
                self._add_column_key(column)
            return
        bare = _strip_parentheses(node)
        if isinstance(bare, exp.Column):
            self._add_column_key(self.below.scope.resolve_column(bare))
        elif _expression_text(bare) not in self._places:
            self._add_computed_key(bare, bind_expr(bare, self.below.scope))

    def _add_column_key(self, column: BoundColumn) -> None:
        # ROUND of a whole number is bound as the number itself, but is no column that others may name.
        if any(key.expr == column.column and key.name not in self._computed_names for key in self.keys):
            return
        name = self.binder.namer.reserve_name(column.name)
        self.keys.append(Named(name, column.column))
        self.key_columns.append(column.with_name(column.name, Column(name, column.column.type, column.column.origin)))

    def _add_computed_key(self, node: exp.Expr, expr: Expr) -> None:
        name = self.binder.namer.reserve_name("key")
        self.keys.append(Named(name, expr))
        self.key_columns.append(BoundColumn(name, Column(name, expr.type)))
        self._places[_expression_text(node)] = name

    @property
    def _computed_names(self) -> frozenset[str]:
        """The names of keys that are no columns."""
        return frozenset(self._places.values())

    # --- expressions above the grouping ------------------------------------------------------------------------------

    def rewrite_item(self, item: exp.Expr) -> exp.Expr:
        if isinstance(item, exp.Alias):
            return exp.Alias(this=self.rewrite_expression(item.this), alias=item.args["alias"])
        new = self.rewrite_expression(item)
        if isinstance(item, exp.Column):
            return new
        return exp.Alias(this=new, alias=exp.to_identifier(output_name(item), quoted=True))

    def rewrite_expression(self, node: exp.Expr) -> exp.Expr:
        result = self._rewrite_node(node)
        result.parent = node.parent
        return result

    def _rewrite_node(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query | exp.Subquery | exp.Identifier | exp.Literal):
            return node
        if isinstance(node, exp.Window):
            function = (
                rebuild_node(node.this, self._rewrite_node) if not isinstance(node.this, exp.Identifier) else node.this
            )
            return rebuild_node(node, lambda part: function if part is node.this else self._rewrite_node(part))
        if is_aggregate(node):
            return self._reference_measure(node, lambda name: self._add_measure(node, name))
        if isinstance(node, exp.Column):
            return self._rewrite_column(node)
        key = self._find_computed_key(node)
        return rebuild_node(node, self._rewrite_node) if key is None else group_column(key, node)

    def _rewrite_column(self, node: exp.Column) -> exp.Expr:
        column = self.below.scope.find_column(node)
        if column is None:
            return self._inline_alias(node)
        if not any(key.expr == column.column for key in self.keys):
            if not column.one_per_unit:
                raise GroupingError(
                    f'column "{column.name}" must appear in GROUP BY or in an aggregate',
                    hint=f"Add it to GROUP BY, or write MIN({column.name}).",
                    span=span_of(node),
                )
            self._add_column_key(column)  # it depends on the unit, which is a key
        return node

    def _inline_alias(self, node: exp.Column) -> exp.Expr:
        """The name of an output column: what it stands for."""
        name = node.name.lower()
        for item in self.select.expressions:
            if isinstance(item, exp.Alias) and item.alias.lower() == name and name not in self._inlining:
                self._inlining.add(name)
                inlined = self._rewrite_node(item.this)
                self._inlining.discard(name)
                return exp.Paren(this=inlined)
        self.below.scope.resolve_column(node)  # says what is wrong
        return node

    def _find_computed_key(self, node: exp.Expr) -> str | None:
        """The computed key that an expression equals."""
        if _expression_text(node) in self._places:
            return self._places[_expression_text(node)]
        if not self._places or has_aggregate(node) or isinstance(node, exp.Ordered | exp.Order | exp.Qualify):
            return None
        try:
            expr = bind_expr(node, replace(self.below.scope, inner=None))
        except Error:
            return None  # not an expression over the rows below: perhaps its parts are keys
        return next((key.name for key in self.keys if key.expr == expr and key.name in self._places.values()), None)

    def _reference_measure(self, node: exp.Expr, add: Callable[[str], None]) -> exp.Column:
        text = _expression_text(node)
        if text not in self._places:
            name = self.binder.namer.reserve_name("measure")
            add(name)
            self._places[text] = name
        return group_column(self._places[text], node)

    def _add_measure(self, node: exp.Expr, name: str) -> None:
        for inner in node.walk():
            if inner is not node and is_aggregate(inner) and not isinstance(node, exp.Filter):
                raise GroupingError("aggregates cannot be nested", span=span_of(inner))
        pick = UnitPickBinder(self.binder.namer, self.below, tuple(key.expr for key in self.keys)).bind_measure(
            node, name
        )
        self.measures.append(pick or bind_unit_measure(node, name, self.below.scope))

    def check_levels(self) -> None:
        """Refuse keys and measures that read the block around a sub-select instead of the rows below."""
        exprs = [key.expr for key in self.keys] + [m.arg for m in self.measures if m.arg is not None]
        if any(not columns_of(expr) <= self.below.names for expr in exprs):
            raise nesting_level_error(self.select)

    def build_relation(self) -> BoundRelation:
        """The grouped rows; keys under the names that they had, measures and computed keys in a source of their own."""
        by_name = {key.expr.name: column for key, column in zip(self.keys, self.key_columns, strict=True)
                   if isinstance(key.expr, Column) and key.name not in self._computed_names}  # fmt: skip
        single = all(column.one_per_unit for column in self.key_columns)
        sources = [
            SourceScope(s.alias, tuple(by_name[c.column.name] for c in s.columns if c.column.name in by_name))
            for s in self.below.scope.sources
        ]
        merged = [
            MergedColumn(
                by_name[m.column.column.name], frozenset(by_name[n].column.name for n in m.hides if n in by_name)
            )
            for m in self.below.scope.merged
            if m.column.column.name in by_name
        ]
        computed = [c for c in self.key_columns if c.name in self._computed_names]
        measures = [BoundColumn(m.name, Column(m.name, m.type), one_per_unit=single) for m in self.measures]
        sources.append(SourceScope(GROUP_SOURCE, (*computed, *measures)))
        node = PerUnit(self.below.node, tuple(self.keys), tuple(self.measures))
        scope = Scope(tuple(sources), tuple(merged))
        return BoundRelation(node, scope, (tuple(self.key_columns),), told=self.binder.told)


# --- trees -----------------------------------------------------------------------------------------------------------


def rebuild_node(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The node over changed children; the tree that was parsed stays as it is."""

    def each(value: object) -> object:
        if isinstance(value, list):
            return [each(item) for item in value]
        return change(value) if isinstance(value, exp.Expr) else value

    parents = {id(child): (child, child.parent) for child in node.iter_expressions()}
    new = type(node)(**{key: each(value) for key, value in node.args.items()})
    for child, parent in parents.values():
        if not isinstance(child, exp.Query | exp.Subquery):  # those keep the place from which their names are read
            child.parent = parent
    new.meta.update(node.meta)
    return new


def group_column(name: str, node: exp.Expr) -> exp.Column:
    """A column of the grouping in the place of a node, and where the node stands in the statement."""
    identifier = exp.to_identifier(name, quoted=True)
    span = span_of(node)
    if span is not None:
        identifier.meta.update(start=span.start, end=span.end - 1)
    return exp.Column(this=identifier, table=exp.to_identifier(GROUP_SOURCE))


def _strip_parentheses(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _expression_text(node: exp.Expr) -> str:
    return str(_strip_parentheses(node).sql(dialect="postgres"))
