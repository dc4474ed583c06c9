"""Calls of functions over private rows: their arguments, already bound, are checked here against the table."""

from __future__ import annotations

from difflib import get_close_matches
from fractions import Fraction

from sqlglot import exp

from dpsql.errors import TypeMismatch, UnknownFunction, Unsupported
from dpsql.plan.expr import Call, Cast, Clip, Expr, Literal
from dpsql.sql.coerce import coerce, meet, number_literal
from dpsql.sql.dialect import span_of, spelled
from dpsql.sql.functions import FUNCTIONS
from dpsql.types import DATE, DOUBLE, INTEGER, TEXT, TIMESTAMP, Kind, Type, integer_range


def unknown_function(node: exp.Expr) -> UnknownFunction:
    known = sorted(name for name in FUNCTIONS if name not in ("finite", "like", "ilike"))
    name = str(node.this if isinstance(node, exp.Anonymous) else node.key).lower()
    close = get_close_matches(name, [*known, "clip", "count", "sum", "avg"], n=1) if isinstance(node, exp.Func) else []
    hint = f"Perhaps you meant {close[0].upper()}." if close else f"Functions: {', '.join(known)}, clip, CASE, CAST."
    return UnknownFunction(f"{spelled(node)} is not supported over private rows", hint=hint, span=span_of(node))


def castable(source: Type, target: Type) -> bool:
    if Kind.TEXT in (source.kind, target.kind):
        return True
    if source.is_number and target.is_number:
        return True
    if source.kind is Kind.BOOLEAN and target.is_integer:
        return True
    return source.is_time and target in (DATE, TIMESTAMP)


def checked_call(
    name: str, args: list[Expr], node: exp.Expr, nodes: list[exp.Expr] | None = None
) -> Expr:
    function = FUNCTIONS[name]
    nodes = nodes or [node] * len(args)
    if not function.least <= len(args) <= function.most:
        raise UnknownFunction(f"{name} does not take {len(args)} arguments", span=span_of(node))
    for place in function.literals:
        if place < len(args) and not isinstance(args[place], Literal):
            raise Unsupported(
                f"argument {place + 1} of {name} must be a literal", hint=f"For example: {function.example}.",
                span=span_of(nodes[place]),
            )  # fmt: skip
    if name in ("coalesce", "nullif", "greatest", "least"):
        args, common = meet(args, nodes, name.upper())
        args = [coerce(arg, common, n) for arg, n in zip(args, nodes, strict=True)]
    if name in ("substring", "round"):
        _check_lengths(name, args[1:], node)
        args[1:] = [Literal(arg.value, INTEGER) for arg in args[1:] if isinstance(arg, Literal)]
    type_ = function.result(tuple(arg.type for arg in args))
    if type_ is None:
        given = ", ".join(str(arg.type) for arg in (args[1:] if 0 in function.literals else args))
        raise TypeMismatch(f"{name} does not take ({given})", hint=f"For example: {function.example}.",
                           span=span_of(node))  # fmt: skip
    if name in ("floor", "ceil", "round") and type_.is_integer:
        return args[0]
    if name in ("abs", "floor", "ceil", "round") and not args[0].type.is_float and not type_.is_integer:
        args[0] = Cast(args[0], DOUBLE)
    return Call(name, tuple(args), type_)


def _check_lengths(name: str, args: list[Expr], node: exp.Expr) -> None:
    most = 15 if name == "round" else 10_000
    for arg in args:
        value = arg.value if isinstance(arg, Literal) else None
        least = 0 if name == "round" else 1
        if not isinstance(value, int) or not least <= value <= most:
            raise Unsupported(f"the numbers in {name} must be literals between {least} and {most}", span=span_of(node))


def part_of(node: exp.Expr, parts: tuple[str, ...], what: str) -> Literal:
    name = node.name.lower()
    if name not in parts:
        span = span_of(node) or (span_of(node.parent) if node.parent is not None else None)
        raise Unsupported(f'{what} of "{name}" is not supported', hint=f"Parts: {', '.join(parts)}.", span=span)
    return Literal(name, TEXT)


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
