"""Whether a ledger's chains are whole. It reads everything again and believes no sum.

Privacy: each admission is worked out again from the entries, so a ledger without findings never let an account lose
more than the budget that it had at that time.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.errors import IntegrityError
from dpsql.ledger import answers, chain
from dpsql.ledger.base import Binding, Charge, LedgerEntry, LedgerFinding, EntryKind
from dpsql.ledger.database import Row, Transaction, fetch_one
from dpsql.ledger.units import decode_loss
from dpsql.privacy.filters import NO_COST, NO_CUMULATIVE_LOSS, Cost, add_cost, cost_of, is_within_limits
from dpsql.privacy.loss import sum_losses


def verify_chains(db: Transaction, ledger: str, dataset: str) -> Iterator[LedgerFinding]:
    """All that was altered, as far as it can be told: an account's chain is read up to its first bad entry."""
    made_for = fetch_one(db, "SELECT unit, neighbors, group_size FROM ledger")
    binding = None if made_for is None else Binding(*made_for)
    for account in chain.list_chain_accounts(db):
        yield from _check_chain(db, ledger, account, binding)
        yield from _check_owed(db, account, dataset)
    yield from _check_journal(db)
    yield from _check_bodies(db)


def _check_owed(db: Transaction, account: str, dataset: str) -> Iterator[LedgerFinding]:
    """What an account has paid for, the dataset has, and so has the account's parent.

    Privacy: so the charges in the analysts' chains, for which they hold receipts, bear out the sums above them.
    """
    above = {dataset}
    if (last := fetch_one(db, "SELECT * FROM entry WHERE account = ? ORDER BY number DESC LIMIT 1", account)) is not None:
        try:
            above |= {chain.read_entry(last).terms.parent or dataset}
        except IntegrityError:
            return  # named before
    for payer in sorted(above - {account}):
        if answers.releases_owed(db, account, payer):
            yield LedgerFinding(payer, None, f'it has not paid for all that "{account}" has paid for')


def _check_chain(db: Transaction, ledger: str, account: str, binding: Binding | None) -> Iterator[LedgerFinding]:
    end = chain.ChainHead(0, chain.genesis_hash(ledger, account), NO_CUMULATIVE_LOSS)
    for row in db.execute("SELECT * FROM entry WHERE account = ? ORDER BY number", account):
        if row[1] > end.number + 1:
            yield LedgerFinding(account, end.number + 1, "it is missing")
            return
        entry, what = _read_next_entry(db, row, end, binding)
        if entry is None:
            yield LedgerFinding(account, row[1], what)
            return
        end = chain.ChainHead(entry.number, entry.hash, entry.spent, entry.terms)
    yield from _check_end(db, account, end)


def _read_next_entry(db: Transaction, row: Row, end: chain.ChainHead, binding: Binding | None) -> tuple[LedgerEntry | None, str]:
    """The entry that follows `end`, or what does not fit about it."""
    try:
        entry = chain.read_entry(row)
    except IntegrityError:
        return None, "it cannot be read, or it belongs to another place"
    try:
        what = _find_mismatch(db, entry, end, binding)
    except (IntegrityError, KeyError):  # by what it rests on: a member's chain
        what = "what it rests on cannot be read"
    return (entry, "") if what is None else (None, what)


def _check_end(db: Transaction, account: str, end: chain.ChainHead) -> Iterator[LedgerFinding]:
    """Entries that were cut off at the end are told by the account's row, if that was left as it was."""
    row = fetch_one(db, "SELECT entries, head FROM account WHERE name = ?", account)
    if row is not None and row[0] > end.number:
        yield LedgerFinding(account, end.number + 1, "it is missing")
    elif (row is not None or end.number) and row != (end.number, end.hash):
        yield LedgerFinding(account, None, "the end of the chain is not the last entry that was made")
    charged = fetch_one(db, "SELECT count(*) FROM entry WHERE account = ? AND kind IN ('charge', 'joined')", account)
    if fetch_one(db, "SELECT count(DISTINCT entry) FROM payment WHERE account = ?", account) != charged:
        yield LedgerFinding(account, None, "payments and charges do not match")


