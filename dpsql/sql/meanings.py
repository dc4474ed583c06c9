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
from dpsql.functions.formats import FormatPiece, UnknownFormat, strptime_format, list_format_parts, parse_to_char_format, render_format
from dpsql.sql.dialect import span_of
from dpsql.sql.meanings_more import MORE_REWRITERS, check_cast_literal
from dpsql.sql.numerics import rewrite_plain_numeric, rewrite_scaled_numeric
from dpsql.sql.outputs import infer_type
from dpsql.sql.spellings import FORMAT_NOTE
from dpsql.types import BOOLEAN, INTERVAL

_DUCKDB_NAMES = {"every": "bool_and", "octet_length": "strlen", "jsonb_agg": "json_group_array",
          "json_object_agg": "json_group_object", "jsonb_object_agg": "json_group_object"}  # fmt: skip
"""Functions that DuckDB has by another name."""
_BOOLEAN_WORDS = {word[:length]: word in ("true", "yes", "on") for word in ("true", "false", "yes", "no", "on", "off")
           for length in range(1 + (word[0] == "o"), len(word) + 1)} | {"1": True, "0": False}  # fmt: skip
_CHAR_TYPES = (exp.DType.CHAR, exp.DType.NCHAR)
_LIMITED_TEXT_TYPES = (exp.DType.VARCHAR, exp.DType.NVARCHAR, *_CHAR_TYPES)
MAX_REWRITTEN_NODES = 10_000
_REWRITTEN = "made"
"""The note of a node that was written here: it is written once."""


class _VerbatimDuckDB(DuckDB):
    """Functions stay what they are called."""

    class Parser(DuckDBParser):
        FUNCTIONS = {}
        FUNCTION_PARSERS = {name: parse for name, parse in DuckDBParser.FUNCTION_PARSERS.items() if name == "CAST"}


def apply_postgres_semantics(post: exp.Query) -> None:
    """The statement, changed in place; what is inside is changed first."""
    for node in reversed(list(post.walk())):
        rewrite = _REWRITERS.get(type(node))
        rewritten = rewrite(node) if rewrite is not None and _REWRITTEN not in node.meta else None
        if rewritten is not None:
            _check_rewritten_size(rewritten)
            rewritten.meta[_REWRITTEN] = True
            node.replace(rewritten)


def _check_rewritten_size(rewritten: exp.Expr) -> None:
    """What is written holds an argument several times: nested, these would multiply."""
    if sum(1 for _ in rewritten.walk()) > MAX_REWRITTEN_NODES:
        raise LimitExceeded("calls are nested too deeply after the aggregation",
                            hint="Name an inner call in a sub-select.")  # fmt: skip


# --- dates as text and back ------------------------------------------------------------------------------------------


def _rewrite_to_char(node: exp.Expr) -> exp.Expr | None:
    if infer_type(node.this) == INTERVAL:
        raise Unsupported("TO_CHAR of an interval is not supported",
                          hint="CAST(x AS text), or EXTRACT(hour FROM x), of an interval x.",
                          span=span_of(node))  # fmt: skip
    pieces = _format_pieces(node)
    printed = _VerbatimDuckDB().parse(render_format(pieces, "moment"))[0]
    assert printed is not None
    for column in list(printed.find_all(exp.Column)):
        column.replace(node.this.copy())
    return exp.Paren(this=printed)


def _rewrite_to_date(node: exp.Expr) -> exp.Expr | None:
    format_ = strptime_format(_format_pieces(node))
    if format_ is None:
        raise Unsupported("this format cannot be read back", hint="For example: to_date(note, 'YYYY-MM-DD').",
                          span=span_of(node))  # fmt: skip
    read = _call_function("strptime", node.this.copy(), exp.Literal.string(format_))
    return exp.cast(read, "date" if isinstance(node, exp.StrToDate) else "timestamptz")


def _format_pieces(node: exp.Expr) -> tuple[FormatPiece, ...]:
    written = node.meta.get(FORMAT_NOTE)
    if written is None:
        raise Unsupported("a format must be a literal", hint="For example: to_char(at, 'YYYY-MM').", span=span_of(node))
    try:
        return parse_to_char_format(written)
    except UnknownFormat as error:
        raise Unsupported(
            f'the format has an unknown part "{error}"',
            hint=f'Known are {", ".join(list_format_parts())}, and FM before them; "text" stands in double quotes.',
            span=span_of(node),
        ) from None


_INTERVAL_UNITS = {
    "MON": "MONTH", "MONS": "MONTH", "YR": "YEAR", "YRS": "YEAR", "Y": "YEAR", "HR": "HOUR", "HRS": "HOUR",
    "H": "HOUR", "MIN": "MINUTE", "MINS": "MINUTE", "M": "MINUTE", "SEC": "SECOND", "SECS": "SECOND", "S": "SECOND",
    "D": "DAY", "W": "WEEK", "MSEC": "MILLISECOND", "MSECS": "MILLISECOND", "USEC": "MICROSECOND",
}  # fmt: skip


def _rewrite_interval(node: exp.Expr) -> exp.Expr | None:
    """Units that PostgreSQL has short words for."""
    unit = node.args.get("unit")
    word = _INTERVAL_UNITS.get(unit.name.upper()) if isinstance(unit, exp.Var) else None
    return exp.Interval(this=node.this.copy(), unit=exp.var(word)) if word is not None else None


