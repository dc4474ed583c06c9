"""The store of releases: who has paid for which, who runs it, and its one body. Law: a charge buys one release.

`paid` is charged; `bound` has the values of its holes; `stored` has its body, and only what was read back from
here is delivered; `void` is of an older data version, past its owner's retention, or an interactive mechanism's, of
which only the process that began it can ask (`interactive_answers.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from dpsql.errors import InternalError, StaleData
from dpsql.ledger import hash_chain
from dpsql.ledger.backend import Row, Transaction, fetch_one
from dpsql.ledger.base import OwnRelease, Receipt, RecordedCharge, ReleaseRequest, RunLease
from dpsql.ledger.hash_chain import canonical_mechanisms, decode_loss, encode_loss
from dpsql.privacy.loss import Loss

BundleErrors = tuple[Fraction, ...]
HiddenReleases = frozenset[int]
"""Stored releases whose run is not yet seen to have ended: they count as not stored."""

_MAX_OWN_RELEASES = 64
"""Releases that are looked at for a derivation, the latest first."""


@dataclass(frozen=True)
class CandidateRelease:
    """A stored release that may answer a request."""

    release: int
    loss: Loss
    errors: BundleErrors
    stored: bool
    mechanisms: str


def list_own_releases(
    db: Transaction, account: str, request: ReleaseRequest, hidden: HiddenReleases
) -> list[CandidateRelease]:
    """The account's own releases that serve: stored ones first, then the most accurate, or the nearest."""
    own = [release for release in _releases_of_plan(db, request, hidden, account) if _can_serve(release, request)]
    sign = -1 if request.nearest else 1
    return sorted(own, key=lambda f: (not f.stored, sign * _relative_error(f.errors, request.errors), f.release))


def find_own_release(
    db: Transaction, account: str, request: ReleaseRequest, hidden: HiddenReleases
) -> CandidateRelease | None:
    return next(iter(list_own_releases(db, account, request, hidden)), None)


def find_or_insert_release(
    db: Transaction, account: str, request: ReleaseRequest, now: datetime, hidden: HiddenReleases
) -> CandidateRelease:
    """The release for `request`: one of the account's own, else an equal one of others, else a new one.

    Privacy: another's release serves only at exactly the asked loss and errors, so that the price of a
    question does not tell whether others have asked it (SOUNDNESS 9).
    """
    own_release = find_own_release(db, account, request, hidden)
    if own_release is not None:
        return own_release
    _require_readable(db, request.version)
    equal = [f for f in _releases_of_plan(db, request, hidden) if (f.loss, f.errors) == (request.loss, request.errors)]
    return min(equal, key=lambda f: (not f.stored, f.release), default=None) or insert_release(db, request, now)


def _can_serve(release: CandidateRelease, request: ReleaseRequest) -> bool:
    """A stored release serves if its errors are small enough.

    One that has yet to run serves at its own loss and errors only: it is run with the noise that is asked for now, and
    others may have paid for it too.
    """
    if not release.stored:
        return (release.loss, release.errors) == (request.loss, request.errors)
    return all(mine <= requested for mine, requested in zip(release.errors, request.errors, strict=True))


def _relative_error(errors: BundleErrors, requested: BundleErrors) -> Fraction:
    """How small the errors are, summed over bundles whose units differ."""
    return sum((mine / limit for mine, limit in zip(errors, requested, strict=True) if limit), Fraction(0))


_SELECT_RELEASE = "SELECT id, epsilon, rho, delta, errors, state, mechanisms FROM release"


def _releases_of_plan(
    db: Transaction, request: ReleaseRequest, hidden: HiddenReleases, payer: str | None = None
) -> list[CandidateRelease]:
    where, values = "plan = ? AND version = ? AND state <> 'void'", [request.plan, request.version]
    if payer is not None:
        where += " AND EXISTS (SELECT 1 FROM payment WHERE release = id AND account = ?)"
        values.append(payer)
    releases = [
        _read_candidate(row, hidden) for row in db.execute(f"{_SELECT_RELEASE} WHERE {where} ORDER BY id", *values)
    ]
    if any(len(other.errors) != len(request.errors) for other in releases):
        raise InternalError("one plan has two numbers of bundles")
    return releases


def _read_candidate(row: Row, hidden: HiddenReleases) -> CandidateRelease:
    id, epsilon, rho, delta, errors, state, mechanisms = row
    stored = state == "stored" and id not in hidden
    return CandidateRelease(id, decode_loss(epsilon, rho, delta), read_errors(errors), stored, mechanisms)


def insert_release(db: Transaction, request: ReleaseRequest, now: datetime) -> CandidateRelease:
    """Privacy: what is asked once is void from the start, so that nobody is served by it, or redeems it."""
    mechanisms = canonical_mechanisms(json.loads(request.mechanisms))
    ((id,),) = db.execute(
        "INSERT INTO release (plan, version, epsilon, rho, delta, mechanisms, errors, rows_of, shape, at, state)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        *(request.plan, request.version, *encode_loss(request.loss), mechanisms, _errors_to_json(request.errors)),
        *(request.rows, request.shape, now.isoformat(), "void" if request.once else "paid"),
    )
    return CandidateRelease(id, request.loss, request.errors, stored=False, mechanisms=mechanisms)


