"""Functions of any type: which of several values, and whether it is there."""

from __future__ import annotations

from dataclasses import replace

from dpsql.functions.record import Domains, Fit, Function, Types, Value
from dpsql.functions.rules import hull
from dpsql.plan.expr import Call
from dpsql.schema.domain import Domain
from dpsql.types import BIGINT, DOUBLE, TIMESTAMP, TIMESTAMPTZ, Type


def common_type(types: Types) -> Type | None:
    """The one type that all of these are read as; None where there is none."""
    kinds = set(types)
    if len(kinds) == 1:
        return types[0]
    if all(t.is_integer for t in types):
        return BIGINT
    if all(t.is_number for t in types):
        return DOUBLE
    if all(t.is_time for t in types):
        return TIMESTAMPTZ if TIMESTAMPTZ in types else TIMESTAMP
    return None


def _common(types: Types) -> Fit | None:
    common = common_type(types)
    return None if common is None else Fit((common,) * len(types), common)


def _coalesce(call: Call, args: Domains) -> Domain:
    return replace(hull(args, call.type), nullable=all(arg.nullable for arg in args))


def _nullif(call: Call, args: Domains) -> Domain:
    return replace(args[0], nullable=True)


def _greatest(call: Call, args: Domains) -> Domain:
    """GREATEST skips NULL, so the result may be any argument; those that are never NULL bound it."""
    union = replace(hull(args, call.type), values=None, nullable=all(arg.nullable for arg in args))
    lowers = [arg.lower for arg in args if not arg.nullable and arg.lower is not None]
    return union.with_bounds(max(lowers) if lowers else union.lower, union.upper)


def _least(call: Call, args: Domains) -> Domain:
    union = replace(hull(args, call.type), values=None, nullable=all(arg.nullable for arg in args))
    uppers = [arg.upper for arg in args if not arg.nullable and arg.upper is not None]
    return union.with_bounds(union.lower, min(uppers) if uppers else union.upper)


def _first_known(call: Call, values: list[Value]) -> Value:
    return next((value for value in values if value is not None), None)


def _unless_equal(call: Call, values: list[Value]) -> Value:
    return None if values[0] == values[1] else values[0]


def _hash_domain(call: Call, args: Domains) -> Domain:
    return Domain(BIGINT, False)


def _hash_form(call: Call, args: list[str]) -> str:
    """DuckDB's hash has 64 bits and no sign; half of it fits a whole number that has one."""
    return f"CAST(hash({', '.join(args)}) >> 1 AS BIGINT)"


def _named(call: Call, args: list[str]) -> str:
    return f"{call.function}({', '.join(args)})"


LOGIC = (
    Function("coalesce", "coalesce(ward, 'none')", _common, _coalesce, _named, 1, 20, meets=True,
             evaluate=_first_known),
    Function("nullif", "nullif(ward, '')", _common, _nullif, _named, 2, 2, meets=True, evaluate=_unless_equal),
    Function("greatest", "greatest(cost, 0)", _common, _greatest, _named, 1, 20, meets=True),
    Function("least", "least(cost, 100)", _common, _least, _named, 1, 20, meets=True),
    Function("row_hash", "", lambda types: Fit(types, BIGINT), _hash_domain, _hash_form, 1, 10_000, written=False),
)  # fmt: skip
