"""Names and types of output columns of post-processing, as far as they are needed before it runs.

Whole numbers matter because PostgreSQL and DuckDB differ in their division; types, because a hole has one.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dpsql.errors import InvalidSyntax
from dpsql.sql.dialect import WRITTEN, span_of
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, TEXT, Type, parse_type, sum_type


@dataclass(frozen=True)
class Output:
    """An output column of a block; the type is None where it is not known before it runs."""

    name: str
    type: Type | None


NAMES = {"TimestampTrunc": "date_trunc", "DPipe": "?column?", "Ceil": "ceil", "StrPosition": "strpos",
         "Pow": "?column?"}  # fmt: skip


def integer_division(node: exp.Expr) -> exp.Expr:
    """PostgreSQL's `/` of two whole numbers gives a whole number; DuckDB spells that `//`."""
    if isinstance(node, exp.Div) and is_whole(node.this) and is_whole(node.expression):
        return exp.IntDiv(this=node.this, expression=node.expression)
    return node


def is_whole(node: exp.Expr) -> bool:
    found = type_of(node)
    return found is not None and found.is_integer


def type_of(node: exp.Expr) -> Type | None:
    """The type of an expression over released columns, which carry theirs; None where it is not known."""
    match node:
        case exp.Column():
            known = node.meta.get("type")
            return known if isinstance(known, Type) else None
        case exp.Literal():
            if node.args.get("is_string"):
                return TEXT
            return BIGINT if str(node.this).lstrip("-").isdigit() else DOUBLE
        case exp.Boolean() | exp.Predicate() | exp.Connector() | exp.Not():
            return BOOLEAN
        case exp.Paren() | exp.Neg() | exp.Nullif() | exp.Min() | exp.Max() | exp.Abs() | exp.Filter() | exp.Window():
            return type_of(node.this)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.IntDiv() | exp.Mod() | exp.Div():
            return _number(node)
        case exp.Count() | exp.RowNumber() | exp.Rank() | exp.DenseRank():
            return BIGINT
        case exp.Avg() | exp.Median() | exp.Stddev() | exp.StddevPop() | exp.StddevSamp() | exp.Variance():
            return DOUBLE
        case exp.Sum() | exp.Round():
            inner = type_of(node.this)
            return None if inner is None else sum_type(inner)
        case exp.Cast():
            return parse_type(node.to.sql())
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            return _common([node.this, *node.expressions])
        case exp.Case():
            branches = [branch.args["true"] for branch in node.args["ifs"]]
            return _common([*branches, *([node.args["default"]] if node.args.get("default") else [])])
        case exp.Subquery() if isinstance(node.this, exp.Select) and len(node.this.selects) == 1:
            return type_of(node.this.selects[0].unalias())
        case _:
            return None


def _number(node: exp.Expr) -> Type | None:
    sides = [type_of(node.this), type_of(node.expression)]
    if any(side is None or not side.is_number for side in sides):
        return None
    whole = all(side is not None and side.is_integer for side in sides)
    return BIGINT if whole and not isinstance(node, exp.Div) else DOUBLE


def _common(nodes: list[exp.Expr]) -> Type | None:
    types = [type_of(node) for node in nodes if not isinstance(node, exp.Null)]
    if not types or any(found is None for found in types):
        return None
    known = {found for found in types if found is not None}
    if len(known) == 1:
        return known.pop()
    if all(found.is_integer for found in known):
        return BIGINT
    return DOUBLE if all(found.is_number for found in known) else None


def output_name(node: exp.Expr) -> str:
    """The name that PostgreSQL gives an output column without an alias."""
    match node:
        case exp.Column():
            return str(node.name if node.this.quoted else node.name.lower())
        case exp.Cast():
            inner = node.this
            return output_name(inner) if isinstance(inner, exp.Column | exp.Func) else str(node.to.sql()).lower()
        case exp.Filter() | exp.Window() | exp.Paren() | exp.WithinGroup():
            return output_name(node.this)
        case exp.Case():
            return "case"
        case exp.Subquery() if isinstance(node.this, exp.Select) and node.this.selects:
            first = node.this.selects[0]
            return str(first.alias) if isinstance(first, exp.Alias) else output_name(first)
        case exp.Anonymous():
            return str(node.this).lower()
        case exp.Func() if node.meta.get(WRITTEN):
            return str(node.meta[WRITTEN]).lower()
        case exp.Func() if type(node).__name__ not in NAMES and not isinstance(node, exp.Connector):
            return str(node.sql_name()).lower()
        case _:
            return NAMES.get(type(node).__name__, "?column?")


def folded(alias: exp.Expr) -> exp.Identifier:
    """PostgreSQL folds names that are not quoted."""
    if not isinstance(alias, exp.Identifier):
        raise InvalidSyntax("an alias is a name", span=span_of(alias))
    return alias if alias.quoted else exp.to_identifier(alias.name.lower(), quoted=True)


def is_all(node: exp.Expr) -> bool:
    """ORDER BY ALL: by every output column, which sqlglot reads as a column of that name."""
    return isinstance(node, exp.Column) and not node.table and not node.this.quoted and node.name.lower() == "all"


def name_outputs(select: exp.Select) -> None:
    """Output columns without an alias get the name that PostgreSQL gives them; ORDER BY ALL stays what it is."""
    for item in list(select.expressions):
        if isinstance(item, exp.Alias):
            item.set("alias", folded(item.args["alias"]))
        elif not item.is_star:
            name = exp.to_identifier(output_name(item), quoted=True)
            item.replace(exp.Alias(this=item.copy(), alias=name))
    order = select.args.get("order")
    for ordered in order.expressions if order is not None else ():
        if is_all(ordered.this):
            ordered.set("this", exp.Var(this="ALL"))
