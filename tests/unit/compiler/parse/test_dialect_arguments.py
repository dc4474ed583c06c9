"""What is written in a call is in its tree, for every function that sqlglot has a builder or a syntax for."""

from __future__ import annotations

import pytest
from sqlglot import exp

from dpsql.compiler.parse.dialect import AnalystDialect, has_dropped_arguments
from dpsql.compiler.parse.parser import parse_query
from dpsql.errors import Error, InvalidSyntax

NAMES = sorted({*AnalystDialect.Parser.FUNCTIONS, *AnalystDialect.Parser.FUNCTION_PARSERS})


@pytest.mark.parametrize("form", ["c{}", "'s{}'", "9{}", "c{} + 1"])
def test_no_argument_is_left_out(form: str) -> None:
    """Up to six: refused in our words, or held."""
    answered = 0
    for name in NAMES:
        for count in range(7):
            args = [form.format(place) for place in range(count)]
            try:
                tree = repr(parse_query(f"SELECT {name}({', '.join(args)}) AS z FROM visits")).lower()
            except Error:
                continue
            answered += 1
            assert all(arg.strip("'").split(" ")[0] in tree for arg in args), (name, args)
    assert answered > 500


@pytest.mark.parametrize(("sql", "name"), [
    ("SELECT 1, mod(a, 2, 3)", "mod"), ("SELECT floor(a, 1, sqrt(2))", "floor"), ("SELECT abs(mod(a, b, c))", "mod"),
    ("SELECT string_agg(a, ',', b ORDER BY c) FROM t", "string_agg"), ("SELECT position(a, b IN c)", "position"),
    ("SELECT SUM(a, b) FROM t", "SUM"), ("SELECT var_map(1)", "var_map"),
    ("SELECT levenshtein_less_equal()", "levenshtein_less_equal"),
    ("SELECT combined_parameterized_agg(a, b, c)", "combined_parameterized_agg"),
])  # fmt: skip
def test_the_function_is_named_and_pointed_at(sql: str, name: str) -> None:
    with pytest.raises(InvalidSyntax) as caught:
        parse_query(sql)
    assert f'"{name}" has ' in str(caught.value) and caught.value.sqlstate == "42883"
    assert caught.value.span is not None and sql[caught.value.span.start : caught.value.span.end] == name


@pytest.mark.parametrize("sql", [
    "SELECT date_trunc('month', a), date_diff('day', a, b), date_bin('6 hours', a, b), last_day(a, month)",
    "SELECT to_char(a, 'YYYY'), uuid('a'), uuid(a), a -> 'b', json_extract(a, '$.b.c'), extract(day FROM a)",
    "SELECT floor(date_diff('day', a, b)), trim(mod(a, 2)), position(lower(a) IN date_trunc('day', b))",
    "SELECT list_transform(a, x -> mod(x, 2)), ceil(list_sum(list_transform(a, (x, i) -> date_diff('day', x, i))))",
    "SELECT string_agg(DISTINCT a, ',' ORDER BY b), max_by(a, b), substring(a FROM 1 FOR 2)",
    "SELECT initcap(a), floor((SELECT date_trunc('day', MAX(b)) FROM t GROUP BY a, b)), generate_series(1, 2, 3)",
    "SELECT COUNT(*) FROM t, generate_series(DATE '2024-01-01', DATE '2024-02-01', '1 day') AS g(d)",
])  # fmt: skip
def test_what_a_builder_makes_of_an_argument_is_the_argument(sql: str) -> None:
    parse_query(sql)


def test_a_copy_or_a_constant_is_no_argument() -> None:
    """LOG10 makes a literal of its own, which is not the second argument."""
    ten = exp.Literal.number(10)
    assert has_dropped_arguments(exp.Log(this=ten, expression=exp.column("a")), [exp.column("a"), exp.column("b")])
    assert not has_dropped_arguments(exp.Log(this=(b := exp.column("b")), expression=(a := exp.column("a"))), [a, b])


@pytest.mark.parametrize("sql", ["SELECT floor(a", "SELECT trim(a", "SELECT cast(a AS int", "SELECT (floor(a, (1))",
                                 "SELECT arg_max() FROM t", "SELECT floor()", "SELECT position()"])  # fmt: skip
def test_an_incomplete_call_is_an_error(sql: str) -> None:
    with pytest.raises(InvalidSyntax):
        parse_query(sql)
