"""Commands beside SELECT, however they are spelled."""

import pytest

from dpsql.compiler.parse.commands import (
    DescribeCommand,
    DescribeQueryCommand,
    DiscardCommand,
    ExplainCommand,
    NoOpCommand,
    ResetCommand,
    SetCommand,
    ShowCommand,
    TransactionCommand,
    TransactionModesCommand,
    TransactionStep,
    read_command,
)
from dpsql.compiler.parse.cursor_commands import DeallocateCommand
from dpsql.errors import Error, InvalidSyntax, Unsupported


@pytest.mark.parametrize(
    "sql",
    [
        "SET epsilon = 0.5", "set Epsilon=0.5;", "SET epsilon TO 0.5", "SET SESSION epsilon = 0.5",
        "  -- first\n/* then */ SET epsilon = 0.5 ; ",
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


def test_explain_keeps_the_position_of_its_statement() -> None:
    sql = "/* why */ EXPLAIN  SELECT 1;"
    command = read_command(sql)
    assert isinstance(command, ExplainCommand)
    assert sql[command.offset :].startswith(command.sql) and command.sql.strip() == "SELECT 1"


@pytest.mark.parametrize("sql", ["SELECT 1", "settle", "SETS x = 1", "WITH set AS (SELECT 1) SELECT 1", "/**/ S", ""])
def test_what_only_looks_like_a_command_is_none(sql: str) -> None:
    assert read_command(sql) is None


@pytest.mark.parametrize(
    ("sql", "command"),
    [
        ("set local epsilon to 0.5", SetCommand("epsilon", "0.5", True)),
        ("SET epsilon TO DEFAULT", SetCommand("epsilon", None)),
        ("SET NAMES 'UTF8'", SetCommand("client_encoding", "UTF8")),
        ("SET TIME ZONE 'UTC'", SetCommand("timezone", "UTC")),
        ("SET TIME ZONE LOCAL", SetCommand("timezone", None)),
        ("SET TIME ZONE DEFAULT", SetCommand("timezone", None)),
        ("SET TIME ZONE -7", SetCommand("timezone", "-7")),
        ("SET LOCAL TIME ZONE 'Europe/Berlin'", SetCommand("timezone", "Europe/Berlin", True)),
        ("SET TIME ZONE INTERVAL '+05:30' HOUR TO MINUTE", SetCommand("timezone", "<+05:30>-05:30")),
        ('SET search_path = "$user", public', SetCommand("search_path", "$user, public")),
        ("SET extra_float_digits = -1", SetCommand("extra_float_digits", "-1")),
        (
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY",
            TransactionModesCommand(
                (("transaction_isolation", "serializable"), ("transaction_read_only", "on")), session=False
            ),
        ),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
            TransactionModesCommand((("transaction_read_only", "off"),), session=True),
        ),
        ("SET TRANSACTION NOT DEFERRABLE", TransactionModesCommand((), session=False)),
        ("SHOW TIME ZONE", ShowCommand("timezone")),
        ("SHOW TRANSACTION ISOLATION LEVEL;", ShowCommand("transaction_isolation")),
        ("SHOW COLUMNS FROM public.visits", DescribeCommand("public.visits")),
        (
            "BEGIN ISOLATION LEVEL READ COMMITTED",
            TransactionCommand(TransactionStep.BEGIN, None, (("transaction_isolation", "read committed"),)),
        ),
        ("START TRANSACTION", TransactionCommand(TransactionStep.START)),
        ("BEGIN WORK", TransactionCommand(TransactionStep.BEGIN)),
        ("commit transaction", TransactionCommand(TransactionStep.COMMIT)),
        ("END", TransactionCommand(TransactionStep.COMMIT)),
        ("COMMIT AND NO CHAIN", TransactionCommand(TransactionStep.COMMIT)),
        ("ABORT", TransactionCommand(TransactionStep.ROLLBACK)),
        ("SAVEPOINT sp_1", TransactionCommand(TransactionStep.SAVEPOINT, "sp_1")),
        ("RELEASE SAVEPOINT sp_1", TransactionCommand(TransactionStep.RELEASE, "sp_1")),
        ("RELEASE sp_1", TransactionCommand(TransactionStep.RELEASE, "sp_1")),
        ("ROLLBACK TO sp_1", TransactionCommand(TransactionStep.ROLLBACK_TO, "sp_1")),
        ('ROLLBACK TO SAVEPOINT "Sp"', TransactionCommand(TransactionStep.ROLLBACK_TO, "sp")),
        ("DISCARD ALL; -- pool", DiscardCommand()),
        ("DISCARD PLANS", NoOpCommand("DISCARD PLANS")),
        ("DEALLOCATE PREPARE p1", DeallocateCommand("p1")),
        ("DEALLOCATE ALL", DeallocateCommand(None)),
        ("SET ROLE ana", SetCommand("role", "ana")),
        ("SET LOCAL ROLE 'ana'", SetCommand("role", "ana", local=True)),
        ("SET SESSION AUTHORIZATION DEFAULT", SetCommand("role", None)),
        ("RESET ROLE", ResetCommand("role")),
        ("RESET SESSION AUTHORIZATION", ResetCommand("role")),
    ],
)
def test_what_clients_send(sql: str, command: object) -> None:
    assert read_command(sql) == command


@pytest.mark.parametrize(
    "sql",
    [
        "BEGIN; SELECT 1", "BEGIN nonsense", "START", "COMMIT now", "ROLLBACK TO", "SAVEPOINT", "SAVEPOINT a b",
        "DISCARD everything", "SET TRANSACTION nonsense", "SHOW a b c", "SET a = b c", "SET a = 1 2", "SHOW ''",
        "SHOW epsilon; SHOW delta", "UNLISTEN x",
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused(sql: str) -> None:
    with pytest.raises((InvalidSyntax, Unsupported)):
        read_command(sql)


@pytest.mark.parametrize(
    ("sql", "inner"),
    [
        ("EXPLAIN (FORMAT TEXT, VERBOSE) SELECT 1", "SELECT 1"),
        ("EXPLAIN VERBOSE SELECT 1", "SELECT 1"),
        ("EXPLAIN (ANALYZE off) SELECT 1", "SELECT 1"),
        ("EXPLAIN (SELECT 1)", "(SELECT 1)"),
        ("EXPLAIN ((SELECT 1))", "((SELECT 1))"),
        ("EXPLAIN (WITH a AS (SELECT 1) SELECT * FROM a)", "(WITH a AS (SELECT 1) SELECT * FROM a)"),
    ],
)
def test_explain_takes_options_that_change_nothing(sql: str, inner: str) -> None:
    command = read_command(sql)
    assert isinstance(command, ExplainCommand) and command.sql.strip() == inner
    assert sql[command.offset :].startswith(command.sql)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("EXPLAIN ANALYZE SELECT 1", "would run the query"),
        ("EXPLAIN (ANALYZE, BUFFERS) SELECT 1", "would run the query"),
        ("EXPLAIN (FORMAT XML) SELECT 1", "FORMAT XML"),
        ("EXPLAIN (BUFFERS) SELECT 1", 'no option "buffers"'),
        ("SUMMARIZE visits", "every column"),
    ],
)
def test_commands_that_would_reveal_rows_are_refused_with_a_hint(sql: str, text: str) -> None:
    with pytest.raises(Unsupported, match=text) as caught:
        read_command(sql)
    assert caught.value.hint


@pytest.mark.parametrize("sql", ["DESCRIBE SELECT 1", "desc (select 1)", "DESC WITH a AS (SELECT 1) SELECT * FROM a;"])
def test_a_query_can_be_described(sql: str) -> None:
    command = read_command(sql)
    assert isinstance(command, DescribeQueryCommand) and sql[command.offset :].startswith(command.sql)
