"""Conditions said shortly: literals compared with each other, and truth compared with TRUE and FALSE.

    1 = 1  →  TRUE        paid = TRUE, paid <> FALSE  →  paid        paid = FALSE  →  NOT paid

These hold for NULL too. Where rows are kept for which a condition is true, NULL and FALSE are the same, and there alone
`paid IS TRUE` is `paid`; `paid IS NOT TRUE` is never `NOT paid`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import eq, ge, gt, le, lt, ne

from dpsql.plan.expr import FALSE, And, Call, Compare, Expr, InList, Literal, Not, Or
from dpsql.schema.domain import Scalar
from dpsql.types import BOOLEAN, TEXT, Type

_NULL_BOOLEAN = Literal(None, BOOLEAN)
_EQUALITY_OPERATORS: dict[str, Callable[[Scalar, Scalar], bool]] = {"=": eq, "<>": ne}
_ORDERING_OPERATORS: dict[str, Callable[[int, int], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def fold_constants(expr: Compare | InList) -> Expr | None:
    """What a comparison is in every row, or the truth that it compares; None where there is nothing shorter."""
    if isinstance(expr, InList):
        return _fold_in_list(expr)
    left, right = expr.left, expr.right
    if isinstance(left, Literal) and isinstance(right, Literal):
        return _compare_literals(expr.op, left, right)
    for truth, literal in ((left, right), (right, left)):
        if isinstance(literal, Literal) and isinstance(literal.value, bool) and expr.op in _EQUALITY_OPERATORS:
            return truth if literal.value == (expr.op == "=") else Not(truth)
    return None


def _fold_in_list(expr: InList) -> Expr | None:
    if len(expr.values) == 1:
        return fold_constants(Compare("=", expr.arg, expr.values[0]))
    arg = expr.arg
    if not isinstance(arg, Literal) or not _is_exact(arg.type):
        return None
    if arg.value is None:
        return _NULL_BOOLEAN
    return Literal(any(arg.value == value.value for value in expr.values), BOOLEAN)


def _compare_literals(op: str, left: Literal, right: Literal) -> Literal | None:
    """Whole numbers, texts and truth; other values are compared by the engine, which rounds them as it does."""
    if left.value is None or right.value is None:
        return _NULL_BOOLEAN
    if not _is_exact(left.type):
        return None
    if op in _EQUALITY_OPERATORS:
        return Literal(_EQUALITY_OPERATORS[op](left.value, right.value), BOOLEAN)
    if left.type.is_integer and isinstance(left.value, int) and isinstance(right.value, int):
        return Literal(_ORDERING_OPERATORS[op](left.value, right.value), BOOLEAN)
    return None  # the order of texts is the engine's


def _is_exact(type_: Type) -> bool:
    return type_.is_integer or type_ in (TEXT, BOOLEAN)


def simplify_condition(expr: Expr, simplify: Callable[[Expr], Expr]) -> Expr:
    """A condition that is true for the same rows, and perhaps NULL for others for which this one is false.

    `rebuilt` gives the canonical form of a connective whose parts are canonical.
    """
    if isinstance(expr, Call) and expr.function == "coalesce" and expr.args[1:] == (FALSE,):
        return simplify_condition(expr.args[0], simplify)
    if isinstance(expr, And | Or):
        parts = tuple(simplify_condition(arg, simplify) for arg in expr.args)
        return expr if parts == expr.args else simplify(replace(expr, args=parts))
    return expr
