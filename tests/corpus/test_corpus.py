"""Each case of the corpus ends as its file says; DPSQL_GOLDEN=write rewrites the refusals, and a person reads the diff.

python -m tests.corpus prints how many are answered and right, by category.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpsql.errors import Error
from tests.corpus.compare import difference, tolerance, unlike
from tests.corpus.environment import Ground
from tests.corpus.reader import Case, all_cases, files, read, write
from tests.corpus.verdict import judge, refusal
from tests.support.effort import QUICK_SHARE, SHARE

Grounds = Callable[[Case], Ground]


@pytest.fixture(scope="module")
def ground() -> Iterator[Grounds]:
    opened: dict[str, Ground] = {}

    def find(case: Case) -> Ground:
        if case.schema not in opened:
            opened[case.schema] = Ground(case.schema)
        return opened[case.schema]

    yield find
    for each in opened.values():
        each.close()


def params() -> list[object]:
    found = []
    for case in all_cases():
        reason = case.directive("xfail")
        marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
        found.append(pytest.param(case, id=f"{case.file}: {case.title}", marks=marks))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("case", params()[:: 1 if SHARE > QUICK_SHARE else 3])
def test_each_case_ends_as_its_file_says(case: Case, ground: Grounds) -> None:
    if writing() and case.refused:
        pytest.skip("the refusals are being rewritten")
    verdict = judge(case, ground(case))
    assert verdict.good, f"{verdict.word}: {verdict.why}"


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_each_file_is_written_as_the_reader_writes_it(path: Path, ground: Grounds) -> None:
    head, cases = read(path)
    if writing():
        path.write_text(write(head, [_rewritten(case, ground) for case in cases]), encoding="utf-8")
    assert write(*read(path)) == path.read_text(encoding="utf-8")


def writing() -> bool:
    if os.environ.get("DPSQL_GOLDEN") != "write":
        return False
    if os.environ.get("CI"):
        raise RuntimeError("golden files are rewritten by a person, who reads the diff, not in CI")
    return True


def _rewritten(case: Case, ground: Grounds) -> Case:
    if not case.refused:
        return case
    try:
        ground(case).execute(case.sql)
    except Error as error:
        return case.with_error(refusal(error))
    return case


def test_there_are_enough_cases_and_no_two_alike() -> None:
    cases = all_cases()
    assert len(cases) >= 500
    assert len({(case.file, case.title) for case in cases}) == len(cases)
    assert len({(case.schema, case.sql) for case in cases}) == len(cases)


def test_every_refusal_says_why() -> None:
    assert all(case.section("error") for case in all_cases() if case.refused)


def test_the_comparison_can_fail() -> None:
    keys = frozenset({"k"})
    assert difference([(1, 2.0)], [(1, 2.0)], "kx", keys) is None
    assert difference([(1, 2.0), (2, 0.0)], [(1, 2.0)], "kx", keys) is None
    assert difference([(1, 2.0), (2, 0.0)], [(1, 2.0)], "kx")
    assert difference([(1, 2.0), (2, 0.5)], [(1, 2.0)], "kx", keys)
    assert difference([(1, 2.0)], [(1, 2.0), (2, 0.0)], "kx", keys)
    assert difference([(1, 2.001)], [(1, 2.0)], "kx", keys)
    assert difference([(1,), (2,)], [(2,), (1,)], "k", ordered=True)
    assert difference([(1,), (2,)], [(2,), (1,)], "k") is None
    assert difference([(True,)], [(1,)], "k")
    assert difference([(None,)], [(1,)], "k")
    assert difference([("1",)], [(1,)], "k")


def test_the_comparison_of_columns_can_fail() -> None:
    ours = [("kind", "VARCHAR"), ("n", "BIGINT")]
    assert unlike(ours, [("kind", "VARCHAR"), ("n", "HUGEINT")], named=True) is None
    assert unlike(ours, [("kind", "VARCHAR"), ("count_star()", "BIGINT")], named=True) is None
    assert unlike(ours, [("kind", "VARCHAR"), ("m", "BIGINT")], named=True)
    assert unlike(ours, [("kind", "VARCHAR"), ("m", "BIGINT")], named=False) is None
    assert unlike(ours, [("kind", "VARCHAR"), ("n", "DATE")], named=False)
    assert unlike(ours, [("kind", "VARCHAR")], named=False)


def test_a_tolerance_is_for_the_columns_that_it_names() -> None:
    allowed = tolerance("1% in x", "kx")
    assert difference([(1, 2.01)], [(1, 2.0)], "kx", allowed=allowed) is None
    assert difference([(1.01, 2.0)], [(1.0, 2.0)], "kx", allowed=allowed)
    assert difference([(1, 2.1)], [(1, 2.0)], "kx", allowed=allowed)
    with pytest.raises(ValueError, match="not there"):
        tolerance("1 in y", "kx")
