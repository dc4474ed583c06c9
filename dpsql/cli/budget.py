"""`dpsql budget`: one analyst's own figures, or the owner's view of all accounts, as a tree."""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from dpsql.dbapi.address import ServerAddress, read_address
from dpsql.dbapi.opening import open_now
from dpsql.display.cells import Figure
from dpsql.display.formats import csv_lines
from dpsql.display.screen import DIM, Screen, Usage
from dpsql.display.table import print_table
from dpsql.errors import OperationalError
from dpsql.figures import short_left, short_up
from dpsql.owner.books import (
    DATASET,
    MANY,
    Standing,
    Verdict,
    account_of,
    history,
    left_the_schema,
    open_books,
    report_on,
    standings,
)
from dpsql.private_files import open_private
from dpsql.repl.given import password_asker

_HEADS = ("account", "left", "spent", "of epsilon", "at delta", "charges", "more", "failures")
_BAR = 20


def run(given: argparse.Namespace, screen: Screen) -> None:
    address = read_address(given.schema, given.user, {})
    if given.history is not None and (given.json or given.report):
        raise Usage("--history stands alone: it is a table of its own")
    if isinstance(address, ServerAddress):
        _tell_own(given, screen)
        return
    with open_books(address.path) as (schema, ledger):
        if given.history is not None:
            if address.user is not None:
                account_of(schema, address.user)
            _export(given.history, *history(ledger, address.user), screen)
            return
        found = standings(schema, ledger, address.user)
        reports = [report_on(ledger, one.account) for one in found] if given.report else []
        gone = left_the_schema(schema, ledger) if address.user is None else []
    if given.json:
        screen.print(json.dumps(_document(found, reports, address.user is None), indent=2))
    elif address.user is not None:
        _tell_one(found[0], screen)
    else:
        _tell_all(found, gone, given.schema, screen)
    if not given.json:
        for one, verdicts in zip(found, reports, strict=bool(reports)):
            _tell_report(one, verdicts, screen)


def _tell_own(given: argparse.Namespace, screen: Screen) -> None:
    """Of a server: who logs in sees her own account, and no other."""
    if given.history is not None or given.json or given.report:
        raise Usage("of a server, budget has no options: it tells what is left of your own account")
    with open_now(given.schema, given.user, password_asker()) as connection:
        screen.print(str(connection.budget()))


def bar(part: Fraction) -> str:
    """What is left, as a bar: no more than there is.

    >>> bar(Fraction(3, 5))
    '[############--------]  60 % left'
    """
    filled = math.floor(_BAR * part)
    return f"[{'#' * filled}{'-' * (_BAR - filled)}] {short_left(100 * part, Fraction(100)):>3} % left"


def _more(one: Standing) -> str:
    if one.more >= MANY:
        return "more than a million more statements"
    return f"about {one.more} more statement{'' if one.more == 1 else 's'}"


def _usual(one: Standing) -> str:
    return f"the default epsilon {short_up(one.epsilon)}" + (f" and delta {short_up(one.delta)}" if one.delta else "")


def _tell_one(one: Standing, screen: Screen) -> None:
    """Her own figures, and nobody else's."""
    first, *rest = str(one.balance).splitlines()
    screen.print(first)
    screen.print(bar(one.balance.fraction_left))
    for line in rest:
        screen.print(line)
    screen.print(f"{_more(one)} at {_usual(one)}")


def _tell_all(found: Sequence[Standing], gone: Sequence[str], schema: str, screen: Screen) -> None:
    rows = [(prefix + one.account.name, *_row(one)) for prefix, one in _tree(found)]
    print_table(screen, _HEADS, rows)
    screen.print('"spent" is epsilon, at the delta of the account; repeated questions are free.')
    usual = _usual(found[0]) if len({(one.epsilon, one.delta) for one in found}) == 1 else "each account's default"
    screen.print(f'"more" is about how many statements at {usual} would still pass, without selections.')
    for name in gone:
        screen.print(f'The ledger also has "{name}", which the schema has no more: what it was charged stays charged.')
    for one in found:
        name = one.account.name
        if one.balance.terms != one.account.terms:
            screen.print(f'The schema gives "{name}" other terms, which wait for: dpsql account grant {schema} {name}')
        if one.account.expires is not None:
            today = datetime.now(UTC).date()
            day = one.account.expires.isoformat()
            screen.print(f'"{name}" ' + (f"has expired on {day}." if today >= one.account.expires else
                                         f"may ask until {day}, exclusive, in UTC."))  # fmt: skip
        if one.failures.suspended:
            screen.print(f'"{name}" is suspended until: dpsql account resume {schema} {name}')
    if any(one.failures.counted for one in found):
        screen.print("Why runs failed is written to FILE by queries with DPSQL_LOG=FILE; it may hold private values.")


