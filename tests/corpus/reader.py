"""Cases of the corpus: SQL, and what is to come of it.

    -- case: the title
    -- category: dbt                      another one than the file's name
    -- empty: month, kind                 key columns; points of time that no row has may be there
    -- order: any                         ties may stand in any order
    -- tolerance: 1% in mean, median      a number, a percentage, or days: for what is chosen from bins
    -- xfail: why                         should be answered, and is not yet
    -- note: what a reader should know
    SELECT …
    ---- duckdb
    the same in DuckDB's words, where it lacks the spelling or raises where we must not
    ---- error
    the refusal, word for word

A case with a section `error` is to be refused; every other is to be answered just as DuckDB answers it. A line
`-- schema: name` before the first case names the schema of a file, which is `hospital` otherwise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
FOLDERS = (HERE / "cases", HERE / "bi")
CASE, SECTION = "-- case: ", "---- "
_NAMES = ("category", "empty", "order", "tolerance", "xfail", "note")
_DIRECTIVE = re.compile(rf"-- ({'|'.join(_NAMES)}): (.*)")


@dataclass(frozen=True)
class Case:
    file: str
    schema: str
    title: str
    directives: tuple[tuple[str, str], ...]
    sql: str
    sections: tuple[tuple[str, str], ...]

    @property
    def category(self) -> str:
        return self.directive("category") or self.file

    @property
    def refused(self) -> bool:
        return self.section("error") is not None

    @property
    def reference(self) -> str:
        """What DuckDB is asked."""
        return self.section("duckdb") or self.sql

    @property
    def empty(self) -> frozenset[str]:
        return frozenset(name.strip() for name in (self.directive("empty") or "").split(",") if name.strip())

    @property
    def ordered(self) -> bool:
        return self.directive("order") != "any" and "order by" in _outside_of_parentheses(self.sql).lower()

    def directive(self, name: str) -> str | None:
        return dict(self.directives).get(name)

    def section(self, name: str) -> str | None:
        return dict(self.sections).get(name)

    def with_error(self, text: str) -> Case:
        return replace(self, sections=tuple((n, text if n == "error" else body) for n, body in self.sections))


def all_cases() -> list[Case]:
    return [case for path in files() for case in read(path)[1]]


def files() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted(folder.glob("*.sql"))]


def read(path: Path) -> tuple[str, list[Case]]:
    """What stands before the first case, and the cases."""
    head, *parts = re.split(rf"^{CASE}", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = re.search(r"^-- schema: (.*)$", head, flags=re.MULTILINE)
    return head, [_case(part, path.stem, found[1] if found else "hospital") for part in parts]


def _case(text: str, file: str, schema: str) -> Case:
    body, *sections = re.split(rf"^{SECTION}", text, flags=re.MULTILINE)
    title, *lines = body.rstrip("\n").split("\n")
    directives = []
    while lines and (match := _DIRECTIVE.fullmatch(lines[0])):
        directives.append((match[1], match[2]))
        lines.pop(0)
    pairs = [section.split("\n", 1) for section in sections]
    bodies = tuple((name.strip(), "".join(rest).rstrip("\n")) for name, *rest in pairs)
    return Case(file, schema, title, tuple(directives), "\n".join(lines), bodies)


def write(head: str, cases: list[Case]) -> str:
    return head + "\n\n".join(_text(case) for case in cases) + "\n"


def _text(case: Case) -> str:
    lines = [CASE + case.title, *(f"-- {name}: {value}" for name, value in case.directives), case.sql]
    for name, body in case.sections:
        lines += [SECTION + name, *([body] if body else [])]
    return "\n".join(lines)


def _outside_of_parentheses(sql: str) -> str:
    kept, depth = [], 0
    for character in sql:
        depth += (character == "(") - (character == ")")
        if not depth:
            kept.append(character)
    return "".join(kept)
