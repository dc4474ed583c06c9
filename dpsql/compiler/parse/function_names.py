"""Spellings of functions: sqlglot's classes and bare names, each with the function of dpsql that it means."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, binary_from_function, build_formatted_time
from sqlglot.helper import seq_get
from sqlglot.parsers.postgres import PostgresParser

FORMAT_NOTE = "format"
"""The note in which a node keeps a format as it was written; sqlglot's own field is translated, with losses."""

ArgumentNames = tuple[str, ...]

# sqlglot's classes for functions of our table: (name, the arguments in order)
NODE_FUNCTIONS: dict[type[exp.Expr], tuple[str, ArgumentNames]] = {
    exp.Lower: ("lower", ("this",)),
    exp.Upper: ("upper", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Reverse: ("reverse", ("this",)),
    exp.Ascii: ("ascii", ("this",)),
    exp.Left: ("left", ("this", "expression")),
    exp.Right: ("right", ("this", "expression")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.Translate: ("translate", ("this", "from_", "to")),
    exp.Repeat: ("repeat", ("this", "times")),
    exp.StrPosition: ("strpos", ("this", "substr")),
    exp.StartsWith: ("starts_with", ("this", "expression")),
    exp.EndsWith: ("ends_with", ("this", "expression")),
    exp.Contains: ("contains", ("this", "expression")),
    exp.SplitPart: ("split_part", ("this", "delimiter", "part_index")),
    exp.ConcatWs: ("concat_ws", ("expressions",)),
    exp.Abs: ("abs", ("this",)),
    exp.Floor: ("floor", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Round: ("round", ("this", "decimals")),
    exp.Trunc: ("trunc", ("this", "decimals")),
    exp.Sign: ("sign", ("this",)),
    exp.Sqrt: ("sqrt", ("this",)),
    exp.Cbrt: ("cbrt", ("this",)),
    exp.Exp: ("exp", ("this",)),
    exp.Ln: ("ln", ("this",)),
    exp.Pow: ("power", ("this", "expression")),
    exp.Sin: ("sin", ("this",)),
    exp.Cos: ("cos", ("this",)),
    exp.Tan: ("tan", ("this",)),
    exp.Asin: ("asin", ("this",)),
    exp.Acos: ("acos", ("this",)),
    exp.Atan: ("atan", ("this",)),
    exp.Sinh: ("sinh", ("this",)),
    exp.Tanh: ("tanh", ("this",)),
    exp.Asinh: ("asinh", ("this",)),
    exp.Acosh: ("acosh", ("this",)),
    exp.Atanh: ("atanh", ("this",)),
    exp.Atan2: ("atan2", ("this", "expression")),
    exp.Degrees: ("degrees", ("this",)),
    exp.Radians: ("radians", ("this",)),
    exp.BitwiseAnd: ("bitand", ("this", "expression")),
    exp.BitwiseOr: ("bitor", ("this", "expression")),
    exp.BitwiseXor: ("bitxor", ("this", "expression")),
    exp.WidthBucket: ("width_bucket", ("this", "min_value", "max_value", "num_buckets")),
    exp.Coalesce: ("coalesce", ("this", "expressions")),
    exp.Nullif: ("nullif", ("this", "expression")),
    exp.Greatest: ("greatest", ("this", "expressions")),
    exp.Least: ("least", ("this", "expressions")),
    exp.Dayname: ("dayname", ("this",)),
    exp.Monthname: ("monthname", ("this",)),
    exp.LastDay: ("last_day", ("this",)),
    exp.UnixToTime: ("to_timestamp", ("this",)),
    exp.RegexpSubstr: ("regexp_substr", ("this", "expression")),
    exp.RegexpExtract: ("regexp_substr", ("this", "expression", "group")),
}

# Functions that sqlglot has no class for.
BARE_FUNCTIONS = {
    "octet_length": "octet_length",
    "strlen": "octet_length",
    "lengthb": "octet_length",
    "mid": "substring",
    "prefix": "starts_with",
    "suffix": "ends_with",
    "make_date": "make_date",
    "regexp_matches": "regexp_like",
    "strptime": "strptime",
    "try_strptime": "strptime",
}

# Functions that are written with others: `bind/composed_calls.py` says how.
COMPOSED_NODES: dict[type[exp.Expr], str] = {
    exp.BitLength: "bit_length",
    exp.Unicode: "unicode",
    exp.Cosh: "cosh",
    exp.Cot: "cot",
    exp.IsInf: "isinf",
    exp.IsNan: "isnan",
}

# Functions that are a part of a date.
DATE_PART_NODES: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Week: "week",
    exp.WeekOfYear: "week",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfWeek: "dow",
    exp.DayOfWeekIso: "isodow",
    exp.DayOfYear: "doy",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
BARE_DATE_PARTS = frozenset(
    {"epoch", "dow", "weekday", "isodow", "doy", "isoyear", "decade", "century", "millennium", "millisecond",
     "microsecond"}
)  # fmt: skip


# --- what the parser must read differently ---------------------------------------------------------------------------


def unwrap_cast_literal(node: exp.Expr, *types: exp.DType) -> exp.Expr:
    """The literal that stands in casts to such types, as drivers write parameters: `$1::VARCHAR`. A length, or digits
    after the point, would change it, so those casts stay."""
    inner: exp.Expr | None = node
    while isinstance(inner, exp.Cast) and not isinstance(inner, exp.TryCast) and inner.to.is_type(*types):
        if inner.to.expressions and not inner.to.is_type(exp.DType.FLOAT, exp.DType.DOUBLE):
            return node
        inner = inner.this
    return inner if isinstance(inner, exp.Literal) else node


def _format_builder(kind: type[exp.Expr]) -> Callable[[list[exp.Expr], Dialect], exp.Expr]:
    def build(args: list[exp.Expr], dialect: Dialect) -> exp.Expr:
        written = seq_get(args, 1)
        if written is not None:
            written = unwrap_cast_literal(written, exp.DType.VARCHAR, exp.DType.TEXT)
            args = [args[0], written, *args[2:]]
        node = build_formatted_time(kind)(args, dialect)
        if isinstance(written, exp.Literal) and written.is_string:
            node.meta[FORMAT_NOTE] = written.name
        return node

    return build


def _build_to_timestamp(args: list[exp.Expr], dialect: Dialect) -> exp.Expr:
    return exp.UnixToTime(this=seq_get(args, 0)) if len(args) == 1 else _format_builder(exp.StrToTime)(args, dialect)


def _build_date_diff(args: list[exp.Expr]) -> exp.Expr:
    """DATE_DIFF('day', from, to), as DuckDB, Redshift and SQL Server have it; DATEDIFF(to, from) in days, as MySQL."""
    if len(args) == 3:
        unit = args[0]
        named = isinstance(unit, exp.Column | exp.Literal)
        return exp.DateDiff(this=args[2], expression=args[1], unit=exp.var(unit.name.upper()) if named else unit)
    return exp.DateDiff.from_arg_list(args)


def _build_date_sub(args: list[exp.Expr]) -> exp.Expr:
    """DATE_SUB('month', from, to) counts whole months; DATE_SUB(date, interval) subtracts."""
    return exp.Anonymous(this="date_sub", expressions=args) if len(args) == 3 else exp.DateSub.from_arg_list(args)


def _build_date_bin(args: list[exp.Expr]) -> exp.Expr:
    """Its origin is a moment, also where that is a text: sqlglot would take it for the name of a unit."""
    origin = seq_get(args, 2)
    text = isinstance(origin, exp.Literal) and origin.is_string
    node = exp.DateBin(this=seq_get(args, 0), expression=seq_get(args, 1))
    timestamp = exp.Cast(this=origin, to=exp.DataType.build("timestamp")) if text else origin
    node.set("unit", timestamp)
    return node


def _build_regexp_extract(args: list[exp.Expr]) -> exp.Expr:
    return exp.RegexpExtract(this=seq_get(args, 0), expression=seq_get(args, 1), group=seq_get(args, 2))


def _build_generate_series(args: list[exp.Expr]) -> exp.Expr:
    """Its step is an interval, also where that is a text."""
    step = seq_get(args, 2)
    if isinstance(step, exp.Literal) and step.is_string:
        args = [*args[:2], exp.Cast(this=step, to=exp.DataType.build("interval")), *args[3:]]
    return exp.ExplodingGenerateSeries.from_arg_list(args)


PARSED_FUNCTIONS: dict[str, Callable[..., exp.Expr]] = {
    "TO_CHAR": _format_builder(exp.TimeToStr),
    "TO_DATE": _format_builder(exp.StrToDate),
    "TO_TIMESTAMP": _build_to_timestamp,
    "DATE_BIN": _build_date_bin,
    "GENERATE_SERIES": _build_generate_series,
    "DATETRUNC": PostgresParser.FUNCTIONS["DATE_TRUNC"],
    "DATE_DIFF": _build_date_diff,
    "DATEDIFF": _build_date_diff,
    "DATE_SUB": _build_date_sub,
    "DIV": binary_from_function(exp.IntDiv),
    "REGEXP_EXTRACT": _build_regexp_extract,
}
