"""The identity of a data version's files: names, sizes and times, checked without reading a row.

Law (SOUNDNESS 1.3): a fact about the data counts only as long as the data cannot have changed. So a version pins the
source files by path, size and modification time, together with what the schema claimed of them; where either differs,
nothing is served.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from dpsql.errors import OperationalError, StaleData
from dpsql.schema.locations import database_path
from dpsql.schema.model import Column, EngineTable, Files, Resolved, Schema, Source, Table

_REGISTER_HINT = "The owner registers it with: dpsql data changed SCHEMA"


class RegisteredVersion(Protocol):
    @property
    def number(self) -> int: ...
    @property
    def identity(self) -> str: ...
    @property
    def facts(self) -> str: ...
    @property
    def at(self) -> datetime | None: ...


class VersionRegistry(Protocol):
    """The part of a ledger that remembers data versions."""

    def register_version(
        self, identity: str, facts: str, *, after: int | None = None, at: datetime | None = None
    ) -> int: ...
    def current_version(self) -> RegisteredVersion | None: ...


def is_refresh_due(schema: Schema, current: RegisteredVersion, now: datetime) -> bool:
    """Whether the schedule has a newer version than the current one.

    Privacy: by the clock alone. By what has changed, the price of a repeated question would tell when someone's row
    arrived (SOUNDNESS 9).
    """
    grid, registered_at = schema.answers.refresh, current.at
    return grid is not None and (registered_at is None or grid.round_down(registered_at) < grid.round_down(now))


def check_current(
    schema: Schema, ledger: VersionRegistry, version: int, now: datetime | None = None
) -> RegisteredVersion | None:
    """Raise StaleData unless `version` is the last, and the schedule has no newer one; the version."""
    current = ledger.current_version()
    if current is not None and current.number != version:
        raise StaleData("the owner has registered a newer version of the data", hint="Connect again.")
    if current is not None and now is not None and is_refresh_due(schema, current, now):
        raise StaleData("by its schedule, the data has a newer version", hint="Connect again.")
    return current


def check_unchanged(schema: Schema, ledger: VersionRegistry, version: int, now: datetime | None = None) -> None:
    """Raise StaleData unless the data on disk is still the registered version, and that one is `version`.

    Cheap: it looks at no rows. Facts count for the version that they were checked on (SOUNDNESS 1.3).
    """
    current = check_current(schema, ledger, version, now)
    identity = identify_files(schema, expand_sources(schema))
    if current is None or current.identity != identity:
        raise stale_data_error(current.identity if current else "{}", identity)


def check_read(resolved: Resolved) -> None:
    """Raise StaleData unless what was just read is what the version was registered for.

    Privacy: it asks nothing else. Were it refused because a newer version is there, or due, whoever makes one while a
    run is under way would learn by the refusal how long the run took.
    """
    identity = identify_files(resolved.schema, expand_sources(resolved.schema))
    if identity != resolved.identity:
        raise stale_data_error(resolved.identity, identity)


def expand_sources(schema: Schema) -> dict[str, Source]:
    """Each table's source with its patterns turned into the files that are there now, in order of their names."""
    return {table.name: expand_table(table) for table in schema.tables}


def expand_table(table: Table) -> Source:
    """The table's source as it is read: an engine's table, or the files that its patterns match now."""
    if isinstance(table.source, EngineTable):
        return table.source
    paths = {path for pattern in table.source.patterns for path in glob.glob(pattern, recursive=True)}
    files = tuple(sorted(path for path in paths if os.path.isfile(path)))
    if not files:
        raise OperationalError(
            f'the source of the table "{table.name}" matches no file',
            detail=f"It is {', '.join(table.source.patterns)}.",
            hint="Check source in the schema; paths are relative to the schema's folder.",
        )
    return replace(table.source, patterns=files)


