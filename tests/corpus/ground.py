"""Where the corpus is run: a session without noise, and DuckDB with the same rows to be asked directly.

DuckDB is told to divide integers and to order NULLs as PostgreSQL does, since that is what our SQL means. It holds the
rows that belong to a unit; the session's data has some beside them that do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
from support.shop import Silence

from dpsql.dataset import open_dataset
from dpsql.session import Session

HERE = Path(__file__).parent
DIALECT = """
SET integer_division = true;
SET default_null_order = 'postgres';
SET TimeZone = 'UTC';
CREATE SCHEMA public;
SET schema = 'public';
CREATE MACRO clip(x, lo, hi) AS CASE WHEN x < lo THEN lo WHEN x > hi THEN hi ELSE x END;
"""
OWNED = {
    "hospital": """
        DELETE FROM visits WHERE patient_id IS NULL;
        DELETE FROM prescriptions WHERE visit_id IS NULL OR visit_id NOT IN (SELECT visit_id FROM visits);
    """,
    "tpch": "",
}


@dataclass(frozen=True)
class Ground:
    session: Session
    reference: duckdb.DuckDBPyConnection

    def close(self) -> None:
        self.session.dataset.close()
        self.reference.close()


def script(schema: str) -> str:
    return (HERE / "mix.sql").read_text(encoding="utf-8") + (HERE / f"{schema}.sql").read_text(encoding="utf-8")


def open_ground(schema: str, folder: Path) -> Ground:
    """A new ledger in `folder`, so that nothing is paid for already and the budget is whole."""
    (folder / f"{schema}.yaml").write_text((HERE / f"{schema}.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    with duckdb.connect(str(folder / f"{schema}.duckdb")) as connection:
        connection.execute(script(schema))
    return Ground(Session(open_dataset(folder / f"{schema}.yaml"), sampler=Silence()), open_reference(schema))


def open_reference(schema: str) -> duckdb.DuckDBPyConnection:
    reference = duckdb.connect(":memory:")
    reference.execute(DIALECT + script(schema) + OWNED[schema])
    return reference
