"""Sandboxes in processes of their own: as the one here, but for what they may take."""

from __future__ import annotations

import datetime as dt
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from dpsql.base.cancellation import StatementHandle, statement_scope
from dpsql.errors import DataError, Error, LimitExceeded, OperationalError
from dpsql.schema.load import load_schema
from dpsql.schema.model import Schema
from dpsql.session.postprocess import catalog_sandbox, sandbox, worker_pool
from dpsql.session.postprocess.catalog_sandbox import CatalogRequest
from dpsql.session.postprocess.sandbox import ReleasedTable
from dpsql.session.postprocess.worker_pool import WorkerPool
from dpsql.types import BIGINT, TEXT

pytestmark = pytest.mark.slow

TABLE = ReleasedTable("r1", (("n", BIGINT), ("ward", TEXT)), ([1, 2, None], ["a", None, "ü"]))
VALUES = """SELECT true AS b, 1::SMALLINT AS s, 2 AS i, 3::BIGINT AS l, 4::HUGEINT AS h, 5.25::DECIMAL(9, 2) AS d,
    0.5::DOUBLE AS f, 'NaN'::DOUBLE AS nan, 'text' AS t, DATE '2020-01-02' AS day,
    TIMESTAMP '2020-01-02 03:04:05.6' AS ts, TIMESTAMPTZ '2020-01-02 03:04:05+00' AS tz,
    TIME '03:04:05' AS c, INTERVAL '1 day 2 hours' AS v,
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID AS u, [1, 2] AS li, {'a': 1} AS st, NULL AS nothing"""


@pytest.fixture(scope="module")
def children() -> Iterator[WorkerPool]:
    pool = WorkerPool(max_workers=4)
    yield pool
    pool.close()


@pytest.mark.parametrize("sql", [VALUES, "SELECT ward, n * 2 AS m FROM r1 ORDER BY n", "SELECT SUM(n) FROM r1"])
def test_a_child_answers_as_the_sandbox_here(children: WorkerPool, sql: str) -> None:
    here, there = sandbox.run_in_process(sql, [TABLE], 5), children.run_query(sql, [TABLE], 5)
    assert repr(there) == repr(here)
    assert children.describe_query(sql, [TABLE]) == sandbox.describe_in_process(sql, [TABLE])


@pytest.mark.parametrize(("lingering", "left"), [(1000.0, 3), (0.0, 1)])
def test_those_that_are_needed_again_soon_stay(lingering: float, left: int) -> None:
    """A load that keeps more of them busy than stay at rest starts none anew; when it is over, they leave."""
    pool = WorkerPool(max_workers=4, max_idle=1, idle_seconds=lingering)
    pool.start_workers(3)
    began = [child for child in pool._idle if child.is_alive]
    assert len(began) == left
    for _ in range(3):
        assert pool.run_query("SELECT 1 AS n", [], 5).rows == [(1,)]
    assert sorted(map(id, pool._idle)) == sorted(map(id, began)), "none was started for it"
    pool.close()
    assert not any(child.is_alive for child in began)


def test_values_are_plain_ones_of_the_right_kinds(children: WorkerPool) -> None:
    (row,) = children.run_query(VALUES, [], 5).rows
    kinds = {bool, int, float, Decimal, str, dt.date, dt.datetime, dt.time, dt.timedelta, UUID, list, dict, type(None)}
    assert {type(value) for value in row} == kinds


def test_errors_are_those_of_the_sandbox(children: WorkerPool) -> None:
    for sql in ("SELECT nothing FROM r1", "SELECT CAST('x' AS INTEGER)", "SELECT read_csv('/etc/passwd')"):
        with pytest.raises(Error) as here:
            sandbox.run_in_process(sql, [TABLE], 5)
        with pytest.raises(Error) as there:
            children.run_query(sql, [TABLE], 5)
        assert type(there.value) is type(here.value) and str(there.value) == str(here.value)
        assert there.value.sqlstate == here.value.sqlstate


