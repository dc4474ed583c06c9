"""What a data version pins, and whether it is still what is there: by the files' names, sizes and times, without a row.

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
from dpsql.schema.model import Column, EngineTable, Files, Resolved, Schema, Source, Table
from dpsql.schema.places import database_path

_HINT = "The owner registers it with: dpsql data changed SCHEMA"


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
        raise stale(current.identity if current else "{}", identity)


def check_read(resolved: Resolved) -> None:
    """Raise StaleData unless what was just read is what the version was registered for.

    Privacy: it asks nothing else. Were it refused because a newer version is there, or due, whoever makes one while a
    run is under way would learn by the refusal how long the run took.
    """
    identity = identify(resolved.schema, expand_sources(resolved.schema))
    if identity != resolved.identity:
        raise stale(resolved.identity, identity)


def expand_sources(schema: Schema) -> dict[str, Source]:
    """Each table's source with its patterns turned into the files that are there now, in order of their names."""
    return {table.name: expand_table(table) for table in schema.tables}


def expand_table(table: Table) -> Source:
    """The table's source as it is read: an engine's table, or the files that its patterns match now."""
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
    return canonical(
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


def stale(registered: str, found: str) -> StaleData:
    """The refusal, saying which table's files, or which table's claims, are not the registered ones."""
    old, new = json.loads(registered), json.loads(found)
    if old.get("database", []) != new["database"]:
        detail = _moved(old.get("database", []), new["database"])
        return StaleData("the data of the engine's database file is not the registered version",
                         detail=detail, hint=_HINT)  # fmt: skip
    if name := _differing(old.get("files", {}), new["files"]):
        detail = _moved(old.get("files", {}).get(name, []), new["files"].get(name, []))
        return StaleData(f'the data of "{name}" is not the registered version', detail=detail, hint=_HINT)
    name = _differing(old.get("claims", {}), new["claims"])
    return StaleData(
        f'the schema of "{name}" is not the one that was checked against the data',
        detail="Its source, columns, unit or unique keys are declared in another way, or were not looked at then.",
        hint=_HINT,
    )


def _moved(old: list[list[Any]], new: list[list[Any]]) -> str:
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


def _differing(old: dict[str, Any], new: dict[str, Any]) -> str | None:
    return next((name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)), None)


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
