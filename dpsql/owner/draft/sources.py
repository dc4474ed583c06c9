"""From the sources that an owner names on a command line to the tables that are there."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from dpsql.engines.duckdb_admin import DuckDBAdmin
from dpsql.errors import Error, InterfaceError, OperationalError
from dpsql.owner.introspect.csv_files import introspect_csv
from dpsql.owner.introspect.tables import (
    IntrospectedSource,
    IntrospectedTable,
    introspect_duckdb,
    introspect_parquet,
)
from dpsql.schema.document import printable_text
from dpsql.schema.keys import COLUMN_NAME, NAME
from dpsql.schema.locations import MEMORY_URL
from dpsql.schema.model import EngineTable, Files

_DATABASES = (".duckdb", ".ddb", ".db")
_FORMATS = {".parquet": "parquet", **dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), "csv")}
_WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class DataSources:
    """All tables, by names that a schema can hold; `database` is a DuckDB file, `server` says that they are on one.

    `left_out` is what is there and is no table of the draft, in words.
    """

    tables: tuple[IntrospectedTable, ...]
    name: str
    database: str | None = None
    server: bool = False
    left_out: tuple[str, ...] = ()


def find_sources(arguments: Sequence[str], header: bool | None = None) -> DataSources:
    """`header` is the owner's word on the first lines of CSV files."""
    servers = [item for item in arguments if re.match(r"postgres(ql)?://", item)]
    if servers:
        if len(arguments) > 1:
            raise InterfaceError("a PostgreSQL server stands alone among the sources", hint="Draft one schema for it.")
        return _name_tables(_read_postgres(servers[0]), _database_name(servers[0]), server=True)
    arguments = [item for argument in arguments for item in (argument, *_folder_databases(argument))]
    databases = [item for item in arguments if _is_database(item)]
    if len(databases) > 1:
        raise InterfaceError("a schema reads one DuckDB file", hint="Draft one schema for each, or name Parquet files.")
    parts = [_read_duckdb(databases[0])] if databases else []
    files = [group for item in arguments if item not in databases for group in _list_groups(item)]
    left_out = tuple(group.why for group in files if group.why)
    parts.append(_read_files([group for group in files if not group.why], header))
    combined = IntrospectedSource(
        tuple(t for item in parts for t in item.tables), tuple(t for item in parts for t in item.left_out)
    )
    path = os.path.abspath(_database_path(databases[0])) if databases else None
    first = Path(path or os.path.abspath(_WILDCARD.split(arguments[0])[0]))
    return _name_tables(
        replace(combined, left_out=(*combined.left_out, *left_out)), first.stem or first.parent.name, database=path
    )


def _name_tables(
    inventory: IntrospectedSource, name: str, database: str | None = None, server: bool = False
) -> DataSources:
    """The tables that a schema can name; nothing of the others is lost silently."""
    left_out, used_names, tables = list(inventory.left_out), set[str](), list[IntrospectedTable]()
    for table in inventory.tables:
        why = _unfit_reason(table)
        if why is not None:
            left_out.append(f'the table "{printable_text(table.name)}": {why}')
            continue
        first = {column.name.casefold(): column for column in reversed(table.columns)}
        columns = tuple(
            column
            for column in table.columns
            if _is_valid_name(COLUMN_NAME, column.name) and first[column.name.casefold()] is column
        )
        left_out += [
            f'the column "{printable_text(column.name)}" of "{table.name}": a schema cannot hold its name'
            for column in table.columns
            if column not in columns
        ]
        fresh = replace(table, columns=columns, name=_unused_name(table.name, used_names))
        used_names.add(fresh.name.casefold())
        tables.append(fresh)
    complete = tuple(_drop_dangling_keys(table, tables) for table in tables)
    return DataSources(complete, to_file_name(name), database, server, tuple(left_out))


def to_file_name(name: str) -> str:
    """A name for files.

    >>> to_file_name("my clinic (2024)"), to_file_name("日本")
    ('my_clinic_2024', 'schema')
    """
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_") or "schema"


