"""The table of backslash commands, and its other names."""

from pathlib import Path

import pytest

from dpsql.errors import InvalidSyntax
from dpsql.repl.commands import _ALSO, BY_NAME, read_typed

TEXT = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", _ALSO)
def test_other_names_are_documented_and_mean_what_is_told(name):
    assert f"`\\{name}`" in TEXT and read_typed(f"\\{name} x") == read_typed(f"\\{_ALSO[name]} x")
    assert name not in BY_NAME and read_typed("\\dt+").command.name == "dt"


def test_what_means_something_else_in_psql_is_no_other_name():
    """There, \\z lists privileges."""
    with pytest.raises(InvalidSyntax):
        read_typed("\\z")
