"""When an answer goes through a pager, and what the pager is given."""

from __future__ import annotations

import io
import os
import subprocess
from typing import Any

import pytest

from dpsql.interfaces.display.terminal import Screen
from dpsql.interfaces.repl import shell

LONG = [f"line {n}" for n in range(30)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, Any]]]:
    """What is run, in place of running it, on a screen of 24 lines."""
    found: list[tuple[list[str], dict[str, Any]]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **how: found.append((command, how)))
    monkeypatch.setattr(shell.shutil, "get_terminal_size", lambda: os.terminal_size((80, 24)))
    for name in ("DPSQL_PAGER", "PAGER", "LESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(shell.shutil, "which", lambda name: f"/bin/{name}")
    return found


def paged(lines: list[str], out: io.StringIO) -> str:
    shell.page_lines(lines, Screen(out, io.StringIO()))
    return out.getvalue()


def test_a_long_answer_goes_through_less_and_nowhere_else(ran: list[Any]) -> None:
    assert paged(LONG, Terminal()) == ""
    ((command, how),) = ran
    assert command == ["less"] and how["input"] == "".join(f"{line}\n" for line in LONG)
    assert how["env"]["LESS"] == "-RFXS" and "PATH" in how["env"]


def test_what_fits_on_the_screen_does_not(ran: list[Any]) -> None:
    assert paged(LONG[:22], Terminal()).splitlines() == LONG[:22] and ran == []
    paged(LONG[:23], Terminal())  # the prompt needs the last line
    assert len(ran) == 1


def test_nor_what_no_person_reads(ran: list[Any]) -> None:
    assert paged(LONG, io.StringIO()).splitlines() == LONG and ran == []


@pytest.mark.parametrize(
    ("environment", "command"),
    [
        ({"PAGER": "more -s"}, ["more", "-s"]),
        ({"PAGER": "more", "DPSQL_PAGER": "'my pager' -x"}, ["my pager", "-x"]),
        ({"PAGER": "more", "DPSQL_PAGER": ""}, None),
        ({"PAGER": ""}, None),
    ],
)
def test_which_one(ran: list[Any], monkeypatch: pytest.MonkeyPatch, environment: dict[str, str],
                   command: list[str] | None) -> None:  # fmt: skip
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    told = paged(LONG, Terminal())
    assert [one for one, _ in ran] == ([] if command is None else [command]) and bool(told) == (command is None)


def test_the_readers_own_options_of_less_are_kept(ran: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESS", "-N")
    paged(LONG, Terminal())
    assert ran[0][1]["env"]["LESS"] == "-N"


@pytest.mark.parametrize(("error", "told"), [(FileNotFoundError(), LONG), (KeyboardInterrupt(), [])])
def test_a_pager_that_is_not_there_or_is_left(
    ran: list[Any], monkeypatch: pytest.MonkeyPatch, error: BaseException, told: list[str]
) -> None:
    def fail(*command: object, **how: object) -> None:
        raise error

    monkeypatch.setattr(subprocess, "run", fail)
    assert paged(LONG, Terminal()).splitlines() == told


def test_without_less_lines_are_printed(ran: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell.shutil, "which", lambda name: None)
    assert paged(LONG, Terminal()).splitlines() == LONG and ran == []
