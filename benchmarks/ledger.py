"""Charges a second, and answers a second from the store: for 1, 8 and 32 writers, in SQLite and in PostgreSQL.

    python -m benchmarks.ledger                          a PostgreSQL of its own, on the same disk
    python -m benchmarks.ledger --postgres URL           another one, with a schema that is new
    python -m benchmarks.ledger --quick                  one second for each figure instead of three

A charge is `purchase` of a new release of one analyst: two entries, two payments, durable when it returns. A charge
with its answer is that, and storing a body of 2 kB and reading it back. An answer is `served`, of what is stored and
paid for. Writers are threads of one process, or processes. `flush` is how often this disk can be told to keep 4 kB:
charges are serial, so no ledger on it makes more of them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from itertools import count
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from dpsql.ledger.base import Account, Binding, ChargedStatement, ReleaseRequest
from dpsql.ledger.ledger import SqlLedger
from dpsql.ledger.open import open_ledger
from dpsql.privacy.loss import Loss
from tests.support.postgres import find_binaries, start

WRITERS = (1, 8, 32)
SECONDS = 3.0
BINDING = Binding("row", "add_remove", 1)
DATASET = Account("dataset", Fraction(10**6), Fraction(0))
LOSS = Loss(Fraction(1, 1024), Fraction(1, 2**21), Fraction(0))
BODY = bytes(2048)
KEPT = 50
"""Releases that are asked for again and again."""

Work = Callable[[SqlLedger, Account, int], object]


def ask(plan: str) -> ReleaseRequest:
    return ReleaseRequest(plan, 1, LOSS, (Fraction(1),))


def charge(ledger: SqlLedger, account: Account, number: int) -> int:
    (claim,) = ledger.purchase(
        account, [ask(f"{account.name} {number}")], ChargedStatement("SELECT"), datetime.now(UTC)
    )
    assert claim.charged
    return claim.release


def charge_and_store(ledger: SqlLedger, account: Account, number: int) -> None:
    ledger.store_body(charge(ledger, account, number), BODY)


def answer(ledger: SqlLedger, account: Account, number: int) -> None:
    served = ledger.find_entitlements(DATASET, [ask(f"kept {number % KEPT}")], datetime.now(UTC))
    assert served is not None and served[0].body == BODY


TASKS: dict[str, Work] = {
    "charges": charge,
    "charges with their answers": charge_and_store,
    "answers from the store": answer,
}


def open_at(url: str) -> SqlLedger:
    ledger = open_ledger(url, BINDING, DATASET)
    if ledger.current_version() is None:
        ledger.register_version("files", "facts")
        for number in range(KEPT):
            (claim,) = ledger.purchase(DATASET, [ask(f"kept {number}")], ChargedStatement("SELECT"), datetime.now(UTC))
            ledger.store_body(claim.release, BODY)
    return ledger


# --- writers ---------------------------------------------------------------------------------------------------------

_numbers = count()


Done = tuple[float, float, int]
"""When a writer began and ended, by a clock that all processes share, and how often it did its task."""


def work(ledger: SqlLedger, task: str, seconds: float) -> Done:
    account = Account(f"{os.getpid()} {threading.get_ident()} {next(_numbers)}", Fraction(10**6), Fraction(0))
    start_, done = time.monotonic(), 0
    while time.monotonic() < start_ + seconds:
        TASKS[task](ledger, account, done)
        done += 1
    return start_, time.monotonic(), done


def rate(done: list[Done]) -> float:
    """Of all writers together, from the first that began to the last that ended."""
    return sum(count for _, _, count in done) / (max(end for _, end, _ in done) - min(start_ for start_, _, _ in done))


def in_threads(url: str, task: str, writers: int, seconds: float) -> float:
    ledger = open_at(url)
    ready = threading.Barrier(writers)
    done: list[Done] = []

    def run() -> None:
        ready.wait()
        done.append(work(ledger, task, seconds))

    threads = [threading.Thread(target=run) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.close()
    assert len(done) == writers, "a writer has failed"
    return rate(done)


def in_processes(url: str, task: str, writers: int, seconds: float) -> float:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dpsql.ledger.open", "dpsql.ledger.postgres"])
    ready, done = context.Barrier(writers), context.SimpleQueue()
    processes = [context.Process(target=_run, args=(url, task, seconds, ready, done)) for _ in range(writers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert all(process.exitcode == 0 for process in processes), "a writer has failed"
    return rate([done.get() for _ in processes])


def _run(url: str, task: str, seconds: float, ready: threading.Barrier, done: SimpleQueue[Done]) -> None:
    ledger = open_at(url)
    ready.wait()
    done.put(work(ledger, task, seconds))
    ledger.close()


# --- the table -------------------------------------------------------------------------------------------------------


def flushes(folder: Path, seconds: float) -> float:
    handle = os.open(folder / "flush", os.O_CREAT | os.O_WRONLY)
    end, done = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        os.pwrite(handle, bytes(4096), 0)
        os.fsync(handle)
        done += 1
    os.close(handle)
    return done / seconds


@contextmanager
def postgres(url: str | None) -> Iterator[str | None]:
    if url is not None:
        yield url
        return
    binaries = find_binaries()
    if binaries is None:
        yield None
        return
    server = start(binaries, ("listen_addresses=",), memory=False)
    try:
        yield server.new_schema()
    finally:
        server.stop()


def print_table(title: str, url: str, seconds: float) -> bool:
    """Whether every chain is whole afterwards."""
    heads = [f"{kind} {writers}" for kind in ("threads", "processes") for writers in WRITERS]
    print(f"\n{title}, a second\n{'':<28}" + "".join(f"{head:>14}" for head in heads))
    open_at(url).close()
    for task in TASKS:
        print(f"{task:<28}", end="", flush=True)
        for run in (in_threads, in_processes):
            for writers in WRITERS:
                print(f"{run(url, task, writers, seconds):>14,.0f}", end="", flush=True)
        print()
    ledger = open_at(url)
    whole, entries = ledger.verify_chains() == (), len(ledger.list_entries(DATASET.name))
    ledger.close()
    print(f"{entries:,} entries of the dataset; all chains are {'whole' if whole else 'BROKEN'}")
    return whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one second for each figure")
    parser.add_argument("--postgres", metavar="URL", help="a schema that is new, in a server that is there")
    options = parser.parse_args()
    seconds = 1.0 if options.quick else SECONDS
    with tempfile.TemporaryDirectory() as name, postgres(options.postgres) as url:
        print(f"flush: {flushes(Path(name), 1.0):,.0f} a second")
        whole = print_table("SQLite", f"sqlite:///{name}/bench.ledger", seconds)
        if url is not None:
            whole = print_table("PostgreSQL", url, seconds) and whole
    sys.exit(0 if whole else 3)


if __name__ == "__main__":
    main()
