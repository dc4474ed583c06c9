"""The planted bugs of `make mutants` are still in the code as it stands; whether each is found takes longer to tell."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.mutants import MUTANTS
from tests.mutants.__main__ import main
from tests.mutants.match import Edit, StaleEdit, apply_edit, find_file, same_syntax
from tests.mutants.mutant import mutant
from tests.mutants.runner import ROOT, plant


def test_every_bug_can_be_planted():
    find = cache(lambda target: find_file(Edit(target, "", ""), ROOT))
    read = cache(lambda file: file.read_text(encoding="utf-8"))
    wrong = {}
    for planted in MUTANTS:
        try:
            for edit in planted.edits:
                ast.parse(apply_edit(edit, read(find(edit.target))))
        except (StaleEdit, SyntaxError) as error:
            wrong[planted.name] = str(error)
    assert wrong == {}


def test_the_tests_of_every_bug_are_there():
    named = {(planted.name, test) for planted in MUTANTS for test in planted.tests if test.startswith("tests/")}
    assert [(name, test) for name, test in sorted(named) if not (ROOT / test).exists()] == []


def test_every_bug_has_a_name_of_its_own():
    names = [planted.name for planted in MUTANTS]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("arguments", [["no such bug"], ["clip", "no such bug"], ["--nothing"]])
def test_a_name_that_no_bug_has_is_an_error(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "no such bug" in capsys.readouterr().err or arguments == ["--nothing"]


def test_help_runs_nothing(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "WORDS" in capsys.readouterr().out


SOURCE = """
LIMIT = 3


class Box:
    size: int = 1

    @property
    def width(self):
        return self.size

    @width.setter
    def width(self, size):
        self.size = size


def draw(values, scale=2):
    # how it is drawn
    total = 0
    for value in values:
        if value > LIMIT and value < 2 * LIMIT:
            total += clip(value, 0, scale)
            log("done", level=1)
    query = f"SELECT {total} FROM t WHERE x <= {scale} LIMIT 1"
    return total, query


def other(values):
    return clip(values, 0, scale)
"""


def edited(old: str, new: str, target: str = "draw", source: str = SOURCE) -> str:
    return apply_edit(Edit(f"package.module:{target}", old, new), source)


def assert_edits(old: str, new: str, before: str, after: str, target: str = "draw") -> None:
    """The edit turns this text of SOURCE into that one."""
    assert SOURCE.count(before) == 1
    assert same_syntax(ast.parse(edited(old, new, target)), ast.parse(SOURCE.replace(before, after)))


def test_snippets_of_every_kind_are_replaced():
    assert_edits("2 * LIMIT", "LIMIT", "value < 2 * LIMIT", "value < LIMIT")
    assert_edits("value > LIMIT and value < 2 * LIMIT", "False", "value > LIMIT and value < 2 * LIMIT", "False")
    assert_edits("total = 0", "total = 1", "total = 0", "total = 1")
    assert_edits("level=1", "level=2", "level=1", "level=2")
    assert_edits("level=1", "", ", level=1", "")
    assert_edits("value, 0", "value", "value, 0, scale)\n            log", "value, scale)\n            log")
    assert_edits("'FROM t '", "'FROM u '", "FROM t ", "FROM u ")
    assert_edits("f'x <= {scale} '", "f'x <= {scale + 1} '", "x <= {scale}", "x <= {scale + 1}")
    assert_edits("3", "4", "LIMIT = 3", "LIMIT = 4", target="LIMIT")
    assert_edits("1", "9", "size: int = 1", "size: int = 9", target="Box.size")
    assert_edits("LIMIT = 3", "LIMIT = 4", "LIMIT = 3", "LIMIT = 4", target="")
    assert_edits("self.size = size", "pass", "self.size = size", "pass", target="Box.width")


def test_a_default_and_a_decorator_are_replaced():
    source = "@retry(3)\ndef f(x=2):\n    return x\n"
    assert edited("2", "5", "f", source) == "@retry(3)\ndef f(x=5):\n    return x"
    assert edited("retry(3)", "once", "f", source) == "@once\ndef f(x=2):\n    return x"


def test_statements_keep_the_block_that_they_stand_in():
    both = 'total += clip(value, 0, scale)\nlog("done", level=1)'
    assert_edits(
        both,
        "if value:\n    total += value\ntotal += 1",
        'total += clip(value, 0, scale)\n            log("done", level=1)',
        "if value:\n                total += value\n            total += 1",
    )
    assert_edits(both, "", 'total += clip(value, 0, scale)\n            log("done", level=1)', "pass")
    indented = "\n            total += clip(value, 0, scale)\n            log('done', level=1)\n        "
    assert edited(indented, "total += 1") == edited(both, "total += 1")


@pytest.mark.parametrize(
    ("old", "target"),
    [
        ("scale", "draw"),  # twice
        ("0", "draw"),  # twice
        ("' '", "draw"),  # often, in one string
        ("values[0]", "draw"),
        ("total = 0", "other"),
        ("total = 0", "gone"),
        ("if values:", "draw"),  # not a whole statement
    ],
)
def test_a_snippet_that_does_not_stand_there_once_is_stale(old, target):
    with pytest.raises(StaleEdit):
        edited(old, "1", target)


def test_an_edit_that_changes_nothing_is_stale():
    with pytest.raises(StaleEdit, match="nothing changes"):
        edited("total = 0", "total = (0)")


def test_layout_does_not_matter():
    source = SOURCE.replace(
        "if value > LIMIT and value < 2 * LIMIT:",
        "if (  # why\n            value > LIMIT\n            and (value < (2 * LIMIT))\n        ):",
    )
    source = source.replace(
        'log("done", level=1)', "log(\n                'do' 'ne',\n                level=1,\n            )"
    )
    assert source.count("\n") > SOURCE.count("\n")
    for old in ("value > LIMIT and value < 2 * LIMIT", 'log("done", level=1)'):
        assert edited(old, "1", source=source) == edited(old, "1")


def test_a_name_may_change_elsewhere_in_the_definition():
    source = (
        SOURCE.replace("query", "statement")
        .replace("def draw(values", "def draw(numbers")
        .replace("in values:", "in numbers:")
    )
    assert "total += 1\n" in edited("total += clip(value, 0, scale)", "total += 1", source=source)


def test_a_definition_may_move_within_its_package(tmp_path: Path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "module.py").write_text("LIMIT = 3\n")
    (package / "elsewhere.py").write_text(SOURCE)
    edit = Edit("package.module:draw", "total = 0", "total = 1")
    assert find_file(edit, tmp_path) == package / "elsewhere.py"
    assert find_file(Edit("package.module:LIMIT", "3", "4"), tmp_path) == package / "module.py"
    (package / "third.py").write_text(SOURCE)
    with pytest.raises(StaleEdit, match="2 other modules"):
        find_file(edit, tmp_path)


def test_a_bug_that_is_planted_can_be_taken_out(tmp_path: Path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "module.py").write_text(SOURCE)
    before = plant(mutant("a limit", "package.module:LIMIT", "3", "4", ()), tmp_path)
    assert before == {package / "module.py": SOURCE}
    assert (package / "module.py").read_text().startswith("LIMIT = 4\n")
