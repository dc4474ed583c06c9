"""Functions after the noise that DuckDB has under the same name, for something else: parts of seconds, halves, places
in texts, patterns, digits to the base 16, paths into JSON, centuries.

    extract(second FROM at)   keeps its fraction          substr('hello', -1, 3)   counts from before the text
    x SIMILAR TO 'a%'         is PostgreSQL's pattern     x #>> '{a,b}'            is a path
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from dpsql.errors import DataError, Unsupported
from dpsql.functions import regex
from dpsql.sql.dialect import WRITTEN_NAME_KEY, span_of

_SECOND_UNITS = frozenset({"second", "seconds", "sec", "secs", "s"})
_MILLISECOND_UNITS = frozenset({"millisecond", "milliseconds", "msec", "msecs", "ms"})
_FLOAT_TYPES = (exp.DType.DOUBLE, exp.DType.FLOAT)
_TIME_TYPES = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ)
_SHIFTED_UNITS = ("CENTURY", "MILLENNIUM")


def _rewrite_extract(node: exp.Expr) -> exp.Expr | None:
    """Seconds with their fraction: a decimal, or of DATE_PART a double."""
    unit = node.name.lower()
    digits = 6 if unit in _SECOND_UNITS else 3 if unit in _MILLISECOND_UNITS else None
    if digits is None:
        inner = node.expression.unnest()
        zoned = isinstance(inner, exp.Cast) and inner.to.this is exp.DType.TIMESTAMPTZ
        # The generator warns of zones where the function's name does not; all is UTC.
        return _make_call("date_part", exp.Literal.string(unit), node.expression.copy()) if zoned else None
    micro = _make_call("date_part", exp.Literal.string("microseconds"), node.expression.copy())
    value = exp.Div(this=micro, expression=exp.cast(exp.Literal.number(10**digits), "double"))
    exact = exp.DataType.build("double" if node.meta.get(WRITTEN_NAME_KEY) == "date_part" else f"decimal(18, {digits})")
    return exp.cast(value, exact)


def _rewrite_round(node: exp.Expr) -> exp.Expr | None:
    """A half of a double is rounded to the even number; of what is a double here only, as a quotient, it is not."""
    inner = node.this.unnest()
    while isinstance(inner, exp.Neg):
        inner = inner.this.unnest()
    is_float = isinstance(inner, exp.Cast) and inner.to.this in _FLOAT_TYPES
    return _make_call("round_even", node.this.copy(), _number_literal(0)) if is_float and node.args.get("decimals") is None else None


def _rewrite_substring(node: exp.Expr) -> exp.Expr | None:
    """Places below the first are there, and empty; a length is no direction."""
    start, length = node.args.get("start"), node.args.get("length")
    if start is None or (_is_literal_at_least(start, 1) and (length is None or _is_literal_at_least(length, 0))):
        return None
    if length is None:
        return _case_when(exp.LT(this=exp.paren(start.copy()), expression=_number_literal(1)), node.this.copy(),
                     _make_call("substring", node.this.copy(), start.copy()))  # fmt: skip
    if isinstance(length, exp.Neg) and isinstance(length.this, exp.Literal):
        raise DataError("negative substring length not allowed", span=span_of(node), sqlstate="22011")
    end = exp.Sub(this=exp.Add(this=exp.paren(start.copy()), expression=exp.paren(length.copy())),
                  expression=_number_literal(1))  # fmt: skip
    cut = _make_call("substring", node.this.copy(), _number_literal(1), _make_call("greatest", end, _number_literal(0)))
    result = _case_when(exp.LT(this=exp.paren(start.copy()), expression=_number_literal(1)), cut,
                  _make_call("substring", node.this.copy(), start.copy(), length.copy()))  # fmt: skip
    if _is_literal_at_least(length, 0):
        return result
    wrong = _make_call("error", exp.Literal.string("negative substring length not allowed"))
    return _case_when(exp.LT(this=exp.paren(length.copy()), expression=_number_literal(0)), wrong, result)


def _rewrite_hex(node: exp.Expr) -> exp.Expr | None:
    """In small letters; a negative integer has 32 bits."""
    value = node.this
    is_integer = exp.EQ(this=_make_call("typeof", value.copy()), expression=exp.Literal.string("INTEGER"))
    short = exp.BitwiseAnd(this=exp.cast(value.copy(), "bigint"), expression=_number_literal(0xFFFFFFFF))
    bits = _case_when(is_integer, short, exp.cast(value.copy(), "bigint"))
    return _make_call("lower", _make_call("to_hex", bits))


def _rewrite_similar(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node.parent, exp.Escape):
        return None
    return _match_pattern(node, "\\")


def _rewrite_escape(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node.this, exp.SimilarTo):
        return None
    escape = node.expression
    if not isinstance(escape, exp.Literal) or len(escape.name) > 1:
        raise Unsupported("ESCAPE takes one ASCII character", span=span_of(node))
    return _match_pattern(node.this, escape.name)


def _match_pattern(node: exp.Expr, escape: str) -> exp.Expr:
    written = node.expression.unnest()
    if not isinstance(written, exp.Literal) or not written.is_string:
        raise Unsupported("a pattern must be a literal text", span=span_of(node))
    try:
        pattern = regex.similar_to_regex(written.name, escape)
        regex.check_regex(pattern)
    except regex.MalformedRegex as error:
        raise Unsupported(f"the pattern cannot be used: {error}", span=span_of(node)) from None
    return _make_call("regexp_full_match", node.this.copy(), exp.Literal.string(pattern), exp.Literal.string("s"))


def _json_path_rewriter(name: str, operator: str) -> Callable[[exp.Expr], exp.Expr | None]:
    """`#>` and `#>>`: by a list of keys, as one text."""

    def write(node: exp.Expr) -> exp.Expr | None:
        keys = node.expression
        plain = isinstance(keys, exp.Literal) and keys.name[:1] == "{" and keys.name[-1:] == "}"
        if not plain or any(mark in keys.name for mark in '"\\'):
            raise Unsupported(f"{operator} takes a list of keys as text", hint=f"For example: x {operator} '{{a,b}}'.",
                              span=span_of(node))  # fmt: skip
        steps = [key.strip().replace("~", "~0").replace("/", "~1") for key in keys.name[1:-1].split(",")]
        path = "".join(f"/{step}" for step in steps)
        return _make_call(name, exp.cast(node.this.copy(), "json"), exp.Literal.string(path))

    return write


def _rewrite_trunc(node: exp.Expr) -> exp.Expr | None:
    """Centuries and millennia begin with their first year."""
    unit = node.args.get("unit")
    if not isinstance(unit, exp.Var) or unit.name.upper() not in _SHIFTED_UNITS:
        return None
    year = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("YEAR"))
    before = exp.Sub(this=exp.paren(node.this.copy()), expression=year)
    began = _make_call("date_trunc", exp.Literal.string(unit.name.lower()), before)
    return exp.Paren(this=exp.Add(this=began, expression=year.copy()))


def check_cast_literal(cast: exp.Expr) -> None:
    """A text that is no value of a type is told before anything is charged, as PostgreSQL does when it reads one."""
    inner = cast.this
    if not isinstance(inner, exp.Literal) or not inner.is_string:
        return
    type_, text = cast.args["to"].this, inner.name
    if type_ in _TIME_TYPES and text.strip().lower().lstrip("+-") in ("infinity", "inf"):
        raise Unsupported("there is no infinite date or time here", hint="Leave the bound out.", span=span_of(cast))
    if type_ in _INTEGER_TYPES:
        name, bits = _INTEGER_TYPES[type_]
        if not re.fullmatch(r"\s*[+-]?\d+\s*", text, re.ASCII):
            _refuse_cast_literal(cast, f'invalid input syntax for type {name}: "{text}"', "22P02")
        if len(text) > 100 or not -(1 << bits) <= int(text) < 1 << bits:
            _refuse_cast_literal(cast, f'value "{text}" is out of range for type {name}', "22003")
    if type_ is exp.DType.UUID and not _UUID_TEXT.fullmatch(text.strip()):
        _refuse_cast_literal(cast, f'invalid input syntax for type uuid: "{text}"', "22P02")


def _refuse_cast_literal(cast: exp.Expr, message: str, state: str) -> None:
    raise DataError(message, span=span_of(cast.this) or span_of(cast), sqlstate=state)


_INTEGER_TYPES = {exp.DType.SMALLINT: ("smallint", 15), exp.DType.INT: ("integer", 31), exp.DType.BIGINT: ("bigint", 63)}
_UUID_TEXT = re.compile(r"\{?([\da-f]{4}-?){8}\}?", re.IGNORECASE | re.ASCII)


def _is_literal_at_least(node: exp.Expr, minimum: int) -> bool:
    return isinstance(node, exp.Literal) and node.is_int and int(node.this) >= minimum


def _case_when(condition: exp.Expr, then: exp.Expr, otherwise: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Case().when(condition, then).else_(otherwise))


def _number_literal(number: int) -> exp.Expr:
    return exp.Literal.number(number)


def _make_call(name: str, *args: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(args))


MORE_REWRITERS: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr | None]] = {
    exp.Extract: _rewrite_extract,
    exp.Round: _rewrite_round,
    exp.Substring: _rewrite_substring,
    exp.Hex: _rewrite_hex,
    exp.SimilarTo: _rewrite_similar,
    exp.Escape: _rewrite_escape,
    exp.JSONBExtract: _json_path_rewriter("json_extract", "#>"),
    exp.JSONBExtractScalar: _json_path_rewriter("json_extract_string", "#>>"),
    exp.TimestampTrunc: _rewrite_trunc,
    exp.DateTrunc: _rewrite_trunc,
}
