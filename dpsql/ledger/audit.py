"""The owner's audit: chains that are whole, losses that their mechanisms bear out, receipts that are there.

Three things that no one of them shows alone: `verify` that nothing was altered since it was written, the checker that
what was written is true of the mechanisms, and receipts that the ledger is the one which gave them out. An old backup
that was put back is whole in itself; what was charged after it was made is known only to those who hold a receipt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpsql.errors import IntegrityError
from dpsql.ledger import hash_chain, release_store
from dpsql.ledger.backend import Row, Transaction, fetch_one
from dpsql.ledger.base import Binding, EntryKind, Ledger, LedgerEntry, LedgerFinding, Receipt, RecordedCharge
from dpsql.ledger.hash_chain import decode_loss
from dpsql.ledger.loss_checker.checker import (
    UnreadableRecord,
    covers_loss,
    exceeds_loss,
    neighbor_relations,
    recompute_loss,
)
from dpsql.privacy.filters import (
    NO_COST,
    NO_CUMULATIVE_LOSS,
    Cost,
    add_cost,
    cost_of,
    cost_of_losses,
    is_within_limits,
)
from dpsql.privacy.loss import sum_losses


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
    return Audit(
        tuple(chains),
        tuple(findings),
        tuple(ReceiptCheck(receipt, _find_receipt_problem(ledger, receipt)) for receipt in receipts),
    )


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
                yield LedgerFinding(
                    entry.account, entry.number, "its mechanisms are for other neighbors than the ledger's"
                )
            if not covers_loss(charge.loss, lost):
                yield LedgerFinding(entry.account, entry.number, "it is charged less than its mechanisms lose")
            elif exceeds_loss(charge.loss, lost):
                yield LedgerFinding(
                    entry.account, entry.number, "it is charged more than twice what its mechanisms lose"
                )


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


# Whether a ledger's chains are whole. It reads everything again and believes no sum.
#
# Privacy: each admission is worked out again from the entries, so a ledger without findings never let an account lose
# more than the budget that it had at that time.


def verify_chains(db: Transaction, ledger: str, dataset: str) -> Iterator[LedgerFinding]:
    """All that was altered, as far as it can be told: an account's chain is read up to its first bad entry."""
    made_for = fetch_one(db, "SELECT unit, neighbors, group_size FROM ledger")
    binding = None if made_for is None else Binding(*made_for)
    for account in hash_chain.list_chain_accounts(db):
        yield from _check_chain(db, ledger, account, binding)
        yield from _check_owed(db, account, dataset)
    yield from _check_journal(db)
    yield from _check_bodies(db)


def _check_owed(db: Transaction, account: str, dataset: str) -> Iterator[LedgerFinding]:
    """What an account has paid for, the dataset has, and so has the account's parent.

    Privacy: so the charges in the analysts' chains, for which they hold receipts, bear out the sums above them.
    """
    above = {dataset}
    if (
        last := fetch_one(db, "SELECT * FROM entry WHERE account = ? ORDER BY number DESC LIMIT 1", account)
    ) is not None:
        try:
            above |= {hash_chain.read_entry(last).terms.parent or dataset}
        except IntegrityError:
            return  # named before
    for payer in sorted(above - {account}):
        if release_store.releases_owed(db, account, payer):
            yield LedgerFinding(payer, None, f'it has not paid for all that "{account}" has paid for')


def _check_chain(db: Transaction, ledger: str, account: str, binding: Binding | None) -> Iterator[LedgerFinding]:
    end = hash_chain.ChainHead(0, hash_chain.genesis_hash(ledger, account), NO_CUMULATIVE_LOSS)
    for row in db.execute("SELECT * FROM entry WHERE account = ? ORDER BY number", account):
        if row[1] > end.number + 1:
            yield LedgerFinding(account, end.number + 1, "it is missing")
            return
        entry, what = _read_next_entry(db, row, end, binding)
        if entry is None:
            yield LedgerFinding(account, row[1], what)
            return
        end = hash_chain.ChainHead(entry.number, entry.hash, entry.spent, entry.terms)
    yield from _check_end(db, account, end)


def _read_next_entry(
    db: Transaction, row: Row, end: hash_chain.ChainHead, binding: Binding | None
) -> tuple[LedgerEntry | None, str]:
    """The entry that follows `end`, or what does not fit about it."""
    try:
        entry = hash_chain.read_entry(row)
    except IntegrityError:
        return None, "it cannot be read, or it belongs to another place"
    try:
        what = _find_mismatch(db, entry, end, binding)
    except (IntegrityError, KeyError):  # by what it rests on: a member's chain
        what = "what it rests on cannot be read"
    return (entry, "") if what is None else (None, what)


def _check_end(db: Transaction, account: str, end: hash_chain.ChainHead) -> Iterator[LedgerFinding]:
    """Entries that were cut off at the end are told by the account's row, if that was left as it was."""
    row = fetch_one(db, "SELECT entries, head FROM account WHERE name = ?", account)
    if row is not None and row[0] > end.number:
        yield LedgerFinding(account, end.number + 1, "it is missing")
    elif (row is not None or end.number) and row != (end.number, end.hash):
        yield LedgerFinding(account, None, "the end of the chain is not the last entry that was made")
    charged = fetch_one(db, "SELECT count(*) FROM entry WHERE account = ? AND kind IN ('charge', 'joined')", account)
    if fetch_one(db, "SELECT count(DISTINCT entry) FROM payment WHERE account = ?", account) != charged:
        yield LedgerFinding(account, None, "payments and charges do not match")


