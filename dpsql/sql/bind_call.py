"""Calls of functions over private rows: their arguments, already bound, are checked here against the records."""

from __future__ import annotations

from difflib import get_close_matches
from fractions import Fraction
from itertools import product

from sqlglot import exp

from dpsql.analysis.image import constant
from dpsql.errors import TypeMismatch, UnknownFunction, Unsupported
from dpsql.functions.record import Fit, Function
from dpsql.functions.table import FUNCTIONS
from dpsql.plan.expr import Call, Clip, Expr, Literal
from dpsql.sql.coerce import coerce, convert_literal, meet, number_literal
from dpsql.sql.dialect import span_of, spelled
from dpsql.types import BIGINT, DOUBLE, TEXT, TIMESTAMP, Type, integer_range

_SUGGESTED = (*(name for name, function in FUNCTIONS.items() if function.written), "clip", "count", "sum", "avg")
_ELSEWHERE = "docs/sql.md lists the functions over private rows; on aggregated rows all of SQL's may be used."


def unknown_function(node: exp.Expr) -> UnknownFunction:
    close: list[str] = []
    if isinstance(node, exp.Anonymous):  # only a name that nobody knows is a slip of the pen
        close = get_close_matches(node.name.lower(), _SUGGESTED, n=1, cutoff=0.8)
    hint = f"Perhaps you meant {close[0].upper()}." if close else _ELSEWHERE
    return UnknownFunction(f"{spelled(node)} is not supported over private rows", hint=hint, span=span_of(node))


def checked_call(name: str, args: list[Expr], node: exp.Expr, nodes: list[exp.Expr] | None = None) -> Expr:
    """The call, where its arguments fit; without the call, where it does nothing."""
    function = FUNCTIONS[name]
    nodes = nodes if nodes is not None and len(nodes) == len(args) else [node] * len(args)
    if not function.least <= len(args) <= function.most:
        raise UnknownFunction(f"{name} does not take {len(args)} arguments", hint=f"For example: {function.example}.",
                              span=span_of(node))  # fmt: skip
    for place in sorted(function.literals):
        if place < len(args) and not isinstance(args[place], Literal):
            raise Unsupported(
                f"argument {place + 1} of {name} must be a literal", hint=f"For example: {function.example}.",
                span=span_of(nodes[place]) or span_of(node),
            )  # fmt: skip
    if function.meets:
        args, common = meet(args, nodes, name.upper())
        args = [coerce(arg, common, n) for arg, n in zip(args, nodes, strict=True)]
    fit = _fitting(function, args, node)
    call = Call(name, tuple(coerce(a, t, n) for a, t, n in zip(args, fit.args, nodes, strict=True)), fit.result)
    wrong = function.check(call)
    if wrong is not None:
        raise Unsupported(wrong, hint=f"For example: {function.example}.", span=span_of(node))
    known = constant(call)
    return known if isinstance(known, Literal) else function.shorter(call)


def _fitting(function: Function, args: list[Expr], node: exp.Expr) -> Fit:
    """A text or NULL without a type is read as the first type that fits."""
    choices = [_readings(arg, place in function.literals) for place, arg in enumerate(args)]
    for types in product(*choices):
        fit = function.fit(types)
        if fit is not None:
            return fit
    given = ", ".join(str(arg.type) for place, arg in enumerate(args) if place not in function.literals)
    raise TypeMismatch(f"{function.name} does not take ({given})", hint=f"For example: {function.example}.",
                       span=span_of(node))  # fmt: skip


def _readings(arg: Expr, fixed: bool) -> tuple[Type, ...]:
    if fixed or not isinstance(arg, Literal) or arg.type != TEXT:
        return (arg.type,)
    return (TEXT, *(type_ for type_ in (BIGINT, DOUBLE, TIMESTAMP) if convert_literal(arg, type_) is not None))


def clip(args: list[Expr], node: exp.Expr) -> Expr:
    args = [number_literal(arg, part) for arg, part in zip(args, node.expressions, strict=True)]
    if len(args) != 3 or not all(isinstance(arg, Literal) and arg.value is not None for arg in args[1:]):
        raise Unsupported("CLIP takes a number and two literal bounds", hint="For example: CLIP(cost, 0, 100).",
                          span=span_of(node))  # fmt: skip
    lower, upper = (Fraction(arg.value) for arg in args[1:] if isinstance(arg, Literal))  # type: ignore[arg-type]
    if not args[0].type.is_number or lower > upper:
        raise TypeMismatch("CLIP takes a number, a lower and an upper bound", span=span_of(node))
    if args[0].type.is_integer:  # bounds past the type's would make the engine take a wider one
        least, most = integer_range(args[0].type)
        lower, upper = Fraction(max(lower.__ceil__(), least)), Fraction(min(upper.__floor__(), most))
        if lower > upper:
            raise TypeMismatch(f"no {args[0].type} lies between these bounds", span=span_of(node))
    return Clip(args[0], lower, upper)
