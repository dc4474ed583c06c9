"""The canonical form: one question has one text, another question another."""

from dataclasses import replace

import pytest

from dpsql.compiler.analysis.canonical import canonical_expr_text, canonical_plan_text
from dpsql.compiler.compile import Settings, compile_query
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.plan.expressions import FALSE, TRUE, Call, Case, Column, Compare, Expr, Literal, Not
from dpsql.compiler.plan.relations import Named
from dpsql.compiler.settings import default_settings
from dpsql.compiler.split.split import split_query
from dpsql.schema.model import Resolved
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, TEXT

SAME = [
    ("cost > 1 AND score = 2", "score = 2 AND cost > 1"),
    ("cost > 1 AND (score = 2 AND kind = 'a')", "(kind = 'a' AND cost > 1) AND score = 2"),
    ("cost > 1 AND cost > 1", "cost > 1"),
    ("1 < cost", "cost > 1"),
    ("score > 5", "score >= 6"),
    ("visit_id < 5", "4 >= visit_id"),
    ("NOT (cost > 1 OR score = 2)", "cost <= 1 AND score <> 2"),
    ("score BETWEEN 1 AND 3", "score >= 1 AND score <= 3"),
    ("NOT (cost > 1 OR visit_id < 2)", "cost <= 1 AND visit_id >= 2"),
    ("NOT NOT cost > 1", "cost > 1"),
    ("kind = 'a' OR kind = 'b'", "kind IN ('b', 'a', 'b')"),
    ("kind = 'a' OR kind IN ('b', 'c')", "kind IN ('c', 'b') OR 'a' = kind"),
    ("kind = 'a'", "kind IN ('a')"),
    ("cost + score = 3", "3 = score + cost"),
    ("cost * score = 3", "score * cost = 3"),
    ("cost > 1 AND TRUE", "cost > 1"),
    ("kind = 'a'", "visits.Kind = 'a'"),
]
DIFFERENT = [
    ("cost > 1", "cost >= 1"),
    ("cost >= 2", "cost > 1"),  # a double between 1 and 2
    ("score - cost = 3", "cost - score = 3"),
    ("(cost + score) + nights = 3", "cost + (score + nights) = 3"),  # doubles do not associate
    ("kind = 'a'", "ward = 'a'"),
    ("kind = '1'", "kind = '1 '"),
    ("cost > 1 AND score = 2", "cost > 1 OR score = 2"),
    ("kind IN ('a', NULL)", "kind IN ('a')"),
    ("NOT kind IN ('a', NULL)", "NOT kind IN ('a')"),
    ("score = 1", "paid = 1"),
]


def text(sql: str, resolved: Resolved) -> str:
    (release,) = split_query(parse_query(sql), resolved.schema).releases
    return canonical_plan_text(release.aggregate)


def counting(condition: str) -> str:
    return f"SELECT COUNT(*) FROM visits WHERE {condition}"


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_one_condition_are_one(one: str, other: str, clinic: Resolved) -> None:
    assert text(counting(one), clinic) == text(counting(other), clinic)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_conditions_that_differ_on_some_row_differ(one: str, other: str, clinic: Resolved) -> None:
    assert text(counting(one), clinic) != text(counting(other), clinic)


def test_order_and_names_of_outputs_do_not_matter(clinic: Resolved) -> None:
    one = "SELECT kind, ward, COUNT(*), SUM(cost) FROM visits GROUP BY 1, 2"
    other = "SELECT SUM(cost) AS s, ward AS w, COUNT(1), kind FROM visits v GROUP BY kind, w ORDER BY s"
    assert text(one, clinic) == text(other, clinic)


def test_keys_that_change_positions_are_another_plan(clinic: Resolved) -> None:
    """What is stored is read by the names of keys and the places of cells."""
    sql = "SELECT kind, ward, COUNT(*), SUM(cost) FROM visits GROUP BY 1, 2"
    (release,) = split_query(parse_query(sql), clinic.schema).releases
    plan = release.aggregate
    one, other = plan.keys
    turned = replace(plan, keys=(Named(one.name, other.expr), Named(other.name, one.expr)))
    assert len(set(map(canonical_plan_text, (plan, turned, replace(plan, measures=plan.measures[::-1]))))) == 3


def test_nested_cases_take_no_longer_than_their_text() -> None:
    """Twice for each level would be 2^n times for n."""
    expr: Expr = Column("b", BOOLEAN)
    for _ in range(40):
        expr = Case(((Call("coalesce", (expr, FALSE), BOOLEAN), TRUE),), FALSE, BOOLEAN)
    assert canonical_expr_text(expr).count("case") == 40


def test_filters_of_sub_selects_are_not_lost(clinic: Resolved) -> None:
    inner = "SELECT COUNT(*) FROM (SELECT cost FROM visits WHERE kind = 'urgent') s"
    assert text(inner, clinic) != text("SELECT COUNT(*) FROM (SELECT cost FROM visits) s", clinic)


def test_literals_keep_their_type() -> None:
    whole, double, word = Literal(1, BIGINT), Literal(1.0, DOUBLE), Literal("1", TEXT)
    assert len({canonical_expr_text(literal) for literal in (whole, double, word)}) == 3


def test_not_of_a_comparison_is_its_opposite() -> None:
    column = Column("x", DOUBLE)
    for op, opposite in (("=", "<>"), ("<", ">="), ("<=", ">")):
        one = Not(Compare(op, column, Literal(1.0, DOUBLE)))
        assert canonical_expr_text(one) == canonical_expr_text(Compare(opposite, column, Literal(1.0, DOUBLE)))


# --- the hash that a stored release is found by ----------------------------------------------------------------------


def plan_hash(resolved: Resolved, settings: Settings | None = None, sql: str = "SELECT COUNT(*) FROM visits") -> str:
    chosen = settings or default_settings(resolved.schema.privacy).statement
    return compile_query(sql, resolved, chosen).steps[0].plan_hash


def test_epsilon_and_delta_are_no_part_of_the_hash(clinic: Resolved) -> None:
    settings = default_settings(clinic.schema.privacy).statement
    other = replace(settings, epsilon=settings.epsilon / 3, delta=settings.delta / 7)
    assert plan_hash(clinic) == plan_hash(clinic, other)


def test_caps_and_noise_are_part_of_the_hash(clinic: Resolved) -> None:
    settings = default_settings(clinic.schema.privacy).statement
    others = [replace(settings, rows=2), replace(settings, delta=settings.delta * 0)]
    assert len({plan_hash(clinic), *(plan_hash(clinic, other) for other in others)}) == 3


def test_a_declared_bound_is_part_of_the_hash(clinic: Resolved) -> None:
    visits = clinic.schema.table("visits")
    assert visits is not None
    columns = tuple(replace(c, grid=None) if c.name == "cost" else c for c in visits.columns)
    tables = tuple(replace(visits, columns=columns) if t is visits else t for t in clinic.schema.tables)
    other = replace(clinic, schema=replace(clinic.schema, tables=tables))
    assert plan_hash(clinic) != plan_hash(other)
