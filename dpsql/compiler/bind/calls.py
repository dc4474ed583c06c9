"""Calls of functions over private rows: their arguments, already bound, are checked here against the records.

Arguments by name, with => or :=, as in BETA_POSTERIOR(urgent, alpha => 1), are read here too: each once, behind the
others, and a literal, so that nothing of it reaches the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from fractions import Fraction
from itertools import product

from sqlglot import exp

from dpsql.compiler.analysis.key_values import fold_constant_expr
from dpsql.compiler.bind.coercion import coerce, coerce_number_literal, convert_literal, narrow_integer, unify_types
from dpsql.compiler.functions.function import ScalarFunction, Signature
from dpsql.compiler.functions.table import FUNCTIONS
from dpsql.compiler.parse.dialect import refuse_other_args, span_of, sql_name_of
from dpsql.compiler.parse.literals import parse_exact_number
from dpsql.compiler.plan.expressions import Call, Clip, Expr, Literal
from dpsql.errors import InvalidParameter, InvalidSyntax, TypeMismatch, UnknownFunction, Unsupported
from dpsql.types import BIGINT, DOUBLE, TEXT, TIMESTAMP, Type, integer_range

BindChild = Callable[[exp.Expr], Expr]
"""Binds a part of the expression that is being bound."""

_SUGGESTED_FUNCTIONS = (
    *(name for name, function in FUNCTIONS.items() if function.written),
    "clip",
    "count",
    "sum",
    "avg",
)
_FUNCTIONS_HINT = "docs/sql.md lists the functions over private rows; on aggregated rows all of SQL's may be used."


def unknown_function_error(node: exp.Expr) -> UnknownFunction:
    close: list[str] = []
    if isinstance(node, exp.Anonymous):  # only a name that nobody knows is a slip of the pen
        close = get_close_matches(node.name.lower(), _SUGGESTED_FUNCTIONS, n=1, cutoff=0.8)
    hint = f"Perhaps you meant {close[0].upper()}." if close else _FUNCTIONS_HINT
    return UnknownFunction(f"{sql_name_of(node)} is not supported over private rows", hint=hint, span=span_of(node))


def build_call(name: str, args: list[Expr], node: exp.Expr, nodes: list[exp.Expr] | None = None) -> Expr:
    """The call, where its arguments fit; without the call, where it does nothing."""
    function = FUNCTIONS[name]
    nodes = nodes if nodes is not None and len(nodes) == len(args) else [node] * len(args)
    if not function.least <= len(args) <= function.most:
        raise UnknownFunction(f"{name} does not take {len(args)} arguments", hint=f"For example: {function.example}.",
                              span=span_of(node))  # fmt: skip
    for index in sorted(function.literals):
        if index < len(args) and not isinstance(args[index], Literal):
            raise Unsupported(
                f"argument {index + 1} of {name} must be a literal", hint=f"For example: {function.example}.",
                span=span_of(nodes[index]) or span_of(node),
            )  # fmt: skip
    if function.meets:
        args, common = unify_types(args, nodes, name.upper())
        args = [coerce(arg, common, n) for arg, n in zip(args, nodes, strict=True)]
    else:
        args = [narrow_integer(arg) for arg in args]
    fit = _find_signature(function, args, node)
    call = Call(name, tuple(coerce(a, t, n) for a, t, n in zip(args, fit.args, nodes, strict=True)), fit.result)
    problem = function.check(call)
    if problem is not None:
        raise Unsupported(problem, hint=f"For example: {function.example}.", span=span_of(node))
    folded = fold_constant_expr(call)
    return folded if isinstance(folded, Literal) else function.shorter(call)


def _find_signature(function: ScalarFunction, args: list[Expr], node: exp.Expr) -> Signature:
    """A text or NULL without a type is read as the first type that fits."""
    candidates = [_possible_types(arg, index in function.literals) for index, arg in enumerate(args)]
    for types in product(*candidates):
        fit = function.fit(types)
        if fit is not None:
            return fit
    argument_types = ", ".join(str(arg.type) for index, arg in enumerate(args) if index not in function.literals)
    raise TypeMismatch(f"{function.name} does not take ({argument_types})", hint=f"For example: {function.example}.",
                       span=span_of(node))  # fmt: skip


def _possible_types(arg: Expr, fixed: bool) -> tuple[Type, ...]:
    if fixed or not isinstance(arg, Literal) or arg.type != TEXT:
        return (arg.type,)
    return (TEXT, *(type_ for type_ in (BIGINT, DOUBLE, TIMESTAMP) if convert_literal(arg, type_) is not None))


def bind_clip(args: list[Expr], node: exp.Expr) -> Expr:
    args = [coerce_number_literal(arg, part) for arg, part in zip(args, node.expressions, strict=True)]
    if len(args) != 3 or not all(isinstance(arg, Literal) and arg.value is not None for arg in args[1:]):
        raise Unsupported("CLIP takes a number and two literal bounds", hint="For example: CLIP(cost, 0, 100).",
                          span=span_of(node))  # fmt: skip
    lower, upper = (Fraction(arg.value) for arg in args[1:] if isinstance(arg, Literal))  # type: ignore[arg-type]
    if not args[0].type.is_number or lower > upper:
        raise TypeMismatch("CLIP takes a number, a lower and an upper bound", span=span_of(node))
    if args[0].type.is_integer:  # bounds past the type's would make the engine take a wider one
        type_min, type_max = integer_range(args[0].type)
        lower, upper = Fraction(max(lower.__ceil__(), type_min)), Fraction(min(upper.__floor__(), type_max))
        if lower > upper:
            raise TypeMismatch(f"no {args[0].type} lies between these bounds", span=span_of(node))
    clipped = Clip(args[0], lower, upper)
    bigint_min, bigint_max = integer_range(BIGINT)
    # Clipped first: a value past 64 bits is moved to a bound, as any other.
    return narrow_integer(clipped) if bigint_min <= lower and upper <= bigint_max else clipped


# --- arguments by name -----------------------------------------------------------------------------------------------

_COUNT_WORDS = {1: "one argument", 3: "three arguments"}


def is_named_argument(arg: exp.Expr) -> bool:
    """Whether it is written as alpha => 1, or alpha := 1."""
    return isinstance(arg, exp.Kwarg | exp.PropertyEQ)


def read_arguments(
    node: exp.Expr, called: str, takes: int, allowed: tuple[str, ...], example: str
) -> tuple[list[exp.Expr], dict[str, exp.Expr]]:
    """The arguments that stand in their places, of which there are `takes`, and those by name, which are literals."""
    plain = [arg for arg in node.expressions if not is_named_argument(arg)]
    names = ", ".join(allowed)
    if len(plain) != takes or any(is_named_argument(arg) for arg in node.expressions[:takes]):
        raise InvalidSyntax(
            f"{called} takes {_COUNT_WORDS[takes]}, then {names} by name",
            hint=f"For example: {example}.",
            span=span_of(node),
        )
    named: dict[str, exp.Expr] = {}
    for arg in node.expressions[takes:]:
        refuse_other_args(arg, "this", "expression")
        name, span = str(arg.this.name).lower(), span_of(arg.this) or span_of(arg) or span_of(node)
        if name not in allowed:
            raise InvalidSyntax(f'{called} has no argument "{name}"; there are {names}',
                                hint=f"For example: {example}.", span=span)  # fmt: skip
        if name in named:
            raise InvalidSyntax(f'argument "{name}" of {called} is given twice', hint="Leave out one of them.",
                                span=span)  # fmt: skip
        named[name] = arg.expression
    return plain, named


def read_number_literal(value: exp.Expr) -> Fraction | None:
    """A number as it is written, with its sign; None of anything else."""
    negative = False
    while isinstance(value, exp.Neg | exp.Paren):
        negative ^= isinstance(value, exp.Neg)
        value = value.this
    if not isinstance(value, exp.Literal) or value.args.get("is_string"):
        return None
    number = parse_exact_number(str(value.this), span_of(value))
    return None if number is None else -number if negative else number


def require_number_between(
    name: str, value: exp.Expr, lower: Fraction, upper: Fraction, node: exp.Expr, example: str
) -> Fraction:
    number = read_number_literal(value)
    if number is None or not lower <= number <= upper:
        raise InvalidParameter(f"{name} must be a literal between {_format_bound(lower)} and {_format_bound(upper)}",
                               hint=f"For example: {example}.", span=span_of(value) or span_of(node))  # fmt: skip
    return number


def require_integer_between(name: str, value: exp.Expr, lower: int, upper: int, node: exp.Expr, example: str) -> int:
    number = read_number_literal(value)
    if number is None or number.denominator != 1 or not lower <= number <= upper:
        raise InvalidParameter(f"{name} must be a whole number, a literal between {lower} and {upper}",
                               hint=f"For example: {example}.", span=span_of(value) or span_of(node))  # fmt: skip
    return number.numerator


def _format_bound(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 and number <= 10**6 else f"{float(number):g}"
