"""GoogleSQL's spelling: options are taken out, bounds per row become CLIP, those per group are kept for the binder."""

import pytest
from sqlglot import exp

from dpsql.compiler.parse.parser import parse_query, parse_query_with_options
from dpsql.errors import Error, InvalidSyntax, Unsupported

CLAUSE = "WITH DIFFERENTIAL_PRIVACY OPTIONS"


def test_options_are_taken_out_of_the_statement() -> None:
    options = "epsilon = 1, delta=1e-6, privacy_unit_column = t.id, max_groups_contributed = NULL"
    sql = f"SELECT {CLAUSE} ({options}) a FROM t"
    parsed = parse_query_with_options(sql)
    assert parsed.query.sql() == "SELECT a FROM t"
    assert [(option.name, option.value) for option in parsed.options] == [
        ("epsilon", "1"), ("delta", "1e-6"), ("privacy_unit_column", "t.id"), ("max_groups_contributed", "NULL"),
    ]  # fmt: skip
    first = parsed.options[0].span
    assert sql[first.start : first.end] == "epsilon = 1"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT WITH DIFFERENTIAL_PRIVACY a FROM t", f"SELECT {CLAUSE} () a FROM t",
        "select with anonymization options () a FROM t",
        "WITH t AS (SELECT 1 AS a) SELECT WITH DIFFERENTIAL_PRIVACY a FROM t",
    ],
)  # fmt: skip
def test_the_clause_may_be_short(sql: str) -> None:
    parsed = parse_query_with_options(sql)
    assert parsed.options == () and parsed.query.sql().endswith("SELECT a FROM t")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM (SELECT {CLAUSE} (epsilon = 1) a FROM t) s",
        f"SELECT 1 UNION ALL SELECT {CLAUSE} (epsilon = 1) a FROM t",
        f"SELECT {CLAUSE} (epsilon = 1) a FROM t UNION ALL SELECT 1",
        f"WITH s AS (SELECT {CLAUSE} (epsilon = 1) a FROM t) SELECT * FROM s",
        f"SELECT (SELECT {CLAUSE} (epsilon = 1) COUNT(*) FROM t)",
    ],
)
def test_options_elsewhere_are_refused(sql: str) -> None:
    with pytest.raises(Unsupported):
        parse_query_with_options(sql)


@pytest.mark.parametrize("inside", ["epsilon", "epsilon 1", "epsilon =", "= 1", "epsilon = 1,", ",", "epsilon = 1"])
def test_options_that_are_no_options_are_refused(inside: str) -> None:
    closing = "" if inside == "epsilon = 1" else ")"
    with pytest.raises(InvalidSyntax):
        parse_query_with_options(f"SELECT {CLAUSE} ({inside}{closing} a FROM t")


def test_a_reader_without_settings_refuses_options() -> None:
    with pytest.raises(Unsupported, match="options"):
        parse_query(f"SELECT {CLAUSE} (epsilon = 1) a FROM t")


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        ("PERCENTILE_CONT(x, 0.5, contribution_bounds_per_row => (0, 9))", "QUANTILE_CONT(CLIP(x, 0, 9), 0.5)"),
        ("ANON_VAR_POP(x CLAMPED BETWEEN -1 AND f(1, 2))", "VARIANCE_POP(CLIP(x, -1, F(1, 2)))"),
        ("SUM(x, contribution_bounds_per_row => (0, 10))", "SUM(CLIP(x, 0, 10))"),
        ("AVG(a + b, contribution_bounds_per_row => (-1.5, f(2, 3)))", "AVG(CLIP(a + b, -1.5, F(2, 3)))"),
        ("SUM(DISTINCT x, contribution_bounds_per_row => (0, 1))", "SUM(DISTINCT CLIP(x, 0, 1))"),
        ("ANON_COUNT(*)", "COUNT(*)"),
        ("anon_sum(x, contribution_bounds_per_row => (0, 1)) / ANON_COUNT(x)", "SUM(CLIP(x, 0, 1)) / COUNT(x)"),
        ("SUM(f(x, y), contribution_bounds_per_row => ((0), (1)))", "SUM(CLIP(F(x, y), (0), (1)))"),
    ],
)
def test_bounds_per_row_are_a_clip(sql: str, plain: str) -> None:
    assert parse_query(f"SELECT {sql} FROM t").sql() == f"SELECT {plain} FROM t"


@pytest.mark.parametrize(
    "sql",
    [
        "SUM(x, contribution_bounds_per_group => (0, 10))", "COUNT(*, contribution_bounds_per_group => (0, 10))",
        "ANON_SUM(x CLAMPED BETWEEN 0 AND 10)", "ANON_AVG(x CLAMPED BETWEEN 0 AND 10)",
        "COUNT(*, contribution_bounds_per_group => (0, 10)) FILTER (WHERE x > 1)",
        "SUM(x, contribution_bounds_per_row => (0, 1), contribution_bounds_per_group => (0, 10))",
    ],
)  # fmt: skip
def test_bounds_per_group_are_kept_for_the_binder(sql: str) -> None:
    parsed = parse_query(f"SELECT {sql} FROM t")
    (bounds,) = (call for call in parsed.find_all(exp.Anonymous) if call.name != "CLIP")
    assert bounds.name.lower() == "contribution_bounds_per_group"
    assert [limit.sql() for limit in bounds.expressions[1:]] == ["0", "10"]


@pytest.mark.parametrize(
    "sql",
    [
        "SUM(contribution_bounds_per_row => (0, 1))", "SUM(x, contribution_bounds_per_row => 1)",
        "SUM(x, contribution_bounds_per_row => (1))", "SUM(x, contribution_bounds_per_row => (1, 2, 3))",
        "contribution_bounds_per_row => (0, 1)", "SUM(x, contribution_bounds_per_row => (0, 1)", "ANON_SUM(",
        "ANON_SUM(x CLAMPED)", "ANON_SUM(x CLAMPED BETWEEN 0)", "ANON_SUM(x CLAMPED 0 AND 1)", "ANON_SUM(CLAMPED",
        "SUM(x contribution_bounds_per_row => (0, 1))", "SUM(x, contribution_bounds_per_row =>",
    ],
)  # fmt: skip
def test_bounds_that_are_none_are_refused(sql: str) -> None:
    with pytest.raises(Error):
        parse_query(f"SELECT {sql}")
