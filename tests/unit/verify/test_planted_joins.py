"""Bugs of joins that are planted for a while: trials of statements that join find each of them, and make it small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dpsql.compiler.analysis import public_rows, units
from dpsql.compiler.plan.expressions import split_conjuncts
from dpsql.compiler.plan.relations import Join, RowsHole, Scan
from dpsql.compiler.render import relations
from dpsql.schema.model import Contributions, Neighbors, Schema
from dpsql.verify import run, shrink
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.join_queries import random_key_query, random_public_query
from dpsql.verify.generate.neighbors import extreme_pair
from dpsql.verify.generate.queries import random_aggregate_query
from dpsql.verify.generate.schemas import GeneratedSchema, random_schema
from dpsql.verify.report import Counterexample
from dpsql.verify.run import run_batch

pytestmark = pytest.mark.slow

Maker = Callable[[GeneratedSchema, ChoiceStream], str | None]
MAX_BATCHES = 40
"""Of eight statements each."""


def find_bug(shape: str, maker: Maker, monkeypatch: pytest.MonkeyPatch) -> Counterexample:
    """The first counterexample of statements of one kind, on units at the far end."""

    def random_query(generated: GeneratedSchema, choices: ChoiceStream) -> str:
        return maker(generated, choices) or random_aggregate_query(generated, choices)

    monkeypatch.setattr(run, "random_query", random_query)
    monkeypatch.setattr(shrink, "random_query", random_query)
    monkeypatch.setattr(run, "random_pair", extreme_pair)
    monkeypatch.setattr(run, "SHRINK_SECONDS", 6.0)
    for number in range(MAX_BATCHES):
        findings = run_batch(_schema_of(shape, number), 3000 + number)[1]
        if findings:
            return findings[0]
    raise AssertionError("the planted bug was not found")


def _schema_of(shape: str, number: int) -> Schema:
    """Under add_remove. Without a cap on rows what a unit moves is what the plan proves that it has."""
    for attempt in range(99):
        schema = random_schema(ChoiceStream(f"joins {shape} {number} {attempt}"), shape)
        asked = schema.table("prices") is not None if shape == "unique" else _has_keys(schema)
        if asked:
            limits = Contributions(None, 4)
            privacy = replace(schema.privacy, neighbors=Neighbors.ADD_REMOVE, contributions=limits, group_size=1)
            return replace(schema, privacy=privacy)
    raise AssertionError("no such schema")


def _has_keys(schema: Schema) -> bool:
    return any(len(key) > 1 for table in schema.tables if table.unit is not None for key in table.unique) or any(
        column.determines_unit for table in schema.tables for column in table.columns
    )


def test_nothing_is_found_where_nothing_is_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.unit.verify.test_planted_joins.MAX_BATCHES", 3)
    for shape, maker in (("composite", random_key_query), ("unique", random_public_query)):
        with pytest.raises(AssertionError, match="not found"):
            find_bug(shape, maker, monkeypatch)


@pytest.mark.parametrize("half", [slice(None, 1), slice(1, None)])
def test_a_row_that_finds_its_unit_by_half_of_a_key(half: slice, monkeypatch: pytest.MonkeyPatch) -> None:
    real = relations._render_scan

    def render_scan(node: Scan) -> str:
        if node.unit is None:
            return real(node)
        hops = [(hop, hop.pairs[half]) for hop in node.unit.hops]
        halved = tuple(
            replace(hop, column=pairs[0][0], key=pairs[0][1], also=pairs[1:]) if hop.also else hop
            for hop, pairs in hops
        )
        return real(replace(node, unit=replace(node.unit, hops=halved)))

    monkeypatch.setattr(relations, "_render_scan", render_scan)
    found = find_bug("composite", random_key_query, monkeypatch)
    assert "returns" in found.sql and len(found.sql) < 200


def test_ids_that_are_not_compared_beside_a_column_that_determines_the_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    real = relations._render_join

    def render_without_ids(node: Join) -> str:
        return real(node).replace("l._uid = r._uid AND ", "")

    monkeypatch.setattr(relations, "_render_join", render_without_ids)
    found = find_bug("own", random_key_query, monkeypatch)
    assert "ref" in found.sql and len(found.sql) < 200


def test_public_rows_that_are_counted_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    real = public_rows.max_join_matches

    def max_join_matches(join: Join) -> int:
        return real(replace(join, matches=None if join.matches is None else 1))

    monkeypatch.setattr(units, "max_join_matches", max_join_matches)
    found = find_bug("unique", random_public_query, monkeypatch)
    assert "prices" in found.sql and any(text.startswith("L1") for text in found.findings)


def test_a_group_that_is_looked_up_by_a_part_of_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is claimed to be one row, and several are met."""
    real = relations._render_join

    def render_join(node: Join) -> str:
        if isinstance(node.right, RowsHole) and node.right.unique:
            parts = split_conjuncts(node.condition)
            node = replace(node, condition=parts[0])
        return real(node)

    monkeypatch.setattr(relations, "_render_join", render_join)
    assert "AS z WHERE" in find_bug("unique", random_public_query, monkeypatch).sql
