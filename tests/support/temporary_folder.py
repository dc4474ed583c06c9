"""Temporary files in memory: a ledger syncs every charge to disk, and tests would mostly wait for that."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
FREE_BYTES = 2 << 30
"""What must be free there; the tests need a part of it. A container may have 64 MB."""


def use_memory() -> None:
    """For this process and those that it starts, unless `TMPDIR` says where, or the folder cannot be used.

    Tests write small programs and run them, so a folder that no program may run from is none.
    """
    if "TMPDIR" not in os.environ and can_be_used(MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def can_be_used(folder: Path) -> bool:
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    system = os.statvfs(folder)
    return system.f_bavail * system.f_frsize >= FREE_BYTES and not system.f_flag & os.ST_NOEXEC