@pytest.mark.skipif(sys.platform != "linux", reason="the system keeps no limit of memory")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT length(repeat('x', 2000000000))",  # DuckDB's own limit of 1 GB lets it take 4
        "SELECT len(range(1000000000))",
        "SELECT repeat('x', 10000000) FROM generate_series(1, 300)",
        "SELECT histogram(x) FROM generate_series(1, 3000000) t(x)",
    ],
)
def test_a_statement_cannot_take_the_memory_of_others(children: WorkerPool, sql: str) -> None:
    with pytest.raises((OperationalError, LimitExceeded)) as caught:
        children.run_query(sql, [], 120)  # a busy machine takes long to fill the memory
    assert caught.value.sqlstate in ("53200", "54000")
    assert children.run_query("SELECT 1 AS x", [], 5).rows == [(1,)]


def test_an_answer_has_a_largest_size(children: WorkerPool) -> None:
    with pytest.raises(LimitExceeded, match="larger than 128 MB"):
        children.run_query("SELECT repeat('x', 1000) FROM generate_series(1, 150000)", [], 30)
    assert children.run_query("SELECT 1 AS x", [], 5).rows == [(1,)]


def test_a_child_that_dies_takes_its_statement_along_and_no_other(children: WorkerPool) -> None:
    pool, got = WorkerPool(max_workers=2), []
    counting = "SELECT COUNT(*) FROM generate_series(1, 3000000)"
    busy = threading.Thread(target=lambda: got.append(pool.run_query(counting, [], 20)))
    busy.start()
    dying = pool._take_worker()
    dying._process.kill()
    with pytest.raises(OperationalError):
        dying.send_request(pickle.dumps(("run", "SELECT 1", [], 1)), 5)
    dying.kill_and_close()
    busy.join(30)
    assert got and got[0].rows == [(3_000_000,)]
    pool.close()


def test_a_child_that_does_not_come_back_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "GRACE_SECONDS", -0.7)
    pool = WorkerPool(max_workers=1)
    pool.run_query("SELECT 1", [], 5)
    (idle,) = pool._idle
    before = time.monotonic()
    with pytest.raises(OperationalError, match="took longer") as caught:
        pool.run_query(
            "SELECT SUM(a.x * b.x) FROM generate_series(1, 200000) a(x), generate_series(1, 200000) b(x)", [], 1
        )
    assert caught.value.sqlstate == "57014" and time.monotonic() - before < 5
    assert idle._process.poll() is not None
    monkeypatch.undo()
    assert pool.run_query("SELECT 1", [], 5).rows == [(1,)]
    pool.close()


