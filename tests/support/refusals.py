"""The table of refusals in docs/sql.md, from the places that raise them: `python -m tests.support.refusals`."""

from __future__ import annotations

import argparse
import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dpsql import errors
from dpsql.compiler.parse.parser import REFUSED_STATEMENTS

ROOT = Path(__file__).parent.parent.parent
DOCUMENT = ROOT / "docs" / "sql.md"
SOURCES = ("compiler", "session/pilot.py", "session/transaction.py", "session/postprocess/catalog_sandbox.py")
START, END = "<!-- refusals: python -m tests.support.refusals -->", "<!-- end of refusals -->"

# A bug, and a stored record that is damaged: neither says anything about a statement.
NO_REFUSALS = (errors.InternalError, errors.IntegrityError)

WHY = {
    "NotPrivate": "An answer would hold single private rows, or let one unit move what others contribute.",
    "UnboundedContribution": "Without a bound on what one unit contributes no noise is enough.",
    "UnboundedValues": "Without bounds one value could move a sum by any amount.",
    "Unsupported": "SQL that has no private answer, or none yet.",
    "GroupingError": "A private column stands where only groups and aggregates can be seen.",
    "UnknownTable": "A table that is not in the schema does not exist.",
    "UnknownColumn": "A column that is not in the schema does not exist.",
    "AmbiguousColumn": "Two tables have a column of that name.",
    "UnknownFunction": "Only functions that cannot fail on any row are known over private rows.",
    "TypeMismatch": "Types are checked before anything runs, so that no row can make a statement fail.",
    "InvalidSyntax": "The statement cannot be read.",
    "InvalidParameter": "A setting, option or argument is out of its range.",
    "LimitExceeded": "Statements have a size, so that no statement takes all of the machine.",
    "ProgrammingError": "The statement cannot be answered as it stands.",
    "SchemaError": "The schema does not hold what the statement needs.",
    "DataError": "A released value does not fit where it is used.",
    "OperationalError": "The run was stopped.",
    "BudgetExceeded": "The price is beyond what may be asked for.",
}


@dataclass(frozen=True)
class Refusal:
    kind: str
    sqlstate: str
    message: str
    hint: str


def refusals() -> list[Refusal]:
    """Each message once, by class and text, with the hints of all places that raise it."""
    first: dict[tuple[str, str], Refusal] = {}
    hints: dict[tuple[str, str], set[str]] = {}
    for path in _files():
        for refusal in _in_file(path):
            key = refusal.kind, refusal.message
            first.setdefault(key, refusal)
            hints.setdefault(key, set()).add(refusal.hint)
    kinds = list(WHY)
    merged = [replace(refusal, hint=_join_hints(hints[key])) for key, refusal in first.items()]
    return sorted(merged, key=lambda refusal: (kinds.index(refusal.kind), refusal.sqlstate, refusal.message))


def _join_hints(hints: set[str]) -> str:
    """All hints that say something, in an order that does not depend on the files; … if none does."""
    said = sorted({side for hint in hints for side in hint.split(" / ")} - {"", "…"})
    return " / ".join(said) if said else max(hints)


def _files() -> Iterator[Path]:
    for source in SOURCES:
        path = ROOT / "dpsql" / source
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _in_file(path: Path) -> Iterator[Refusal]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
            continue
        kind = getattr(errors, node.func.id, None)
        if not isinstance(kind, type) or not issubclass(kind, errors.Error) or kind in NO_REFUSALS:
            continue
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        state = given.get("sqlstate")
        sqlstate = str(state.value) if isinstance(state, ast.Constant) else kind.default_sqlstate
        hint = shape(given["hint"]) if "hint" in given else ""
        for message in _messages(node.args[0]):
            if message != "…":
                yield Refusal(node.func.id, sqlstate, message, hint)


def _messages(node: ast.expr) -> list[str]:
    """The message's text; where it ends in the reason of a family of refused statements, one text for each family."""
    text = shape(node)
    if _reads_reason(node):
        return [text.removesuffix("…") + family.why for family in REFUSED_STATEMENTS]
    return [text]


def _reads_reason(node: ast.expr) -> bool:
    """Whether the last thing put in is `family.why`, the reason in a record of `REFUSED_STATEMENTS`."""
    match node:
        case ast.JoinedStr(values=[*_, ast.FormattedValue(value=ast.Attribute(ast.Name("family"), "why"))]):
            return True
        case _:
            return False


def shape(node: ast.expr) -> str:
    """A text with … for what is put in; both sides of a choice."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return re.sub("…+", "…", "".join(shape(part) for part in parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return shape(left) + shape(right)
        case ast.IfExp(body=one, orelse=other):
            sides = [text for text in (shape(one), shape(other)) if text]
            return " / ".join(dict.fromkeys(sides))
        case ast.Constant(value=None):
            return ""
        case _:
            return "…"


def table() -> str:
    lines = [START, ""]
    every = refusals()
    for kind, why in WHY.items():
        some = [one for one in every if one.kind == kind]
        if not some:
            continue
        lines += [textwrap.fill(f"**{kind}.** {why}", 100), "", "| | message | hint |", "|---|---|---|"]
        lines += [f"| {one.sqlstate} | {_cell(one.message)} | {_cell(one.hint)} |" for one in some]
        lines.append("")
    return "\n".join([*lines, END])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("\n", " ")


def written(document: str) -> str:
    """The document with the table as it is now."""
    before, rest = document.split(START)
    after = rest.split(END)[1]
    return before + table() + after


if __name__ == "__main__":
    argparse.ArgumentParser("python -m tests.support.refusals", description=__doc__).parse_args()
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{len(refusals())} refusals written to {DOCUMENT.relative_to(ROOT)}")
