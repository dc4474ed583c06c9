"""Golden files: SQL, and below it what dpsql makes of it.

-- case: the title says what the case is about
-- schema: survey                     another schema than schema.yaml
-- set: noise = laplace               a setting; may be repeated
-- parameters: ["urgent", 5]          a JSON list
SELECT …
---- plan
what section `plan` must be
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

CASE, SECTION = "-- case: ", "---- "
_DIRECTIVE = re.compile(r"-- (schema|set|parameters): (.*)")


@dataclass(frozen=True)
class Case:
    title: str
    directives: tuple[tuple[str, str], ...]
    sql: str
    sections: tuple[tuple[str, str], ...]

    @property
    def schema(self) -> str:
        return next((value for name, value in self.directives if name == "schema"), "schema")

    @property
    def settings(self) -> list[tuple[str, str]]:
        pairs = [value.split("=", 1) for name, value in self.directives if name == "set"]
        return [(name.strip(), value.strip()) for name, value in pairs]

    @property
    def parameters(self) -> list[object]:
        return next((json.loads(value) for name, value in self.directives if name == "parameters"), [])

    def with_bodies(self, body: Callable[[str], str]) -> "Case":
        return replace(self, sections=tuple((name, body(name)) for name, _ in self.sections))


def read(text: str) -> tuple[str, list[Case]]:
    """What stands before the first case, and the cases."""
    head, *parts = re.split(rf"^{CASE}", text, flags=re.MULTILINE)
    return head, [_case(part) for part in parts]


def _case(text: str) -> Case:
    body, *sections = re.split(rf"^{SECTION}", text, flags=re.MULTILINE)
    title, *lines = body.rstrip("\n").split("\n")
    directives = []
    while lines and (match := _DIRECTIVE.fullmatch(lines[0])):
        directives.append((match[1], match[2]))
        lines.pop(0)
    pairs = [section.split("\n", 1) for section in sections]
    return Case(
        title, tuple(directives), "\n".join(lines), tuple((name.strip(), rest.rstrip("\n")) for name, rest in pairs)
    )


def write(head: str, cases: list[Case]) -> str:
    return head + "\n\n".join(_text(case) for case in cases) + "\n"


def _text(case: Case) -> str:
    lines = [CASE + case.title, *(f"-- {name}: {value}" for name, value in case.directives), case.sql]
    for name, body in case.sections:
        lines += [SECTION + name, *([body] if body else [])]
    return "\n".join(lines)


def may_write(environment: Mapping[str, str]) -> bool:
    """Whether the bodies are to be written instead of compared: a person's act, who then reads the diff."""
    if environment.get("DPSQL_GOLDEN") != "write":
        return False
    if environment.get("CI"):
        raise RuntimeError("golden files are rewritten by a person, who reads the diff, not in CI")
    return True


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.sql"))
