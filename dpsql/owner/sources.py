"""From the sources that an owner names on a command line to the tables that are there."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from dpsql.engines.owner import DuckDBOwner
from dpsql.engines.structure import Found, FoundTable, csv_table, duckdb_tables, parquet_table
from dpsql.errors import InterfaceError, OperationalError
from dpsql.schema.document import shown
from dpsql.schema.keys import COLUMN_NAME, NAME
from dpsql.schema.model import EngineTable, Files
from dpsql.schema.places import MEMORY

_DATABASES = (".duckdb", ".ddb", ".db")
_FORMATS = (".parquet", ".csv")
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Sources:
    """All tables, by names that a schema can hold; `database` is a DuckDB file, `server` says that they are on one.

    `left_out` is what is there and is no table of the draft, in words.
    """

    tables: tuple[FoundTable, ...]
    name: str
    database: str | None = None
    server: bool = False
    left_out: tuple[str, ...] = ()


def find_sources(named: Sequence[str], header: bool | None = None) -> Sources:
    """`header` is the owner's word on the first lines of CSV files."""
    servers = [one for one in named if re.match(r"postgres(ql)?://", one)]
    if servers:
        if len(named) > 1:
            raise InterfaceError("a PostgreSQL server stands alone among the sources", hint="Draft one schema for it.")
        return _named(_postgres(servers[0]), _database_name(servers[0]), server=True)
    databases = [one for one in named if _is_database(one)]
    if len(databases) > 1:
        raise InterfaceError("a schema reads one DuckDB file", hint="Draft one schema for each, or name Parquet files.")
    found = [_duckdb(databases[0])] if databases else []
    files = [group for one in named if one not in databases for group in _groups(one)]
    left_out = tuple(group.why for group in files if group.why)
    found.append(_files([group for group in files if not group.why], header))
    whole = Found(tuple(t for one in found for t in one.tables), tuple(t for one in found for t in one.left_out))
    path = os.path.abspath(_path(databases[0])) if databases else None
    first = Path(path or os.path.abspath(_WILD.split(named[0])[0]))
    return _named(replace(whole, left_out=(*whole.left_out, *left_out)), first.stem or first.parent.name, database=path)


def _named(found: Found, name: str, database: str | None = None, server: bool = False) -> Sources:
    """The tables that a schema can name; nothing of the others is lost silently."""
    left_out, taken, tables = list(found.left_out), set[str](), list[FoundTable]()
    for table in found.tables:
        why = _unfit(table)
        if why is not None:
            left_out.append(f'the table "{shown(table.name)}": {why}')
            continue
        first = {column.name.casefold(): column for column in reversed(table.columns)}
        columns = tuple(
            column
            for column in table.columns
            if _holds(COLUMN_NAME, column.name) and first[column.name.casefold()] is column
        )
        left_out += [
            f'the column "{shown(column.name)}" of "{table.name}": a schema cannot hold its name'
            for column in table.columns
            if column not in columns
        ]
        fresh = replace(table, columns=columns, name=_unused(table.name, taken))
        taken.add(fresh.name.casefold())
        tables.append(fresh)
    kept = tuple(_without(table, tables) for table in tables)
    return Sources(kept, plain_name(name), database, server, tuple(left_out))


def plain_name(name: str) -> str:
    """A name for files.

    >>> plain_name("my clinic (2024)"), plain_name("日本")
    ('my_clinic_2024', 'schema')
    """
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_") or "schema"


def _without(table: FoundTable, tables: Sequence[FoundTable]) -> FoundTable:
    """The table without keys and references that name what was left out."""
    there = {(one.name, column.name) for one in tables for column in one.columns}
    return replace(
        table,
        unique=tuple(key for key in table.unique if all((table.name, name) in there for name in key)),
        references=tuple(
            one
            for one in table.references
            if all((table.name, name) in there for name in one.columns)
            and all((one.table, name) in there for name in one.keys)
        ),
    )


def _holds(pattern: str, name: str) -> bool:
    """As the loader sees it."""
    return bool(re.fullmatch(pattern, name)) and name.isprintable()


def _unfit(table: FoundTable) -> str | None:
    if all(column.type is None for column in table.columns):
        return "none of its columns has a type of dpsql"
    if not _holds(NAME, table.name):
        return "a schema cannot hold its name; make a view of it with another"
    match table.source:
        case EngineTable((_,)):
            return None
        case EngineTable(parts):
            text = ".".join(parts)
            odd = not all(_holds(NAME, part) for part in parts) or any(c in text for c in "/\\*?[$")
            return "a schema cannot name its place; make a view of it in main" if odd else None
        case Files(patterns):
            odd = any("${" in path or "://" in path or not path.isprintable() for path in patterns)
            return "a schema cannot hold its path" if odd else None


