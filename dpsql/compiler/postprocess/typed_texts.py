"""Texts after the noise that are dates, times, intervals or bytes: read as PostgreSQL reads them, before anything runs.

    made > '29 Feb 2024'      is written  made > CAST('2024-02-29' AS timestamp)
    made + '1 mon 2:00'       is written  made + CAST('1 months 0 days 7200000000 microseconds' AS interval)
    note::date                tries DuckDB's cast, then PostgreSQL's other forms

A literal beside an expression whose type is known has that type, as in PostgreSQL; one that cannot be read is refused,
so that nobody pays for it.
"""

from __future__ import annotations

import datetime as dt
import re

from sqlglot import exp

from dpsql.base.datetime_text import CURRENT_TIME_WORDS, DatetimeText, read_datetime
from dpsql.compiler.bind.outputs import infer_type
from dpsql.compiler.functions.time_zones import local_time
from dpsql.compiler.parse.dialect import span_of
from dpsql.errors import DataError, Unsupported
from dpsql.types import DATE, INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ, Type

_TYPE_NAMES = {DATE: "date", TIMESTAMP: "timestamp", TIMESTAMPTZ: "timestamptz", INTERVAL: "interval"}
_SPELLED = {DATE: "date", TIMESTAMP: "timestamp", TIMESTAMPTZ: "timestamp with time zone"}
_KINDS = {exp.DType.DATE: DATE, exp.DType.TIMESTAMP: TIMESTAMP, exp.DType.TIMESTAMPTZ: TIMESTAMPTZ}
_ISO_TIME = re.compile(r"\s*\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?\s*", re.ASCII)
_DATE_LIKE = re.compile(r"\s*\d+\s*-\s*\d+\s*-\s*\d+|\s*[+-]?(infinity|inf)\s*$", re.ASCII | re.IGNORECASE)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)


def type_literal_texts(post: exp.Query) -> None:
    """Give literals beside dates, times and intervals their type, in place."""
    for node in list(post.walk()):
        match node:
            case exp.Cast() if not isinstance(node, exp.TryCast) and node.to.this in _KINDS:
                respell_time_literal(node, local_time())
                check_time_literal(node)
            case exp.Add() | exp.Sub():
                _type_moved(node)
            case exp.Between():
                _type_alike([node.this, node.args["low"], node.args["high"]])
            case exp.In():
                _type_alike([node.this, *node.expressions])
            case exp.Coalesce() | exp.Greatest() | exp.Least():
                _type_alike([node.this, *node.expressions])
            case exp.Nullif():
                _type_alike([node.this, node.expression])
            case _ if isinstance(node, _COMPARISONS):
                _type_alike([node.this, node.expression])


def _type_alike(nodes: list[exp.Expr]) -> None:
    """Texts take the type that the others have, if that is one of these types."""
    texts = [node for node in nodes if _is_text(node)]
    types = {infer_type(node) for node in nodes if not _is_text(node)} if texts else set()
    type_ = types.pop() if len(types) == 1 else None
    if type_ in _TYPE_NAMES:
        for text in texts:
            _replace_text(text, type_)


def _type_moved(node: exp.Expr) -> None:
    """What is added to a time is an interval; what is taken from one is another time."""
    for value, text in ((node.this, node.expression), (node.expression, node.this)):
        type_ = infer_type(value)
        if not _is_text(text) or type_ not in _TYPE_NAMES:
            continue
        if isinstance(node, exp.Add) and type_ == DATE:
            raise Unsupported("operator is not unique: date + unknown", hint="Write the type: day + INTERVAL '1 day'.",
                              span=span_of(node), sqlstate="42725")  # fmt: skip
        _replace_text(text, INTERVAL if isinstance(node, exp.Add) else type_)
        return


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _replace_text(text: exp.Expr, type_: Type) -> None:
    typed = exp.cast(text.copy(), _TYPE_NAMES[type_])
    respell_time_literal(typed, local_time())
    check_time_literal(typed)
    text.replace(typed)


def respell_time_literal(cast: exp.Cast, now: dt.datetime | None) -> None:
    """A date or time in a form that PostgreSQL reads, and DuckDB does not: in ISO's. `now` is what the session's clocks
    show, for words such as today."""
    inner, type_ = cast.this, _KINDS.get(cast.to.this)
    if type_ is None or not _is_text(inner) or _ISO_TIME.fullmatch(inner.name):
        return
    written = read_datetime(inner.name, now)
    if written is not None:
        inner.set("this", _format_time(written, type_))


def _format_time(written: DatetimeText, type_: Type) -> str:
    if type_ == DATE:
        return written.local.date().isoformat()
    zoned = written.ahead is not None and type_ == TIMESTAMPTZ
    return written.local.isoformat(" ") + (_format_offset(written.ahead or dt.timedelta()) if zoned else "")


