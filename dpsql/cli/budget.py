"""`dpsql budget`: one analyst's figures, or the owner's view of all accounts."""

from __future__ import annotations

import argparse
from fractions import Fraction

import dpsql
from dpsql.cli.formats import Figure, print_table
from dpsql.cli.screen import Screen
from dpsql.dataset import DATASET, account_of, dataset_account, open_books
from dpsql.dbapi.address import read_address
from dpsql.figures import short_left, short_up

_HEADS = ("account", "epsilon", "delta", "spent", "left", "part left", "charges", "failures")


def run(given: argparse.Namespace, screen: Screen) -> None:
    address = read_address(given.schema, given.user, {})
    with open_books(address.path) as (schema, ledger):
        if address.user is not None:
            screen.print(str(ledger.balance(account_of(schema, address.user))))
            return
        names = (analyst.name for analyst in schema.analysts)
        accounts = [dataset_account(schema), *(account_of(schema, name) for name in names)]
        failures = [ledger.failures_of(a, parent=bool(schema.analysts) and a.name == DATASET) for a in accounts]
        rows = [_row(ledger.balance(a), str(f)) for a, f in zip(accounts, failures, strict=True)]
        print_table(screen, _HEADS, rows)
    suspended = [account.name for account, counted in zip(accounts, failures, strict=True) if counted.suspended]
    screen.print('"spent" and "left" are epsilon, at the delta of the account; repeated questions are free.')
    for name in suspended:
        screen.print(f'"{name}" is suspended until: dpsql account resume {given.schema} {name}')
    if any(counted.counted for counted in failures):
        screen.print("Why runs failed is written to FILE by queries with DPSQL_LOG=FILE; it may hold private values.")


def _row(balance: dpsql.Balance, failures: str) -> tuple[object, ...]:
    return (
        balance.account,
        Figure(short_up(balance.epsilon)),
        Figure(short_up(balance.delta)),
        Figure(short_up(balance.spent_epsilon)),
        Figure(short_left(balance.left_epsilon, balance.epsilon)),
        Figure(f"{short_left(100 * balance.fraction_left, Fraction(100))} %"),
        balance.charges,
        failures,
    )
