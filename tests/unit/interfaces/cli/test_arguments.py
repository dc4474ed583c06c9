"""From words to a command: a schema alone, near misses, help, and completion read off the parser."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsql.interfaces.cli.arguments import build_parser, list_commands, route_arguments
from dpsql.interfaces.cli.completion import (
    ValueKind,
    list_command_nodes,
    render_bash_script,
    render_fish_script,
    render_zsh_script,
)
from tests.unit.interfaces.cli.conftest import Ran

Run = Callable[..., Ran]
COMMANDS = list_commands(build_parser())


@pytest.mark.parametrize(
    ("given", "routed"),
    [
        ([], ["help"]),
        (["clinic.yaml"], ["repl", "clinic.yaml"]),
        (["CLINIC.YML", "--csv"], ["repl", "CLINIC.YML", "--csv"]),
        (["dpsql:///x?user=ana"], ["repl", "dpsql:///x?user=ana"]),
        (["--user", "ana", "x.yaml"], ["repl", "--user", "ana", "x.yaml"]),
        (["-c", "SELECT 1", "x.yaml"], ["repl", "-c", "SELECT 1", "x.yaml"]),
        (["query", "x.yaml", "SELECT 1"], ["query", "x.yaml", "SELECT 1"]),
        (["answers", "list", "x.yaml"], ["answers", "list", "x.yaml"]),
        (["--help"], ["--help"]),
        (["--version"], ["--version"]),
        (["answers", "--help"], ["answers", "--help"]),
    ],
)
def test_words_lead_to_a_command(given: list[str], routed: list[str]) -> None:
    assert route_arguments(build_parser(), given) == routed


def test_a_file_that_is_there_is_a_schema_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "schema"
    path.write_text("dpsql: 1")
    assert route_arguments(build_parser(), [str(path)]) == ["repl", str(path)]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("qurey",), 'no command "qurey"; did you mean "query"?'),
        (("answers", "lst"), 'no command "lst"; did you mean "list"?'),
        (("zzz",), 'no command "zzz"; there are repl, query'),
        (("help", "bugdet"), 'no command "bugdet"; did you mean "budget"?'),
        (("help", "query", "more"), '"more" is no part of a command'),
        (("completion", "tcsh"), "invalid choice"),
    ],
)
def test_what_is_no_command_is_reported_what_it_is_near_to(run: Run, given: tuple[str, ...], told: str) -> None:
    ran = run(*given)
    assert ran.code == 2 and told in ran.err and ran.err.startswith("usage: dpsql") and ran.out == ""


def test_a_schema_alone_executes_standard_input(run: Run, clinic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 1 AS a;\nSELECT 2 AS b"))
    ran = run(clinic, "--user", "ana", "--csv")
    assert ran.code == 0 and ran.out == "a\n1\nb\n2\n"
    assert run(clinic, "--user", "ana", "-c", "SELECT 1 AS a", "--json", "-q").out.split() == ["[", '{"a":', "1}", "]"]


def test_no_arguments_and_help_print_the_same(run: Run) -> None:
    assert run().out == run("help").out == run("--help").out and run().code == 0


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_of_every_command(run: Run, words: tuple[str, ...]) -> None:
    helped = run("help", *words)
    assert helped.code == 0 and helped.out == run(*words, "--help").out
    assert "examples:\n  " in helped.out and helped.out.startswith(f"usage: dpsql {' '.join(words)} ")


def test_help_of_groups_and_schemas(run: Run) -> None:
    assert "list" in run("help", "answers").out and run("help", "x.yaml").out == run("help", "repl").out


# --- completion ------------------------------------------------------------------------------------------------------


def test_every_command_and_option_is_completed_in_every_script() -> None:
    found = {place.words: place for place in list_command_nodes(build_parser())}
    assert found.keys() >= COMMANDS.keys()
    for words, parser in COMMANDS.items():
        options = {name for action in parser._actions for name in action.option_strings}
        assert {name for option in found[words].options for name in option.names} == options
    for script in (render_bash_script, render_zsh_script, render_fish_script):
        text = script(list(found.values()))
        for words, place in found.items():
            assert all(word in text for word in words)
            for option in place.options:
                longest = max(option.names, key=len)
                assert longest.lstrip("-") in text


def test_what_options_take_is_what_their_names_say() -> None:
    found = {place.words: place for place in list_command_nodes(build_parser())}
    query = {option.names[0]: option.takes for option in found["query",].options}
    assert (
        query["--user"] is ValueKind.USER and query["--file"] is ValueKind.FILE and query["--epsilon"] is ValueKind.TEXT
    )
    assert query["--format"] is ValueKind.CHOICE and query["--csv"] is ValueKind.NOTHING
    assert found["check",].arguments[0].takes is ValueKind.SCHEMA
    assert {option.names[0]: option.takes for option in found["check",].options}["--table"] is ValueKind.TABLE


def test_a_quote_in_help_does_not_end_a_string() -> None:
    """The owner's commands have one in their help."""
    for script in (render_bash_script, render_zsh_script, render_fish_script):
        assert "owner's" not in script(list_command_nodes(build_parser())), "it is written as '\\''"
