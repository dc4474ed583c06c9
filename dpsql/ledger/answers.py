"""The store of releases: who has paid for which, and the one body of each. Law: a charge buys one release.

`paid` is charged; `bound` has the values of its holes; `stored` has its body, and only what was read back from
here is delivered; `void` was paid for a data version that can no longer be read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpsql.errors import InternalError, StaleData
from dpsql.ledger.base import Asked
from dpsql.ledger.chain import figures, read_loss
from dpsql.privacy.loss import Loss

Errors = tuple[Fraction, ...]


@dataclass(frozen=True)
class Found:
    """A release that may serve."""

    release: int
    loss: Loss
    errors: Errors
    stored: bool


def find_or_insert(db: sqlite3.Connection, account: str, asked: Asked) -> Found:
    """The release for `asked`: one of the account's own, else an equal one of others, else a new one.

    Privacy: another's release serves only at exactly the asked loss and errors, so that the price of a
    question does not tell whether others have asked it (SOUNDNESS 9).
    """
    own = [found for found in _of_plan(db, asked, account) if _serves(found, asked)]
    if own:
        return min(own, key=lambda found: (not found.stored, _relative(found.errors, asked.errors), found.release))
    _require_readable(db, asked.version)
    equal = [f for f in _of_plan(db, asked) if (f.loss, f.errors) == (asked.loss, asked.errors)]
    return min(equal, key=lambda f: (not f.stored, f.release), default=None) or _insert(db, asked)


def _serves(found: Found, asked: Asked) -> bool:
    """A stored release serves if its errors are small enough.

    Privacy: one that has yet to run must also cover the asked loss, figure by figure, so that running it
    with the noise that was asked is paid for, whatever the mechanism.
    """
    accurate = all(mine <= wanted for mine, wanted in zip(found.errors, asked.errors, strict=True))
    return accurate and (found.stored or _covers(found.loss, asked.loss))


def _covers(paid: Loss, asked: Loss) -> bool:
    pure = paid.epsilon is None or (asked.epsilon is not None and asked.epsilon <= paid.epsilon)
    return pure and asked.rho <= paid.rho and asked.delta <= paid.delta


def _relative(errors: Errors, asked: Errors) -> Fraction:
    """How small the errors are, summed over bundles whose units differ."""
    return sum((mine / wanted for mine, wanted in zip(errors, asked, strict=True) if wanted), Fraction(0))


def _of_plan(db: sqlite3.Connection, asked: Asked, payer: str | None = None) -> list[Found]:
    rows = db.execute(
        "SELECT id, epsilon, rho, delta, errors, state = 'stored' FROM release"
        " WHERE plan = ?1 AND version = ?2 AND state <> 'void'"
        " AND (?3 IS NULL OR EXISTS (SELECT 1 FROM payment WHERE release = id AND account = ?3)) ORDER BY id",
        (asked.plan, asked.version, payer),
    )
    found = [Found(id, read_loss(*loss), _read_errors(errors), bool(stored)) for id, *loss, errors, stored in rows]
    if any(len(other.errors) != len(asked.errors) for other in found):
        raise InternalError("one plan has two numbers of bundles")
    return found


def _insert(db: sqlite3.Connection, asked: Asked) -> Found:
    cursor = db.execute(
        "INSERT INTO release (plan, version, epsilon, rho, delta, errors) VALUES (?, ?, ?, ?, ?, ?)",
        (asked.plan, asked.version, *figures(asked.loss), _errors_json(asked.errors)),
    )
    assert cursor.lastrowid is not None
    return Found(cursor.lastrowid, asked.loss, asked.errors, stored=False)


def _errors_json(errors: Errors) -> str:
    return json.dumps([str(error) for error in errors])


def _read_errors(text: str) -> Errors:
    return tuple(Fraction(error) for error in json.loads(text))


def _require_readable(db: sqlite3.Connection, version: int) -> None:
    """Before the charge: what is bought can be run. Asked whether or not others' release would serve."""
    row = db.execute("SELECT readable FROM version WHERE number = ?", (version,)).fetchone()
    if row != (1,):
        raise StaleData(f"data version {version} can no longer be read", hint="Ask again, on the current version.")


def unpaid(db: sqlite3.Connection, release: int, accounts: Iterable[str]) -> list[str]:
    rows = db.execute("SELECT account FROM payment WHERE release = ?", (release,))
    paid = {account for (account,) in rows}
    return [account for account in accounts if account not in paid]


def pay(db: sqlite3.Connection, release: int, account: str, entry: int) -> None:
    """Privacy: (release, account) is unique, so no account pays twice or is served unpaid."""
    db.execute("INSERT INTO payment VALUES (?, ?, ?)", (release, account, entry))


def read_body(db: sqlite3.Connection, release: int) -> bytes | None:
    """The stored body; None if there is none yet."""
    body, _ = _read_release(db, release)
    return body


def bind_holes(db: sqlite3.Connection, release: int, holes: bytes) -> None:
    """Keep the first values that were bound."""
    db.execute(
        "UPDATE release SET holes = COALESCE(holes, ?), state = CASE state WHEN 'paid' THEN 'bound' ELSE state END"
        " WHERE id = ? AND state <> 'void'",
        (holes, release),
    )


def read_holes(db: sqlite3.Connection, release: int) -> bytes:
    _, holes = _read_release(db, release)
    if holes is None:
        raise StaleData("the data version of this release can no longer be read", hint="Ask again.")
    return holes


def store(db: sqlite3.Connection, release: int, body: bytes, errors: Errors | None) -> None:
    """Keep the first body; a release that is void keeps none."""
    db.execute(
        "UPDATE release SET body = ?, errors = COALESCE(?, errors), state = 'stored'"
        " WHERE id = ? AND body IS NULL AND state <> 'void'",
        (body, None if errors is None else _errors_json(errors), release),
    )


def read_stored(db: sqlite3.Connection, release: int) -> bytes:
    body = read_body(db, release)
    if body is None:
        raise StaleData("the data version of this release can no longer be read", hint="Ask again.")
    return body


def _read_release(db: sqlite3.Connection, release: int) -> tuple[bytes | None, bytes | None]:
    row: Any = db.execute("SELECT body, holes FROM release WHERE id = ?", (release,)).fetchone()
    if row is None:
        raise InternalError(f"there is no release {release}")
    return row[0], row[1]


def void(db: sqlite3.Connection, version: int) -> None:
    """Releases that were never stored are lost with their version; stored ones need no data, and stay."""
    db.execute("UPDATE version SET readable = 0 WHERE number = ?", (version,))
    db.execute("UPDATE release SET state = 'void' WHERE version = ? AND body IS NULL", (version,))
