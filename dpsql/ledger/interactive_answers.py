"""The answers of interactive mechanisms: each is stored, in its turn and once, before it is delivered.

Law: the charge of such a mechanism buys what one process asks of it, and is never redeemed. Its release is void from
the start (`base.ReleaseRequest.once`), so that no question finds it; its answers are bodies of their own, under names
that no plan has, kept, noted in the owner's chain and dropped like those of other releases. The mechanism has paid for
them.

Privacy: numbers are taken once. A second process that goes on with the same noise, as after a fork, so finds its number
taken, and delivers nothing (SOUNDNESS 7).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime

from dpsql.errors import IntegrityError, InternalError
from dpsql.ledger import release_store
from dpsql.ledger.backend import Transaction, fetch_one
from dpsql.ledger.base import ReleaseRequest
from dpsql.privacy.loss import NO_LOSS

ANSWER_PREFIX = "answer "
"""Of the names of answers: plans are hashes."""
_NO_MECHANISMS = '{"mechanisms":1}'


class InteractiveAnswers:
    """The part of a ledger that is about them; see `base.Ledger`."""

    def _read_transaction(self) -> AbstractContextManager[Transaction]:
        raise NotImplementedError

    def _write_transaction(self) -> AbstractContextManager[Transaction]:
        raise NotImplementedError

    def store_answer(self, release: int, number: int, body: bytes) -> bytes:
        """Store an interactive mechanism's next answer; the one to deliver, read back after the commit."""
        with self._write_transaction() as db:
            append_answer(db, release, number, body)
            release_store.end_lease(db, release)
        answer = self.read_answer(release, number)
        if answer is None:
            raise InternalError("an answer that was stored is not there")
        return answer

    def read_answer(self, release: int, number: int) -> bytes | None:
        """The answer to question `number`; None if there is none."""
        with self._read_transaction() as db:
            answer_release = _find_answer(db, release, number)
            return None if answer_release is None else release_store.read_body(db, answer_release)


def append_answer(db: Transaction, release: int, number: int, body: bytes) -> None:
    """Keep the answer to question `number`, if it is the next one."""
    row = fetch_one(db, "SELECT version, at FROM release WHERE id = ? AND state = 'void'", release)
    if row is None:
        raise InternalError(f"release {release} is no interactive mechanism")
    if _find_answer(db, release, number) is not None or (number > 1 and _find_answer(db, release, number - 1) is None):
        raise IntegrityError(
            "the mechanism has ended: another process went on with it", hint="Begin a new one, which is charged anew."
        )
    version, at = row  # of the charge: when an answer came would tell how long it took
    request = ReleaseRequest(_answer_plan(release, number), version, NO_LOSS, (), mechanisms=_NO_MECHANISMS)
    release_store.store_body(
        db, release_store.insert_release(db, request, datetime.fromisoformat(at)).release, body, None
    )


def _answer_plan(release: int, number: int) -> str:
    return f"{ANSWER_PREFIX}{number} of release {release}"


def _find_answer(db: Transaction, release: int, number: int) -> int | None:
    row = fetch_one(db, "SELECT id FROM release WHERE plan = ?", _answer_plan(release, number))
    return None if row is None else int(row[0])
