"""Conditions taken apart: what is left means the same, with SQL's NULL."""

from __future__ import annotations

from itertools import product

import pytest

from dpsql.compiler.plan.expressions import (
    And,
    Column,
    Compare,
    Expr,
    Or,
    join_conjuncts,
    split_shared_equalities,
)
from dpsql.types import BIGINT, BOOLEAN

A, B, C = (Column(name, BIGINT) for name in "abc")
X, Y = Column("x", BOOLEAN), Column("y", BOOLEAN)
EQUAL, TURNED, OTHER = Compare("=", A, B), Compare("=", B, A), Compare("=", A, C)


def truth(expr: Expr, row: dict[str, object]) -> object:
    match expr:
        case Column():
            return row[expr.name]
        case Compare():
            left, right = truth(expr.left, row), truth(expr.right, row)
            return None if left is None or right is None else left == right
        case And() | Or():
            values, deciding = [truth(arg, row) for arg in expr.args], isinstance(expr, Or)
            return deciding if deciding in values else None if None in values else not deciding
    raise AssertionError(expr)


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        (Or((And((EQUAL, X)), And((TURNED, Y)))), (EQUAL, Or((X, Y)))),
        (Or((And((X, EQUAL)), EQUAL)), (EQUAL,)),
        (Or((And((EQUAL, OTHER, X)), And((Y, OTHER, EQUAL)))), (EQUAL, OTHER, Or((X, Y)))),
        (Or((And((EQUAL, X)), Or((And((EQUAL, Y)), And((EQUAL, X)))))), (EQUAL, Or((X, Or((Y, X)))))),
        (Or((And((EQUAL, X)), And((OTHER, Y)))), None),
        (Or((And((X, EQUAL)), And((X, OTHER)))), None),
        (Or((EQUAL, X)), None),
    ],
)
def test_equalities_that_each_branch_has_stand_before_the_or(condition: Expr, parts: tuple[Expr, ...] | None) -> None:
    found = split_shared_equalities(condition)
    assert found == (parts or (condition,))
    for a, b, c, x, y in product((None, 1, 2), (None, 1, 2), (None, 1), (None, True, False), (None, True, False)):
        row = {"a": a, "b": b, "c": c, "x": x, "y": y}
        assert truth(join_conjuncts(found), row) == truth(condition, row)
