"""The stored releases as the owner sees them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dpsql.ledger import chain
from dpsql.ledger.base import Kind, Stored
from dpsql.ledger.database import Transaction
from dpsql.ledger.transcripts import PREFIX
from dpsql.ledger.units import read_loss


def releases(db: Transaction, dataset: str) -> tuple[Stored, ...]:
    """All releases, oldest first, each with the statement that was first charged for it.

    What an interactive mechanism answers is not among them: the mechanism is, and was paid for.
    """
    payers: dict[int, list[tuple[str, int]]] = {}
    for release, account, number in db.rows("SELECT release, account, entry FROM payment ORDER BY release, account"):
        payers.setdefault(release, []).append((account, number))
    statements = {
        (entry.account, entry.number): entry.statement.text
        for account in chain.accounts(db)
        for entry in chain.read_entries(db, account)
        if entry.kind is Kind.CHARGE
    }
    rows = db.rows(
        "SELECT id, version, at, state, epsilon, rho, delta, length(body) FROM release"
        f" WHERE plan NOT LIKE '{PREFIX}%' ORDER BY id"
    )
    return tuple(
        Stored(
            release=id,
            version=version,
            at=datetime.fromisoformat(at),
            state=state,
            statement=next((statements[p] for p in _first(payers.get(id, ()), dataset) if p in statements), ""),
            payers=tuple(account for account, _ in payers.get(id, ())),
            loss=read_loss(*loss),
            size=size or 0,
        )
        for id, version, at, state, *loss, size in rows
    )


def _first(paid: Sequence[tuple[str, int]], dataset: str) -> list[tuple[str, int]]:
    """The dataset pays when a release is made, so its entry has the statement of who asked first."""
    return sorted(paid, key=lambda one: one[0] != dataset)
