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

_FOLDER_NAME = re.compile(r"dpsql-(?:check|look|draft)-([0-9]+)-\w+")
_END_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def open_temp_folder(what: str) -> Iterator[Path]:
    """A new folder; `what` is it for: check, look or draft."""
    _remove_stale_folders()
    with _exit_on_signals(), tempfile.TemporaryDirectory(prefix=f"dpsql-{what}-{os.getpid()}-") as folder:
        yield Path(folder)


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """A signal that would end the process at once is SystemExit instead; a second one does not disturb the first."""
    received: list[int] = []

    def exit_on_signal(number: int, frame: FrameType | None) -> None:
        if not received:
            received.append(number)
            raise SystemExit(128 + number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        # One that is ignored (nohup) or has a handler keeps it.
        before = {
            number: signal.signal(number, exit_on_signal)
            for number in _END_SIGNALS
            if signal.getsignal(number) == signal.SIG_DFL
        }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:  # a driver may have made an error of its own of it
            raise SystemExit(128 + received[0]) from None


def _remove_stale_folders() -> None:
    """Folders of this user's processes that are no more."""
    if os.name != "posix":
        return
    with os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            name = _FOLDER_NAME.fullmatch(entry.name)
            if name is not None and _is_own_folder(entry) and not _is_running(int(name[1])):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:  # another process has just removed it
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # another user's
        return True
    return True
