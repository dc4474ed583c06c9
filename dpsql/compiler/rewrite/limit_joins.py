"""Refuse statements that could take an engine long over the rows of one unit, before anything is charged.

Joins of private rows with each other may multiply a unit's rows up to a power:

    visits a JOIN visits b ON the unit                  →  n * n rows of a unit with n visits
    prescriptions p JOIN visits v ON the visit's key    →  n: a prescription meets one visit
    visits grouped by unit and year, of year 2024       →  one row, whatever meets it
    WHERE EXISTS (SELECT … of n * n rows, of v.stay)    →  n * n: equalities are looked up, not tried
    four tables of visits, joined on the unit alone     →  refused

Privacy: how long an engine works, and whether it runs out of memory, depends on the rows of single units. The bound
keeps that from growing with the statement (SOUNDNESS 2, 10): with eight tables of visits, a unit of ten rows took 26 s
and its absence none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from dpsql.compiler.analysis.domains import derive_domains, domain_of
from dpsql.compiler.analysis.narrowing import Environment
from dpsql.compiler.analysis.public_rows import (
    columns_equated_to_left,
    has_only_equalities,
    max_row_multiplication,
)
from dpsql.compiler.analysis.units import derive_unit_facts
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import And, Call, Cast, Column, Compare, Expr, Or, split_conjuncts
from dpsql.compiler.plan.relations import (
    Expand,
    Filter,
    Join,
    JoinKind,
    Mark,
    Named,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    SetOperation,
    Table,
    UnitWindow,
    is_public,
    row_fields,
)
from dpsql.compiler.plan.walk import (
    aggregate_exprs,
    child_exprs,
    columns_of,
    has_joins,
    node_exprs,
    row_inputs,
    walk_exprs,
    walk_rows,
)
from dpsql.compiler.rewrite.release_plan import RuleContext
from dpsql.errors import LimitExceeded
from dpsql.types import TEXT

MAX_POWER = 3
"""As for the three steps of a funnel; more are asked with a row for each unit in between."""


def limit_joins(aggregate: Aggregate, _context: RuleContext | None = None) -> Aggregate:
    if _row_power(aggregate.input).most > MAX_POWER:
        raise LimitExceeded(
            f"more than {MAX_POWER} private tables with many rows for each unit meet on the unit alone",
            hint="Group them by the unit in sub-selects first, or join them on a key that the schema declares unique.",
        )
    return aggregate


@dataclass(frozen=True)
class _RowPower:
    """How joins multiply a unit's n rows: n to the power `now` leave a step, `most` is the largest of all steps."""

    now: int
    most: int


def _row_power(node: Rows, fixed: frozenset[str] = frozenset()) -> _RowPower:
    """`fixed` are columns of which a filter above keeps one value, with nothing but rows of one input in between.

    Privacy: a step is counted before what stands above it. So no filter is taken through a join, whatever an engine's
    optimizer may do, and of a grouping only what leaves it is fewer.
    """
    match node:
        case Scan():
            return _RowPower(0, 0) if node.unit is None or node.unit_is_unique else _RowPower(1, 1)
        case Filter():
            inner = _row_power(node.input, fixed | _columns_with_one_value(node.condition))
            # Such as the row of one year, where the schema says that a unit has one row in each.
            return _RowPower(0, inner.most) if inner.now and derive_unit_facts(node).rows == 1 else inner
        case Project():
            return _row_power(node.input, _names_below(node.columns, fixed))
        case UnitWindow():
            return _row_power(node.input, fixed)
        case Expand():
            return _row_power(node.input)
        case PerUnit():
            inner = _row_power(node.input)
            same = fixed | derive_unit_facts(node).determined
            return _RowPower(inner.now if any(key.name not in same for key in node.keys) else 0, inner.most)
        case Join() if not is_public(node.right):
            left, right = _row_power(node.left), _row_power(node.right)
            now = _joined_power(node, left.now, right.now)
            return _RowPower(now, max(now, left.most, right.most))
        case Mark() if not is_public(node.right):
            left, right = _row_power(node.left), _row_power(node.right)
            looked_up = _has_unique_match(node) or has_only_equalities(node)
            probed = left.now if looked_up else left.now + right.now
            return _RowPower(left.now, max(probed, left.most, right.most))
        case Join() | Mark():
            return _row_power(node.left)
        case SetOperation():
            left, right = (_row_power(side, _fixed_on_side(node, side, fixed)) for side in (node.left, node.right))
            return _RowPower(max(left.now, right.now), max(left.most, right.most))
        case Table() | PublicTable() | PublicScan() | RowsHole():
            return _RowPower(0, 0)
        case _:
            assert_never(node)


def _columns_with_one_value(condition: Expr) -> frozenset[str]:
    """Columns that a condition equates to something without columns: a literal, or a released value."""
    return frozenset(
        side.name
        for part in split_conjuncts(condition)
        if isinstance(part, Compare) and part.op == "="
        for side, other in ((part.left, part.right), (part.right, part.left))
        if isinstance(side, Column) and not columns_of(other)
    )


def _names_below(columns: tuple[Named, ...], names: frozenset[str]) -> frozenset[str]:
    return frozenset(c.expr.name for c in columns if c.name in names and isinstance(c.expr, Column))


