"""What a function is: its arguments and types, what its results can be, and a form per engine that cannot raise.

A form is total for every value of its arguments' types, also where an engine works it out for rows that a guard around
it is about to drop: no part of it raises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import prod

from dpsql.functions.rules import replace_values
from dpsql.plan.expr import Call, Expr, Literal
from dpsql.schema.domain import Domain, Scalar
from dpsql.types import Kind, Type

Types = tuple[Type, ...]
Domains = tuple[Domain, ...]
Value = Scalar | None
SqlRenderer = Callable[[Call, list[str]], str]

MAX_EVALUATED = 1_000
"""Combinations of argument values for which a result is worked out one by one."""


class NotEvaluable(Exception):
    """Python and the engines may differ here, so the value is left to the engine."""


@dataclass(frozen=True)
class Signature:
    """The types as which arguments are read, and the type of the result."""

    args: Types
    result: Type


@dataclass(frozen=True)
class ScalarFunction:
    name: str
    example: str
    fit: Callable[[Types], Signature | None]  # None: these arguments do not fit
    domain: Callable[[Call, Domains], Domain]
    duckdb: SqlRenderer
    least: int = 1
    most: int = 1
    # Arguments that must be literals: patterns, lengths and parts, which would raise or run away on some values.
    literals: frozenset[int] = frozenset()
    check: Callable[[Call], str | None] = lambda call: None  # what is wrong with the literals
    evaluate: Callable[[Call, list[Value]], Value] | None = None  # only where Python and every engine agree
    doubles: bool = False  # whether that holds for doubles too
    meets: bool = False  # arguments become one type first
    shorter: Callable[[Call], Expr] = lambda call: call  # the same without the call, where it does nothing
    written: bool = True  # whether analysts may write it by this name

    def can_evaluate(self, types: Types) -> bool:
        """Whether Python may work out results of such arguments."""
        inexact = any(type_.kind is Kind.DECIMAL or (type_.is_float and not self.doubles) for type_ in types)
        return self.evaluate is not None and not inexact


def literal_argument(call: Call, index: int) -> Value:
    """The value of a literal argument; None where it is left out."""
    if index >= len(call.args):
        return None
    argument = call.args[index]
    assert isinstance(argument, Literal)
    return argument.value


def text_argument(call: Call, index: int) -> str:
    return str(literal_argument(call, index))


def integer_argument(call: Call, index: int) -> int:
    value = literal_argument(call, index)
    assert isinstance(value, int)
    return value


def quote_text(value: str) -> str:
    """Text that a form writes itself."""
    return "'" + value.replace("'", "''") + "'"


def domain_of_call(function: ScalarFunction, call: Call, args: Domains) -> Domain:
    """What the function claims; where all arguments have few values, the results themselves."""
    claimed = function.domain(call, args)
    options = [(*arg.values, *((None,) if arg.nullable else ())) for arg in args if arg.values is not None]
    if function.evaluate is None or len(options) < len(args) or prod(map(len, options)) > MAX_EVALUATED:
        return claimed
    if not function.can_evaluate(tuple(arg.type for arg in args)):
        return claimed
    try:
        results = tuple(dict.fromkeys(function.evaluate(call, list(row)) for row in product(*options)))
    except NotEvaluable:
        return claimed
    return replace_values(claimed, results)
