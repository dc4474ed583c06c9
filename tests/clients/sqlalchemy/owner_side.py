"""The owner's side of SQLAlchemy's suite: what dpsql never does for an analyst is done here, beside it.

The suite makes its own tables and rows. Here `dpsql+suite` is the dialect under test with a connection that has two
hands. What writes (CREATE, DROP, INSERT…) goes to a DuckDB file, as an owner would write it, and the schema is written
anew, with every table public; all else (each SELECT, each look at the catalog, every bound value and type) goes through
`dpsql.connect` and the dialect as it is. A rollback brings back the file and the schema as they were.
"""

from __future__ import annotations

import re
import shutil
import types
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import yaml
from sqlalchemy import Table, event
from sqlalchemy.engine import URL
from sqlalchemy.types import Float, TypeEngine

import dpsql
from dpsql.interfaces.sqlalchemy.dialect import DpsqlDialect
from dpsql.types import Kind, parse_type

_WRITES = re.compile(r"\s*(CREATE|DROP|INSERT|UPDATE|DELETE|ALTER|COMMENT|TRUNCATE)\b", re.IGNORECASE)
_VIEW = re.compile(r'\s*CREATE VIEW (?:public\.)?("(?:[^"]|"")+"|\w+) AS\s+(.*)', re.IGNORECASE | re.DOTALL)
_DROP = re.compile(r'\s*DROP (?:TABLE|VIEW) (?:IF EXISTS )?(?:public\.)?("(?:[^"]|"")+"|\w+)', re.IGNORECASE)
_TABLE = re.compile(r"\s*(CREATE TABLE|COMMENT|CREATE (UNIQUE )?INDEX|DROP INDEX|ALTER)\b", re.IGNORECASE)


class Owner:
    """One DuckDB file, and the schema that declares what is in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "suite.duckdb"
        self.tables: dict[str, dict[str, Any]] = {}
        self.views: dict[str, str] = {}
        self.opened: list[SuiteConnection] = []
        self.numbers = count()
        self.saved: tuple[dict[str, Any], dict[str, str]] | None = None
        duckdb.connect(str(self.file)).close()
        event.listen(Table, "after_create", self.created)

    # --- writing -----------------------------------------------------------------------------------------------------

    def about_to_write(self) -> None:
        """Nobody reads meanwhile, and a rollback leads back to before the first write since the last commit."""
        for connection in self.opened:
            connection.let_go()
        if self.saved is None:
            shutil.copy(self.file, self.folder / "before")
            self.saved = (dict(self.tables), dict(self.views))

    def commit(self) -> None:
        self.saved = None

    def rollback(self) -> None:
        if self.saved is not None:
            for connection in self.opened:
                connection.let_go()
            shutil.copy(self.folder / "before", self.file)
            self.tables, self.views = self.saved
            self.saved = None

    def write(self, sql: str, each: list[Any]) -> None:
        self.about_to_write()
        if view := _VIEW.match(sql):
            self.views[_name(view[1])] = view[2]
        elif drop := _DROP.match(sql):
            self.views.pop(_name(drop[1]), None)
            if self.tables.pop(_name(drop[1]), None) is not None:
                self.run(f"DROP TABLE {_quoted(_name(drop[1]))}")
        elif not _TABLE.match(sql):  # tables are made by `created`, which knows more than the text
            for parameters in each:
                self.run(sql, parameters)

    def created(self, table: Table, connection: Any, **kw: Any) -> None:
        """A table of SQLAlchemy's, without constraints: those that dpsql knows are declared, and checked by it."""
        if str(table.name) in self.views:
            return
        self.about_to_write()
        types_ = {str(column.name): _declared(column.type, connection.dialect) for column in table.columns}
        counted = table._autoincrement_column
        self.run(f"CREATE OR REPLACE SEQUENCE {_quoted(table.name + '_ids')}")
        default = f" DEFAULT nextval('{_quoted(table.name + '_ids')}')"
        columns = ", ".join(
            f"{_quoted(name)} {type_}{default if counted is not None and name == counted.name else ''}"
            for name, (type_, _) in types_.items()
        )
        self.run(f"CREATE TABLE {_quoted(table.name)} ({columns})")
        keys = [[str(column.name) for column in table.primary_key]] if list(table.primary_key) else []
        self.tables[str(table.name)] = {
            "public": True,
            **({"unique": keys} if keys else {}),
            "columns": {
                name: {"type": type_, **more, **_described(table.columns[name].comment)}
                for name, (type_, more) in types_.items()
            },
            **_described(table.comment),
        }

    def run(self, sql: str, parameters: Any = ()) -> None:
        with duckdb.connect(str(self.file)) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(sql, list(parameters))

    # --- reading -----------------------------------------------------------------------------------------------------

    def open(self) -> Any:
        number = next(self.numbers)
        path = self.folder / f"suite{number}.yaml"
        nothing = {"nothing": {"public": True, "source": "data.csv", "columns": {"nothing": {"type": "integer"}}}}
        (self.folder / "data.csv").write_text("nothing\n")
        schema = {
            "dpsql": 1,
            "engine": f"duckdb:///{self.file}",
            "privacy": {"unit": "row", "budget": {"epsilon": 1, "delta": 0}},
            "tables": self.tables or nothing,
            **({"views": self.views} if self.views else {}),
        }
        path.write_text(yaml.safe_dump(schema, sort_keys=False, allow_unicode=True))
        return dpsql.connect(path)


