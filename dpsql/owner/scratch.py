"""Folders for copies of rows and exact answers, for the time of one command of the owner's.

Law: such a folder is its owner's alone, and is gone when the command ends: by itself, by an error, by Ctrl-C, SIGTERM
or SIGHUP. What a process leaves that was killed or lost its power is removed by the next command.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

_NAME = re.compile(r"dpsql-(?:check|look|draft)-([0-9]+)-\w+")
_ENDS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def scratch(what: str) -> Iterator[Path]:
    """A new folder; `what` is it for: check, look or draft."""
    _remove_left()
    with _unwound_by_signals(), tempfile.TemporaryDirectory(prefix=f"dpsql-{what}-{os.getpid()}-") as folder:
        yield Path(folder)


@contextmanager
def _unwound_by_signals() -> Iterator[None]:
    """A signal that would end the process at once is SystemExit instead; a second one does not disturb the first."""
    came: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        if not came:
            came.append(number)
            raise SystemExit(128 + number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        # One that is ignored (nohup) or has a handler keeps it.
        before = {number: signal.signal(number, end) for number in _ENDS if signal.getsignal(number) == signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:  # a driver may have made an error of its own of it
            raise SystemExit(128 + came[0]) from None


def _remove_left() -> None:
    """Folders of this user's processes that are no more."""
    if os.name != "posix":
        return
    with os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            name = _NAME.fullmatch(entry.name)
            if name is not None and _is_own_folder(entry) and not _runs(int(name[1])):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:  # another process has just removed it
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # another user's
        return True
    return True
