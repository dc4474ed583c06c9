"""`dpsql completion` in real shells: what a person gets who types a part of a word and presses Tab."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest

from dpsql.compiler.settings import SETTING_NAMES as NAMES
from dpsql.interfaces.cli.completion import SETTING_NAMES
from tests.support.optional_dependencies import program

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

# What is typed, and what of the offered words must be there; those after None must not.
OFFERED = [
    ("dpsql que", ["query"]),
    ("dpsql answers ", ["list", "export", "drop", None, "query", "clinic.yaml"]),
    ("dpsql ", ["query", "explain", "user", "clinic.yaml", None, "notes.txt", "list"]),
    ("dpsql query ", ["clinic.yaml", "folder", None, "notes.txt", "explain"]),
    ("dpsql query clinic.yaml --f", ["--file", "--format", None, "--user"]),
    ("dpsql clinic.yaml --con", ["--confirm"]),
    ("dpsql --csv cl", ["clinic.yaml"]),
    ("dpsql clinic.yaml --format ", ["table", "csv", "json", None, "clinic.yaml"]),
    ("dpsql query clinic.yaml --user ", ["ana", "bi", None, "clinic.yaml"]),
    ("dpsql query --user ana cl", ["clinic.yaml"]),
    ("dpsql account grant clinic.yaml ", ["ana", "bi", None, "clinic.yaml"]),
    ("dpsql query clinic.yaml --file no", ["notes.txt"]),
    ("dpsql completion ", ["bash", "zsh", "fish", None, "clinic.yaml"]),
    ("dpsql help aud", ["audit"]),
    ("dpsql help user ", ["add", "list", "remove", None, "clinic.yaml", "audit"]),
    ("dpsql help answers l", ["list"]),
    ("dpsql init no", ["notes.txt"]),
    ("dpsql init clinic.yaml --force no", ["notes.txt"]),
    ("dpsql query clinic.yaml --set ", ["epsilon=", "max_relative_error=", None, "clinic.yaml"]),
    ("dpsql query clinic.yaml --set contributions.r", ["contributions.rows="]),
    ("dpsql query --set noise=laplace cl", ["clinic.yaml"]),
    ("dpsql check clinic.yaml --table ", ["patients", "visits", None, "clinic.yaml"]),
    ("dpsql query clinic.yaml --user=", ["ana", "bi", None, "clinic.yaml"]),
    ("dpsql query clinic.yaml --user=a", ["ana", None, "bi"]),
    ("dpsql query --user=ana cl", ["clinic.yaml"]),
]


def test_the_settings_that_are_offered_are_those_that_there_are() -> None:
    assert SETTING_NAMES == NAMES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    shutil.copy(ROOT / "schemas" / "clinic.yaml", folder)
    (folder / "notes.txt").write_text("")
    (folder / "folder").mkdir()
    dpsql = folder / ".bin" / "dpsql"
    dpsql.parent.mkdir()
    dpsql.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m dpsql "$@"\n')
    dpsql.chmod(0o755)
    for shell in ("bash", "zsh", "fish"):
        (folder / f".{shell}").write_text(_run(folder, [str(dpsql), "completion", shell]))
    return folder


def _environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join((str(folder / ".bin"), os.environ["PATH"]))
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(folder), "TERM": "dumb", "LANG": "C.UTF-8"}


def _run(folder: Path, command: list[str]) -> str:
    ran = subprocess.run(command, cwd=folder, env=_environment(folder), capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _check(words: set[str], offered: list[str | None]) -> None:
    none = offered.index(None) if None in offered else len(offered)
    assert set(offered[:none]) <= words and not set(offered[none + 1 :]) & words, words


def _id(value: object) -> str | None:
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(("line", "offered"), OFFERED, ids=_id)
def test_bash_offers_what_fits(folder: Path, line: str, offered: list[str | None]) -> None:
    """By the function that Tab calls, with the words as readline cuts them."""
    program("bash")
    words = [word for part in line.split(" ") for word in re.findall("[^=]+|=", part) or [""]]
    script = 'source .bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dpsql; printf "%s\\n" "${COMPREPLY[@]}"'
    _check(set(_run(folder, ["bash", "-c", script, "bash", *words]).split("\n")) - {""}, offered)


@pytest.mark.clients
@pytest.mark.parametrize(("line", "offered"), OFFERED, ids=_id)
def test_fish_offers_what_fits(folder: Path, line: str, offered: list[str | None]) -> None:
    program("fish")
    out = _run(folder, ["fish", "--no-config", "-c", f"source .fish; complete -C {shlex.quote(line)}"])
    whole = {one.partition("\t")[0].rstrip("/") for one in out.splitlines()}
    _check({one.removeprefix("--user=") for one in whole}, offered)


# Stands in for zsh's own functions, which only work while a line is edited; what they are given is listed.
ZSH = r"""
compdef() { :; }
compset() { :; }
compadd() { while [[ $1 != -- ]]; do shift; done; shift; print -l -- "$@"; }
_describe() { local name=${@[-1]}; print -l -- "${(@)${(@P)name}%%:*}"; }
_files() {
    case $1 in
        -g) print -l -- ${~2}(N) *(N/) ;;
        -/) print -l -- *(N/) ;;
        *) print -l -- *(N) ;;
    esac
}
source ./.zsh
words=("$@"); CURRENT=$#words
_dpsql
"""


@pytest.mark.clients
@pytest.mark.parametrize(("line", "offered"), OFFERED, ids=_id)
def test_zsh_offers_what_fits(folder: Path, line: str, offered: list[str | None]) -> None:
    program("zsh")
    found = set(_run(folder, ["zsh", "-f", "-c", ZSH, "zsh", *line.split(" ")]).split("\n")) - {""}
    typed = re.sub("^--.*=", "", line.split(" ")[-1])
    _check({one for one in found if one.startswith(typed)}, offered)


def _zsh(folder: Path) -> pexpect.spawn[str]:
    child = pexpect.spawn("zsh", ["-f", "-i"], cwd=folder, env=_environment(folder), encoding="utf-8", timeout=20,
                          dimensions=(60, 100))  # fmt: skip
    child.sendline("PS1='ready> '; autoload -Uz compinit && compinit -u -D; source ./.zsh; echo started")
    child.expect("\nstarted")
    child.expect("ready> ")
    return child


def _bash(folder: Path) -> pexpect.spawn[str]:
    child = pexpect.spawn("bash", ["--norc", "-i"], cwd=folder, env=_environment(folder), encoding="utf-8", timeout=20)
    child.sendline("PS1='ready> '; source ./.bash; echo started")
    child.expect("\nstarted")
    child.expect("ready> ")
    return child


@pytest.mark.parametrize("shell", ["bash", pytest.param("zsh", marks=pytest.mark.clients)])
def test_tab_completes_the_word_that_is_typed(folder: Path, shell: str) -> None:
    program(shell)
    child = _zsh(folder) if shell == "zsh" else _bash(folder)
    child.send("dpsql comp\tz\t\r")  # two words of its own, each from its first letters
    child.expect("#compdef dpsql", timeout=20)
    child.close(force=True)


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("dpsql init no\t", "init notes.txt"),
        ("dpsql query clinic.yaml --user=a\t", "--user=ana"),
        ("dpsql query clinic.yaml --set eps\t0.5", "--set epsilon=0.5"),
        ("dpsql check clinic.yaml --table vi\t", "--table visits"),
    ],
    ids=["source", "user", "set", "table"],
)
@pytest.mark.parametrize("shell", ["bash", pytest.param("zsh", marks=pytest.mark.clients)])
def test_tab_completes_values_as_the_shell_cuts_words(folder: Path, shell: str, typed: str, line: str) -> None:
    """The line as it stands after Tab, taken down instead of being run."""
    program(shell)
    child = _zsh(folder) if shell == "zsh" else _bash(folder)
    child.sendline("dpsql() { echo asked: $*; }")
    child.expect("ready> ")
    child.send(typed)
    time.sleep(3)
    child.send("\r")
    child.expect(f"asked: .*{re.escape(line)}", timeout=20)
    child.close(force=True)
