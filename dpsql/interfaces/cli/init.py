"""`dpsql init`: draft a schema, write it, and say what is left to decide."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from dpsql.interfaces.display.terminal import BOLD, DIM, Screen, UsageError, escape_text
from dpsql.owner.draft.init import (
    DraftOptions,
    DraftResult,
    draft_schema,
    find_sources,
    read_draft_options,
    write_schema_file,
)
from dpsql.owner.draft.relationships import UnitCandidate

LOOK_WARNING = (
    "WARNING:  --look-at-data reads the rows: the bounds and values that it proposes are not private. Whoever"
    " sees the schema, or answers that depend on them, learns something of the rows beyond any epsilon."
)
_MAX_CANDIDATES = 8


def run(args: argparse.Namespace, screen: Screen) -> None:
    options = _read_options(args)
    if args.look_at_data:
        screen.print_note(LOOK_WARNING)
    sources = find_sources(args.sources, args.header)
    target = args.output or f"{sources.name}.yaml"
    if target != "-" and not args.force and os.path.exists(target):
        raise UsageError(f"{target} is there already: write to another file with -o, or replace it with --force")
    folder = os.path.abspath(os.path.dirname(target) if target != "-" else ".")
    asks = sys.stdin.isatty() and sys.stdout.isatty() and not args.json and target != "-"
    drafted = draft_schema(
        sources,
        folder,
        options,
        unit=args.unit,
        choose=(lambda candidates: _choose_unit(candidates, screen)) if asks else None,
        look_at_data=args.look_at_data,
        name=None if target == "-" else os.path.splitext(os.path.basename(target))[0],
    )
    if target != "-":
        write_schema_file(target, drafted.draft.text, force=args.force, secret=args.look_at_data)
    if args.json:
        screen.print(
            json.dumps(_draft_to_json(drafted, None if target == "-" else target), indent=2, ensure_ascii=False)
        )
    elif target == "-":
        screen.print(drafted.draft.text.rstrip("\n"))
    else:
        _print_draft(drafted, target, screen)


def _read_options(args: argparse.Namespace) -> DraftOptions:
    try:
        return read_draft_options(args.epsilon, args.delta, args.neighbors, args.analysts)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _choose_unit(candidates: Sequence[UnitCandidate], screen: Screen) -> UnitCandidate:
    """On a terminal: which of the candidates it is; Enter takes the likeliest."""
    screen.print("Whom should the schema protect? A privacy unit is all rows of one person.")
    for number, candidate in enumerate(candidates[:_MAX_CANDIDATES], 1):
        screen.print(
            f"  {number}  {screen.style_output(escape_text(candidate.name), BOLD)}  "
            f"{screen.style_output(candidate.why, DIM)}"
        )
    max_number = min(len(candidates), _MAX_CANDIDATES)
    while True:
        screen.out.write(f"1 to {max_number}, or Enter for 1: ")
        screen.out.flush()
        typed = sys.stdin.readline()
        if not typed:
            raise KeyboardInterrupt
        typed = typed.strip()
        if not typed or (typed.isdecimal() and 1 <= int(typed) <= max_number):
            return candidates[int(typed or 1) - 1]


def _print_draft(drafted: DraftResult, target: str, screen: Screen) -> None:
    draft = drafted.draft
    tables = f"{len(draft.tables)} table{'' if len(draft.tables) == 1 else 's'}"
    screen.print(
        f"{escape_text(target)}: {tables}, unit "
        f"{screen.style_output(escape_text(draft.unit), BOLD)}{_unit_reason(drafted)}"
    )
    for what in draft.left_out:
        screen.print(f"  left out: {escape_text(what)}")
    count = len(draft.decisions)
    screen.print(f'{count} decision{"" if count == 1 else "s"} left, each marked "decide:" in the file:')
    for decision in draft.decisions[:20]:
        screen.print(f"  {screen.style_output(escape_text(decision.where), BOLD)}  {escape_text(decision.what)}")
    if count > 20:
        screen.print(f"  … and {count - 20} more")
    screen.print(f"Then: dpsql check {shlex.quote(target)}")


def _unit_reason(drafted: DraftResult) -> str:
    if drafted.chosen != "picked":
        return ""
    unit = next((candidate for candidate in drafted.candidates if candidate.name == drafted.draft.unit), None)
    if unit is None:
        return ", since no column names anyone; name one with --unit if there is"
    others = [escape_text(candidate.name) for candidate in drafted.candidates if candidate is not unit][:3]
    return f" ({unit.why})" + (f"; it could also be {', '.join(others)}: --unit" if others else "")


def _draft_to_json(drafted: DraftResult, target: str | None) -> dict[str, Any]:
    draft = drafted.draft
    return {
        "file": target,
        "unit": draft.unit,
        "chosen": drafted.chosen,
        "candidates": [{"unit": item.name, "why": item.why} for item in drafted.candidates],
        "tables": list(draft.tables),
        "left_out": list(draft.left_out),
        "decisions": [{"where": item.where, "what": item.what} for item in draft.decisions],
        **({"schema": draft.text} if target is None else {}),
    }
