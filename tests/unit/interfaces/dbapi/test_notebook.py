"""%dpsql and %%dpsql in a real IPython shell."""

import subprocess
import sys
from fractions import Fraction

import pytest

import dpsql
from dpsql.errors import QueryCanceled
from dpsql.interfaces.dbapi.connection import Connection
from tests.support.controlled_runs import COUNT, gated_shop, press_ctrl_c
from tests.support.optional_dependencies import package

pytestmark = pytest.mark.slow

interactiveshell = package("IPython.core.interactiveshell")

QUERY = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"


@pytest.fixture
def shell(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # IPython puts its own there
    shell = interactiveshell.InteractiveShell.instance()  # a new one: the end of each test clears its own
    shell.run_line_magic("load_ext", "dpsql")
    yield shell
    shell.find_line_magic("dpsql").__self__.close_connection()
    shell.reset(new_session=False)
    interactiveshell.InteractiveShell.clear_instance()
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):  # errors keep what they passed through
        vars(sys).pop(name, None)


@pytest.fixture
def connected(shell):
    assert shell.run_cell("%dpsql clinic.yaml --user ana").success
    return shell


def failed(shell, capsys, code, kind=dpsql.Error):
    """What is shown of an error, which is no traceback."""
    capsys.readouterr()
    ran = shell.run_cell(code)
    assert isinstance(ran.error_in_exec, kind) and not ran.success
    shown = capsys.readouterr()
    text = shown.out + shown.err
    assert "Traceback" not in text and ".py" not in text
    return text


def budget(shell):
    return shell.run_cell("%dpsql").result


def test_connecting_and_the_budget(connected):
    balance = budget(connected)
    assert isinstance(balance, dpsql.Balance) and (balance.account, balance.charges) == ("ana", 0)


def test_a_cell_is_answered_and_charged(connected):
    answer = connected.run_cell(f"%%dpsql\n{QUERY};\n").result
    assert isinstance(answer, dpsql.Answer) and len(answer) == 4 and answer.loss
    assert budget(connected).charges == 1


def test_a_line_of_sql(connected):
    assert connected.run_cell("x = %dpsql SELECT 1 + 1 AS a").success
    assert connected.user_ns["x"].scalar() == 2
    assert connected.run_cell("%dpsql SHOW epsilon").result.columns == ("epsilon",)


def test_connecting_says_to_what(shell, capsys):
    assert shell.run_cell("%dpsql clinic.yaml --user ana").success
    assert capsys.readouterr().out.startswith('You ask "clinic" as "ana"; left of ana\'s budget: 100 %')


@pytest.mark.parametrize("code", [f"%%dpsql kept <<\n{QUERY}", f"kept = %dpsql {QUERY}"])
def test_an_answer_that_is_not_shown_reports_its_charge(connected, capsys, code):
    """A charge that nobody sees is made again and again."""
    for charged in ("charged: epsilon ≤ ", "charged: nothing; "):
        capsys.readouterr()
        assert connected.run_cell(code).success
        told = capsys.readouterr().out
        assert told.startswith(charged) and "left of ana's budget: " in told and told.count("\n") == 1
    connected.run_cell("kept = %dpsql SHOW epsilon")
    assert capsys.readouterr().out == ""


def test_an_answer_that_is_shown_reports_its_charge_once(connected, capsys):
    capsys.readouterr()
    connected.run_cell(f"%dpsql {QUERY}")
    assert capsys.readouterr().out.count("charged: ") == 1


@pytest.mark.parametrize(
    ("option", "near"), [("--epsilno 3", "--epsilon"), ("--param x", "--params"), ("--usr=bi", "--user")]
)
def test_a_misspelt_option_of_a_cell_gets_the_nearest_one(connected, capsys, option, near):
    assert f"Perhaps you meant {near}." in failed(connected, capsys, f"%%dpsql {option}\n{QUERY}")
    assert budget(connected).charges == 0


def test_the_answer_goes_to_a_variable_and_is_not_shown(connected, capsys):
    capsys.readouterr()
    ran = connected.run_cell(f"%%dpsql kept <<\n{QUERY}")
    assert ran.success and ran.result is None and capsys.readouterr().out.count("\n") == 1
    assert len(connected.user_ns["kept"]) == 4
    assert connected.run_cell("kept.df(errors=True)").result.shape == (4, 6)


def test_an_epsilon_for_one_statement(connected):
    before = connected.run_cell("%dpsql SHOW epsilon").result.rows
    answer = connected.run_cell(f"%%dpsql --epsilon 0.125 --delta 1e-9\n{QUERY}").result
    assert (answer.loss.epsilon, answer.loss.delta) == (Fraction("0.125"), Fraction("1e-9"))
    assert connected.run_cell("%dpsql SHOW epsilon").result.rows == before


