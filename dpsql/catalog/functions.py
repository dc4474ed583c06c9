"""pg_proc: the functions that dpsql has beside PostgreSQL's own, so that `\\df` lists them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpsql.catalog.objects import OWNER, PUBLIC
from dpsql.catalog.relations import Known, number_of

FIRST = 14000
_INTERNAL = 12  # the language


@dataclass(frozen=True)
class OwnFunction:
    """`kind` is pg_proc's: "a" for an aggregate, "f" for a function."""

    name: str
    arguments: tuple[str, ...]
    result: str
    kind: str = "f"


_ANY, _TIME = "anyelement", "timestamp without time zone"
_DOUBLE = "double precision"
_POSTERIORS = tuple(
    OwnFunction(f"{name}_posterior{part}", (_ANY,), _DOUBLE if name != "dirichlet" else "anyarray", "a")
    for name, parts in (("beta", ("", "_mean", "_low", "_high")), ("normal", ("", "_mean", "_low", "_high")),
                        ("dirichlet", ("", "_mean")))
    for part in parts
)  # fmt: skip
OWN = (
    OwnFunction("accuracy", (_ANY,), _DOUBLE, "a"),
    OwnFunction("blockwise", (_ANY, _DOUBLE, _DOUBLE), _DOUBLE, "a"),
    OwnFunction("predict", (_ANY,), _DOUBLE),
    *_POSTERIORS,
    OwnFunction("approx_count_distinct", (_ANY,), "bigint", "a"),
    OwnFunction("approx_quantile", (_ANY, "double precision"), _ANY, "a"),
    OwnFunction("approx_top_k", (_ANY, "integer"), "anyarray", "a"),
    OwnFunction("clip", (_ANY, _ANY, _ANY), _ANY),
    OwnFunction("contains", ("text", "text"), "boolean"),
    OwnFunction("count_if", ("boolean",), "bigint", "a"),
    OwnFunction("date_diff", ("text", _TIME, _TIME), "bigint"),
    OwnFunction("date_sub", ("text", _TIME, _TIME), "bigint"),
    OwnFunction("day", (_TIME,), "bigint"),
    OwnFunction("dayname", (_TIME,), "text"),
    OwnFunction("dp_high", (_ANY,), "double precision"),
    OwnFunction("dp_low", (_ANY,), "double precision"),
    OwnFunction("dp_stderr", (_ANY,), "double precision"),
    OwnFunction("ends_with", ("text", "text"), "boolean"),
    OwnFunction("histogram", (_ANY,), "anyarray", "a"),
    OwnFunction("hour", (_TIME,), "bigint"),
    OwnFunction("last_day", (_TIME,), "date"),
    OwnFunction("log2", ("double precision",), "double precision"),
    OwnFunction("median", (_ANY,), "double precision", "a"),
    OwnFunction("month", (_TIME,), "bigint"),
    OwnFunction("monthname", (_TIME,), "text"),
    OwnFunction("posterior_sample", (_ANY,), "double precision", "a"),
    OwnFunction("private_argmax", (_ANY, _ANY), _ANY, "a"),
    OwnFunction("private_top_k", (_ANY, _ANY, "integer"), "anyarray", "a"),
    OwnFunction("quantile_cont", (_ANY, "double precision"), "double precision", "a"),
    OwnFunction("quantile_disc", (_ANY, "double precision"), _ANY, "a"),
    OwnFunction("quarter", (_TIME,), "bigint"),
    OwnFunction("randomized", (_ANY, "double precision"), _ANY, "a"),
    OwnFunction("strftime", (_TIME, "text"), "text"),
    OwnFunction("strptime", ("text", "text"), _TIME),
    OwnFunction("time_bucket", ("interval", _TIME), _TIME),
    OwnFunction("year", (_TIME,), "bigint"),
)


def pg_proc() -> Iterator[Known]:
    for oid, one in enumerate(OWN, FIRST):
        yield {
            "oid": oid, "proname": one.name, "pronamespace": PUBLIC, "proowner": OWNER, "prolang": _INTERNAL,
            "procost": 1.0, "prokind": one.kind, "provolatile": "i", "proparallel": "s",
            "pronargs": len(one.arguments), "prorettype": _number(one.result), "prosrc": one.name,
            "proargtypes": [_number(argument) for argument in one.arguments],
        }  # fmt: skip


def texts() -> Iterator[tuple[int, str, str, str, str]]:
    """Number, arguments, arguments that tell it from others, result, and how regprocedure prints it."""
    for oid, one in enumerate(OWN, FIRST):
        arguments = ", ".join(one.arguments)
        yield oid, arguments, arguments, one.result, f"{one.name}({','.join(one.arguments)})"


def _number(spelled: str) -> int:
    return number_of("timestamp" if spelled == _TIME else spelled)
