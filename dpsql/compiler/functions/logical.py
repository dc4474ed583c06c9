"""Functions of any type: which of several values, and whether it is there."""

from __future__ import annotations

from dataclasses import replace

from dpsql.compiler.functions.function import Domains, ScalarFunction, Signature, Types, Value, hull_of_domains
from dpsql.compiler.plan.expressions import Call
from dpsql.schema.model import Domain
from dpsql.types import BIGINT, DOUBLE, HUGEINT, TIMESTAMP, TIMESTAMPTZ, Type


def find_common_type(types: Types) -> Type | None:
    """The one type that all of these are read as; None where there is none."""
    kinds = set(types)
    if len(kinds) == 1:
        return types[0]
    if all(t.is_integer for t in types):
        return HUGEINT if HUGEINT in types else BIGINT
    if all(t.is_number for t in types):
        return DOUBLE
    if all(t.is_time for t in types):
        return TIMESTAMPTZ if TIMESTAMPTZ in types else TIMESTAMP
    return None


def _common_signature(types: Types) -> Signature | None:
    common = find_common_type(types)
    return None if common is None else Signature((common,) * len(types), common)


def _coalesce_domain(call: Call, args: Domains) -> Domain:
    return replace(hull_of_domains(args, call.type), nullable=all(arg.nullable for arg in args))


def _nullif_domain(call: Call, args: Domains) -> Domain:
    return replace(args[0], nullable=True)


def _greatest_domain(call: Call, args: Domains) -> Domain:
    """GREATEST skips NULL, so the result may be any argument; those that are never NULL bound it."""
    union = replace(hull_of_domains(args, call.type), values=None, nullable=all(arg.nullable for arg in args))
    lowers = [arg.lower for arg in args if not arg.nullable and arg.lower is not None]
    return union.with_bounds(max(lowers) if lowers else union.lower, union.upper)


def _least_domain(call: Call, args: Domains) -> Domain:
    union = replace(hull_of_domains(args, call.type), values=None, nullable=all(arg.nullable for arg in args))
    uppers = [arg.upper for arg in args if not arg.nullable and arg.upper is not None]
    return union.with_bounds(union.lower, min(uppers) if uppers else union.upper)


def _evaluate_coalesce(call: Call, values: list[Value]) -> Value:
    return next((value for value in values if value is not None), None)


def _evaluate_nullif(call: Call, values: list[Value]) -> Value:
    return None if values[0] == values[1] else values[0]


def _hash_domain(call: Call, args: Domains) -> Domain:
    return Domain(BIGINT, False)


def _render_hash(call: Call, args: list[str]) -> str:
    """DuckDB's hash has 64 bits and no sign; half of it fits a whole number that has one."""
    return f"CAST(hash({', '.join(args)}) >> 1 AS BIGINT)"


def _render_call(call: Call, args: list[str]) -> str:
    return f"{call.function}({', '.join(args)})"


LOGICAL_FUNCTIONS = (
    ScalarFunction(
        "coalesce",
        "coalesce(ward, 'none')",
        _common_signature,
        _coalesce_domain,
        _render_call,
        1,
        20,
        meets=True,
        evaluate=_evaluate_coalesce,
    ),
    ScalarFunction(
        "nullif",
        "nullif(ward, '')",
        _common_signature,
        _nullif_domain,
        _render_call,
        2,
        2,
        meets=True,
        evaluate=_evaluate_nullif,
    ),
    ScalarFunction(
        "greatest", "greatest(cost, 0)", _common_signature, _greatest_domain, _render_call, 1, 20, meets=True
    ),
    ScalarFunction("least", "least(cost, 100)", _common_signature, _least_domain, _render_call, 1, 20, meets=True),
    ScalarFunction(
        "row_hash", "", lambda types: Signature(types, BIGINT), _hash_domain, _render_hash, 1, 10_000, written=False
    ),
)
