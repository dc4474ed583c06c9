"""What a statement does once: compile, read its text, and take the ledger's transactions that are law."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.trace import Trace, trace_statements
from dpsql.engines.duckdb import DuckDBEngine
from dpsql.errors import EngineFailed, StaleData
from dpsql.ledger.base import CreatedObject
from dpsql.privacy.exact import Exact
from dpsql.session import query
from dpsql.session.dataset import file_identity
from dpsql.session.dataset.dataset import Dataset
from dpsql.session.session import Session
from tests.support.shop import open_shop

COUNT = "SELECT COUNT(*) FROM orders"


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    return trace_statements(tmp_path_factory.mktemp("traced"))


@pytest.mark.parametrize(
    ("name", "compiles", "parses", "reads", "writes"),
    [
        ("fresh", 1, 1, 2, 3),
        ("prepared", 1, 1, 3, 3),
        ("parameter", 2, 3, 3, 3),  # types; the columns with a sample; the statement with its value
        ("repeated", 1, 1, 1, 0),
    ],
)
def test_a_statement_does_nothing_twice(
    traces: dict[str, Trace], name: str, compiles: int, parses: int, reads: int, writes: int
) -> None:
    calls = traces[name].calls
    assert (calls["compiles"], calls["parses"], calls["tokenizations"]) == (compiles, parses, 1)
    assert calls["reads"] <= reads and calls["writes"] <= writes


def test_a_fresh_statement_enters_the_modules_that_it_needs(traces: dict[str, Trace]) -> None:
    """A feature that a statement does not use is asked about before its module is entered (decision 100)."""
    assert len(traces["fresh"].files) <= 100


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    opened = open_shop(tmp_path)[0]
    yield opened
    opened.close()


def test_a_version_that_is_registered_before_the_charge_is_made_refuses_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, before = session.dataset.ledger, session.budget()

    def register(dataset: Dataset) -> None:
        ledger.register_version("other files", "{}")

    monkeypatch.setattr(Dataset, "check_files", register)
    with pytest.raises(StaleData):
        session.execute(COUNT)
    assert session.budget() == before and session.charged.epsilon == 0


def test_a_version_that_is_registered_before_a_charge_is_redeemed_refuses_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was paid for and never stored is not bought again, so that only the charge's own check is left."""
    with monkeypatch.context() as broken:
        broken.setattr(DuckDBEngine, "execute", lambda *arguments: 1 / 0)
        with pytest.raises(EngineFailed):
            session.execute(COUNT)
    ledger, engine_runs, execute = session.dataset.ledger, list[object](), DuckDBEngine.execute

    def register(dataset: Dataset) -> None:
        ledger.register_version("other files", "{}")

    def count_run(engine: DuckDBEngine, sql: str, key_columns: int, holes: Mapping[str, object]) -> Exact:
        engine_runs.append(sql)
        return execute(engine, sql, key_columns, holes)

    monkeypatch.setattr(DuckDBEngine, "execute", count_run)
    monkeypatch.setattr(Dataset, "check_files", register)
    with pytest.raises(StaleData, match="newer version"):
        session.execute(COUNT)
    assert not engine_runs


def test_a_version_that_falls_due_before_the_charge_is_made_refuses_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its schedule, which the ledger does not know: the charge asks for it, in its transaction."""
    before, due = session.budget(), [False]
    monkeypatch.setattr(Dataset, "check_files", lambda dataset: due.__setitem__(0, True))
    monkeypatch.setattr(file_identity, "is_refresh_due", lambda *arguments: due[0])
    with pytest.raises(StaleData, match="by its schedule"):
        session.execute(COUNT)
    assert session.budget() == before and session.charged.epsilon == 0


def test_a_statement_is_compiled_anew_where_anything_differs_that_it_was_compiled_with(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, plan_query = [], query.plan_query

    def counting(*arguments: object, **named: object) -> object:
        compiled.append(arguments)
        return plan_query(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(query, "plan_query", counting)
    sql, cache, account = f"{COUNT} WHERE amount < ?", session.cache, session._account.name

    def compiles_of(asking: Session, *parameters: int) -> int:
        before = len(compiled)
        asking.compile_statement(sql, parameters)
        return len(compiled) - before

    assert [compiles_of(session, 5), compiles_of(session, 5), compiles_of(session, 6)] == [1, 0, 1]
    session.set("epsilon", "0.5")
    assert [compiles_of(session, 5), compiles_of(session, 5)] == [1, 0]
    resolved = session.dataset.resolved
    for changed in (replace(resolved, version=2), replace(resolved, hash="other")):
        other = Session(replace(session.dataset, resolved=changed), cache=cache)
        other.set("epsilon", "0.5")
        assert [compiles_of(other, 5), compiles_of(other, 5)] == [1, 0]
    table = CreatedObject("synthetic table", "made", 1, '{"columns": []}', session.clock())
    keys = set()
    for stored in ((), (table,), (replace(table, definition="{}"),), (replace(table, release=2),)):
        cache.namespace.objects.put(account, stored)
        keys.add(session.queries.namespace.cache_key)
    assert len(keys) == 4


def test_long_texts_are_not_kept(session: Session) -> None:
    cache = session.cache
    session.compile_statement(COUNT)
    kept = len(cache.tokens)
    session.compile_statement(f"{COUNT} -- {'x' * query.MAX_CACHED_CHARACTERS}")
    assert kept == len(cache.tokens) == 1


def test_tokens_that_are_kept_are_given_out_as_copies(session: Session) -> None:
    sql = "SELECT 1 /* one */ AS x"
    first, second = session.cache.tokenize(sql), session.cache.tokenize(sql)
    first[1].comments.append("changed")
    assert second[1].comments == session.cache.tokenize(sql)[1].comments == [" one "]
