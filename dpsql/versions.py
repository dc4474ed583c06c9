"""Data versions: which files are served, and what was checked about them.

Law (SOUNDNESS 1.3): a fact about the data is checked when the owner registers a version, never while an analyst
waits, and counts only as long as the data cannot have changed, which `pins` watches.

Opening a schema for the first time registers version 1. Later ones are the owner's act: `dpsql data changed`.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from dpsql import snapshots
from dpsql.engines.duckdb import DuckDBEngine
from dpsql.engines.owner import DuckDBAdmin
from dpsql.errors import InternalError, OperationalError, StaleData
from dpsql.pins import RegisteredVersion, VersionRegistry, canonical_json, expand_sources, identify_files, is_refresh_due, stale_data_error
from dpsql.private_files import require_private
from dpsql.public_facts import find_facts, read_facts, write_facts
from dpsql.schema.fingerprint import hash_schema
from dpsql.schema.model import EngineTable, Files, Resolved, Schema, Source, Table
from dpsql.types import Kind, Type, outer_type_name, parse_type

PhysicalTypes = dict[str, dict[str, str]]


def register_data(
    schema: Schema, ledger: VersionRegistry, *, changed: bool = False, now: datetime | None = None
) -> Resolved:
    """The schema resolved against its registered data; registers version 1, or with `changed` the next one, also
    where its `refresh` makes it due."""
    sources = expand_sources(schema)
    identity = identify_files(schema, sources)
    current = ledger.current_version()
    changed = changed or (current is not None and now is not None and is_refresh_due(schema, current, now))
    if changed or current is None:
        after = 0 if current is None else current.number
        with snapshots.stage_snapshots(schema, sources, identity) as relations:
            facts = _check_tables(schema, relations)
            if identify_files(schema, expand_sources(schema)) != identity:
                raise StaleData("the data changed while it was checked", hint="Register it again when it rests.")
            ledger.register_version(identity, canonical_json(facts), after=after, at=now)
            current = ledger.current_version()  # another process may have been first
            if current is not None and current.identity == identity:
                snapshots.publish_snapshots(schema, identity, current.number)
    if current is None:
        raise InternalError("the ledger does not hold the version that was registered")
    if current.identity != identity:
        raise stale_data_error(current.identity, identity)
    folder = snapshots.snapshot_folder(schema) / f"v{current.number}"
    files = [folder / name for _, _, name in snapshots.list_text_tables(schema, sources)]
    for path in (folder.parent, folder, *files):
        require_private(path, "the snapshot")
    if files and not (all(file.exists() for file in files) and snapshots.has_snapshot(folder, identity)):
        shutil.rmtree(folder, ignore_errors=True)
        with snapshots.stage_snapshots(schema, sources, identity):
            snapshots.publish_snapshots(schema, identity, current.number)
    return _resolve_schema(schema, snapshots.snapshot_relations(schema, sources, folder), current)


def open_engine(resolved: Resolved) -> DuckDBEngine:
    """An engine that can read the registered files and nothing else, within the owner's limits."""
    files = [path for source in resolved.relations.values() if isinstance(source, Files) for path in source.patterns]
    limits = resolved.schema.limits
    return DuckDBEngine(
        resolved.schema.engine, files, threads=limits.threads, memory=limits.memory, seconds=limits.seconds
    )


# --- checks ----------------------------------------------------------------------------------------------------------


def _check_tables(schema: Schema, relations: Mapping[str, Source]) -> dict[str, object]:
    """The checks of SOUNDNESS 1.3 and 3, on all tables; the physical types of declared columns, and public values."""
    with DuckDBAdmin(schema.engine) as owner:
        physical = {table.name: check_table(owner, schema, table, relations[table.name]) for table in schema.tables}
        public = {
            table.name: find_facts(table, relations[table.name], _parse_types(physical[table.name]), owner.query_rows)
            for table in schema.tables
            if table.public
        }
    return {"physical": physical, "public": write_facts(public)}