def _find_mismatch(db: Transaction, entry: LedgerEntry, end: chain.ChainHead, binding: Binding | None) -> str | None:
    """What does not fit about an entry that should follow `end`."""
    if entry.number != end.number + 1 or entry.previous != end.hash:
        return "it does not follow the entry before it"
    if chain.content_hash(db, entry) != entry.hash:
        return "its content was changed"
    if entry.binding != binding:
        return "it is about another unit or other neighbors"
    if (entry.kind is EntryKind.OPENED) != (end.terms is None):
        return "an account is opened once, by its first entry"
    if entry.kind is not EntryKind.CHANGED and end.terms is not None and entry.terms != end.terms:
        return "its terms differ from those that were granted"
    if entry.cost != _recompute_cost(db, entry):
        return "its cost is not that of its charges"
    if entry.spent != add_cost(end.spent, entry.cost):
        return "what was spent is not the sum"
    if entry.charges and not is_within_limits(entry.terms.limits, entry.spent):
        return "it passes the budget"
    return None if _is_paid_for(db, entry) else "what it paid for is not what it was charged for"


def _recompute_cost(db: Transaction, entry: LedgerEntry) -> Cost:
    match entry.kind:
        case EntryKind.OPENED | EntryKind.CHANGED:
            return NO_COST
        case EntryKind.CHARGE:
            return cost_of(sum_losses(entry.losses), entry.statement.epsilon, entry.statement.conversion)
        case EntryKind.JOINED:
            numbers = db.execute(
                "SELECT DISTINCT theirs.entry FROM payment AS mine JOIN payment AS theirs"
                " ON theirs.release = mine.release AND theirs.account = ?"
                " WHERE mine.account = ? AND mine.entry = ?",
                *(entry.by, entry.account, entry.number),
            )
            return joined_cost(db, entry.by, [number for (number,) in numbers], entry.charges)


def joined_cost(db: Transaction, member: str, numbers: list[int], charges: tuple[Charge, ...]) -> Cost:
    """What a parent is charged for a member's history: the losses of the releases, and the entries' own (ε, δ)."""
    costs = {entry.number: entry.cost for entry in chain.read_entries(db, member)}
    total_cost = sum((costs[number] for number in set(numbers)), NO_COST)
    return Cost(sum_losses([charge.loss for charge in charges]), total_cost.epsilon, total_cost.delta, total_cost.squares)


def _is_paid_for(db: Transaction, entry: LedgerEntry) -> bool:
    """The entry's charges are the releases that it paid for; and who asked has paid for them too."""
    rows = db.execute(
        "SELECT plan, version, epsilon, rho, delta, mechanisms,"
        " EXISTS (SELECT 1 FROM payment AS other WHERE other.release = id AND other.account = ?)"
        " FROM payment JOIN release ON release = id WHERE account = ? AND entry = ? ORDER BY id",
        *(entry.by, entry.account, entry.number),
    )
    paid = [Charge(plan, version, decode_loss(*loss), mechanisms) for plan, version, *loss, mechanisms, _ in rows]
    return sorted(paid, key=repr) == sorted(entry.charges, key=repr) and all(row[-1] for row in rows)


def _check_journal(db: Transaction) -> Iterator[LedgerFinding]:
    """The owner's chain has one line for each entry, in the order in which they were made."""
    entries = db.execute("SELECT account, number, hash FROM entry")
    missing: dict[tuple[str, int], str] = {(account, number): hashed for account, number, hashed in entries}
    bodies: dict[int, str] = dict(db.execute("SELECT id, digest FROM release WHERE digest IS NOT NULL"))
    last, previous = 0, ""
    for position, account, number, line in chain.read_journal(db):
        if account == chain.BODY_ACCOUNT:
            if line != chain.hash_journal_line(previous, account, number, bodies.get(number, "")):
                yield LedgerFinding(None, None, f"the body of release {number} is not the one that was stored first")
            last, previous = position, line
            continue
        hashed = missing.pop((account, number), None)
        if hashed is None:
            yield LedgerFinding(account, number, "the owner's chain has it, and the account's has not")
        elif position != last + 1 or line != chain.hash_journal_line(previous, account, number, hashed):
            yield LedgerFinding(account, number, "it does not fit into the owner's chain")
        last, previous = position, line
    for account, number in missing:
        yield LedgerFinding(account, number, "it is missing in the owner's chain")


def _check_bodies(db: Transaction) -> Iterator[LedgerFinding]:
    """A release is drawn once: what was stored is there as it was, or was dropped by the owner."""
    noted = {number for _, account, number, _ in chain.read_journal(db) if account == chain.BODY_ACCOUNT}
    for id, state, digest, body in db.execute("SELECT id, state, digest, body FROM release ORDER BY id"):
        actual_digest = None if body is None else chain.body_digest(bytes(body))
        if (id in noted) != (digest is not None) or (actual_digest is not None and actual_digest != digest):
            yield LedgerFinding(None, None, f"the body of release {id} is not the one that was stored first")
        elif id in noted and state not in ("stored", "void"):
            yield LedgerFinding(None, None, f"the body of release {id} was taken away, so that it would be drawn again")
