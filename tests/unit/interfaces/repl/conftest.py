"""A shell without a terminal, on a copy of the worked clinic; a person who agrees or not, where wanted."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import dpsql
from dpsql.interfaces.display.terminal import Screen
from dpsql.interfaces.repl.shell import Shell

SCHEMAS = Path(__file__).parents[4] / "schemas"


@dataclass
class Person:
    """Who is asked before a charge."""

    agrees: bool = True
    questions: list[str] = field(default_factory=list)

    def __call__(self, question: str) -> bool:
        self.questions.append(question)
        return self.agrees


@dataclass
class Typing:
    """A shell, and what it has written since it was last looked at."""

    shell: Shell

    def __call__(self, text: str) -> str:
        self.shell.run_text(text)
        self.shell.run_pending()
        return self.written()

    def written(self) -> str:
        texts = []
        for stream in (self.shell.screen.out, self.shell.screen.err):
            assert isinstance(stream, io.StringIO)
            texts.append(stream.getvalue())
            stream.seek(0)
            stream.truncate()
        return "".join(texts)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(SCHEMAS, tmp_path / "schemas", ignore=shutil.ignore_patterns("*.ledger*"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def connection(folder: Path) -> Iterator[dpsql.Connection]:
    with dpsql.connect(folder / "schemas" / "clinic.yaml", user="ana") as connection:
        yield connection


@pytest.fixture
def typed(connection: dpsql.Connection) -> Callable[[str], str]:
    shell = Shell(lambda: connection, Screen(io.StringIO(), io.StringIO()))
    return Typing(shell)


@pytest.fixture
def person(typed: Typing) -> Person:
    """Someone at the terminal."""
    typed.shell.ask = Person()
    return typed.shell.ask
