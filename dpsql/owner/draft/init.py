"""Drafting a schema: from sources to a file that loads, and the list of what is left to decide."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from dpsql.base.private_files import open_private_file
from dpsql.engines.duckdb_admin import DuckDBAdmin
from dpsql.errors import InterfaceError, OperationalError
from dpsql.owner.draft.columns import is_personal
from dpsql.owner.draft.draft import DataProposals, write_draft
from dpsql.owner.draft.draft import Decision as Decision
from dpsql.owner.draft.draft import DraftOptions as DraftOptions
from dpsql.owner.draft.draft import SchemaDraft as SchemaDraft
from dpsql.owner.draft.relationships import UnitCandidate, find_candidates, is_id_column, make_candidate
from dpsql.owner.draft.sources import DataSources, to_file_name
from dpsql.owner.draft.sources import find_sources as find_sources
from dpsql.owner.draft.suggestions import (
    MAX_INTEGERS,
    MAX_VALUES,
    MIN_UNITS,
    ColumnProposal,
    RepeatedColumn,
    propose_bounds,
    propose_length,
    rank_repeated_columns,
    usual_range,
)
from dpsql.owner.introspect.statistics import (
    ColumnFacts,
    RunQuery,
    find_common_values,
    find_time_of_texts,
    measure_columns,
)
from dpsql.owner.introspect.tables import IntrospectedColumn, IntrospectedTable
from dpsql.owner.temp_folder import open_temp_folder
from dpsql.schema.document import closest_name, printable_text, quote_text
from dpsql.schema.keys import ANALYST_NAME, MAX_EPSILON
from dpsql.schema.literals import read_number
from dpsql.schema.load import load_schema
from dpsql.schema.locations import MEMORY_URL
from dpsql.schema.model import Column, Domain, Files, Source
from dpsql.types import Kind, Type

MAX_KEY_VALUES = 100
"""Values of a column that is proposed as a unit's key: with more, the key bounds nothing."""

# Looking at the rows of found tables, when the owner asks for it: what bounds and values they suggest.


def propose_from_data(sources: DataSources, unit: UnitCandidate | None) -> DataProposals:
    """Proposals for all columns that are no ids."""
    columns: dict[tuple[str, str], ColumnProposal] = {}
    keys: dict[str, str] = {}
    public_keys: dict[str, str] = {}
    repeated: list[RepeatedColumn] = []
    unit_repeats = False
    with open_sources(sources) as (owner, sources_by_table):
        for table in sources.tables:
            open_columns = [column_info for column_info in table.columns if _needs_proposal(column_info)]
            declared = [_to_column(column_info) for column_info in open_columns]
            if unit is not None and table.name == unit.table:
                unit_repeats = _has_duplicates(owner, sources_by_table[table.name], table, unit.column)
            if not declared:
                continue
            id_ = _unit_id_column(unit, table)
            _, facts = measure_columns(owner.query_rows, sources_by_table[table.name], declared)
            for column_info, column in zip(open_columns, declared, strict=True):
                proposal = _propose_column(
                    owner.query_rows, sources_by_table[table.name], column_info, column, facts[column.name], id_
                )
                columns[table.name, column.name] = proposal
            key = None if id_ is None else _find_unit_key(owner, sources_by_table[table.name], table, id_, columns)
            if key is not None:
                keys[table.name] = key
            if unit is None:
                repeated += _find_repeated_columns(table, facts, columns)
            elif id_ is None and (public_key := _find_public_key(owner, sources_by_table[table.name], table)):
                public_keys[table.name] = public_key
    return DataProposals(columns, keys, public_keys, rank_repeated_columns(repeated), unit_repeats)


def _has_duplicates(owner: DuckDBAdmin, source: Source, table: IntrospectedTable, name: str) -> bool:
    column = table.find_column(name)
    return column is not None and column.type is not None and owner.has_duplicates(source, [_to_column(column)], {name})


def _find_repeated_columns(
    table: IntrospectedTable,
    facts: Mapping[str, ColumnFacts],
    proposals: Mapping[tuple[str, str], ColumnProposal],
) -> Iterator[RepeatedColumn]:
    """Columns that may name people, each in several rows."""
    for column in table.columns:
        proposal, measured = proposals.get((table.name, column.name)), facts.get(column.name)
        if column.type is None or proposal is None or measured is None or proposal.values or proposal.type is not None:
            continue
        repeated = RepeatedColumn.of(table.name, column.name, column.type, measured)
        if repeated is not None:
            yield repeated


