"""Looking at the rows of found tables, when the owner asks for it: what bounds, values and norms they suggest."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from dpsql.engines.measure import RunQuery, ColumnFacts, measure_columns, find_common_values, count_rows_per_unit
from dpsql.engines.owner import DuckDBAdmin
from dpsql.engines.structure import IntrospectedColumn, IntrospectedTable
from dpsql.owner.columns import is_personal
from dpsql.owner.draft import DataProposals
from dpsql.owner.proposals import (
    MIN_UNITS,
    MAX_VALUES,
    ColumnProposal,
    round_up,
    propose_bounds,
    propose_length,
    histogram_quantile,
)
from dpsql.owner.relate import UnitCandidate, is_id_column
from dpsql.owner.scratch import open_temp_folder
from dpsql.owner.sources import DataSources
from dpsql.schema.domain import Domain
from dpsql.schema.model import Column, Files, Schema, Source
from dpsql.schema.places import MEMORY_URL
from dpsql.types import Kind

UNCLIPPED_SHARE = Fraction(99, 100)
"""Units that a proposed norm does not clip (PEERS.md 1: near the 99th percentile is best)."""


def propose_from_data(sources: DataSources, unit: UnitCandidate | None) -> DataProposals:
    """Proposals for all columns that are no ids; the norm of a unit comes with the schema that the draft makes."""
    columns: dict[tuple[str, str], ColumnProposal] = {}
    with open_sources(sources) as (owner, sources_by_table):
        for table in sources.tables:
            open_columns = [column_info for column_info in table.columns if _needs_proposal(column_info)]
            declared = [_to_column(column_info) for column_info in open_columns]
            if not declared:
                continue
            id_ = _unit_id_column(unit, table)
            _, facts = measure_columns(owner.query_rows, sources_by_table[table.name], declared)
            for column_info, column in zip(open_columns, declared, strict=True):
                proposal = _propose_column(owner.query_rows, sources_by_table[table.name], column_info, column, facts[column.name], id_)
                columns[table.name, column.name] = proposal
    return DataProposals(columns)


def propose_norm(schema: Schema, sources: DataSources) -> int | None:
    """The rows of all but a few units, in the table where they have most; of a schema that the draft has made."""
    with open_sources(sources) as (owner, sources_by_table):
        norms = [
            histogram_quantile(histogram, UNCLIPPED_SHARE)
            for table in schema.tables
            if table.unit is not None and (histogram := count_rows_per_unit(owner.query_rows, schema, table, sources_by_table))
        ]
    return round_up(max(norms)) if norms else None


def _needs_proposal(column: IntrospectedColumn) -> bool:
    """A column whose bounds or values constraints leave open."""
    return column.type is not None and not column.values and not is_id_column(column) and not is_personal(column)


def _to_column(column: IntrospectedColumn) -> Column:
    assert column.type is not None
    return Column(column.name, Domain(column.type, True), max_length=column.length or 1 << 20)


def _unit_id_column(unit: UnitCandidate | None, table: IntrospectedTable) -> str | None:
    """The column of the table that leads to the unit, if there is one."""
    if unit is None or table.name == unit.table:
        return None if unit is None else unit.column
    return unit.ways[table.name].column if table.name in unit.ways else None


def _propose_column(
    ask: RunQuery, source: Source, column_info: IntrospectedColumn, column: Column, facts: ColumnFacts, unit: str | None
) -> ColumnProposal:
    type_ = column.type
    if type_.is_number or type_.is_time:
        return ColumnProposal(bounds=propose_bounds(facts, type_))
    if type_.kind is not Kind.TEXT or not facts.fit:
        return ColumnProposal()
    length = None if column_info.length else propose_length(facts)
    if facts.distinct > 2 * MAX_VALUES:  # a sketch: some leeway before all are counted
        return ColumnProposal(max_length=length)
    common = find_common_values(ask, source, column, unit, MIN_UNITS, MAX_VALUES)
    if common is None or not common[0] or any(not value.isprintable() for value in common[0]):
        return ColumnProposal(max_length=length)
    return ColumnProposal(values=common[0], left_out=common[1])


@contextmanager
def open_sources(sources: DataSources) -> Iterator[tuple[DuckDBAdmin, dict[str, Source]]]:
    """A connection, and where it reads each table: CSV files in typed copies that are gone at the end."""
    url = MEMORY_URL if sources.database is None else f"duckdb:///{sources.database}"
    with open_temp_folder("look") as folder, DuckDBAdmin(url) as owner:
        yield owner, dict(_readable_sources(owner, sources.tables, folder))


def _readable_sources(owner: DuckDBAdmin, tables: Sequence[IntrospectedTable], folder: Path) -> Iterator[tuple[str, Source]]:
    for number, table in enumerate(tables):
        source = table.source
        if isinstance(source, Files):
            paths = sorted({path for pattern in source.patterns for path in glob.glob(pattern, recursive=True)})
            source = replace(source, patterns=tuple(paths))
        if isinstance(source, Files) and source.format != "parquet":
            copy = folder / "copies" / f"{number}.parquet"
            owner.write_snapshot(source, [_to_column(column) for column in table.columns if column.type is not None], copy)
            source = Files((str(copy),), "parquet")
        yield table.name, source
