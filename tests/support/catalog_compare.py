"""Statements about the catalog, asked of dpsql and of a PostgreSQL that has the same tables.

`tests/corpus/catalog/*.sql` has what clients send. A statement is `same` where the names, types and rows of the answer
are PostgreSQL's. Numbers of objects differ from server to server: they are compared by the names of their objects, and
{samples} in a statement stands for the number of the table of that name.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg

from dpsql.compiler.catalog.objects import objects_of
from dpsql.compiler.catalog.query import read_catalog_query
from dpsql.compiler.catalog.variables import Identity, Variables
from dpsql.errors import Error
from dpsql.schema.load import load_schema
from dpsql.schema.model import Column, Domain, Schema
from dpsql.session.postprocess.catalog_sandbox import run_catalog_query
from dpsql.types import BIGINT, INTEGER
from tests.support.catalog_reference import statements

FOLDER = Path(__file__).parents[1] / "corpus" / "catalog"
NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
OF_LAB = ("psql", "drivers", "bi")
"""Files whose statements are about lab.yaml; the others were captured on hospital.yaml."""
USER = "postgres"  # who owns the tables there, and asks here


@dataclass(frozen=True)
class Asked:
    file: str
    place: int
    title: str
    sql: str

    @property
    def schema(self) -> str:
        return "lab" if self.file in OF_LAB else "hospital"


def corpus() -> list[Asked]:
    return [one for path in sorted(FOLDER.glob("*.sql")) for one in _read(path)]


def _read(path: Path) -> Iterator[Asked]:
    for place, text in enumerate(re.split(r";\n\n|;\n(?=-- )", path.read_text(encoding="utf-8") + "\n")):
        titles = re.match(r"((?:--[^\n]*\n)*)", text.strip() + "\n")
        assert titles is not None
        sql = text.strip()[titles.end() :].strip().rstrip(";")
        if sql:
            yield Asked(path.stem, place, titles[1].removeprefix("-- ").strip(), sql)


def shown(name: str) -> Schema:
    """A schema with the columns of its views."""
    schema = load_schema(FOLDER / f"{name}.yaml")
    columns = {
        "per_grade": (Column("grade", Domain(INTEGER)), Column("n", Domain(BIGINT))),
        "planned_visits": tuple(
            Column(one.name, Domain(one.type)) for table in schema.tables if table.name == "visits" for one in
            table.columns),
    }  # fmt: skip
    return replace(schema, views=tuple(replace(view, columns=columns[view.name]) for view in schema.views))


def fill(url: str, schema: Schema) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        for statement in statements(schema):
            db.execute(statement)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Told:
    columns: list[tuple[str, str]]
    rows: list[Any]


class Both:
    """The two that are asked."""

    def __init__(self, url: str, schema: Schema) -> None:
        self.schema = schema
        self.who = Identity(USER, schema.database, "1", Variables().items())
        self.db = psycopg.connect(url, autocommit=True)
        self.types = dict(self._pairs("SELECT oid, typname FROM pg_type"))
        self.theirs = dict(self._pairs(
            "SELECT oid, relname FROM pg_class WHERE oid >= 16384 UNION ALL "
            "SELECT oid, 'type ' || typname FROM pg_type WHERE oid >= 16384 UNION ALL "
            "SELECT oid, 'constraint ' || conname FROM pg_constraint WHERE oid >= 16384"
        ))  # fmt: skip
        self.ours = _numbers(schema)

    def _pairs(self, sql: str) -> list[tuple[int, str]]:
        return list(self.db.execute(sql))  # type: ignore[call-overload]

    def close(self) -> None:
        self.db.close()

    def postgres(self, sql: str) -> Told:
        with psycopg.ClientCursor(self.db) as cursor:
            cursor.execute(_numbered(sql, self.theirs))  # type: ignore[arg-type]
            titles = cursor.description or []
            columns = [(one.name, _spelled(self.types.get(one.type_code, "?"))) for one in titles]
            return Told(columns, [_plain(row, self.theirs) for row in cursor.fetchall()])

    def dpsql(self, sql: str) -> Told | None:
        query = read_catalog_query(_numbered(sql, self.ours), (), self.schema, self.who, NOW)
        if query is None:
            return None
        found = run_catalog_query(self.schema, query, 30)
        columns = [(one.name, _spelled(one.spelling)) for one in found.columns]
        kinds = [one.spelling for one in found.columns]
        rows = [[_vector(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in found.rows]
        return Told(columns, [_plain(row, self.ours) for row in rows])

    def verdict(self, sql: str) -> str:
        """`same`, or what is not: `none` where dpsql does not take it for a statement about the catalog."""
        theirs = self.postgres(sql)
        try:
            ours = self.dpsql(sql)
        except Error as error:
            return f"error: {error.message}"
        if ours is None:
            return "none"
        if [name for name, _ in ours.columns] != [name for name, _ in theirs.columns]:
            return "names"
        if sorted(map(repr, ours.rows)) != sorted(map(repr, theirs.rows)):
            return "rows"
        if re.search(r"order\s+by[^)]*$", sql, re.IGNORECASE) and ours.rows != theirs.rows:
            return "order"
        return "same" if ours.columns == theirs.columns else "types"


def _numbers(schema: Schema) -> dict[int, str]:
    objects = objects_of(schema)
    found: dict[int, str] = {}
    for one in objects.relations:
        found |= {one.oid: one.name, one.row_type: f"type {one.name}", one.row_array: f"type _{one.name}"}
    for key in objects.keys:
        found |= {key.index: key.name, key.oid: f"constraint {key.name}"}
    return found | {one.oid: f"constraint {one.name}" for one in objects.foreign}


def _numbered(sql: str, names: Mapping[int, str]) -> str:
    numbers = {name: str(number) for number, name in names.items()}
    return re.sub(r"\{([A-Za-z_ ]+)\}", lambda match: numbers.get(match[1], match[0]), sql)


def _spelled(name: str) -> str:
    """Arrays end in []; varchar is text here."""
    word = f"{name[1:]}[]" if name.startswith("_") else name
    return "text" if word == "varchar" else word


def _vector(value: Any, spelling: str) -> Any:
    return " ".join(map(str, value)) if spelling.endswith("vector") and isinstance(value, list) else value


def _plain(value: Any, names: Mapping[int, str]) -> Any:
    """What can be compared: numbers of objects as names, JSON as values, and one name for who owns everything."""
    if isinstance(value, list | tuple):
        return [_plain(one, names) for one in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return names.get(value, value) if value >= 16384 else value
    if isinstance(value, float | Decimal):
        return float(value)
    if isinstance(value, dict):
        return {key: _plain(one, names) for key, one in value.items()}
    if isinstance(value, str):
        if value.isdigit() and int(value) in names:
            return names[int(value)]
        if value.startswith('{"'):
            return json.loads(value) if ":" in value else value
        return value.replace("postgres", "owner")
    return value
