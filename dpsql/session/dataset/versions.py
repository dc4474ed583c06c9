"""Data versions: which files are served, and what was checked about them.

Law (SOUNDNESS 1.3): a fact about the data is checked when the owner registers a version, never while an analyst
waits, and counts only as long as the data cannot have changed, which
`file_identity.py` watches.

Opening a schema for the first time registers version 1. Later ones are the owner's act: `dpsql data changed`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from dpsql.base.private_files import make_private_folder, require_private
from dpsql.compiler.plan.expressions import UID
from dpsql.compiler.plan.relations import Field
from dpsql.compiler.plan.relations import Table as PlanTable
from dpsql.compiler.render.relations import render_rows
from dpsql.compiler.rewrite.scan_tables import scan_table
from dpsql.engines.duckdb import DuckDBEngine
from dpsql.engines.duckdb_admin import DuckDBAdmin
from dpsql.errors import InternalError, OperationalError, StaleData
from dpsql.schema.fingerprint import hash_schema
from dpsql.schema.locations import MEMORY_URL, database_path
from dpsql.schema.model import EngineTable, Files, Resolved, Schema, Source, Table
from dpsql.session.dataset.file_identity import (
    RegisteredVersion,
    VersionRegistry,
    canonical_json,
    expand_sources,
    identify_files,
    is_refresh_due,
    stale_data_error,
)
from dpsql.session.dataset.public_facts import find_facts, read_facts, write_facts
from dpsql.types import HUGEINT, Kind, Type, outer_type_name, parse_type

# Snapshots of text files: typed, so that a value which is no number is found when it is registered, not when asked.
#
# They stand in <ledger>.snapshots/v1, v2 …, beside a note of the identity that they were made from. The name is that of
# the version and nothing else: analysts see it in EXPLAIN, and a name made from sizes or times would tell them of rows.

_IDENTITY_FILE = "identity.sha256"


def snapshot_folder(schema: Schema) -> Path:
    """Beside the ledger's file; where the ledger is on a server, beside the schema."""
    base_path = database_path(schema.ledger) or schema.path
    return base_path.with_name(base_path.name + ".snapshots")


def list_text_tables(schema: Schema, sources: Mapping[str, Source]) -> list[tuple[Table, Files, str]]:
    """The tables that are read from text, and the name of each one's snapshot."""
    result: list[tuple[Table, Files, str]] = []
    for at, table in enumerate(schema.tables):
        source = sources[table.name]
        if isinstance(source, Files) and source.format != "parquet":
            result.append((table, source, f"{at}-{re.sub(r'[^A-Za-z0-9_]', '_', table.name)[:60]}.parquet"))
    return result


def snapshot_relations(schema: Schema, sources: Mapping[str, Source], folder: Path) -> dict[str, Source]:
    """Where the engine reads: text files in their snapshot, all else in place."""
    snapshots = {t.name: Files((str(folder / name),), "parquet") for t, _, name in list_text_tables(schema, sources)}
    return dict(sources) | snapshots


