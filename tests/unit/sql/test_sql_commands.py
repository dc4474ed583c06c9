"""Commands beside SELECT, however they are spelled."""

import pytest

from dpsql.errors import Error, InvalidSyntax
from dpsql.sql.commands import (
    DescribeCommand,
    ExplainCommand,
    ResetCommand,
    SetCommand,
    ShowCommand,
    read_command,
)


@pytest.mark.parametrize(
    "sql",
    [
        "SET epsilon = 0.5", "set Epsilon=0.5;", "SET epsilon TO 0.5", "SET SESSION epsilon = 0.5",
        "set local epsilon to 0.5", "  -- first\n/* then */ SET epsilon = 0.5 ; ",
        "SET epsilon = '0.5'", "SET\nepsilon\n=\n0.5",
    ],
)  # fmt: skip
def test_set_has_many_spellings(sql: str) -> None:
    assert read_command(sql) == SetCommand("epsilon", "0.5")


@pytest.mark.parametrize("sql", ["SET", "SET epsilon", "SET epsilon =", "SET = 5", "SET TO 5", "SET SESSION"])
def test_set_needs_a_name_and_a_value(sql: str) -> None:
    with pytest.raises(InvalidSyntax):
        read_command(sql)


@pytest.mark.parametrize(
    ("sql", "command"),
    [
        ("RESET ALL", ResetCommand(None)),
        ("reset contributions.rows", ResetCommand("contributions.rows")),
        ("SHOW TABLES;", ShowCommand("tables")),
        ("show all", ShowCommand("all")),
        ("SHOW contributions.rows", ShowCommand("contributions.rows")),
        ("DESCRIBE visits", DescribeCommand("visits")),
        ("desc Visits;", DescribeCommand("visits")),
    ],
)
def test_other_commands(sql: str, command: object) -> None:
    assert read_command(sql) == command


@pytest.mark.parametrize("sql", ["RESET", "SHOW", "DESCRIBE", "EXPLAIN", "EXPLAIN ;"])
def test_a_command_without_its_object_is_refused(sql: str) -> None:
    with pytest.raises(Error):
        read_command(sql)


def test_explain_keeps_the_place_of_its_statement() -> None:
    sql = "/* why */ EXPLAIN  SELECT 1;"
    command = read_command(sql)
    assert isinstance(command, ExplainCommand)
    assert sql[command.offset :].startswith(command.sql) and command.sql.strip() == "SELECT 1"


@pytest.mark.parametrize("sql", ["SELECT 1", "settle", "SETS x = 1", "WITH set AS (SELECT 1) SELECT 1", "/**/ S", ""])
def test_what_only_looks_like_a_command_is_none(sql: str) -> None:
    assert read_command(sql) is None
