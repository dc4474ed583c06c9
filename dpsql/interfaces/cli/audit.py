"""`dpsql audit`: whether the ledger is whole, its losses are true, and it knows the receipts that someone holds."""

from __future__ import annotations

import argparse
import json
from typing import Any

from dpsql.interfaces.dbapi.url import schema_path
from dpsql.interfaces.display.terminal import RED, Screen
from dpsql.owner.administration import Audit, audit_ledger

_EXIT_FINDINGS = 3


def run(args: argparse.Namespace, screen: Screen) -> int:
    """0 where all is well, 3 where something was found."""
    audit = audit_ledger(schema_path(args.schema), args.receipt)
    if args.json:
        screen.print(json.dumps(_audit_to_json(audit), indent=2))
    else:
        _print_audit(audit, screen)
    return 0 if audit.is_clean else _EXIT_FINDINGS


def _print_audit(audit: Audit, screen: Screen) -> None:
    for chain in audit.chains:
        entries = "1 entry" if chain.entries == 1 else f"{chain.entries} entries"
        end = "" if chain.end is None else f", up to {chain.end}"
        screen.print(f'"{chain.account}": {entries}{end}')
    for finding in audit.findings:
        screen.print(f"{screen.style_output('FOUND:', RED)}  {finding}")
    for check in audit.receipts:
        where = "is in the ledger" if check.what is None else "is not in the ledger"
        screen.print(f"receipt {check.receipt} {where}")
        if check.what is not None:
            screen.print(f"{screen.style_output('FOUND:', RED)}  {check.what}")
    if not audit.findings:
        losses = sum(chain.losses for chain in audit.chains)
        screen.print(f"The chains are whole, and {losses} losses are covered as computed again from their mechanisms.")


def _audit_to_json(audit: Audit) -> dict[str, Any]:
    return {
        "well": audit.is_clean,
        "accounts": [
            {
                "account": chain.account,
                "entries": chain.entries,
                "losses": chain.losses,
                "end": None if chain.end is None else str(chain.end),
            }
            for chain in audit.chains
        ],
        "findings": [{"account": f.account, "number": f.number, "what": f.what} for f in audit.findings],
        "receipts": [{"receipt": str(h.receipt), "held": h.what is None, "what": h.what} for h in audit.receipts],
    }