def _row(one: Standing) -> tuple[object, ...]:
    balance = one.balance
    return (
        bar(balance.fraction_left),
        Figure(short_up(balance.spent_epsilon)),
        Figure(short_up(balance.epsilon)),
        Figure(short_up(balance.delta)),
        balance.charges,
        Figure(f"{one.more}" if one.more < MANY else "many"),
        str(one.failures),
    )


def _tree(found: Sequence[Standing]) -> Iterator[tuple[str, Standing]]:
    """Each account behind lines that lead from the dataset's to it."""
    yield "", found[0]
    yield from _below(None, "", found[1:])


def _below(parent: str | None, indent: str, found: Sequence[Standing]) -> Iterator[tuple[str, Standing]]:
    members = [one for one in found if one.account.parent == parent]
    for one in members:
        last = one is members[-1]
        yield indent + ("└─ " if last else "├─ "), one
        yield from _below(one.account.name, indent + ("   " if last else "│  "), found)


# --- the report ------------------------------------------------------------------------------------------------------


def _tell_report(one: Standing, verdicts: Sequence[Verdict], screen: Screen) -> None:
    screen.print()
    title = f'REPORT, not the rule, on "{one.account.name}": what accountants say of its history at its delta'
    screen.print(screen.style(f"{title} {short_up(one.account.delta)}", DIM))
    rows = [
        (v.accountant, Figure("" if v.epsilon is None else f"{v.epsilon:.4g}"), "yes" if v.adaptive else "no", v.note)
        for v in verdicts
    ]
    print_table(screen, ("accountant", "epsilon", "for adaptive questions", "not computed, because"), rows)
    rule = f"{one.account.composition.value} or pure, whichever still holds"
    screen.print(f"The ledger grants by its filter ({rule}), for questions chosen after seeing answers.")


def _document(found: Sequence[Standing], reports: Sequence[Sequence[Verdict]], owner: bool) -> dict[str, Any]:
    accounts = []
    for place, one in enumerate(found):
        document = _account(one, owner)
        if reports:
            document["report"] = {
                "rule": False,
                "accountants": [
                    {"accountant": v.accountant, "epsilon": v.epsilon, "adaptive": v.adaptive, "note": v.note}
                    for v in reports[place]
                ],
            }
        accounts.append(document)
    return {"accounts": accounts}


def _account(one: Standing, owner: bool) -> dict[str, Any]:
    balance, account = one.balance, one.account
    pure = balance.pure_epsilon
    document: dict[str, Any] = {
        "account": account.name,
        "parent": None if account.name == DATASET else account.parent or DATASET,
        "composition": account.composition.value,
        "budget": {"epsilon": float(balance.epsilon), "delta": float(balance.delta)},
        "spent": {
            "epsilon": float(balance.spent_epsilon),
            "pure_epsilon": None if pure is None else float(pure),
            "rho": float(balance.spent_rho),
            "delta": float(balance.spent_delta),
        },
        "left": {"epsilon": float(balance.left_epsilon), "part": float(balance.fraction_left)},
        "charges": balance.charges,
        "default": {"epsilon": float(one.epsilon), "delta": float(one.delta), "more": one.more},
        "expires": None if account.expires is None else account.expires.isoformat(),
    }
    if owner:
        document["failures"] = {"counted": one.failures.counted, "suspended": one.failures.suspended}
    return document


# --- the history -----------------------------------------------------------------------------------------------------


def _export(name: str, heads: Sequence[str], rows: Sequence[tuple[object, ...]], screen: Screen) -> None:
    """To the standard output with -, else to a file that is its owner's alone: it holds statements."""
    lines = csv_lines(heads, rows)
    if name == "-":
        for line in lines:
            screen.print(line)
        return
    try:
        with open(open_private(name, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise OperationalError(f'the history "{name}" cannot be written', detail=f"{error.strerror}.") from None
    screen.note(f'{len(rows)} entries were written to "{name}"')
