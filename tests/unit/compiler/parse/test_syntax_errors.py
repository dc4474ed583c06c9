"""Syntax errors: in our words, at the right place, with a hint that helps."""

import pytest

from dpsql.compiler.parse.parser import REFUSED_STATEMENTS, parse_query
from dpsql.compiler.parse.syntax_errors import refuse_null_comparisons
from dpsql.compiler.split.split import split_query
from dpsql.errors import InvalidSyntax, UnknownColumn, Unsupported
from dpsql.schema.model import Resolved


@pytest.mark.parametrize(
    ("sql", "near", "hint"),
    [
        ("SELECT a b c FROM t", "c FROM", "comma"),
        ("SELECT a FORM t", "t", "FROM instead of FORM"),
        ("SELCT 1", "SELCT", "SELECT instead of SELCT"),
        ("SELECT COUNT(* FROM t", "FROM", '")" is missing'),
        ("SELECT COUNT(*)) FROM t", ") FROM", '")" too many'),
        ("SELECT a FROM t WEHRE x = 1", "x = 1", "WHERE instead of WEHRE"),
        ("SELECT a FROM t GROUPBY a", "a", "GROUP BY"),
        ("SELECT a FROM t ORDER a", "a", "ORDER BY"),
        ("SELECT a FROM t WHERE a IN (1, 2", "", '")" is missing'),
        ("SELECT CASE WHEN a THEN 1 FROM t", "1 FROM", "END"),
        ("SELECT CAST(a) FROM t", ") FROM", "AS"),
        ("SELECT `a` FROM t", "`", "double quotes"),
        ("hello", "hello", "SELECT"),
        ("SELECT 1\nFROM t\nWHERE (x = 1", "", '")" is missing'),
    ],
)
def test_a_syntax_error_is_pointed_at_with_a_hint(sql: str, near: str, hint: str) -> None:
    with pytest.raises(InvalidSyntax) as caught:
        parse_query(sql)
    error = caught.value
    assert error.span is not None and hint in (error.hint or "")
    assert sql[error.span.start :].startswith(near) and (near or error.span.start == len(sql))
    assert "sqlglot" not in str(error) and "Token" not in str(error)


@pytest.mark.parametrize(
    "sql", ["SELECT 1 FROM", "SELECT a FROM t WHERE", "SELECT a FROM t LIMIT", "SELECT a FROM t WHERE a = 'x' AND"]
)
def test_a_statement_that_stops_short_says_so(sql: str) -> None:
    with pytest.raises(InvalidSyntax, match="at the end of the statement") as caught:
        parse_query(sql)
    assert caught.value.span is not None and caught.value.span.start == len(sql)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT SUM(a, b) FROM t", "too many arguments"),
        ("SELECT 1 FROM t WHERE x = 1 WHERE y = 2", "WHERE stands twice"),
        ("SELECT", "at least one column"),
        ("SELECT 1 FROM (SELECT FROM t) s", "at least one column"),
    ],
)
def test_other_syntax_errors_are_named(sql: str, message: str) -> None:
    with pytest.raises(InvalidSyntax, match=message):
        parse_query(sql)


@pytest.mark.parametrize("word", sorted(word for family in REFUSED_STATEMENTS for word in family.words))
def test_statements_of_other_families_say_why(word: str) -> None:
    for sql in (f"{word} x", f"/* a */ {word.lower()} TABLE x (a);"):
        with pytest.raises(Unsupported, match=f"^{word} is not answered: ") as caught:
            parse_query(sql)
        assert caught.value.hint


def test_semicolons_and_comments_at_the_end_are_fine() -> None:
    assert parse_query("SELECT 1;; -- done\n;").sql() == "SELECT 1"


@pytest.mark.parametrize(
    ("condition", "hint"),
    [("sex = NULL", "sex IS NULL"), ("NULL <> sex", "sex IS NOT NULL"), ("sex = ?", "sex IS NULL")],
)
def test_a_comparison_with_null_is_pointed_at(condition: str, hint: str) -> None:
    sql = f"SELECT COUNT(*) FROM patients WHERE {condition}"
    with pytest.raises(InvalidSyntax, match="never true") as caught:
        refuse_null_comparisons(parse_query(sql, [None] if "?" in sql else []))
    assert hint in (caught.value.hint or "") and caught.value.span is not None


@pytest.mark.parametrize("condition", ["sex IS NULL", "sex IS NOT DISTINCT FROM NULL", "COALESCE(sex, NULL) = 'f'"])
def test_other_uses_of_null_are_fine(condition: str) -> None:
    refuse_null_comparisons(parse_query(f"SELECT COUNT(*) FROM patients WHERE {condition}"))


def test_text_in_double_quotes_gets_a_hint(clinic: Resolved) -> None:
    with pytest.raises(UnknownColumn) as caught:
        split_query(parse_query('SELECT COUNT(*) FROM patients WHERE sex = "f"'), clinic.schema)
    assert "'f'" in (caught.value.hint or "")


def test_values_are_a_statement_with_names() -> None:
    assert "column1, column2" in parse_query("VALUES (1, 'a'), (2, 'b')").sql()


@pytest.mark.parametrize(
    ("sql", "position"),
    [
        ("SELECT count(*) FROM visits WHERE nights = 7 GROUP BY", 54),
        ("SELECT count(*) FROM visits GROUP BY ;", 39),
        ("SELECT count(*) FROM visits,", 29),
        ("SELECT count(*) FROM visits, WHERE nights = 7", 30),
        ("SELECT ward, count(*) FROM visits GROUP BY ward,", 49),
        ("SELECT ward, count(*) FROM visits GROUP BY HAVING count(*) > 1", 44),
        ("SELECT ward, count(*) FROM visits GROUP BY 1 ORDER BY", 54),
        ("SELECT ward, count(*) FROM visits GROUP BY 1 ORDER BY 2,", 57),
        ("SELECT ward, count(*) FROM visits GROUP BY 1 ORDER BY LIMIT 3", 55),
        ("SELECT count(*),", 17),
        ("SELECT count(*) AS", 19),
        ("SELECT x FROM (SELECT count(*) AS x FROM visits GROUP BY) AS t", 57),
        ("SELECT count(*) FROM visits WHERE ward IN ('a', )", 49),
        ("SELECT count(*) FROM visits JOIN patients USING", 48),
        ("SELECT rank() OVER (PARTITION BY) FROM t", 33),
        ("SELECT rank() OVER", 19),
        ("SELECT rank() OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND) FROM t", 60),
        ("SELECT substring(a FROM ) FROM t", 25),
    ],
)
def test_a_statement_that_breaks_off_is_refused_with_the_position(sql: str, position: int) -> None:
    with pytest.raises(InvalidSyntax, match="syntax error") as caught:
        parse_query(sql)
    assert caught.value.position == position and caught.value.sqlstate == "42601"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ward, count(*), FROM visits GROUP BY ward",
        'SELECT count(*) AS "group by" FROM visits',
        "SELECT [1, 2, ] AS x",
        "SELECT count(*) FROM visits GROUP BY GROUPING SETS ((ward), ())",
        "SELECT ward, count(*) FROM visits GROUP BY ALL ORDER BY ALL",
        "SELECT a IS DISTINCT FROM b, EXTRACT(year FROM c) FROM t",
    ],
)
def test_complete_input_is_read(sql: str) -> None:
    assert parse_query(sql)
