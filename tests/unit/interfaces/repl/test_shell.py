"""Statements and backslash commands, from text to what is written."""

from __future__ import annotations

import csv
import json
import re
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet
import pytest

from dpsql.errors import Error, InterfaceError, InvalidParameter, InvalidSyntax, UnknownColumn, UnknownTable
from dpsql.interfaces.repl import run_meta_command
from dpsql.interfaces.repl.meta_commands import COMMANDS_BY_NAME, META_COMMANDS
from dpsql.interfaces.repl.run_meta_command import ShellExit

BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY sex"


def charges(typed) -> int:
    return typed.shell.connection.budget().charges


def test_every_command_is_done_by_something():
    assert run_meta_command.META_COMMAND_ACTIONS.keys() == COMMANDS_BY_NAME.keys() and len(COMMANDS_BY_NAME) == len(
        META_COMMANDS
    )


def test_help_names_every_command(typed):
    told = typed("\\?")
    assert all(f"\\{command.name} " in told + " " and command.help in told for command in META_COMMANDS)
    assert typed("\\help") == told == typed("\\h;")


# --- statements ------------------------------------------------------------------------------------------------------


def test_several_statements_and_the_last_without_semicolon(typed):
    told = typed(f"SET epsilon = 0.5; {BY_SEX};\nSHOW epsilon")
    assert re.search(r"f +│ +\d+ ± \d+", told) and "charged: epsilon ≤ 0.5" in told and re.search(r"^ 0.5$", told, re.M)


def test_an_error_ends_it_and_nothing_behind_it_is_charged(typed):
    with pytest.raises(UnknownColumn):
        typed(f"SELECT nothing FROM patients; {BY_SEX};")
    assert charges(typed) == 0


def test_what_is_made_is_named_from_then_on(typed):
    told = typed("CREATE SYNTHETIC TABLE like_them AS SELECT sex, insured FROM patients WITH (epsilon = 0.5);")
    assert re.search(r"sex, insured +│ two-way", told) and "charged: epsilon ≤ 0.5" in told
    assert '"like_them" has ' in told and "like_them" in typed("\\d")
    told = typed("SELECT COUNT(*) > 0 AS some FROM like_them; SHOW SYNTHETIC TABLES;")
    assert "charged" not in told and "CREATE SYNTHETIC TABLE like_them" in told
    told = typed("CREATE MODEL m AS LOGISTIC REGRESSION ON insured USING sex FROM patients WITH (epsilon = 0.5);")
    assert "intercept" in told and "sex=f" in told and "charged: epsilon 0." in told
    told = typed("SELECT sex, PREDICT(m) FROM like_them WHERE sex = 'f' LIMIT 1")
    assert re.search(r"predict", told) and re.search(r"f +│ +0\.\d+", told) and "charged" not in told
    assert charges(typed) == 2


def test_a_statement_with_a_command_behind_it(typed):
    told = typed(f"{BY_SEX} \\gx")
    assert "RECORD 1" in told
    assert "charged: nothing" in typed("\\g") and "RECORD" not in typed("\\g")


def test_g_into_a_file_once(typed, folder):
    typed(f"{BY_SEX} \\g out.txt")
    assert "f " in (folder / "out.txt").read_text()
    assert "│" in typed("\\g")


def test_a_statement_over_several_lines_with_a_switch_between(typed):
    assert "charged" in typed("SELECT COUNT(*)\n\\timing on\nFROM patients;")
    assert typed.shell.last_sql == "SELECT COUNT(*)\nFROM patients"


@pytest.mark.parametrize("command", ["\\timing", "\\d patients", "\\x on", "\\errors off", "\\budget"])
def test_a_command_behind_unfinished_text_does_not_execute_it(typed, command):
    assert "not asked" in typed(f"{BY_SEX} {command}") and charges(typed) == 0


def test_unfinished_text_comes_back_to_the_prompt(typed, person):
    typed(f"{BY_SEX} \\d patients")
    assert typed.shell.typed == BY_SEX and typed.shell.pending == "" and charges(typed) == 0


def test_what_was_typed_can_be_printed_and_forgotten(typed):
    typed(f"{BY_SEX};")
    assert typed("\\p") == f"{BY_SEX}\n"
    assert typed("SELECT 1 \\r") == ""
    assert typed.shell.last_sql == BY_SEX


