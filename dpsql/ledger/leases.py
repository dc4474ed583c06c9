"""Leases of runs: one process at a time runs a release, for as long as it renews its lease.

Law: one run of the engine for a charge, unless it failed; also where many processes ask. Whoever would run a release
takes its lease first, in a write transaction, and keeps it while the engine runs. One that is killed stops keeping it,
and the next who asks takes over. A process that is halted, and goes on after its time, may so make a second run, but
never a second answer (SOUNDNESS 9, T3).

Privacy: when a run began and when it ended are the same for all processes, so that all of them show its end at the same
multiple of the owner's `min_latency`.
"""

from __future__ import annotations

from dpsql.ledger import release_store
from dpsql.ledger.backend import Transaction, fetch_one
from dpsql.ledger.base import RunLease

_MICROSECONDS_PER_SECOND = 1_000_000


def begin_lease(db: Transaction, release: int, holder: str, seconds: float) -> RunLease:
    """Take the lease if nobody has it and there is no body: the run that now holds."""
    lease = read_lease(db, release)
    if release_store.read_body(db, release) is not None:
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
