"""Where DuckDB reads the same text otherwise than PostgreSQL does: post-processing is written so that it means
PostgreSQL's.

    to_char(day, 'Mon YYYY')  is written  strftime(day, '%b %Y')      x LIKE y    is written  x LIKE y ESCAPE '\\'
    format('%s of %s', a, b)  is written  printf('%s of %s', …)      x::varchar(3)  is written  left(x::text, 3)

`numerics` has casts to numeric, `meanings_more` functions of one kind each.

What a format of dates cannot say here is refused, before anything is charged.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser

from dpsql.errors import InvalidParameter, LimitExceeded, Unsupported
from dpsql.functions.formats import Piece, UnknownFormat, directives, known_parts, postgres_pieces, printed_form
from dpsql.sql.dialect import span_of
from dpsql.sql.meanings_more import MORE, check_literal
from dpsql.sql.numerics import plain_numeric, scaled_numeric
from dpsql.sql.outputs import type_of
from dpsql.sql.spellings import FORMAT
from dpsql.types import BOOLEAN, INTERVAL

_NAMES = {"every": "bool_and", "octet_length": "strlen", "jsonb_agg": "json_group_array",
          "json_object_agg": "json_group_object", "jsonb_object_agg": "json_group_object"}  # fmt: skip
"""Functions that DuckDB has by another name."""
_TRUTHS = {word[:length]: word in ("true", "yes", "on") for word in ("true", "false", "yes", "no", "on", "off")
           for length in range(1 + (word[0] == "o"), len(word) + 1)} | {"1": True, "0": False}  # fmt: skip
_CHARS = (exp.DType.CHAR, exp.DType.NCHAR)
_CUT = (exp.DType.VARCHAR, exp.DType.NVARCHAR, *_CHARS)
MOST_PARTS = 10_000
_MADE = "made"
"""The note of a node that was written here: it is written once."""


class _ByName(DuckDB):
    """Functions stay what they are called."""

    class Parser(DuckDBParser):
        FUNCTIONS = {}
        FUNCTION_PARSERS = {name: parse for name, parse in DuckDBParser.FUNCTION_PARSERS.items() if name == "CAST"}


def with_postgres_meanings(post: exp.Query) -> None:
    """The statement, changed in place; what is inside is changed first."""
    for node in reversed(list(post.walk())):
        write = _WRITTEN.get(type(node))
        made = write(node) if write is not None and _MADE not in node.meta else None
        if made is not None:
            _check_size(made)
            made.meta[_MADE] = True
            node.replace(made)


def _check_size(made: exp.Expr) -> None:
    """What is written holds an argument several times: nested, these would multiply."""
    if sum(1 for _ in made.walk()) > MOST_PARTS:
        raise LimitExceeded("calls are nested too deeply after the aggregation",
                            hint="Name an inner call in a sub-select.")  # fmt: skip


# --- dates as text and back ------------------------------------------------------------------------------------------


def _to_char(node: exp.Expr) -> exp.Expr | None:
    if type_of(node.this) == INTERVAL:
        raise Unsupported("TO_CHAR of an interval is not supported",
                          hint="CAST(x AS text), or EXTRACT(hour FROM x), of an interval x.",
                          span=span_of(node))  # fmt: skip
    pieces = _pieces(node)
    printed = _ByName().parse(printed_form(pieces, "moment"))[0]
    assert printed is not None
    for column in list(printed.find_all(exp.Column)):
        column.replace(node.this.copy())
    return exp.Paren(this=printed)


def _read_date(node: exp.Expr) -> exp.Expr | None:
    format_ = directives(_pieces(node))
    if format_ is None:
        raise Unsupported("this format cannot be read back", hint="For example: to_date(note, 'YYYY-MM-DD').",
                          span=span_of(node))  # fmt: skip
    read = _call("strptime", node.this.copy(), exp.Literal.string(format_))
    return exp.cast(read, "date" if isinstance(node, exp.StrToDate) else "timestamptz")


def _pieces(node: exp.Expr) -> tuple[Piece, ...]:
    written = node.meta.get(FORMAT)
    if written is None:
        raise Unsupported("a format must be a literal", hint="For example: to_char(at, 'YYYY-MM').", span=span_of(node))
    try:
        return postgres_pieces(written)
    except UnknownFormat as error:
        raise Unsupported(
            f'the format has an unknown part "{error}"',
            hint=f'Known are {", ".join(known_parts())}, and FM before them; "text" stands in double quotes.',
            span=span_of(node),
        ) from None


_UNITS = {
    "MON": "MONTH", "MONS": "MONTH", "YR": "YEAR", "YRS": "YEAR", "Y": "YEAR", "HR": "HOUR", "HRS": "HOUR",
    "H": "HOUR", "MIN": "MINUTE", "MINS": "MINUTE", "M": "MINUTE", "SEC": "SECOND", "SECS": "SECOND", "S": "SECOND",
    "D": "DAY", "W": "WEEK", "MSEC": "MILLISECOND", "MSECS": "MILLISECOND", "USEC": "MICROSECOND",
}  # fmt: skip


def _interval(node: exp.Expr) -> exp.Expr | None:
    """Units that PostgreSQL has short words for."""
    unit = node.args.get("unit")
    word = _UNITS.get(unit.name.upper()) if isinstance(unit, exp.Var) else None
    return exp.Interval(this=node.this.copy(), unit=exp.var(word)) if word is not None else None


# --- texts -----------------------------------------------------------------------------------------------------------


def _like(node: exp.Expr) -> exp.Expr | None:
    """A backslash in a pattern takes the next character as it is."""
    pattern = node.expression
    plain = isinstance(pattern, exp.Literal) and "\\" not in pattern.name
    if plain or isinstance(node.parent, exp.Escape) or isinstance(pattern, exp.Any | exp.All | exp.Tuple | exp.Array):
        return None
    bare = node.copy()
    bare.meta[_MADE] = True
    return exp.Escape(this=bare, expression=exp.Literal.string("\\"))


def _format(node: exp.Expr) -> exp.Expr | None:
    """By PostgreSQL's %s; DuckDB's own {} stay."""
    written = node.this
    if not isinstance(written, exp.Literal) or not written.is_string or "%" not in written.name:
        return None
    if re.sub("%[s%]", "", written.name).count("%"):
        raise Unsupported("FORMAT takes %s and %%", hint="For example: format('%s of %s', ward, n).",
                          span=span_of(node))  # fmt: skip
    if written.name.replace("%%", "").count("%") > len(node.expressions):
        raise InvalidParameter("too few arguments for format()", span=span_of(node))
    texts = [exp.Coalesce(this=_as_text(arg), expressions=[exp.Literal.string("")]) for arg in node.expressions]
    return _call("printf", written.copy(), *texts)


def _as_text(value: exp.Expr) -> exp.Expr:
    """As FORMAT shows it: a truth by one letter."""
    if type_of(value) != BOOLEAN:
        return exp.cast(value.copy(), "text")
    letters = exp.Case().when(exp.paren(value.copy()), exp.Literal.string("t"))
    return letters.when(exp.Not(this=exp.paren(value.copy())), exp.Literal.string("f"))


def _call_by_name(node: exp.Expr) -> exp.Expr | None:
    name = _NAMES.get(str(node.this).lower())
    return _call(name, *(arg.copy() for arg in node.expressions)) if name is not None else None


# --- numbers and types -----------------------------------------------------------------------------------------------


def _cast(node: exp.Expr) -> exp.Expr | None:
    to, inner = node.args["to"], node.this
    one = to.this in _CHARS and not to.expressions  # CHAR is CHAR(1)
    if one or (to.this in _CUT and to.expressions):
        length = exp.Literal.number(1) if one else to.expressions[0].this.copy()
        return exp.Left(this=exp.cast(inner.copy(), "text"), expression=length)
    if to.is_type(exp.DType.BOOLEAN) and isinstance(inner, exp.Literal) and inner.is_string:
        truth = _TRUTHS.get(inner.name.strip().lower())
        return None if truth is None else exp.Boolean(this=truth)
    if to.this is exp.DType.DECIMAL and not to.expressions:
        return plain_numeric(node)
    check_literal(node)
    return scaled_numeric(node) if to.this is exp.DType.DECIMAL else None


def _width_bucket(node: exp.Expr) -> exp.Expr | None:
    """0 below the first bucket, one more than there are above the last."""
    value, low, high, count = (node.args[name] for name in ("this", "min_value", "max_value", "num_buckets"))
    above = exp.Add(this=exp.paren(count.copy()), expression=exp.Literal.number(1))
    part = exp.Mul(this=exp.paren(exp.Sub(this=exp.paren(value.copy()), expression=exp.paren(low.copy()))),
                   expression=exp.paren(count.copy()))  # fmt: skip
    width = exp.cast(exp.Sub(this=exp.paren(high.copy()), expression=exp.paren(low.copy())), "double")
    place = exp.Add(this=exp.cast(exp.Floor(this=exp.Div(this=part, expression=width)), "int"),
                    expression=exp.Literal.number(1))  # fmt: skip
    below = exp.LT(this=exp.paren(value.copy()), expression=exp.paren(low.copy()))
    case = exp.Case().when(below, exp.Literal.number(0))
    case = case.when(exp.GTE(this=exp.paren(value.copy()), expression=exp.paren(high.copy())), above)
    inside = exp.Not(this=exp.Is(this=place.copy(), expression=exp.Null()))
    return exp.Paren(this=case.when(inside, place))


def _call(name: str, *args: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(args))


_WRITTEN: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr | None]] = {
    exp.TimeToStr: _to_char,
    exp.StrToDate: _read_date,
    exp.StrToTime: _read_date,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Format: _format,
    exp.Interval: _interval,
    exp.JSONArrayAgg: lambda node: _call("json_group_array", node.this.copy()),
    exp.Anonymous: _call_by_name,
    exp.Cast: _cast,
    exp.WidthBucket: _width_bucket,
    **MORE,
}