def check_table(owner: DuckDBAdmin, schema: Schema, table: Table, source: Source) -> dict[str, str]:
    """Raises for the first thing that is not as declared."""
    physical = _find_physical_types(owner, table, source)
    for name, spelled in physical.items():
        _check_readable_type(table, name, spelled)
    ids = schema.find_id_columns(table)
    for name in sorted(ids):
        _check_id_type(table, name, physical[name])
    if isinstance(source, EngineTable):
        _check_collations(owner, table, source)
    owner.check_readable(source, table.columns)
    for key in table.unique:
        if owner.has_duplicates(source, [column for column in table.columns if column.name in key], ids):
            raise OperationalError(
                f'the key ({", ".join(key)}) of "{table.name}" is declared unique but is not',
                hint="Remove it from unique, or the duplicates from the data; what sanitising turns to NULL is no key.",
            )
    return physical


_READABLE_TYPES = re.compile(
    r"(U?TINYINT|U?SMALLINT|U?INTEGER|U?BIGINT|U?HUGEINT|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)|VARCHAR|BLOB|DATE|TIME"
    r"|TIME WITH TIME ZONE|TIMESTAMP(_S|_MS|_NS| WITH TIME ZONE)?|INTERVAL|UUID|BOOLEAN|JSON|ENUM\(.*\))",
    re.DOTALL,
)


def _check_readable_type(table: Table, column: str, spelled: str) -> None:
    """Privacy: only types whose casts are known to be total. A BIGNUM past 64 bits ends DuckDB 2.0 altogether."""
    if _READABLE_TYPES.fullmatch(spelled) is None:
        raise OperationalError(
            f'the column "{column}" of "{table.name}" has the type {spelled}, which cannot be read safely',
            hint="Cast it in a view of the engine, and name the view as the table's source.",
        )


def _check_collations(owner: DuckDBAdmin, table: Table, source: EngineTable) -> None:
    """Privacy: under a collation the spelling of a group depends on the order of other units' rows (SOUNDNESS 3)."""
    for column in table.columns:
        if column.type.kind is Kind.TEXT and not owner.is_compared_by_bytes(source, column.name):
            raise OperationalError(
                f'the column "{column.name}" of "{table.name}" has a collation',
                hint="Give it the collation C in the database; keys are compared by their bytes.",
            )


def _find_physical_types(owner: DuckDBAdmin, table: Table, source: Source) -> dict[str, str]:
    """The engine's type of each declared column, the same in every file of the source."""
    parts: Sequence[Source] = (
        [replace(source, patterns=(path,)) for path in source.patterns] if isinstance(source, Files) else [source]
    )
    types_by_part = [_find_declared_types(table, owner.describe(part)) for part in parts]
    for part, types in zip(parts, types_by_part, strict=True):
        if types != types_by_part[0] and isinstance(part, Files):
            raise OperationalError(
                f'the files of "{table.name}" differ in their types',
                detail=f'"{Path(part.patterns[0]).name}" is not like the first file.',
                hint="Write all files of a source with the same columns and types.",
            )
    return types_by_part[0]


def _find_declared_types(table: Table, described: Mapping[str, str]) -> dict[str, str]:
    folded = {name.casefold(): spelling for name, spelling in described.items()}
    types: dict[str, str] = {}
    for column in table.columns:
        spelling = described.get(column.name, folded.get(column.name.casefold()))
        if spelling is None:
            raise OperationalError(
                f'the source of "{table.name}" has no column "{column.name}"',
                hint=f"It has {', '.join(described)}.",
            )
        types[column.name] = spelling
    return types


def _check_id_type(table: Table, name: str, spelling: str) -> None:
    column = table.column(name)
    if column is None:
        raise InternalError("a unit path names a column that is not declared")
    if parse_type(spelling) != column.type:
        there = spelling if parse_type(spelling) else outer_type_name(spelling)
        raise OperationalError(
            f'the id "{name}" of "{table.name}" is {there} in the data and {column.type} in the schema',
            hint="Declare the type that the data has: an id is never cast, since a cast can make one unit of two.",
        )


def _resolve_schema(schema: Schema, relations: Mapping[str, Source], version: RegisteredVersion) -> Resolved:
    facts = json.loads(version.facts)
    spelled: PhysicalTypes = facts["physical"]
    physical = {table: _parse_types(columns) for table, columns in spelled.items()}
    public = read_facts(facts.get("public", {}), schema)
    return Resolved(schema, version.number, relations, physical, hash_schema(schema), public, version.identity)


def _parse_types(columns: Mapping[str, str]) -> dict[str, Type | None]:
    return {column: parse_type(spelling) for column, spelling in columns.items()}
