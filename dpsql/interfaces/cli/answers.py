"""`dpsql answers`: the owner lists, exports and drops stored releases."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, date, datetime
from typing import Any

from dpsql.amounts import format_rounded_up
from dpsql.interfaces.dbapi.url import schema_path
from dpsql.interfaces.display.cells import FormattedNumber
from dpsql.interfaces.display.table import print_table
from dpsql.interfaces.display.terminal import Screen, UsageError
from dpsql.owner.administration import Ledger, ListedRelease, open_schema_ledger

_ANSWER_HEADINGS = ("answer", "version", "charged at", "state", "rho", "delta", "bytes", "paid by", "statement")
_MAX_STATEMENT_LENGTH = 60


def run(args: argparse.Namespace, screen: Screen) -> None:
    with open_schema_ledger(schema_path(args.schema)) as (_, ledger):
        match args.action:
            case "list":
                _list_answers(ledger, args.json, screen)
            case "export":
                _export_answers(ledger, args.numbers, screen)
            case "drop":
                dropped = ledger.drop_old_bodies(_parse_day(args.before))
                message = f"{dropped} answer{'' if dropped == 1 else 's'} dropped; who asks again pays again"
                screen.print(json.dumps({"dropped": dropped}) if args.json else message)


def _list_answers(ledger: Ledger, as_json: bool, screen: Screen) -> None:
    stored = ledger.list_releases()
    if as_json:
        screen.print(json.dumps([_answer_to_json(answer) for answer in stored], indent=2))
        return
    print_table(screen, _ANSWER_HEADINGS, [_answer_row(answer) for answer in stored])
    screen.print("For the owner: it shows what all analysts have asked. A repeated question is served from here, free.")


def _answer_row(answer: ListedRelease) -> tuple[object, ...]:
    text = " ".join(answer.statement.split())
    return (
        answer.release,
        answer.version,
        f"{answer.at:%Y-%m-%d %H:%M}",
        answer.state,
        FormattedNumber(format_rounded_up(answer.loss.rho)),
        FormattedNumber(format_rounded_up(answer.loss.delta)),
        answer.size,
        ", ".join(answer.payers),
        text if len(text) <= _MAX_STATEMENT_LENGTH else text[: _MAX_STATEMENT_LENGTH - 1] + "…",
    )


def _export_answers(ledger: Ledger, numbers: list[int], screen: Screen) -> None:
    """One JSON object a line, with the release as it is stored: keys, noisy cells in grid units, and their noise."""
    chosen = [
        answer
        for answer in ledger.list_releases()
        if answer.state == "stored" and (not numbers or answer.release in numbers)
    ]
    for answer in chosen:
        body = ledger.read_body(answer.release)
        if body is not None:
            screen.print(json.dumps(_answer_to_json(answer) | {"release": json.loads(body)}))
    missing = set(numbers) - {answer.release for answer in chosen}
    if missing:
        raise UsageError(f"there is no stored answer {', '.join(map(str, sorted(missing)))}")


def _answer_to_json(answer: ListedRelease) -> dict[str, Any]:
    loss = answer.loss
    return {
        "answer": answer.release,
        "version": answer.version,
        "at": answer.at.isoformat(),
        "state": answer.state,
        "statement": answer.statement,
        "payers": list(answer.payers),
        "epsilon": None if loss.epsilon is None else float(loss.epsilon),
        "rho": float(loss.rho),
        "delta": float(loss.delta),
        "bytes": answer.size,
    }


def _parse_day(text: str) -> datetime:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--before takes a date such as 2026-01-31, not {text}") from None
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
