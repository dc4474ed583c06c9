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

from dpsql.amounts import format_remaining, format_rounded_up
from dpsql.base.private_files import open_private_file
from dpsql.errors import OperationalError
from dpsql.interfaces.dbapi.background_open import open_connection
from dpsql.interfaces.dbapi.url import ServerAddress, read_address
from dpsql.interfaces.display.cells import FormattedNumber
from dpsql.interfaces.display.export import to_csv_lines
from dpsql.interfaces.display.table import print_table
from dpsql.interfaces.display.terminal import DIM, Screen, UsageError
from dpsql.interfaces.repl.cli_input import find_password_prompt
from dpsql.owner.administration import (
    DATASET,
    MAX_COUNTED,
    AccountantReport,
    AccountSummary,
    account_of,
    compare_accountants,
    find_undeclared_accounts,
    open_schema_ledger,
    read_history,
    summarize_accounts,
)

_HEADINGS = ("account", "left", "spent", "of epsilon", "at delta", "charges", "more", "failures")
_BAR_WIDTH = 20


def run(args: argparse.Namespace, screen: Screen) -> None:
    address = read_address(args.schema, args.user, {})
    if args.history is not None and (args.json or args.report):
        raise UsageError("--history stands alone: it is a table of its own")
    if isinstance(address, ServerAddress):
        _print_own_budget(args, screen)
        return
    with open_schema_ledger(address.path) as (schema, ledger):
        if args.history is not None:
            if address.user is not None:
                account_of(schema, address.user)
            _export_history(args.history, *read_history(ledger, address.user), screen)
            return
        summaries = summarize_accounts(schema, ledger, address.user)
        reports = [compare_accountants(ledger, summary.account) for summary in summaries] if args.report else []
        gone = find_undeclared_accounts(schema, ledger) if address.user is None else []
    if args.json:
        screen.print(json.dumps(_accounts_to_json(summaries, reports, address.user is None), indent=2))
    elif address.user is not None:
        _print_account(summaries[0], screen)
    else:
        _print_accounts(summaries, gone, args.schema, screen)
    if not args.json:
        for summary, accountant_reports in zip(summaries, reports, strict=bool(reports)):
            _print_report(summary, accountant_reports, screen)


def _print_own_budget(args: argparse.Namespace, screen: Screen) -> None:
    """Print the budget of the account that logged in to a server; others are not shown."""
    if args.history is not None or args.json or args.report:
        raise UsageError("of a server, budget has no options: it tells what is left of your own account")
    with open_connection(args.schema, args.user, find_password_prompt()) as connection:
        screen.print(str(connection.budget()))


def format_bar(part: Fraction) -> str:
    """What is left, as a bar: no more than there is.

    >>> format_bar(Fraction(3, 5))
    '[############--------]  60 % left'
    """
    filled = math.floor(_BAR_WIDTH * part)
    return f"[{'#' * filled}{'-' * (_BAR_WIDTH - filled)}] {format_remaining(100 * part, Fraction(100)):>3} % left"


def _format_statements_left(summary: AccountSummary) -> str:
    if summary.more >= MAX_COUNTED:
        return "more than a million more statements"
    return f"about {summary.more} more statement{'' if summary.more == 1 else 's'}"


def _format_default_query(summary: AccountSummary) -> str:
    return f"the default epsilon {format_rounded_up(summary.epsilon)}" + (
        f" and delta {format_rounded_up(summary.delta)}" if summary.delta else ""
    )


def _print_account(summary: AccountSummary, screen: Screen) -> None:
    """Her own figures, and nobody else's."""
    first, *rest = str(summary.balance).splitlines()
    screen.print(first)
    screen.print(format_bar(summary.balance.fraction_left))
    for line in rest:
        screen.print(line)
    screen.print(f"{_format_statements_left(summary)} at {_format_default_query(summary)}")


