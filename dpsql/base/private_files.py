"""Files and folders that hold private rows or the ledger: nobody but their owner reads or writes them."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from dpsql.errors import OperationalError


def require_private(path: Path, what: str) -> None:
    """Refuse a file or folder that group or others may use. Elsewhere than on POSIX there is nothing to ask."""
    if os.name != "posix":
        return
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:  # a journal that another process has just finished with
        return
    if mode & 0o077:
        least = 700 if stat.S_ISDIR(mode) else 600
        raise OperationalError(
            f'{what} "{path}" is open to others than its owner: its mode is {mode & 0o777:o}',
            hint=f"Write: chmod {least} {shlex.quote(str(path))}",
        )


def make_private_folder(folder: Path, what: str) -> None:
    """Make a folder for its owner alone; one that is there already must be."""
    folder.mkdir(mode=0o700, exist_ok=True)
    require_private(folder, what)


def open_private_file(path: str | os.PathLike[str], flags: int) -> int:
    """A descriptor of a file that is its owner's alone, made where there is none.

    Privacy: also a file that was there before, with a mode of its own, has this one before anything is written to it.
    What is no file, such as a terminal or a pipe, keeps its mode.
    """
    descriptor = os.open(path, flags | os.O_CREAT, 0o600)
    try:
        if hasattr(os, "fchmod") and stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, 0o600)
    except OSError:  # someone else's
        os.close(descriptor)
        raise
    return descriptor
