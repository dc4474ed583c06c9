"""The table of backslash commands, and its other names."""

from pathlib import Path

import pytest

from dpsql.errors import InvalidSyntax
from dpsql.interfaces.repl.meta_commands import _ALIASES, COMMANDS_BY_NAME, parse_meta_command

TEXT = (Path(__file__).parents[4] / "docs" / "cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", _ALIASES)
def test_other_names_are_documented_and_mean_what_help_says(name):
    assert f"`\\{name}`" in TEXT and parse_meta_command(f"\\{name} x") == parse_meta_command(f"\\{_ALIASES[name]} x")
    assert name not in COMMANDS_BY_NAME and parse_meta_command("\\dt+").command.name == "dt"


def test_what_means_something_else_in_psql_is_no_other_name():
    """There, \\z lists privileges."""
    with pytest.raises(InvalidSyntax):
        parse_meta_command("\\z")