def _errors_to_json(errors: BundleErrors) -> str:
    return json.dumps([str(error) for error in errors])


def read_errors(text: str) -> BundleErrors:
    return tuple(Fraction(error) for error in json.loads(text))


def _require_readable(db: Transaction, version: int) -> None:
    """Before the charge: what is bought can be run. Asked whether or not others' release would serve."""
    if fetch_one(db, "SELECT max(number) FROM version") != (version,):
        raise StaleData(f"data version {version} can no longer be read", hint="Ask again, on the current version.")


# --- who has paid ----------------------------------------------------------------------------------------------------


def accounts_unpaid(db: Transaction, release: int, accounts: Iterable[str]) -> list[str]:
    paid = {account for (account,) in db.execute("SELECT account FROM payment WHERE release = ?", release)}
    return [account for account in accounts if account not in paid]


def record_payment(db: Transaction, release: int, account: str, entry: int) -> None:
    """Privacy: (release, account) is unique, so no account pays twice or is served unpaid."""
    db.execute("INSERT INTO payment VALUES (?, ?, ?)", release, account, entry)


def receipt_of(db: Transaction, release: int, account: str) -> Receipt:
    row = fetch_one(
        db,
        "SELECT number, hash FROM payment JOIN entry ON entry.account = payment.account AND number = payment.entry"
        " WHERE payment.release = ? AND payment.account = ?",
        release,
        account,
    )
    if row is None:
        raise InternalError("a release is served that was not paid for")
    return Receipt(account, *row)


def releases_owed(db: Transaction, member: str, parent: str) -> list[tuple[int, int, RecordedCharge]]:
    """What a member has paid for and a parent has not: release, the member's entry, and the charge."""
    rows = db.execute(
        "SELECT id, entry, plan, version, epsilon, rho, delta, mechanisms FROM payment JOIN release ON release = id"
        " WHERE account = ? AND NOT EXISTS"
        " (SELECT 1 FROM payment AS other WHERE other.release = id AND other.account = ?) ORDER BY id",
        member,
        parent,
    )
    return [
        (id, entry, RecordedCharge(plan, version, decode_loss(*loss), mechanisms))
        for id, entry, plan, version, *loss, mechanisms in rows
    ]


_LAPLACE_MARK = '%"laplace"%'


def find_laplace(db: Transaction, account: str, after: int) -> tuple[bool, int]:
    """Whether the account has paid, later than by the entry `after`, for a release that has Laplace noise, or an
    epsilon as choices with such noise have; and its last entry that paid for any."""
    row = fetch_one(
        db,
        "SELECT max(entry), max(CASE WHEN epsilon IS NOT NULL OR mechanisms LIKE ? THEN 1 ELSE 0 END)"
        " FROM payment JOIN release ON release = id WHERE account = ? AND entry > ?",
        _LAPLACE_MARK,
        account,
        after,
    )
    last, owned = (None, 0) if row is None else row
    return bool(owned), after if last is None else last


def list_own_stored(
    db: Transaction, account: str, rows: Sequence[str], version: int, hidden: HiddenReleases
) -> tuple[OwnRelease, ...]:
    """Privacy: only what this account has paid for, of this data version (SOUNDNESS 9). Times and order are those of
    its own entries: when a release was first made, perhaps for others, is not told."""
    marks = ", ".join("?" for _ in rows)
    stored = db.execute(
        "SELECT id, shape, body, errors, content, number, hash FROM release JOIN payment ON payment.release = id"
        " JOIN entry ON entry.account = payment.account AND number = payment.entry"
        f" WHERE rows_of IN ({marks}) AND version = ? AND state = 'stored' AND payment.account = ?"
        f" ORDER BY number DESC, plan LIMIT {_MAX_OWN_RELEASES}",
        *rows,
        version,
        account,
    )
    return tuple(
        OwnRelease(
            shape, bytes(body), read_errors(errors), _read_charge_time(content), Receipt(account, number, hashed)
        )
        for id, shape, body, errors, content, number, hashed in stored
        if id not in hidden
    )


def _read_charge_time(content: str) -> datetime:
    return datetime.fromisoformat(json.loads(content)["at"])


# --- bodies ----------------------------------------------------------------------------------------------------------


def read_body(db: Transaction, release: int) -> bytes | None:
    """The stored body; None if there is none yet."""
    body, _ = _read_release(db, release)
    return body


def bind_runtime_parameters(db: Transaction, release: int, holes: bytes) -> None:
    """Keep the first values that were bound."""
    db.execute(
        "UPDATE release SET holes = COALESCE(holes, ?), state = CASE state WHEN 'paid' THEN 'bound' ELSE state END"
        " WHERE id = ? AND state <> 'void'",
        holes,
        release,
    )


def read_runtime_parameters(db: Transaction, release: int) -> bytes:
    _, holes = _read_release(db, release)
    if holes is None:
        raise StaleData("the data version of this release can no longer be read", hint="Ask again.")
    return holes


