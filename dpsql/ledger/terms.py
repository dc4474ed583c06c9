"""Writing entries: accounts are opened, their terms change, they are charged, they join a parent.

Law: what the owner grants is recorded before it counts. A schema that grants more than the ledger has recorded is
refused until the owner grants it by an act of its own; one that grants less counts at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from dpsql.ledger import answers, chain
from dpsql.ledger.base import Account, Binding, Charge, Entry, Kind, Statement, Terms
from dpsql.ledger.budget import refuse_joining, refuse_terms
from dpsql.ledger.database import Transaction
from dpsql.ledger.verify import joined_cost
from dpsql.privacy.filters import NO_COST, Cost, Spent, admit


@dataclass(frozen=True)
class Bookkeeper:
    """Writes entries in one transaction."""

    db: Transaction
    ledger: str
    binding: Binding
    now: datetime
    schema: str
    entropy: Callable[[int], bytes]
    payers: Callable[[Account], tuple[Account, ...]]

    def settled(self, account: Account) -> chain.Head:
        """The end of an account's chain, once its terms are recorded as they are."""
        head = self._head(account.name)
        if head.terms == account.terms:
            return head
        if head.terms is not None and not self._is_less(account, head.terms):
            raise refuse_terms(account, head.terms)
        return self._recorded(account, head)

    def in_force(self, account: Account, head: chain.Head) -> Account:
        """The account with the terms that count: those of the schema, unless they grant what is not recorded."""
        if head.terms is None or self._is_less(account, head.terms):
            return account
        terms = head.terms
        return replace(
            account, epsilon=terms.epsilon, delta=terms.delta, composition=terms.composition, parent=terms.parent
        )

    def _is_less(self, account: Account, recorded: Terms) -> bool:
        return account.terms.within(recorded) and self._keeps_parent(account, recorded)

    def _keeps_parent(self, account: Account, recorded: Terms) -> bool:
        """Who leaves a parent has more to spend; who joins one has less."""
        return recorded.parent in {None, *(payer.name for payer in self.payers(account))}

    def granted(self, account: Account) -> Entry | None:
        """The same, as the owner's act: whatever the terms were."""
        head = self._head(account.name)
        if head.terms == account.terms:
            return None
        self._recorded(account, head)
        *_, last = chain.read_entries(self.db, account.name)
        return last

    def charge(
        self,
        payer: Account,
        head: chain.Head,
        by: str,
        statement: Statement,
        charges: tuple[Charge, ...],
        cost: Cost,
        spent: Spent,
    ) -> Entry:
        return self._append(Kind.CHARGE, payer.name, payer.terms, head, by, statement, charges, cost, spent)

    def _recorded(self, account: Account, head: chain.Head) -> chain.Head:
        kind = Kind.OPENED if head.terms is None else Kind.CHANGED
        statement = Statement("", schema=self.schema)
        self._append(kind, account.name, account.terms, head, account.name, statement, (), NO_COST, head.spent)
        if head.terms is not None and head.terms.parent != account.parent:
            for parent in self.payers(account)[1:]:
                self._join(account, parent)
        return self._head(account.name)

    def _join(self, member: Account, parent: Account) -> None:
        """Charge a parent what its new member has paid for and it has not.

        Privacy: a parent's budget is that of all its members together, for everything that they know.
        """
        owed = answers.owed(self.db, member.name, parent.name)
        if not owed:
            return
        head = self.settled(parent)
        charges = tuple(charge for _, _, charge in owed)
        cost = joined_cost(self.db, member.name, [number for _, number, _ in owed], charges)
        spent = admit(parent.terms.limits, head.spent, cost)
        if spent is None:
            raise refuse_joining(member.name, parent.name)
        for release, _, _ in owed:
            answers.pay(self.db, release, parent.name, head.number + 1)
        statement = Statement("", schema=self.schema)
        self._append(Kind.JOINED, parent.name, parent.terms, head, member.name, statement, charges, cost, spent)

    def _head(self, account: str) -> chain.Head:
        return chain.read_head(self.db, self.ledger, account)

    def _append(
        self,
        kind: Kind,
        account: str,
        terms: Terms,
        head: chain.Head,
        by: str,
        statement: Statement,
        charges: tuple[Charge, ...],
        cost: Cost,
        spent: Spent,
    ) -> Entry:
        # Lone surrogates, which a client may send, have no UTF-8 form.
        text = statement.text.encode("utf-8", "backslashreplace").decode()
        entry = Entry(
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
        return chain.append(self.db, entry)