def _unused(name: str, taken: set[str]) -> str:
    fresh, number = name, 2
    while fresh.casefold() in taken:
        fresh, number = f"{name}_{number}", number + 1
    return fresh


# --- databases -------------------------------------------------------------------------------------------------------


def _is_database(source: str) -> bool:
    return source.startswith("duckdb:///") or (source.lower().endswith(_DATABASES) and not os.path.isdir(source))


def _path(source: str) -> str:
    return source.removeprefix("duckdb:///")


def _duckdb(source: str) -> Found:
    with DuckDBOwner(f"duckdb:///{os.path.abspath(_path(source))}") as owner:
        return duckdb_tables(owner)


def _postgres(url: str) -> Found:
    try:
        server = import_module("dpsql.engines.structure_postgres")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("dpsql"):
            raise
        raise OperationalError(
            "reading a PostgreSQL server needs the package psycopg", hint="Write: pip install 'dpsql[postgres]'"
        ) from None
    found: Found = server.postgres_tables(url)
    return found


def _database_name(url: str) -> str:
    name = re.fullmatch(r"\w+://[^?#]*/([\w-]+)(?:\?.*)?", url)
    return name[1] if name else "schema"


# --- files -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Group:
    """Files of one table: `pattern` is for the schema, `first` the file to look at; `why` it is left out."""

    name: str
    pattern: str
    first: str
    format: str
    why: str | None = None


def _groups(source: str) -> Iterator[_Group]:
    if os.path.isdir(source):
        yield from _folder(Path(os.path.abspath(source)))
    elif os.path.exists(source):
        yield _one(Path(os.path.abspath(source)))
    elif _WILD.search(source):
        yield _glob(source)
    else:
        raise OperationalError(f'there is no file or folder "{shown(source, 200)}"')


def _one(path: Path) -> _Group:
    if path.suffix.lower() not in _FORMATS:
        raise InterfaceError(
            f'"{shown(path.name)}" is no source that a schema can be drafted from',
            hint="Name .duckdb, .parquet or .csv files, a folder of them, or postgresql://…",
        )
    return _Group(path.stem, glob.escape(str(path)), str(path), path.suffix.lower()[1:])


def _glob(source: str) -> _Group:
    matches = sorted(path for path in glob.glob(os.path.abspath(source), recursive=True) if os.path.isfile(path))
    if not matches:
        raise OperationalError(f'no file matches "{shown(source, 200)}"')
    endings = {Path(path).suffix.lower() for path in matches}
    if len(endings) > 1 or not endings <= set(_FORMATS):
        raise InterfaceError(
            f'"{shown(source, 200)}" matches files that are not one table',
            hint="End the pattern in .parquet or .csv: a pattern is one table.",
        )
    fixed = re.split(r"[*?\[{]", Path(source).name)[0].rstrip("_-. ")
    return _Group(
        fixed or Path(os.path.abspath(source)).parent.name, os.path.abspath(source), matches[0], endings.pop()[1:]
    )


def _folder(folder: Path) -> Iterator[_Group]:
    """Each file is a table, and each folder in it whose files are of one kind."""
    found = list(_in_folder(folder))
    if not any(group.why is None for group in found):
        raise OperationalError(
            f'the folder "{shown(str(folder), 200)}" holds no .parquet or .csv files',
            hint="Name the folder that holds them, or a DuckDB file.",
        )
    yield from found


def _in_folder(folder: Path) -> Iterator[_Group]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "_")) or path.name.endswith(".snapshots"):
            continue
        if path.is_file() and path.suffix.lower() in _FORMATS:
            yield _one(path)
        elif path.is_dir():
            endings = {file.suffix.lower() for file in path.iterdir() if file.is_file()} & set(_FORMATS)
            if len(endings) == 1:
                ending = endings.pop()
                first = min(str(file) for file in path.iterdir() if file.suffix.lower() == ending)
                yield _Group(path.name, os.path.join(glob.escape(str(path)), f"*{ending}"), first, ending[1:])
        elif path.is_file() and path.suffix.lower() in (".json", ".tsv", ".xlsx", ".duckdb", ".ddb"):
            why = f'the file "{path.name}": only .parquet and .csv files of a folder are drafted'
            yield _Group(path.stem, "", str(path), "", why)


def _files(groups: Sequence[_Group], header: bool | None) -> Found:
    tables = []
    with DuckDBOwner(MEMORY) as owner:
        for group in groups:
            files = Files((group.pattern,), group.format)
            if group.format == "parquet":
                tables.append(parquet_table(owner, group.name, files, group.first))
            else:
                tables.append(csv_table(owner, group.name, files, group.first, header))
    return Found(tuple(tables))
