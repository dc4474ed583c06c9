"""The prompt on a server, in a pseudo-terminal: as on a schema, and with a password that nobody sees."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dpsql.interfaces.cli.demo_hospital import make_hospital
from tests.support.server import USERS, Server, serving

if os.name != "posix":
    pytest.skip("there are no pseudo-terminals elsewhere", allow_module_level=True)

from tests.support.terminal import Terminal

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
UNDER_WAY = r"[█░]{24} asking, \d+ s"
Open = Callable[..., Terminal]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Each release is seen to have ended three seconds after it began."""
    folder = tmp_path_factory.mktemp("prompt") / "hospital"
    folder.mkdir()
    schema = make_hospital(folder)
    schema.write_text(schema.read_text() + "\nlimits: {min_latency: 3}\n")
    with serving(schema) as server:
        yield server
        assert "Traceback" not in server.log()


@pytest.fixture
def opened(server: Server, tmp_path: Path) -> Iterator[Open]:
    with ExitStack() as stack:

        def open_(*arguments: str, scheme: str = "postgresql", **environment: str) -> Terminal:
            url = f"{scheme}://ana@127.0.0.1:{server.port}/hospital"
            around = {"PYTHONPATH": str(ROOT), "DPSQL_HISTORY": str(tmp_path / "history"), "HOME": str(tmp_path)}
            return stack.enter_context(
                Terminal([sys.executable, "-m", "dpsql", url, *arguments], tmp_path, columns=100,
                         environment={**around, **environment})
            )  # fmt: skip

        yield open_


def prompted(opened: Open, *arguments: str) -> Terminal:
    terminal = opened(*arguments, PGPASSWORD=USERS["ana"])
    terminal.wait_for_prompt(r"^hospital=>$")
    return terminal


def ask(terminal: Terminal, text: str) -> None:
    terminal.type(text)
    terminal.press("enter")


@pytest.mark.parametrize("scheme", ["postgresql", "dpsql"])
def test_the_password_is_typed_without_echo(opened: Open, tmp_path: Path, scheme: str) -> None:
    terminal = opened(scheme=scheme)
    terminal.wait_for(r"Password for ana at 127\.0\.0\.1:\d+:")
    ask(terminal, USERS["ana"])
    terminal.wait_for_prompt(r"^hospital=>$")
    ask(terminal, "SELECT 6 * 7 AS answer;")
    terminal.wait_for(r"\(1 row\)")
    ask(terminal, "\\q")
    assert terminal.ended() == 0
    kept = (tmp_path / "history").read_text()
    assert "6 * 7" in kept and USERS["ana"] not in kept + terminal.everything


def test_a_wrong_password_ends_it(opened: Open) -> None:
    terminal = opened()
    terminal.wait_for("Password for ana")
    ask(terminal, "wrong")
    terminal.wait_for('password authentication failed for user "ana"')
    assert terminal.ended() == 1 and "wrong" not in terminal.everything.replace("wrong password", "")


def test_a_statement_shows_its_price_in_the_status_line_and_what_is_left(opened: Open) -> None:
    terminal = prompted(opened, "--epsilon", "0.25")
    terminal.wait_for("left of ana's budget: ")
    terminal.type("SELECT COUNT(*) FROM patients;")
    terminal.wait_for(r"next: epsilon 0\.25, count ± ")
    terminal.press("enter")
    terminal.wait_for(UNDER_WAY)
    terminal.wait_for(r"charged: epsilon ≤ 0\.25")
    terminal.wait_for(r"left of ana's budget: 9\d")
    ask(terminal, "\\budget")
    terminal.wait_for('account "ana": ')
    ask(terminal, "\\d visits")
    terminal.wait_for("cardiology")
    ask(terminal, "SELECT nope FROM visits;")
    terminal.wait_for('column "nope" does not exist')
    assert re.search(r"LINE 1: SELECT nope FROM visits\n +\^", terminal.everything)


def test_completion_knows_the_servers_tables(opened: Open) -> None:
    terminal = prompted(opened)
    terminal.type("SELECT 1")
    terminal.wait_for("next: free")  # so it is open behind the prompt
    terminal.press("ctrl-u")
    terminal.type("SELECT COUNT(*) FROM vis")
    terminal.press("tab")
    terminal.wait_for("visits  private table")


def test_a_statement_of_two_releases_shows_how_many_are_done(opened: Open) -> None:
    terminal = prompted(opened, "--epsilon", "0.1")
    ask(terminal, "SELECT (SELECT COUNT(*) FROM patients WHERE sex = 'f'), (SELECT COUNT(*) FROM visits) AS v;")
    terminal.wait_for("1 of 2 releases")
    terminal.wait_for("charged: epsilon")


def test_ctrl_c_leaves_a_statement_and_a_repeat_is_free(opened: Open) -> None:
    terminal = prompted(opened, "--epsilon", "0.1")
    count = "SELECT COUNT(*) FROM visits WHERE nights > 2;"
    ask(terminal, count)
    terminal.wait_for(UNDER_WAY)
    terminal.press("ctrl-c")
    terminal.wait_for("canceling statement due to user request")
    terminal.wait_for("asking again is charged for the question alone")  # the histogram of units was under way
    terminal.wait_for(r"charged: epsilon .*; it is not charged again")
    terminal.wait_for_prompt("^hospital=>$")
    ask(terminal, count)
    terminal.wait_for(r"charged: epsilon ≤ 0\.1 at delta 1e-7 \(rho [0-9.]+\)$")
    terminal.wait_for_prompt("^hospital=>$")
    ask(terminal, count)
    terminal.wait_for("charged: nothing")
    ask(terminal, "\\q")
    assert terminal.ended() == 0
