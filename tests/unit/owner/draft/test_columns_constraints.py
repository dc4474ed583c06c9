"""Bounds and values from CHECK constraints, as DuckDB and PostgreSQL spell them; what is not plain is not read."""

from fractions import Fraction as F

import pytest

from dpsql.owner.draft.columns import ColumnConstraints, read_constraints

NOTHING = ColumnConstraints()


@pytest.mark.parametrize(
    ("check", "column", "expected"),
    [
        ("(age BETWEEN 0 AND 120)", "age", ColumnConstraints(F(0), F(120))),
        ("(((age >= 0) AND (age <= 120)))", "age", ColumnConstraints(F(0), F(120))),
        ("((cost >= (0)::numeric))", "cost", ColumnConstraints(F(0))),
        ("((x >= '-1.5'::numeric))", "x", ColumnConstraints(F(-3, 2))),
        ('(("My Age" <= 7))', "My Age", ColumnConstraints(None, F(7))),
        ("(s IN ('f', 'm'))", "s", ColumnConstraints(values=("f", "m"))),
        ("((s = ANY (ARRAY['it''s'::text, 'b'::text])))", "s", ColumnConstraints(values=("it's", "b"))),
        ("(((s)::text = ANY ((ARRAY['a'::character varying])::text[])))", "s", ColumnConstraints(values=("a",))),
        # of another column, or of several
        ("((other >= 0))", "age", NOTHING),
        ("((a < b))", "a", NOTHING),
        # an OR, a NOT, a function, a value with brackets: not plainly a range or a list
        ("(((age >= 0) OR (age <= 5)))", "age", NOTHING),
        ("((NOT (age >= 0)))", "age", NOTHING),
        ("((NOT (s IN ('a', 'b'))))", "s", NOTHING),
        ("(((x > 0) AND f(x)))", "x", NOTHING),
        ("((length(s) > 3))", "s", NOTHING),
        ("(s IN ('(a)', 'b'))", "s", NOTHING),
        ("((age > 0) OR (s IN ('a')))", "s", NOTHING),
    ],
)
def test_what_is_read(check, column, expected):
    assert read_constraints((check,), column) == expected


def test_two_constraints_are_joined():
    assert read_constraints(("((x >= 1))", "((x <= 9))"), "x") == ColumnConstraints(F(1), F(9))
