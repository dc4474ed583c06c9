"""Writes dpsql/compiler/catalog/data from a PostgreSQL 16: `.venv/bin/python -m tests.support.catalog_data`.

What a server has before anything is created in it, as far as clients look at it: the columns of all relations of
pg_catalog and information_schema, and the rows of those that list types, functions, access methods and the like.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import psycopg

from dpsql.compiler.catalog.functions import CATALOG_FUNCTIONS, SESSION_FUNCTIONS, TABLE_FUNCTIONS
from dpsql.compiler.catalog.variables import VARIABLES
from dpsql.session.sql_reference import named_functions
from tests.support.postgres import running

ROOT = Path(__file__).parents[2]
DATA = ROOT / "dpsql" / "compiler" / "catalog" / "data"

RELATIONS = """
SELECT n.nspname, c.relname, c.oid, c.reltype, c.relkind,
       string_agg(concat_ws(' ', a.attname, CASE WHEN a.attnotnull THEN 'not null' ELSE 'null' END,
                  format_type(t.oid, NULL)), ',' ORDER BY a.attnum)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 JOIN pg_type t ON t.oid = a.atttypid
WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND c.oid < 16384
GROUP BY 1, 2, 3, 4, 5 ORDER BY 3
"""
TYPES = "oid < 16384"
INPUTS = ", ".join(
    f"typ{word}" for word in ("input", "output", "receive", "send", "modin", "modout", "analyze", "subscript")
)
PROCEDURES = f"""prokind IN ('f', 'a', 'w') AND (proname = ANY(%(functions)s) OR pg_proc.oid IN (
SELECT unnest(ARRAY[{INPUTS}]::oid[]) FROM pg_type WHERE {TYPES})
OR pg_proc.oid IN (SELECT amhandler FROM pg_am))"""
ROWS: Mapping[str, str] = {
    "pg_type": f"SELECT * FROM pg_type WHERE {TYPES} ORDER BY oid",
    "pg_proc": f"SELECT * FROM pg_proc WHERE {PROCEDURES} ORDER BY oid",
    "pg_am": "SELECT * FROM pg_am ORDER BY oid",
    "pg_collation": "SELECT * FROM pg_collation WHERE oid < 10000 ORDER BY oid",
    "pg_language": "SELECT * FROM pg_language ORDER BY oid",
    "pg_range": "SELECT * FROM pg_range ORDER BY rngtypid",
    "pg_opclass": "SELECT * FROM pg_opclass ORDER BY oid",
    "pg_opfamily": "SELECT * FROM pg_opfamily ORDER BY oid",
    "pg_tablespace": "SELECT * FROM pg_tablespace ORDER BY oid",
    "pg_authid": "SELECT * FROM pg_authid WHERE oid <> 10 AND oid < 16384 ORDER BY oid",
    "pg_namespace": "SELECT * FROM pg_namespace WHERE oid < 16384 ORDER BY oid",
    "pg_description": f"""SELECT * FROM pg_description d WHERE objsubid = 0 AND (
        classoid = 'pg_type'::regclass AND objoid IN (SELECT oid FROM pg_type WHERE {TYPES})
        OR classoid = 'pg_proc'::regclass AND objoid IN (SELECT oid FROM pg_proc WHERE {PROCEDURES})
        OR classoid IN ('pg_am'::regclass, 'pg_language'::regclass, 'pg_namespace'::regclass)
        OR classoid = 'pg_collation'::regclass AND objoid < 10000)
        ORDER BY classoid, objoid""",
    "pg_settings": """SELECT name, unit, category, short_desc, context, vartype, min_val, max_val, enumvals
        FROM pg_settings WHERE lower(name) = ANY(%(settings)s) ORDER BY lower(name)""",
    # What functions tell of these, which here are tables too.
    "keywords": "SELECT * FROM pg_get_keywords() ORDER BY word",
    "procedures": f"""SELECT oid, pg_get_function_arguments(oid) AS arguments,
        pg_get_function_identity_arguments(oid) AS identity_arguments, pg_get_function_result(oid) AS result,
        oid::regprocedure::text AS signature FROM pg_proc WHERE {PROCEDURES} ORDER BY oid""",
}


def texts(url: str, functions: list[str], settings: list[str]) -> dict[str, str]:
    """The files by their names: a line of column names, then rows as COPY writes them."""
    with psycopg.connect(url, autocommit=True) as db:
        made = {"relations": _copied(db, RELATIONS, {})}
        for name, query in ROWS.items():
            made[name] = _copied(db, query, {"functions": functions, "settings": settings})
    return made


def _copied(db: psycopg.Connection, query: str, parameters: Mapping[str, object]) -> str:
    cursor = psycopg.ClientCursor(db)
    with cursor.copy(f"COPY ({cursor.mogrify(query, parameters)}) TO STDOUT (HEADER)") as copy:  # type: ignore[arg-type]
        return b"".join(bytes(block) for block in copy).decode()


def written(url: str) -> dict[str, str]:
    """All files, as that server has it: functions that statements may call, and settings that are there."""
    functions = {*CATALOG_FUNCTIONS, *SESSION_FUNCTIONS, *TABLE_FUNCTIONS, *(one.name for one in named_functions())}
    return texts(url, sorted(functions), sorted(VARIABLES))


def main() -> None:
    with running() as server:
        for name, text in written(server.database()).items():
            (DATA / f"{name}.tsv").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
