"""Concurrent processes never pass any account's filter, nobody pays twice, and no lock is waited for in vain.

The sums are recomputed here from the rows of the database, by a filter written out afresh.
"""

from __future__ import annotations

import json
import multiprocessing
import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from fractions import Fraction
from multiprocessing.synchronize import Barrier

import pytest

from dpsql.errors import BudgetExceeded
from dpsql.ledger.backend import Transaction
from dpsql.ledger.base import Account, Binding, ChargedStatement, ReleaseRequest
from dpsql.ledger.ledger import SqlLedger
from dpsql.ledger.open import open_ledger
from dpsql.privacy.filters import limits_for_budget
from dpsql.privacy.loss import LOSS_DENOMINATOR, Loss
from tests.support.ledgers import Shelf

pytestmark = pytest.mark.slow

BINDING = Binding("row", "add_remove", 1)
PROCESSES = 4
ROUNDS = 60
Figures = tuple[int | None, int, int]
Outcome = tuple[Counter[str], set[tuple[int, bytes]]]
START: list[Barrier] = []
"""In a worker: where all of them wait until the last is ready. A barrier reaches a process only when it is made."""


def accounts(delta: str) -> tuple[Account, ...]:
    """Three analysts whose budgets together pass the dataset's, so that both kinds of refusal happen."""
    budgets = {"dataset": "11/10", "ana": "1", "ben": "3/4", "cleo": "1/2"}
    return tuple(Account(name, Fraction(epsilon), Fraction(delta)) for name, epsilon in budgets.items())


def open_at(url: str, dataset: Account) -> SqlLedger:
    return open_ledger(url, BINDING, dataset)


def random_ask(rng: random.Random, pure: bool) -> ReleaseRequest:
    """One of few plans at one of few prices, so that analysts meet at the same releases."""
    level, plan = rng.choice((1, 2, 4)), rng.randrange(60)
    epsilon, rho = Fraction(level, 50), Fraction(level**2, 15000)
    if pure or rng.random() < 0.1:
        return ReleaseRequest(f"laplace {plan}", 1, Loss(epsilon, epsilon**2 / 2, Fraction(0)), (Fraction(8, level),))
    selection = rng.choice((Fraction(0), Fraction(1, 10**8)))
    return ReleaseRequest(f"gaussian {plan}", 1, Loss(None, rho, selection), (Fraction(9, level), Fraction(1)))


def charge_at_random(url: str, delta: str, seed: int) -> Outcome:
    rng = random.Random(seed)
    dataset, *analysts = accounts(delta)
    ledger = open_at(url, dataset)
    outcomes: Counter[str] = Counter()
    bodies: set[tuple[int, bytes]] = set()
    START[0].wait(timeout=30)
    for _ in range(ROUNDS):
        asked = [random_ask(rng, pure=delta == "0") for _ in range(rng.randint(1, 3))]
        try:
            claims = ledger.purchase(rng.choice(analysts), asked, ChargedStatement("SELECT"), datetime.now(UTC))
        except BudgetExceeded as refusal:
            outcomes["refused by the dataset" if "share" in refusal.message else "refused"] += 1
            continue
        outcomes["granted"] += 1
        for claim in claims:
            body = ledger.store_body(claim.release, rng.randbytes(8)) if claim.body is None else claim.body
            bodies.add((claim.release, body))
    ledger.close()
    return outcomes, bodies


def keep_barrier(start: Barrier) -> None:
    START.append(start)


def run_processes(url: str, delta: str) -> Outcome:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(PROCESSES)
    with ProcessPoolExecutor(PROCESSES, context, initializer=keep_barrier, initargs=(start,)) as pool:
        runs = [pool.submit(charge_at_random, url, delta, seed) for seed in range(PROCESSES)]
        results = [run.result(timeout=60) for run in runs]
    return sum((counted for counted, _ in results), Counter()), set().union(*(seen for _, seen in results))


def add(losses: list[Figures]) -> Figures:
    pure = [epsilon for epsilon, _, delta in losses if epsilon is not None and delta == 0]
    epsilon = sum(pure) if len(pure) == len(losses) else None
    return epsilon, sum(rho for _, rho, _ in losses), sum(delta for *_, delta in losses)


def within(account: Account, spent: Figures) -> bool:
    most = limits_for_budget(account.epsilon, account.delta)
    epsilon, rho, delta = spent
    pure = epsilon is not None and epsilon <= most.epsilon * LOSS_DENOMINATOR
    return pure or (rho <= most.rho * LOSS_DENOMINATOR and delta <= most.delta * LOSS_DENOMINATOR)


def paid(db: Transaction, account: str) -> list[Figures]:
    rows = db.execute("SELECT epsilon, rho, delta FROM payment JOIN release ON release = id WHERE account = ?", account)
    return [(None if e is None else int(e), int(rho), int(delta)) for e, rho, delta in rows]


def entered(db: Transaction, account: str) -> list[Figures]:
    rows = db.execute("SELECT content FROM entry WHERE account = ?", account)
    charges = [charge for (text,) in rows for charge in json.loads(text)["charges"]]
    return [(None if e is None else int(e), int(rho), int(delta)) for _, _, e, rho, delta, _ in charges]


@pytest.mark.parametrize("delta", ["0", "1e-6"], ids=["pure", "concentrated"])
def test_concurrent_charges_never_pass_a_budget(shelf: Shelf, delta: str) -> None:
    dataset, *analysts = accounts(delta)
    ledger = shelf.open(BINDING, dataset)
    ledger.register_version("files", "facts")
    first = random_ask(random.Random(1), pure=delta == "0")
    for analyst in analysts[:2]:  # so that one release is shared, whatever the processes come to
        ledger.purchase(analyst, [first], ChargedStatement("SELECT"), datetime.now(UTC))

    outcomes, bodies = run_processes(shelf.url(), delta)

    assert outcomes["granted"] and outcomes["refused"] and outcomes["refused by the dataset"], outcomes
    with ledger.database.read() as db:
        for account in (dataset, *analysts):
            charges = entered(db, account.name)
            assert within(account, add(charges)), f"{account.name} has lost more than its budget"
            assert Counter(charges) == Counter(paid(db, account.name)), "each payment is entered, once"
        twice = db.execute("SELECT 1 FROM payment GROUP BY release, account HAVING count(*) > 1")
        unpaid = db.execute(
            "SELECT id FROM release WHERE NOT EXISTS (SELECT 1 FROM payment WHERE release = id AND account = 'dataset')"
        )
        shared = db.execute("SELECT 1 FROM payment GROUP BY release HAVING count(*) > 2")
    assert not twice and not unpaid
    assert shared, "some release was paid for by two analysts, and once by the dataset"
    assert len({release for release, _ in bodies}) == len(bodies), "every release was delivered in one form"
    assert ledger.verify_chains() == ()
