"""Golden cases: what dpsql makes of SQL is what the files say. `make golden` rewrites the bodies of sections."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsql.schema.model import Resolved
from tests.golden.golden_file import Case, files, may_write, read, write
from tests.golden.golden_sections import Shown

FOLDER = Path(__file__).parent
FILES = files(FOLDER)
CASES = [
    pytest.param(case, id=f"{path.parent.name}/{path.stem}: {case.title}")
    for path in FILES
    for case in read(path.read_text(encoding="utf-8"))[1]
]
Resolve = Callable[[str], Resolved]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_each_file_is_written_as_this_runner_writes_it(path: Path, resolved: Resolve) -> None:
    text = path.read_text(encoding="utf-8")
    head, cases = read(text)
    if may_write(os.environ):
        cases = [case.with_bodies(Shown(case, resolved(case.schema)).section) for case in cases]
        path.write_text(write(head, cases), encoding="utf-8")
    else:
        assert write(head, cases) == text


@pytest.mark.parametrize("case", CASES)
def test_each_section_says_what_happens(case: Case, resolved: Resolve) -> None:
    if may_write(os.environ):
        pytest.skip("the files are being rewritten")
    assert case.sections, "a case has at least one section"
    shown = Shown(case, resolved(case.schema))
    assert (shown.fails() is None) != ("error" in dict(case.sections)), shown.fails()
    for name, body in case.sections:
        assert shown.section(name) == body, name


def test_titles_are_not_repeated() -> None:
    ids = [param.id for param in CASES]
    assert sorted(set(ids)) == sorted(ids)


def test_writing_is_refused_in_ci() -> None:
    assert not may_write({})
    assert not may_write({"CI": "true"})
    assert may_write({"DPSQL_GOLDEN": "write"})
    with pytest.raises(RuntimeError, match="not in CI"):
        may_write({"DPSQL_GOLDEN": "write", "CI": "true"})


def test_writing_replaces_bodies_and_nothing_else() -> None:
    first = "-- case: one\n-- set: epsilon = 2\nSELECT 1\n---- plan\nold\n---- post\n"
    text = f"-- about\n\n{first}\n-- case: two\nSELECT 2\n"
    head, cases = read(text)
    written = write(head, [case.with_bodies(lambda name: f"new {name}") for case in cases])
    assert written == text.replace("old", "new plan").replace("---- post\n", "---- post\nnew post\n")