def _format_offset(ahead: dt.timedelta) -> str:
    minutes = ahead // dt.timedelta(minutes=1)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def check_time_literal(cast: exp.Cast) -> None:
    """Refuse what is no date for anybody; of what begins like one, DuckDB says whether its fields are in range."""
    inner, type_ = cast.this, _KINDS.get(cast.to.this)
    if type_ is None or not _is_text(inner) or _DATE_LIKE.match(inner.name):
        return
    if inner.name.strip().lower() in CURRENT_TIME_WORDS or read_datetime(inner.name) is not None:
        return
    message = f'invalid input syntax for type {_SPELLED[type_]}: "{inner.name}"'
    raise DataError(message, span=span_of(inner) or span_of(cast), sqlstate="22007")


# --- columns of texts ------------------------------------------------------------------------------------------------

_DATE_FORMATS = ("%Y%m%d", "%Y/%m/%d", "%m/%d/%Y", "%d %b %Y", "%d-%b-%Y", "%b %d, %Y", "%b %d %Y", "%Y-%b-%d",
                 "%d %B %Y", "%B %d, %Y", "%B %d %Y")  # fmt: skip
_TIME_FORMATS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f")
_BEFORE_OFFSET, _OFFSET = r"(:\d\d(?:\.\d+)?|\s)", r"\s*(?:[zZ]|[+-]\d\d?(?::?\d\d)?)$"


def cast_text_column(cast: exp.Expr) -> exp.Expr | None:
    """The cast of a column of texts: DuckDB's, where that reads the text, then PostgreSQL's other forms."""
    type_ = _KINDS.get(cast.args["to"].this)
    if type_ is None or isinstance(cast, exp.TryCast) or _is_text(cast.this) or infer_type(cast.this) != TEXT:
        return None
    kind = cast.args["to"].copy()
    text: exp.Expr = exp.Trim(this=cast.this.copy())
    if type_ != TIMESTAMPTZ:  # without a zone, an offset is read and means nothing
        text = _call("regexp_replace", text, exp.Literal.string(_BEFORE_OFFSET + _OFFSET), exp.Literal.string(r"\1"))
        text = exp.Trim(this=text)
    suffixes = ["", "%z", " %z"] if type_ == TIMESTAMPTZ else [""]
    tries = [_try_formats(text, zone) for zone in suffixes]
    forms = [exp.TryCast(this=form, to=kind.copy()) for form in (text.copy(), *tries)]
    return exp.Coalesce(this=forms[0], expressions=[*forms[1:], cast.copy()])


def _try_formats(text: exp.Expr, zone: str) -> exp.Expr:
    formats = [exp.Literal.string(day + time + zone) for day in _DATE_FORMATS for time in _TIME_FORMATS]
    return _call("try_strptime", text.copy(), exp.Array(expressions=formats))


def round_time(cast: exp.Expr) -> exp.Expr:
    """A cast to TIME(3) or TIMESTAMPTZ(0): DuckDB rounds timestamps without a zone alone."""
    to, utc = cast.args["to"], exp.Literal.string("UTC")
    rounded = exp.DataType(this=exp.DType.TIMESTAMP, expressions=[item.copy() for item in to.expressions])
    value = exp.cast(cast.this.copy(), exp.DataType(this=to.this))
    if to.this is exp.DType.TIME:
        day = exp.cast(exp.Literal.string("1970-01-01"), "date")
        return exp.cast(exp.Cast(this=exp.Add(this=day, expression=value), to=rounded), "time")
    local = exp.Cast(this=exp.AtTimeZone(this=value, zone=utc), to=rounded)
    return exp.Paren(this=exp.AtTimeZone(this=exp.cast(local, "timestamp"), zone=utc.copy()))


_HEX_BYTES = r"\\x\s*(?:[0-9a-fA-F]{2}\s*)*"


def cast_text_to_bytes(value: exp.Expr) -> exp.Expr:
    r"""`\xDEAD`, or a text without a backslash; the escapes `\ooo` are read of literals alone."""

    is_hex = _call("regexp_full_match", value.copy(), exp.Literal.string(_HEX_BYTES))
    digits = _call("regexp_replace", value.copy(), *map(exp.Literal.string, (r"^\\x|\s", "", "g")))
    is_plain = exp.Not(this=_call("contains", value.copy(), exp.Literal.string("\\")))
    wrong = _call("error", exp.Literal.string("invalid input syntax for type bytea"))
    cases = exp.Case().when(exp.Is(this=value.copy(), expression=exp.Null()), exp.Null())
    cases = cases.when(is_hex, _call("unhex", digits)).when(is_plain, _call("encode", value.copy()))
    return exp.Paren(this=cases.else_(wrong))


def _call(name: str, *args: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(args))
