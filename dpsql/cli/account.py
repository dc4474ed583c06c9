"""`dpsql account`: the owner resumes a suspended account, or grants what the schema says."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from dpsql.dbapi.address import schema_path
from dpsql.display.screen import Screen
from dpsql.figures import short_up
from dpsql.owner.books import account_named, grant, open_books


def run(given: argparse.Namespace, screen: Screen) -> None:
    path = schema_path(given.schema)
    if given.action == "grant":
        _grant(path, given.name, given.json, screen)
        return
    with open_books(path) as (schema, ledger):
        account = account_named(schema, given.name)
        ledger.resume(account)
        told = f'the account "{account.name}" may ask again'
        screen.print(json.dumps({"account": account.name}) if given.json else told)


def _grant(path: Path, name: str, as_json: bool, screen: Screen) -> None:
    account, receipt = grant(path, name)
    if as_json:
        document = {
            "account": account.name,
            "epsilon": float(account.epsilon),
            "delta": float(account.delta),
            "composition": account.composition.value,
            "receipt": None if receipt is None else str(receipt),
        }
        screen.print(json.dumps(document, indent=2))
        return
    terms = f"epsilon {short_up(account.epsilon)}, delta {short_up(account.delta)}, {account.composition.value}"
    if receipt is None:
        screen.print(f'the budget of "{name}" stands in the ledger as the schema has it: {terms}')
    else:
        screen.print(f'the budget of "{name}" is now {terms}; receipt {receipt}')
