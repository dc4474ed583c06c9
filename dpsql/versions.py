"""Data versions: which files are served, and what was checked about them.

Law (SOUNDNESS 1.3): a fact about the data is checked when the owner registers a version, never while an analyst
waits, and counts only as long as the data cannot have changed. So a version pins the source files by path, size and
modification time, together with what the schema claimed of them; where either differs, nothing is served.

Opening a schema for the first time registers version 1. Later ones are the owner's act: `dpsql data changed`.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from dpsql import snapshots
from dpsql.engines.duckdb import DuckDBEngine
from dpsql.engines.owner import DuckDBOwner
from dpsql.errors import InternalError, OperationalError, StaleData
from dpsql.private_files import require_private
from dpsql.public_facts import find_facts, read_facts, write_facts
from dpsql.schema.fingerprint import schema_hash
from dpsql.schema.model import Column, EngineTable, Files, Resolved, Schema, Source, Table
from dpsql.schema.places import database_path
from dpsql.types import Kind, Type, parse_type

_HINT = "The owner registers it with: dpsql data changed SCHEMA"

Physical = dict[str, dict[str, str]]


class Registered(Protocol):
    @property
    def number(self) -> int: ...
    @property
    def identity(self) -> str: ...
    @property
    def facts(self) -> str: ...
    @property
    def at(self) -> datetime | None: ...


class Versions(Protocol):
    """The part of a ledger that remembers data versions."""

    def register_version(
        self, identity: str, facts: str, *, after: int | None = None, at: datetime | None = None
    ) -> int: ...
    def current_version(self) -> Registered | None: ...


def register(
    schema: Schema, ledger: Versions, *, changed: bool = False, now: datetime | None = None
) -> Resolved:
    """The schema resolved against its registered data; registers version 1, or with `changed` the next one, also
    where its `refresh` makes it due."""
    sources = expand_sources(schema)
    identity = identify(schema, sources)
    current = ledger.current_version()
    changed = changed or (current is not None and now is not None and is_due(schema, current, now))
    if changed or current is None:
        after = 0 if current is None else current.number
        with snapshots.staged(schema, sources, identity) as relations:
            facts = _check(schema, relations)
            if identify(schema, expand_sources(schema)) != identity:
                raise StaleData("the data changed while it was checked", hint="Register it again when it rests.")
            ledger.register_version(identity, _canonical(facts), after=after, at=now)
            current = ledger.current_version()  # another process may have been first
            if current is not None and current.identity == identity:
                snapshots.publish(schema, identity, current.number)
    if current is None:
        raise InternalError("the ledger does not hold the version that was registered")
    if current.identity != identity:
        raise _stale(current.identity, identity)
    folder = snapshots.folder_of(schema) / f"v{current.number}"
    files = [folder / name for _, _, name in snapshots.text_tables(schema, sources)]
    for path in (folder.parent, folder, *files):
        require_private(path, "the snapshot")
    if files and not (all(file.exists() for file in files) and snapshots.holds(folder, identity)):
        shutil.rmtree(folder, ignore_errors=True)
        with snapshots.staged(schema, sources, identity):
            snapshots.publish(schema, identity, current.number)
    return _resolve(schema, snapshots.relations(schema, sources, folder), current)


def is_due(schema: Schema, current: Registered, now: datetime) -> bool:
    """Whether the schedule has a newer version than the current one.

    Privacy: by the clock alone. By what has changed, the price of a repeated question would tell when someone's row
    arrived (SOUNDNESS 9).
    """
    grid, made = schema.answers.refresh, current.at
    return grid is not None and (made is None or grid.down(made) < grid.down(now))


def check_current(
    schema: Schema, ledger: Versions, version: int, now: datetime | None = None
) -> Registered | None:
    """Raise StaleData unless `version` is the last, and the schedule has no newer one; the version."""
    current = ledger.current_version()
    if current is not None and current.number != version:
        raise StaleData("the owner has registered a newer version of the data", hint="Connect again.")
    if current is not None and now is not None and is_due(schema, current, now):
        raise StaleData("by its schedule, the data has a newer version", hint="Connect again.")
    return current


def check_unchanged(schema: Schema, ledger: Versions, version: int, now: datetime | None = None) -> None:
    """Raise StaleData unless the data on disk is still the registered version, and that one is `version`.

    Cheap: it looks at no rows. Facts count for the version that they were checked on (SOUNDNESS 1.3).
    """
    current = check_current(schema, ledger, version, now)
    identity = identify(schema, expand_sources(schema))
    if current is None or current.identity != identity:
        raise _stale(current.identity if current else "{}", identity)


def check_read(resolved: Resolved) -> None:
    """Raise StaleData unless what was just read is what the version was registered for.

    Privacy: it asks nothing else. Were it refused because a newer version is there, or due, whoever makes one while a
    run is under way would learn by the refusal how long the run took.
    """
    identity = identify(resolved.schema, expand_sources(resolved.schema))
    if identity != resolved.identity:
        raise _stale(resolved.identity, identity)


def engine_for(resolved: Resolved) -> DuckDBEngine:
    """An engine that can read the registered files and nothing else, within the owner's limits."""
    files = [path for source in resolved.relations.values() if isinstance(source, Files) for path in source.patterns]
    limits = resolved.schema.limits
    return DuckDBEngine(
        resolved.schema.engine, files, threads=limits.threads, memory=limits.memory, seconds=limits.seconds
    )


