"""Post-processing as DuckDB's SQL, rewritten where DuckDB and PostgreSQL differ. It reads releases only."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser

from dpsql.base.interval_text import UNIT_OF_WORD
from dpsql.compiler.bind.outputs import infer_type
from dpsql.compiler.functions import regex
from dpsql.compiler.functions.date_formats import (
    FormatPiece,
    UnknownFormat,
    list_format_parts,
    parse_to_char_format,
    render_format,
    strptime_format,
)
from dpsql.compiler.functions.time_zones import engine_zone_of, find_zone_name, read_fixed_zone
from dpsql.compiler.parse.dialect import WRITTEN_NAME_KEY, span_of
from dpsql.compiler.parse.function_names import FORMAT_NOTE
from dpsql.compiler.parse.literals import is_interval, read_interval, read_interval_literal
from dpsql.compiler.postprocess.allowed_functions import GENERATOR_ERRORS
from dpsql.compiler.postprocess.cast_literals import check_cast_literal, read_bytea, rewrite_array_text
from dpsql.compiler.postprocess.size_limits import limit_result_sizes
from dpsql.compiler.postprocess.typed_texts import (
    cast_text_column,
    cast_text_to_bytes,
    round_time,
    type_literal_texts,
)
from dpsql.errors import DataError, InvalidParameter, LimitExceeded, Unsupported
from dpsql.types import BOOLEAN, INTERVAL, TEXT, Kind

# Functions after the noise that DuckDB has under the same name, for something else: parts of seconds, halves, places
# in texts, patterns, digits to the base 16, paths into JSON, centuries.
#
#     extract(second FROM at)   keeps its fraction          substr('hello', -1, 3)   counts from before the text
#     x SIMILAR TO 'a%'         is PostgreSQL's pattern     x #>> '{a,b}'            is a path

REWRITTEN = "made"
"""The note of a node that was written here: it is written once."""
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


def _rewrite_at_time_zone(node: exp.Expr) -> exp.Expr | None:
    """A zone that is written as its distance from UTC: POSIX counts to the west, an interval and the sandbox to the
    east."""
    zone = node.args["zone"]
    if is_interval(zone):
        minutes, rest = divmod(read_interval(zone).microseconds, 60_000_000)
        offset = None if rest or abs(minutes) >= 24 * 60 else minutes
    else:
        literal = isinstance(zone, exp.Literal) and zone.is_string
        offset = read_fixed_zone(zone.name) if literal else None
        if literal and offset is None and find_zone_name(zone.name) is None:
            raise InvalidParameter(f'time zone "{zone.name}" not recognized', span=span_of(zone))
    if offset is None:
        return None
    return exp.AtTimeZone(this=node.this.copy(), zone=exp.Literal.string(engine_zone_of(offset)))


def _rewrite_round(node: exp.Expr) -> exp.Expr | None:
    """A half of a double is rounded to the even number; of what is a double here only, as a quotient, it is not."""
    inner = node.this.unnest()
    while isinstance(inner, exp.Neg):
        inner = inner.this.unnest()
    is_float = isinstance(inner, exp.Cast) and inner.to.this in _FLOAT_TYPES
    return (
        _make_call("round_even", node.this.copy(), _number_literal(0))
        if is_float and node.args.get("decimals") is None
        else None
    )


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


def _is_literal_at_least(node: exp.Expr, minimum: int) -> bool:
    return isinstance(node, exp.Literal) and node.is_int and int(node.this) >= minimum


def _case_when(condition: exp.Expr, then: exp.Expr, otherwise: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Case().when(condition, then).else_(otherwise))


def _number_literal(number: int) -> exp.Expr:
    return exp.Literal.number(number)


def _make_call(name: str, *args: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(args))


# Functions outside of their domain give NULL: PostgreSQL's error would come after the charge, and noisy counts are 0 or
# negative now and then. (What divides by zero is NULL by the sandbox's own settings.)


def _rewrite_logarithm(node: exp.Expr) -> exp.Expr | None:
    return _null_outside(node, *((arg, exp.GT) for arg in _operands_of(node)))


def _rewrite_root(node: exp.Expr) -> exp.Expr | None:
    return None if isinstance(node.this.unnest(), exp.Abs) else _null_outside(node, (node.this, exp.GTE))


def _rewrite_power(node: exp.Expr) -> exp.Expr | None:
    """Zero has no negative power."""
    base, exponent = node.this, node.expression
    if _is_number_at_least(exponent, exp.GTE) or _is_number_at_least(base, exp.GT):
        return None
    inside = exp.Or(
        this=exp.NEQ(this=exp.paren(base.copy()), expression=_number_literal(0)),
        expression=exp.GTE(this=exp.paren(exponent.copy()), expression=_number_literal(0)),
    )
    return exp.Paren(this=exp.Case().when(inside, _written_once(node)))


def _rewrite_inverse_sine(node: exp.Expr) -> exp.Expr | None:
    arg = node.this.copy()
    inside = exp.Between(this=exp.paren(arg), low=exp.Literal.number(-1), high=_number_literal(1))
    return exp.Paren(this=exp.Case().when(inside, _written_once(node)))


def _null_outside(node: exp.Expr, *limits: tuple[exp.Expr, type[exp.GT] | type[exp.GTE]]) -> exp.Expr | None:
    """The call where each argument compares so with zero, and NULL elsewhere."""
    open_limits = [(arg, compare) for arg, compare in limits if not _is_number_at_least(arg, compare)]
    if not open_limits:
        return None
    checks = [compare(this=exp.paren(arg.copy()), expression=_number_literal(0)) for arg, compare in open_limits]
    return exp.Paren(this=exp.Case().when(exp.and_(*checks), _written_once(node)))


def _is_number_at_least(node: exp.Expr, compare: type[exp.GT] | type[exp.GTE]) -> bool:
    """Whether a literal number lies above zero, or also at it."""
    inner = node.unnest()
    if not isinstance(inner, exp.Literal) or inner.is_string:
        return False
    return float(inner.name) > 0 if compare is exp.GT else float(inner.name) >= 0


def _operands_of(node: exp.Expr) -> list[exp.Expr]:
    return [part for part in (node.this, node.args.get("expression")) if isinstance(part, exp.Expr)]


def _written_once(node: exp.Expr) -> exp.Expr:
    copy = node.copy()
    copy.meta[REWRITTEN] = True
    return copy


_EXACT_NODES = (exp.Cast, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Connector, exp.Exists, exp.Count, exp.Min,
                exp.Max)  # fmt: skip
_ARITHMETIC_NODES = (exp.Func, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)


def has_arithmetic(post: exp.Query) -> bool:
    """Whether a statement computes numbers, rather than showing those that are stored or written."""
    return any(isinstance(node, _ARITHMETIC_NODES) and not isinstance(node, _EXACT_NODES) for node in post.walk())


MORE_REWRITERS: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr | None]] = {
    exp.AtTimeZone: _rewrite_at_time_zone,
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
    exp.Ln: _rewrite_logarithm,
    exp.Log: _rewrite_logarithm,
    exp.Sqrt: _rewrite_root,
    exp.Pow: _rewrite_power,
    exp.Acos: _rewrite_inverse_sine,
    exp.Asin: _rewrite_inverse_sine,
}

# CAST(x AS numeric) after the noise: PostgreSQL's numeric has as many digits as the value; DuckDB's has 18, three of
# them behind the point.
#
# Whole numbers and decimals keep their digits, also those that are written out. A double stays one, as over private
# rows; where it is rounded or cut, `ROUND(x::numeric, 2)`, or has a scale, it is a decimal. Its digits are those
# that it is shown with, not those of the binary fraction: 1.005 is rounded to 1.01.

_PLAIN_NUMBER = re.compile(r"\s*[+-]?(?:\d+(?:\.(\d*))?|\.(\d+))\s*", re.ASCII)
MAX_DECIMAL_DIGITS = 38
ROUNDED_SCALE = 15  # digits behind the point, of a double that is rounded: as many as a double has
UNKNOWN_SCALE = 10


def rewrite_plain_numeric(cast: exp.Expr) -> exp.Expr | None:
    """The DuckDB expression for a cast to numeric without a precision."""
    inner = cast.this.unnest()
    digits = inner.this if isinstance(inner, exp.Neg) else inner
    if isinstance(digits, exp.Literal):
        return _cast_literal(cast.this, digits)
    type_ = infer_type(cast.this)
    if type_ is None:
        return _cast_by_text(
            cast.this, _decimal_type(UNKNOWN_SCALE if (scale := _rounding_digits(cast)) is None else scale)
        )
    if type_.is_float:
        scale = _rounding_digits(cast)
        return exp.Paren(this=cast.this.copy()) if scale is None else _cast_by_text(cast.this, _decimal_type(scale))
    if type_.is_integer:
        return _cast_to_decimal(cast.this, 0)
    return (
        exp.Paren(this=cast.this.copy()) if type_.kind is Kind.DECIMAL else _cast_to_decimal(cast.this, UNKNOWN_SCALE)
    )


def rewrite_scaled_numeric(cast: exp.Expr) -> exp.Expr | None:
    """The DuckDB expression for a cast to numeric(10, 2); a double is cast by its digits."""
    if isinstance(cast.this.unnest(), exp.Literal):
        return None
    type_ = infer_type(cast.this)
    return _cast_by_text(cast.this, cast.args["to"]) if type_ is not None and type_.is_float else None


def _rounding_digits(cast: exp.Expr) -> int | None:
    """How many digits behind the point a call around asks for; None where there is none."""
    call = cast.parent
    while isinstance(call, exp.Paren | exp.Neg):
        call = call.parent
    if not isinstance(call, exp.Round | exp.Trunc):
        return None
    digits = call.args.get("decimals") or exp.Literal.number(0)
    exactly = isinstance(call, exp.Round) and isinstance(digits, exp.Literal) and digits.is_int
    return min(int(digits.this), MAX_DECIMAL_DIGITS) if exactly else ROUNDED_SCALE


def _cast_by_text(value: exp.Expr, decimal: exp.DataType) -> exp.Expr:
    """By way of its text, which has all digits of a decimal too: what is a double here may be one to DuckDB."""
    return exp.cast(exp.cast(value.copy(), "text"), decimal.copy())


def _cast_literal(written: exp.Expr, digits: exp.Literal) -> exp.Expr | None:
    matched = _PLAIN_NUMBER.fullmatch(digits.name)
    if matched is None:
        return None if digits.is_string else _cast_to_decimal(written, ROUNDED_SCALE)  # 1e-3
    return _cast_to_decimal(written, min(len(matched[1] or matched[2] or ""), MAX_DECIMAL_DIGITS))


def _cast_to_decimal(value: exp.Expr, scale: int) -> exp.Expr:
    return exp.cast(value.copy(), _decimal_type(scale))


def _decimal_type(scale: int) -> exp.DataType:
    return exp.DataType.build(f"decimal({MAX_DECIMAL_DIGITS}, {scale})")


# Where DuckDB reads the same text otherwise than PostgreSQL does: post-processing is written so that it means
# PostgreSQL's.
#
#     to_char(day, 'Mon YYYY')  is written  strftime(day, '%b %Y')      x LIKE y    is written  x LIKE y ESCAPE '\'
#     format('%s of %s', a, b)  is written  printf('%s of %s', …)      x::varchar(3)  is written  left(x::text, 3)
#
# What a format of dates cannot say here is refused, before anything is charged.

_DUCKDB_NAMES = {"every": "bool_and", "octet_length": "strlen", "lengthb": "strlen",
          "jsonb_agg": "json_group_array",
          "json_object_agg": "json_group_object", "jsonb_object_agg": "json_group_object"}  # fmt: skip
"""Functions that DuckDB has by another name."""
_BOOLEAN_WORDS = {word[:length]: word in ("true", "yes", "on") for word in ("true", "false", "yes", "no", "on", "off")
           for length in range(1 + (word[0] == "o"), len(word) + 1)} | {"1": True, "0": False}  # fmt: skip
_CHAR_TYPES = (exp.DType.CHAR, exp.DType.NCHAR)
_LIMITED_TEXT_TYPES = (exp.DType.VARCHAR, exp.DType.NVARCHAR, *_CHAR_TYPES)
MAX_REWRITTEN_NODES = 10_000


class _VerbatimDuckDB(DuckDB):
    """Functions stay what they are called."""

    class Parser(DuckDBParser):
        FUNCTIONS = {}
        FUNCTION_PARSERS = {name: parse for name, parse in DuckDBParser.FUNCTION_PARSERS.items() if name == "CAST"}


def apply_postgres_semantics(post: exp.Query) -> None:
    """The statement, changed in place; what is inside is changed first."""
    for node in reversed(list(post.walk())):
        rewrite = _REWRITERS.get(type(node))
        rewritten = rewrite(node) if rewrite is not None and REWRITTEN not in node.meta else None
        if rewritten is not None:
            _check_rewritten_size(rewritten)
            rewritten.meta[REWRITTEN] = True
            node.replace(rewritten)


def _check_rewritten_size(rewritten: exp.Expr) -> None:
    """Refuse deep nesting: each rewriting repeats its argument, and nested ones would multiply."""
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
    read = _make_call("strptime", node.this.copy(), exp.Literal.string(format_))
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


def _rewrite_interval(node: exp.Expr) -> exp.Expr | None:
    """In words that DuckDB reads as PostgreSQL does; of an amount that is computed, its unit."""
    unit = node.args.get("unit")
    word = UNIT_OF_WORD.get(unit.name.lower()) if isinstance(unit, exp.Var) else None
    if isinstance(node.this, exp.Literal) and not (word is not None and re.fullmatch(r"-?\d+", node.this.name)):
        return _plain_interval(node)
    if word is None or word == node.args["unit"].name.lower():
        return None
    return exp.Interval(this=node.this.copy(), unit=exp.var(word.upper()))


# --- texts -----------------------------------------------------------------------------------------------------------


def _rewrite_like(node: exp.Expr) -> exp.Expr | None:
    """A backslash in a pattern takes the next character as it is."""
    pattern = node.expression
    plain = isinstance(pattern, exp.Literal) and "\\" not in pattern.name
    if plain or isinstance(node.parent, exp.Escape) or isinstance(pattern, exp.Any | exp.All | exp.Tuple | exp.Array):
        return None
    bare = node.copy()
    bare.meta[REWRITTEN] = True
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
    return _make_call("printf", written.copy(), *texts)


def _cast_to_text(value: exp.Expr) -> exp.Expr:
    """As FORMAT shows it: a truth by one letter."""
    if infer_type(value) != BOOLEAN:
        return exp.cast(value.copy(), "text")
    letters = exp.Case().when(exp.paren(value.copy()), exp.Literal.string("t"))
    return letters.when(exp.Not(this=exp.paren(value.copy())), exp.Literal.string("f"))


def _rewrite_function_name(node: exp.Expr) -> exp.Expr | None:
    if str(node.this).lower() == "timezone" and len(node.expressions) == 2:
        zone, value = node.expressions
        return _rewrite_at_time_zone(exp.AtTimeZone(this=value, zone=zone))
    name = _DUCKDB_NAMES.get(str(node.this).lower())
    return _make_call(name, *(arg.copy() for arg in node.expressions)) if name is not None else None


# --- numbers and types -----------------------------------------------------------------------------------------------


def _rewrite_nullif(node: exp.Expr) -> exp.Expr | None:
    """NULLIF(COUNT(*), 0.0) has the type of the comparison, and not that of the whole number."""
    whole, type_ = infer_type(node.this), infer_type(node)
    if whole is None or not whole.is_integer or type_ is None or type_.is_integer:
        return None
    return exp.Nullif(this=exp.cast(node.this.copy(), "double"), expression=node.expression.copy())


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
    if isinstance(inner, exp.Literal) and inner.is_string:
        if to.is_type(exp.DType.VARBINARY):
            return _make_call("unhex", exp.Literal.string(read_bytea(node, inner.name).hex()))
        if to.is_type(exp.DType.INTERVAL) and not isinstance(node, exp.TryCast):
            return _plain_interval(node)
    if to.is_type(exp.DType.VARBINARY) and infer_type(inner) == TEXT:
        return cast_text_to_bytes(inner)
    check_cast_literal(node)
    if to.this is exp.DType.ARRAY and isinstance(inner, exp.Literal) and inner.is_string:
        return rewrite_array_text(node)
    if to.this in (exp.DType.TIME, exp.DType.TIMESTAMPTZ) and to.expressions:
        return round_time(node)
    if to.this in _TIME_TYPES:
        return cast_text_column(node)
    return rewrite_scaled_numeric(node) if to.this is exp.DType.DECIMAL else None


def _plain_interval(node: exp.Expr) -> exp.Expr:
    months, days, microseconds = read_interval_literal(node)
    return exp.cast(exp.Literal.string(f"{months} months {days} days {microseconds} microseconds"), "interval")


def _rewrite_bits(node: exp.Expr) -> exp.Expr | None:
    """B'101' and X'1F' are strings of bits: four for each hexadecimal digit."""
    digits = node.name if isinstance(node, exp.BitString) else "".join(f"{int(digit, 16):04b}" for digit in node.name)
    return exp.cast(exp.Literal.string(digits), "bit") if digits else None


def _rewrite_encode(node: exp.Expr) -> exp.Expr | None:
    """encode(bytes, 'hex'), decode(text, 'base64'): a form of text for bytes, and not an encoding of letters."""
    form = node.args["charset"].name.lower() if isinstance(node.args.get("charset"), exp.Literal) else ""
    if isinstance(node, exp.Decode):
        name = {"hex": "unhex", "base64": "from_base64"}.get(form)
        return None if name is None else _make_call(name, node.this.copy())
    if form not in ("hex", "base64"):
        return None
    value, written = node.this.copy(), isinstance(node.this, exp.Literal) and node.this.is_string
    if written:
        value = _make_call("unhex", exp.Literal.string(read_bytea(node, node.this.name).hex()))
    return _make_call("to_base64", value) if form == "base64" else _make_call("lower", _make_call("hex", value))


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


_REWRITERS: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr | None]] = {
    exp.TimeToStr: _rewrite_to_char,
    exp.StrToDate: _rewrite_to_date,
    exp.StrToTime: _rewrite_to_date,
    exp.Like: _rewrite_like,
    exp.ILike: _rewrite_like,
    exp.Format: _rewrite_format,
    exp.Interval: _rewrite_interval,
    exp.JSONArrayAgg: lambda node: _make_call("json_group_array", node.this.copy()),
    exp.Anonymous: _rewrite_function_name,
    exp.Cast: _rewrite_cast,
    exp.Nullif: _rewrite_nullif,
    exp.BitString: _rewrite_bits,
    exp.HexString: _rewrite_bits,
    exp.Encode: _rewrite_encode,
    exp.Decode: _rewrite_encode,
    exp.WidthBucket: _rewrite_width_bucket,
    **MORE_REWRITERS,
}


def render_postprocessing(post: exp.Query) -> str:
    """What the generator cannot write is refused; by default it would be left out, with a line in a log."""
    for series in [node for node in post.find_all(exp.ExplodingGenerateSeries) if isinstance(node.parent, exp.Explode)]:
        series.replace(exp.GenerateSeries(**{key: value for key, value in series.args.items() if value is not None}))
    limit_result_sizes(post)
    rewrite_number_formats(post)
    if any(literal.is_string for literal in post.find_all(exp.Literal)):
        type_literal_texts(post)
    apply_postgres_semantics(post)
    try:
        return str(post.sql(dialect="duckdb", unsupported_level=ErrorLevel.RAISE))
    except GENERATOR_ERRORS:
        raise Unsupported(
            "a clause after the aggregation is not supported", hint="DuckDB has no such clause for a SELECT."
        ) from None


def tables_read_by(post: exp.Query) -> frozenset[str]:
    """The names of all tables that a post-processing query reads, CTEs of its own among them."""
    return frozenset(table.name for table in post.find_all(exp.Table))


def read_where_positive(post: exp.Query, tables: Collection[str], column: str) -> exp.Query:
    """The query that reads of these tables only the rows in which the column is above 0."""
    read = post.copy()
    for table in list(read.find_all(exp.Table)):
        if table.name in tables:
            positive = exp.GT(this=exp.column(column, quoted=True), expression=exp.Literal.number(0))
            rows = exp.select("*").from_(exp.to_table(table.name)).where(positive)
            table.replace(rows.subquery(table.alias_or_name, copy=False))
    return read


# --- TO_CHAR of released numbers -------------------------------------------------------------------------------------
# By PostgreSQL's formats, over DuckDB's functions.
#
#     FM990.00 of 7.5  →  7.50        999,999 of 1234  →     1,234        000 of 7  →   007


_FORMAT = re.compile(r"(FM)?(\$?)([90]+|[90]{1,3}(?:,[90]{3})+)(?:\.([90]*))?(%?)", re.IGNORECASE)
MAX_FORMAT_DIGITS = 18


@dataclass(frozen=True)
class NumberFormat:
    """How many digits there are before the point at most, how many at least, and behind it."""

    fill: bool  # with blanks up to the width
    prefix: str
    suffix: str
    digits: int
    least: int
    commas: bool
    decimals: int
    kept: int  # decimals that are shown even where they are 0
    width: int
    too_large: str  # what is shown for a number that does not fit


def parse_number_format(written: str) -> NumberFormat | None:
    """What a format of numbers says; None where it is none, or one that is not written here."""
    matched = _FORMAT.fullmatch(written.strip())
    if matched is None:
        return None
    modifier, prefix, whole, decimals, suffix = (part or "" for part in matched.groups())
    digits = whole.replace(",", "")
    least = len(digits) - digits.find("0") if "0" in digits else 0
    commas = "," in whole
    if len(digits) + len(decimals) > MAX_FORMAT_DIGITS or (commas and least > 1) or (prefix and not modifier):
        return None
    min_decimals = len(decimals) if not modifier else decimals.rfind("0") + 1
    rest = written.strip()[len(modifier) :]
    marks = " " * (not modifier) + re.sub("[90]", "#", rest)
    return NumberFormat(
        not modifier, prefix, suffix, len(digits), least, commas, len(decimals), min_decimals, len(rest) + 1, marks
    )


def rewrite_number_formats(post: exp.Query) -> None:
    """Replace TO_CHAR of numbers, in place; one that cannot be written is refused before anything is charged."""
    for node in list(post.find_all(exp.TimeToStr)):
        written = node.meta.get(FORMAT_NOTE)
        type_ = infer_type(node.this)
        format_ = parse_number_format(str(written)) if written is not None else None
        if format_ is not None and (type_ is None or type_.is_number):
            node.replace(_print_number(node.this, format_))
        elif type_ is not None and type_.is_number:
            raise Unsupported(
                "TO_CHAR of a number has a format such as '999,999', 'FM990.00' or '000'",
                hint="Write ROUND(x, 2), or format('{:,}', x), of a number x.",
                span=span_of(node),
            )


def _print_number(number: exp.Expr, fmt: NumberFormat) -> exp.Expr:
    rounded = exp.Round(this=exp.cast(number.copy(), "double"), decimals=_number_literal(fmt.decimals))
    size = exp.Abs(this=rounded)
    digits = f"{{:{',' if fmt.commas else ''}.{fmt.decimals}f}}"
    text: exp.Expr = _make_call("format", exp.Literal.string(digits), size)
    text = _pad_digits(text, fmt)
    sign = exp.Case().when(exp.LT(this=rounded.copy(), expression=_number_literal(0)), exp.Literal.string("-"))
    sign = sign.else_(exp.Literal.string(""))
    parts: list[exp.Expr] = [sign, exp.Literal.string(fmt.prefix), text, exp.Literal.string(fmt.suffix)]
    shown = parts[0]
    for part in parts[1:]:
        shown = exp.DPipe(this=shown, expression=part)
    if fmt.fill:
        shown = _make_call("lpad", exp.Paren(this=shown), _number_literal(fmt.width), exp.Literal.string(" "))
    too_large = exp.GTE(this=size.copy(), expression=exp.Literal.number(f"1e{fmt.digits}"))
    return exp.Paren(this=exp.Case().when(too_large, exp.Literal.string(fmt.too_large)).else_(exp.Paren(this=shown)))


def _pad_digits(text: exp.Expr, fmt: NumberFormat) -> exp.Expr:
    """Leading zeros as the format has them, and trailing ones as far as they are kept."""
    if fmt.kept < fmt.decimals:
        zeros = exp.Literal.string(f"0{{1,{fmt.decimals - fmt.kept}}}$")
        text = _make_call("regexp_replace", text, zeros, exp.Literal.string(""))
    if fmt.least == 0 and fmt.decimals:
        text = _make_call("regexp_replace", text, exp.Literal.string(r"^0\."), exp.Literal.string("."))
    if fmt.least > 1:
        start = exp.Literal.string(rf"^\d{{1,{fmt.least - 1}}}(\.|$)")
        point = fmt.least + (fmt.decimals + 1 if fmt.decimals else 0)
        filled = _make_call("lpad", text.copy(), _number_literal(point), exp.Literal.string("0"))
        text = exp.Case().when(_make_call("regexp_matches", text.copy(), start), filled).else_(text)
    return text
