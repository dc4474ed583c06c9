"""One trial: a statement, asked through a real session, on two neighboring databases at once."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from dpsql.calibrate import Noise
from dpsql.compile import Compiled
from dpsql.dataset import Dataset
from dpsql.engines.scratch import ScratchEngine
from dpsql.errors import EngineFailed, Error, InternalError
from dpsql.ledger.base import Balance, Binding, Ledger
from dpsql.ledger.open import open_ledger
from dpsql.payers import dataset_account
from dpsql.pins import expand_sources, identify
from dpsql.plan.measures import MedianBy
from dpsql.privacy.loss import total
from dpsql.privacy.sampling import ExactSampler
from dpsql.public_facts import find_facts
from dpsql.schema.model import Resolved, Schema
from dpsql.session import Session
from dpsql.verify.claims import undercharged
from dpsql.verify.draws import Draws
from dpsql.verify.neighbors import Pair
from dpsql.verify.witness import Witness
from dpsql.verify.worlds import World

NOW = dt.datetime(2024, 6, 30, 12, 0, tzinfo=dt.UTC)
THREADS = 4
"""Of the database that holds the same rows in another order."""
_NEVER = 1 << 30


@dataclass(frozen=True)
class Asked:
    """A statement and what its session was set to."""

    sql: str
    epsilon: Fraction
    delta: Fraction
    rows: int | None
    groups: int | None
    noise: Noise | None
    median: MedianBy = MedianBy.EXPONENTIAL

    def __str__(self) -> str:
        noise = "auto" if self.noise is None else self.noise.value
        known = {
            "epsilon": float(self.epsilon), "delta": f"{float(self.delta):g}", "noise": noise,
            "mechanism": None if self.median is MedianBy.EXPONENTIAL else self.median.value,
            "contributions.rows": self.rows, "contributions.groups": self.groups,
        }  # fmt: skip
        return ";\n".join((*(f"SET {name} = {value}" for name, value in known.items() if value is not None), self.sql))


@dataclass(frozen=True)
class Outcome:
    """`kind`: answered, refused, or failed (in post-processing, for a released value). `refusal` says why."""

    kind: str
    releases: int = 0
    refusal: str = ""
    findings: tuple[str, ...] = ()
    compiled: Compiled | None = field(default=None, repr=False)


def random_asked(world: World, sql: str, draws: Draws) -> Asked:
    """Caps as the owner set them or lower; small epsilons make grids coarser."""
    caps = world.schema.privacy.contributions
    return Asked(
        sql,
        epsilon=draws.choice((Fraction(1), Fraction(1, 1000), Fraction(1, 50), Fraction(1, 2), Fraction(10))),
        delta=Fraction(1, 10 ** draws.between(3, 9)),
        rows=_lowered(caps.rows, draws),
        groups=_lowered(caps.groups, draws),
        noise=draws.choice((None, Noise.GAUSSIAN, Noise.LAPLACE)),
        median=draws.choice((MedianBy.EXPONENTIAL, MedianBy.EXPONENTIAL, MedianBy.SMOOTH, MedianBy.PTR)),
    )


def _lowered(cap: int | None, draws: Draws) -> int | None:
    """Mostly few, so that a made-up unit can have more."""
    return None if cap is None else draws.between(1, min(cap, 5))


class Bench:
    """Databases and ledgers that trials share: a world is loaded, then statements are tried on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ledgers: dict[tuple[Binding, object], Ledger] = {}
        self.witness = Witness(ScratchEngine(1), ScratchEngine(1), ScratchEngine(THREADS))
        self._resolved: Resolved | None = None
        self._ledger: Ledger | None = None

    def close(self) -> None:
        self.witness.close()
        for ledger in self._ledgers.values():
            ledger.close()

    def load(self, world: World, pair: Pair) -> None:
        """The pair becomes the next data version: what was answered on others is not found again."""
        self.witness.load(world, pair)
        schema = replace(world.schema, ledger=f"sqlite://{self._folder / 'ledger'}")
        ledger = self._ledger_for(world)
        version = self._register(schema, ledger)
        facts = {
            laid.name: find_facts(laid.table, laid.table.source, world.physical[laid.name], self.witness.one.ask)
            for laid in world.public
        }
        identity = identify(schema, expand_sources(schema))
        self._resolved = replace(world.resolved, schema=schema, version=version, public=facts, identity=identity)
        self._ledger = ledger

    def forget(self) -> None:
        """What was answered is not found again: the same rows become the next data version."""
        assert self._resolved is not None and self._ledger is not None
        self._resolved = replace(self._resolved, version=self._register(self._resolved.schema, self._ledger))

    def _register(self, schema: Schema, ledger: Ledger) -> int:
        return ledger.register_version(identify(schema, expand_sources(schema)), "{}")

    def _ledger_for(self, world: World) -> Ledger:
        privacy = world.schema.privacy
        binding = Binding(privacy.unit, privacy.neighbors.value, privacy.group_size)
        account = dataset_account(world.schema)
        known = self._ledgers.get((binding, account))
        if known is None:
            path = self._folder / f"{len(self._ledgers)}.ledger"
            known = open_ledger(f"sqlite://{path}", binding, account, failures=_NEVER, dataset_failures=_NEVER)
            self._ledgers[(binding, account)] = known
        return known

    def attempt(self, asked: Asked) -> Outcome:
        """Ask, and say what broke: on the databases as they are loaded."""
        session = self._session(asked)
        try:
            compiled = session.compiled(asked.sql)
        except Error as error:
            return _refused(error)
        self.witness.expect(compiled)
        before = session.budget()
        said = _said(session, asked.sql)
        paid = _unpaid(compiled, self.witness.releases, before, session.budget())
        findings = [*undercharged(compiled), *self.witness.findings, *said.findings, *paid]
        return replace(said, findings=tuple(findings), releases=self.witness.releases, compiled=compiled)

    def _session(self, asked: Asked) -> Session:
        assert self._resolved is not None and self._ledger is not None
        sampler = ExactSampler(Draws(asked.sql).bits)  # the same noise again, so that holes are the same again
        session = Session(Dataset(self._resolved, self.witness, self._ledger), sampler=sampler, clock=lambda: NOW)
        session.set("derive", "off")  # what is derived runs on no database
        session.set("epsilon", str(asked.epsilon))
        session.set("delta", str(asked.delta))
        if asked.rows is not None:
            session.set("contributions.rows", str(asked.rows))
        if asked.groups is not None:
            session.set("contributions.groups", str(asked.groups))
        session.set("noise", "auto" if asked.noise is None else asked.noise.value)
        session.set("mechanism", asked.median.value)
        return session