def test_an_epsilon_of_a_statement_that_fails_does_not_stay(connected, capsys):
    before = connected.run_cell("%dpsql SHOW epsilon").result.rows
    failed(connected, capsys, "%%dpsql --epsilon 0.125\nSELECT nothing FROM patients")
    assert connected.run_cell("%dpsql SHOW epsilon").result.rows == before


def test_explain_is_free(connected):
    plan = connected.run_cell(f"%%dpsql --explain --epsilon 0.5\n{QUERY}").result
    assert isinstance(plan, dpsql.Explanation) and plan.epsilon == Fraction("0.5")
    assert budget(connected).charges == 0


def test_parameters_come_from_a_variable_and_are_never_read_as_sql(connected, capsys):
    connected.user_ns["given"] = ["x' OR '1'='1"]
    answer = connected.run_cell("%%dpsql --params given\nSELECT ? AS a").result
    assert answer.rows == [("x' OR '1'='1",)]
    assert 'no variable "missing"' in failed(connected, capsys, "%%dpsql --params missing\nSELECT ? AS a")


def test_braces_and_dollars_are_not_filled_in(connected):
    """IPython would expand {x} and $x in the lines of magics; SQL is sent as it stands."""
    connected.user_ns["x"] = "1; DROP"
    for code in ("%%dpsql\nSELECT '{x} $x' AS a", "%dpsql SELECT '{x} $x' AS a"):
        assert connected.run_cell(code).result.rows == [("{x} $x",)]


def test_interrupting_the_kernel_cancels_and_reports_the_charge(shell, capsys, tmp_path):
    with gated_shop(tmp_path) as gated:
        shell.user_ns["mine"] = connection = Connection(gated.session)
        thread = press_ctrl_c(lambda: gated.engine.began)
        text = failed(shell, capsys, f"%%dpsql mine\n{COUNT}", QueryCanceled)
        thread.join()
        assert "interrupted" in text and "charged: epsilon" in text and connection.budget().charges == 1
        gated.engine.gate.set()
        assert shell.run_cell(f"%%dpsql\n{COUNT}").result.scalar() == 2400


def test_a_path_in_a_variable(shell, folder):
    shell.user_ns["where"] = folder / "clinic.yaml"
    assert shell.run_cell("%dpsql where --user ana").success and budget(shell).account == "ana"


def test_a_connection_of_the_notebook(shell, folder):
    with dpsql.connect(folder / "clinic.yaml", user="bi") as connection:
        shell.user_ns["mine"] = connection
        assert shell.run_cell("%dpsql mine").success and budget(shell).account == "bi"
        assert shell.run_cell("%dpsql clinic.yaml --user ana").success and budget(shell).account == "ana"
        assert not connection.closed  # who opened it closes it


def test_connecting_again_closes_what_was_opened_here(connected):
    first = connected.find_line_magic("dpsql").__self__._connection
    assert connected.run_cell("%dpsql clinic.yaml --user bi --epsilon 0.5").success
    assert first.closed and connected.run_cell("%dpsql SHOW epsilon").result.rows == [("0.5",)]


def test_a_cell_may_say_where(shell):
    answer = shell.run_cell(f"%%dpsql clinic.yaml --user ana\n{QUERY}").result
    assert len(answer) == 4


def test_errors_have_a_caret_and_no_traceback(connected, capsys):
    text = failed(connected, capsys, "%%dpsql\nSELECT sex,\n  nothing\nFROM patients", dpsql.ProgrammingError)
    assert 'ERROR:  column "nothing" does not exist' in text and "LINE 2:   nothing\n          ^" in text
    assert "HINT:" in text


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("%dpsql nowhere.yaml --user ana", "no such file"),
        ("%dpsql clinic.yaml --user mallory", "no analyst"),
        ("%dpsql clinic.yaml --bogus 3", "unrecognized arguments"),
        ("%dpsql clinic.yaml --explain --user ana", "--explain"),
        ("%%dpsql 3x <<\nSELECT 1", "stands before <<"),
        ("%%dpsql --user ana\nSELECT 1", "--user"),
        ("%dpsql 'clinic", "quote"),
        ("%%dpsql --epsilon 0\nSELECT 1", "epsilon"),
    ],
)
def test_what_is_wrong_is_reported(connected, capsys, code, words):
    assert words in failed(connected, capsys, code)


def test_without_a_connection(shell, capsys):
    for code in ("%dpsql", "%%dpsql\nSELECT 1", "%dpsql SELECT 1"):
        assert "there is no connection" in failed(shell, capsys, code, dpsql.InterfaceError)


def test_leaving_is_quiet(folder):
    """The driver complains on the standard error about what it finds open when Python ends."""
    lines = ["%load_ext dpsql", "%dpsql clinic.yaml --user ana", f"%dpsql {QUERY}", "exit", ""]
    command = [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--quick"]
    done = subprocess.run(command, input="\n".join(lines), cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "charged: epsilon" in done.stdout and "leaked" not in done.stdout + done.stderr