def expand_sources(schema: Schema) -> dict[str, Source]:
    """Each table's source with its patterns turned into the files that are there now, in order of their names."""
    return {table.name: _expand(table) for table in schema.tables}


def _expand(table: Table) -> Source:
    if isinstance(table.source, EngineTable):
        return table.source
    found = {path for pattern in table.source.patterns for path in glob.glob(pattern, recursive=True)}
    files = tuple(sorted(path for path in found if os.path.isfile(path)))
    if not files:
        raise OperationalError(
            f'the source of the table "{table.name}" matches no file',
            detail=f"It is {', '.join(table.source.patterns)}.",
            hint="Check source in the schema; paths are relative to the schema's folder.",
        )
    return replace(table.source, patterns=files)


def identify(schema: Schema, sources: Mapping[str, Source]) -> str:
    """What a version pins: every file that is read, and what the schema claims of it."""
    folder = schema.path.parent
    database = database_path(schema.engine)
    beside = [] if database is None else [database, database.with_name(database.name + ".wal")]
    return _canonical(
        {
            "database": [_stamp(folder, str(path)) for path in beside if path.exists()],
            "files": {
                name: [_stamp(folder, path) for path in source.patterns]
                for name, source in sources.items()
                if isinstance(source, Files)
            },
            "claims": {table.name: _claims(schema, table) for table in schema.tables},
        }
    )


def _stamp(folder: Path, path: str) -> list[object]:
    try:
        status = os.stat(path)
    except OSError:
        raise StaleData(f'the file "{path}" is gone', hint=_HINT) from None
    relative = os.path.relpath(path, folder) if Path(path).is_relative_to(folder) else path
    return [relative, status.st_size, status.st_mtime_ns]


def _claims(schema: Schema, table: Table) -> dict[str, object]:
    """All that checks, snapshot and public values depend on, besides the files.

    Bounds matter where they may make two keys one, and in public tables, whose sanitised values are remembered.
    """
    keys = {name for key in table.unique for name in key}
    if table.public:
        keys |= {column.name for column in table.columns}
    match table.source:
        case EngineTable(name):
            source: list[object] = list(name)
        case Files() as files:
            source = [files.format, files.header, files.delimiter, files.quote, files.null]
    return {
        "source": source,
        "columns": [[column.name, str(column.type)] for column in table.columns],
        "ids": sorted(schema.id_columns(table)),
        "unique": sorted(list(key) for key in table.unique),
        "keys": {name: _sanitising(column) for name in keys if (column := table.column(name))},
    }


def _sanitising(column: Column) -> list[object]:
    domain = column.domain
    values = None if domain.values is None else [str(value) for value in domain.values]
    return [str(domain.lower), str(domain.upper), values, column.max_length]


# --- checks ----------------------------------------------------------------------------------------------------------


def _check(schema: Schema, relations: Mapping[str, Source]) -> dict[str, object]:
    """The checks of SOUNDNESS 1.3 and 3, on all tables; the physical types of declared columns, and public values."""
    with DuckDBOwner(schema.engine) as owner:
        physical = {table.name: _check_table(owner, schema, table, relations[table.name]) for table in schema.tables}
        public = {
            table.name: find_facts(table, relations[table.name], _parsed(physical[table.name]), owner.ask)
            for table in schema.tables
            if table.public
        }
    return {"physical": physical, "public": write_facts(public)}