def test_g_before_any_statement(typed):
    with pytest.raises(InterfaceError, match="no statement was asked yet"):
        typed("\\g")


def test_include(typed, folder):
    (folder / "two.sql").write_text(f"SET epsilon = 0.25;\n{BY_SEX}")
    assert "epsilon ≤ 0.25" in typed("\\i two.sql")


def test_an_error_in_a_file_has_its_line(typed, folder):
    (folder / "many.sql").write_text("SELECT 1;\n\n\nSELECT count(*)\nFROM visits\nWHERE cots > 1;\n")
    with pytest.raises(UnknownColumn) as caught:
        typed("\\i many.sql")
    assert str(caught.value).startswith("many.sql:6: column")


def test_a_file_that_includes_itself_ends(typed, folder):
    (folder / "self.sql").write_text("\\i self.sql\n")
    with pytest.raises(InterfaceError, match="too deep"):
        typed("\\i self.sql")
    assert typed.shell.depth == 0


@pytest.mark.parametrize("name", ["missing.sql", "folder", "latin.sql"])
def test_a_file_that_cannot_be_read(typed, folder, name):
    (folder / "folder").mkdir()
    (folder / "latin.sql").write_bytes(b"SELECT '\xe9'")
    with pytest.raises(InterfaceError, match=f'"{name}" cannot be read'):
        typed(f"\\i {name}")


def test_explain_is_free(typed):
    assert "Loss: at most epsilon 1" in typed(f"\\explain {BY_SEX};")
    assert "Loss" in typed(f"{BY_SEX} \\explain")
    assert charges(typed) == 0


# --- watch -----------------------------------------------------------------------------------------------------------