def _fixed_on_side(node: SetOperation, side: Rows, fixed: frozenset[str]) -> frozenset[str]:
    """Columns meet by their places, and have the names of the left."""
    places = zip(row_fields(node.left), row_fields(side), strict=True)
    return frozenset(theirs.name for ours, theirs in places if ours.name in fixed)


def _joined_power(join: Join, left: int, right: int) -> int:
    if _has_unique_match(join):
        return max(left, right) if join.kind is JoinKind.FULL else left
    named = columns_equated_to_left(join.condition, join.right, join.left)
    if any(key <= named for key in _private_unique_keys(join.left)):
        return right if join.kind is JoinKind.INNER else max(left, right)
    return left + right


def _has_unique_match(node: Join | Mark) -> bool:
    """Whether a row of the left meets at most one of the right: the condition names a unique key of it."""
    named = columns_equated_to_left(node.condition, node.left, node.right)
    return any(key <= named for key in _private_unique_keys(node.right))


def _private_unique_keys(node: Rows) -> tuple[frozenset[str], ...]:
    """Accepted unique keys of private rows, under the names that they have here."""
    match node:
        case Scan():
            return node.unique
        case Filter() | UnitWindow():
            return _private_unique_keys(node.input)
        case Mark():
            return _private_unique_keys(node.left)
        case Project():
            names = {c.expr.name: c.name for c in node.columns if isinstance(c.expr, Column)}
            return tuple(
                frozenset(names[n] for n in key) for key in _private_unique_keys(node.input) if key <= names.keys()
            )
        case Join() if not is_public(node.right) and node.kind is not JoinKind.FULL and _has_unique_match(node):
            return _private_unique_keys(node.left)
        case Join() | PerUnit() | SetOperation() | Expand() | Table() | PublicTable() | PublicScan() | RowsHole():
            return ()
        case _:
            assert_never(node)


# Refuse joins with public rows that would multiply private ones beyond a limit, before anything is charged.
#
#     visits JOIN wards ON visits.ward = wards.ward  (ward is unique)  →  a visit meets one ward
#     visits JOIN days ON visits.at < days.day       (2,000 days)      →  refused
#
# Privacy: what an engine fails on, or how long it takes, may depend on rows (SOUNDNESS 2, 10).

MAX_MATCHED_ROWS = 1_000
"""Public rows that one private row may meet, over all joins."""


def limit_public_joins(aggregate: Aggregate, _context: RuleContext | None = None) -> Aggregate:
    multiplication = max_row_multiplication(aggregate.input) if has_joins(aggregate.input) else 1
    if multiplication <= MAX_MATCHED_ROWS:
        return aggregate
    scans = [node for node in walk_rows(aggregate.input) if isinstance(node, PublicScan)]
    largest = max(scans, key=lambda scan: scan.rows, default=None)
    hint = "Join on a column that is unique among the public rows, or filter or aggregate them in a sub-select first."
    if largest is not None:
        hint = (
            f'Join on a key of "{largest.table}" that the schema declares unique, '
            "or filter or aggregate its rows in a sub-select first."
        )
    raise LimitExceeded(
        f"one private row could meet {multiplication} public rows; at most {MAX_MATCHED_ROWS} are allowed", hint=hint
    )


# Refuse statements that could keep the engine busy with the text of a single row, before anything is charged.
#
#     lower(ward) = 'surgery'                                          →  some thousand characters for a row
#     strpos(initcap(repeat(repeat(note, 90), 90)), …), 900 times      →  refused
#
# Privacy: with a condition that only one person's row meets, the time that the row takes tells whether it is there, and
# past the owner's time limit a failure does (SOUNDNESS 10). So the work that any one private row can cause is bounded
# when compiling: the characters that functions may read, times the public rows that the row meets. What is left grows
# with the number of a unit's rows, not with the statement.

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


def limit_work(aggregate: Aggregate, _context: RuleContext | None = None) -> Aggregate:
    work = _count_work(aggregate.input, aggregate_exprs(aggregate), aggregate.input)
    for node in walk_rows(aggregate.input):
        exprs = () if is_public(node) else node_exprs(node)
        if exprs:
            work += _count_work(node, exprs, *row_inputs(node))
    if work > MAX_CHARACTERS:
        raise LimitExceeded(
            "functions of text could take too long for one private row",
            detail=f"They may read {work:,} characters, counted by what each costs; {MAX_CHARACTERS:,} are allowed.",
            hint="Shorten the text first, as with LEFT(…, 100), or meet fewer public rows.",
        )
    return aggregate


def _count_work(node: Rows, exprs: list[Expr] | tuple[Expr, ...], *inputs: Rows) -> int:
    """Characters that a node's expressions read for one private row: of `inputs`, times the public rows it meets."""
    characters = _count_characters(exprs, *inputs)
    return characters and max_row_multiplication(node) * characters


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
    exprs = [*rows, *aggregate_exprs(aggregate)]
    parts = sum(len(part.args) for expr in exprs for part in walk_exprs(expr) if isinstance(part, And | Or))
    if parts > MAX_CONDITIONS:
        raise LimitExceeded(f"private rows are tried on more than {MAX_CONDITIONS} conditions",
                            hint="Equalities may be a list: x IN (1, 2, 3), x NOT IN (1, 2, 3).")  # fmt: skip
