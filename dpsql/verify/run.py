"""Runs a verification: random trials in several processes until the time is over, then the statistical pass.

from dpsql.verify.run import Plan, verify
report = verify(VerifyOptions(seconds=60))
"""

from __future__ import annotations

import atexit
import math
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from dpsql.engines.in_memory import InMemoryEngine
from dpsql.privacy.sampling import ExactSampler
from dpsql.schema.load import load_schema
from dpsql.schema.model import Schema
from dpsql.verify.audit import DEFAULT_SAMPLES, TEMPLATES, AuditResult, audit_template
from dpsql.verify.coverage import find_features
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.neighbors import random_pair
from dpsql.verify.generate.queries import random_query
from dpsql.verify.generate.schemas import generate_from_schema, random_schema
from dpsql.verify.report import Counterexample, TrialCounts, VerifyReport, render_case
from dpsql.verify.shrink import FailingCase, shrink_case
from dpsql.verify.trial import TrialHarness, TrialOutcome, TrialStatement, open_harness, random_trial_statement

STATEMENTS_PER_BATCH = 8
"""Tried on one pair of databases, which costs as much to make as two or three of them."""
SHRINK_SECONDS = 20.0
"""Seconds for one failing case."""
_PARENT_CHECK_SECONDS = 2.0
"""Seconds after which a process of the pool looks whether the one that asked is still there."""


@dataclass(frozen=True)
class VerifyOptions:
    """What to do. Without a schema's path, random ones are made. `trials` ends it before the time is over."""

    path: Path | None = None
    seconds: float = 60.0
    trials: int | None = None
    seed: int = 0
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    samples: int = DEFAULT_SAMPLES
    statistics: bool = True
    findings: int = 10  # so many are enough


@dataclass(frozen=True)
class Progress:
    """Shown while it runs: the share of the whole that is done, and how many trials and findings there are."""

    done: float
    trials: int
    findings: int
    stage: str


def verify_claims(
    plan: VerifyOptions, report_progress: Callable[[Progress], None] = lambda progress: None
) -> VerifyReport:
    """Try what the plan says and report it; after Ctrl-C, what was tried until then."""
    started = time.monotonic()
    schema = None if plan.path is None else _load_declarations(plan.path)
    state, audits, interrupted = _TrialState(), list[AuditResult](), False
    with ProcessPoolExecutor(plan.workers, get_context("spawn"), _prepare_worker) as pool:
        try:
            _run_trials(pool, plan, schema, report_progress, state)
            state.seconds = time.monotonic() - started
            if plan.statistics:
                _run_audits(pool, plan, report_progress, state, audits)
        except KeyboardInterrupt:
            interrupted = True
            state.seconds = state.seconds or time.monotonic() - started
            pool.shutdown(cancel_futures=True)
    findings = tuple(state.findings[: plan.findings])
    spent = time.monotonic() - started
    return VerifyReport(schema, plan.seed, state.trials, findings, tuple(audits), state.seconds, spent, interrupted)


def _load_declarations(path: Path) -> Schema:
    """What the owner declares of rows. Where they are, who may ask and with which password is nothing to try."""
    schema = load_schema(path, _AnyVariable())
    return replace(schema, analysts=(), engine="duckdb://", ledger="sqlite://")


class _AnyVariable(Mapping[str, str]):
    """Variables of an owner's machine: what they hold matters only where the data is."""

    def __getitem__(self, name: str) -> str:
        return "variable"

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass
class _TrialState:
    """What has been tried so far."""

    trials: TrialCounts = field(default_factory=TrialCounts)
    findings: list[Counterexample] = field(default_factory=list)
    seconds: float = 0.0


# --- trials ----------------------------------------------------------------------------------------------------------


def _run_trials(
    pool: ProcessPoolExecutor,
    plan: VerifyOptions,
    schema: Schema | None,
    report_progress: Callable[[Progress], None],
    state: _TrialState,
) -> None:
    """Batches, each from a number of its own: the same numbers give the same trials again."""
    until, numbers = time.time() + plan.seconds, _batch_numbers(plan)
    running: set[Future[tuple[TrialCounts, list[Counterexample]]]] = set()
    while True:
        over = time.time() >= until or len(state.findings) >= plan.findings
        while not over and len(running) < 2 * plan.workers:
            number, count = next(numbers, (None, 0))
            if number is None:
                break
            running.add(pool.submit(run_batch, schema, number, until, count))
        if not running:
            return
        done, running = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
        for future in done:
            trials, counterexamples = future.result()
            state.trials += trials
            state.findings += counterexamples
        share = 1 - (until - time.time()) / plan.seconds
        if plan.trials is not None:
            share = max(share, state.trials.count / plan.trials)
        report_progress(Progress(min(1.0, share), state.trials.count, len(state.findings), "trials"))


