"""Where the corpus is run: a session without noise, and DuckDB with the same rows to be asked directly.

DuckDB is told to divide integers, to order NULLs and to type NULLIF as PostgreSQL does, since that is what our SQL
means: NULLIF(COUNT(*), 0.0) is numeric there, and so is what it divides. It holds the rows that belong to a unit; the
session's data has some beside them that do not.
"""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import duckdb

from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session, StatementResult
from tests.support.shop import Silence, silent_widths

HERE = Path(__file__).parent
DIALECT = """
SET integer_division = true;
SET default_null_order = 'postgres';
SET TimeZone = 'UTC';
CREATE SCHEMA public;
SET schema = 'public';
CREATE MACRO clip(x, lo, hi) AS CASE WHEN x < lo THEN lo WHEN x > hi THEN hi ELSE x END;
CREATE MACRO nullif(x, y) AS CASE WHEN x = y THEN CASE WHEN FALSE THEN y END ELSE x END;
"""
OWNED = {
    "hospital": """
        DELETE FROM visits WHERE patient_id IS NULL;
        DELETE FROM prescriptions WHERE visit_id IS NULL OR visit_id NOT IN (SELECT visit_id FROM visits);
    """,
    "tpch": "",
    "retail": """
        DELETE FROM store_sales WHERE ss_customer_sk IS NULL;
        DELETE FROM store_returns WHERE sr_ticket_number IS NULL
          OR (sr_ticket_number, sr_item_sk) NOT IN (SELECT ss_ticket_number, ss_item_sk FROM store_sales);
    """,
    "web": "",
    "store": """
        DELETE FROM returned WHERE re_ticket IS NULL OR re_item IS NULL
          OR (re_ticket, re_item) NOT IN (SELECT sa_ticket, sa_item FROM sales);
        DELETE FROM web_returned WHERE (wr_order, wr_item) NOT IN (SELECT we_order, we_item FROM web_lines);
    """,
}


STATEMENTS = 40
"""So many statements one ledger pays for: they spend freely, so that what is chosen is chosen well."""


class Ground:
    """A new dataset wherever the last one's budget, or its patience with failures, may be at an end."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self.reference = open_reference(schema)
        self._session: Session | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._asked = 0

    @property
    def session(self) -> Session:
        if self._session is None or self._asked >= STATEMENTS:
            self._close_session()
            self._folder = tempfile.TemporaryDirectory()
            self._session, self._asked = open_session(self.schema, Path(self._folder.name)), 0
        return self._session

    def execute(self, sql: str) -> StatementResult:
        session = self.session
        self._asked += 1
        with silent_widths():
            session.execute("SET empty_groups = hide")  # as SQL has it, whatever was RESET before
            return session.execute(sql)

    def forget(self) -> None:
        """Open a new one next time: a failure of the engine counts against the account."""
        self._asked = STATEMENTS

    def close(self) -> None:
        self._close_session()
        self.reference.close()

    def _close_session(self) -> None:
        if self._session is not None and self._folder is not None:
            self._session.dataset.close()
            self._folder.cleanup()


def script(schema: str) -> str:
    return (HERE / "mix.sql").read_text(encoding="utf-8") + (HERE / f"{schema}.sql").read_text(encoding="utf-8")


def open_session(schema: str, folder: Path) -> Session:
    (folder / f"{schema}.yaml").write_text((HERE / f"{schema}.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    with duckdb.connect(str(folder / f"{schema}.duckdb")) as connection:
        connection.execute(script(schema))
    return Session(open_dataset(folder / f"{schema}.yaml"), sampler=Silence())


def open_reference(schema: str) -> duckdb.DuckDBPyConnection:
    reference = duckdb.connect(":memory:")
    reference.execute(DIALECT + script(schema) + OWNED[schema])
    return reference


class EngineLog(logging.Handler):
    """What the engine's log says of the last failure: for us, who may know."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""
        logging.getLogger("dpsql.engines").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.last = str(record.exc_info[1]) if record.exc_info else record.getMessage()
