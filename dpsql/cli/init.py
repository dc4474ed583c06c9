"""`dpsql init`: draft a schema, write it, and say what is left to decide."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from dpsql.display.screen import BOLD, DIM, Screen, Usage
from dpsql.display.text import shown
from dpsql.owner.init import Candidate, Drafted, Wishes, draft_schema, find_sources, read_wishes, write_file

WARNING = (
    "WARNING:  --look-at-data reads the rows: the bounds, values and norms that it proposes are not private. Whoever"
    " sees the schema, or answers that depend on them, learns something of the rows beyond any epsilon."
)
_SHOWN = 8


def run(given: argparse.Namespace, screen: Screen) -> None:
    wishes = _wishes(given)
    if given.look_at_data:
        screen.note(WARNING)
    sources = find_sources(given.sources, given.header)
    target = given.output or f"{sources.name}.yaml"
    if target != "-" and not given.force and os.path.exists(target):
        raise Usage(f"{target} is there already: write to another file with -o, or replace it with --force")
    folder = os.path.abspath(os.path.dirname(target) if target != "-" else ".")
    asks = sys.stdin.isatty() and sys.stdout.isatty() and not given.json and target != "-"
    drafted = draft_schema(
        sources, folder, wishes,
        unit=given.unit, choose=(lambda found: _ask(found, screen)) if asks else None, look_at_data=given.look_at_data,
        name=None if target == "-" else os.path.splitext(os.path.basename(target))[0],
    )  # fmt: skip
    if target != "-":
        write_file(target, drafted.draft.text, force=given.force, secret=given.look_at_data)
    if given.json:
        screen.print(json.dumps(_document(drafted, None if target == "-" else target), indent=2, ensure_ascii=False))
    elif target == "-":
        screen.print(drafted.draft.text.rstrip("\n"))
    else:
        _tell(drafted, target, screen)


def _wishes(given: argparse.Namespace) -> Wishes:
    try:
        return read_wishes(given.epsilon, given.delta, given.neighbors, given.analysts)
    except ValueError as error:
        raise Usage(str(error)) from None


def _ask(found: Sequence[Candidate], screen: Screen) -> Candidate:
    """On a terminal: which of the candidates it is; Enter takes the likeliest."""
    screen.print("Whom should the schema protect? A privacy unit is all rows of one person.")
    for number, one in enumerate(found[:_SHOWN], 1):
        screen.print(f"  {number}  {screen.style(shown(one.name), BOLD)}  {screen.style(one.why, DIM)}")
    most = min(len(found), _SHOWN)
    while True:
        screen.out.write(f"1 to {most}, or Enter for 1: ")
        screen.out.flush()
        typed = sys.stdin.readline()
        if not typed:
            raise KeyboardInterrupt
        typed = typed.strip()
        if not typed or (typed.isdecimal() and 1 <= int(typed) <= most):
            return found[int(typed or 1) - 1]


def _tell(drafted: Drafted, target: str, screen: Screen) -> None:
    draft = drafted.draft
    tables = f"{len(draft.tables)} table{'' if len(draft.tables) == 1 else 's'}"
    screen.print(f"{shown(target)}: {tables}, unit {screen.style(shown(draft.unit), BOLD)}{_reason(drafted)}")
    for what in draft.left_out:
        screen.print(f"  left out: {shown(what)}")
    count = len(draft.decisions)
    screen.print(f"{count} decision{'' if count == 1 else 's'} left, each marked \"decide:\" in the file:")
    for decision in draft.decisions[:20]:
        screen.print(f"  {screen.style(shown(decision.where), BOLD)}  {shown(decision.what)}")
    if count > 20:
        screen.print(f"  … and {count - 20} more")
    screen.print(f"Then: dpsql check {shlex.quote(target)}")


def _reason(drafted: Drafted) -> str:
    if drafted.chosen != "picked":
        return ""
    unit = next((one for one in drafted.candidates if one.name == drafted.draft.unit), None)
    if unit is None:
        return ", since no column names anyone; name one with --unit if there is"
    others = [shown(one.name) for one in drafted.candidates if one is not unit][:3]
    return f" ({unit.why})" + (f"; it could also be {', '.join(others)}: --unit" if others else "")


def _document(drafted: Drafted, target: str | None) -> dict[str, Any]:
    draft = drafted.draft
    return {
        "file": target,
        "unit": draft.unit,
        "chosen": drafted.chosen,
        "candidates": [{"unit": one.name, "why": one.why} for one in drafted.candidates],
        "tables": list(draft.tables),
        "left_out": list(draft.left_out),
        "decisions": [{"where": one.where, "what": one.what} for one in draft.decisions],
        **({"schema": draft.text} if target is None else {}),
    }
