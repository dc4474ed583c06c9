"""The prompt in a pseudo-terminal: what a person types, and the screen that she then sees.

A file of `screens/` is a story. Lines that begin with `>>>` are what she does; beneath `>>> screen` stands what she
then sees. `make golden` writes the screens anew; read the diff. The noise is the same each time (`seeded_cli.py`).
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpsql.interfaces.cli.demo_hospital import make_hospital
from tests.support.terminal import Terminal

pytestmark = pytest.mark.slow

SCREENS = Path(__file__).parent / "screens"
ROOT = Path(__file__).parents[2]
SEEDED = [sys.executable, "-m", "tests.support.seeded_cli"]


@dataclass(frozen=True)
class Step:
    keys: tuple[str, ...]
    screen: str


@dataclass(frozen=True)
class Story:
    """What it is about, with the size of the screen and further arguments of the command line."""

    head: str
    steps: tuple[Step, ...]

    def said(self, name: str, otherwise: str) -> str:
        found = re.search(rf"^{name}: (.*)$", self.head, re.MULTILINE)
        return found[1] if found else otherwise


def read_story(text: str) -> Story:
    head, *parts = re.split(r"^(?=>>> )", text, flags=re.MULTILINE)
    steps: list[Step] = []
    keys: list[str] = []
    for part in parts:
        key, _, screen = part.partition("\n")
        keys.append(key.removeprefix(">>> "))
        if key == ">>> screen":
            steps.append(Step(tuple(keys), screen.strip("\n")))
            keys = []
    return Story(head, (*steps, Step(tuple(keys), "")) if keys else tuple(steps))


def write_story(story: Story) -> str:
    parts = [story.head]
    for step in story.steps:
        parts += [f">>> {key}\n" for key in step.keys] + ([f"{step.screen}\n\n"] if step.screen else [])
    return "".join(parts).rstrip("\n") + "\n"


def press(terminal: Terminal, key: str) -> str | None:
    """Do what a line of a story says; the screen where it is one to keep."""
    word, _, rest = key.partition(" ")
    match word:
        case "type":
            terminal.type(rest)
        case "press":
            terminal.press(*rest.split())
        case "resize":
            rows, columns = rest.split("x")
            terminal.resize(int(rows), int(columns))
        case "wait":
            terminal.wait_for(rest)
        case "prompt":
            terminal.wait_for_prompt(r"^\w+=>$")
        case "screen":
            return terminal.settle()
        case _:
            raise AssertionError(f"a story has no word {word}")
    return None


def plain(screen: str) -> str:
    """Without what differs from run to run."""
    screen = re.sub(r"Time: [0-9.]+ ms", "Time: 12.3 ms", screen)
    screen = re.sub(r"\b[0-9a-f]{64}\b", "<hash>", screen)
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", "2026-01-31 12:00:00", screen, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("screens") / "hospital"
    folder.mkdir()
    schema = make_hospital(folder)
    # The line beneath the prompt tells an error before the first question only where contributions are declared.
    text = schema.read_text(encoding="utf-8")
    schema.write_text(text.replace("contributions: auto ", "contributions: {rows: 6, groups: 4} "), encoding="utf-8")
    return folder


@pytest.fixture
def folder(hospital: Path, tmp_path: Path) -> Iterator[Path]:
    shutil.copytree(hospital, tmp_path / "hospital")
    yield tmp_path / "hospital"


@pytest.mark.parametrize("path", sorted(SCREENS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_story(path: Path, folder: Path) -> None:
    story = read_story(path.read_text(encoding="utf-8"))
    rows, columns = story.said("size", "24x80").split("x")
    arguments = story.said("arguments", "hospital.yaml --user ana").split()
    environment = {"PYTHONPATH": str(ROOT), "DPSQL_HISTORY": str(folder / "history")}
    size = {"rows": int(rows), "columns": int(columns)}
    seen: list[Step] = []
    with Terminal([*SEEDED, *arguments], folder, environment=environment, **size) as terminal:
        for step in story.steps:
            screens = [screen for key in step.keys if (screen := press(terminal, key)) is not None]
            seen.append(Step(step.keys, plain("".join(screens)).strip("\n")))
        assert terminal.ended() == int(story.said("exit", "0"))
    if os.environ.get("DPSQL_GOLDEN") == "write":
        path.write_text(write_story(Story(story.head, tuple(seen))), encoding="utf-8")
        return
    for wanted, got in zip(story.steps, seen, strict=True):
        assert got.screen == wanted.screen, f"after {wanted.keys}"
