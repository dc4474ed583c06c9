"""One trial: a statement, asked through a real session, on two neighboring databases at once."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compile import Compiled
from dpsql.compiler.plan.measures import MedianBy
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.errors import EngineFailed, Error, InternalError
from dpsql.ledger.base import Balance, Binding, Ledger
from dpsql.ledger.open import open_ledger
from dpsql.privacy.loss import sum_losses
from dpsql.privacy.sampling import ExactSampler
from dpsql.schema.model import Resolved, Schema
from dpsql.session.dataset.accounts import dataset_account
from dpsql.session.dataset.dataset import Dataset
from dpsql.session.dataset.file_identity import expand_sources, identify_files
from dpsql.session.dataset.public_facts import find_facts
from dpsql.session.session import Session
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.neighbors import NeighborPair
from dpsql.verify.generate.schemas import GeneratedSchema
from dpsql.verify.invariants import find_undercharges
from dpsql.verify.paired_engine import PairedEngine

TRIAL_TIME = dt.datetime(2024, 6, 30, 12, 0, tzinfo=dt.UTC)
MIXED_THREADS = 4
"""Of the database that holds the same rows in another order."""
_NO_FAILURE_LIMIT = 1 << 30


@dataclass(frozen=True)
class TrialStatement:
    """A statement and what its session was set to."""

    sql: str
    epsilon: Fraction
    delta: Fraction
    rows: int | None
    groups: int | None
    noise: NoiseKind | None
    median: MedianBy = MedianBy.EXPONENTIAL

    def __str__(self) -> str:
        noise = "auto" if self.noise is None else self.noise.value
        settings = {
            "epsilon": float(self.epsilon), "delta": f"{float(self.delta):g}", "noise": noise,
            "mechanism": None if self.median is MedianBy.EXPONENTIAL else self.median.value,
            "contributions.rows": self.rows, "contributions.groups": self.groups,
        }  # fmt: skip
        return ";\n".join(
            (*(f"SET {name} = {value}" for name, value in settings.items() if value is not None), self.sql)
        )


@dataclass(frozen=True)
class TrialOutcome:
    """`kind`: answered, refused, or failed (in post-processing, for a released value). `refusal` says why."""

    kind: str
    releases: int = 0
    refusal: str = ""
    findings: tuple[str, ...] = ()
    compiled: Compiled | None = field(default=None, repr=False)


def random_trial_statement(generated: GeneratedSchema, sql: str, choices: ChoiceStream) -> TrialStatement:
    """Caps as the owner set them or lower; small epsilons make grids coarser."""
    caps = generated.schema.privacy.contributions
    return TrialStatement(
        sql,
        epsilon=choices.choice((Fraction(1), Fraction(1, 1000), Fraction(1, 50), Fraction(1, 2), Fraction(10))),
        delta=Fraction(1, 10 ** choices.draw_between(3, 9)),
        rows=_lower_cap(caps.rows, choices),
        groups=_lower_cap(caps.groups, choices),
        noise=choices.choice((None, NoiseKind.GAUSSIAN, NoiseKind.LAPLACE)),
        median=choices.choice((MedianBy.EXPONENTIAL, MedianBy.EXPONENTIAL, MedianBy.SMOOTH, MedianBy.PTR)),
    )


def _lower_cap(cap: int | None, choices: ChoiceStream) -> int | None:
    """Mostly few, so that a made-up unit can have more."""
    return None if cap is None else choices.draw_between(1, min(cap, 5))


class TrialHarness:
    """Databases and ledgers that trials share: a world is loaded, then statements are tried on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ledgers: dict[tuple[Binding, object], Ledger] = {}
        self.paired_engine = PairedEngine(InMemoryEngine(1), InMemoryEngine(1), InMemoryEngine(MIXED_THREADS))
        self._resolved: Resolved | None = None
        self._ledger: Ledger | None = None

    def close(self) -> None:
        self.paired_engine.close()
        for ledger in self._ledgers.values():
            ledger.close()

    def load_pair(self, generated: GeneratedSchema, pair: NeighborPair) -> None:
        """The pair becomes the next data version: what was answered on others is not found again."""
        self.paired_engine.load_pair(generated, pair)
        schema = replace(generated.schema, ledger=f"sqlite://{self._folder / 'ledger'}")
        ledger = self._ledger_for(generated)
        version = self._register_version(schema, ledger)
        facts = {
            stored.name: find_facts(
                stored.table,
                stored.table.source,
                generated.physical_types[stored.name],
                self.paired_engine.first.query_rows,
            )
            for stored in generated.public_tables
        }
        identity = identify_files(schema, expand_sources(schema))
        self._resolved = replace(
            generated.resolved_schema, schema=schema, version=version, public=facts, identity=identity
        )
        self._ledger = ledger

    def forget_answers(self) -> None:
        """What was answered is not found again: the same rows become the next data version."""
        assert self._resolved is not None and self._ledger is not None
        self._resolved = replace(self._resolved, version=self._register_version(self._resolved.schema, self._ledger))

    def _register_version(self, schema: Schema, ledger: Ledger) -> int:
        return ledger.register_version(identify_files(schema, expand_sources(schema)), "{}")

    def _ledger_for(self, generated: GeneratedSchema) -> Ledger:
        privacy = generated.schema.privacy
        binding = Binding(privacy.unit, privacy.neighbors.value, privacy.group_size)
        account = dataset_account(generated.schema)
        ledger = self._ledgers.get((binding, account))
        if ledger is None:
            path = self._folder / f"{len(self._ledgers)}.ledger"
            ledger = open_ledger(
                f"sqlite://{path}", binding, account, failures=_NO_FAILURE_LIMIT, dataset_failures=_NO_FAILURE_LIMIT
            )
            self._ledgers[(binding, account)] = ledger
        return ledger

    def run_trial(self, statement: TrialStatement) -> TrialOutcome:
        """Ask, and say what broke: on the databases as they are loaded."""
        session = self._open_session(statement)
        try:
            compiled = session.compile_statement(statement.sql)
        except Error as error:
            return _refusal_outcome(error)
        chosen = partial(self._open_session(statement).compile_with_paid_norms, statement.sql)
        self.paired_engine.expect_statement(compiled, chosen if compiled.undecided else None)
        before = session.budget()
        outcome = _execute_statement(session, statement.sql)
        if compiled.undecided:
            try:
                compiled = chosen()
            except Error as error:  # what it says of the norm that was chosen: so it was not answered either
                said = f"answered, but refused with the norms that it has bought: {error.message}"
                if outcome.kind == "answered":
                    outcome = replace(outcome, findings=(*outcome.findings, said))
                compiled = replace(compiled, steps=())
        whole = replace(compiled, steps=(*compiled.steps, *(norm.step for norm in compiled.norm_steps)))
        charge_findings = _check_ledger_charge(whole, self.paired_engine.releases, before, session.budget())
        findings = [*find_undercharges(whole), *self.paired_engine.findings, *outcome.findings, *charge_findings]
        return replace(outcome, findings=tuple(findings), releases=self.paired_engine.releases, compiled=compiled)

    def _open_session(self, statement: TrialStatement) -> Session:
        assert self._resolved is not None and self._ledger is not None
        sampler = ExactSampler(
            ChoiceStream(statement.sql).random_bytes
        )  # the same noise again, so that holes are the same again
        session = Session(
            Dataset(self._resolved, self.paired_engine, self._ledger), sampler=sampler, clock=lambda: TRIAL_TIME
        )
        session.set("derive", "off")  # what is derived runs on no database
        session.set("epsilon", str(statement.epsilon))
        session.set("delta", str(statement.delta))
        if statement.rows is not None:
            session.set("contributions.rows", str(statement.rows))
        if statement.groups is not None:
            session.set("contributions.groups", str(statement.groups))
        session.set("noise", "auto" if statement.noise is None else statement.noise.value)
        session.set("mechanism", statement.median.value)
        return session


