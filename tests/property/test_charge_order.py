"""Pay, run, store, deliver: in this order, each once, whatever fails between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsql.engines.base import Engine
from dpsql.errors import BudgetExceeded, EngineFailed, OperationalError
from dpsql.ledger.base import Account, AdmitCallback, ChargedStatement, Entitlement, Ledger, ReleaseRequest
from dpsql.privacy.exact import Exact
from dpsql.privacy.release import release_from_bytes, release_to_bytes
from dpsql.privacy.sampling import ExactSampler, Integers
from dpsql.session.session import Session
from tests.support.shop import open_shop

SQL = "SELECT kind, COUNT(*), SUM(amount) FROM orders GROUP BY kind"
TWO = "SELECT (SELECT COUNT(*) FROM orders WHERE qty > {n}), (SELECT SUM(qty) FROM orders WHERE qty > {n})"


@dataclass
class Watched:
    """Notes what is done, in order, and fails where it is told to."""

    inner: Any
    events: list[str]
    fail: dict[str, Exception] = field(default_factory=dict)

    def _note(self, event: str) -> None:
        self.events.append(event)
        if event in self.fail:
            raise self.fail.pop(event)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class WatchedLedger(Watched):
    def purchase(
        self,
        account: Account,
        asked: Sequence[ReleaseRequest],
        statement: ChargedStatement,
        now: datetime,
        admit: AdmitCallback,
    ) -> tuple[Entitlement, ...]:
        claims: tuple[Entitlement, ...] = self.inner.purchase(account, asked, statement, now, admit)
        self._note("paid")
        return claims

    def store_body(self, release: int, body: bytes, errors: tuple[Fraction, ...] | None = None) -> bytes:
        self._note("store")
        stored: bytes = self.inner.store_body(release, body, errors)
        self._note("stored")
        return stored


class WatchedEngine(Watched):
    def execute(self, sql: str, keys: int, holes: dict[str, object]) -> Exact:
        self._note("run")
        exact: Exact = self.inner.execute(sql, keys, holes)
        return exact


@dataclass
class WatchedSession:
    session: Session
    ledger: WatchedLedger
    engine: WatchedEngine
    events: list[str]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[WatchedSession]:
    session, reference = open_shop(tmp_path)
    reference.close()
    events: list[str] = []
    ledger, engine = WatchedLedger(session.dataset.ledger, events), WatchedEngine(session.dataset.engine, events)
    watched: tuple[Ledger, Engine] = (ledger, engine)  # type: ignore[assignment]
    dataset = replace(session.dataset, ledger=watched[0], engine=watched[1])
    yield WatchedSession(
        Session(dataset, sampler=ExactSampler(), opened_with={"empty_groups": "show"}), ledger, engine, events
    )
    session.dataset.close()


def test_the_order_of_things(watched: WatchedSession) -> None:
    watched.session.execute(SQL)
    assert watched.events == ["paid", "run", "store", "stored"]


def test_all_releases_of_a_statement_are_paid_before_the_first_runs(watched: WatchedSession) -> None:
    watched.session.execute(TWO.format(n=2))
    assert watched.events == ["paid", "run", "store", "stored", "run", "store", "stored"]


def test_a_repeat_is_the_same_answer_and_free(watched: WatchedSession) -> None:
    first = watched.session.execute(SQL)
    spent = watched.session.budget()
    again = watched.session.execute(SQL + " ORDER BY kind")
    assert sorted(map(repr, again.rows)) == sorted(map(repr, first.rows))
    assert again.loss.rho == 0
    assert watched.session.budget() == spent
    assert watched.events.count("run") == 1


def test_a_failed_run_is_charged_and_a_repeat_redeems_it(watched: WatchedSession) -> None:
    watched.engine.fail["run"] = EngineFailed("the engine failed")
    with pytest.raises(EngineFailed):
        watched.session.execute(SQL)
    spent = watched.session.budget()
    assert spent.charges == 1
    watched.session.execute(SQL)
    assert watched.session.budget().charges == spent.charges
    assert watched.session.budget().spent_epsilon == spent.spent_epsilon


def test_what_was_not_stored_is_not_delivered(watched: WatchedSession) -> None:
    watched.ledger.fail["store"] = OperationalError("the disk is full")
    with pytest.raises(OperationalError, match="the disk is full"):
        watched.session.execute(SQL)
    assert watched.session.budget().charges == 1


def test_what_is_delivered_is_what_was_read_back(watched: WatchedSession) -> None:
    """Of two runs of one charge only the first body may be seen: here another was stored meanwhile."""

    def store(release: int, body: bytes, errors: tuple[Fraction, ...] | None = None) -> bytes:
        mine = release_from_bytes(body)
        other = replace(mine, cells=tuple(cells * 0 + 7 * 2**16 for cells in mine.cells))
        stored: bytes = watched.ledger.inner.store_body(release, release_to_bytes(other), errors)
        return stored

    watched.ledger.store_body = store  # type: ignore[method-assign]
    counts = {row[1] for row in watched.session.execute("SELECT kind, COUNT(*) FROM orders GROUP BY kind").rows}
    assert counts == {7}


def test_a_refused_statement_reaches_neither_engine_nor_store(watched: WatchedSession) -> None:
    watched.session.execute("SET epsilon = 600000")
    watched.session.execute(TWO.format(n=1))
    done, spent = list(watched.events), watched.session.budget()
    with pytest.raises(BudgetExceeded):
        watched.session.execute(TWO.format(n=3))
    assert watched.events == done
    assert watched.session.budget() == spent


class Recording(ExactSampler):
    """Remembers how many draws were asked for, and gives out what it draws."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[Integers] = []

    def gaussian(self, n: int, sigma: Fraction) -> Integers:
        self.drawn.append(super().gaussian(n, sigma))
        return self.drawn[-1]

    def laplace(self, n: int, scale: Fraction) -> Integers:
        self.drawn.append(super().laplace(n, scale))
        return self.drawn[-1]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_every_cell_has_a_draw_of_its_own(watched: WatchedSession, noise: str) -> None:
    watched.session.sampler = recording = Recording()
    watched.session.execute(f"SET noise = {noise}")
    watched.session.execute("SELECT kind, paid, COUNT(*), SUM(amount) FROM orders GROUP BY kind, paid")
    explained = watched.session.explain("SELECT kind, paid, COUNT(*), SUM(amount) FROM orders GROUP BY kind, paid")
    groups, cells = explained.releases[0].groups, len(explained.releases[0].columns)
    drawn = np.concatenate(recording.drawn)
    assert groups is not None
    assert len(drawn) == groups * cells
    # At scales of millions, two equal draws are as good as impossible.
    assert len(set(drawn.tolist())) == len(drawn)


def test_two_sessions_draw_different_noise(watched: WatchedSession) -> None:
    """The same question in two accounts' worlds, or after a restart, must not repeat its noise."""
    one, other = ExactSampler(), ExactSampler()
    scale = Fraction(10**6)
    assert one.laplace(8, scale).tolist() != other.laplace(8, scale).tolist()
    assert one.gaussian(8, scale).tolist() != one.gaussian(8, scale).tolist()
