"""`dpsql budget`: one analyst's figures, or the owner's view of all accounts."""

from __future__ import annotations

import argparse
from contextlib import closing
from fractions import Fraction

import dpsql
from dpsql.cli.formats import Figure, print_table
from dpsql.cli.screen import Screen
from dpsql.dataset import Dataset, dataset_account, open_dataset
from dpsql.dbapi.address import read_address
from dpsql.dbapi.charge import figure, figure_left

_HEADS = ("account", "epsilon", "delta", "spent", "left", "part left", "charges")


def run(given: argparse.Namespace, screen: Screen) -> None:
    address = read_address(given.schema, given.user, {})
    with closing(open_dataset(address.path)) as dataset:
        if address.user is not None:
            screen.print(str(dataset.ledger.balance(dataset.account(address.user))))
            return
        print_table(screen, _HEADS, [_row(balance) for balance in _balances(dataset)])
    screen.print('"spent" and "left" are epsilon, at the delta of the account; repeated questions are free.')


def _balances(dataset: Dataset) -> list[dpsql.Balance]:
    accounts = [dataset_account(dataset.schema), *(dataset.account(a.name) for a in dataset.schema.analysts)]
    return [dataset.ledger.balance(account) for account in accounts]


def _row(balance: dpsql.Balance) -> tuple[object, ...]:
    return (
        balance.account,
        Figure(figure(balance.epsilon)),
        Figure(figure(balance.delta)),
        Figure(figure(balance.spent_epsilon)),
        Figure(figure_left(balance.left_epsilon, balance.epsilon)),
        Figure(f"{figure_left(100 * balance.fraction_left, Fraction(100))} %"),
        balance.charges,
    )
