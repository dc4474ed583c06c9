"""The scalar functions that may touch private rows, with a form per engine that cannot raise.

A function that is not listed is refused (law 3). `literals` are the positions of arguments that must be
literals: patterns, lengths and date parts, which would raise or run away on some values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpsql.types import BIGINT, BOOLEAN, DOUBLE, TEXT, TIMESTAMP, Kind, Type

Types = tuple[Type, ...]
TypeRule = Callable[[Types], Type | None]  # None: these arguments do not fit
Form = Callable[[list[str]], str]


@dataclass(frozen=True)
class Function:
    name: str
    result: TypeRule
    duckdb: Form
    least: int = 1
    most: int = 1
    literals: frozenset[int] = frozenset()
    example: str = ""


def _text(types: Types) -> Type | None:
    return TEXT if all(t == TEXT for t in types) else None


def _rounded(types: Types) -> Type | None:
    """Whole numbers stay; everything else is a double."""
    if not types[0].is_number:
        return None
    return BIGINT if types[0].is_integer else DOUBLE


def _time_part(types: Types) -> Type | None:
    return BIGINT if len(types) == 2 and types[1].is_time else None


def _truncated(types: Types) -> Type | None:
    if len(types) != 2 or not types[1].is_time:
        return None
    return types[1] if types[1].kind is Kind.TIMESTAMPTZ else TIMESTAMP


def common_type(types: Types) -> Type | None:
    """The one type that all of these are read as; None where there is none."""
    kinds = set(types)
    if len(kinds) == 1:
        return types[0]
    if all(t.is_integer for t in types):
        return BIGINT
    if all(t.is_number for t in types):
        return DOUBLE
    if all(t.kind in (Kind.DATE, Kind.TIMESTAMP) for t in types):
        return TIMESTAMP
    return None


def _call(name: str) -> Form:
    return lambda args: f"{name}({', '.join(args)})"


def _finite_form(args: list[str]) -> str:
    return f"CASE WHEN isfinite({args[0]}) THEN {args[0]} + CAST('0.0' AS DOUBLE) END"


def _extract_form(args: list[str]) -> str:
    return f"CAST(date_part({args[0]}, {args[1]}) AS BIGINT)"


def _concat_form(args: list[str]) -> str:
    # `||` gives NULL where an argument is NULL, as SQL says; concat() skips it.
    return "(" + " || ".join(args) + ")"


def _like(operator: str) -> Form:
    return lambda args: f"({args[0]} {operator} {args[1]})"


FUNCTIONS: dict[str, Function] = {
    f.name: f
    for f in (
        Function("lower", _text, _call("lower"), example="lower(ward)"),
        Function("upper", _text, _call("upper"), example="upper(ward)"),
        Function("trim", _text, _call("trim"), example="trim(ward)"),
        Function("length", lambda t: BIGINT if t[0] == TEXT else None, _call("length"), example="length(ward)"),
        Function(
            "substring",
            lambda t: TEXT if t[0] == TEXT and all(x.is_integer for x in t[1:]) else None,
            _call("substring"), 2, 3, frozenset({1, 2}), "substring(ward, 1, 3)",
        ),
        Function("concat", _text, _concat_form, 2, 20, example="ward || '!'"),
        Function(
            "like", lambda t: BOOLEAN if _text(t) else None, _like("LIKE"), 2, 2, frozenset({1}), "ward LIKE 'a%'"
        ),
        Function(
            "ilike", lambda t: BOOLEAN if _text(t) else None, _like("ILIKE"), 2, 2, frozenset({1}), "ward ILIKE 'a%'"
        ),
        Function("abs", _rounded, _call("abs"), example="abs(cost)"),
        Function("floor", _rounded, _call("floor"), example="floor(cost)"),
        Function("ceil", _rounded, _call("ceil"), example="ceil(cost)"),
        Function("round", _rounded, _call("round"), 1, 2, frozenset({1}), "round(cost, 1)"),
        Function("coalesce", common_type, _call("coalesce"), 1, 20, example="coalesce(ward, 'none')"),
        Function("nullif", lambda t: t[0] if common_type(t) else None, _call("nullif"), 2, 2,
                 example="nullif(ward, '')"),
        Function("greatest", common_type, _call("greatest"), 1, 20, example="greatest(cost, 0)"),
        Function("least", common_type, _call("least"), 1, 20, example="least(cost, 100)"),
        Function("extract", _time_part, _extract_form, 2, 2, frozenset({0}), "extract(year FROM at)"),
        Function("finite", _rounded, _finite_form),
        Function("date_trunc", _truncated, _call("date_trunc"), 2, 2, frozenset({0}), "date_trunc('month', at)"),
    )
}  # fmt: skip