def _name(text: str) -> str:
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _declared(type_: TypeEngine[Any], dialect: Any) -> tuple[str, dict[str, Any]]:
    """As the schema spells it; what dpsql has no type for is text there."""
    spelled = dialect.type_compiler_instance.process(type_)
    parsed = parse_type(re.sub(r"(TIMESTAMP|TIME) ?\(\d+\)", r"\1", spelled))
    if isinstance(type_, Float) and spelled.startswith("FLOAT"):
        return "double", {}
    if parsed is None:
        return "text", {"max_length": 1 << 20}
    return str(parsed), ({"max_length": 1 << 20} if parsed.kind is Kind.TEXT else {})


def _described(comment: str | None) -> dict[str, str]:
    return {} if comment is None else {"description": " ".join(comment.split())}


class SuiteConnection:
    """A connection of dpsql's that is opened when it is asked, and again after the owner has written."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.inner: Any = None
        self.closed = False
        self.transaction: list[str] = []  # its commands, which a connection that is opened within it hears again
        owner.opened.append(self)

    def reading(self) -> Any:
        if self.closed:
            raise dpsql.InterfaceError("the connection is closed")
        if self.inner is None:
            self.inner = self.owner.open()
            for command in self.transaction:
                self.inner.cursor().execute(command)
        return self.inner

    def let_go(self) -> None:
        if self.inner is not None:
            self.inner.close()
            self.inner = None

    def cursor(self) -> SuiteCursor:
        return SuiteCursor(self)

    def tables(self) -> Any:
        return tuple(table for table in self.reading().tables() if self.owner.tables or table.name != "nothing")

    def close(self) -> None:
        self.let_go()
        self.closed = True
        if self in self.owner.opened:
            self.owner.opened.remove(self)


class SuiteCursor:
    arraysize = 1

    def __init__(self, connection: SuiteConnection) -> None:
        self.connection = connection
        self.inner: Any = None

    def execute(self, sql: str, parameters: Any = (), **given: Any) -> SuiteCursor:
        owner = self.connection.owner
        if _WRITES.match(sql):
            owner.write(sql, [parameters])
            return self
        if sql in ("COMMIT", "ROLLBACK"):
            self.connection.transaction = []
            (owner.commit if sql == "COMMIT" else owner.rollback)()
        elif sql.split()[0] in ("BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK"):
            self.connection.transaction.append(sql)
            if self.connection.inner is None:
                return self
        self.inner = self.connection.reading().cursor()
        self.inner.execute(sql, parameters, **given)
        return self

    def executemany(self, sql: str, each: Any) -> None:
        self.connection.owner.write(sql, list(each))

    def close(self) -> None:
        self.inner = None

    rowcount = -1
    lastrowid = None

    def __getattr__(self, name: str) -> Any:
        if self.inner is None and name in ("description", "loss", "notices", "receipts"):
            return None
        return getattr(self.inner, name)


class SuiteDialect(DpsqlDialect):
    driver = "suite"
    supports_statement_cache = True
    owners: dict[str, Owner] = {}

    @classmethod
    def import_dbapi(cls) -> Any:
        module = types.SimpleNamespace(**{name: getattr(dpsql, name) for name in dpsql.__all__})
        module.connect = lambda folder: SuiteConnection(cls.owner(folder))
        return module

    @classmethod
    def owner(cls, folder: str) -> Owner:
        if folder not in cls.owners:
            cls.owners[folder] = Owner(Path(folder))
        return cls.owners[folder]

    def create_connect_args(self, url: URL) -> Any:
        return [url.database], {}
