"""What an exception of a run carries: no rows, however deep one looks."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

import numpy as np
import pytest

from dpsql.engines import duckdb
from dpsql.engines.base import ENGINE_FAILED, ENGINE_FAILED_HINT
from dpsql.errors import EngineFailed, QueryCanceled
from dpsql.privacy.exact import Exact
from tests.support.controlled_runs import COUNT, PATIENCE, SECRET, GatedShop, gated_shop, in_thread
from tests.support.shop import Silence


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[GatedShop]:
    with gated_shop(tmp_path) as opened:
        yield opened


_SKIPPED = (ModuleType, type, FunctionType, BuiltinFunctionType, str, bytes, int, float, Fraction)


def reached(error: BaseException) -> Iterator[object]:
    """All that can be got at from an exception: its fields, causes, frames and, through them, everything they hold."""
    seen: set[int] = set()
    todo: list[object] = [error]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, TracebackType):
            # The frames of the test itself hold the rows on purpose.
            here = one.tb_frame.f_code.co_filename.startswith(str(Path(__file__).parents[2]))
            todo += [one.tb_next, *([] if here else one.tb_frame.f_locals.values())]
        elif isinstance(one, BaseException):
            todo += [*one.args, *vars(one).values(), one.__cause__, one.__context__, one.__traceback__]
        elif not isinstance(one, (*_SKIPPED, FrameType)):
            todo += gc.get_referents(one)


def assert_no_rows(error: BaseException) -> None:
    for one in reached(error):
        assert not isinstance(one, Exact | np.ndarray), type(one)
        assert not (isinstance(one, str) and SECRET in one), one


@pytest.mark.parametrize("fails", ["in the driver", "in reading", "in the noise", "in the store"])
def test_from_an_error_no_row_can_be_reached(
    fails: str, gated: GatedShop, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """With the real engine, whose frames hold rows when it fails."""
    gated.engine.gate.set()

    def fail(rows: object = None, *_: object) -> None:
        held = [SECRET, rows]
        try:
            raise KeyError(SECRET, held)
        except KeyError as error:
            raise ValueError(SECRET, rows) from error

    match fails:
        case "in the driver":
            monkeypatch.setattr(duckdb, "column_types_of", fail)
        case "in reading":
            monkeypatch.setattr(duckdb, "_to_cells", fail)
        case "in the noise":
            gated.session.sampler = type("Broken", (Silence,), {"gaussian": lambda self, n, sigma: fail(n)})()
        case "in the store":
            ledger = type(gated.dataset.ledger)
            monkeypatch.setattr(ledger, "store_body", lambda self, release, body, errors: fail(body))
    with pytest.raises(EngineFailed) as caught:
        gated.session.execute(COUNT)
    assert str(caught.value) == f"{ENGINE_FAILED}\nHINT:  {ENGINE_FAILED_HINT}"
    assert_no_rows(caught.value)
    assert capfd.readouterr() == ("", "")


def test_from_a_cancel_no_row_can_be_reached(gated: GatedShop, request: pytest.FixtureRequest) -> None:
    held, perturbing = threading.Event(), threading.Event()
    request.addfinalizer(held.set)

    class Slow(Silence):
        def gaussian(self, n: int, sigma: Fraction) -> Any:
            perturbing.set()
            assert held.wait(PATIENCE)
            return super().gaussian(n, sigma)

    gated.engine.gate.set()
    gated.session.sampler = Slow()
    thread, got = in_thread(lambda: gated.session.execute(COUNT))
    assert perturbing.wait(PATIENCE)  # the rows are open on the run's thread
    gated.session.cancel()
    thread.join(PATIENCE)
    assert isinstance(got[0], QueryCanceled)
    assert_no_rows(got[0])


def test_the_walk_finds_rows_where_there_are_some() -> None:
    def run() -> None:
        exact = Exact([(SECRET,)], [np.array([1], np.int64)])
        raise ValueError from LookupError([exact])

    with pytest.raises(ValueError) as caught:
        run()
    assert any(isinstance(one, Exact) for one in reached(caught.value))
    with pytest.raises(AssertionError):
        assert_no_rows(caught.value)
