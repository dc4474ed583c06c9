"""The stored releases as the owner sees them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dpsql.ledger import chain
from dpsql.ledger.base import EntryKind, ListedRelease
from dpsql.ledger.database import Transaction
from dpsql.ledger.transcripts import ANSWER_PREFIX
from dpsql.ledger.units import decode_loss


def read_all_releases(db: Transaction, dataset: str) -> tuple[ListedRelease, ...]:
    """All releases, oldest first, each with the statement that was first charged for it.

    What an interactive mechanism answers is not among them: the mechanism is, and was paid for.
    """
    payers: dict[int, list[tuple[str, int]]] = {}
    for release, account, number in db.execute("SELECT release, account, entry FROM payment ORDER BY release, account"):
        payers.setdefault(release, []).append((account, number))
    statements = {
        (entry.account, entry.number): entry.statement.text
        for account in chain.list_chain_accounts(db)
        for entry in chain.read_entries(db, account)
        if entry.kind is EntryKind.CHARGE
    }
    rows = db.execute(
        "SELECT id, version, at, state, epsilon, rho, delta, length(body) FROM release"
        f" WHERE plan NOT LIKE '{ANSWER_PREFIX}%' ORDER BY id"
    )
    return tuple(
        ListedRelease(
            release=id,
            version=version,
            at=datetime.fromisoformat(at),
            state=state,
            statement=next((statements[p] for p in _dataset_first(payers.get(id, ()), dataset) if p in statements), ""),
            payers=tuple(account for account, _ in payers.get(id, ())),
            loss=decode_loss(*loss),
            size=size or 0,
        )
        for id, version, at, state, *loss, size in rows
    )


def _dataset_first(paid: Sequence[tuple[str, int]], dataset: str) -> list[tuple[str, int]]:
    """The dataset pays when a release is made, so its entry has the statement of who asked first."""
    return sorted(paid, key=lambda payment: payment[0] != dataset)