def _drop_dangling_keys(table: IntrospectedTable, tables: Sequence[IntrospectedTable]) -> IntrospectedTable:
    """The table without keys and references that name what was left out."""
    present = {(item.name, column.name) for item in tables for column in item.columns}
    return replace(
        table,
        unique=tuple(key for key in table.unique if all((table.name, name) in present for name in key)),
        references=tuple(
            item
            for item in table.references
            if all((table.name, name) in present for name in item.columns)
            and all((item.table, name) in present for name in item.keys)
        ),
    )


def _is_valid_name(pattern: str, name: str) -> bool:
    """Whether the schema loader accepts the name."""
    return bool(re.fullmatch(pattern, name)) and name.isprintable()


def _unfit_reason(table: IntrospectedTable) -> str | None:
    if all(column.type is None for column in table.columns):
        return "none of its columns has a type of dpsql"
    if not _is_valid_name(NAME, table.name):
        return "a schema cannot hold its name; make a view of it with another"
    match table.source:
        case EngineTable((_,)):
            return None
        case EngineTable(parts):
            text = ".".join(parts)
            odd = not all(_is_valid_name(NAME, part) for part in parts) or any(c in text for c in "/\\*?[$")
            return "a schema cannot name its place; make a view of it in main" if odd else None
        case Files(patterns):
            odd = any("${" in path or "://" in path or not path.isprintable() for path in patterns)
            return "a schema cannot hold its path" if odd else None


def _unused_name(name: str, used_names: set[str]) -> str:
    fresh, number = name, 2
    while fresh.casefold() in used_names:
        fresh, number = f"{name}_{number}", number + 1
    return fresh


# --- databases -------------------------------------------------------------------------------------------------------


def _is_database(source: str) -> bool:
    return source.startswith("duckdb:///") or (source.lower().endswith(_DATABASES) and not os.path.isdir(source))


def _folder_databases(source: str) -> list[str]:
    """DuckDB files in a folder, whose tables are drafted beside its other files."""
    if not os.path.isdir(source):
        return []
    return sorted(str(path) for path in Path(source).iterdir() if path.is_file() and _is_duckdb_file(path))


def _is_duckdb_file(path: Path) -> bool:
    """By its first bytes too: many programs call their files .db."""
    if path.suffix.lower() not in _DATABASES:
        return False
    with open(path, "rb") as stream:
        return stream.read(12)[8:] == b"DUCK"


def _database_path(source: str) -> str:
    return source.removeprefix("duckdb:///")


def _read_duckdb(source: str) -> IntrospectedSource:
    with DuckDBAdmin(f"duckdb:///{os.path.abspath(_database_path(source))}") as owner:
        return introspect_duckdb(owner)


def _read_postgres(url: str) -> IntrospectedSource:
    try:
        server = import_module("dpsql.owner.introspect.postgres")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("dpsql"):
            raise
        raise OperationalError(
            "reading a PostgreSQL server needs the package psycopg", hint="Write: pip install 'dpsql[postgres]'"
        ) from None
    inventory: IntrospectedSource = server.introspect_postgres(url)
    return inventory


def _database_name(url: str) -> str:
    name = re.fullmatch(r"\w+://[^?#]*/([\w-]+)(?:\?.*)?", url)
    return name[1] if name else "schema"


# --- files -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _FileGroup:
    """Files of one table: `pattern` is for the schema, `first` the file to look at; `why` it is left out."""

    name: str
    pattern: str
    first: str
    format: str
    why: str | None = None


def _list_groups(source: str) -> Iterator[_FileGroup]:
    if os.path.isdir(source):
        yield from _folder_groups(Path(os.path.abspath(source)))
    elif os.path.exists(source):
        yield _single_file_group(Path(os.path.abspath(source)))
    elif _WILDCARD.search(source):
        yield _glob_group(source)
    else:
        raise OperationalError(f'there is no file or folder "{printable_text(source, 200)}"')


def _ending(path: str | Path) -> str | None:
    """What the name of a file of tables ends in; None of another."""
    name = Path(path).name.lower()
    return next((ending for ending in _FORMATS if name.endswith(ending) and name != ending), None)


