"""Nothing is dropped silently: a field that is set on any node of a block over private rows is read or refused."""

import datetime as dt
from collections.abc import Iterator
from itertools import islice

import pytest
from sqlglot import exp

from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.postprocess.postgres_semantics import render_postprocessing
from dpsql.compiler.split.split import split_query
from dpsql.errors import Error
from dpsql.schema.model import Resolved

QUERIES = (
    """
    SELECT kind, COUNT(*), COUNT(note), SUM(cost + 1), COUNT(DISTINCT v.patient_id),
      AVG(CASE WHEN score > 1 THEN paid END) FILTER (WHERE ward LIKE 'a%')
    FROM visits v JOIN (SELECT patient_id, sex FROM patients WHERE insured) s ON v.patient_id = s.patient_id
    WHERE ward IN ('a', 'b') AND score BETWEEN 1 AND 3 AND NOT (note IS NULL) AND EXTRACT(year FROM at) = 2024
      AND date_trunc('month', at) > '2024-01-01' AND CAST(nights AS bigint) = -3 AND coalesce(score, 0) = 2
      AND substring(ward, 1, 2) = 'a' AND trim(note) || 'x' = lower(ward) AND round(cost, 1) = abs(cost)
      AND greatest(cost, 1) > 2 AND nullif(score, 1) = 3
    GROUP BY kind
    """,
    "WITH a AS (SELECT cost FROM visits) SELECT SUM(cost) FROM a",
    "SELECT DISTINCT kind FROM visits JOIN patients USING (patient_id)",
    "SELECT COUNT(*) FROM (SELECT cost FROM visits ORDER BY cost) s",
)

# What may be set without any effect, and why.
WITHOUT_EFFECT = {
    ("CTE", "materialized"): "how a CTE is computed, not what it is",
    ("Cast", "safe"): "every cast over private rows is total",
    ("Column", "table"): "a qualifier of no text is none",
    ("Column", "db"): "a qualifier of no text is none",
    ("Column", "catalog"): "the name of the database may qualify",
    ("Table", "db"): "a qualifier of no text is none",
    ("Table", "catalog"): "the name of the database may qualify",
    ("Table", "alias"): "an alias that nothing refers to",
    ("Identifier", "quoted"): "names match without regard to case",
    ("Identifier", "global_"): "the reader never sets it",
    ("Identifier", "temporary"): "the reader never sets it",
    ("Column", "join_mark"): "the reader never sets it: Oracle's (+)",
    ("Column", "shadow"): "the reader never sets it",
    ("DataType", "kind"): "the reader never sets it",
    ("DataType", "nested"): "part of the type's text",
    ("DataType", "nullable"): "the reader never sets it: ClickHouse's",
    ("DataType", "values"): "the reader never sets it",
    ("Join", "on"): "ON beside USING: the reader never sets both",
    ("Literal", "is_string"): "a number in quotes is read as that number",
    ("Order", "this"): "the reader never sets it",
    ("Order", "siblings"): "ORDER BY below an aggregate is dropped",
    ("Ordered", "desc"): "ORDER BY below an aggregate is dropped",
    ("Ordered", "nulls_first"): "ORDER BY below an aggregate is dropped",
    ("Ordered", "with_fill"): "ORDER BY below an aggregate is dropped",
    ("With", "recursive"): "a CTE that does not read itself is the same with it",
    ("Select", "order"): "ORDER BY below an aggregate is dropped",
}


Place = tuple[str, int, str, str]


def settable() -> Iterator[Place]:
    """Each kind of node in each kind of place, with each of its fields that the query leaves unset."""
    seen = set()
    for sql in QUERIES:
        for place, node in enumerate(parse_query(sql).walk()):
            for field in node.arg_types:
                key = (type(node), type(node.parent), node.arg_key, field)
                if not node.args.get(field) and key not in seen:
                    seen.add(key)
                    yield sql, place, type(node).__name__, field


def meaning(tree: exp.Query, resolved: Resolved) -> object:
    result = split_query(tree, resolved.schema, dt.datetime(2024, 1, 1))
    return render_postprocessing(result.post), [str(release.aggregate) for release in result.releases]


def found(resolved: Resolved) -> dict[tuple[str, str], str]:
    """What is dropped, with a query that shows it."""
    trees = {sql: parse_query(sql) for sql in QUERIES}
    plain = {sql: meaning(parse_query(sql), resolved) for sql in QUERIES}
    result: dict[tuple[str, str], str] = {}
    for sql, place, node, field in settable():
        for value in (exp.column("zzz"), True) if (node, field) not in result else ():
            tree = trees[sql].copy()
            next(islice(tree.walk(), place, None)).set(field, value)
            try:
                if meaning(tree, resolved) == plain[sql]:
                    result[node, field] = sql
            except (Error, AttributeError, TypeError, ValueError):
                pass  # refused, or a value that no reader would put there
    return result


@pytest.fixture(scope="module")
def silently_dropped(clinic: Resolved) -> dict[tuple[str, str], str]:
    return found(clinic)


def test_a_field_that_is_not_read_is_refused(silently_dropped: dict[tuple[str, str], str]) -> None:
    assert {name: sql for name, sql in silently_dropped.items() if name not in WITHOUT_EFFECT} == {}


def test_the_exceptions_are_still_needed(silently_dropped: dict[tuple[str, str], str]) -> None:
    assert set(WITHOUT_EFFECT) - set(silently_dropped) == set()
