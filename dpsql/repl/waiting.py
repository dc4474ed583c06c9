"""Waiting for a statement: a line that tells for how long, and Ctrl-C that leaves it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dpsql.display.screen import Screen

if TYPE_CHECKING:
    from dpsql.dbapi.connection import Connection

PATIENCE = 0.6
"""Seconds before anything is drawn."""
_EACH = 0.1
_WIDE = 24


def wait(work: Callable[[], object], connection: Connection, screen: Screen) -> None:
    """Do `work` on another thread. Ctrl-C cancels the statement, a second one leaves without waiting for that."""
    trouble: list[BaseException] = []
    ended = threading.Event()  # a join that Ctrl-C interrupts takes the thread for one that has ended

    def run() -> None:
        try:
            work()
        except BaseException as error:
            trouble.append(error)
        finally:
            ended.set()

    started, drawn = time.monotonic(), False
    threading.Thread(target=run, name="dpsql-statement", daemon=True).start()
    try:
        while not ended.is_set():
            try:
                ended.wait(_EACH)
                took = time.monotonic() - started
                if not ended.is_set() and took > PATIENCE and screen.draws:
                    screen.draw(progress_line(took, *connection.progress()))
                    drawn = True
            except KeyboardInterrupt:
                connection.cancel()
                ended.wait(1.0)
    except KeyboardInterrupt:
        screen.note("left at once; what was charged is paid for, and asking again is free: \\budget tells what is left")
        raise
    finally:
        if drawn:
            screen.draw("")
    if trouble:
        raise trouble[0]


def progress_line(took: float, delivered: int, releases: int) -> str:
    """
    >>> progress_line(3.14, 1, 4)
    '██████░░░░░░░░░░░░░░░░░░ 1 of 4 releases, 3 s; Ctrl-C leaves, and asking again is free'
    """
    if releases <= 1:  # the engine's own progress is not told: it would be a clock of the rows
        place = int(took / _EACH / 2) % _WIDE
        bar, what = "░" * place + "█" + "░" * (_WIDE - place - 1), "asking"
    else:
        filled = _WIDE * delivered // releases
        bar, what = "█" * filled + "░" * (_WIDE - filled), f"{delivered} of {releases} releases"
    return f"{bar} {what}, {int(took)} s; Ctrl-C leaves, and asking again is free"
