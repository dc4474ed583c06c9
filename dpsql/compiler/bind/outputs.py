"""Names and types of output columns, as far as they are needed before post-processing runs.

Whole numbers matter because PostgreSQL and DuckDB differ in their division; types, because a hole has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from dpsql.compiler.parse.dialect import WRITTEN_NAME_KEY, span_of, type_of_cast
from dpsql.errors import InvalidSyntax
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
    decimal_type,
    parse_type,
    sum_type,
)


@dataclass(frozen=True)
class Output:
    """An output column of a block; the type is None where it is not known before it runs."""

    name: str
    type: Type | None
    is_numeric: bool = False  # a whole number here, and a numeric in PostgreSQL, where its quotients keep fractions


FIXED_TYPES: dict[type[exp.Expr], Type] = {
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
INTEGER_PARTS = frozenset(
    {
        "year", "isoyear", "quarter", "month", "week", "day", "dow", "isodow", "dayofweek", "doy", "dayofyear", "hour",
        "minute", "century", "decade",
    }
)  # fmt: skip
"""What EXTRACT gives as a whole number."""


def rewrite_integer_division(node: exp.Expr) -> exp.Expr:
    """PostgreSQL's `/` of two whole numbers gives a whole number; DuckDB spells that `//`."""
    if isinstance(node, exp.Div) and is_integer_typed(node.this) and is_integer_typed(node.expression):
        return exp.IntDiv(this=node.this, expression=node.expression)
    return node


def is_integer_typed(node: exp.Expr) -> bool:
    type_ = infer_type(node)
    return type_ is not None and type_.is_integer and not is_numeric_sum(node)


NUMERIC_KEY = "numeric"
"""The note of a column that is a whole number here, and a numeric in PostgreSQL."""


def is_numeric_sum(node: exp.Expr) -> bool:
    """Whether PostgreSQL has a numeric for a whole number: SUM of bigints, and what is computed from it.

    SUM(COUNT(*)) OVER () is one, so COUNT(*) / SUM(COUNT(*)) OVER () is a share, and not 0.
    """
    match node:
        case exp.Column():
            return bool(node.meta.get(NUMERIC_KEY))
        case exp.Sum():
            return infer_type(node.this) == BIGINT or is_numeric_sum(node.this)
        case exp.Cast():
            return False
        case exp.Subquery() if isinstance(node.this, exp.Select) and len(node.this.selects) == 1:
            return is_numeric_sum(node.this.selects[0].unalias())
        case exp.Window() | exp.Filter() | exp.Paren() | exp.Neg() | exp.Abs() | exp.Min() | exp.Max():
            return is_numeric_sum(node.this)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod() | exp.Nullif():
            return is_numeric_sum(node.this) or is_numeric_sum(node.expression)
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            return any(map(is_numeric_sum, (node.this, *node.expressions)))
        case _:
            return False


def infer_type(node: exp.Expr) -> Type | None:
    """The type of an expression over released columns, which carry theirs; None where it is not known."""
    match node:
        case exp.Column():
            type_ = node.meta.get("type")
            return type_ if isinstance(type_, Type) else None
        case exp.Literal():
            if node.args.get("is_string"):
                return TEXT
            return BIGINT if str(node.this).lstrip("-").isdigit() else DOUBLE
        case exp.Boolean() | exp.Predicate() | exp.Connector() | exp.Not():
            return BOOLEAN
        case exp.Paren() | exp.Neg() | exp.Min() | exp.Max() | exp.Abs() | exp.Filter() | exp.Window():
            return infer_type(node.this)
        case exp.Nullif():  # of two kinds of numbers that of their comparison: NULLIF(COUNT(*), 0.0) is no whole number
            common = _common_type([node.this, node.expression])
            return common if common is not None and common.is_number else infer_type(node.this)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.IntDiv() | exp.Mod() | exp.Div():
            return _time_arithmetic_type(node) or _number_arithmetic_type(node)
        case exp.TimestampTrunc() | exp.DateTrunc():
            inner = infer_type(node.this)
            return TIMESTAMP if inner == DATE else inner
        case exp.Extract():
            if node.name.lower() == "second":  # with its fraction
                return DOUBLE if node.meta.get(WRITTEN_NAME_KEY) == "date_part" else decimal_type(18, 6)
            return BIGINT if node.name.lower() in INTEGER_PARTS else None
        case exp.Floor() | exp.Ceil():
            return _rounded_type(infer_type(node.this))
        case exp.Anonymous() if str(node.this).lower() in ("strftime", "dayname", "monthname"):
            return TEXT
        case exp.DPipe():
            return TEXT if TEXT in (infer_type(node.this), infer_type(node.expression)) else None
        case exp.ExplodingGenerateSeries() | exp.GenerateSeries() | exp.Explode():
            return infer_element_type(node if not isinstance(node, exp.Explode) else node.this)
        case exp.Sum() | exp.Round():
            inner = infer_type(node.this)
            return None if inner is None else sum_type(inner)
        case exp.Cast():
            return type_of_cast(node.to)
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            return _common_type([node.this, *node.expressions])
        case exp.Case():
            branches = [branch.args["true"] for branch in node.args["ifs"]]
            return _common_type([*branches, *([node.args["default"]] if node.args.get("default") else [])])
        case exp.If():
            return _common_type([node.args["true"], *([node.args["false"]] if node.args.get("false") else [])])
        case exp.Subquery() if isinstance(node.this, exp.Select) and len(node.this.selects) == 1:
            return infer_type(node.this.selects[0].unalias())
        case _:
            return FIXED_TYPES.get(type(node))


