"""The answers of interactive mechanisms: each is stored, in its turn and once, before it is delivered.

Law: the charge of such a mechanism buys what one process asks of it, and is never redeemed. Its release is void from
the start (`base.Asked.once`), so that no question finds it; its answers are bodies of their own, under names that no
plan has, kept, noted in the owner's chain and dropped like those of other releases. The mechanism has paid for them.

Privacy: numbers are taken once. A second process that goes on with the same noise, as after a fork, so finds its number
taken, and delivers nothing (SOUNDNESS 7).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime

from dpsql.errors import IntegrityError, InternalError
from dpsql.ledger import answers, leases
from dpsql.ledger.base import Asked
from dpsql.ledger.database import Transaction, one
from dpsql.privacy.loss import NO_LOSS

PREFIX = "answer "
"""Of the names of answers: plans are hashes."""
_NOTHING = '{"mechanisms":1}'


class Transcripts:
    """The part of a ledger that is about them; see `base.Ledger`."""

    def _read(self) -> AbstractContextManager[Transaction]:
        raise NotImplementedError

    def _write(self) -> AbstractContextManager[Transaction]:
        raise NotImplementedError

    def tell(self, release: int, number: int, body: bytes) -> bytes:
        """Store an interactive mechanism's next answer; the one to deliver, read back after the commit."""
        with self._write() as db:
            tell(db, release, number, body)
            leases.end(db, release)
        told = self.told(release, number)
        if told is None:
            raise InternalError("an answer that was stored is not there")
        return told

    def told(self, release: int, number: int) -> bytes | None:
        """The answer to question `number`; None if there is none."""
        with self._read() as db:
            found = _find(db, release, number)
            return None if found is None else answers.read_body(db, found)


def tell(db: Transaction, release: int, number: int, body: bytes) -> None:
    """Keep the answer to question `number`, if it is the next one."""
    row = one(db, "SELECT version, at FROM release WHERE id = ? AND state = 'void'", release)
    if row is None:
        raise InternalError(f"release {release} is no interactive mechanism")
    if _find(db, release, number) is not None or (number > 1 and _find(db, release, number - 1) is None):
        raise IntegrityError(
            "the mechanism has ended: another process went on with it", hint="Begin a new one, which is charged anew."
        )
    version, at = row  # of the charge: when an answer came would tell how long it took
    asked = Asked(_name(release, number), version, NO_LOSS, (), mechanisms=_NOTHING)
    answers.store(db, answers.insert(db, asked, datetime.fromisoformat(at)).release, body, None)


def _name(release: int, number: int) -> str:
    return f"{PREFIX}{number} of release {release}"


def _find(db: Transaction, release: int, number: int) -> int | None:
    row = one(db, "SELECT id FROM release WHERE plan = ?", _name(release, number))
    return None if row is None else int(row[0])