def test_a_child_that_answers_byte_by_byte_is_ended_too() -> None:
    """Its time is that of the whole exchange, not of the first byte."""
    pool = WorkerPool(max_workers=1)
    pool.run_query("SELECT 1", [], 5)
    (child,) = pool._idle
    child.kill_and_close()
    drip = "import sys, time\nwhile True: sys.stdout.write('\\0'); sys.stdout.flush(); time.sleep(0.4)"
    child._process = subprocess.Popen([sys.executable, "-c", drip], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    before = time.monotonic()
    try:
        with pytest.raises(OperationalError, match="took longer"):
            child.send_request(b"x", 1.0)
        assert time.monotonic() - before < 2.5
    finally:
        child.kill_and_close()
        pool.close()


def test_no_account_takes_all_children() -> None:
    """Of two places, ana has one, however much she asks; of eight, four."""
    slow = "SELECT SUM(a.x * b.x) FROM generate_series(1, 30000) a(x), generate_series(1, 30000) b(x)"
    pool, failed = WorkerPool(max_workers=2), []

    def ask() -> None:
        try:
            with statement_scope("ana", StatementHandle()):
                pool.run_query(slow, [], 2)
        except OperationalError as error:
            failed.append(error.sqlstate)

    busy = [threading.Thread(target=ask) for _ in range(4)]
    for thread in busy:
        thread.start()
    time.sleep(0.2)
    before = time.monotonic()
    with statement_scope("bob", StatementHandle()):
        assert pool.run_query("SELECT 1 AS x", [], 20).rows == [(1,)]
    assert time.monotonic() - before < 1.9, "bob waited for ana"
    for thread in busy:
        thread.join(30)
    assert set(failed) == {"57014", "53300"} and not pool._workers_in_use
    pool.close()
    large = WorkerPool(max_workers=8)
    large._workers_in_use["ana"] = 4
    assert not large._can_reserve("ana") and large._can_reserve("bob")


class _Harm:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("exit 1",)


def test_nothing_is_run_of_what_a_child_sends() -> None:
    for told in (_Harm(), DataError("x"), os.system, [WorkerPool]):
        with pytest.raises(OperationalError, match="unforeseen"):
            worker_pool._read_reply(pickle.dumps(("ok", told)))
    with pytest.raises(OperationalError, match="unforeseen"):
        worker_pool._read_reply(b"nonsense")


def test_children_hold_no_secret_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSQL_BI_PASSWORD", "secret")
    pool = WorkerPool(max_workers=1)
    pool.run_query("SELECT 1", [], 5)
    if sys.platform == "linux":
        with open(f"/proc/{pool._idle[0]._process.pid}/environ", "rb") as told:
            assert b"secret" not in told.read()
    pool.close()


def test_the_sandbox_can_be_elsewhere(children: WorkerPool) -> None:
    sandbox.set_executor(children)
    try:
        assert sandbox.run_query("SELECT 1 AS x", [], 5).rows == [(1,)]
        assert sandbox.describe_query("SELECT 1 AS x", [])[0].name == "x"
    finally:
        sandbox.set_executor(None)


# --- the catalog -----------------------------------------------------------------------------------------------------

SCHEMA_TEXT = """
dpsql: 1
engine: "duckdb:///:memory:"
ledger: "postgresql://me:hidden@localhost/ledger"
privacy: {unit: t.id, budget: {epsilon: 1, delta: 0}}
analysts: {ana: {budget: {epsilon: 1, delta: 0}, password_env: HIDDEN}}
tables: {t: {source: "t.csv", unit: id, columns: {id: {type: bigint}, x: {type: text, description: "What it is."}}}}
"""
NAMES = CatalogRequest("SELECT relname, oid FROM main.pg_class WHERE relname IN ('t', 'pg_class') ORDER BY 1",
              (("relname", "name"), ("oid", "regclass")))  # fmt: skip


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    (tmp_path / "s.yaml").write_text(SCHEMA_TEXT)
    return load_schema(tmp_path / "s.yaml")


def test_a_child_answers_about_the_catalog_as_it_is_answered_here(children: WorkerPool, schema: Schema) -> None:
    here = catalog_sandbox.run_catalog_in_process(schema, NAMES, 10)
    for _ in range(2):
        assert children.run_catalog(schema, NAMES, 10) == here
    assert (
        children.describe_catalog(schema, NAMES)
        == catalog_sandbox.describe_catalog_in_process(schema, NAMES)
        == here[0]
    )
    assert [row[1] for row in here[1]] == ["pg_class", "t"]
    with pytest.raises(Error) as caught:
        children.run_catalog(schema, CatalogRequest("SELECT nothing FROM main.pg_class", (("nothing", None),)), 10)
    assert caught.value.sqlstate == "42703"


def peak_memory() -> int:
    """The most that this process has held since `reset_peak_memory`, in KiB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0])


def reset_peak_memory() -> int:
    """Forget the peak of earlier tests in this process; what it holds now, in KiB."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return peak_memory()


@pytest.mark.skipif(sys.platform != "linux", reason="the system keeps no limit of memory")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(length(repeat(relname, 20000000))) AS n FROM main.pg_class",
        "SELECT len(list(i)) AS n FROM generate_series(1, 300000000) s(i)",
        "SELECT length(replace(repeat('x', 30000), 'x', repeat('y', 200000))) AS n",
    ],
)
def test_a_statement_about_the_catalog_cannot_take_the_server_along(
    children: WorkerPool, schema: Schema, sql: str
) -> None:
    before = reset_peak_memory()
    for ask in (children.run_catalog, lambda schema, asked, _: children.describe_catalog(schema, asked)):
        with suppress(Error):
            ask(schema, CatalogRequest(sql, (("n", "int8"),)), 4)
    assert children.run_catalog(schema, NAMES, 20)[1]
    assert peak_memory() < before + 300_000


def test_secrets_of_the_schema_stay_at_home(schema: Schema) -> None:
    told = pickle.dumps(worker_pool._strip_secrets(schema))
    assert b"hidden" in pickle.dumps(schema) and b"hidden" not in told and b"HIDDEN" not in told


def test_a_child_with_many_catalogs_is_ended(schema: Schema) -> None:
    pool = WorkerPool(max_workers=2)
    pool.run_catalog(schema, NAMES, 20)
    (child,) = pool._idle
    child.schemas |= set(range(100, 110))
    pool.run_catalog(schema, NAMES, 20)
    assert pool._idle == [] and child._process.poll() is not None
    pool.close()
