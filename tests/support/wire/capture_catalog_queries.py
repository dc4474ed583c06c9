"""What clients ask of the catalog, written down: they are run on PostgreSQL, whose log tells the statements.

    .venv/bin/python -m tests.support.wire.capture_catalog_queries       rewrites tests/corpus/catalog/<client>.sql

Parameters are put in as literals, and numbers of tables as 'public.visits'::regclass::oid, so that a statement means
the same on any server.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import psycopg

from tests.support.postgres import Server
from tests.support.wire import catalog_introspection, java
from tests.support.wire.hospital import Place
from tests.support.wire.reference_server import running_reference

FOLDER = Path(__file__).resolve().parents[2] / "corpus" / "catalog"
LINE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC \[\d+\] (\w+):  (.*)$")
STATEMENT = re.compile(r"(?:statement|execute [^:]*): (.*)", re.S)
PARAMETER = re.compile(r"\$(\d+) = (NULL|'(?:[^']|'')*')")
SKIPPED = re.compile(  # no question to the catalog
    r"\s*((BEGIN|COMMIT|ROLLBACK|SET|SHOW|DISCARD|DEALLOCATE|RESET|SAVEPOINT|RELEASE|CLOSE|UNLISTEN)\b|SELECT 1(\.50)?$"
    r"|(?s:.*)\bFROM wards$)", re.I)  # fmt: skip


def clients(place: Place) -> dict[str, Callable[[], object]]:
    drivers = ("psycopg", "psycopg2", "asyncpg", "pg8000")
    told: dict[str, Callable[[], object]] = {
        f"sqlalchemy_{driver}": lambda driver=driver: catalog_introspection.sqlalchemy_inspector(place, driver)
        for driver in drivers
    }
    return {
        **told,
        "pandas": lambda: catalog_introspection.pandas_tables(place),
        "psycopg": lambda: catalog_introspection.psycopg_types(place),
        "asyncpg": lambda: catalog_introspection.asyncpg_types(place),
        "pgcli": lambda: catalog_introspection.pgcli_completion(place),
        "odbc": lambda: catalog_introspection.odbc_catalog(place),  # the driver's ANSI twin asks the same
        "jdbc": lambda: java.run(place, "metadata"),
    }


def logged(log: str) -> list[str]:
    """The statements of a log in order, each with its parameters put in."""
    entries: list[tuple[str, str]] = []
    for line in log.splitlines():
        match = LINE.match(line)
        if match:
            entries.append((match[1], match[2]))
        elif entries:
            kind, text = entries[-1]
            entries[-1] = kind, f"{text}\n{line.removeprefix(chr(9))}"
    statements: list[str] = []
    for kind, text in entries:
        match = STATEMENT.fullmatch(text) if kind == "LOG" else None
        if match:
            statements.append(match[1])
        elif kind == "DETAIL" and text.startswith(("parameters:", "Parameters:")) and statements:
            statements[-1] = filled(statements[-1], dict(PARAMETER.findall(text)))
    return statements


def filled(statement: str, values: dict[str, str]) -> str:
    return re.sub(r"\$(\d+)\b", lambda found: values.get(found[1], found[0]), statement)


def numbers(server: Server, place: Place) -> dict[str, str]:
    """Of the hospital's own tables, which another server numbers otherwise."""
    with psycopg.connect(server.database(place.database)) as db:
        found = db.execute("SELECT oid::text, relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
        return dict(found.fetchall())


def named(statement: str, tables: dict[str, str]) -> str:
    def name(found: re.Match[str]) -> str:
        table = tables.get(found[2])
        return f"'public.{table}'::regclass::oid" if table else found[0]

    return re.sub(r"('?)\b(\d{5,})\b\1", name, statement)


def capture() -> None:
    FOLDER.mkdir(exist_ok=True)
    with running_reference("log_statement=all", "log_line_prefix=%m [%p] ", "log_timezone=UTC") as (place, server):
        tables = numbers(server, place)
        log = server.folder / "log"
        for client, ask in clients(place).items():
            start = log.stat().st_size
            ask()
            text = log.read_bytes()[start:].decode()
            asked = [part.strip() for one in logged(text) for part in re.split(r";\s*(?:\n|$)", named(one, tables))]
            kept = [one for one in dict.fromkeys(asked) if one and not SKIPPED.match(one)]
            (FOLDER / f"{client}.sql").write_text("".join(f"{one};\n\n" for one in kept), encoding="utf-8")
            print(f"{client}: {len(kept)} statements")


if __name__ == "__main__":
    capture()