# --- texts -----------------------------------------------------------------------------------------------------------


def _rewrite_like(node: exp.Expr) -> exp.Expr | None:
    """A backslash in a pattern takes the next character as it is."""
    pattern = node.expression
    plain = isinstance(pattern, exp.Literal) and "\\" not in pattern.name
    if plain or isinstance(node.parent, exp.Escape) or isinstance(pattern, exp.Any | exp.All | exp.Tuple | exp.Array):
        return None
    bare = node.copy()
    bare.meta[_REWRITTEN] = True
    return exp.Escape(this=bare, expression=exp.Literal.string("\\"))


def _rewrite_format(node: exp.Expr) -> exp.Expr | None:
    """By PostgreSQL's %s; DuckDB's own {} stay."""
    written = node.this
    if not isinstance(written, exp.Literal) or not written.is_string or "%" not in written.name:
        return None
    if re.sub("%[s%]", "", written.name).count("%"):
        raise Unsupported("FORMAT takes %s and %%", hint="For example: format('%s of %s', ward, n).",
                          span=span_of(node))  # fmt: skip
    if written.name.replace("%%", "").count("%") > len(node.expressions):
        raise InvalidParameter("too few arguments for format()", span=span_of(node))
    texts = [exp.Coalesce(this=_cast_to_text(arg), expressions=[exp.Literal.string("")]) for arg in node.expressions]
    return _call_function("printf", written.copy(), *texts)


def _cast_to_text(value: exp.Expr) -> exp.Expr:
    """As FORMAT shows it: a truth by one letter."""
    if infer_type(value) != BOOLEAN:
        return exp.cast(value.copy(), "text")
    letters = exp.Case().when(exp.paren(value.copy()), exp.Literal.string("t"))
    return letters.when(exp.Not(this=exp.paren(value.copy())), exp.Literal.string("f"))


def _rewrite_function_name(node: exp.Expr) -> exp.Expr | None:
    name = _DUCKDB_NAMES.get(str(node.this).lower())
    return _call_function(name, *(arg.copy() for arg in node.expressions)) if name is not None else None


# --- numbers and types -----------------------------------------------------------------------------------------------


def _rewrite_cast(node: exp.Expr) -> exp.Expr | None:
    to, inner = node.args["to"], node.this
    is_single = to.this in _CHAR_TYPES and not to.expressions  # CHAR is CHAR(1)
    if is_single or (to.this in _LIMITED_TEXT_TYPES and to.expressions):
        length = exp.Literal.number(1) if is_single else to.expressions[0].this.copy()
        return exp.Left(this=exp.cast(inner.copy(), "text"), expression=length)
    if to.is_type(exp.DType.BOOLEAN) and isinstance(inner, exp.Literal) and inner.is_string:
        truth = _BOOLEAN_WORDS.get(inner.name.strip().lower())
        return None if truth is None else exp.Boolean(this=truth)
    if to.this is exp.DType.DECIMAL and not to.expressions:
        return rewrite_plain_numeric(node)
    check_cast_literal(node)
    return rewrite_scaled_numeric(node) if to.this is exp.DType.DECIMAL else None


def _rewrite_width_bucket(node: exp.Expr) -> exp.Expr | None:
    """0 below the first bucket, one more than there are above the last."""
    value, low, high, count = (node.args[name] for name in ("this", "min_value", "max_value", "num_buckets"))
    above = exp.Add(this=exp.paren(count.copy()), expression=exp.Literal.number(1))
    part = exp.Mul(this=exp.paren(exp.Sub(this=exp.paren(value.copy()), expression=exp.paren(low.copy()))),
                   expression=exp.paren(count.copy()))  # fmt: skip
    width = exp.cast(exp.Sub(this=exp.paren(high.copy()), expression=exp.paren(low.copy())), "double")
    bucket = exp.Add(this=exp.cast(exp.Floor(this=exp.Div(this=part, expression=width)), "int"),
                    expression=exp.Literal.number(1))  # fmt: skip
    below = exp.LT(this=exp.paren(value.copy()), expression=exp.paren(low.copy()))
    case = exp.Case().when(below, exp.Literal.number(0))
    case = case.when(exp.GTE(this=exp.paren(value.copy()), expression=exp.paren(high.copy())), above)
    inside = exp.Not(this=exp.Is(this=bucket.copy(), expression=exp.Null()))
    return exp.Paren(this=case.when(inside, bucket))


def _call_function(name: str, *args: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(args))


_REWRITERS: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr | None]] = {
    exp.TimeToStr: _rewrite_to_char,
    exp.StrToDate: _rewrite_to_date,
    exp.StrToTime: _rewrite_to_date,
    exp.Like: _rewrite_like,
    exp.ILike: _rewrite_like,
    exp.Format: _rewrite_format,
    exp.Interval: _rewrite_interval,
    exp.JSONArrayAgg: lambda node: _call_function("json_group_array", node.this.copy()),
    exp.Anonymous: _rewrite_function_name,
    exp.Cast: _rewrite_cast,
    exp.WidthBucket: _rewrite_width_bucket,
    **MORE_REWRITERS,
}
