"""Intervals over private rows: differences of moments, literals that they are compared with, and their parts."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dpsql.errors import TypeMismatch, Unsupported
from dpsql.functions.calendar import DAY_MICROSECONDS
from dpsql.functions.differences import MONTH_MICROSECONDS, DIFFERENCE_PARTS
from dpsql.functions.spans import IntervalParts
from dpsql.plan.expr import Call, Expr, Literal
from dpsql.sql.bind_call import build_call
from dpsql.sql.dialect import span_of
from dpsql.sql.intervals import read_interval
from dpsql.types import MICROSECOND_INTERVAL, TEXT

BindChild = Callable[[exp.Expr], Expr]

_INTERVAL_PARTS_HINT = ("EXTRACT(epoch FROM to - from) gives all seconds; its parts are day, hour, minute and second. "
          "EXTRACT(year FROM AGE(to, from)) counts years.")  # fmt: skip


def interval_to_microseconds(interval: IntervalParts) -> int:
    return interval.months * MONTH_MICROSECONDS + interval.days * DAY_MICROSECONDS + interval.microseconds


def bind_interval_literal(node: exp.Expr) -> Expr:
    """What differences are compared with; a month is 30 days then."""
    return Literal(interval_to_microseconds(read_interval(node)), MICROSECOND_INTERVAL)


def build_difference(end: Expr, start: Expr, node: exp.Expr) -> Expr:
    return build_call("difference", [end, start], node)


def build_interval_part(part: Literal, arg: Expr, node: exp.Expr) -> Expr:
    """A part of a difference; all of it in seconds is its epoch."""
    if part.value == "epoch":
        if isinstance(arg, Call) and arg.function == "difference":
            return build_call("seconds_between", list(arg.args), node)
        return build_call("span_seconds", [arg], node)
    if part.value not in DIFFERENCE_PARTS:
        raise Unsupported(f"EXTRACT({part.value} FROM a difference) is not supported", hint=_INTERVAL_PARTS_HINT,
                          span=span_of(node))  # fmt: skip
    if part.value == "day" and isinstance(arg, Call) and arg.function == "difference":
        return build_call("date_sub", [part, *reversed(arg.args)], node)
    return build_call("span_part", [part, arg], node)


def bind_comparison_sides(nodes: list[exp.Expr], bind: BindChild) -> list[Expr]:
    """Both sides of a comparison, in which an interval is known by its length: an age too, and a text for one."""
    bound = [_bind_age(node, bind) or bind(node) for node in nodes]
    if not any(arg.type.is_microsecond_interval for arg in bound):
        return bound
    return [_to_interval(arg, node) for arg, node in zip(bound, nodes, strict=True)]


def _to_interval(arg: Expr, node: exp.Expr) -> Expr:
    if isinstance(arg, Literal) and arg.type == TEXT and arg.value is not None:
        return bind_interval_literal(exp.Interval(this=exp.Literal.string(str(arg.value))))
    if arg.type.is_integer and isinstance(arg, Call) and arg.function == "date_diff":
        raise TypeMismatch("the difference of two dates is a number of days, not an interval",
                           hint="Compare it with a number: day - birth_date > 30.", span=span_of(node))  # fmt: skip
    return arg


def _bind_age(node: exp.Expr, bind: BindChild) -> Expr | None:
    inner = node.unnest()
    if not isinstance(inner, exp.Anonymous) or inner.name.lower() != "age" or len(inner.expressions) != 2:
        return None
    return build_call("age_span", [bind(arg) for arg in inner.expressions], node)


# --- aggregates ------------------------------------------------------------------------------------------------------


def interval_to_seconds(arg: Expr, node: exp.Expr) -> Expr:
    """An interval as the number that is summed, averaged or chosen; `seconds_to_interval` makes an interval of it again."""
    return build_interval_part(Literal("epoch", TEXT), arg, node)


def seconds_to_interval(released: exp.Expr) -> exp.Expr:
    """Released seconds as days and microseconds, as a difference of timestamps has them."""

    def combine(kind: type[exp.Binary], left: exp.Expr, right: str) -> exp.Expr:
        return kind(this=left.copy(), expression=exp.Literal.number(right))

    days = exp.Trunc(this=combine(exp.Div, released, "86400.0"))
    rest = exp.Paren(this=exp.Sub(this=released.copy(), expression=combine(exp.Mul, days, "86400.0")))
    microseconds = exp.cast(exp.Round(this=combine(exp.Mul, rest, "1000000.0")), "bigint")
    whole_days = exp.TryCast(this=days.copy(), to=exp.DataType.build("int"))
    parts = (exp.Anonymous(this="to_days", expressions=[whole_days]),
             exp.Anonymous(this="to_microseconds", expressions=[microseconds]))  # fmt: skip
    return exp.Paren(this=exp.Add(this=parts[0], expression=parts[1]))