def store_body(db: Transaction, release: int, body: bytes, errors: BundleErrors | None) -> None:
    """Keep the first body, and note it in the owner's chain; a release that is void keeps none."""
    digest = hash_chain.body_digest(body)
    stored = db.execute(
        "UPDATE release SET body = ?, digest = ?, errors = COALESCE(?, errors), state = 'stored'"
        " WHERE id = ? AND body IS NULL AND state <> 'void' RETURNING id",
        body,
        digest,
        None if errors is None else _errors_to_json(errors),
        release,
    )
    if stored:
        hash_chain.journal_body(db, release, digest)


def read_stored_body(db: Transaction, release: int) -> bytes:
    body = read_body(db, release)
    if body is None:
        raise StaleData("the data version of this release can no longer be read", hint="Ask again.")
    return body


def _read_release(db: Transaction, release: int) -> tuple[bytes | None, bytes | None]:
    row = fetch_one(db, "SELECT body, holes FROM release WHERE id = ?", release)
    if row is None:
        raise InternalError(f"there is no release {release}")
    body, holes = (None if value is None else bytes(value) for value in row)
    return body, holes


def drop_old_bodies(db: Transaction, before: datetime) -> int:
    """Drop the stored bodies, of data versions before the last, that were charged before a time.

    Privacy: nobody can ask for these any more. Of the last version, an answer would go by the time of who asked first,
    and whoever paid for it since would see by her price that another had asked.
    """
    stored = db.execute(
        "SELECT id, at FROM release WHERE state = 'stored' AND version < (SELECT max(number) FROM version)"
    )
    old = [id for id, at in stored if datetime.fromisoformat(at) < before]
    for id in old:
        db.execute("UPDATE release SET body = NULL, state = 'void' WHERE id = ?", id)
    return len(old)


# --- leases of runs --------------------------------------------------------------------------------------------------
# One process at a time runs a release, for as long as it renews its lease.
#
# Law: one run of the engine for a charge, unless it failed; also where many processes ask. Whoever would run a release
# takes its lease first, in a write transaction, and keeps it while the engine runs. One that is killed stops keeping
# it, and the next who asks takes over. A process that is halted, and goes on after its time, may so make a second run,
# but never a second answer (SOUNDNESS 9, T3).
#
# Privacy: when a run began and when it ended are the same for all processes, so that all of them show its end at the
# same multiple of the owner's `min_latency`.


_MICROSECONDS_PER_SECOND = 1_000_000


def begin_lease(db: Transaction, release: int, holder: str, seconds: float) -> RunLease:
    """Take the lease if nobody has it and there is no body: the run that now holds."""
    lease = read_lease(db, release)
    if read_body(db, release) is not None:
        return lease or RunLease("", 0, 0, 0)
    if lease is not None and not lease.is_over:
        return lease
    now = db.now_microseconds()
    until = now + round(seconds * _MICROSECONDS_PER_SECOND)
    db.execute("DELETE FROM run WHERE release = ?", release)
    db.execute("INSERT INTO run (release, holder, started, until) VALUES (?, ?, ?, ?)", release, holder, now, until)
    return RunLease(holder, 0, None, until - now)


def read_lease(db: Transaction, release: int) -> RunLease | None:
    row = fetch_one(db, "SELECT holder, started, until, ended FROM run WHERE release = ?", release)
    if row is None:
        return None
    holder, started, until, ended = row
    now = db.now_microseconds()
    return RunLease(holder, now - started, None if ended is None else ended - started, until - now)


def visible_after(took: int, grid: int) -> int:
    """When the end of a run that took so long is to be seen: at the next multiple of the grid, counted from its start.

    Privacy: the one place that says so, for those who wait and for what prices tell.
    """
    return max(1, -(-took // grid)) * grid


def find_hidden_releases(db: Transaction, grid: int) -> frozenset[int]:
    """The releases whose run has ended and is not yet to be seen, where ends are seen at multiples of `grid`.

    Privacy: who looks at prices, or asks for what could be derived, must not see sooner than others that it has ended.
    """
    if not grid:
        return frozenset()
    now = db.now_microseconds()
    # A run is seen to have ended less than one `grid` after it had.
    rows = db.execute("SELECT release, started, ended FROM run WHERE ended > ?", now - grid)
    return frozenset(
        release for release, started, ended in rows if now - started < visible_after(ended - started, grid)
    )


def renew_lease(db: Transaction, release: int, holder: str, seconds: float) -> None:
    """Keep a lease for `seconds` more; nothing happens if another holder has taken it over."""
    until = db.now_microseconds() + round(seconds * _MICROSECONDS_PER_SECOND)
    db.execute("UPDATE run SET until = ? WHERE release = ? AND holder = ? AND ended IS NULL", until, release, holder)


def end_lease(db: Transaction, release: int, holder: str | None = None) -> None:
    """The run has ended: that of `holder`, or whosever it is, since the release is stored."""
    sql, values = "UPDATE run SET ended = ? WHERE release = ? AND ended IS NULL", [db.now_microseconds(), release]
    if holder is None:
        db.execute(sql, *values)
    else:
        db.execute(f"{sql} AND holder = ?", *values, holder)
