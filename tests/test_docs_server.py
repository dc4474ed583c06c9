"""docs/server.md says what the server does: its figures, its options, its words."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dpsql.interfaces.cli.arguments import build_parser
from dpsql.interfaces.cli.main import main as run
from dpsql.interfaces.pgwire.server import login, login_throttle, metrics, stream
from dpsql.interfaces.pgwire.server.connection import ServerLimits

TEXT = (Path(__file__).parents[1] / "docs" / "server.md").read_text(encoding="utf-8")
BOUNDS = dict(re.findall(r"^\| ([^|`]+?) \| (.*) \|$", TEXT.split("## Who gets how much")[1], re.MULTILINE))
BYTES = 1024 * 1024


def test_the_figures_are_those_of_the_code() -> None:
    bounds = ServerLimits()
    assert f"`--max-pending` that have not logged in yet ({bounds.pending})" in BOUNDS["connections"]
    assert (
        BOUNDS["a login"]
        == f"{bounds.login_seconds:.0f} seconds, the first message {login.STARTUP_TIMEOUT_SECONDS:.0f}"
    )
    assert (
        f"doubling to {login_throttle.MAX_ADDRESS_DELAY_SECONDS:.0f} seconds for an address" in BOUNDS["failed logins"]
    )
    assert f"and {login_throttle.MAX_USER_DELAY_SECONDS:.0f} for a name" in BOUNDS["failed logins"]
    assert f"wait more than {login_throttle.MAX_WAIT_SECONDS:.0f} is refused" in BOUNDS["failed logins"]
    assert f"forgotten after {login_throttle.FORGET_AFTER_SECONDS / 60:.0f} minutes" in BOUNDS["failed logins"]
    assert login_throttle.FREE_FAILURES == 6 and BOUNDS["failed logins"].startswith("six are free")
    assert BOUNDS["a message"].startswith(f"{bounds.message_bytes // BYTES} MB; {bounds.buffered_bytes // BYTES} MB of")
    assert (
        f"{stream.HIGH_WATER_BYTES // 1024} kB ahead, waited for {bounds.write_seconds:.0f} seconds"
        in BOUNDS["who does not read"]
    )


def test_the_start_runs_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """But for the password; the server itself is run by others."""
    shown = TEXT.split("```console")[1].split("```")[0].strip().splitlines()
    start, add, *told, serve, address, ready = shown
    monkeypatch.chdir(tmp_path)
    demo, moved = start.removeprefix("$ dpsql ").split(" && cd ")
    assert run(shlex.split(demo)) == 0
    monkeypatch.chdir(tmp_path / moved)
    capsys.readouterr()
    assert run(shlex.split(add.removeprefix("$ dpsql "))) == 0
    password = re.compile(r"^password: [a-z0-9]{6}(-[a-z0-9]{6}){3}$", re.MULTILINE)
    printed = capsys.readouterr().out
    assert password.sub("password", printed).splitlines() == password.sub("password", "\n".join(told)).splitlines()
    assert Path(shlex.split(serve)[-1]).exists() and (address.split()[0], ready) == ("hospital", "ready")


def test_outcomes_and_gauges_are_those_of_the_code() -> None:
    assert all(f"`{outcome}`" in TEXT for outcome in metrics.STATEMENT_OUTCOMES)
    assert set(re.findall(r"`(dpsql_\w+)`", TEXT)) == {"dpsql_budget_left_epsilon"}


LINES = [line for line in re.findall(r"dpsql serve [^`\n]*", TEXT) if ".yaml" in line]


@pytest.mark.parametrize("line", LINES)
def test_every_command_line_can_be_read(line: str) -> None:
    given = build_parser().parse_args(shlex.split(line)[1:])
    assert given.command == "serve" and given.schemas == ["hospital.yaml"]


def test_the_container_starts_what_there_is() -> None:
    lists = [TEXT.split(line)[1].split("]")[0] for line in ("ENTRYPOINT", "CMD")]
    words = [word for one in lists for word in re.findall(r'"([^"]*)"', one)]
    given = build_parser().parse_args(words[1:])
    assert given.require_tls and given.host == ["0.0.0.0"] and len(LINES) >= 3