def infer_element_type(node: exp.Expr) -> Type | None:
    """The type of what a list holds: one that is written out, or a series."""
    match node:
        case exp.Array():
            return _common_type(node.expressions)
        case exp.ExplodingGenerateSeries() | exp.GenerateSeries():
            return _series_element_type([node.args.get(key) for key in ("start", "end")])
        case exp.Anonymous() if str(node.this).lower() in ("range", "generate_series"):
            return _series_element_type(node.expressions[:2])
        case exp.Cast() if node.to.expressions and node.to.is_type(exp.DataType.Type.ARRAY, exp.DataType.Type.LIST):
            return parse_type(node.to.expressions[0].sql())
        case _:
            return None


def _series_element_type(ends: Sequence[exp.Expr | None]) -> Type | None:
    """Whole numbers, or timestamps: DuckDB makes them of dates too."""
    common = _common_type([end for end in ends if end is not None])
    if common is None:
        return None
    return BIGINT if common.is_integer else TIMESTAMP if common == DATE else common if common.is_time else None


def _rounded_type(type_: Type | None) -> Type | None:
    if type_ is None or not type_.is_number:
        return None
    return decimal_type(type_.precision or 38, 0) if type_.kind is Kind.DECIMAL else DOUBLE


def _time_arithmetic_type(node: exp.Expr) -> Type | None:
    """Dates and timestamps, moved by days or an interval; the days between two dates."""
    if not isinstance(node, exp.Add | exp.Sub):
        return None
    sides = (infer_type(node.this), infer_type(node.expression))
    if sides == (DATE, DATE) and isinstance(node, exp.Sub):
        return BIGINT
    for moved, by in (sides, sides[::-1]) if isinstance(node, exp.Add) else (sides,):
        if moved is not None and moved.is_time and by == INTERVAL:
            return TIMESTAMP if moved == DATE else moved
        if moved == DATE and by is not None and by.is_integer:
            return DATE
    return None


def _number_arithmetic_type(node: exp.Expr) -> Type | None:
    sides = [infer_type(node.this), infer_type(node.expression)]
    if any(side is None or not side.is_number for side in sides):
        return None
    are_integers = all(side is not None and side.is_integer for side in sides)
    return BIGINT if are_integers and not isinstance(node, exp.Div) else DOUBLE


def _common_type(nodes: list[exp.Expr]) -> Type | None:
    types = [infer_type(node) for node in nodes if not isinstance(node, exp.Null)]
    if not types or any(type_ is None for type_ in types):
        return None
    distinct = {type_ for type_ in types if type_ is not None}
    if len(distinct) == 1:
        return distinct.pop()
    if all(type_.is_integer for type_ in distinct):
        return BIGINT
    if distinct == {DATE, TIMESTAMP}:
        return TIMESTAMP
    return DOUBLE if all(type_.is_number for type_ in distinct) else None


def fold_identifier(alias: exp.Expr) -> exp.Identifier:
    """PostgreSQL folds names that are not quoted."""
    if not isinstance(alias, exp.Identifier):
        raise InvalidSyntax("an alias is a name", span=span_of(alias))
    return alias if alias.quoted else exp.to_identifier(alias.name.lower(), quoted=True)


