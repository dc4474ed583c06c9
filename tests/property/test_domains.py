"""What an expression is claimed to be, it is, on the worst rows; and no expression ever raises.

Expressions are written as SQL, bound and rendered as for a release, and computed by DuckDB over sanitised rows. A
wrong claim costs accuracy; an expression that raises on some row tells, without noise, that the row is there.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from fractions import Fraction as F
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dpsql.compiler.analysis.domains import derive_domains, domain_of
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.plan.aggregate import Node
from dpsql.compiler.plan.expressions import Column, Expr
from dpsql.compiler.plan.measures import CountValues
from dpsql.compiler.plan.relations import Named, Project
from dpsql.compiler.render.relations import render_rows
from dpsql.compiler.rewrite.make_total import make_total
from dpsql.compiler.rewrite.release_plan import RuleContext
from dpsql.compiler.rewrite.scan_tables import join_by_unit, scan_tables
from dpsql.compiler.split.split import split_query
from dpsql.errors import Error, InternalError
from dpsql.schema.model import Column as SchemaColumn
from dpsql.schema.model import Contributions, Domain, EngineTable, Neighbors, OwnUnit, Privacy, Schema, Table
from dpsql.types import BIGINT, DOUBLE, REAL, decimal_type
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.columns import StoredColumn, engine_type_name, quote_literal
from dpsql.verify.generate.expressions import ExpressionGenerator, ScopedColumn, columns_in_scope
from dpsql.verify.generate.neighbors import random_unit_rows
from dpsql.verify.generate.schemas import (
    AMPLE_BUDGET,
    GeneratedSchema,
    StoredTable,
    generate_from_schema,
    random_schema,
)
from tests.support import duckdb_tables
from tests.support.domain_membership import fits
from tests.support.effort import example_count

pytestmark = pytest.mark.thorough

MANY = settings(
    max_examples=example_count(150), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
SEEDS = st.integers(0, 2**32)


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    return duckdb_tables.connect()


def loaded(seed: int, database: duckdb.DuckDBPyConnection) -> tuple[GeneratedSchema, ChoiceStream]:
    """One table with every extreme value of its columns in it."""
    draws = ChoiceStream(seed)
    world = generate_from_schema(random_schema(draws, "own"), draws)
    (laid,) = world.private_tables
    rows = [row for n in range(4) for row in random_unit_rows(world, draws, n, heavy=True)["events"]]
    longest = max(len(column.pool) for column in laid.columns)
    rows += [("1", *(c.pool[place % len(c.pool)] for c in laid.columns[1:])) for place in range(longest)]
    duckdb_tables.fill(database, "events", [(c.name, c.engine_type) for c in laid.columns], rows)
    return world, draws


def named(world: GeneratedSchema) -> tuple[ScopedColumn, ...]:
    return columns_in_scope(world.private_tables[0], "events")


def bound(sql: str, world: GeneratedSchema) -> tuple[Node, Expr] | None:
    """The rows and the argument of a COUNT, as they would run; None where the statement is refused."""
    try:
        releases = split_query(parse_query(sql), world.schema).releases
        if len(releases) != 1:  # a hole has no values here
            return None
        (release,) = releases
        aggregate = make_total(join_by_unit(scan_tables(release.aggregate, RuleContext(world.resolved_schema))))
    except InternalError:
        raise
    except Error:
        return None
    (measure,) = aggregate.measures
    return (aggregate.input, measure.arg) if isinstance(measure, CountValues) else None


def computed(rows: Node, expr: Expr, database: duckdb.DuckDBPyConnection) -> list[object]:
    sql = render_rows(Project(rows, (Named("v", expr),)))
    return [row[0] for row in database.execute(f"SELECT v FROM ({sql})").fetchall()]


@MANY
@given(SEEDS)
def test_values_lie_within_their_domain(database: duckdb.DuckDBPyConnection, seed: int) -> None:
    world, draws = loaded(seed, database)
    write = ExpressionGenerator(draws, replace(world, tables=world.private_tables), named(world))
    for _ in range(3):
        written = draws.choice(
            (
                write.random_number(draws.draw_between(0, 3)),
                write.random_key(),
                write.random_clipped(2),
                write.random_condition(2),
            )
        )
        found = bound(f"SELECT COUNT({written}) FROM events", world)
        if found is not None:
            rows, expr = found
            domain = domain_of(expr, derive_domains(rows))
            assert domain.type == expr.type, written
            for value in computed(rows, expr, database):
                assert fits(value, domain), (seed, written, value, domain)


@MANY
@given(SEEDS)
def test_a_filter_narrows_to_the_rows_that_it_keeps(database: duckdb.DuckDBPyConnection, seed: int) -> None:
    world, draws = loaded(seed, database)
    names = named(world)
    write = ExpressionGenerator(draws, replace(world, tables=world.private_tables), names)
    for _ in range(2):
        condition, column = write.random_condition(2), draws.choice(names)
        found = bound(f"SELECT COUNT({column.sql}) FROM events WHERE {condition}", world)
        if found is not None and isinstance(found[1], Column):
            rows, expr = found
            domain = derive_domains(rows)[expr.name]
            for value in computed(rows, expr, database):
                assert fits(value, domain), (seed, condition, column.sql, value, domain)


@MANY
@given(SEEDS)
@example(3)
def test_no_expression_raises(database: duckdb.DuckDBPyConnection, seed: int) -> None:
    """Deeper than what a sum is asked of: filters, keys and sub-selects, over every extreme."""
    world, draws = loaded(seed, database)
    write = ExpressionGenerator(draws, replace(world, tables=world.private_tables), named(world))
    for _ in range(3):
        written = draws.choice((write.random_number(4), write.random_key(), write.random_condition(3)))
        found = bound(f"SELECT COUNT({written}) FROM events WHERE {write.random_condition(2)}", world)
        if found is not None:
            computed(*found, database)


def test_a_value_at_a_bound_that_is_no_double(database: duckdb.DuckDBPyConnection) -> None:
    """-0.1 as a REAL lies below -0.1: a filter for it finds the bound that it was clipped to."""
    x = SchemaColumn("x", Domain(DOUBLE, True, F(-1, 10), F(3, 10)), F(1, 100))
    columns = (SchemaColumn("uid", Domain(BIGINT)), x)
    table = Table("events", EngineTable(("events",)), OwnUnit("uid"), (), columns)
    privacy = Privacy(Neighbors.ADD_REMOVE, "events.uid", AMPLE_BUDGET, AMPLE_BUDGET, Contributions(2, 2))
    schema = Schema(Path("x.yaml"), "duckdb://", "sqlite://", privacy, (), (table,))
    stored = (StoredColumn(columns[0], BIGINT, ()), StoredColumn(x, REAL, ()))
    world = GeneratedSchema(schema, (StoredTable(table, stored, frozenset(), False, False),))
    rows = [("1", quote_literal(text, REAL)) for text in ("-0.1", "0.3", "2.5", "-1e30", "nan")]
    duckdb_tables.fill(database, "events", [("uid", "BIGINT"), ("x", engine_type_name(REAL))], rows)
    found = bound("SELECT COUNT(x) FROM events WHERE x IN (-0.1, 1e300, 2.5)", world)
    assert found is not None and isinstance(found[1], Column)
    domain = derive_domains(found[0])[found[1].name]
    values = computed(*found, database)
    assert values and all(fits(value, domain) for value in values), (values, domain)


def test_a_wrong_claim_is_seen() -> None:
    """The comparison itself can fail."""
    claim = Domain(decimal_type(9, 2), False, Fraction(0), Fraction(1))
    assert not fits(Decimal("1.01"), claim)
    assert not fits(None, claim)
    assert fits(Decimal("1.00"), claim)
    assert not fits(math.inf, Domain(decimal_type(9, 2), False, Fraction(0), Fraction(1)))
