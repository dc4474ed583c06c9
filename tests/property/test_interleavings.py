"""All interleavings of two sessions that ask one question, each of which may be killed between any two transactions.

A session's life is six transactions (SOUNDNESS 9): it looks for what is stored; charges (T1); binds the holes (T2) and
reads them back; stores the body (T3) and reads it back. There are leases against two runs of one release, but they may
be lost; so here the engine runs whenever a body is missing, as if
nobody knew of another's run: every run draws other noise and proposes other values for the holes. Each node of the tree
of all orders is a database, and each way down to it two sessions that were killed where they stand. There, whoever asks
again must get what was bought.

The calls are those of the ledger itself; one of two transactions is made twice, with its first and with its second.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.ledger.backend import LedgerDatabase, Row, Transaction
from dpsql.ledger.base import Account, Binding, ChargedStatement, Entitlement, ReleaseRequest
from dpsql.ledger.ledger import SqlLedger
from dpsql.ledger.open import open_ledger
from dpsql.privacy.loss import Loss
from tests.support.ledgers import charges
from tests.support.postgres import Server

pytestmark = pytest.mark.slow

BINDING = Binding("row", "add_remove", 1)
DATASET = Account("dataset", Fraction(8), Fraction(0))
ANA = Account("ana", Fraction(1), Fraction(0))
BEN = Account("ben", Fraction(1), Fraction(0))
PRICE = Fraction(1, 2)  # so that an account can pay for it twice, and would
QUESTION = ReleaseRequest("plan", 1, Loss(PRICE, PRICE**2 / 2, Fraction(0)), (Fraction(1),))
NOW = datetime(2025, 1, 2, tzinfo=UTC)
STEPS = 6
PAIRS = {"one account": (ANA, ANA), "two accounts": (ANA, BEN)}


class Paused(Exception):
    """The call would now begin its second transaction."""


@dataclass(frozen=True)
class Half:
    """A database that runs one of a call's two transactions: the other one finds and does nothing, or pauses."""

    whole: LedgerDatabase
    only: str
    then_pauses: bool = False

    @property
    def id(self) -> str:
        return self.whole.id

    @contextmanager
    def _run(self, kind: str) -> Iterator[Transaction]:
        if kind == self.only:
            with self.whole.write() if kind == "write" else self.whole.read() as db:
                yield db
        elif self.then_pauses:
            raise Paused
        else:
            yield Nothing()

    def write(self) -> object:
        return self._run("write")

    def read(self) -> object:
        return self._run("read")


class Nothing:
    def execute(self, sql: str, *values: object) -> list[Row]:
        return []

    def now_microseconds(self) -> int:
        return 0


@dataclass(frozen=True)
class Asker:
    """One session between two of its transactions."""

    name: int
    account: Account
    at: int = 0
    claim: Entitlement | None = None
    holes: bytes | None = None
    delivered: bytes | None = None

    @property
    def done(self) -> bool:
        return self.delivered is not None

    def own(self, what: str) -> bytes:
        return f"{what} of {self.name}".encode()

    def step(self, ledger: SqlLedger) -> Asker:
        """The next transaction."""
        moved = replace(self, at=self.at + 1)
        match self.at:
            case 0:
                served = ledger.find_entitlements(self.account, [QUESTION], NOW)
                return moved if served is None else replace(moved, **claimed(served[0]))
            case 1:
                (claim,) = ledger.purchase(self.account, [QUESTION], ChargedStatement("SELECT"), NOW)
                return replace(moved, **claimed(claim))
            case 2:
                self._bind(ledger, "write", pauses=True)
                return moved
            case 3:
                return replace(moved, holes=self._bind(ledger, "read", pauses=False))
            case 4:
                self._store(ledger, "write", pauses=True)
                return moved
            case _:
                return replace(moved, delivered=self._store(ledger, "read", pauses=False))

    def _bind(self, ledger: SqlLedger, only: str, pauses: bool) -> bytes | None:
        assert self.claim is not None
        try:
            return half(ledger, only, pauses).bind_runtime_parameters(self.claim.release, self.own("holes"))
        except Paused:
            return None

    def _store(self, ledger: SqlLedger, only: str, pauses: bool) -> bytes | None:
        assert self.claim is not None and self.holes is not None
        try:
            return half(ledger, only, pauses).store_body(self.claim.release, self.own("rows") + b" with " + self.holes)
        except Paused:
            return None


def half(ledger: SqlLedger, only: str, pauses: bool) -> SqlLedger:
    return replace(ledger, database=Half(ledger.database, only, pauses))  # type: ignore[arg-type]


def claimed(claim: Entitlement) -> dict[str, object]:
    return {"claim": claim, "delivered": claim.body}


def finish(asker: Asker, ledger: SqlLedger) -> Asker:
    while not asker.done:
        asker = asker.step(ledger)
    return asker