def _batch_numbers(plan: VerifyOptions) -> Iterator[tuple[int, int]]:
    """The number of each batch, and how many statements it may try."""
    remaining, number = plan.trials, plan.seed
    while remaining is None or remaining > 0:
        count = STATEMENTS_PER_BATCH if remaining is None else min(STATEMENTS_PER_BATCH, remaining)
        yield number, count
        number, remaining = number + 1, None if remaining is None else remaining - count


@cache
def _process_harness() -> TrialHarness:
    """Each process has its own databases, until it ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(open_harness())


def _prepare_worker() -> None:
    """In a process of the pool: Ctrl-C is for the one that asked, and if that is killed, nobody waits for this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = os.getppid()

    def check_parent(signal_number: int, frame: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    if hasattr(signal, "setitimer"):  # a thread that waits for it would be in the way when this one ends
        signal.signal(signal.SIGALRM, check_parent)
        signal.setitimer(signal.ITIMER_REAL, _PARENT_CHECK_SECONDS, _PARENT_CHECK_SECONDS)
    _process_harness()


def run_batch(
    schema: Schema | None, number: int, until: float = math.inf, count: int = STATEMENTS_PER_BATCH
) -> tuple[TrialCounts, list[Counterexample]]:
    """One schema, one pair of neighbors, several statements; fewer where the time is over."""
    harness, schema_choices = _process_harness(), ChoiceStream(number)
    generated = generate_from_schema(schema if schema is not None else random_schema(schema_choices), schema_choices)
    pair = random_pair(generated, schema_choices)
    harness.load_pair(generated, pair)
    trials, findings = TrialCounts(), list[Counterexample]()
    for index in range(count):
        if time.time() > until:
            break
        choices = ChoiceStream(f"{number}/{index}")
        statement = random_trial_statement(generated, random_query(generated, choices), schema_choices)
        outcome = harness.run_trial(statement)
        trials += _count_trial(statement, outcome, generated.schema)
        if outcome.findings:
            case = FailingCase(generated, pair, statement, tuple(choices.record), outcome)
            findings.append(_build_counterexample(case, harness, number, len(findings)))
            harness.load_pair(generated, pair)
    return trials, findings


def _count_trial(statement: TrialStatement, outcome: TrialOutcome, schema: Schema) -> TrialCounts:
    compared = outcome.compiled is not None and outcome.releases
    names = tuple(find_features(outcome.compiled, schema)) if outcome.compiled is not None and compared else ()
    refused = Counter({outcome.refusal: 1} if outcome.kind == "refused" else {})
    failed = (f"{outcome.refusal}: {statement.sql}",) if outcome.kind == "failed" else ()
    return TrialCounts(1, outcome.releases, Counter({outcome.kind: 1}), Counter(names), refused, failed)


def _build_counterexample(case: FailingCase, harness: TrialHarness, number: int, before: int) -> Counterexample:
    if before == 0:  # of several in one batch the first is enough to look at
        case = shrink_case(case, harness, SHRINK_SECONDS)
    return Counterexample(number, case.statement.sql, case.outcome.findings, render_case(case))


# --- statistics ------------------------------------------------------------------------------------------------------


def _run_audits(
    pool: ProcessPoolExecutor,
    plan: VerifyOptions,
    report_progress: Callable[[Progress], None],
    state: _TrialState,
    audits: list[AuditResult],
) -> None:
    futures = [pool.submit(audit_by_index, count, plan.samples) for count in range(len(TEMPLATES))]
    for count, future in enumerate(futures, 1):
        audits.append(future.result())
        finding_count = len(state.findings) + sum(not result.holds for result in audits)
        report_progress(Progress(count / len(futures), state.trials.count, finding_count, "statistics"))


def audit_by_index(index: int, samples: int) -> AuditResult:
    engine = InMemoryEngine(1)
    try:
        return audit_template(TEMPLATES[index], ExactSampler(), engine, samples)
    finally:
        engine.close()