def _find_mismatch(
    db: Transaction, entry: LedgerEntry, end: hash_chain.ChainHead, binding: Binding | None
) -> str | None:
    """What does not fit about an entry that should follow `end`."""
    if entry.number != end.number + 1 or entry.previous != end.hash:
        return "it does not follow the entry before it"
    if hash_chain.content_hash(db, entry) != entry.hash:
        return "its content was changed"
    if entry.binding != binding:
        return "it is about another unit or other neighbors"
    if (entry.kind is EntryKind.OPENED) != (end.terms is None):
        return "an account is opened once, by its first entry"
    if entry.kind is not EntryKind.CHANGED and end.terms is not None and entry.terms != end.terms:
        return "its terms differ from those that were granted"
    if entry.cost not in _recompute_costs(db, entry):
        return "its cost is not that of its charges"
    if entry.spent != add_cost(end.spent, entry.cost):
        return "what was spent is not the sum"
    if entry.charges and not is_within_limits(entry.terms.limits, entry.spent):
        return "it passes the budget"
    return None if _is_paid_for(db, entry) else "what it paid for is not what it was charged for"


def _recompute_costs(db: Transaction, entry: LedgerEntry) -> tuple[Cost, ...]:
    """What an entry may have cost: of several losses, older ledgers charged the sum as one."""
    match entry.kind:
        case EntryKind.OPENED | EntryKind.CHANGED:
            return (NO_COST,)
        case EntryKind.CHARGE:
            losses, statement = entry.losses, entry.statement
            return (
                cost_of_losses(losses, statement.epsilon, statement.conversion),
                cost_of(sum_losses(losses), statement.epsilon, statement.conversion),
            )
        case EntryKind.JOINED:
            numbers = db.execute(
                "SELECT DISTINCT theirs.entry FROM payment AS mine JOIN payment AS theirs"
                " ON theirs.release = mine.release AND theirs.account = ?"
                " WHERE mine.account = ? AND mine.entry = ?",
                *(entry.by, entry.account, entry.number),
            )
            return (joined_cost(db, entry.by, [number for (number,) in numbers], entry.charges),)


def joined_cost(db: Transaction, member: str, numbers: list[int], charges: tuple[RecordedCharge, ...]) -> Cost:
    """What a parent is charged for a member's history: the losses of the releases, and the entries' own (ε, δ)."""
    costs = {entry.number: entry.cost for entry in hash_chain.read_entries(db, member)}
    total_cost = sum((costs[number] for number in set(numbers)), NO_COST)
    return Cost(
        sum_losses([charge.loss for charge in charges]), total_cost.epsilon, total_cost.delta, total_cost.squares
    )


def _is_paid_for(db: Transaction, entry: LedgerEntry) -> bool:
    """The entry's charges are the releases that it paid for; and who asked has paid for them too."""
    rows = db.execute(
        "SELECT plan, version, epsilon, rho, delta, mechanisms,"
        " EXISTS (SELECT 1 FROM payment AS other WHERE other.release = id AND other.account = ?)"
        " FROM payment JOIN release ON release = id WHERE account = ? AND entry = ? ORDER BY id",
        *(entry.by, entry.account, entry.number),
    )
    paid = [
        RecordedCharge(plan, version, decode_loss(*loss), mechanisms) for plan, version, *loss, mechanisms, _ in rows
    ]
    return sorted(paid, key=repr) == sorted(entry.charges, key=repr) and all(row[-1] for row in rows)


def _check_journal(db: Transaction) -> Iterator[LedgerFinding]:
    """The owner's chain has one line for each entry, in the order in which they were made."""
    entries = db.execute("SELECT account, number, hash FROM entry")
    missing: dict[tuple[str, int], str] = {(account, number): hashed for account, number, hashed in entries}
    bodies: dict[int, str] = dict(db.execute("SELECT id, digest FROM release WHERE digest IS NOT NULL"))
    last, previous = 0, ""
    for position, account, number, line in hash_chain.read_journal(db):
        if account == hash_chain.BODY_ACCOUNT:
            if line != hash_chain.hash_journal_line(previous, account, number, bodies.get(number, "")):
                yield LedgerFinding(None, None, f"the body of release {number} is not the one that was stored first")
            last, previous = position, line
            continue
        hashed = missing.pop((account, number), None)
        if hashed is None:
            yield LedgerFinding(account, number, "the owner's chain has it, and the account's has not")
        elif position != last + 1 or line != hash_chain.hash_journal_line(previous, account, number, hashed):
            yield LedgerFinding(account, number, "it does not fit into the owner's chain")
        last, previous = position, line
    for account, number in missing:
        yield LedgerFinding(account, number, "it is missing in the owner's chain")


def _check_bodies(db: Transaction) -> Iterator[LedgerFinding]:
    """A release is drawn once: what was stored is there as it was, or was dropped by the owner."""
    noted = {number for _, account, number, _ in hash_chain.read_journal(db) if account == hash_chain.BODY_ACCOUNT}
    for id, state, digest, body in db.execute("SELECT id, state, digest, body FROM release ORDER BY id"):
        actual_digest = None if body is None else hash_chain.body_digest(bytes(body))
        if (id in noted) != (digest is not None) or (actual_digest is not None and actual_digest != digest):
            yield LedgerFinding(None, None, f"the body of release {id} is not the one that was stored first")
        elif id in noted and state not in ("stored", "void"):
            yield LedgerFinding(None, None, f"the body of release {id} was taken away, so that it would be drawn again")