# --- what must hold ---------------------------------------------------------------------------------------------------


def check(ledger: SqlLedger, askers: tuple[Asker, Asker]) -> None:
    """Where all that ran has been killed, or is about to go on."""
    accounts = {asker.account.name: asker.account for asker in askers}
    paid = {name: len(charges(ledger, account)) for name, account in accounts.items()}
    for asker in askers:
        assert paid[asker.account.name] == 1 or not asker.done, "delivered without a charge"
        assert paid[asker.account.name] <= 1, "one account pays once for one release"
    assert len(charges(ledger, DATASET)) == max(paid.values(), default=0), "the dataset pays once for both"
    answers = {asker.delivered for asker in askers if asker.done}
    assert len(answers) <= 1, "one charge has given two answers"
    assert len({asker.holes for asker in askers if asker.holes is not None}) <= 1, "one charge ran with two values"


def redeem(ledger: SqlLedger, askers: tuple[Asker, Asker]) -> None:
    """Whoever had paid asks again, in another process: it is free, and the same. Changes the ledger."""
    for number, account in enumerate(sorted({asker.account for asker in askers}, key=lambda one: one.name), 3):
        before = len(charges(ledger, account))
        again = finish(Asker(number, account), ledger)
        assert len(charges(ledger, account)) == 1 and again.claim is not None
        assert again.claim.charged == (before == 0), "what was paid for is free"
        for asker in askers:
            assert not asker.done or asker.delivered == again.delivered, "one charge has given two answers"
            assert again.delivered is not None and again.delivered.endswith(asker.holes or b""), "two values were bound"
    assert len(charges(ledger, DATASET)) == 1
    assert ledger.verify_chains() == ()


def open_at(url: str) -> SqlLedger:
    ledger = open_ledger(url, BINDING, DATASET)
    ledger.register_version("files", "facts", after=0)
    return ledger


# --- all of them, in files that are copied ----------------------------------------------------------------------------


@dataclass
class Tree:
    folder: Path
    pair: tuple[Account, Account]
    numbers: Iterator[int] = field(default_factory=itertools.count)
    ways: int = 0
    ends: int = 0

    def copied(self, path: Path) -> Path:
        return Path(shutil.copy(path, self.folder / f"{next(self.numbers)}.ledger"))

    def grow(self, path: Path, askers: tuple[Asker, Asker]) -> None:
        """Every order of the steps that are left, below this node."""
        free = [place for place, asker in enumerate(askers) if not asker.done]
        self.ways += 1
        self.ends += not free
        if self.ways == 1:
            free = free[:1]  # which of the two begins makes no difference but in names
        for place in free:
            below = self.copied(path)
            ledger = opened(path, below)
            moved = replace_at(askers, place, askers[place].step(ledger))
            check(ledger, moved)
            if below.read_bytes() != path.read_bytes():  # who only read has left it as it was, and as it was checked
                redeem(opened(path, self.copied(below)), moved)
            self.grow(below, moved)
            below.unlink()


FIRST: dict[Path, SqlLedger] = {}


def opened(first: Path, path: Path) -> SqlLedger:
    """The ledger in a copy of a file, without the checks of opening, which the first one had."""
    ledger = FIRST.get(first.parent) or FIRST.setdefault(first.parent, open_at(f"sqlite://{first}"))
    return replace(ledger, database=replace(ledger.database, path=path))  # type: ignore[type-var]


def replace_at(askers: tuple[Asker, Asker], place: int, asker: Asker) -> tuple[Asker, Asker]:
    return (asker, askers[1]) if place == 0 else (askers[0], asker)


@pytest.fixture
def fast(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, if there is one: thousands of files are synced here."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    folder = memory / f"dpsql-{os.getpid()}-{tmp_path.name}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_in_every_order_and_killed_anywhere_one_answer(fast: Path, pair: tuple[Account, Account]) -> None:
    root = fast / "root.ledger"
    open_at(f"sqlite://{root}")
    tree = Tree(fast, pair)
    tree.grow(root, (Asker(1, pair[0]), Asker(2, pair[1])))
    assert tree.ways > 1000 and tree.ends > 100, "who is answered from the store ends early; all others take six steps"


# --- some of them, in PostgreSQL --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_in_postgres(postgres: Server, pair: tuple[Account, Account], seed: int) -> None:
    rng = random.Random(seed)
    ledger = open_at(postgres.new_schema())
    try:
        askers = (Asker(1, pair[0]), Asker(2, pair[1]))
        left = [rng.randint(0, STEPS), rng.randint(0, STEPS)] if seed % 2 else [STEPS, STEPS]
        while free := [place for place in (0, 1) if left[place] and not askers[place].done]:
            place = rng.choice(free)
            left[place] -= 1
            askers = replace_at(askers, place, askers[place].step(ledger))
            check(ledger, askers)
        redeem(ledger, askers)
    finally:
        ledger.close()