def _find_public_key(owner: DuckDBAdmin, source: Source, table: IntrospectedTable) -> str | None:
    """The first column that names a row, of a table that leads to no unit."""
    if table.unique:
        return None
    for column in table.columns:
        if column.type is None or not (column.type.is_integer or column.type.kind in (Kind.TEXT, Kind.UUID)):
            continue
        _, facts = measure_columns(owner.query_rows, source, [_to_column(column)])
        is_full = facts[column.name].fit == facts[column.name].present > 1
        return column.name if is_full and not owner.has_duplicates(source, [_to_column(column)]) else None
    return None


def _find_unit_key(
    owner: DuckDBAdmin,
    source: Source,
    table: IntrospectedTable,
    unit: str,
    proposals: Mapping[tuple[str, str], ColumnProposal],
) -> str | None:
    """A column of few values of which no two rows of a unit share one, where units have several rows."""
    id_ = next((_to_column(c) for c in table.columns if c.name == unit and c.type is not None), None)
    if id_ is None or any(unit in key for key in table.unique) or not owner.has_duplicates(source, [id_], {unit}):
        return None
    for column_info in table.columns:
        proposal = proposals.get((table.name, column_info.name))
        if proposal is None or column_info.type is None:
            continue
        domain = _proposed_domain(proposal, column_info.type)
        if domain is not None and not owner.has_duplicates(
            source, [id_, replace(_to_column(column_info), domain=domain)], {unit}
        ):
            return column_info.name
    return None


def _proposed_domain(proposal: ColumnProposal, type_: Type) -> Domain | None:
    """The few values that a column is drafted with; None where it has many, or no list."""
    if proposal.values:
        return Domain(type_, True, values=proposal.values)
    if proposal.bounds is None or not type_.is_integer:
        return None
    lower, upper = (read_number(text) for text in proposal.bounds)
    few = lower is not None and upper is not None and upper - lower < MAX_KEY_VALUES
    return Domain(type_, True, lower, upper) if few else None


def _needs_proposal(column: IntrospectedColumn) -> bool:
    """A column whose bounds or values constraints leave open."""
    return column.type is not None and not column.values and not is_id_column(column) and not is_personal(column)


def _to_column(column: IntrospectedColumn) -> Column:
    assert column.type is not None
    return Column(column.name, Domain(column.type, True), max_length=column.length or 1 << 20, format=column.format)


def _unit_id_column(unit: UnitCandidate | None, table: IntrospectedTable) -> str | None:
    """The column of the table that leads to the unit, if there is one."""
    if unit is None or table.name == unit.table:
        return None if unit is None else unit.column
    return unit.links_to_unit[table.name].column if table.name in unit.links_to_unit else None


def _propose_column(
    ask: RunQuery, source: Source, column_info: IntrospectedColumn, column: Column, facts: ColumnFacts, unit: str | None
) -> ColumnProposal:
    type_ = column.type
    if type_.is_integer and facts.distinct <= 2 * MAX_INTEGERS and usual_range(column.name) is None:
        integers = find_common_values(ask, source, column, unit, MIN_UNITS, MAX_INTEGERS)
        if integers is not None and not integers[1] and len(integers[0]) > 1:
            return ColumnProposal(values=tuple(sorted(integers[0], key=int)))
    if type_.is_number or type_.is_time:
        return ColumnProposal(bounds=propose_bounds(facts, type_, column.name))
    if type_.kind is not Kind.TEXT or not facts.fit:
        return ColumnProposal()
    time = find_time_of_texts(ask, source, column)
    if time is not None:
        dated = replace(column, domain=Domain(time, True))
        _, measured = measure_columns(ask, source, [dated])
        return ColumnProposal(bounds=propose_bounds(measured[column.name], time), type=time)
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


def _readable_sources(
    owner: DuckDBAdmin, tables: Sequence[IntrospectedTable], folder: Path
) -> Iterator[tuple[str, Source]]:
    for number, table in enumerate(tables):
        source = table.source
        if isinstance(source, Files):
            paths = sorted({path for pattern in source.patterns for path in glob.glob(pattern, recursive=True)})
            source = replace(source, patterns=tuple(paths))
        if isinstance(source, Files) and source.format != "parquet":
            copy = folder / "copies" / f"{number}.parquet"
            owner.write_snapshot(
                source, [_to_column(column) for column in table.columns if column.type is not None], copy
            )
            source = Files((str(copy),), "parquet")
        yield table.name, source


ROW_UNIT = "row"
ChooseUnit = Callable[[Sequence[UnitCandidate]], UnitCandidate]


@dataclass(frozen=True)
class DraftResult:
    """A draft, its unit among the candidates for it, and how it was chosen: "named", "picked" or "asked"."""

    draft: SchemaDraft
    candidates: tuple[UnitCandidate, ...]
    chosen: str


