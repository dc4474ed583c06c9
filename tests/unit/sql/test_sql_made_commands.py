"""CREATE, DROP and SHOW of synthetic tables and models, from text."""

import pytest

from dpsql.errors import Error, InvalidSyntax
from dpsql.sql.commands import read_command
from dpsql.sql.made_commands import CreateCommand, DropCommand, ShowMadeCommand

TABLE = "CREATE SYNTHETIC TABLE v AS SELECT sex, cost FROM visits WHERE cost > 5 WITH (epsilon = 1, method = 'mwem')"
MODEL = "create or replace model m as logistic regression on (age > 5) using cost, CLIP(x, 0, 1) from visits with (n=9)"


def test_a_synthetic_table() -> None:
    command = read_command(TABLE)
    assert isinstance(command, CreateCommand)
    assert (command.kind, command.name, command.instead, command.unless_there) == ("synthetic table", "v", False, False)
    assert [(o.name, o.value) for o in command.options] == [("epsilon", "1"), ("method", "mwem")]
    assert command.query.strip() == "SELECT sex, cost FROM visits WHERE cost > 5"


@pytest.mark.parametrize("sql", [TABLE, MODEL])
def test_the_query_keeps_its_places(sql: str) -> None:
    command = read_command(sql)
    assert isinstance(command, CreateCommand)
    for word in ("cost", "visits"):
        assert command.query.index(word) == sql.index(word)
    for option in command.options:
        assert sql[option.span.start : option.span.end].startswith(option.name)


def test_a_model() -> None:
    command = read_command(MODEL)
    assert isinstance(command, CreateCommand)
    assert (command.kind, command.name, command.family, command.instead) == ("model", "m", "logistic", True)
    assert " ".join(command.query.split()) == "SELECT (age > 5) , cost, CLIP(x, 0, 1) from visits"


def test_a_query_with_ctes_has_options_of_its_own() -> None:
    command = read_command("CREATE SYNTHETIC TABLE v AS WITH a AS (SELECT 1 AS x) SELECT x FROM a WITH (bins = 4)")
    assert isinstance(command, CreateCommand)
    assert command.query.strip() == "WITH a AS (SELECT 1 AS x) SELECT x FROM a" and len(command.options) == 1
    command = read_command('CREATE SYNTHETIC TABLE IF NOT EXISTS "Odd name" AS SELECT x FROM a;')
    assert isinstance(command, CreateCommand) and command.options == () and command.unless_there
    assert command.name == "Odd name"


def test_drop_and_show() -> None:
    dropped = read_command("DROP MODEL IF EXISTS m")
    assert isinstance(dropped, DropCommand) and (dropped.kind, dropped.name, dropped.if_there) == ("model", "m", True)
    shown = read_command("SHOW MODEL m (FORMAT JSON);")
    assert isinstance(shown, ShowMadeCommand) and (shown.kind, shown.name, shown.json) == ("model", "m", True)
    shown = read_command("show synthetic table V (format json)")
    assert isinstance(shown, ShowMadeCommand) and (shown.kind, shown.name, shown.json) == ("synthetic table", "v", True)
    listed = read_command("show synthetic tables")
    assert isinstance(listed, ShowMadeCommand) and listed.name is None


@pytest.mark.parametrize("sql", ["CREATE TABLE x (a int)", "DROP TABLE visits", "CREATE VIEW v AS SELECT 1", "CREATE"])
def test_others_of_these_words_are_no_commands(sql: str) -> None:
    assert read_command(sql) is None


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE SYNTHETIC TABLE", "CREATE SYNTHETIC TABLE v", "CREATE SYNTHETIC TABLE v AS",
        "CREATE SYNTHETIC TABLE v AS WITH (epsilon = 1)", "CREATE SYNTHETIC TABLE _v AS SELECT 1",
        "CREATE OR REPLACE SYNTHETIC TABLE IF NOT EXISTS v AS SELECT 1",
        "CREATE SYNTHETIC TABLE v AS SELECT 1 WITH (a)",
        "CREATE SYNTHETIC TABLE v AS SELECT 1 WITH (a = 1, a = 2)", "CREATE SYNTHETIC TABLE v AS SELECT 1 WITH (a = 1",
        "CREATE MODEL m AS RANDOM FOREST ON x USING y FROM z", "CREATE MODEL m AS LINEAR REGRESSION ON x FROM z",
        "CREATE MODEL m AS LINEAR REGRESSION ON x USING y", "CREATE MODEL m AS LINEAR REGRESSION ON USING y FROM z",
        "DROP MODEL", "DROP MODEL m n", "SHOW MODEL", "SHOW MODELS x", "SHOW SYNTHETIC TABLE",
    ],
)  # fmt: skip
def test_what_breaks_off_is_a_syntax_error(sql: str) -> None:
    with pytest.raises(Error) as caught:
        read_command(sql)
    assert isinstance(caught.value, InvalidSyntax)
