"""Of which kind an argument is, as far as it can be told before anything is bound: what PREDICT is given.

Nothing is refused for what is not known: None is any kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from dpsql.schema.model import MADE, Schema
from dpsql.sql.dialect import WRITTEN
from dpsql.sql.sources import known_table
from dpsql.types import Kind, Type, parse_type

ArgumentKind = Literal["a number", "text", "true or false", "a time"]
Found = exp.Expr | ArgumentKind | None
"""An expression of a query within is looked into when it is asked for."""

MOST_STEPS = 100
"""Columns that are looked up for one argument: those of columns of columns are many."""

_NUMBERS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Abs, exp.Round, exp.Count, exp.Length, exp.Extract)
_TEXTS = (exp.Upper, exp.Lower, exp.Trim, exp.Concat, exp.Substring)
_TRUTHS = (exp.Predicate, exp.Not, exp.And, exp.Or, exp.Boolean)
_INNER = (exp.Paren, exp.Coalesce, exp.Max, exp.Min)
_WITH_TIMES = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg)
_KINDS: Mapping[Kind, ArgumentKind] = {Kind.TEXT: "text", Kind.BOOLEAN: "true or false"}


def kind_of_type(type_: Type | None) -> ArgumentKind | None:
    if type_ is None:
        return None
    if type_.is_number:
        return "a number"
    return "a time" if type_.is_time else _KINDS.get(type_.kind)


@dataclass(frozen=True)
class Known:
    """The columns of a source by name. None: it may have any."""

    name: str
    columns: Mapping[str, Found] | None


@dataclass
class Arguments:
    """Of one argument."""

    schema: Schema
    steps: int = MOST_STEPS

    def kind(self, node: Found) -> ArgumentKind | None:
        match node:
            case None | str():
                return node
            case exp.Literal():
                return "text" if node.is_string else "a number"
            case exp.Cast() | exp.TryCast():
                return kind_of_type(parse_type(node.to.sql("duckdb")))
            case exp.Column():
                return self._column(node)
            case exp.Case():
                branches = [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")]
                return self._first([branch for branch in branches if branch is not None])
            case _ if node.meta.get(WRITTEN) in ("predict", "accuracy"):  # written out already, and long
                return "a number"
            case _ if isinstance(node, _INNER):
                return self._first([node.this, *node.expressions])
            case _ if isinstance(node, _WITH_TIMES) and self._may_be_time(node):
                return None
            case _ if isinstance(node, _NUMBERS):
                return "a number"
            case _ if isinstance(node, _TEXTS):
                return "text"
            case _ if isinstance(node, _TRUTHS):
                return "true or false"
        return None

    def lacks(self, name: str, call: exp.Expr) -> bool:
        """Whether no source around has such a column, for certain, and no output beside the call is called so."""
        beside = (one.alias_or_name.lower() for select in _around(call) for one in select.expressions)
        if name.lower() in beside:
            return False
        sources = [source for select in _around(call) for source in self._sources(select)]
        return all(source.columns is not None and name.lower() not in source.columns for source in sources)

    def _first(self, nodes: Sequence[exp.Expr]) -> ArgumentKind | None:
        return next((kind for kind in map(self.kind, nodes) if kind is not None), None)

    def _may_be_time(self, node: exp.Expr) -> bool:
        """A time less an interval is a time, and two times are neither: only of numbers it is known."""
        sides = [side for side in (node.this, node.args.get("expression")) if side is not None]
        return any(self.kind(side) != "a number" for side in sides)

    def _column(self, column: exp.Column) -> ArgumentKind | None:
        """In the nearest query that has it; None where a source before might have it too."""
        self.steps -= 1
        if self.steps < 0:
            return None
        name, table = column.name.lower(), column.table.lower()
        for select in _around(column):
            for source in self._sources(select):
                if table and source.name != table:
                    continue
                if source.columns is None:
                    return None
                if name in source.columns:
                    return self.kind(source.columns[name])
        return None

    def _sources(self, select: exp.Select) -> Iterator[Known]:
        start = select.args.get("from_")
        nodes = [] if start is None else [start.this]
        nodes += [join.this for join in select.args.get("joins") or ()]
        nodes += select.args.get("laterals") or ()
        return map(self._source, nodes)

    def _source(self, node: exp.Expr) -> Known:
        name, alias = node.alias_or_name.lower(), node.args.get("alias")
        if (alias is not None and alias.args.get("columns")) or node.args.get("joins"):
            return Known(name, None)
        if isinstance(node, exp.Subquery):
            return Known(name, _outputs(node.this))
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return Known(name, None)
        part = None if node.db else _part_of_with(node)
        if part is not None:
            return Known(name, None if part.args["alias"].args.get("columns") else _outputs(part.this))
        return Known(name, self._declared(node))

    def _declared(self, node: exp.Table) -> Mapping[str, Found] | None:
        table = known_table(self.schema, node) if node.db.lower() in ("", "public", "main") else None
        view = self.schema.view(node.name) if table is None and node.db != MADE else None
        columns = table.columns if table is not None else () if view is None else view.columns
        return {column.name.lower(): kind_of_type(column.type) for column in columns} or None


def _outputs(query: exp.Expr) -> Mapping[str, Found] | None:
    if not isinstance(query, exp.Select) or query.is_star:
        return None
    return {one.alias_or_name.lower(): one.unalias() for one in query.expressions}


def _around(node: exp.Expr) -> Iterator[exp.Select]:
    """The queries that a node stands in, the nearest first."""
    select = node.find_ancestor(exp.Select)
    while select is not None:
        yield select
        select = select.find_ancestor(exp.Select)


def _part_of_with(table: exp.Table) -> exp.CTE | None:
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
                found: exp.CTE = part
                return found
    return None
