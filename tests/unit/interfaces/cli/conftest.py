"""Runs command lines in process, on copies of the worked schemas, where wanted without noise."""

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import dpsql.interfaces.dbapi.connection
from dpsql.interfaces.cli.main import main
from dpsql.session.session import Session

SCHEMAS = Path(__file__).parents[4] / "schemas"


class Silent:
    """A sampler without noise: the rows are then the engine's own, and can be compared."""

    def laplace(self, n, scale):
        return np.zeros(n, dtype=np.int64)

    def gaussian(self, n, sigma):
        return np.zeros(n, dtype=np.int64)


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(SCHEMAS, tmp_path / "schemas", ignore=shutil.ignore_patterns("*.ledger*"))
    return tmp_path / "schemas"


@pytest.fixture
def clinic(folder):
    return str(folder / "clinic.yaml")


@pytest.fixture
def run(capsys):
    def run(*arguments):
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return run


@pytest.fixture
def silent(monkeypatch):
    monkeypatch.setattr(dpsql.interfaces.dbapi.connection, "Session", partial(Session, sampler=Silent()))
