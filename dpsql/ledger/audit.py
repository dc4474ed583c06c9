"""The owner's audit: chains that are whole, losses that their mechanisms bear out, receipts that are there.

Three things that no one of them shows alone: `verify` that nothing was altered since it was written, the checker that
what was written is true of the mechanisms, and receipts that the ledger is the one which gave them out. An old backup
that was put back is whole in itself; what was charged after it was made is known only to those who hold a receipt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpsql.errors import IntegrityError
from dpsql.ledger.base import Entry, Finding, Ledger, Receipt
from dpsql.ledger.checker import Unreadable, covers, exceeds, recompute, relations


@dataclass(frozen=True)
class Chain:
    """How much of an account was looked at, and its end, which is worth writing down elsewhere."""

    account: str
    entries: int
    losses: int
    end: Receipt | None


@dataclass(frozen=True)
class Held:
    """A receipt that someone holds; without `what`, it is in the ledger."""

    receipt: Receipt
    what: str | None


@dataclass(frozen=True)
class Audit:
    chains: tuple[Chain, ...]
    findings: tuple[Finding, ...]
    receipts: tuple[Held, ...]

    @property
    def well(self) -> bool:
        return not self.findings and all(held.what is None for held in self.receipts)


def audit(ledger: Ledger, receipts: Sequence[Receipt] = ()) -> Audit:
    """Look at every account of the ledger, also at those that the schema has no more."""
    findings = list(ledger.verify())
    chains: list[Chain] = []
    for account in ledger.accounts():
        try:
            entries = ledger.entries(account)
        except IntegrityError:  # verify has named the entry that cannot be read
            chains.append(Chain(account, 0, 0, None))
            continue
        findings += _losses(entries)
        losses = sum(len(entry.charges) for entry in entries)
        chains.append(Chain(account, len(entries), losses, entries[-1].receipt if entries else None))
    return Audit(tuple(chains), tuple(findings), tuple(Held(one, _missing(ledger, one)) for one in receipts))


def _losses(entries: Sequence[Entry]) -> Iterator[Finding]:
    """What is charged other than its mechanisms lose.

    Privacy: a charge that covers the loss of its mechanisms, in a chain of which every sum and admission fits, is what
    the budget was promised for.
    """
    for entry in entries:
        for charge in entry.charges:
            try:
                lost = recompute(charge.mechanisms)
            except Unreadable as error:
                yield Finding(entry.account, entry.number, f"its loss cannot be computed again: {error}")
                continue
            if not relations(charge.mechanisms) <= {_relation(entry)}:
                yield Finding(entry.account, entry.number, "its mechanisms are for other neighbors than the ledger's")
            if not covers(charge.loss, lost):
                yield Finding(entry.account, entry.number, "it is charged less than its mechanisms lose")
            elif exceeds(charge.loss, lost):
                yield Finding(entry.account, entry.number, "it is charged more than twice what its mechanisms lose")


def _relation(entry: Entry) -> tuple[int, bool]:
    return entry.binding.group_size, entry.binding.neighbors == "change_one"


def _missing(ledger: Ledger, receipt: Receipt) -> str | None:
    """Why a receipt is not borne out; None if it is."""
    if receipt.account not in ledger.accounts():
        return f'the ledger has no entry of "{receipt.account}": it is another ledger, or older than the receipt'
    try:
        entries = ledger.entries(receipt.account)
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


def read_receipt(text: str) -> Receipt | None:
    """`account/number/hash`, as a receipt is shown; None if it is none."""
    account, _, rest = text.strip().rpartition("/")
    account, _, number = account.rpartition("/")
    if not account or not number.isascii() or not number.isdigit() or len(rest) != 64:
        return None
    return Receipt(account, int(number), rest.lower())
