"""Expressions and domains of a plan as text for people."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import assert_never

from dpsql.plan.expr import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Clip,
    Column,
    Compare,
    Expr,
    HoleValue,
    InHole,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    Quantise,
)
from dpsql.schema.domain import EPOCH, Domain, Scalar
from dpsql.types import Kind, Type


def show_expr(expr: Expr) -> str:
    match expr:
        case Column():
            return expr.name
        case Literal():
            return "null" if expr.value is None else show_scalar(expr.value)
        case Compare():
            return f"{_show_operand(expr.left)} {expr.op} {_show_operand(expr.right)}"
        case And():
            return " and ".join(_show_operand(arg) for arg in expr.args)
        case Or():
            return " or ".join(_show_operand(arg) for arg in expr.args)
        case Not():
            return f"not {_show_operand(expr.arg)}"
        case IsNull():
            return f"{_show_operand(expr.arg)} is null"
        case InList():
            return f"{_show_operand(expr.arg)} in ({', '.join(show_expr(value) for value in expr.values)})"
        case Arithmetic():
            wide = ":wide" if expr.type.is_integer and not expr.fits else ""
            return f"{_show_operand(expr.left)} {expr.op}{wide} {_show_operand(expr.right)}"
        case Case():
            branches = (f"when {show_expr(when)} then {show_expr(then)}" for when, then in expr.branches)
            return f"case {' '.join(branches)} else {show_expr(expr.otherwise)} end"
        case Cast():
            return f"cast({show_expr(expr.arg)} as {expr.type})"
        case Call():
            return f"{expr.function}({', '.join(show_expr(arg) for arg in expr.args)})"
        case Clip():
            return f"clip({show_expr(expr.arg)}, {expr.lower}, {expr.upper})"
        case HoleValue():
            return f"${expr.hole}"
        case InHole():
            return f"{show_expr(expr.arg)} in ${expr.hole}"
        case Quantise():
            return f"{_show_operand(expr.arg)} in steps of {expr.grid}, {expr.lower} to {expr.upper}"
        case _:
            assert_never(expr)


def _show_operand(expr: Expr) -> str:
    """An operand, in parentheses where it is an operator itself."""
    text = show_expr(expr)
    return f"({text})" if isinstance(expr, Compare | And | Or | Not | IsNull | InList | Arithmetic | Quantise) else text


def show_domain(domain: Domain) -> str:
    text = str(domain.type)
    if domain.values is not None:
        text += " of " + ", ".join(show_scalar(value) for value in domain.values)
    elif domain.lower is not None or domain.upper is not None:
        text += f" [{_show_bound(domain.lower, domain.type)}, {_show_bound(domain.upper, domain.type)}]"
    return text if domain.nullable else f"{text} not null"


def show_scalar(value: Scalar | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _show_bound(number: Fraction | None, type_: Type) -> str:
    """Dates and times as such, where the calendar has them."""
    if number is None:
        return "…"
    step = dt.timedelta(days=1) if type_.kind is Kind.DATE else dt.timedelta(microseconds=1)
    try:
        bound_time = EPOCH + int(number) * step if type_.is_time else None
    except OverflowError:
        bound_time = None
    return str(number) if bound_time is None else str(bound_time.date() if type_.kind is Kind.DATE else bound_time)