@contextmanager
def stage_snapshots(schema: Schema, sources: Mapping[str, Source], identity: str) -> Iterator[dict[str, Source]]:
    """Snapshots in a folder of this thread's own; what is not published is gone at the end."""
    folder = _staging_folder(schema)
    try:
        tables = list_text_tables(schema, sources)
        if tables:
            shutil.rmtree(folder, ignore_errors=True)
            make_private_folder(snapshot_folder(schema), "the folder of snapshots")
            with DuckDBAdmin(MEMORY_URL) as owner:
                for table, source, name in tables:
                    owner.write_snapshot(source, table.columns, folder / name, schema.find_id_columns(table))
            (folder / _IDENTITY_FILE).write_text(_identity_digest(identity))
        yield snapshot_relations(schema, sources, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _staging_folder(schema: Schema) -> Path:
    return snapshot_folder(schema) / f"new-{os.getpid()}-{threading.get_ident()}"


def publish_snapshots(schema: Schema, identity: str, version: int) -> None:
    """Give the staged snapshots the version's name, unless another thread or process has done so."""
    new, folder = _staging_folder(schema), snapshot_folder(schema) / f"v{version}"
    if not new.exists() or has_snapshot(folder, identity):
        return
    shutil.rmtree(folder, ignore_errors=True)  # of another ledger that stood here
    try:
        new.rename(folder)
    except OSError:
        if not has_snapshot(folder, identity):
            raise


def has_snapshot(folder: Path, identity: str) -> bool:
    note = folder / _IDENTITY_FILE
    return note.exists() and note.read_text() == _identity_digest(identity)


def _identity_digest(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()


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
        with stage_snapshots(schema, sources, identity) as relations:
            facts = _check_tables(schema, relations)
            if identify_files(schema, expand_sources(schema)) != identity:
                raise StaleData("the data changed while it was checked", hint="Register it again when it rests.")
            ledger.register_version(identity, canonical_json(facts), after=after, at=now)
            current = ledger.current_version()  # another process may have been first
            if current is not None and current.identity == identity:
                publish_snapshots(schema, identity, current.number)
    if current is None:
        raise InternalError("the ledger does not hold the version that was registered")
    if current.identity != identity:
        raise stale_data_error(current.identity, identity)
    folder = snapshot_folder(schema) / f"v{current.number}"
    files = [folder / name for _, _, name in list_text_tables(schema, sources)]
    for path in (folder.parent, folder, *files):
        require_private(path, "the snapshot")
    if files and not (all(file.exists() for file in files) and has_snapshot(folder, identity)):
        shutil.rmtree(folder, ignore_errors=True)
        with stage_snapshots(schema, sources, identity):
            publish_snapshots(schema, identity, current.number)
    return _resolve_schema(schema, snapshot_relations(schema, sources, folder), current)


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
        parsed = {table: _parse_types(types) for table, types in physical.items()}
        _check_determining_columns(Resolved(schema, 0, relations, parsed, ""), owner)
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


def _check_determining_columns(resolved: Resolved, owner: DuckDBAdmin) -> None:
    """Each declared claim that rows which share a value belong to one unit, on the rows that statements see."""
    for table in resolved.schema.tables:
        for column in table.columns:
            if not column.determines_unit:
                continue
            fields = ((column.name, Field(VALUE_COLUMN, column.type)),)
            rows = render_rows(scan_table(PlanTable(table.name, fields, None), resolved))
            ((shared,),) = owner.query_rows(
                f"SELECT EXISTS (SELECT 1 FROM ({rows}) WHERE {VALUE_COLUMN} IS NOT NULL GROUP BY {VALUE_COLUMN} "
                f"HAVING MIN({UID}) <> MAX({UID}))"
            )
            if shared:
                raise OperationalError(
                    f'"{column.name}" of "{table.name}" is declared to determine the unit but does not',
                    detail="Rows of two units share a value of it.",
                    hint="Remove determines_unit, or mend the data.",
                )


VALUE_COLUMN = "shared_value"

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
    if parse_type(spelling) != column.type and not (column.type == HUGEINT and _is_whole_decimal(spelling)):
        stored_type = spelling if parse_type(spelling) else outer_type_name(spelling)
        raise OperationalError(
            f'the id "{name}" of "{table.name}" is {stored_type} in the data and {column.type} in the schema',
            hint="Declare the type that the data has: an id is never cast, since a cast can make one unit of two.",
        )


def _is_whole_decimal(spelling: str) -> bool:
    """Privacy: digits behind the point would be rounded away, and make one unit of two."""
    type_ = parse_type(spelling)
    return type_ is not None and type_.kind is Kind.DECIMAL and not type_.scale


def _resolve_schema(schema: Schema, relations: Mapping[str, Source], version: RegisteredVersion) -> Resolved:
    facts = json.loads(version.facts)
    spelled: PhysicalTypes = facts["physical"]
    physical = {table: _parse_types(columns) for table, columns in spelled.items()}
    public = read_facts(facts.get("public", {}), schema)
    return Resolved(schema, version.number, relations, physical, hash_schema(schema), public, version.identity)


def _parse_types(columns: Mapping[str, str]) -> dict[str, Type | None]:
    return {column: parse_type(spelling) for column, spelling in columns.items()}
