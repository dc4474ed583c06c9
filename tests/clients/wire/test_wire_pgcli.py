"""pgcli in a pseudo-terminal: it connects, completes, asks, and shows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.support.optional_dependencies import missing, package
from tests.support.wire.hospital import Place

PGCLI = Path(sys.executable).with_name("pgcli")
CONFIG = """
[main]
less_chatty = True
enable_pager = False
keyring = False
multi_line = False
"""


@pytest.fixture
def terminal(served: Place, tmp_path: Path) -> Iterator[pexpect.spawn]:
    yield from open_terminal(served, tmp_path, {})


@pytest.fixture
def berliner(served: Place, tmp_path: Path) -> Iterator[pexpect.spawn]:
    """As in a shell in Berlin: pgcli sets the time zone of the machine as it connects."""
    yield from open_terminal(served, tmp_path, {"TZ": "Europe/Berlin", "PGTZ": "Europe/Berlin"})


def open_terminal(served: Place, tmp_path: Path, more: dict[str, str]) -> Iterator[pexpect.spawn]:
    package("pgcli")
    if not PGCLI.exists():
        missing("pgcli", "make setup")
    (tmp_path / "config").write_text(CONFIG)
    environment = {**served.environment(), "HOME": str(tmp_path), "TERM": "dumb", "PROMPT_TOOLKIT_NO_CPR": "1",
                   "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": str(tmp_path), **more}  # fmt: skip
    child = pexpect.spawn(str(PGCLI), ["--pgclirc", str(tmp_path / "config")], env=environment, encoding="utf-8",
                          timeout=30, dimensions=(50, 160))  # fmt: skip
    child.expect_exact("hospital>")
    yield child
    child.close(force=True)


def test_a_session(terminal: pexpect.spawn) -> None:
    terminal.sendline("SELECT ward, beds FROM wards WHERE ward = 'cardiology';")
    terminal.expect(r"cardiology\s*\|\s*20")
    terminal.expect_exact("SELECT 1")
    terminal.sendline("SELECT ward, count(*) FROM visits GROUP BY ward ORDER BY ward;")
    terminal.expect(r"surgery\s*\|\s*(299|300|301)")
    terminal.sendline("SELECT nothing FROM wards;")
    terminal.expect_exact('column "nothing" does not exist')
    terminal.sendline(r"\dt")
    terminal.expect_exact("patients")
    terminal.sendline(r"\d visits")
    terminal.expect_exact("timestamp without time zone")
    terminal.sendline(r"\q")
    terminal.expect(pexpect.EOF)


def test_the_time_zone_of_the_machine(berliner: pexpect.spawn) -> None:
    berliner.sendline("SHOW TimeZone;")
    berliner.expect_exact("Europe/Berlin")
    berliner.sendline("SELECT TIMESTAMPTZ '2024-07-01 12:00:00+00' AS noon;")
    berliner.expect_exact("2024-07-01 14:00:00+02")
    berliner.sendline(r"\q")
    berliner.expect(pexpect.EOF)
