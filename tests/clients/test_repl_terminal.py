"""The prompt in a pseudo-terminal, where a screen alone does not tell: waiting, leaving, colours, files."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import dpsql
from dpsql.interfaces.cli.demo_hospital import make_hospital

if os.name != "posix":
    pytest.skip("there are no pseudo-terminals elsewhere", allow_module_level=True)

from tests.support.terminal import Terminal

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
UNDER_WAY = r"[█░]{24} asking, \d+ s"
COUNT = "SELECT COUNT(*) FROM patients;"
Open = Callable[..., Terminal]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_hospital(tmp_path)
    return tmp_path


@pytest.fixture
def slow(folder: Path) -> Path:
    """Each release is seen to have ended three seconds after it began."""
    path = folder / "hospital.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "\nlimits: {min_latency: 3}\n", encoding="utf-8")
    return folder


@pytest.fixture
def opened(folder: Path) -> Iterator[Open]:
    with ExitStack() as stack:

        def open_(*arguments: str, **environment: str) -> Terminal:
            command = [sys.executable, "-m", "dpsql", "hospital.yaml", "--user", "ana", *arguments]
            around = {"PYTHONPATH": str(ROOT), "DPSQL_HISTORY": str(folder / "state" / "history"), **environment}
            terminal = stack.enter_context(Terminal(command, folder, environment=around))
            terminal.wait_for_prompt(r"^hospital=>$")
            return terminal

        yield open_


def ask(terminal: Terminal, text: str) -> None:
    terminal.type(text)
    terminal.press("enter")


def charges(folder: Path) -> int:
    with dpsql.connect(folder / "hospital.yaml", user="ana") as connection:
        return connection.budget().charges


def test_a_long_statement_shows_that_it_is_under_way(slow: Path, opened: Open) -> None:
    terminal = opened()
    ask(terminal, COUNT)
    terminal.wait_for(r"[█░]{24} asking, \d s; Ctrl-C leaves; what is paid stays paid")
    terminal.wait_for("charged: epsilon")
    assert "█" not in terminal.settle()


def test_a_statement_of_two_releases_shows_how_many_are_done(slow: Path, opened: Open) -> None:
    terminal = opened()
    ask(terminal, "SELECT (SELECT COUNT(*) FROM patients) AS p, (SELECT COUNT(*) FROM visits) AS v;")
    terminal.wait_for("1 of 2 releases")
    terminal.wait_for("charged: epsilon")


def test_ctrl_c_leaves_a_statement_and_a_repeat_is_free(slow: Path, opened: Open) -> None:
    path = slow / "hospital.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("min_latency: 3", "min_latency: 9"), encoding="utf-8")
    terminal = opened()
    ask(terminal, COUNT)
    terminal.wait_for(UNDER_WAY)
    terminal.press("ctrl-c")
    terminal.wait_for("canceling statement due to user request")
    terminal.wait_for_prompt("^hospital=>$")
    assert not re.search(UNDER_WAY + r"|\(1 row\)", terminal.everything)
    ask(terminal, COUNT)
    terminal.wait_for(UNDER_WAY)  # so it had not ended when Ctrl-C had left it
    terminal.wait_for("charged: nothing")
    ask(terminal, "\\q")
    assert terminal.ended() == 0 and charges(slow) == 1


def test_ctrl_c_forgets_what_is_typed_and_ctrl_d_leaves(opened: Open, folder: Path) -> None:
    terminal = opened()
    terminal.type("SELECT COUNT(*)")
    terminal.press("enter")
    terminal.wait_for("^hospital->")
    terminal.press("ctrl-c")
    terminal.wait_for_prompt("^hospital=>$")
    terminal.press("ctrl-d")
    assert terminal.ended() == 0 and charges(folder) == 0


def test_escape_enter_executes_without_a_semicolon(opened: Open) -> None:
    terminal = opened()
    terminal.type("SHOW epsilon")
    terminal.press("escape", "enter")
    assert re.search(r"^ 1$", terminal.wait_for(r"\(1 row\)"), re.MULTILINE)


def test_keywords_have_a_colour_unless_no_color(opened: Open) -> None:
    coloured, plain = opened(), opened(NO_COLOR="1")
    for terminal in (coloured, plain):
        terminal.type("SELECT 'x'")
        terminal.wait_for("'x'")
        terminal.settle()
    assert coloured.style_of("SELECT") == ("blue", True) and coloured.style_of("'x'")[0] == "green"
    assert plain.style_of("SELECT")[0] == "default" == plain.style_of("'x'")[0]


def test_what_is_typed_is_kept_for_its_owner_alone(opened: Open, folder: Path) -> None:
    terminal = opened()
    ask(terminal, "SHOW epsilon;")
    terminal.wait_for(r"\(1 row\)")
    ask(terminal, "\\q")
    assert terminal.ended() == 0
    path = folder / "state" / "history"
    assert "SHOW epsilon" in path.read_text() and stat.S_IMODE(path.stat().st_mode) == 0o600
    again = opened()
    again.press("up", "up")
    again.wait_for("SHOW epsilon")


def test_no_history_is_kept_with_that_option(opened: Open, folder: Path) -> None:
    terminal = opened("--no-history")
    ask(terminal, "SHOW epsilon;")
    terminal.wait_for(r"\(1 row\)")
    ask(terminal, "\\q")
    assert terminal.ended() == 0 and not (folder / "state").exists()


def test_what_an_editor_writes_comes_back_to_the_prompt(opened: Open, folder: Path) -> None:
    editor = folder / "editor.sh"
    editor.write_text('#!/bin/sh\necho "SHOW delta;" > "$1"\n')
    editor.chmod(0o755)
    terminal = opened(EDITOR=str(editor))
    ask(terminal, "\\e")
    terminal.wait_for("hospital=> SHOW delta;")
    terminal.press("enter")
    terminal.wait_for("1E-7")


def test_a_long_answer_goes_through_the_pager(opened: Open, folder: Path) -> None:
    pager = folder / "pager.sh"
    pager.write_text('#!/bin/sh\necho "PAGED $(wc -l)"\n')
    pager.chmod(0o755)
    terminal = opened(PAGER=str(pager))
    ask(terminal, "\\df")
    terminal.wait_for(r"PAGED \d{2,}")
    terminal.wait_for_prompt("^hospital=>$")
    ask(terminal, "\\l")
    assert "PAGED" in terminal.wait_for("dataset") and terminal.everything.count("PAGED") == 1


def test_data_that_cannot_be_opened_ends_it(folder: Path, opened: Open) -> None:
    first = opened()
    ask(first, "\\q")
    assert first.ended() == 0
    with (folder / "visits.csv").open("a", encoding="utf-8") as file:
        file.write("1,surgery,x,2021-01-01 00:00:00,1,1\n")
    command = [sys.executable, "-m", "dpsql", "hospital.yaml", "--user", "ana"]
    with Terminal(command, folder, environment={"PYTHONPATH": str(ROOT)}) as terminal:
        terminal.wait_for("ERROR: .*")
        assert terminal.ended() == 1 and "hospital=>" not in terminal.everything


def test_a_charge_is_confirmed_also_where_the_statement_is_an_option(folder: Path) -> None:
    command = [sys.executable, "-m", "dpsql", "hospital.yaml", "--user", "ana", "--confirm", "0.1", "-c", COUNT]
    with Terminal(command, folder, environment={"PYTHONPATH": str(ROOT)}) as terminal:
        terminal.wait_for(r"\[y/N\]")
        ask(terminal, "n")
        terminal.wait_for("nothing was charged")
        assert terminal.ended() == 0 and charges(folder) == 0


@pytest.mark.parametrize("word", ["exit", "quit", "quit;"])
def test_words_that_people_leave_by(opened: Open, word: str) -> None:
    terminal = opened()
    ask(terminal, word)
    assert terminal.ended() == 0


def test_ctrl_c_at_the_question_is_no(folder: Path, opened: Open) -> None:
    terminal = opened("--confirm", "0.1")
    ask(terminal, COUNT)
    terminal.wait_for(r"\[y/N\]")
    terminal.settle()  # Python's readline may lose a signal that comes before it reads
    terminal.press("ctrl-c")
    terminal.wait_for("not asked, and nothing was charged")
    terminal.wait_for_prompt("^hospital=>$")
    assert charges(folder) == 0


def test_without_colours_nothing_is_suggested_that_looks_typed(opened: Open) -> None:
    terminal = opened(NO_COLOR="1")
    ask(terminal, "SHOW epsilon;")
    terminal.wait_for(r"\(1 row\)")
    terminal.wait_for_prompt("^hospital=>$")
    terminal.type("SHOW e")
    terminal.settle()
    assert "=> SHOW e\n" in terminal.screen


def test_a_long_line_is_cut_around_the_caret(opened: Open) -> None:
    terminal = opened()
    ask(terminal, f"SELECT count(*) FROM visits WHERE {'nights > 1 AND ' * 8} cots > 3;")
    lines = terminal.wait_for("HINT").splitlines()
    place = next(at for at, line in enumerate(lines) if line.startswith("LINE 1: ..."))
    assert lines[place].index("cots") == lines[place + 1].index("^")


def test_a_dumb_terminal_is_given_no_colours(opened: Open) -> None:
    terminal = opened(TERM="dumb")
    ask(terminal, "SHOW epsilon;")
    terminal.wait_for(r"\(1 row\)")
    ask(terminal, "\\q")
    assert terminal.ended() == 0