def _table_name(text: str) -> str:
    """The name of a table that is made of files: of what they are called, what a schema can hold.

    >>> _table_name("visits"), _table_name("visits.2024 (1)"), _table_name('a "b"'), _table_name("..")
    ('visits', 'visits_2024 (1)', 'a _b', 'table')
    """
    return re.sub(r'[".\s]', lambda match: " " if match[0] == " " else "_", text).strip(" _") or "table"


def _single_file_group(path: Path) -> _FileGroup:
    ending = _ending(path)
    if ending is None:
        raise InterfaceError(
            f'"{printable_text(path.name)}" is no source that a schema can be drafted from',
            hint="Name .duckdb, .parquet or .csv files, a folder of them, or postgresql://…",
        )
    name = _table_name(path.name[: -len(ending)])
    return _FileGroup(name, glob.escape(str(path)), str(path), _FORMATS[ending])


def _glob_group(source: str) -> _FileGroup:
    matches = sorted(path for path in glob.glob(os.path.abspath(source), recursive=True) if os.path.isfile(path))
    if not matches:
        raise OperationalError(f'no file matches "{printable_text(source, 200)}"')
    endings = {_ending(path) for path in matches}
    ending = endings.pop()
    if endings or ending is None:
        raise InterfaceError(
            f'"{printable_text(source, 200)}" matches files that are not one table',
            hint="End the pattern in .parquet or .csv: a pattern is one table.",
        )
    fixed = re.split(r"[*?\[{]", Path(source).name)[0].rstrip("_-. ")
    return _FileGroup(
        _table_name(fixed or Path(os.path.abspath(source)).parent.name),
        os.path.abspath(source),
        matches[0],
        _FORMATS[ending],
    )


def _folder_groups(folder: Path) -> Iterator[_FileGroup]:
    """Each file is a table, and each folder in it whose files are of one kind."""
    groups = list(_scan_folder(folder))
    if not any(group.why is None for group in groups) and not _folder_databases(str(folder)):
        raise OperationalError(
            f'the folder "{printable_text(str(folder), 200)}" holds no .parquet or .csv files',
            hint="Name the folder that holds them, or a DuckDB file.",
        )
    yield from groups


def _scan_folder(folder: Path) -> Iterator[_FileGroup]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "_")) or path.name.endswith(".snapshots"):
            continue
        if path.is_file() and _ending(path) is not None:
            yield _single_file_group(path)
        elif path.is_dir():
            endings = {ending for file in path.iterdir() if file.is_file() and (ending := _ending(file)) is not None}
            if len(endings) == 1:
                ending = endings.pop()
                first = min(str(file) for file in path.iterdir() if _ending(file) == ending)
                pattern = os.path.join(glob.escape(str(path)), f"*{ending}")
                yield _FileGroup(_table_name(path.name), pattern, first, _FORMATS[ending])
        elif path.is_file() and path.suffix.lower() in (".json", ".xlsx"):
            why = f'the file "{path.name}": only .parquet and .csv files of a folder are drafted'
            yield _FileGroup(path.stem, "", str(path), "", why)


def _read_files(groups: Sequence[_FileGroup], header: bool | None) -> IntrospectedSource:
    """One that cannot be served is left out with its reason; where it is the only one, that is an error."""
    tables, left_out = [], []
    with DuckDBAdmin(MEMORY_URL) as owner:
        for group in groups:
            try:
                tables.append(_read_group(owner, group, header))
            except Error as error:
                if len(groups) == 1:
                    raise
                left_out.append(f"{error.message}. {error.hint or ''}".strip())
    return IntrospectedSource(tuple(tables), tuple(left_out))


def _read_group(owner: DuckDBAdmin, group: _FileGroup, header: bool | None) -> IntrospectedTable:
    files = Files((group.pattern,), group.format)
    if group.format == "parquet":
        return introspect_parquet(owner, group.name, files, group.first)
    return introspect_csv(owner, group.name, files, group.first, header)
