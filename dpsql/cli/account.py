"""`dpsql account`: the owner resumes a suspended account, or verifies the ledger's chains."""

from __future__ import annotations

import argparse

from dpsql.cli.screen import Screen
from dpsql.dataset import DATASET, account_of, dataset_account, open_books
from dpsql.dbapi.address import read_address


def run(given: argparse.Namespace, screen: Screen) -> None:
    with open_books(read_address(given.schema, None, {}).path) as (schema, ledger):
        if given.action == "resume":
            account = dataset_account(schema) if given.name == DATASET else account_of(schema, given.name)
            ledger.resume(account)
            screen.print(f'the account "{account.name}" may ask again')
            return
        names = [analyst.name for analyst in schema.analysts]
        for account in [dataset_account(schema), *(account_of(schema, name) for name in names)]:
            ledger.verify_chain(account)
            screen.print(f'the chain of "{account.name}" is whole: {len(ledger.entries(account))} entries')
