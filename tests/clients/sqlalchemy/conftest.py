"""A copy of the worked clinic, with a view, and engines on it as an analyst has them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, create_engine

SCHEMAS = Path(__file__).parents[3] / "schemas"
VIEWS = """
views:
  long_stays: {sql: SELECT * FROM visits WHERE nights >= 7, description: A week or more}
  by_sex: SELECT sex, COUNT(*) AS patients FROM patients GROUP BY sex
"""


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    shutil.copytree(SCHEMAS, tmp_path / "schemas", ignore=shutil.ignore_patterns("*.ledger*", "*.snapshots"))
    path = tmp_path / "schemas" / "clinic.yaml"
    path.write_text(path.read_text() + VIEWS)
    return path


@pytest.fixture
def engines(clinic: Path) -> Iterator[Callable[..., Engine]]:
    """`engines("?user=ana", pool_size=1)`; all are disposed of at the end."""
    made: list[Engine] = []

    def make(query: str = "?user=ana&epsilon=0.1&empty_groups=show", **options: Any) -> Engine:
        made.append(create_engine(f"dpsql:///{clinic}{query}", **options))
        return made[-1]

    yield make
    for engine in made:
        engine.dispose()


@pytest.fixture
def engine(engines: Callable[..., Engine]) -> Engine:
    return engines()


@pytest.fixture
def tables(engine: Engine) -> Any:
    metadata = MetaData()
    metadata.reflect(engine, views=True)
    return metadata.tables