def is_order_by_all(node: exp.Expr) -> bool:
    """ORDER BY ALL: by every output column, which sqlglot reads as a column of that name."""
    return isinstance(node, exp.Column) and not node.table and not node.this.quoted and node.name.lower() == "all"


def name_outputs(select: exp.Select) -> None:
    """Output columns without an alias get the name that PostgreSQL gives them; ORDER BY ALL stays what it is."""
    for item in list(select.expressions):
        if isinstance(item, exp.Alias):
            item.set("alias", fold_identifier(item.args["alias"]))
        elif not item.is_star:
            name = exp.to_identifier(output_name(item), quoted=True)
            item.replace(exp.Alias(this=item.copy(), alias=name))
    order = select.args.get("order")
    for ordered in order.expressions if order is not None else ():
        if is_order_by_all(ordered.this):
            ordered.set("this", exp.Var(this="ALL"))


# Names of output columns without an alias, as PostgreSQL makes them up.

UNNAMED_COLUMN = "?column?"
PG_TYPE_NAMES = {"double": "float8", "float": "float4", "int": "int4", "bigint": "int8", "smallint": "int2",
         "decimal": "numeric", "char": "bpchar", "boolean": "bool", "varbinary": "bytea"}  # fmt: skip
SYNTAX_NAMES: dict[type[exp.Expr], str] = {
    exp.TimestampTrunc: "date_trunc", exp.StrPosition: "position", exp.GroupConcat: "string_agg",
    exp.AtTimeZone: "timezone", exp.JSONArrayAgg: "json_agg", exp.Exists: "exists", exp.Array: "array",
    exp.Overlaps: "overlaps",
}  # fmt: skip
"""Of what has a syntax of its own, and no name that was written."""

_NO_NAME, _WEAK_NAME, _STRONG_NAME = range(3)
"""A name of a column or function stays under a cast; that of a type, or CASE, does not."""


def output_name(node: exp.Expr) -> str:
    """The name that PostgreSQL gives an output column without an alias."""
    return _name_and_strength(node)[0]


def _name_and_strength(node: exp.Expr) -> tuple[str, int]:
    match node:
        case exp.Column():
            return str(node.name if node.this.quoted else node.name.lower()), _STRONG_NAME
        case exp.Cast():
            below = _name_and_strength(node.this)
            return below if below[1] == _STRONG_NAME else (pg_type_name(node.to), _WEAK_NAME)
        case exp.Filter() | exp.Window() | exp.Paren() | exp.WithinGroup() | exp.Bracket() | exp.IgnoreNulls():
            return _name_and_strength(node.this)
        case exp.Case():
            default = node.args.get("default")
            below = _name_and_strength(default) if isinstance(default, exp.Expr) else (UNNAMED_COLUMN, _NO_NAME)
            return below if below[1] == _STRONG_NAME else ("case", _WEAK_NAME)
        case exp.Subquery() if isinstance(node.this, exp.Select) and node.this.selects:
            first = node.this.selects[0]
            return (str(first.alias), _STRONG_NAME) if isinstance(first, exp.Alias) else _name_and_strength(first)
        case exp.Interval():
            return "interval", _WEAK_NAME
        case exp.Trim():
            side = str(node.args.get("position")).upper()
            return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "btrim"), _STRONG_NAME
        case exp.Anonymous():
            return str(node.this).lower(), _STRONG_NAME
    return _function_output_name(node)


def _function_output_name(node: exp.Expr) -> tuple[str, int]:
    written = node.meta.get(WRITTEN_NAME_KEY)
    if written:
        return str(written).lower(), _STRONG_NAME
    if type(node) in SYNTAX_NAMES:
        return SYNTAX_NAMES[type(node)], _STRONG_NAME
    if isinstance(node, exp.Func) and not isinstance(node, exp.Binary | exp.Connector):  # else it is an operator
        return str(node.sql_name()).lower(), _STRONG_NAME
    return UNNAMED_COLUMN, _NO_NAME


def pg_type_name(to: exp.DataType) -> str:
    """As PostgreSQL's pg_type has it: without precision, and int4 for INTEGER."""
    if to.args.get("nested") and to.expressions:
        return pg_type_name(to.expressions[0])
    word = to.sql().partition("(")[0].lower()
    return PG_TYPE_NAMES.get(word, word)
