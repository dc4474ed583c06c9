"""What Superset sends for many charts is what the corpus tries: tests/corpus/bi/superset_sent.sql."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from tests.clients.superset.api import Refused, User
from tests.clients.superset.charts import Chart, Json
from tests.clients.superset.datasets import made_dataset, register
from tests.clients.superset.gallery import CHARTS, VIRTUAL, VIRTUAL_CHARTS
from tests.clients.superset.relay import recorded
from tests.corpus import reader
from tests.support.server import Server, serving

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
SENT = CORPUS / "bi" / "superset_sent.sql"
HEAD = "-- What Superset 6.1 sent for the charts of tests/clients/superset/gallery.py, word for word.\n\n"
AROUND = re.compile(r"\s*(BEGIN|ROLLBACK|COMMIT|SHOW|SET)\b|.*(pg_type|version\(\)|current_schema\(\))", re.I | re.S)

pytestmark = pytest.mark.superset


@pytest.fixture(scope="module")
def corpus() -> Iterator[Server]:
    """The corpus's hospital behind a server, where made-up rows are allowed: a virtual dataset needs them."""
    with tempfile.TemporaryDirectory(prefix="dpsql-corpus-") as folder:
        shutil.copy(CORPUS / "hospital.yaml", folder)
        schema = Path(folder) / "hospital.yaml"
        schema.write_text(
            schema.read_text() + "\npreview: dummy\nanalysts: {ana: {budget: {epsilon: 500000, delta: 0.5}}}\n"
        )
        with duckdb.connect(str(Path(folder) / "hospital.duckdb")) as db:
            db.execute("".join((CORPUS / name).read_text() for name in ("mix.sql", "hospital.sql")))
        with serving(schema, passwords={"ana": "word"}) as server:
            yield server


@pytest.fixture(scope="module")
def sent(admin: User, corpus: Server) -> Iterator[dict[str, str]]:
    """By title, the one statement that each chart makes Superset send; whether it is answered does not matter here.

    The datasets are gone at the end: in SQLite, Superset has one dataset of a name, whatever its database.
    """
    with recorded(corpus.host, corpus.port) as relay:
        database = register(admin, "corpus", corpus.dsn("ana").replace(f":{corpus.port}/", f":{relay.port}/"))
        table = made_dataset(admin, database, "visits")
        virtual = made_dataset(admin, database, "visits of patients", sql=VIRTUAL)
        yield {
            title: one_sent(admin, relay.statements, title, dataset, query)
            for dataset, charts in ((table, CHARTS), (virtual, VIRTUAL_CHARTS))
            for title, query in charts.items()
        }
    for dataset in (table, virtual):
        admin.ask("DELETE", f"/api/v1/dataset/{dataset}")


def one_sent(user: User, statements: list[str], title: str, dataset: int, query: Json) -> str:
    start = len(statements)
    with suppress(Refused):
        user.post("/api/v1/chart/data", Chart(title, "table", {}, query).context(dataset, force=True))
    (statement,) = dict.fromkeys(one.strip().removesuffix(";") for one in statements[start:] if not AROUND.match(one))
    return statement


def test_the_corpus_has_what_superset_sends(sent: dict[str, str]) -> None:
    if os.environ.get("SUPERSET_GALLERY") == "write" and not os.environ.get("CI"):
        write_down(sent)
    assert {case.title: case.sql for case in reader.read(SENT)[1]} == sent


def write_down(sent: dict[str, str]) -> None:
    """What a person wrote beside a statement stays."""
    known = {case.title: case for case in reader.read(SENT)[1]} if SENT.exists() else {}
    cases = []
    for title, sql in sent.items():
        old = known.get(title) or reader.Case(SENT.stem, "hospital", title, (), sql, ())
        kept = tuple((name, body) for name, body in old.sections if name != "duckdb")
        told = in_duckdb(sql)
        cases.append(replace(old, sql=sql, sections=kept if told == sql else (("duckdb", told), *kept)))
    SENT.write_text(reader.write(HEAD, cases), encoding="utf-8")


def in_duckdb(sql: str) -> str:
    """DuckDB has no TO_TIMESTAMP and TO_DATE of text."""
    return re.sub(r"TO_(TIMESTAMP|DATE)\(('[^']*'), '[^']*'\)", r"\1 \2", sql)
