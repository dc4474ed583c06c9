"""The whole of it: random trials in several processes until the time is over, then the statistical pass.

    from dpsql.verify.run import Plan, verify
    report = verify(Plan(seconds=60))
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

from dpsql.engines.scratch import ScratchEngine
from dpsql.privacy.sampling import ExactSampler
from dpsql.schema.load import load_schema
from dpsql.schema.model import Schema
from dpsql.verify.audit import SAMPLES, Audited, audit
from dpsql.verify.draws import Draws
from dpsql.verify.features import features
from dpsql.verify.neighbors import random_pair
from dpsql.verify.questions import random_question
from dpsql.verify.report import Finding, Report, Trials
from dpsql.verify.show import show_case
from dpsql.verify.shrink import Case, shrink
from dpsql.verify.templates import TEMPLATES
from dpsql.verify.trial import Asked, Bench, Outcome, open_bench, random_asked
from dpsql.verify.worlds import random_schema, world_of

STATEMENTS = 8
"""Tried on one pair of databases, which costs as much to make as two or three of them."""
SHRINKING = 20.0
"""Seconds for one failing case."""
_LOOK = 2.0
"""Seconds after which a process of the pool looks whether the one that asked is still there."""


@dataclass(frozen=True)
class Plan:
    """What to do. Without a schema's path, random ones are made. `trials` ends it before the time is over."""

    path: Path | None = None
    seconds: float = 60.0
    trials: int | None = None
    seed: int = 0
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    samples: int = SAMPLES
    statistics: bool = True
    findings: int = 10  # so many are enough


@dataclass(frozen=True)
class Progress:
    """What is told while it runs: a share of the whole that is done, and how many trials and findings there are."""

    done: float
    trials: int
    findings: int
    stage: str


def verify(plan: Plan, tell: Callable[[Progress], None] = lambda progress: None) -> Report:
    """Try what the plan says and report it; after Ctrl-C, what was tried until then."""
    started = time.monotonic()
    schema = None if plan.path is None else _declared(plan.path)
    tried, audits, interrupted = _Tried(), list[Audited](), False
    with ProcessPoolExecutor(plan.workers, get_context("spawn"), _prepare) as pool:
        try:
            _random_trials(pool, plan, schema, tell, tried)
            tried.seconds = time.monotonic() - started
            if plan.statistics:
                _statistics(pool, plan, tell, tried, audits)
        except KeyboardInterrupt:
            interrupted = True
            tried.seconds = tried.seconds or time.monotonic() - started
            pool.shutdown(cancel_futures=True)
    findings = tuple(tried.findings[: plan.findings])
    spent = time.monotonic() - started
    return Report(schema, plan.seed, tried.trials, findings, tuple(audits), tried.seconds, spent, interrupted)


def _declared(path: Path) -> Schema:
    """What the owner declares of rows. Where they are, who may ask and with which password is nothing to try."""
    schema = load_schema(path, _Anything())
    return replace(schema, analysts=(), engine="duckdb://", ledger="sqlite://")


class _Anything(Mapping[str, str]):
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
class _Tried:
    """What has been tried so far."""

    trials: Trials = field(default_factory=Trials)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0


# --- trials ----------------------------------------------------------------------------------------------------------


def _random_trials(
    pool: ProcessPoolExecutor, plan: Plan, schema: Schema | None, tell: Callable[[Progress], None], tried: _Tried
) -> None:
    """Batches, each from a number of its own: the same numbers give the same trials again."""
    until, numbers = time.time() + plan.seconds, _numbers(plan)
    running: set[Future[tuple[Trials, list[Finding]]]] = set()
    while True:
        over = time.time() >= until or len(tried.findings) >= plan.findings
        while not over and len(running) < 2 * plan.workers:
            number, count = next(numbers, (None, 0))
            if number is None:
                break
            running.add(pool.submit(batch, schema, number, until, count))
        if not running:
            return
        done, running = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
        for future in done:
            trials, found = future.result()
            tried.trials += trials
            tried.findings += found
        share = 1 - (until - time.time()) / plan.seconds
        if plan.trials is not None:
            share = max(share, tried.trials.count / plan.trials)
        tell(Progress(min(1.0, share), tried.trials.count, len(tried.findings), "trials"))


def _numbers(plan: Plan) -> Iterator[tuple[int, int]]:
    """Of each batch its number, and how many statements it may try."""
    left, number = plan.trials, plan.seed
    while left is None or left > 0:
        count = STATEMENTS if left is None else min(STATEMENTS, left)
        yield number, count
        number, left = number + 1, None if left is None else left - count


@cache
def _bench() -> Bench:
    """Each process has its own databases, until it ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(open_bench())


def _prepare() -> None:
    """In a process of the pool: Ctrl-C is for the one that asked, and if that is killed, nobody waits for this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    asked_by = os.getppid()

    def look(signal_number: int, frame: object) -> None:
        if os.getppid() != asked_by:
            os._exit(1)

    if hasattr(signal, "setitimer"):  # a thread that waits for it would be in the way when this one ends
        signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, _LOOK, _LOOK)
    _bench()


def batch(
    schema: Schema | None, number: int, until: float = math.inf, count: int = STATEMENTS
) -> tuple[Trials, list[Finding]]:
    """One schema, one pair of neighbors, several statements; fewer where the time is over."""
    bench, draws = _bench(), Draws(number)
    world = world_of(schema if schema is not None else random_schema(draws), draws)
    pair = random_pair(world, draws)
    bench.load(world, pair)
    trials, findings = Trials(), list[Finding]()
    for place in range(count):
        if time.time() > until:
            break
        choices = Draws(f"{number}/{place}")
        asked = random_asked(world, random_question(world, choices), draws)
        outcome = bench.attempt(asked)
        trials += _trial(asked, outcome)
        if outcome.findings:
            case = Case(world, pair, asked, tuple(choices.record), outcome)
            findings.append(_finding(case, bench, number, len(findings)))
            bench.load(world, pair)
    return trials, findings


def _trial(asked: Asked, outcome: Outcome) -> Trials:
    found = () if outcome.compiled is None or not outcome.releases else tuple(features(outcome.compiled))
    refused = Counter({outcome.refusal: 1} if outcome.kind == "refused" else {})
    failed = (f"{outcome.refusal}: {asked.sql}",) if outcome.kind == "failed" else ()
    return Trials(1, outcome.releases, Counter({outcome.kind: 1}), Counter(found), refused, failed)


def _finding(case: Case, bench: Bench, number: int, before: int) -> Finding:
    if before == 0:  # of several in one batch the first is enough to look at
        case = shrink(case, bench, SHRINKING)
    return Finding(number, case.asked.sql, case.outcome.findings, show_case(case))


# --- statistics ------------------------------------------------------------------------------------------------------


def _statistics(
    pool: ProcessPoolExecutor, plan: Plan, tell: Callable[[Progress], None], tried: _Tried, audits: list[Audited]
) -> None:
    futures = [pool.submit(audited, place, plan.samples) for place in range(len(TEMPLATES))]
    for place, future in enumerate(futures, 1):
        audits.append(future.result())
        found = len(tried.findings) + sum(not one.holds for one in audits)
        tell(Progress(place / len(futures), tried.trials.count, found, "statistics"))


def audited(place: int, samples: int) -> Audited:
    engine = ScratchEngine(1)
    try:
        return audit(TEMPLATES[place], ExactSampler(), engine, samples)
    finally:
        engine.close()
