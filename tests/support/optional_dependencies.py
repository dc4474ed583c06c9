"""What a test needs beside dpsql.

On a person's machine a test whose package is missing is skipped, with a line that says how to get it; under CI it
fails, so that nothing is left out silently. What only root can install must be there where root could install it.
"""

from __future__ import annotations

import importlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

NOBODY = 65534


def missing(what: str, how: str, can: bool = True) -> NoReturn:
    told = f"{what} is not installed: {how}"
    if os.environ.get("CI") and can:
        pytest.fail(told, pytrace=False)
    pytest.skip(told, allow_module_level=True)


def package(name: str) -> Any:
    """A module of the `dev` extra."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        missing(name.partition(".")[0], "make setup")


def program(name: str) -> str:
    """A program of the system, which those tests need that are marked `clients`."""
    found = shutil.which(name)
    if found is None:
        can = os.geteuid() == 0 and shutil.which("apt-get") is not None
        missing(name, f"apt-get install {name}, or brew install {name}", can)
    return found


@contextmanager
def no_root() -> Iterator[Path]:
    """A folder of one's own, for what modes of files forbid: root, whom nothing is forbidden, is nobody meanwhile.

    Whatever is imported meanwhile must be readable by all; so import first.
    """
    with tempfile.TemporaryDirectory(prefix="dpsql-test-") as name:
        before = os.geteuid()
        if before == 0:
            os.chown(name, NOBODY, -1)
            os.seteuid(NOBODY)
        try:
            yield Path(name)
        finally:
            os.seteuid(before)
