"""`dpsql account`: the owner resumes a suspended account, or grants what the schema says."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from dpsql.amounts import format_rounded_up
from dpsql.interfaces.dbapi.url import schema_path
from dpsql.interfaces.display.terminal import Screen
from dpsql.owner.administration import find_account_by_name, grant_budget, open_schema_ledger


def run(args: argparse.Namespace, screen: Screen) -> None:
    path = schema_path(args.schema)
    if args.action == "grant":
        _grant_budget(path, args.name, args.json, screen)
        return
    with open_schema_ledger(path) as (schema, ledger):
        account = find_account_by_name(schema, args.name)
        ledger.resume_account(account)
        message = f'the account "{account.name}" may ask again'
        screen.print(json.dumps({"account": account.name}) if args.json else message)


def _grant_budget(path: Path, name: str, as_json: bool, screen: Screen) -> None:
    account, receipt = grant_budget(path, name)
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
    terms = (
        f"epsilon {format_rounded_up(account.epsilon)}, delta {format_rounded_up(account.delta)}, "
        f"{account.composition.value}"
    )
    if receipt is None:
        screen.print(f'the budget of "{name}" stands in the ledger as the schema has it: {terms}')
    else:
        screen.print(f'the budget of "{name}" is now {terms}; receipt {receipt}')
