"""What a cursor says of a charge is what the ledger says: also after a cancel, a timeout, Ctrl-C or a failed run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import dpsql
from dpsql.errors import EngineFailed, QueryCanceled
from dpsql.interfaces.dbapi.connection import Connection
from tests.support.controlled_runs import COUNT, PATIENCE, GatedShop, gated_shop, in_thread, press_ctrl_c, until
from tests.support.optional_dependencies import package


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[GatedShop]:
    with gated_shop(tmp_path) as opened:
        yield opened


def told(connection: Connection, cursor: dpsql.Cursor) -> bool:
    """Whether the cursor's figure is the ledger's."""
    balance, loss = connection.budget(), cursor.loss
    return (
        balance.charges == 1
        and bool(loss)
        and (loss.rho, loss.selection_delta)
        == (
            balance.spent_rho,
            balance.spent_delta,
        )
    )


def test_after_a_cancel(gated: GatedShop) -> None:
    connection = Connection(gated.session)
    cursor = connection.cursor()
    thread, got = in_thread(lambda: cursor.execute(COUNT))
    until(lambda: gated.engine.began)
    connection.cancel()
    thread.join(PATIENCE)
    assert isinstance(got[0], QueryCanceled) and got[0].charge == cursor.loss
    assert told(connection, cursor)
    gated.engine.gate.set()
    assert cursor.execute(COUNT).fetchall() == [(2400,)] and not cursor.loss


def test_after_a_timeout_and_of_the_repeated_query(gated: GatedShop) -> None:
    connection = Connection(gated.session)
    cursor = connection.cursor().execute("SET statement_timeout = ?", ["250ms"])
    with pytest.raises(QueryCanceled) as caught:
        cursor.execute(COUNT)
    assert caught.value.charge == cursor.loss and told(connection, cursor)
    with pytest.raises(QueryCanceled) as caught:
        cursor.execute(COUNT)
    assert not caught.value.charge and not cursor.loss  # it was paid for before
    gated.engine.gate.set()


def test_after_a_failed_run(gated: GatedShop, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise EngineFailed("no")

    monkeypatch.setattr(gated.engine, "execute", fail)
    connection = Connection(gated.session)
    cursor = connection.cursor()
    with pytest.raises(EngineFailed) as caught:
        cursor.execute(COUNT)
    assert caught.value.charge == cursor.loss and told(connection, cursor)


@pytest.mark.parametrize("library", ["", "polars"])
def test_after_ctrl_c(gated: GatedShop, library: str) -> None:
    """Also where polars was used: it makes the system begin waits without a time again, and Ctrl-C is not seen."""
    if library:
        polars = package(library)
        repr(polars.DataFrame([polars.Series("a", [1], dtype=polars.Int64)]))
    connection = Connection(gated.session)
    cursor = connection.cursor()
    thread = press_ctrl_c(lambda: gated.engine.began)
    with pytest.raises(KeyboardInterrupt):
        cursor.execute(COUNT)
    thread.join()
    assert told(connection, cursor)
    gated.engine.gate.set()


def test_what_is_refused_is_not_charged(gated: GatedShop) -> None:
    connection = Connection(gated.session)
    cursor = connection.cursor()
    with pytest.raises(dpsql.ProgrammingError) as caught:
        cursor.execute("SELECT COUNT(*) FROM nowhere")
    assert not caught.value.charge and not cursor.loss and connection.budget().charges == 0
    gated.engine.gate.set()


def test_post_processing_that_fails_after_the_charge(gated: GatedShop) -> None:
    """An error there is told in full, and so is the charge."""
    gated.engine.gate.set()
    connection = Connection(gated.session)
    cursor = connection.cursor()
    with pytest.raises(dpsql.Error) as caught:
        cursor.execute("SELECT CAST('x' || COUNT(*) AS INTEGER) AS n FROM orders")
    assert caught.value.charge == cursor.loss and told(connection, cursor)
