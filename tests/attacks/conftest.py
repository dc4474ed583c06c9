"""Makes tests/support importable, and opens the neighbors that most attacks ask, once for each file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.victim import Neighbors, neighbors


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbors]:
    with neighbors(tmp_path_factory.mktemp("neighbors")) as sides:
        yield sides


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbors]:
    """The same rows without noise."""
    with neighbors(tmp_path_factory.mktemp("quiet"), quiet=True) as sides:
        yield sides
