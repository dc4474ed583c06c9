"""What tables a PostgreSQL server has, by its catalogs alone: no table is read.

Law: the URL may hold a password, so no message quotes it, nor what the driver says of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import psycopg

from dpsql.errors import OperationalError
from dpsql.owner.introspect.tables import ForeignKeyReference, IntrospectedColumn, IntrospectedSource, IntrospectedTable
from dpsql.schema.model import Files
from dpsql.types import TEXT, Type, parse_type

_CONNECT_TIMEOUT = 10

_TABLES = """
SELECT c.oid::bigint, n.nspname::text, c.relname::text, obj_description(c.oid, 'pg_class'), c.relkind::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY n.nspname <> 'public', n.nspname, c.oid
"""
_COLUMNS = """
SELECT a.attrelid::bigint, a.attname::text, format_type(a.atttypid, a.atttypmod), col_description(a.attrelid, a.attnum),
       (SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = a.atttypid),
       format_type(CASE t.typtype WHEN 'd' THEN t.typbasetype END, t.typtypmod)
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid = ANY (%s) ORDER BY a.attrelid, a.attnum
"""
_CONSTRAINTS = """
SELECT k.conrelid::bigint, k.contype::text, k.confrelid::bigint, pg_get_constraintdef(k.oid),
       (SELECT array_agg(a.attname::text ORDER BY x.place) FROM unnest(k.conkey) WITH ORDINALITY x(number, place)
        JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = x.number),
       (SELECT array_agg(a.attname::text ORDER BY x.place) FROM unnest(k.confkey) WITH ORDINALITY x(number, place)
        JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = x.number)
FROM pg_constraint k WHERE k.conrelid = ANY (%s) AND k.contype IN ('p', 'u', 'f', 'c')
ORDER BY k.contype <> 'p', k.oid
"""


def introspect_postgres(url: str) -> IntrospectedSource:
    """The tables that the URL's user may read, each as the CSV file that it can be exported to."""
    try:
        with psycopg.connect(url, connect_timeout=_CONNECT_TIMEOUT) as db:
            db.read_only = True
            tables = db.execute(_TABLES).fetchall()
            numbers = [row[0] for row in tables]
            columns = db.execute(_COLUMNS, (numbers,)).fetchall()
            constraints = db.execute(_CONSTRAINTS, (numbers,)).fetchall()
    except (psycopg.Error, UnicodeError, ValueError):
        raise OperationalError(
            "the PostgreSQL server cannot be asked",
            hint="Check that psql can connect by the same URL: host, port, database, user and password.",
        ) from None
    names = {row[0]: row[2] if row[1] == "public" else f"{row[1]}_{row[2]}" for row in tables}
    introspected = [
        IntrospectedTable(
            names[number],
            Files((f"{names[number]}.csv",), "csv"),
            tuple(_introspect_column(row) for row in columns if row[0] == number),
            tuple(tuple(row[4]) for row in constraints if row[0] == number and row[1] in "pu"),
            tuple(
                ForeignKeyReference(tuple(row[4]), names[row[2]], tuple(row[5]))
                for row in constraints
                if row[0] == number and row[1] == "f" and row[2] in names
            ),
            tuple(row[3].removeprefix("CHECK ") for row in constraints if row[0] == number and row[1] == "c"),
            comment,
            (schema, name),
        )
        for number, schema, name, comment, kind in tables
        if kind in "rpf"
    ]
    views = tuple(f'the view "{names[row[0]]}"' for row in tables if row[4] in "vm")
    return IntrospectedSource(tuple(introspected), views)


def _introspect_column(row: Sequence[object]) -> IntrospectedColumn:
    _, name, spelling, comment, labels, base = row
    values = tuple(str(label) for label in labels) if isinstance(labels, list) else ()
    type_ = TEXT if values else _declarable_type(str(base) if base is not None else str(spelling))
    length = re.fullmatch(r"(?:character varying|character)\((\d+)\)", str(spelling))
    return IntrospectedColumn(
        str(name), str(spelling), type_, values, int(length[1]) if length else None,
        None if comment is None else str(comment),
    )  # fmt: skip


def _declarable_type(spelling: str) -> Type | None:
    """Numbers without a precision may have any digits: a double holds them best."""
    if spelling == "numeric":
        return parse_type("double")
    if re.fullmatch(r"(character varying|character|citext|name)(\(\d+\))?", spelling):
        return TEXT
    spelling = re.sub(r"^(timestamp|time|interval)\(\d\)", r"\1", spelling)
    return parse_type(spelling)
