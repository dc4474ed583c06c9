"""Waiting for a statement: a line that tells for how long, and Ctrl-C that leaves it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from dpsql.display.screen import Screen

if TYPE_CHECKING:
    from dpsql.dbapi.connection import Connection

PROGRESS_DELAY = 0.6
"""Seconds before anything is drawn."""
_REDRAW_SECONDS = 0.1
_BAR_WIDTH = 24


def run_interruptible(work: Callable[[], object], connection: Connection, screen: Screen) -> None:
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

    started, has_drawn = time.monotonic(), False
    threading.Thread(target=run, name="dpsql-statement", daemon=True).start()
    try:
        while not ended.is_set():
            try:
                ended.wait(_REDRAW_SECONDS)
                took = time.monotonic() - started
                if not ended.is_set() and took > PROGRESS_DELAY and screen.can_redraw:
                    screen.redraw_line(format_progress(took, *connection.progress()))
                    has_drawn = True
            except KeyboardInterrupt:
                connection.cancel()
                ended.wait(1.0)
    except KeyboardInterrupt:
        screen.print_note("left at once; what was charged is paid for, and asking again is free: \\budget tells what is left")
        raise
    finally:
        if has_drawn:
            screen.redraw_line("")
    if trouble:
        raise trouble[0]


def format_progress(took: float, delivered: int, releases: int) -> str:
    """
    >>> format_progress(3.14, 1, 4)
    '██████░░░░░░░░░░░░░░░░░░ 1 of 4 releases, 3 s; Ctrl-C leaves, and asking again is free'
    """
    if releases <= 1:  # the engine's own progress is not told: it would be a clock of the rows
        position = int(took / _REDRAW_SECONDS / 2) % _BAR_WIDTH
        bar, what = "░" * position + "█" + "░" * (_BAR_WIDTH - position - 1), "asking"
    else:
        filled = _BAR_WIDTH * delivered // releases
        bar, what = "█" * filled + "░" * (_BAR_WIDTH - filled), f"{delivered} of {releases} releases"
    return f"{bar} {what}, {int(took)} s; Ctrl-C leaves, and asking again is free"