def read_draft_options(
    epsilon: str | None, delta: str | None, neighbors: str | None, analysts: Sequence[str] = ()
) -> DraftOptions:
    """What the owner has typed; None is the default. ValueError says what it should be."""
    options = DraftOptions()
    if epsilon is not None:
        max_epsilon = MAX_EPSILON
        options = replace(
            options, epsilon=_parse_number("epsilon", epsilon, "a number above 0", lambda n: 0 < n <= max_epsilon)
        )
    if delta is not None:
        options = replace(options, delta=_parse_number("delta", delta, "from 0 to below 1", lambda n: 0 <= n < 1))
    for name in analysts:
        if not re.fullmatch(ANALYST_NAME, name):
            raise ValueError(f"--analyst takes letters, digits and _ . @ -, not {printable_text(name)}")
    if len(set(analysts)) < len(analysts):
        raise ValueError("--analyst names someone twice")
    return replace(options, neighbors=neighbors or options.neighbors, analysts=tuple(analysts))


def _parse_number(name: str, text: str, due: str, fits: Callable[[Fraction], bool]) -> Fraction:
    number = read_number(text)
    if number is None or not fits(number):
        raise ValueError(f"--{name} is {due}, not {printable_text(text)}")
    return number


def draft_schema(
    sources: DataSources,
    folder: str,
    options: DraftOptions,
    *,
    unit: str | None = None,
    choose: ChooseUnit | None = None,
    look_at_data: bool = False,
    name: str | None = None,
) -> DraftResult:
    """The draft as it would stand in `folder`, with a ledger of its `name`. `unit` is "table.column" or "row"; else the
    likeliest candidate is taken, or the one that `choose` says. Of rows, only `look_at_data` reads any."""
    if not sources.tables:
        raise OperationalError(
            "there is no table to draft a schema from",
            detail=f"Left out: {'; '.join(sources.left_out[:5])}." if sources.left_out else None,
            hint="Name a DuckDB file with tables, or .parquet or .csv files.",
        )
    if look_at_data and sources.server:
        raise InterfaceError(
            "--look-at-data reads files, not a PostgreSQL server",
            hint="Export the tables as the draft says, and name the files.",
        )
    if name is not None:
        sources = replace(sources, name=to_file_name(name))
    candidates = find_candidates(sources.tables)
    if unit is not None:
        picked, chosen = _find_named_unit(sources, unit), "named"
    elif choose is not None and len(candidates) > 1:
        picked, chosen = choose(candidates), "asked"
    else:
        picked, chosen = candidates[0] if candidates else None, "picked"
    proposals = propose_from_data(sources, picked) if look_at_data else None
    draft = write_draft(sources, picked, folder, options, proposals)
    _load_draft(draft)
    return DraftResult(draft, candidates, chosen)


def _find_named_unit(sources: DataSources, unit: str) -> UnitCandidate | None:
    if unit == ROW_UNIT:
        return None
    name, dot, column = unit.partition(".")
    tables = {table.name: table for table in sources.tables}
    if not dot or name not in tables:
        match_name = closest_name(name, list(tables))
        raise InterfaceError(
            f"--unit must be table.column or row, and there is no table {quote_text(name)}",
            hint=f'Did you mean "{match_name}"?'
            if match_name
            else f"Tables: {', '.join(printable_text(item) for item in tables)}.",
        )
    if tables[name].find_column(column) is None:
        columns = [item.name for item in tables[name].columns]
        match_name = closest_name(column, columns)
        raise InterfaceError(
            f"the table {quote_text(name)} has no column {quote_text(column)}",
            hint=f'Did you mean "{match_name}"?'
            if match_name
            else f"Columns: {', '.join(map(printable_text, columns))}.",
        )
    return make_candidate(sources.tables, name, column)


def _load_draft(draft: SchemaDraft) -> None:
    """A draft is a schema: what the loader says against it is told now, not when the owner opens it."""
    with open_temp_folder("draft") as temporary:
        path = temporary / "draft.yaml"
        path.write_text(draft.text, encoding="utf-8")
        load_schema(path)


def write_schema_file(path: str, text: str, *, force: bool, secret: bool) -> None:
    """`secret`: it holds what was read from rows, and is its owner's alone. An existing file stays unless `force`."""
    flags = os.O_WRONLY | (os.O_TRUNC if force else os.O_EXCL)
    try:
        descriptor = open_private_file(path, flags) if secret else os.open(path, flags | os.O_CREAT, 0o666)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InterfaceError(
            f'"{printable_text(path, 200)}" is there already',
            hint="Write to another file with -o, or replace it with --force.",
        ) from None
    except OSError as error:
        raise OperationalError(
            f'"{printable_text(path, 200)}" cannot be written', detail=f"{error.strerror}."
        ) from None
