"""Files that are their owner's alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dpsql.base.private_files import open_private_file


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_an_old_file_of_the_owners_is_closed_before_it_is_written_to(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("x")
    old.chmod(0o644)
    os.close(open_private_file(old, os.O_WRONLY | os.O_APPEND))
    os.close(open_private_file(tmp_path / "new", os.O_WRONLY | os.O_EXCL))
    assert (_mode(old), _mode(tmp_path / "new"), old.read_text()) == (0o600, 0o600, "x")


def test_what_is_no_file_keeps_its_mode() -> None:
    before = _mode(Path(os.devnull))
    os.close(open_private_file(os.devnull, os.O_WRONLY))
    assert _mode(Path(os.devnull)) == before
