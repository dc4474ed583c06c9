"""Calls of functions over private rows: their arguments, already bound, are checked here against the records.

Arguments by name, with => or :=, as in BETA_POSTERIOR(urgent, alpha => 1), are read here too: each once, behind the
others, and a literal, so that nothing of it reaches the engine.
"""

from __future__ import annotations

from difflib import get_close_matches
from fractions import Fraction
from itertools import product

from sqlglot import exp

from dpsql.analysis.image import constant
from dpsql.errors import InvalidParameter, InvalidSyntax, TypeMismatch, UnknownFunction, Unsupported
from dpsql.functions.record import Fit, Function
from dpsql.functions.table import FUNCTIONS
from dpsql.plan.expr import Call, Clip, Expr, Literal
from dpsql.sql.coerce import coerce, convert_literal, meet, number_literal
from dpsql.sql.dialect import only, span_of, spelled
from dpsql.sql.numerals import exact_number
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


# --- arguments by name -----------------------------------------------------------------------------------------------

_COUNTED = {1: "one argument", 3: "three arguments"}


def is_named(arg: exp.Expr) -> bool:
    """Whether it is written as alpha => 1, or alpha := 1."""
    return isinstance(arg, exp.Kwarg | exp.PropertyEQ)


def read_arguments(
    node: exp.Expr, called: str, takes: int, known: tuple[str, ...], example: str
) -> tuple[list[exp.Expr], dict[str, exp.Expr]]:
    """The arguments that stand in their places, of which there are `takes`, and those by name, which are literals."""
    plain = [arg for arg in node.expressions if not is_named(arg)]
    names = ", ".join(known)
    if len(plain) != takes or any(is_named(arg) for arg in node.expressions[:takes]):
        raise InvalidSyntax(f"{called} takes {_COUNTED[takes]}, then {names} by name", hint=f"For example: {example}.",
                            span=span_of(node))  # fmt: skip
    named: dict[str, exp.Expr] = {}
    for arg in node.expressions[takes:]:
        only(arg, "this", "expression")
        name, span = str(arg.this.name).lower(), span_of(arg.this) or span_of(arg) or span_of(node)
        if name not in known:
            raise InvalidSyntax(f'{called} has no argument "{name}"; there are {names}',
                                hint=f"For example: {example}.", span=span)  # fmt: skip
        if name in named:
            raise InvalidSyntax(f'argument "{name}" of {called} is given twice', hint="Leave out one of them.",
                                span=span)  # fmt: skip
        named[name] = arg.expression
    return plain, named


def literal_number(value: exp.Expr) -> Fraction | None:
    """A number as it is written, with its sign; None of anything else."""
    negative = False
    while isinstance(value, exp.Neg | exp.Paren):
        negative ^= isinstance(value, exp.Neg)
        value = value.this
    if not isinstance(value, exp.Literal) or value.args.get("is_string"):
        return None
    number = exact_number(str(value.this), span_of(value))
    return None if number is None else -number if negative else number


def number_between(
    name: str, value: exp.Expr, least: Fraction, most: Fraction, node: exp.Expr, example: str
) -> Fraction:
    number = literal_number(value)
    if number is None or not least <= number <= most:
        raise InvalidParameter(f"{name} must be a literal between {_shown(least)} and {_shown(most)}",
                               hint=f"For example: {example}.", span=span_of(value) or span_of(node))  # fmt: skip
    return number


def whole_between(name: str, value: exp.Expr, least: int, most: int, node: exp.Expr, example: str) -> int:
    number = literal_number(value)
    if number is None or number.denominator != 1 or not least <= number <= most:
        raise InvalidParameter(f"{name} must be a whole number, a literal between {least} and {most}",
                               hint=f"For example: {example}.", span=span_of(value) or span_of(node))  # fmt: skip
    return number.numerator


def _shown(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 and number <= 10**6 else f"{float(number):g}"
