"""CREATE, DROP and SHOW of synthetic tables and models, from text."""

import pytest

from dpsql.compiler.parse.commands import read_command
from dpsql.compiler.parse.create_commands import CreateCommand, DropCommand, ShowArtifactsCommand, read_artifact_command
from dpsql.compiler.parse.parameters import Parameter
from dpsql.errors import Error, InvalidSyntax, ProgrammingError

TABLE = "CREATE SYNTHETIC TABLE v AS SELECT sex, cost FROM visits WHERE cost > 5 WITH (epsilon = 1, method = 'mwem')"
MODEL = "create or replace model m as logistic regression on (age > 5) using cost, CLIP(x, 0, 1) from visits with (n=9)"


def test_a_synthetic_table() -> None:
    command = read_command(TABLE)
    assert isinstance(command, CreateCommand)
    assert (command.kind, command.name, command.instead, command.unless_there) == ("synthetic table", "v", False, False)
    assert [(o.name, o.value) for o in command.options] == [("epsilon", "1"), ("method", "mwem")]
    assert command.query.strip() == "SELECT sex, cost FROM visits WHERE cost > 5"


@pytest.mark.parametrize("sql", [TABLE, MODEL])
def test_the_query_keeps_its_positions(sql: str) -> None:
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
    assert isinstance(shown, ShowArtifactsCommand) and (shown.kind, shown.name, shown.json) == ("model", "m", True)
    shown = read_command("show synthetic table V (format json)")
    assert isinstance(shown, ShowArtifactsCommand) and (shown.kind, shown.name, shown.json) == (
        "synthetic table",
        "v",
        True,
    )
    listed = read_command("show synthetic tables")
    assert isinstance(listed, ShowArtifactsCommand) and listed.name is None


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


# --- parameters ------------------------------------------------------------------------------------------------------


def created(sql: str, *parameters: Parameter) -> CreateCommand:
    command = read_command(sql, parameters)
    assert isinstance(command, CreateCommand)
    return command


def test_options_take_parameters_and_the_query_its_own() -> None:
    sql = "CREATE SYNTHETIC TABLE v AS SELECT sex FROM visits WHERE a > ? AND b = ? WITH (epsilon = ?, method = ?)"
    command = created(sql, 5, "x", 0.1, "mwem")
    assert [(one.value, one.place) for one in command.options] == [("0.1", 2), ("mwem", 3)]
    assert command.query_parameters([5, "x", 0.1, "mwem"]) == [5, "x"] and "a > ? AND b = ?" in command.query


def test_numbered_parameters_may_stand_in_any_order() -> None:
    sql = "CREATE MODEL m AS LINEAR REGRESSION ON a USING b FROM v WHERE a < $10 OR a > $9 OR c = $10 WITH (n = $1)"
    numbers = ", ".join(f"o{number} = ${number}" for number in range(2, 9))
    command = created(sql.replace("$1)", f"$1, {numbers})"), *range(1, 11))
    assert command.query.endswith("WHERE a < $2  OR a > $1 OR c = $2 "), "the query has its own numbers, in its places"
    assert command.places == (8, 9) and [one.value for one in command.options] == [str(n) for n in range(1, 9)]


@pytest.mark.parametrize(
    ("sql", "parameters", "error"),
    [
        ("CREATE SYNTHETIC TABLE v AS SELECT a FROM t WHERE a > $1 WITH (epsilon = ?)", (1, 2), InvalidSyntax),
        ("CREATE SYNTHETIC TABLE v AS SELECT a FROM t WITH (epsilon = $2)", (1,), InvalidSyntax),
        ("CREATE SYNTHETIC TABLE v AS SELECT a FROM t WITH (epsilon = -?)", (1,), InvalidSyntax),
        ("CREATE SYNTHETIC TABLE v AS SELECT a FROM t WHERE a > ? WITH (epsilon = ?)", (1,), ProgrammingError),
        ("CREATE SYNTHETIC TABLE v AS SELECT a FROM t WITH (epsilon = ?)", (1, 2), ProgrammingError),
    ],
)
def test_parameters_are_counted_over_the_statement(sql: str, parameters: tuple[int, ...], error: type[Error]) -> None:
    with pytest.raises(error):
        read_command(sql, parameters)
    command = read_artifact_command(sql)
    assert isinstance(command, CreateCommand) and command.places is None, "without values it is read as it stands"