def identify_files(schema: Schema, sources: Mapping[str, Source]) -> str:
    """What a version pins: every file that is read, and what the schema claims of it."""
    folder = schema.path.parent
    database = database_path(schema.engine)
    database_files = [] if database is None else [database, database.with_name(database.name + ".wal")]
    return canonical_json(
        {
            "database": [_file_stamp(folder, str(path)) for path in database_files if path.exists()],
            "files": {
                name: [_file_stamp(folder, path) for path in source.patterns]
                for name, source in sources.items()
                if isinstance(source, Files)
            },
            "claims": {table.name: _schema_claims(schema, table) for table in schema.tables},
        }
    )


def _file_stamp(folder: Path, path: str) -> list[object]:
    try:
        status = os.stat(path)
    except OSError:
        raise StaleData(f'the file "{Path(path).name}" is gone', hint=_REGISTER_HINT) from None
    relative = os.path.relpath(path, folder) if Path(path).is_relative_to(folder) else path
    return [relative, status.st_size, status.st_mtime_ns]


def _schema_claims(schema: Schema, table: Table) -> dict[str, object]:
    """All that checks, snapshot and public values depend on, besides the files.

    Bounds matter where they may make two keys one, and in public tables, whose sanitised values are remembered.
    """
    determining = [column.name for column in table.columns if column.determines_unit]
    keys = {name for key in table.unique for name in key}.union(determining)
    if table.public:
        keys |= {column.name for column in table.columns}
    match table.source:
        case EngineTable(name):
            source: list[object] = list(name)
        case Files() as files:
            source = [files.format, files.header, files.delimiter, files.quote, files.null]
            names = ("escape", "encoding", "skip", "decimal")  # versions of before keep their claims
            source += [[name, value] for name in names if (value := getattr(files, name))]
            source += [["format", column.name, column.format] for column in table.columns if column.format]
    determined: dict[str, object] = {}
    if determining:
        path = schema.find_unit_path(table)
        determined = {"determines": determining, "path": [[hop.table, *map(list, hop.pairs)] for hop in path]}
    return {
        **determined,
        "source": source,
        "columns": [[column.name, str(column.type)] for column in table.columns],
        "ids": sorted(schema.find_id_columns(table)),
        "unique": sorted(list(key) for key in table.unique),
        "keys": {name: _sanitizing_rules(column) for name in keys if (column := table.column(name))},
    }


def _sanitizing_rules(column: Column) -> list[object]:
    domain = column.domain
    values = None if domain.values is None else [str(value) for value in domain.values]
    return [str(domain.lower), str(domain.upper), values, column.max_length]


def stale_data_error(registered: str, current: str) -> StaleData:
    """The refusal, saying which table's files, or which table's claims, are not the registered ones."""
    old, new = json.loads(registered), json.loads(current)
    if old.get("database", []) != new["database"]:
        detail = _describe_file_change(old.get("database", []), new["database"])
        return StaleData("the data of the engine's database file is not the registered version",
                         detail=detail, hint=_REGISTER_HINT)  # fmt: skip
    if name := _first_difference(old.get("files", {}), new["files"]):
        detail = _describe_file_change(old.get("files", {}).get(name, []), new["files"].get(name, []))
        return StaleData(f'the data of "{name}" is not the registered version', detail=detail, hint=_REGISTER_HINT)
    name = _first_difference(old.get("claims", {}), new["claims"])
    return StaleData(
        f'the schema of "{name}" is not the one that was checked against the data',
        detail="Its source, columns, unit or unique keys are declared in another way, or were not looked at then.",
        hint=_REGISTER_HINT,
    )


def _describe_file_change(old: list[list[Any]], new: list[list[Any]]) -> str:
    """What is known without looking into the files.

    Privacy: nothing of their sizes, and of many no names, which may be about the rows in them.
    """
    if [path for path, *_ in old] != [path for path, *_ in new]:
        return "There are other files than the registered ones."
    which = f'The file "{old[0][0]}"' if len(old) == 1 else "One of its files"
    return (
        f"{which} has another time or size. It may hold the same rows, as after a copy: "
        "cp -a keeps the times of files, cp -r does not."
    )


def _first_difference(old: dict[str, Any], new: dict[str, Any]) -> str | None:
    return next((name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)), None)


def canonical_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
