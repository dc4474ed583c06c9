"""From a failing case to a minimal one: a simpler statement, fewer rows, that still fail in the same way.

The statement is made again from a record of choices with some of them deleted or lowered (`draws`). Rows are dropped
from both databases at once, so that they stay neighbors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dpsql.verify.draws import Draws
from dpsql.verify.neighbors import Pair, Row, Rows
from dpsql.verify.questions import random_question
from dpsql.verify.trial import Asked, Bench, Outcome
from dpsql.verify.worlds import World


@dataclass(frozen=True)
class Case:
    """A statement that failed on a pair of databases; `record` is what its text was made from."""

    world: World
    pair: Pair
    asked: Asked
    record: tuple[int, ...]
    outcome: Outcome


def shrink(case: Case, bench: Bench, seconds: float) -> Case:
    """The smallest case found in this time; the bench is left with its pair loaded."""
    until = time.monotonic() + seconds
    bench.load(case.world, case.pair)
    case = _simpler_statement(case, bench, (until + time.monotonic()) / 2)
    case = _fewer_rows(case, bench, until)
    bench.load(case.world, case.pair)
    return case


def _kind(outcome: Outcome) -> frozenset[str]:
    """What went wrong, without figures."""
    return frozenset(finding.split(":")[0].split(" of ")[0] for finding in outcome.findings)


def _same(case: Case, outcome: Outcome) -> bool:
    return bool(_kind(case.outcome) & _kind(outcome))


def _simpler_statement(case: Case, bench: Bench, until: float) -> Case:
    progress = True
    while progress and time.monotonic() < until:
        progress = False
        for record in _simpler(case.record):
            if time.monotonic() > until:
                break
            smaller = _tried(case, record, bench)
            if smaller is not None:
                case, progress = smaller, True
                break
    return case


def _tried(case: Case, record: tuple[int, ...], bench: Bench) -> Case | None:
    draws = Draws(record=record)
    sql = random_question(case.world, draws)
    made = tuple(draws.record)
    if sql == case.asked.sql or (len(sql), len(made), made) >= (len(case.asked.sql), len(case.record), case.record):
        return None
    asked = replace(case.asked, sql=sql)
    bench.forget()
    outcome = bench.attempt(asked)
    return replace(case, asked=asked, record=made, outcome=outcome) if _same(case, outcome) else None


def _simpler(record: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Records with choices deleted, large pieces first; then with one choice made simplest, then simpler."""
    size = len(record) // 2
    while size >= 1:
        for start in range(0, len(record), size):
            yield record[:start] + record[start + size :]
        size //= 2
    for lower in (lambda n: 0, lambda n: n // 2, lambda n: n - 1):
        for place, made in enumerate(record):
            if made > lower(made) >= 0:
                yield (*record[:place], lower(made), *record[place + 1 :])


def _fewer_rows(case: Case, bench: Bench, until: float) -> Case:
    def fails(pair: Pair) -> Outcome | None:
        bench.load(case.world, pair)
        outcome = bench.attempt(case.asked)
        return outcome if _same(case, outcome) else None

    for laid in case.world.tables:
        case = _fewer_in(case, laid.name, fails, until)
    return case


def _fewer_in(case: Case, table: str, fails: Callable[[Pair], Outcome | None], until: float) -> Case:
    """Drop rows of one table in halves, quarters, down to single ones."""
    pair = case.pair
    rows = list(dict.fromkeys((*pair.first[table], *pair.second[table], *pair.mixed[table])))
    size = len(rows)
    while size >= 1:
        start = 0
        while start < len(rows):
            if time.monotonic() > until:
                return case
            gone = set(rows[start : start + size])
            smaller = Pair(*(_without(side, table, gone) for side in (pair.first, pair.second, pair.mixed)))
            outcome = fails(smaller)
            if outcome is None:
                start += size
            else:
                pair, rows = smaller, [row for row in rows if row not in gone]
                case = replace(case, pair=pair, outcome=outcome)
        size //= 2
    return case


def _without(rows: Rows, table: str, gone: set[Row]) -> Rows:
    return {**rows, table: tuple(row for row in rows[table] if row not in gone)}