def _execute_statement(session: Session, sql: str) -> TrialOutcome:
    """What the analyst gets. A run that fails, or an error that is not in our words, is a finding.

    Holes and post-processing may fail after the charge, for values that were released: on both sides alike.
    """
    before = session.budget().charges
    try:
        session.execute(sql)
    except EngineFailed:
        return TrialOutcome("failed", findings=("the run failed",))
    except Error as error:
        if session.budget().charges == before or isinstance(error, InternalError):
            return _refusal_outcome(error)
        return TrialOutcome("failed", refusal=f"after the charge: {error.message}")
    except Exception as error:
        return TrialOutcome("failed", findings=(f"{type(error).__name__}: {error}",))
    return TrialOutcome("answered")


def _check_ledger_charge(compiled: Compiled, runs: int, before: Balance, after: Balance) -> list[str]:
    """Whether the ledger was charged less than the releases that ran, or more than all that the statement needs.

    What ran before is free: then the charge may be less. It is more where a histogram is bought that no norm is read
    from, or is bought twice; the statement then has cost more than it asked for.
    """
    losses = {step.plan_hash: step.loss for step in compiled.steps}
    rho, delta = after.spent_rho - before.spent_rho, after.spent_delta - before.spent_delta
    due = sum_losses(list(losses.values()))
    too_little = 0 < len(losses) <= runs and (rho < due.rho or delta < due.delta)
    if too_little or rho > due.rho or delta > due.delta:
        return [f"charged: rho {float(rho)}, delta {float(delta)}; due: {float(due.rho)}, {float(due.delta)}"]
    return []


def _refusal_outcome(error: Error) -> TrialOutcome:
    if isinstance(error, InternalError):
        return TrialOutcome("failed", findings=(f"InternalError: {error.message}",))
    return TrialOutcome("refused", refusal=error.message)


@contextmanager
def open_harness() -> Iterator[TrialHarness]:
    """Ledgers of trials outlive nothing: they lie in memory where the system has such a folder."""
    memory = "/dev/shm"
    parent = memory if os.path.isdir(memory) and os.access(memory, os.W_OK) else None
    with TemporaryDirectory(prefix="dpsql-verify-", dir=parent) as folder:
        harness = TrialHarness(Path(folder))
        try:
            yield harness
        finally:
            with suppress(Error):
                harness.close()
