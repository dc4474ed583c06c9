"""Names and whole numbers of output columns, where PostgreSQL and DuckDB differ."""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import InvalidSyntax
from dpsql.sql.dialect import span_of

NAMES = {"TimestampTrunc": "date_trunc", "DPipe": "?column?", "Ceil": "ceil", "StrPosition": "strpos"}


def integer_division(node: exp.Expr) -> exp.Expr:
    """PostgreSQL's `/` of two whole numbers gives a whole number; DuckDB spells that `//`."""
    if isinstance(node, exp.Div) and is_whole(node.this) and is_whole(node.expression):
        return exp.IntDiv(this=node.this, expression=node.expression)
    return node


def is_whole(node: exp.Expr) -> bool:
    match node:
        case exp.Column():
            return bool(node.meta.get("integer"))
        case exp.Literal():
            return not node.args.get("is_string") and str(node.this).lstrip("-").isdigit()
        case exp.Paren() | exp.Neg():
            return is_whole(node.this)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.IntDiv() | exp.Mod():
            return is_whole(node.this) and is_whole(node.expression)
        case exp.Count() | exp.RowNumber() | exp.Rank() | exp.DenseRank():
            return True
        case exp.Nullif() | exp.Sum() | exp.Min() | exp.Max() | exp.Abs() | exp.Filter() | exp.Window():
            return is_whole(node.this)
        case exp.Cast():
            return bool(node.to.this in exp.DataType.INTEGER_TYPES)
        case exp.Coalesce():
            return is_whole(node.this) and all(is_whole(e) for e in node.expressions)
        case _:
            return False


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
        case exp.Anonymous():
            return str(node.this).lower()
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
