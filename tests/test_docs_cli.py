"""docs/cli.md and the help of commands say what the command line does: every command, option, exit code and field."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from dpsql.interfaces.cli.arguments import build_parser, list_commands
from dpsql.interfaces.cli.main import main
from dpsql.interfaces.cli.parser import CommandParser
from dpsql.interfaces.repl.meta_commands import META_COMMANDS as BACKSLASH
from tests.support.server import make_certificate

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
CLI = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
COMMANDS = {" ".join(words): parser for words, parser in list_commands(build_parser()).items()}
SECTIONS = {
    re.sub(r" [A-Z…]+", "", title): (title, text)
    for title, text in re.findall(r"^## `dpsql ([^`\n]*)`\n(.*?)(?=^## |\Z)", CLI, re.MULTILINE | re.DOTALL)
}
PROMPT = CLI.split("## The prompt\n")[1].split("\n## ")[0]
SECTIONS["repl"] = ("repl SCHEMA", PROMPT)
JSON = dict(re.findall(r"^\| `([a-z ]+)` \| (.*) \|$", CLI.split("## JSON\n")[1], re.MULTILINE))
FOUND = 3


def _options(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings} - {"-h", "--help"}


def test_every_command_is_documented_and_no_other() -> None:
    assert SECTIONS.keys() == COMMANDS.keys() and len(COMMANDS) > 15


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_documented_and_no_other(name: str) -> None:
    title, text = SECTIONS[name]
    assert set(re.findall(r"(?<=`)--?[a-z][a-z-]*", text)) - {"--help"} == _options(COMMANDS[name])
    places = [str(action.metavar) for action in COMMANDS[name]._actions if not action.option_strings]
    assert re.findall(r"[A-Z]+", title) == places


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_chooses_from_is_documented(name: str) -> None:
    for action in COMMANDS[name]._actions:
        assert all(f"`{choice}`" in SECTIONS[name][1] for choice in action.choices or ()), action.dest


def test_every_backslash_command_is_documented_as_its_help_says_and_no_other() -> None:
    documented = re.findall(r"^\| `\\(\S+?)(?: (.*?))?` \| (.*) \|$", PROMPT, re.MULTILINE)
    assert [(name, arguments.replace("\\|", "|"), text) for name, arguments, text in documented] == [
        (command.name, command.arguments, command.help) for command in BACKSLASH
    ]


# --- examples --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo's hospital, and with the program where a shell finds it."""
    folder = tmp_path_factory.mktemp("examples")
    program = folder / "bin" / "dpsql"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m dpsql "$@"\n')
    program.chmod(0o755)
    assert _shell(folder, "dpsql demo --keep hospital").returncode == 0
    return folder


@pytest.fixture
def hospital(made: Path, tmp_path: Path) -> Path:
    """A copy for each test: an example may change what is there."""
    shutil.copytree(made, tmp_path / "made")
    return tmp_path / "made" / "hospital"


def _shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    base = folder if (folder / "bin").exists() else folder.parent
    environment = {
        **os.environ, "PATH": os.pathsep.join((str(base / "bin"), os.environ["PATH"])), "PYTHONPATH": str(ROOT)
    }  # fmt: skip
    return subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, env=environment, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL)  # fmt: skip


