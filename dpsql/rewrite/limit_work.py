"""Refuse statements that could keep the engine busy with the text of a single row, before anything is charged.

    lower(ward) = 'surgery'                                          →  some thousand characters for a row
    strpos(initcap(repeat(repeat(note, 90), 90)), …), 900 times      →  refused

Privacy: with a condition that only one person's row meets, the time that the row takes tells whether it is there, and
past the owner's time limit a failure does (SOUNDNESS 10). So the work that any one private row can cause is bounded
when compiling: the characters that functions may read, times the public rows that the row meets. What is left grows
with the number of a unit's rows, not with the statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpsql.analysis.domains import derive_domains
from dpsql.analysis.narrow import Environment
from dpsql.analysis.public import max_row_multiplication
from dpsql.analysis.values import domain_of
from dpsql.errors import LimitExceeded
from dpsql.plan.expr import And, Call, Cast, Expr, Or
from dpsql.plan.nodes import Aggregate
from dpsql.plan.relations import Rows, is_public
from dpsql.plan.walk import child_exprs, measure_args, node_exprs, row_inputs, walk_exprs, walk_rows
from dpsql.types import TEXT

MAX_CHARACTERS = 10_000_000
"""Characters that functions may read for one private row: at about a nanosecond each, a hundredth of a second."""

DEFAULT_TEXT_LENGTH = 100_000
"""What a text may be where nothing is known of it: functions refuse to make longer ones."""

MAX_CONDITIONS = 1_000
"""In AND and OR of one release: DuckDB's optimizer takes some seconds for a thousand, minutes for three thousand."""

_CHARACTER_COSTS: Mapping[str, int] = {
    "initcap": 800,  # takes a text apart into a list of letters
    "regexp_replace": 120, "regexp_substr": 20, "regexp_like": 20, "similar": 20, "translate": 50, "replace": 20,
    "trim": 25, "ltrim": 25, "rtrim": 25, "split_part": 10, "like": 5, "ilike": 5,
}  # fmt: skip
"""What a character costs, in those of `lower`: about twice what `python -m benchmarks.functions` measures."""


def limit_work(aggregate: Aggregate) -> Aggregate:
    release_exprs = [*(key.expr for key in aggregate.keys), *(arg for m in aggregate.measures for arg in measure_args(m))]
    work = max_row_multiplication(aggregate.input) * _count_characters(release_exprs, aggregate.input)
    for node in walk_rows(aggregate.input):
        exprs = () if is_public(node) else node_exprs(node)
        if exprs:
            work += max_row_multiplication(node) * _count_characters(exprs, *row_inputs(node))
    if work > MAX_CHARACTERS:
        raise LimitExceeded(
            "functions of text could take too long for one private row",
            detail=f"They may read {work:,} characters, counted by what each costs; {MAX_CHARACTERS:,} are allowed.",
            hint="Shorten the text first, as with LEFT(…, 100), or meet fewer public rows.",
        )
    return aggregate


def character_cost(function: str) -> int:
    return _CHARACTER_COSTS.get(function, 1)


def _count_characters(exprs: list[Expr] | tuple[Expr, ...], *inputs: Rows) -> int:
    env: Environment | None = None
    characters = 0
    for expr in exprs:
        for part in _text_readers(expr):
            if env is None:
                env = {name: domain for rows in inputs for name, domain in derive_domains(rows).items()}
            each = character_cost(part.function) if isinstance(part, Call) else 1
            characters += each * sum(_max_text_length(arg, env) for arg in child_exprs(part) if arg.type == TEXT)
    return characters


def _text_readers(expr: Expr) -> Iterator[Call | Cast]:
    """Functions and casts that read text."""
    for part in walk_exprs(expr):
        if isinstance(part, Call | Cast) and any(arg.type == TEXT for arg in child_exprs(part)):
            yield part


def _max_text_length(arg: Expr, env: Environment) -> int:
    length = domain_of(arg, env).length
    return DEFAULT_TEXT_LENGTH if length is None else length


def limit_conditions(aggregate: Aggregate) -> None:
    """Engines take time that grows with the square of a chain of AND or OR, and more; lists of values are no chains."""
    rows = [expr for node in walk_rows(aggregate.input) for expr in node_exprs(node)]
    exprs = [*rows, *(key.expr for key in aggregate.keys), *(arg for m in aggregate.measures for arg in measure_args(m))]
    parts = sum(len(part.args) for expr in exprs for part in walk_exprs(expr) if isinstance(part, And | Or))
    if parts > MAX_CONDITIONS:
        raise LimitExceeded(f"private rows are tried on more than {MAX_CONDITIONS} conditions",
                            hint="Equalities may be a list: x IN (1, 2, 3), x NOT IN (1, 2, 3).")  # fmt: skip
