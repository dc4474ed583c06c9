"""The owner's audit: chains that are whole, losses that their mechanisms bear out, receipts that are there.

Three things that no one of them shows alone: `verify` that nothing was altered since it was written, the checker that
what was written is true of the mechanisms, and receipts that the ledger is the one which gave them out. An old backup
that was put back is whole in itself; what was charged after it was made is known only to those who hold a receipt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpsql.errors import IntegrityError
from dpsql.ledger.base import LedgerEntry, LedgerFinding, Ledger, Receipt
from dpsql.ledger.checker import UnreadableRecord, covers_loss, exceeds_loss, recompute_loss, neighbor_relations


@dataclass(frozen=True)
class ChainSummary:
    """How much of an account was looked at, and its end, which is worth writing down elsewhere."""

    account: str
    entries: int
    losses: int
    end: Receipt | None


@dataclass(frozen=True)
class ReceiptCheck:
    """A receipt that someone holds; without `what`, it is in the ledger."""

    receipt: Receipt
    what: str | None


@dataclass(frozen=True)
class Audit:
    chains: tuple[ChainSummary, ...]
    findings: tuple[LedgerFinding, ...]
    receipts: tuple[ReceiptCheck, ...]

    @property
    def is_clean(self) -> bool:
        return not self.findings and all(check.what is None for check in self.receipts)


def run_audit(ledger: Ledger, receipts: Sequence[Receipt] = ()) -> Audit:
    """Look at every account of the ledger, also at those that the schema has no more."""
    findings = list(ledger.verify_chains())
    chains: list[ChainSummary] = []
    for account in ledger.list_accounts():
        try:
            entries = ledger.list_entries(account)
        except IntegrityError:  # verify has named the entry that cannot be read
            chains.append(ChainSummary(account, 0, 0, None))
            continue
        findings += _check_losses(entries)
        losses = sum(len(entry.charges) for entry in entries)
        chains.append(ChainSummary(account, len(entries), losses, entries[-1].receipt if entries else None))
    return Audit(tuple(chains), tuple(findings), tuple(ReceiptCheck(receipt, _find_receipt_problem(ledger, receipt)) for receipt in receipts))


def _check_losses(entries: Sequence[LedgerEntry]) -> Iterator[LedgerFinding]:
    """What is charged other than its mechanisms lose.

    Privacy: a charge that covers the loss of its mechanisms, in a chain of which every sum and admission fits, is what
    the budget was promised for.
    """
    for entry in entries:
        for charge in entry.charges:
            try:
                lost = recompute_loss(charge.mechanisms)
            except UnreadableRecord as error:
                yield LedgerFinding(entry.account, entry.number, f"its loss cannot be computed again: {error}")
                continue
            if not neighbor_relations(charge.mechanisms) <= {_neighbor_relation(entry)}:
                yield LedgerFinding(entry.account, entry.number, "its mechanisms are for other neighbors than the ledger's")
            if not covers_loss(charge.loss, lost):
                yield LedgerFinding(entry.account, entry.number, "it is charged less than its mechanisms lose")
            elif exceeds_loss(charge.loss, lost):
                yield LedgerFinding(entry.account, entry.number, "it is charged more than twice what its mechanisms lose")


def _neighbor_relation(entry: LedgerEntry) -> tuple[int, bool]:
    return entry.binding.group_size, entry.binding.neighbors == "change_one"


def _find_receipt_problem(ledger: Ledger, receipt: Receipt) -> str | None:
    """Why a receipt is not borne out; None if it is."""
    if receipt.account not in ledger.list_accounts():
        return f'the ledger has no entry of "{receipt.account}": it is another ledger, or older than the receipt'
    try:
        entries = ledger.list_entries(receipt.account)
    except IntegrityError:
        return f'the entries of "{receipt.account}" cannot be read'
    last = entries[-1].number if entries else 0
    if receipt.number > last:
        return (
            f'the last entry of "{receipt.account}" is {last}: the ledger is older than the receipt, as an old backup'
            " is that was put back, and what was charged since then is no longer counted"
        )
    if all((entry.number, entry.hash) != (receipt.number, receipt.hash) for entry in entries):
        return (
            f'entry {receipt.number} of "{receipt.account}" is another one: the ledger went on from an old backup,'
            " or its entries were written anew"
        )
    return None


def parse_receipt(text: str) -> Receipt | None:
    """`account/number/hash`, as a receipt is shown; None if it is none."""
    account, _, rest = text.strip().rpartition("/")
    account, _, number = account.rpartition("/")
    if not account or not number.isascii() or not number.isdigit() or len(rest) != 64:
        return None
    return Receipt(account, int(number), rest.lower())
