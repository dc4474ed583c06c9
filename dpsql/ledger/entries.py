"""Writes entries: an account is opened, its terms change, it is charged, it joins a parent.

Law: what the owner grants is recorded before it counts. A schema that grants more than the ledger has recorded is
refused until the owner grants it by an act of its own; one that grants less counts at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from dpsql.ledger import hash_chain, release_store
from dpsql.ledger.audit import joined_cost
from dpsql.ledger.backend import Transaction
from dpsql.ledger.base import Account, AccountTerms, Binding, ChargedStatement, EntryKind, LedgerEntry, RecordedCharge
from dpsql.ledger.budget import joining_refused_error, unrecorded_terms_error
from dpsql.privacy.filters import NO_COST, Cost, CumulativeLoss, admit_charge


@dataclass(frozen=True)
class EntryWriter:
    """Writes entries in one transaction."""

    db: Transaction
    ledger: str
    binding: Binding
    now: datetime
    schema: str
    entropy: Callable[[int], bytes]
    payers: Callable[[Account], tuple[Account, ...]]

    def settle_terms(self, account: Account) -> hash_chain.ChainHead:
        """The end of an account's chain, once its terms are recorded as they are."""
        head = self._read_head(account.name)
        if head.terms == account.terms:
            return head
        if head.terms is not None and not self._is_within_recorded(account, head.terms):
            raise unrecorded_terms_error(account, head.terms)
        return self._record_terms(account, head)

    def account_in_force(self, account: Account, head: hash_chain.ChainHead) -> Account:
        """The account with the terms that count: those of the schema, unless they grant what is not recorded."""
        if head.terms is None or self._is_within_recorded(account, head.terms):
            return account
        terms = head.terms
        return replace(
            account, epsilon=terms.epsilon, delta=terms.delta, composition=terms.composition, parent=terms.parent
        )

    def _is_within_recorded(self, account: Account, recorded: AccountTerms) -> bool:
        return account.terms.is_within(recorded) and self._keeps_parent(account, recorded)

    def _keeps_parent(self, account: Account, recorded: AccountTerms) -> bool:
        """Whether the recorded parent still pays: leaving one would give more to spend, joining one gives less."""
        return recorded.parent in {None, *(payer.name for payer in self.payers(account))}

    def grant_terms(self, account: Account) -> LedgerEntry | None:
        """The same, as the owner's act: whatever the terms were."""
        head = self._read_head(account.name)
        if head.terms == account.terms:
            return None
        self._record_terms(account, head)
        *_, last = hash_chain.read_entries(self.db, account.name)
        return last

    def append_charge(
        self,
        payer: Account,
        head: hash_chain.ChainHead,
        by: str,
        statement: ChargedStatement,
        charges: tuple[RecordedCharge, ...],
        cost: Cost,
        spent: CumulativeLoss,
    ) -> LedgerEntry:
        return self._append_entry(EntryKind.CHARGE, payer.name, payer.terms, head, by, statement, charges, cost, spent)

    def _record_terms(self, account: Account, head: hash_chain.ChainHead) -> hash_chain.ChainHead:
        kind = EntryKind.OPENED if head.terms is None else EntryKind.CHANGED
        statement = ChargedStatement("", schema=self.schema)
        self._append_entry(kind, account.name, account.terms, head, account.name, statement, (), NO_COST, head.spent)
        if head.terms is not None and head.terms.parent != account.parent:
            for parent in self.payers(account)[1:]:
                self._charge_new_parent(account, parent)
        return self._read_head(account.name)

    def _charge_new_parent(self, member: Account, parent: Account) -> None:
        """Charge a parent what its new member has paid for and it has not.

        Privacy: a parent's budget is that of all its members together, for everything that they know.
        """
        owed = release_store.releases_owed(self.db, member.name, parent.name)
        if not owed:
            return
        head = self.settle_terms(parent)
        charges = tuple(charge for _, _, charge in owed)
        cost = joined_cost(self.db, member.name, [number for _, number, _ in owed], charges)
        spent = admit_charge(parent.terms.limits, head.spent, cost)
        if spent is None:
            raise joining_refused_error(member.name, parent.name)
        for release, _, _ in owed:
            release_store.record_payment(self.db, release, parent.name, head.number + 1)
        statement = ChargedStatement("", schema=self.schema)
        self._append_entry(
            EntryKind.JOINED, parent.name, parent.terms, head, member.name, statement, charges, cost, spent
        )

    def _read_head(self, account: str) -> hash_chain.ChainHead:
        return hash_chain.read_head(self.db, self.ledger, account)

    def _append_entry(
        self,
        kind: EntryKind,
        account: str,
        terms: AccountTerms,
        head: hash_chain.ChainHead,
        by: str,
        statement: ChargedStatement,
        charges: tuple[RecordedCharge, ...],
        cost: Cost,
        spent: CumulativeLoss,
    ) -> LedgerEntry:
        # Lone surrogates, which a client may send, have no UTF-8 form.
        text = statement.text.encode("utf-8", "backslashreplace").decode()
        entry = LedgerEntry(
            account=account,
            number=head.number + 1,
            kind=kind,
            at=self.now,
            by=by,
            statement=replace(statement, text=text),
            binding=self.binding,
            terms=terms,
            charges=charges,
            cost=cost,
            spent=spent,
            nonce=self.entropy(32),
            previous=head.hash,
            hash="",
        )
        return hash_chain.append_entry(self.db, entry)
