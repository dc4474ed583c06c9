"""The planted bugs of `make mutants` are still in the code as it stands; whether each is found takes longer to tell."""

import pytest

from tests.mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_bug_can_be_planted(mutant: Mutant) -> None:
    for edit in mutant.edits:
        assert (ROOT / "dpsql" / edit.file).read_text(encoding="utf-8").count(edit.old) == 1, edit.file
    for test in mutant.tests:
        assert not test.startswith("tests/") or (ROOT / test).exists()


def test_no_bug_has_the_name_of_another() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert sorted(set(names)) == sorted(names)
