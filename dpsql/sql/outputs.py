"""Names and types of output columns of post-processing, as far as they are needed before it runs.

Whole numbers matter because PostgreSQL and DuckDB differ in their division; types, because a hole has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from dpsql.errors import InvalidSyntax
from dpsql.sql.dialect import WRITTEN, span_of
from dpsql.sql.output_names import output_name
from dpsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    TEXT,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
    parse_type,
    sum_type,
)


@dataclass(frozen=True)
class Output:
    """An output column of a block; the type is None where it is not known before it runs."""

    name: str
    type: Type | None


FIXED: dict[type[exp.Expr], Type] = {
    **dict.fromkeys(
        (exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day,
         exp.DateDiff, exp.Length, exp.StrPosition),
        BIGINT,
    ),
    **dict.fromkeys(
        (exp.Avg, exp.Median, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.Sqrt, exp.Ln, exp.Exp,
         exp.Pow),
        DOUBLE,
    ),
    **dict.fromkeys(
        (exp.Upper, exp.Lower, exp.Concat, exp.ConcatWs, exp.Substring, exp.Trim, exp.Replace, exp.Left, exp.Right,
         exp.TimeToStr, exp.ToChar, exp.SplitPart),
        TEXT,
    ),
    **dict.fromkeys((exp.Date, exp.DateFromParts, exp.LastDay), DATE),
    exp.Interval: INTERVAL,
}  # fmt: skip
"""Functions that give one type, whatever they are given."""
WHOLE_PARTS = frozenset(
    {
        "year", "isoyear", "quarter", "month", "week", "day", "dow", "isodow", "dayofweek", "doy", "dayofyear", "hour",
        "minute", "century", "decade",
    }
)  # fmt: skip
"""What EXTRACT gives as a whole number."""


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
            return _moment(node) or _number(node)
        case exp.TimestampTrunc() | exp.DateTrunc():
            inner = type_of(node.this)
            return TIMESTAMP if inner == DATE else inner
        case exp.Extract():
            if node.name.lower() == "second":  # with its fraction
                return DOUBLE if node.meta.get(WRITTEN) == "date_part" else decimal(18, 6)
            return BIGINT if node.name.lower() in WHOLE_PARTS else None
        case exp.Floor() | exp.Ceil():
            return _without_fraction(type_of(node.this))
        case exp.Anonymous() if str(node.this).lower() in ("strftime", "dayname", "monthname"):
            return TEXT
        case exp.DPipe():
            return TEXT if TEXT in (type_of(node.this), type_of(node.expression)) else None
        case exp.ExplodingGenerateSeries() | exp.GenerateSeries() | exp.Explode():
            return element_type(node if not isinstance(node, exp.Explode) else node.this)
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
        case exp.If():
            return _common([node.args["true"], *([node.args["false"]] if node.args.get("false") else [])])
        case exp.Subquery() if isinstance(node.this, exp.Select) and len(node.this.selects) == 1:
            return type_of(node.this.selects[0].unalias())
        case _:
            return FIXED.get(type(node))


def element_type(node: exp.Expr) -> Type | None:
    """The type of what a list holds: one that is written out, or a series."""
    match node:
        case exp.Array():
            return _common(node.expressions)
        case exp.ExplodingGenerateSeries() | exp.GenerateSeries():
            return _series([node.args.get(key) for key in ("start", "end")])
        case exp.Anonymous() if str(node.this).lower() in ("range", "generate_series"):
            return _series(node.expressions[:2])
        case exp.Cast() if node.to.expressions and node.to.is_type(exp.DataType.Type.ARRAY, exp.DataType.Type.LIST):
            return parse_type(node.to.expressions[0].sql())
        case _:
            return None


def _series(ends: Sequence[exp.Expr | None]) -> Type | None:
    """Whole numbers, or timestamps: DuckDB makes them of dates too."""
    found = _common([end for end in ends if end is not None])
    if found is None:
        return None
    return BIGINT if found.is_integer else TIMESTAMP if found == DATE else found if found.is_time else None


def _without_fraction(found: Type | None) -> Type | None:
    if found is None or not found.is_number:
        return None
    return decimal(found.precision or 38, 0) if found.kind is Kind.DECIMAL else DOUBLE


def _moment(node: exp.Expr) -> Type | None:
    """Dates and timestamps, moved by days or an interval; the days between two dates."""
    if not isinstance(node, exp.Add | exp.Sub):
        return None
    sides = (type_of(node.this), type_of(node.expression))
    if sides == (DATE, DATE) and isinstance(node, exp.Sub):
        return BIGINT
    for moved, by in (sides, sides[::-1]) if isinstance(node, exp.Add) else (sides,):
        if moved is not None and moved.is_time and by == INTERVAL:
            return TIMESTAMP if moved == DATE else moved
        if moved == DATE and by is not None and by.is_integer:
            return DATE
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
    if known == {DATE, TIMESTAMP}:
        return TIMESTAMP
    return DOUBLE if all(found.is_number for found in known) else None


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
