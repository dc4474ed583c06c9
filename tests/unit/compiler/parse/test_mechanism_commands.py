"""DECLARE … THRESHOLD and HOLDOUT, ASK, and EXPLAIN of it, as they are spelled."""

from __future__ import annotations

import pytest

from dpsql.compiler.parse.commands import ExplainCommand, read_command
from dpsql.compiler.parse.cursor_commands import DeclareCommand
from dpsql.compiler.parse.googlesql import Option
from dpsql.compiler.parse.mechanism_commands import (
    DeclareMechanismCommand,
    NestedStatement,
    ShowMechanismsCommand,
    SubmitQuery,
)
from dpsql.errors import InvalidSyntax, Span, Unsupported

Q = "SELECT COUNT(*) FROM visits WHERE ward = 'against'"


def asked(sql: str) -> SubmitQuery:
    command = read_command(sql)
    assert isinstance(command, SubmitQuery)
    return command


def test_a_threshold_has_its_number_first() -> None:
    command = read_command("DECLARE busy THRESHOLD -1.5 WITH (epsilon = 1, answers = 3);")
    span = Span(8, 12)
    options = (Option("threshold", "-1.5", Span(23, 27)), Option("epsilon", "1", Span(34, 45)),
               Option("answers", "3", Span(47, 58)))  # fmt: skip
    assert command == DeclareMechanismCommand("threshold", "busy", options, span)


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        ("declare h holdout with (n = 10, threshold = '1/3')", {"n": "10", "threshold": "1/3"}),
        ('DECLARE "My H" HOLDOUT', {}),
        ("DECLARE t THRESHOLD '1/3'", {"threshold": "1/3"}),
        ("/* x */ DECLARE threshold THRESHOLD +7", {"threshold": "+7"}),
    ],
)
def test_options(sql: str, options: dict[str, str]) -> None:
    command = read_command(sql)
    assert isinstance(command, DeclareMechanismCommand)
    assert {option.name: option.value for option in command.options} == options


def test_cursors_are_declared_as_before() -> None:
    assert read_command("DECLARE threshold CURSOR FOR SELECT 1") == DeclareCommand("threshold", "SELECT 1", 29)


def test_a_question_keeps_its_position() -> None:
    assert asked(f"ASK busy {Q};") == SubmitQuery("busy", NestedStatement(Q, 9))
    told = SubmitQuery("B 1", NestedStatement(Q, 43), None, "1/3", True)
    assert asked(f"ASK (FORMAT JSON, SENSITIVITY '1/3') \"B 1\" {Q}") == told
    assert asked("ASK busy").question is None


@pytest.mark.parametrize(
    ("behind", "text"),
    [("0.31", "0.31"), ("-2", "-2"), ("'1/3'", "1/3"), ("1e-3", "1e-3")],
)
def test_a_number_to_hold_it_against(behind: str, text: str) -> None:
    command = asked(f"ASK h {Q} against {behind}")
    assert command.question == NestedStatement(Q, 6) and command.against is not None and command.against.text == text


@pytest.mark.parametrize(
    ("sql", "question", "query", "place"),
    [
        ("ASK h SELECT ? AGAINST ?", NestedStatement("SELECT ?", 6, (0,)), None, 1),
        ("ASK h SELECT $1, $1 AGAINST $2", NestedStatement("SELECT $1, $1", 6, (0,)), None, 1),
        ("ASK h SELECT $2 AGAINST $1", NestedStatement("SELECT $1", 6, (1,)), None, 0),
        (
            "ASK h SELECT ?, ? AGAINST (SELECT ?)",
            NestedStatement("SELECT ?, ?", 6, (0, 1)),
            NestedStatement("SELECT ?", 27, (2,)),
            None,
        ),
        (
            "ASK h SELECT $1 AGAINST (SELECT ($12) + $2)",
            NestedStatement("SELECT $1", 6, (0,)),
            NestedStatement("SELECT ($2 ) + $1", 25, (1, 11)),
            None,
        ),
        (
            "ASK h SELECT '$7' AGAINST (SELECT 1)",
            NestedStatement("SELECT '$7'", 6),
            NestedStatement("SELECT 1", 27),
            None,
        ),
    ],
)
def test_each_statement_has_parameters_of_its_own(
    sql: str, question: NestedStatement, query: NestedStatement | None, place: int | None
) -> None:
    command = asked(sql)
    assert command.question == question and command.against is not None
    assert (command.against.query, command.against.place) == (query, place)
    assert question.select_parameters(range(20)) == question.places


def test_the_last_against_counts() -> None:
    command = asked('ASK h SELECT SUM(against) AS "against" FROM t AGAINST 1')
    assert command.question == NestedStatement('SELECT SUM(against) AS "against" FROM t', 6)


def test_explaining() -> None:
    command = read_command(f"EXPLAIN (FORMAT JSON, QUESTIONS 7, CONFIDENCE 0.9) ASK busy {Q}")
    given = (("questions", "7"), ("confidence", "0.9"))
    assert isinstance(command, ExplainCommand) and command.json and command.given == given
    assert isinstance(read_command(command.sql), SubmitQuery)
    with pytest.raises(Unsupported, match='no option "questions" here'):
        read_command(f"EXPLAIN (QUESTIONS 7) {Q}")


def test_lists() -> None:
    assert read_command("SHOW THRESHOLDS") == ShowMechanismsCommand("threshold")
    assert read_command("show holdouts;") == ShowMechanismsCommand("holdout")


@pytest.mark.parametrize(
    "sql",
    [
        "DECLARE t THRESHOLD", "DECLARE t THRESHOLD many", "DECLARE t THRESHOLD 1 2", "DECLARE t THRESHOLD $1",
        "DECLARE t THRESHOLD 1 WITH (threshold = 2)", "DECLARE t THRESHOLD 1 WITH (epsilon = ?)",
        "DECLARE t THRESHOLD 1 WITH (epsilon 2)", "DECLARE t THRESHOLD 1 WITH (epsilon = 1, epsilon = 2)",
        "DECLARE h HOLDOUT 5", "DECLARE h HOLDOUT WITH (n = 1", "ASK", "ASK 5 SELECT 1", "ASK (FORMAT XML) h SELECT 1",
        "ASK (SENSITIVITY many) h SELECT 1", "ASK (FORMAT JSON h SELECT 1", "ASK h SELECT 1 AGAINST",
        "ASK h SELECT 1 AGAINST x", "ASK h SELECT 1 AGAINST (SELECT 1) + 1", "ASK h SELECT 1 AGAINST (1) + (2)",
        "ASK h SELECT 1 AGAINST ()", "ASK h SELECT $0", "ASK h SELECT $99999999999999", "ASK h SELECT 1 AGAINST 1 2",
    ],
)  # fmt: skip
def test_what_is_not_a_command_of_these(sql: str) -> None:
    with pytest.raises(InvalidSyntax):
        read_command(sql)


def test_a_value_that_is_not_there() -> None:
    with pytest.raises(InvalidSyntax, match=r"no value for \$2"):
        NestedStatement("SELECT $1", 0, (1,)).select_parameters([1])
