"""What a refusal proposes is not refused itself."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from dpsql.compiler import settings
from dpsql.compiler.compile import compile_query
from dpsql.compiler.parse.commands import read_command
from dpsql.compiler.parse.create_commands import CreateCommand
from dpsql.compiler.parse.parser import REFUSED_STATEMENTS, refuse_statement
from dpsql.compiler.rewrite.weighted_rows import ColumnCoding
from dpsql.compiler.weighted_rows import compile_study, compile_weighted_rows
from dpsql.errors import NotPrivate, Unsupported
from dpsql.schema.load import load_schema
from dpsql.schema.model import Resolved
from tests.support.count_study import counts
from tests.support.effort import draw_some

GOLDEN = Path(__file__).parents[3] / "golden"
CORPUS = Path(__file__).parents[3] / "corpus"
SHIPPED = Path(__file__).parents[4] / "schemas"


def resolved(path: Path) -> Resolved:
    loaded = load_schema(path)
    schema = replace(loaded, tables=tuple(replace(table, preview=False) for table in loaded.tables))
    physical = {table.name: {column.name: column.type for column in table.columns} for table in schema.tables}
    return Resolved(schema, 1, {table.name: table.source for table in schema.tables}, physical, "")


def compiled(sql: str, data: Resolved) -> None:
    compile_query(sql, data, settings.default_settings(data.schema.privacy).statement)


def proposed(sql: str, data: Resolved) -> str:
    with pytest.raises(NotPrivate) as caught:
        compiled(sql, data)
    aggregate, _, _ = str(caught.value.hint).partition(" For rows like them: ")
    assert aggregate.startswith("Aggregate, for example: ")
    return aggregate.removeprefix("Aggregate, for example: ").removesuffix(".")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "path", [GOLDEN / "schema.yaml", CORPUS / "hospital.yaml", CORPUS / "tpch.yaml", SHIPPED / "clinic.yaml",
             SHIPPED / "events.yaml", SHIPPED / "events_by_row.yaml", SHIPPED / "poll.yaml", SHIPPED / "survey.yaml"],
    ids=lambda p: p.stem,
)  # fmt: skip
def test_what_is_proposed_compiles(path: Path) -> None:
    data = resolved(path)
    for table in data.schema.tables:
        if table.public:
            continue
        names = [f'"{column.name}"' for column in table.columns]
        pairs = draw_some(list(itertools.permutations(names, 2)))
        for columns in [*pairs, *[(name,) for name in names], ("*",)]:
            selected = ", ".join(columns)
            for sql in (
                f'SELECT {selected} FROM "{table.name}"',
                f'SELECT {selected} FROM (SELECT * FROM "{table.name}") AS t',
                f'WITH c AS (SELECT * FROM "{table.name}") SELECT {selected} FROM c',
            ):
                compiled(proposed(sql, data), data)


@pytest.mark.parametrize(
    ("sql", "better"),
    [
        ("SELECT patient_id, cost, ward FROM visits", "SELECT ward, COUNT(*) FROM visits GROUP BY ward"),
        ("SELECT patient_id FROM visits", "SELECT COUNT(*) FROM visits"),
        ("SELECT p.patient_id FROM visits v LEFT JOIN patients p ON v.patient_id = p.patient_id",
         "SELECT COUNT(*) FROM visits"),
        ("SELECT a FROM (SELECT ward AS a FROM visits) AS t", "SELECT ward, COUNT(*) FROM visits GROUP BY ward"),
        ("WITH patients AS (SELECT cost + 1 AS a FROM visits) SELECT a FROM patients", "SELECT COUNT(*) FROM visits"),
    ],
)  # fmt: skip
def test_what_is_proposed(sql: str, better: str) -> None:
    data = resolved(GOLDEN / "schema.yaml")
    assert proposed(sql, data) == better
    compiled(better, data)


def test_only_a_refused_create_mentions_with() -> None:
    for word in sorted(word for family in REFUSED_STATEMENTS for word in family.words):
        with pytest.raises(Unsupported) as caught:
            refuse_statement(word, None)
        assert ("WITH" in str(caught.value.hint)) is (word == "CREATE")


@pytest.mark.parametrize(
    "path", [GOLDEN / "schema.yaml", CORPUS / "hospital.yaml", CORPUS / "tpch.yaml", SHIPPED / "clinic.yaml",
             SHIPPED / "events.yaml", SHIPPED / "survey.yaml"],
    ids=lambda p: p.stem,
)  # fmt: skip
@pytest.mark.parametrize("limit", ["", " LIMIT 10"])
def test_a_query_for_rows_is_offered_synthetic_ones(path: Path, limit: str) -> None:
    """And what is proposed can be made."""
    data, offered = resolved(path), 0
    for table in data.schema.tables:
        if table.public:
            continue
        with pytest.raises(NotPrivate) as caught:
            compiled(f'SELECT * FROM "{table.name}"{limit}', data)
        _, said, proposal = (caught.value.hint or "").partition(" For rows like them: ")
        if said:
            command = read_command(proposal.removesuffix("."))
            assert isinstance(command, CreateCommand)
            rows = compile_weighted_rows(
                proposal, command.query, data, settings.default_settings(data.schema.privacy).statement
            )
            assert not rows.unknown_columns
            compile_study(rows, ColumnCoding(16, {}, nulls=True), counts)
            offered += 1
    assert offered or path.stem == "survey"