def _print_accounts(summaries: Sequence[AccountSummary], gone: Sequence[str], schema: str, screen: Screen) -> None:
    rows = [(prefix + summary.account.name, *_account_row(summary)) for prefix, summary in _account_tree(summaries)]
    print_table(screen, _HEADINGS, rows)
    screen.print('"spent" is epsilon, at the delta of the account; repeated questions are free.')
    usual = (
        _format_default_query(summaries[0])
        if len({(summary.epsilon, summary.delta) for summary in summaries}) == 1
        else "each account's default"
    )
    screen.print(f'"more" is about how many statements at {usual} would still pass, without selections.')
    for name in gone:
        screen.print(f'The ledger also has "{name}", which the schema has no more: what it was charged stays charged.')
    for summary in summaries:
        name = summary.account.name
        if summary.balance.terms != summary.account.terms:
            screen.print(f'The schema gives "{name}" other terms, which wait for: dpsql account grant {schema} {name}')
        if summary.account.expires is not None:
            today = datetime.now(UTC).date()
            day = summary.account.expires.isoformat()
            screen.print(f'"{name}" ' + (f"has expired on {day}." if today >= summary.account.expires else
                                         f"may ask until {day}, exclusive, in UTC."))  # fmt: skip
        if summary.failures.is_suspended:
            screen.print(f'"{name}" is suspended until: dpsql account resume {schema} {name}')
    if any(summary.failures.counted for summary in summaries):
        screen.print("Why runs failed is written to FILE by queries with DPSQL_LOG=FILE; it may hold private values.")


def _account_row(summary: AccountSummary) -> tuple[object, ...]:
    balance = summary.balance
    return (
        format_bar(balance.fraction_left),
        FormattedNumber(format_rounded_up(balance.spent_epsilon)),
        FormattedNumber(format_rounded_up(balance.epsilon)),
        FormattedNumber(format_rounded_up(balance.delta)),
        balance.charges,
        FormattedNumber(f"{summary.more}" if summary.more < MAX_COUNTED else "many"),
        str(summary.failures),
    )


def _account_tree(summaries: Sequence[AccountSummary]) -> Iterator[tuple[str, AccountSummary]]:
    """Each account behind lines that lead from the dataset's to it."""
    yield "", summaries[0]
    yield from _child_accounts(None, "", summaries[1:])


def _child_accounts(
    parent: str | None, indent: str, summaries: Sequence[AccountSummary]
) -> Iterator[tuple[str, AccountSummary]]:
    members = [summary for summary in summaries if summary.account.parent == parent]
    for summary in members:
        last = summary is members[-1]
        yield indent + ("└─ " if last else "├─ "), summary
        yield from _child_accounts(summary.account.name, indent + ("   " if last else "│  "), summaries)


# --- the report ------------------------------------------------------------------------------------------------------


def _print_report(summary: AccountSummary, accountant_reports: Sequence[AccountantReport], screen: Screen) -> None:
    screen.print()
    title = f'REPORT, not the rule, on "{summary.account.name}": what accountants say of its history at its delta'
    screen.print(screen.style_output(f"{title} {format_rounded_up(summary.account.delta)}", DIM))
    rows = [
        (
            v.accountant,
            FormattedNumber("" if v.epsilon is None else f"{v.epsilon:.4g}"),
            "yes" if v.adaptive else "no",
            v.note,
        )
        for v in accountant_reports
    ]
    print_table(screen, ("accountant", "epsilon", "for adaptive questions", "not computed, because"), rows)
    rule = f"{summary.account.composition.value} or pure, whichever still holds"
    screen.print(f"The ledger grants by its filter ({rule}), for questions chosen after seeing answers.")


def _accounts_to_json(
    summaries: Sequence[AccountSummary], reports: Sequence[Sequence[AccountantReport]], owner: bool
) -> dict[str, Any]:
    accounts = []
    for index, summary in enumerate(summaries):
        document = _account_to_json(summary, owner)
        if reports:
            document["report"] = {
                "rule": False,
                "accountants": [
                    {"accountant": v.accountant, "epsilon": v.epsilon, "adaptive": v.adaptive, "note": v.note}
                    for v in reports[index]
                ],
            }
        accounts.append(document)
    return {"accounts": accounts}


def _account_to_json(summary: AccountSummary, owner: bool) -> dict[str, Any]:
    balance, account = summary.balance, summary.account
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
        "default": {"epsilon": float(summary.epsilon), "delta": float(summary.delta), "more": summary.more},
        "expires": None if account.expires is None else account.expires.isoformat(),
    }
    if owner:
        document["failures"] = {"counted": summary.failures.counted, "suspended": summary.failures.is_suspended}
    return document


# --- the history -----------------------------------------------------------------------------------------------------


def _export_history(name: str, heads: Sequence[str], rows: Sequence[tuple[object, ...]], screen: Screen) -> None:
    """To the standard output with -, else to a file that is its owner's alone: it holds statements."""
    lines = to_csv_lines(heads, rows)
    if name == "-":
        for line in lines:
            screen.print(line)
        return
    try:
        with open(open_private_file(name, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise OperationalError(f'the history "{name}" cannot be written', detail=f"{error.strerror}.") from None
    screen.print_note(f'{len(rows)} entries were written to "{name}"')