def _check_table(owner: DuckDBOwner, schema: Schema, table: Table, source: Source) -> dict[str, str]:
    physical = _physical(owner, table, source)
    for name, spelled in physical.items():
        _check_readable_type(table, name, spelled)
    ids = schema.id_columns(table)
    for name in sorted(ids):
        _check_id(table, name, physical[name])
    if isinstance(source, EngineTable):
        _check_collations(owner, table, source)
    owner.check_readable(source, table.columns)
    for key in table.unique:
        if owner.duplicates(source, [column for column in table.columns if column.name in key], ids):
            raise OperationalError(
                f'the key ({", ".join(key)}) of "{table.name}" is declared unique but is not',
                hint="Remove it from unique, or the duplicates from the data; what sanitising turns to NULL is no key.",
            )
    return physical


_READABLE = re.compile(
    r"(U?TINYINT|U?SMALLINT|U?INTEGER|U?BIGINT|U?HUGEINT|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)|VARCHAR|BLOB|DATE|TIME"
    r"|TIME WITH TIME ZONE|TIMESTAMP(_S|_MS|_NS| WITH TIME ZONE)?|INTERVAL|UUID|BOOLEAN|JSON|ENUM\(.*\))",
    re.DOTALL,
)


def _check_readable_type(table: Table, column: str, spelled: str) -> None:
    """Privacy: only types whose casts are known to be total. A BIGNUM past 64 bits ends DuckDB 2.0 altogether."""
    if _READABLE.fullmatch(spelled) is None:
        raise OperationalError(
            f'the column "{column}" of "{table.name}" has the type {spelled}, which cannot be read safely',
            hint="Cast it in a view of the engine, and name the view as the table's source.",
        )


def _check_collations(owner: DuckDBOwner, table: Table, source: EngineTable) -> None:
    """Privacy: under a collation the spelling of a group depends on the order of other units' rows (SOUNDNESS 3)."""
    for column in table.columns:
        if column.type.kind is Kind.TEXT and not owner.compares_by_bytes(source, column.name):
            raise OperationalError(
                f'the column "{column.name}" of "{table.name}" has a collation',
                hint="Give it the collation C in the database; keys are compared by their bytes.",
            )


def _physical(owner: DuckDBOwner, table: Table, source: Source) -> dict[str, str]:
    """The engine's type of each declared column, the same in every file of the source."""
    parts: Sequence[Source] = (
        [replace(source, patterns=(path,)) for path in source.patterns] if isinstance(source, Files) else [source]
    )
    found = [_declared(table, owner.describe(part)) for part in parts]
    for part, types in zip(parts, found, strict=True):
        if types != found[0] and isinstance(part, Files):
            raise OperationalError(
                f'the files of "{table.name}" differ in their types',
                detail=f'"{Path(part.patterns[0]).name}" is not like the first file.',
                hint="Write all files of a source with the same columns and types.",
            )
    return found[0]


def _declared(table: Table, described: Mapping[str, str]) -> dict[str, str]:
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


def _check_id(table: Table, name: str, spelling: str) -> None:
    column = table.column(name)
    if column is None:
        raise InternalError("a unit path names a column that is not declared")
    if parse_type(spelling) != column.type:
        raise OperationalError(
            f'the id "{name}" of "{table.name}" is {spelling} in the data and {column.type} in the schema',
            hint="Declare the type that the data has: an id is never cast, since a cast can make one unit of two.",
        )


def _resolve(schema: Schema, relations: Mapping[str, Source], version: Registered) -> Resolved:
    facts = json.loads(version.facts)
    spelled: Physical = facts["physical"]
    physical = {table: _parsed(columns) for table, columns in spelled.items()}
    public = read_facts(facts.get("public", {}), schema)
    return Resolved(schema, version.number, relations, physical, schema_hash(schema), public, version.identity)


def _parsed(columns: Mapping[str, str]) -> dict[str, Type | None]:
    return {column: parse_type(spelling) for column, spelling in columns.items()}


def _stale(registered: str, found: str) -> StaleData:
    """Say which table's files, or which table's claims, are not the registered ones."""
    old, new = json.loads(registered), json.loads(found)
    if old.get("database", []) != new["database"]:
        return StaleData("the data of the engine's database file is not the registered version", hint=_HINT)
    if name := _differing(old.get("files", {}), new["files"]):
        return StaleData(f'the data of "{name}" is not the registered version', hint=_HINT)
    name = _differing(old.get("claims", {}), new["claims"])
    return StaleData(
        f'the schema of "{name}" is not the one that was checked against the data',
        detail="Its source, columns, unit or unique keys are declared in another way, or were not looked at then.",
        hint=_HINT,
    )


def _differing(old: dict[str, Any], new: dict[str, Any]) -> str | None:
    return next((name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)), None)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
