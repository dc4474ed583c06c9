"""`dpsql answers`: the owner's view of the stored releases: list them, export them, drop old ones."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, date, datetime
from typing import Any

from dpsql.dbapi.address import schema_path
from dpsql.display.cells import Figure
from dpsql.display.screen import Screen, Usage
from dpsql.display.table import print_table
from dpsql.figures import short_up
from dpsql.owner.books import Ledger, Stored, open_books

_HEADS = ("answer", "version", "charged at", "state", "rho", "delta", "bytes", "paid by", "statement")
_SHOWN = 60


def run(given: argparse.Namespace, screen: Screen) -> None:
    with open_books(schema_path(given.schema)) as (_, ledger):
        match given.action:
            case "list":
                _list(ledger, given.json, screen)
            case "export":
                _export(ledger, given.numbers, screen)
            case "drop":
                dropped = ledger.drop_answers(_day(given.before))
                told = f"{dropped} answer{'' if dropped == 1 else 's'} dropped; who asks again pays again"
                screen.print(json.dumps({"dropped": dropped}) if given.json else told)


def _list(ledger: Ledger, as_json: bool, screen: Screen) -> None:
    stored = ledger.answers()
    if as_json:
        screen.print(json.dumps([_told(one) for one in stored], indent=2))
        return
    print_table(screen, _HEADS, [_row(one) for one in stored])
    screen.print("For the owner: it shows what all analysts have asked. A repeated question is served from here, free.")


def _row(one: Stored) -> tuple[object, ...]:
    text = " ".join(one.statement.split())
    return (
        one.release,
        one.version,
        f"{one.at:%Y-%m-%d %H:%M}",
        one.state,
        Figure(short_up(one.loss.rho)),
        Figure(short_up(one.loss.delta)),
        one.size,
        ", ".join(one.payers),
        text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…",
    )


def _export(ledger: Ledger, numbers: list[int], screen: Screen) -> None:
    """One JSON object a line, with the release as it is stored: keys, noisy cells in grid units, and their noise."""
    chosen = [one for one in ledger.answers() if one.state == "stored" and (not numbers or one.release in numbers)]
    for one in chosen:
        body = ledger.stored(one.release)
        if body is not None:
            screen.print(json.dumps(_told(one) | {"release": json.loads(body)}))
    missing = set(numbers) - {one.release for one in chosen}
    if missing:
        raise Usage(f"there is no stored answer {', '.join(map(str, sorted(missing)))}")


def _told(one: Stored) -> dict[str, Any]:
    loss = one.loss
    return {
        "answer": one.release,
        "version": one.version,
        "at": one.at.isoformat(),
        "state": one.state,
        "statement": one.statement,
        "payers": list(one.payers),
        "epsilon": None if loss.epsilon is None else float(loss.epsilon),
        "rho": float(loss.rho),
        "delta": float(loss.delta),
        "bytes": one.size,
    }


def _day(text: str) -> datetime:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Usage(f"--before takes a date such as 2026-01-31, not {text}") from None
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
