"""`dpsql user`: passwords that are asked for, read, or made; and what is never shown."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest

from dpsql.schema.load import load_schema
from tests.unit.interfaces.cli.conftest import Ran

Run = Callable[..., Ran]
ROOT = Path(__file__).parents[4]


def kept(path: str, name: str) -> str | None:
    analyst = load_schema(path).analyst(name)
    assert analyst is not None
    return analyst.password


def test_one_is_added_with_a_password_that_is_made(run: Run, clinic: str) -> None:
    ran = run("user", "add", clinic, "bob", "--epsilon", "0.5", "--delta", "1e-9", "--generate")
    assert ran.code == 0 and re.search(r"^password: ([a-z2-7]{6}-?){4}$", ran.out, re.MULTILINE)
    assert (kept(clinic, "bob") or "").startswith("SCRAM-SHA-256$4096:")
    assert run("query", clinic, "SHOW BUDGET", "--user", "bob").code == 0, "she may ask at once"


def test_a_password_comes_in_and_replaces_another(run: Run, clinic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def add(*more: str) -> Ran:
        monkeypatch.setattr(sys, "stdin", io.StringIO("hunter22\nrest\n"))
        return run("user", "add", clinic, "ana", "--password-stdin", *more)

    first = add()
    assert first.code == 0 and first.out == '"ana" has a new password\n'
    before = kept(clinic, "ana")
    again = add()
    assert again.code == 2 and "agree by --force" in again.err and kept(clinic, "ana") == before
    done = json.loads(add("--force", "--json").out)
    assert done == {"user": "ana", "added": False, "has_password": True, "password": None}
    assert kept(clinic, "ana") != before
    shown = first.out + first.err + again.out + again.err + Path(clinic).read_text()
    assert "hunter22" not in shown


def test_an_environment_variable_gives_way_to_a_password(run: Run, clinic: str) -> None:
    assert run("user", "add", clinic, "bi", "--generate").code == 2, "she has one already"
    assert run("user", "add", clinic, "bi", "--generate", "--force").code == 0
    analyst = load_schema(clinic).analyst("bi")
    assert analyst is not None and analyst.password is not None and analyst.password_env is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("bob",), "give the budget by --epsilon and --delta"),
        (("ana", "--epsilon", "1", "--delta", "0"), "change it in the schema"),
        (("ana", "--no-password"), "already"),
        (("ana",), "there is no terminal"),
        (("bob", "--epsilon", "1", "--delta", "0", "--generate", "--no-password"), "not allowed with"),
    ],
)
def test_wrong_usage(
    run: Run, clinic: str, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    before = Path(clinic).read_bytes()
    ran = run("user", "add", clinic, *arguments)
    assert ran.code == 2 and told in ran.err and ran.err.startswith("usage: dpsql user add")
    assert Path(clinic).read_bytes() == before


def test_they_are_listed_without_their_passwords(run: Run, clinic: str) -> None:
    run("user", "add", clinic, "ana", "--generate")
    listed, told = run("user", "list", clinic), json.loads(run("user", "list", clinic, "--json").out)
    assert [one["user"] for one in told] == ["ana", "bi"]
    assert [one["password"] for one in told] == ["verifier", "environment"]
    assert "SCRAM" not in listed.out and "DPSQL_BI_PASSWORD" not in listed.out and "ana" in listed.out


def test_one_is_removed_and_what_was_charged_stays(run: Run, clinic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert run("query", clinic, "SELECT COUNT(*) FROM patients", "--user", "ana").code == 0
    assert run("user", "remove", clinic, "ana").code == 2, "nobody is there to agree"
    assert run("user", "remove", clinic, "eve", "--force").code == 1
    assert run("user", "remove", clinic, "ana", "--force").code == 0
    assert [one["user"] for one in json.loads(run("user", "list", clinic, "--json").out)] == ["bi"]
    assert run("query", clinic, "SELECT 1", "--user", "ana").code == 1
    assert '"ana": ' in run("audit", clinic).out, "her entries are in the ledger"


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_file_that_everyone_can_read_is_reported(run: Run, clinic: str) -> None:
    for mode, told in ((0o644, True), (0o640, False), (0o600, False)):
        os.chmod(clinic, mode)
        assert ("chmod 640" in run("user", "add", clinic, "ana", "--generate", "--force").err) is told


# --- at a terminal ---------------------------------------------------------------------------------------------------


def _typed(clinic: str, *answers: tuple[str, str]) -> tuple[int | None, str]:
    """What is asked and what a person types; the exit code, and all that was shown."""
    child = pexpect.spawn(sys.executable, ["-m", "dpsql", "user", "add", clinic, "ana"], encoding="utf-8", timeout=20,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    shown = io.StringIO()
    child.logfile_read = shown
    for question, answer in answers:
        child.expect(re.escape(question))
        child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus, shown.getvalue()


def test_a_new_password_is_typed_twice_and_not_echoed(clinic: str) -> None:
    code, shown = _typed(clinic, ("Password for ana: ", "hunter22"), ("Again: ", "hunter22"))
    assert code == 0 and "has a new password" in shown and "hunter22" not in shown
    before = kept(clinic, "ana")
    code, shown = _typed(clinic, ("Replace it? [y/N] ", "n"))
    assert code == 1 and "nothing was changed" in shown and kept(clinic, "ana") == before
    code, shown = _typed(clinic, ("Replace it? [y/N] ", "y"), ("Password for ana: ", "a"), ("Again: ", "b"))
    assert code == 1 and "the two passwords differ" in shown and kept(clinic, "ana") == before
    code, _ = _typed(clinic, ("Replace it? [y/N] ", "yes"), ("Password for ana: ", "a"), ("Again: ", "a"))
    assert code == 0 and kept(clinic, "ana") != before