def _in_process(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """As `_shell`, without a process: for lines that are one command, where another test starts that command."""
    out, error = io.StringIO(), io.StringIO()
    handler = signal.getsignal(signal.SIGTERM)
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            code = main(shlex.split(line)[1:])
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            signal.signal(signal.SIGTERM, handler)  # `verify` has its own
    return subprocess.CompletedProcess(line, code, out.getvalue(), error.getvalue())


def _run(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """In a shell only where the line needs one."""
    is_command = line.startswith("dpsql ") and not re.search(r"[|<>$;&`]", re.sub(r"""'[^']*'|"[^"$`]*\"""", "", line))
    return (_in_process if is_command else _shell)(folder, line)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_command_run_as_they_stand_in_its_help(hospital: Path, name: str) -> None:
    parser = COMMANDS[name]
    assert parser.examples and all(f"  {line}\n" in parser.format_help() + "\n" for line in parser.examples)
    assert any(line.startswith(f"dpsql {name} ") or name == "repl" or f"(dpsql {name} " in line or f"| dpsql {name} " in
               line for line in parser.examples)  # fmt: skip
    for place, line in enumerate(parser.examples):
        if name == "serve":
            _serves(hospital, line)
            continue
        ran = (_run if place else _shell)(hospital, line)  # each command in a process once
        allowed = (0, FOUND) if name == "check" else (0,)
        assert ran.returncode in allowed and "Traceback" not in ran.stderr, (line, ran.stdout, ran.stderr)


def _serves(hospital: Path, line: str) -> None:
    """Until it is ready, and then until it is asked to end; on any port, since others may use the example's."""
    make_certificate(hospital)
    assert _shell(hospital, "dpsql user add hospital.yaml ana --generate --force").returncode == 0
    words = [*shlex.split(line.removeprefix("dpsql ").replace("--port 5433", "")), "--port", "0"]
    with _started(hospital, *words) as process:
        assert process.stdout is not None and process.stderr is not None
        told = [one.decode() for one in takewhile(lambda one: one not in (b"ready\n", b""), process.stdout)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0, (line, told, process.stderr.read())
        assert told and told[0].startswith("hospital  postgresql://ana@"), told
        assert b"Traceback" not in process.stderr.read()


def test_the_examples_of_the_whole_run(hospital: Path) -> None:
    lines = re.findall(r"^  ((?:echo .*)?dpsql .*)$", (build_parser().epilog or ""), re.MULTILINE)
    assert len(lines) >= 4
    for line in lines:
        assert _run(hospital, line).returncode == 0, line


def test_the_console_of_the_prompt_runs(hospital: Path) -> None:
    lines = re.findall(r"^\$ (.*)$", PROMPT, re.MULTILINE)
    assert lines
    for line in lines:
        ran = _run(hospital, line)
        assert ran.returncode == 0 and ran.stdout, (line, ran.stderr)


# --- JSON ------------------------------------------------------------------------------------------------------------

ASKED = {
    "explain": 'explain hospital.yaml "SELECT ward, COUNT(*) FROM visits GROUP BY ward" --user ana',
    "budget": "budget hospital.yaml",
    "audit": "audit hospital.yaml",
    "answers list": "answers list hospital.yaml",
    "answers drop": "answers drop hospital.yaml --before 2020-01-01",
    "data changed": "data changed hospital.yaml",
    "account resume": "account resume hospital.yaml ana",
    "account grant": "account grant hospital.yaml ana",
    "user add": "user add hospital.yaml bob --epsilon 1 --delta 0 --generate",
    "user list": "user list hospital.yaml",
    "user remove": "user remove hospital.yaml ana --force",
    "init": "init patients.csv visits.csv -o -",
    "check": "check hospital.yaml",
    "randomize": "randomize patients.csv --column sex --values f,m,x --null x --epsilon 1 -o randomized.csv",
    "verify": "verify hospital.yaml --trials 5 --workers 1 --no-statistics",
}


def _takes_json(parser: CommandParser) -> bool:
    return any(action.dest == "json" for action in parser._actions)


def test_every_command_with_json_is_in_the_table_and_no_other() -> None:
    assert JSON.keys() == {name for name, parser in COMMANDS.items() if _takes_json(parser)} == ASKED.keys()


@pytest.mark.parametrize("name", JSON)
def test_json_has_the_documented_fields_and_no_other(hospital: Path, name: str) -> None:
    ran = _run(hospital, f"dpsql {ASKED[name]} --json")
    assert ran.returncode in (0, FOUND), ran.stderr
    found = json.loads(ran.stdout)
    documented = set(re.findall(r"`(\w+)`", JSON[name]))
    for one in found if isinstance(found, list) else [found]:
        assert set(one) == documented


def _fields(value: Any) -> set[str]:
    if isinstance(value, list):
        return {name for one in value for name in _fields(one)}
    return set().union(value, *map(_fields, value.values())) if isinstance(value, dict) else set()


def test_every_field_of_explain_is_explained(hospital: Path) -> None:
    found = json.loads(_run(hospital, f"dpsql {ASKED['explain']} --json").stdout)
    text = CLI.split("Of `explain`:")[1].split("\n\n")[0] + JSON["explain"]
    assert _fields(found) == set(re.findall(r"`(\w+)`", text)) - {"explain"}
    question, histogram = found["releases"]
    assert found["offers"] and question["undecided"] and not question["bundles"]
    assert histogram["histogram"] and histogram["bundles"]


# --- exit codes ------------------------------------------------------------------------------------------------------

CODES = {
    0: "dpsql query hospital.yaml 'SELECT 1' --user ana",
    1: "dpsql query hospital.yaml 'SELECT * FROM visits' --user ana",
    2: "dpsql query hospital.yaml --bogus",
    FOUND: f"dpsql audit hospital.yaml --receipt ana/1/{'0' * 64}",
    4: "dpsql verify hospital.yaml --trials 2 --workers 1 --samples 50",
}
INTERRUPTED, CLOSED = 130, 141


def test_every_exit_code_is_documented_and_no_other() -> None:
    documented = [int(code) for code in re.findall(r"^\| (\d+) \|", CLI, re.MULTILINE)]
    assert documented == [*CODES, INTERRUPTED, CLOSED]


@pytest.mark.parametrize("code", CODES)
def test_exit_codes_are_what_is_documented(hospital: Path, code: int) -> None:
    ran = _shell(hospital, CODES[code])
    assert ran.returncode == code and "Traceback" not in ran.stderr, (ran.stdout, ran.stderr)


def _started(hospital: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "dpsql", *arguments], cwd=hospital, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def _wait_until_stdin_is_read(process: subprocess.Popen[bytes]) -> None:
    """Fill the pipe: it takes more only once the program, however slowly it started, reads what it is to ask."""
    assert process.stdin is not None
    pipe = process.stdin.fileno()
    os.set_blocking(pipe, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(pipe, b" " * 1024)
    assert select.select([], [pipe], [], 60)[1], "nothing was read from stdin"
    os.set_blocking(pipe, True)


def test_an_interrupt_is_reported(hospital: Path) -> None:
    with _started(hospital, "query", "hospital.yaml", "-", "--user", "ana") as process:
        _wait_until_stdin_is_read(process)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=20)
    assert process.returncode == INTERRUPTED and b"interrupted" in error and not out


def test_a_closed_output_is_reported(hospital: Path) -> None:
    with _started(hospital, "answers", "export", "hospital.yaml") as process:
        assert process.stdout is not None
        process.stdout.close()
        process.wait(timeout=20)
    assert process.returncode == CLOSED
