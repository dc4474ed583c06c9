"""Wrong usage that the words alone tell exits with 2; Ctrl-C speaks of charges only where there are some."""

import pytest

WRONG = [
    ("query", "c.yaml", "SELECT 1", "--epsilon", "x"),
    ("query", "c.yaml", "SELECT 1", "--delta", "nan"),
    ("query", "c.yaml", "SELECT 1", "--epsilon", "1/0"),
    ("query", "c.yaml", "SELECT 1", "--set", "epsilon"),
    ("query", "c.yaml", "SELECT 1", "--set", "epsilon=x"),
    ("c.yaml", "-c", "SELECT 1", "--epsilon", "0,5"),
    ("init", "data.csv", "--epsilon", "much"),
    ("user", "add", "c.yaml", "ana", "--epsilon", "much", "--delta", "1e-9"),
]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_what_is_no_number_is_wrong_usage(run, words):
    ran = run(*words)
    assert ran.code == 2 and "usage: dpsql" in ran.err and ("number" in ran.err or "NAME=VALUE" in ran.err)


@pytest.mark.parametrize("text", ["0.5", "1e-6", "1/3", "-1"])
def test_numbers_of_all_forms_go_on_to_the_schema(run, text):
    assert run("query", "nowhere.yaml", "SELECT 1", f"--epsilon={text}").code == 1


COMMANDS = [
    (("query", "c.yaml", "SELECT 1"), True),
    (("c.yaml",), True),
    (("user", "add", "c.yaml", "ana"), False),
    (("check", "c.yaml"), False),
    (("init", "data.csv"), False),
]


@pytest.mark.parametrize(("words", "asks"), COMMANDS, ids=lambda value: value[0] if isinstance(value, tuple) else "")
def test_ctrl_c_mentions_charges_where_statements_run(run, monkeypatch, words, asks):
    def interrupted(given, screen):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpsql.interfaces.cli.main._run_command", interrupted)
    ran = run(*words)
    assert ran.code == 130 and ("charged" in ran.err) is asks and ran.err.startswith("interrupted")
