"""Samples of values that are not known yet: of a type, and of what a function takes at one of its places."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID as Uuid

from sqlglot import exp

from dpsql.sql.parameters import Parameter
from dpsql.types import BIGINT, DOUBLE, INTEGER, INTERVAL, TEXT, Kind, Type


@dataclass(frozen=True)
class Placeholder:
    """`array`: its values are many of that type, written as PostgreSQL writes an array: {1,2}."""

    type: Type
    sample: Parameter
    array: bool = False


_SAMPLES: dict[Kind, Parameter] = {
    Kind.BOOLEAN: True, Kind.SMALLINT: 1, Kind.INTEGER: 1, Kind.BIGINT: 1, Kind.HUGEINT: 1,
    Kind.DECIMAL: Decimal("0.5"), Kind.REAL: 0.5, Kind.DOUBLE: 0.5, Kind.TEXT: "a", Kind.DATE: dt.date(2020, 1, 1),
    Kind.TIMESTAMP: dt.datetime(2020, 1, 1), Kind.TIMESTAMPTZ: dt.datetime(2020, 1, 1), Kind.TIME: dt.time(12),
    Kind.INTERVAL: dt.timedelta(days=1), Kind.UUID: Uuid(int=0),
}  # fmt: skip


def sample_of(type_: Type) -> Parameter:
    return _SAMPLES[type_.kind]


UNIT_SAMPLE = Placeholder(TEXT, "day")
FORMAT_SAMPLE = Placeholder(TEXT, "YYYY")
_HALF = Placeholder(DOUBLE, 0.5)
_ONE = Placeholder(INTEGER, 1)
_INTERVAL = Placeholder(INTERVAL, dt.timedelta(days=1))
_SEPARATOR = Placeholder(TEXT, ",")

NODE_ARGUMENTS: dict[tuple[type[exp.Expr], str], Placeholder] = {
    (exp.Extract, "this"): UNIT_SAMPLE, (exp.StrToTime, "format"): FORMAT_SAMPLE, (exp.StrToDate, "format"): FORMAT_SAMPLE,
    (exp.AtTimeZone, "zone"): Placeholder(TEXT, "UTC"),
    (exp.WidthBucket, "min_value"): Placeholder(DOUBLE, 0.0), (exp.WidthBucket, "max_value"): Placeholder(DOUBLE, 1.0),
    (exp.WidthBucket, "num_buckets"): Placeholder(INTEGER, 4),
    (exp.ApproxTopK, "expression"): Placeholder(INTEGER, 3), (exp.Ntile, "this"): Placeholder(INTEGER, 4),
    (exp.PercentileCont, "this"): _HALF, (exp.PercentileDisc, "this"): _HALF, (exp.Quantile, "quantile"): _HALF,
    (exp.PercentileCont, "expression"): _HALF, (exp.PercentileDisc, "expression"): _HALF,
    (exp.ApproxQuantile, "quantile"): _HALF,
    (exp.Lag, "offset"): _ONE, (exp.Lead, "offset"): _ONE, (exp.NthValue, "offset"): _ONE,
    (exp.Left, "expression"): _ONE, (exp.Right, "expression"): _ONE, (exp.Round, "decimals"): _ONE,
    (exp.Substring, "start"): _ONE, (exp.Substring, "length"): _ONE, (exp.Repeat, "times"): _ONE,
    (exp.SplitPart, "part_index"): _ONE, (exp.SplitPart, "delimiter"): _SEPARATOR, (exp.GroupConcat, "separator"): _SEPARATOR,
    (exp.DateBin, "this"): _INTERVAL,
}  # fmt: skip
"""By a node and the name that it has for the place."""

FUNCTION_ARGUMENTS: dict[tuple[str, int], Placeholder] = {
    ("quantile_cont", 1): _HALF, ("quantile_disc", 1): _HALF, ("quantile", 1): _HALF, ("time_bucket", 0): _INTERVAL,
    ("date_trunc", 0): UNIT_SAMPLE, ("date_part", 0): UNIT_SAMPLE, ("date_diff", 0): UNIT_SAMPLE, ("to_char", 1): FORMAT_SAMPLE,
    ("left", 1): _ONE, ("right", 1): _ONE, ("substr", 1): _ONE, ("substr", 2): _ONE, ("ntile", 0): _ONE,
}  # fmt: skip
"""By the name of a function without a node of its own, and the place from 0."""

_INTEGER = Placeholder(BIGINT, 1)
OPTION_SAMPLES: dict[str, Placeholder] = {
    "epsilon": _HALF, "delta": Placeholder(DOUBLE, 1e-9), "lambda": _HALF, "confidence": Placeholder(DOUBLE, 0.95),
    "max_error": Placeholder(DOUBLE, 1e6), "max_relative_error": _HALF, "proposal": _HALF,
    **dict.fromkeys(("n", "bins", "rows", "rounds", "max_rows_contributed", "max_groups_contributed"), _INTEGER),
    "noise": Placeholder(TEXT, "auto"), "mechanism": Placeholder(TEXT, "exponential"),
    "method": Placeholder(TEXT, "auto"),
}  # fmt: skip
"""By the name of an option in WITH (…) or OPTIONS (…)."""
