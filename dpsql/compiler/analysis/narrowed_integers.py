"""Whole numbers of 128 bits where 64 are computed with: arithmetic, functions, sums and quantiles.

    SUM(h), h + 1      a value of h beyond 64 bits is NULL there    →  a notice
    h = 1, COUNT(h)    compared and counted as it is                →  none
    SUM(CLIP(h, 0, 9)) moved into bounds that 64 bits hold          →  none

Whether there is a notice depends on the statement and declared bounds alone, never on rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dpsql.compiler.analysis.domains import derive_enforced_domains, domain_of
from dpsql.compiler.analysis.narrowing import Environment
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import Cast, Expr
from dpsql.compiler.plan.relations import Rows
from dpsql.compiler.plan.walk import (
    aggregate_exprs,
    is_narrowing_cast,
    node_exprs,
    origin_of,
    row_inputs,
    walk_exprs,
    walk_rows,
)
from dpsql.types import BIGINT, integer_range


def find_narrowing_notices(aggregate: Aggregate, scanned: Callable[[Rows], Rows]) -> tuple[str, ...]:
    """What leaves out values beyond 64 bits, by column; `scanned` gives rows their declared bounds."""
    rows = scanned(aggregate.input)
    return tuple(dict.fromkeys(_describe_narrowing(arg) for arg in _find_narrowed(aggregate, rows)))


def _find_narrowed(aggregate: Aggregate, rows: Rows) -> Iterator[Expr]:
    yield from _find_narrowed_among(aggregate_exprs(aggregate), derive_enforced_domains(rows))
    for node in walk_rows(rows):
        below: Environment = {}
        for source in row_inputs(node):
            below = {**below, **derive_enforced_domains(source)}
        yield from _find_narrowed_among(node_exprs(node), below)


def _find_narrowed_among(exprs: list[Expr] | tuple[Expr, ...], env: Environment) -> Iterator[Expr]:
    least, largest = integer_range(BIGINT)
    for part in (part for expr in exprs for part in walk_exprs(expr)):
        if isinstance(part, Cast) and is_narrowing_cast(part):
            domain = domain_of(part.arg, env)
            if not domain.is_bounded or domain.bounds[0] < least or largest < domain.bounds[1]:
                yield part.arg


def _describe_narrowing(arg: Expr) -> str:
    origin = origin_of(arg)
    name = "a hugeint" if origin is None else f'"{origin.rpartition(".")[2]}"'
    return f"values of {name} beyond 64 bits are NULL in sums and arithmetic; counts and comparisons are exact"
