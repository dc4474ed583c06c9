"""Of which kind an argument is, as far as it can be told before anything is bound: what PREDICT is given.

Nothing is refused for what is not known: None is any kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from dpsql.schema.model import CREATED_SCHEMA, Schema
from dpsql.sql.dialect import WRITTEN_NAME_KEY
from dpsql.sql.sources import lookup_table
from dpsql.types import Kind, Type, parse_type

ArgumentKind = Literal["a number", "text", "true or false", "a time"]
ColumnDefinition = exp.Expr | ArgumentKind | None
"""An expression of a query within is looked into when it is asked for."""

MAX_LOOKUPS = 100
"""Columns that are looked up for one argument: those of columns of columns are many."""

_NUMERIC_NODES = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Abs, exp.Round, exp.Count, exp.Length, exp.Extract)
_TEXT_NODES = (exp.Upper, exp.Lower, exp.Trim, exp.Concat, exp.Substring)
_BOOLEAN_NODES = (exp.Predicate, exp.Not, exp.And, exp.Or, exp.Boolean)
_TRANSPARENT_NODES = (exp.Paren, exp.Coalesce, exp.Max, exp.Min)
_TIME_ARITHMETIC_NODES = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg)
_KIND_BY_TYPE: Mapping[Kind, ArgumentKind] = {Kind.TEXT: "text", Kind.BOOLEAN: "true or false"}


def kind_of_type(type_: Type | None) -> ArgumentKind | None:
    if type_ is None:
        return None
    if type_.is_number:
        return "a number"
    return "a time" if type_.is_time else _KIND_BY_TYPE.get(type_.kind)


@dataclass(frozen=True)
class SourceColumns:
    """The columns of a source by name. None: it may have any."""

    name: str
    columns: Mapping[str, ColumnDefinition] | None


@dataclass
class ArgumentKindResolver:
    """Of one argument."""

    schema: Schema
    steps: int = MAX_LOOKUPS

    def resolve_kind(self, node: ColumnDefinition) -> ArgumentKind | None:
        match node:
            case None | str():
                return node
            case exp.Literal():
                return "text" if node.is_string else "a number"
            case exp.Cast() | exp.TryCast():
                return kind_of_type(parse_type(node.to.sql("duckdb")))
            case exp.Column():
                return self._resolve_column(node)
            case exp.Case():
                branches = [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")]
                return self._resolve_first_kind([branch for branch in branches if branch is not None])
            case _ if node.meta.get(WRITTEN_NAME_KEY) in ("predict", "accuracy"):  # written out already, and long
                return "a number"
            case _ if isinstance(node, _TRANSPARENT_NODES):
                return self._resolve_first_kind([node.this, *node.expressions])
            case _ if isinstance(node, _TIME_ARITHMETIC_NODES) and self._may_be_time(node):
                return None
            case _ if isinstance(node, _NUMERIC_NODES):
                return "a number"
            case _ if isinstance(node, _TEXT_NODES):
                return "text"
            case _ if isinstance(node, _BOOLEAN_NODES):
                return "true or false"
        return None

    def is_column_missing(self, name: str, call: exp.Expr) -> bool:
        """Whether no source around has such a column, for certain, and no output beside the call is called so."""
        output_names = (item.alias_or_name.lower() for select in _enclosing_selects(call) for item in select.expressions)
        if name.lower() in output_names:
            return False
        sources = [source for select in _enclosing_selects(call) for source in self._sources_of(select)]
        return all(source.columns is not None and name.lower() not in source.columns for source in sources)

    def _resolve_first_kind(self, nodes: Sequence[exp.Expr]) -> ArgumentKind | None:
        return next((kind for kind in map(self.resolve_kind, nodes) if kind is not None), None)

    def _may_be_time(self, node: exp.Expr) -> bool:
        """A time less an interval is a time, and two times are neither: only of numbers it is known."""
        sides = [side for side in (node.this, node.args.get("expression")) if side is not None]
        return any(self.resolve_kind(side) != "a number" for side in sides)

    def _resolve_column(self, column: exp.Column) -> ArgumentKind | None:
        """In the nearest query that has it; None where a source before might have it too."""
        self.steps -= 1
        if self.steps < 0:
            return None
        name, table = column.name.lower(), column.table.lower()
        for select in _enclosing_selects(column):
            for source in self._sources_of(select):
                if table and source.name != table:
                    continue
                if source.columns is None:
                    return None
                if name in source.columns:
                    return self.resolve_kind(source.columns[name])
        return None

    def _sources_of(self, select: exp.Select) -> Iterator[SourceColumns]:
        start = select.args.get("from_")
        nodes = [] if start is None else [start.this]
        nodes += [join.this for join in select.args.get("joins") or ()]
        nodes += select.args.get("laterals") or ()
        return map(self._describe_source, nodes)

    def _describe_source(self, node: exp.Expr) -> SourceColumns:
        name, alias = node.alias_or_name.lower(), node.args.get("alias")
        if (alias is not None and alias.args.get("columns")) or node.args.get("joins"):
            return SourceColumns(name, None)
        if isinstance(node, exp.Subquery):
            return SourceColumns(name, _output_definitions(node.this))
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return SourceColumns(name, None)
        part = None if node.db else _find_cte(node)
        if part is not None:
            return SourceColumns(name, None if part.args["alias"].args.get("columns") else _output_definitions(part.this))
        return SourceColumns(name, self._declared_columns(node))

    def _declared_columns(self, node: exp.Table) -> Mapping[str, ColumnDefinition] | None:
        table = lookup_table(self.schema, node) if node.db.lower() in ("", "public", "main") else None
        view = self.schema.view(node.name) if table is None and node.db != CREATED_SCHEMA else None
        columns = table.columns if table is not None else () if view is None else view.columns
        return {column.name.lower(): kind_of_type(column.type) for column in columns} or None


def _output_definitions(query: exp.Expr) -> Mapping[str, ColumnDefinition] | None:
    if not isinstance(query, exp.Select) or query.is_star:
        return None
    return {item.alias_or_name.lower(): item.unalias() for item in query.expressions}


def _enclosing_selects(node: exp.Expr) -> Iterator[exp.Select]:
    """The queries that a node stands in, the nearest first."""
    select = node.find_ancestor(exp.Select)
    while select is not None:
        yield select
        select = select.find_ancestor(exp.Select)


def _find_cte(table: exp.Table) -> exp.CTE | None:
    """What a name means by a WITH around it, whose parts know those before them; a recursive one also itself."""
    parents, parent = list[exp.Expr](), table.parent
    while parent is not None:
        parents.append(parent)
        parent = parent.parent
    within = {id(parent) for parent in parents}
    for query in parents:
        with_ = query.args.get("with_")
        if not isinstance(with_, exp.With):
            continue
        for part in with_.expressions:
            if id(part) in within and not with_.args.get("recursive"):
                break
            if part.alias.lower() == table.name.lower():
                cte: exp.CTE = part
                return cte
    return None