def test_watch_is_charged_once(typed, monkeypatch):
    rounds = iter(range(3))

    def sleep(seconds):
        assert seconds == 7
        if next(rounds, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr("dpsql.interfaces.repl.run_meta_command.time.sleep", sleep)
    told = typed(f"{BY_SEX} \\watch 7")
    assert told.count("charged: nothing") == 3 and charges(typed) == 1


def test_watch_ends_rather_than_be_charged_again(typed, monkeypatch):
    connection = typed.shell.connection
    monkeypatch.setattr(
        "dpsql.interfaces.repl.run_meta_command.time.sleep", lambda _: connection.cursor().execute("SET epsilon = 0.9")
    )
    typed("SET epsilon = 0.1")
    told = typed(f"{BY_SEX} \\watch")
    assert "\\watch ends" in told and charges(typed) == 1


@pytest.mark.parametrize("argument", ["soon", "0", "-1", "nan", "1e9"])
def test_watch_takes_seconds(typed, argument):
    with pytest.raises(InvalidParameter):
        typed(f"{BY_SEX} \\watch {argument}")
    assert charges(typed) == 0


# --- answers ---------------------------------------------------------------------------------------------------------


def test_formats(typed):
    typed("\\format csv")
    told = typed(f"{BY_SEX};")
    assert told.startswith("sex,n,n_stderr,n_low,n_high,n_clipped\nf,") and "charged" in told
    typed("\\format json")
    assert json.loads(typed("\\g").split("]")[0] + "]")[0]["sex"] == "f"
    typed("\\errors off")
    assert set(json.loads(typed("\\g").split("]")[0] + "]")[0]) == {"sex", "n"}


def test_out_to_a_file_and_back(typed, folder):
    typed("\\o answers.txt")
    assert "│" not in typed(f"{BY_SEX};")
    typed("\\o")
    assert "│" in (folder / "answers.txt").read_text() and "│" in typed("\\g")


def test_what_was_charged_is_reported_on_the_screen_while_answers_go_to_a_file(typed, folder):
    typed("\\o answers.txt")
    assert "charged: epsilon" in typed(f"{BY_SEX};") and "Statements" in typed("\\?")
    typed("\\o")
    assert "charged" not in (folder / "answers.txt").read_text()


@pytest.mark.parametrize("text", ["\\o |cat", "\\g | cat"])
def test_a_program_is_no_file(typed, folder, text):
    typed("SELECT 1;")
    with pytest.raises(InvalidSyntax, match="not to a program"):
        typed(text)
    assert not list(folder.glob("|*"))


def test_out_to_where_nothing_can_be_written(typed):
    with pytest.raises(InterfaceError, match="cannot be written"):
        typed("\\o missing/answers.txt")
    assert typed.shell.file is None


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.parquet"])
def test_copy_of_the_last_answer(typed, folder, name):
    typed(f"{BY_SEX};")
    assert "COPY 4" in typed(f"\\copy to {name}")
    rows = _read(folder / name)
    assert [row["sex"] for row in rows] == ["f", "m", "x", None] and all(set(row) == {"sex", "n"} for row in rows)
    assert [int(row["n"]) for row in rows] == [row[1] for row in typed.shell.last.rows]


def test_copy_of_a_query_with_errors(typed, folder):
    typed(f"\\copy ({BY_SEX}) to 'with errors.parquet' errors")
    names = pyarrow.parquet.read_table(folder / "with errors.parquet").column_names
    assert names == ["sex", "n", "n_stderr", "n_low", "n_high", "n_clipped"]
    assert charges(typed) == 1


@pytest.mark.parametrize("argument", ["", "to", "to a.xls", "to a.csv xml", "to 'a.csv", "(SELECT 1) a.csv"])
def test_copy_that_cannot_be_read(typed, argument):
    with pytest.raises(InvalidSyntax):
        typed(f"\\copy {argument}")


def _read(path: Path) -> list[dict]:
    match path.suffix:
        case ".csv":
            lines = path.read_text().splitlines()
            return [{key: value or None for key, value in row.items()} for row in csv.DictReader(lines)]
        case ".json":
            return json.loads(path.read_text())
        case _:
            return pyarrow.parquet.read_table(path).to_pylist()


def test_chart(typed):
    typed(f"{BY_SEX};")
    assert "█" in typed("\\chart") and typed("\\chart lines")
    with pytest.raises(InvalidParameter):
        typed("\\chart cake")


def test_chart_of_nothing(typed):
    with pytest.raises(InterfaceError, match="no answer yet"):
        typed("\\chart")
    typed("SELECT 'a' AS text;")
    with pytest.raises(InterfaceError, match="nothing to draw"):
        typed("\\chart")


def test_a_setting_is_not_the_last_answer(typed, folder):
    typed(f"{BY_SEX}; SHOW TABLES;")
    typed("\\set epsilon")
    typed("\\copy to a.csv")
    assert (folder / "a.csv").read_text().startswith("sex,n\n")


def test_receipts(typed):
    typed(f"{BY_SEX};")
    assert re.fullmatch(r"ana/2/[0-9a-f]{64}\n", typed("\\receipts"))


@pytest.mark.parametrize("name", ["errors", "digits", "pager", "timing"])
def test_switches(typed, name):
    before = getattr(typed.shell.view, name)
    typed(f"\\{name}")
    assert getattr(typed.shell.view, name) is not before
    typed(f"\\{name} on")
    assert getattr(typed.shell.view, name) is True
    with pytest.raises(InvalidParameter, match="takes on or off"):
        typed(f"\\{name} perhaps")


def test_timing(typed):
    typed("\\timing on")
    assert re.search(r"Time: \d+\.\d ms", typed(f"{BY_SEX};"))


# --- names and settings ----------------------------------------------------------------------------------------------


def test_tables_and_columns(typed):
    assert re.search(r"patients +│ private", typed("\\d")) and "patients" in typed("\\dt")
    told = typed('\\d+ "patients";')
    assert re.search(r"patient_id +│ \w+ .*the privacy unit", told) and "Unique: patient_id" in told
    assert "Values of sex: f, m, x" in told and "Values of insured" not in told
    with pytest.raises(UnknownTable, match="nowhere"):
        typed("\\d nowhere")


def test_functions(typed):
    assert "date_trunc" in typed("\\df date*").lower()
    assert "lower" not in typed("\\df date*").lower()
    assert typed("\\df quant").strip() == "No function matches quant. \\df *quant* looks within names."
    assert "quantile" in typed("\\df *quant*").lower()
    assert typed("\\df nothing*").strip() == "No function matches nothing*."


def test_settings(typed):
    typed("\\set epsilon 0.5")
    assert "0.5" in typed("\\set epsilon") and "epsilon" in typed("\\set")
    typed("\\set epsilon=0.25")
    assert "0.25" in typed("\\set epsilon")
    typed("\\unset epsilon")
    assert "0.25" not in typed("\\set epsilon")
    with pytest.raises(Error):
        typed("\\set epsilon much")


def test_budget_and_user(typed):
    assert "5" in typed("\\budget")
    assert '"clinic" as "ana".' in typed("\\conninfo") and "clinic" in typed("\\l")


def test_the_connection_to_a_server_is_shown(typed, connection, monkeypatch):
    monkeypatch.setattr(type(connection), "server", property(lambda self: "h:5433, with TLS (TLSv1.3)"))
    assert '"clinic" as "ana", on the server h:5433, with TLS (TLSv1.3).' in typed("\\conninfo")


def test_leaving(typed):
    with pytest.raises(ShellExit):
        typed("\\q")


@pytest.mark.parametrize(("text", "hint"), [("\\budgt", "Did you mean \\budget?"), ("\\zzz", "lists the commands")])
def test_an_unknown_command(typed, text, hint):
    with pytest.raises(InvalidSyntax) as caught:
        typed(text)
    assert hint in caught.value.hint


# --- before a charge -------------------------------------------------------------------------------------------------


def test_a_charge_that_is_not_confirmed_is_not_made(typed, person):
    typed.shell.confirm, person.agrees = Fraction(1, 2), False
    assert "not asked, and nothing was charged" in typed(f"{BY_SEX};")
    assert person.questions == ["It will be charged at most epsilon 1. Ask it?"] and charges(typed) == 0


def test_a_statement_is_confirmed_once_for_one_charge(typed, person):
    typed.shell.confirm = Fraction(1, 2)
    typed(f"{BY_SEX};")
    typed(f"{BY_SEX};")
    assert len(person.questions) == 1 and charges(typed) == 1


def test_a_small_charge_needs_no_confirmation(typed, person):
    typed("\\confirm 1")
    typed(f"{BY_SEX}; SET epsilon = 2;")
    assert person.questions == []
    typed("\\confirm off")
    typed(f"{BY_SEX};")
    assert person.questions == [] and typed.shell.confirm is None


def test_a_query_that_is_copied_is_confirmed_too(typed, person):
    typed.shell.confirm, person.agrees = Fraction(1, 2), False
    typed(f"\\copy ({BY_SEX}) to a.csv")
    assert len(person.questions) == 1 and charges(typed) == 0


def test_the_first_question_of_a_mechanism_is_agreed_to(typed, person):
    typed.shell.confirm, person.agrees = Fraction(1, 10), False
    ask = "ASK busy SELECT COUNT(*) FROM patients;"
    assert "DECLARE THRESHOLD" in typed("DECLARE busy THRESHOLD 100000 WITH (epsilon = 0.25, answers = 2);")
    assert "nothing was charged" in typed(ask) and "epsilon 0.25, for all of its questions" in person.questions[0]
    person.agrees = True
    told = typed(ask)
    assert "above" in told and "left" in told and "charged" in told
    assert "false" in typed(ask).lower() and len(person.questions) == 2  # the second question is paid for
    assert "paid for up front: epsilon 0.25" in typed("EXPLAIN " + ask) and "paid for" in typed("\\explain " + ask)
    assert "epsilon 0.25" in typed("SHOW THRESHOLDS;") and "CLOSE THRESHOLD" in typed("CLOSE busy;")


@pytest.mark.parametrize("argument", ["much", "-1", "1/0"])
def test_a_threshold_is_an_epsilon(typed, argument):
    with pytest.raises(InvalidParameter):
        typed(f"\\confirm {argument}")


@pytest.mark.parametrize("text", ["\\o 'a", '\\i "a', "\\s 'a", "\\g 'a", "\\copy to 'a.csv"])
def test_a_quote_that_is_not_closed(typed, text):
    typed("SELECT 1;")
    with pytest.raises(InvalidSyntax, match=r"a quote in \\\w+ is not closed"):
        typed(text)


def test_a_command_ends_at_any_space(typed):
    assert typed("\\d\tpatients") == typed("\\d patients")


def test_quiet_prints_answers_only(typed):
    typed.shell.quiet = True
    assert typed(f"{BY_SEX};").splitlines()[-1] == "(4 rows, ± 95 % intervals)"
