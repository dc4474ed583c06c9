"""One planted bug."""

from __future__ import annotations

from dataclasses import dataclass

from tests.mutants.match import Edit
from tests.mutants.selections import Tests


@dataclass(frozen=True)
class Mutant:
    """A bug: the code that is replaced, and the tests that must see it."""

    name: str
    edits: tuple[Edit, ...]
    tests: Tests


def mutant(name: str, target: str, old: str, new: str, tests: Tests) -> Mutant:
    """A bug of one edit; see `match` for targets and snippets."""
    return Mutant(name, (Edit(target, old, new),), tests)
