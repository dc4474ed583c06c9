"""Looking at the rows of found tables, when the owner asks for it: what bounds, values and norms they suggest."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from dpsql.engines.measure import Ask, ColumnFacts, column_facts, common_values, rows_per_unit
from dpsql.engines.owner import DuckDBOwner
from dpsql.engines.structure import FoundColumn, FoundTable
from dpsql.owner.columns import is_personal
from dpsql.owner.draft import Looked
from dpsql.owner.proposals import (
    LEAST_UNITS,
    MOST_VALUES,
    Proposal,
    nice_up,
    propose_bounds,
    propose_length,
    rank,
)
from dpsql.owner.relate import Candidate, names_rows
from dpsql.owner.scratch import scratch
from dpsql.owner.sources import Sources
from dpsql.schema.domain import Domain
from dpsql.schema.model import Column, Files, Schema, Source
from dpsql.schema.places import MEMORY
from dpsql.types import Kind

MOST_UNITS_KEPT = Fraction(99, 100)
"""Units that a proposed norm does not clip (PEERS.md 1: near the 99th percentile is best)."""


def look(sources: Sources, unit: Candidate | None) -> Looked:
    """Proposals for all columns that are no ids; the norm of a unit comes with the schema that the draft makes."""
    columns: dict[tuple[str, str], Proposal] = {}
    with reading(sources) as (owner, places):
        for table in sources.tables:
            wanted = [found for found in table.columns if _asks(found)]
            declared = [_column(found) for found in wanted]
            if not declared:
                continue
            id_ = _id(unit, table)
            _, facts = column_facts(owner.ask, places[table.name], declared)
            for found, column in zip(wanted, declared, strict=True):
                proposal = _propose(owner.ask, places[table.name], found, column, facts[column.name], id_)
                columns[table.name, column.name] = proposal
    return Looked(columns)


def norm_of(schema: Schema, sources: Sources) -> int | None:
    """The rows of all but a few units, in the table where they have most; of a schema that the draft has made."""
    with reading(sources) as (owner, places):
        found = [
            rank(histogram, MOST_UNITS_KEPT)
            for table in schema.tables
            if table.unit is not None and (histogram := rows_per_unit(owner.ask, schema, table, places))
        ]
    return nice_up(max(found)) if found else None


def _asks(found: FoundColumn) -> bool:
    """A column whose bounds or values constraints leave open."""
    return found.type is not None and not found.values and not names_rows(found) and not is_personal(found)


def _column(found: FoundColumn) -> Column:
    assert found.type is not None
    return Column(found.name, Domain(found.type, True), max_length=found.length or 1 << 20)


def _id(unit: Candidate | None, table: FoundTable) -> str | None:
    """The column of the table that leads to the unit, if there is one."""
    if unit is None or table.name == unit.table:
        return None if unit is None else unit.column
    return unit.ways[table.name].column if table.name in unit.ways else None


def _propose(
    ask: Ask, source: Source, found: FoundColumn, column: Column, facts: ColumnFacts, unit: str | None
) -> Proposal:
    type_ = column.type
    if type_.is_number or type_.is_time:
        return Proposal(bounds=propose_bounds(facts, type_))
    if type_.kind is not Kind.TEXT or not facts.fit:
        return Proposal()
    length = None if found.length else propose_length(facts)
    if facts.distinct > 2 * MOST_VALUES:  # a sketch: some leeway before all are counted
        return Proposal(max_length=length)
    listed = common_values(ask, source, column, unit, LEAST_UNITS, MOST_VALUES)
    if listed is None or not listed[0] or any(not value.isprintable() for value in listed[0]):
        return Proposal(max_length=length)
    return Proposal(values=listed[0], left_out=listed[1])


@contextmanager
def reading(sources: Sources) -> Iterator[tuple[DuckDBOwner, dict[str, Source]]]:
    """A connection, and where it reads each table: CSV files in typed copies that are gone at the end."""
    url = MEMORY if sources.database is None else f"duckdb:///{sources.database}"
    with scratch("look") as folder, DuckDBOwner(url) as owner:
        yield owner, dict(_places(owner, sources.tables, folder))


def _places(owner: DuckDBOwner, tables: Sequence[FoundTable], folder: Path) -> Iterator[tuple[str, Source]]:
    for number, table in enumerate(tables):
        source = table.source
        if isinstance(source, Files):
            paths = sorted({path for pattern in source.patterns for path in glob.glob(pattern, recursive=True)})
            source = replace(source, patterns=tuple(paths))
        if isinstance(source, Files) and source.format != "parquet":
            copy = folder / "copies" / f"{number}.parquet"
            owner.snapshot(source, [_column(found) for found in table.columns if found.type is not None], copy)
            source = Files((str(copy),), "parquet")
        yield table.name, source
