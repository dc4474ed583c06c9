"""Opens the neighboring databases that most attacks query, once for each file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.neighboring_databases import Neighbors, neighbors


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbors]:
    with neighbors(tmp_path_factory.mktemp("neighbors")) as sides:
        yield sides


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbors]:
    """The same rows without noise."""
    with neighbors(tmp_path_factory.mktemp("quiet"), quiet=True) as sides:
        yield sides
