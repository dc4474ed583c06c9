"""pg_proc: the functions that dpsql has beside PostgreSQL's own, so that `\\df` lists them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpsql.catalog.objects import OWNER_OID, PUBLIC_OID
from dpsql.catalog.relations import RowValues, type_oid_of

FIRST_FUNCTION_OID = 14000
_INTERNAL_LANGUAGE = 12  # the language


@dataclass(frozen=True)
class OwnFunction:
    """`kind` is pg_proc's: "a" for an aggregate, "f" for a function."""

    name: str
    arguments: tuple[str, ...]
    result: str
    kind: str = "f"


_ANY_TYPE, _TIMESTAMP_TYPE = "anyelement", "timestamp without time zone"
_DOUBLE_TYPE = "double precision"
_POSTERIORS = tuple(
    OwnFunction(f"{name}_posterior{part}", (_ANY_TYPE,), _DOUBLE_TYPE if name != "dirichlet" else "anyarray", "a")
    for name, parts in (("beta", ("", "_mean", "_low", "_high")), ("normal", ("", "_mean", "_low", "_high")),
                        ("dirichlet", ("", "_mean")))
    for part in parts
)  # fmt: skip
OWN_FUNCTIONS = (
    OwnFunction("accuracy", (_ANY_TYPE,), _DOUBLE_TYPE, "a"),
    OwnFunction("blockwise", (_ANY_TYPE, _DOUBLE_TYPE, _DOUBLE_TYPE), _DOUBLE_TYPE, "a"),
    OwnFunction("predict", (_ANY_TYPE,), _DOUBLE_TYPE),
    *_POSTERIORS,
    OwnFunction("approx_count_distinct", (_ANY_TYPE,), "bigint", "a"),
    OwnFunction("approx_quantile", (_ANY_TYPE, "double precision"), _ANY_TYPE, "a"),
    OwnFunction("approx_top_k", (_ANY_TYPE, "integer"), "anyarray", "a"),
    OwnFunction("clip", (_ANY_TYPE, _ANY_TYPE, _ANY_TYPE), _ANY_TYPE),
    OwnFunction("contains", ("text", "text"), "boolean"),
    OwnFunction("count_if", ("boolean",), "bigint", "a"),
    OwnFunction("date_diff", ("text", _TIMESTAMP_TYPE, _TIMESTAMP_TYPE), "bigint"),
    OwnFunction("date_sub", ("text", _TIMESTAMP_TYPE, _TIMESTAMP_TYPE), "bigint"),
    OwnFunction("day", (_TIMESTAMP_TYPE,), "bigint"),
    OwnFunction("dayname", (_TIMESTAMP_TYPE,), "text"),
    OwnFunction("dp_high", (_ANY_TYPE,), "double precision"),
    OwnFunction("dp_low", (_ANY_TYPE,), "double precision"),
    OwnFunction("dp_stderr", (_ANY_TYPE,), "double precision"),
    OwnFunction("ends_with", ("text", "text"), "boolean"),
    OwnFunction("histogram", (_ANY_TYPE,), "anyarray", "a"),
    OwnFunction("hour", (_TIMESTAMP_TYPE,), "bigint"),
    OwnFunction("last_day", (_TIMESTAMP_TYPE,), "date"),
    OwnFunction("log2", ("double precision",), "double precision"),
    OwnFunction("median", (_ANY_TYPE,), "double precision", "a"),
    OwnFunction("month", (_TIMESTAMP_TYPE,), "bigint"),
    OwnFunction("monthname", (_TIMESTAMP_TYPE,), "text"),
    OwnFunction("posterior_sample", (_ANY_TYPE,), "double precision", "a"),
    OwnFunction("private_argmax", (_ANY_TYPE, _ANY_TYPE), _ANY_TYPE, "a"),
    OwnFunction("private_top_k", (_ANY_TYPE, _ANY_TYPE, "integer"), "anyarray", "a"),
    OwnFunction("quantile_cont", (_ANY_TYPE, "double precision"), "double precision", "a"),
    OwnFunction("quantile_disc", (_ANY_TYPE, "double precision"), _ANY_TYPE, "a"),
    OwnFunction("quarter", (_TIMESTAMP_TYPE,), "bigint"),
    OwnFunction("randomized", (_ANY_TYPE, "double precision"), _ANY_TYPE, "a"),
    OwnFunction("strftime", (_TIMESTAMP_TYPE, "text"), "text"),
    OwnFunction("strptime", ("text", "text"), _TIMESTAMP_TYPE),
    OwnFunction("time_bucket", ("interval", _TIMESTAMP_TYPE), _TIMESTAMP_TYPE),
    OwnFunction("year", (_TIMESTAMP_TYPE,), "bigint"),
)


def pg_proc_rows() -> Iterator[RowValues]:
    for oid, function in enumerate(OWN_FUNCTIONS, FIRST_FUNCTION_OID):
        yield {
            "oid": oid, "proname": function.name, "pronamespace": PUBLIC_OID, "proowner": OWNER_OID, "prolang": _INTERNAL_LANGUAGE,
            "procost": 1.0, "prokind": function.kind, "provolatile": "i", "proparallel": "s",
            "pronargs": len(function.arguments), "prorettype": _type_oid(function.result), "prosrc": function.name,
            "proargtypes": [_type_oid(argument) for argument in function.arguments],
        }  # fmt: skip


def function_signatures() -> Iterator[tuple[int, str, str, str, str]]:
    """Number, arguments, arguments that tell it from others, result, and how regprocedure prints it."""
    for oid, function in enumerate(OWN_FUNCTIONS, FIRST_FUNCTION_OID):
        arguments = ", ".join(function.arguments)
        yield oid, arguments, arguments, function.result, f"{function.name}({','.join(function.arguments)})"


def _type_oid(type_name: str) -> int:
    return type_oid_of("timestamp" if type_name == _TIMESTAMP_TYPE else type_name)