def _said(session: Session, sql: str) -> Outcome:
    """What the analyst gets. A run that fails, or an error that is not in our words, is a finding.

    Holes and post-processing may fail after the charge, for values that were released: on both sides alike.
    """
    before = session.budget().charges
    try:
        session.execute(sql)
    except EngineFailed:
        return Outcome("failed", findings=("the run failed",))
    except Error as error:
        if session.budget().charges == before or isinstance(error, InternalError):
            return _refused(error)
        return Outcome("failed", refusal=f"after the charge: {error.message}")
    except Exception as error:
        return Outcome("failed", findings=(f"{type(error).__name__}: {error}",))
    return Outcome("answered")


def _unpaid(compiled: Compiled, runs: int, before: Balance, after: Balance) -> list[str]:
    """Whether the ledger was charged less than the releases that ran. What ran before is free, so that is left out."""
    losses = {step.plan_hash: step.loss for step in compiled.steps}
    if runs == 0 or runs < len(losses):
        return []
    rho, delta = after.spent_rho - before.spent_rho, after.spent_delta - before.spent_delta
    due = total(list(losses.values()))
    if rho < due.rho or delta < due.delta:
        return [f"charged: rho {float(rho)}, delta {float(delta)}; due: {float(due.rho)}, {float(due.delta)}"]
    return []


def _refused(error: Error) -> Outcome:
    if isinstance(error, InternalError):
        return Outcome("failed", findings=(f"InternalError: {error.message}",))
    return Outcome("refused", refusal=error.message)


@contextmanager
def open_bench() -> Iterator[Bench]:
    """Ledgers of trials outlive nothing: they lie in memory where the system has such a folder."""
    memory = "/dev/shm"
    within = memory if os.path.isdir(memory) and os.access(memory, os.W_OK) else None
    with TemporaryDirectory(prefix="dpsql-verify-", dir=within) as folder:
        bench = Bench(Path(folder))
        try:
            yield bench
        finally:
            with suppress(Error):
                bench.close()
