"""From a failing case to a minimal one: a simpler statement, fewer rows, that still fail in the same way.

The statement is made again from a record of choices with some of them deleted or lowered (`draws`). Rows are dropped
from both databases at once, so that they stay neighbors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.neighbors import NeighborPair, RowLiterals, TableRows
from dpsql.verify.generate.queries import random_query
from dpsql.verify.generate.schemas import GeneratedSchema
from dpsql.verify.trial import TrialHarness, TrialOutcome, TrialStatement


@dataclass(frozen=True)
class FailingCase:
    """A statement that failed on a pair of databases; `record` is what its text was made from."""

    generated: GeneratedSchema
    pair: NeighborPair
    statement: TrialStatement
    record: tuple[int, ...]
    outcome: TrialOutcome


def shrink_case(case: FailingCase, harness: TrialHarness, seconds: float) -> FailingCase:
    """The smallest case found in this time; the harness is left with its pair loaded."""
    until = time.monotonic() + seconds
    harness.load_pair(case.generated, case.pair)
    case = _simplify_statement(case, harness, (until + time.monotonic()) / 2)
    case = _reduce_rows(case, harness, until)
    harness.load_pair(case.generated, case.pair)
    return case


def _failure_kinds(outcome: TrialOutcome) -> frozenset[str]:
    """The kinds of failures, without figures."""
    return frozenset(finding.split(":")[0].split(" of ")[0] for finding in outcome.findings)


def _is_same_failure(case: FailingCase, outcome: TrialOutcome) -> bool:
    return bool(_failure_kinds(case.outcome) & _failure_kinds(outcome))


def _simplify_statement(case: FailingCase, harness: TrialHarness, until: float) -> FailingCase:
    progress = True
    while progress and time.monotonic() < until:
        progress = False
        for record in _simpler_records(case.record):
            if time.monotonic() > until:
                break
            smaller = _try_record(case, record, harness)
            if smaller is not None:
                case, progress = smaller, True
                break
    return case


def _try_record(case: FailingCase, record: tuple[int, ...], harness: TrialHarness) -> FailingCase | None:
    choices = ChoiceStream(record=record)
    sql = random_query(case.generated, choices)
    new_record = tuple(choices.record)
    if sql == case.statement.sql or (len(sql), len(new_record), new_record) >= (
        len(case.statement.sql),
        len(case.record),
        case.record,
    ):
        return None
    statement = replace(case.statement, sql=sql)
    harness.forget_answers()
    outcome = harness.run_trial(statement)
    return (
        replace(case, statement=statement, record=new_record, outcome=outcome)
        if _is_same_failure(case, outcome)
        else None
    )


def _simpler_records(record: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Records with choices deleted, large pieces first; then with one choice made simplest, then simpler."""
    size = len(record) // 2
    while size >= 1:
        for start in range(0, len(record), size):
            yield record[:start] + record[start + size :]
        size //= 2
    for lower in (lambda n: 0, lambda n: n // 2, lambda n: n - 1):
        for index, value in enumerate(record):
            if value > lower(value) >= 0:
                yield (*record[:index], lower(value), *record[index + 1 :])


def _reduce_rows(case: FailingCase, harness: TrialHarness, until: float) -> FailingCase:
    def find_failure(pair: NeighborPair) -> TrialOutcome | None:
        harness.load_pair(case.generated, pair)
        outcome = harness.run_trial(case.statement)
        return outcome if _is_same_failure(case, outcome) else None

    # The largest last: rows of a public table may be many, and what is minimal of the others fails faster.
    for stored in sorted(case.generated.tables, key=lambda stored: len(case.pair.first[stored.name])):
        case = _reduce_table_rows(case, stored.name, find_failure, until)
    return case


def _reduce_table_rows(
    case: FailingCase, table: str, find_failure: Callable[[NeighborPair], TrialOutcome | None], until: float
) -> FailingCase:
    """Drop rows of one table in halves, quarters, down to single ones."""
    pair = case.pair
    rows = list(dict.fromkeys((*pair.first[table], *pair.second[table], *pair.mixed[table])))
    size = len(rows)
    while size >= 1:
        start = 0
        while start < len(rows):
            if time.monotonic() > until:
                return case
            dropped = set(rows[start : start + size])
            smaller = NeighborPair(
                *(_remove_rows(side, table, dropped) for side in (pair.first, pair.second, pair.mixed))
            )
            outcome = find_failure(smaller)
            if outcome is None:
                start += size
            else:
                pair, rows = smaller, [row for row in rows if row not in dropped]
                case = replace(case, pair=pair, outcome=outcome)
        size //= 2
    return case


def _remove_rows(rows: TableRows, table: str, dropped: set[RowLiterals]) -> TableRows:
    return {**rows, table: tuple(row for row in rows[table] if row not in dropped)}
