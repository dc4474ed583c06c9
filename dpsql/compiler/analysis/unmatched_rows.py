"""Public rows that a LEFT JOIN keeps without a private one: what a statement would make of them.

Such a row belongs to no privacy unit, and whether there is one depends on private rows; so it is never in a plan, and
the join runs as an inner one. That changes nothing where unmatched rows would add nothing:

    products LEFT JOIN items …, SUM(items.quantity)        →  NULL is not summed
    … WHERE items.price > 5                                →  NULL is not above 5
    … WHERE items.id IS NULL, COUNT(*)                     →  counts nothing but unmatched rows: refused

Law: an answer that unmatched rows would change is refused before the charge, but for rows counted beside the matched
ones, of which a notice tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import (
    FALSE,
    TRUE,
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Clip,
    Column,
    Compare,
    Expr,
    HoleValue,
    InHole,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    Quantise,
    split_conjuncts,
)
from dpsql.compiler.plan.measures import (
    Blockwise,
    CountDistinctUnits,
    CountRows,
    CountValues,
    Measure,
    PairValues,
    SumValues,
)
from dpsql.compiler.plan.relations import (
    Expand,
    Filter,
    Join,
    JoinKind,
    Mark,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    SetOperation,
    Table,
    UnitMeasure,
    UnitWindow,
    Unmatched,
    row_fields,
)
from dpsql.compiler.plan.walk import columns_of, measure_args
from dpsql.errors import Span, Unsupported
from dpsql.types import BIGINT, BOOLEAN

UNMATCHED_ROWS_NOTICE = (
    "rows without a privacy unit are not counted: in a LEFT JOIN from public rows to private ones, COUNT(*) counts"
    " matched rows"
)


@dataclass(frozen=True)
class _UnmatchedRows:
    """The unmatched rows of one join, as they would leave a step.

    `values` has the columns that tell a row of them from others: NULL where the private side is read, and what
    expressions make of that; a column that is not there has the public row's own value. `chosen`: a condition kept
    them that looks at the private side.
    """

    join: Unmatched
    values: Mapping[str, Expr]
    chosen: bool = False


def find_unmatched_notices(aggregate: Aggregate) -> tuple[str, ...]:
    """Refuses what unmatched rows would change; the notice, where they are not counted."""
    notices: tuple[str, ...] = ()
    for rows in _unmatched_rows(aggregate.input):
        adding = [measure for measure in aggregate.measures if not _adds_nothing(measure, rows)]
        if not adding and (aggregate.measures or not rows.chosen):
            continue
        if rows.chosen or any(_tells_unmatched(key.expr, rows) for key in aggregate.keys):
            raise _unmatched_rows_error(rows.join, None)
        unlike = next((measure for measure in adding if not _counts_rows(measure, rows)), None)
        if unlike is None and len(adding) < sum(isinstance(m, CountRows | CountValues) for m in aggregate.measures):
            unlike = adding[0]  # COUNT(*) - COUNT(x) would be the number of unmatched rows
        if unlike is not None:
            raise _unmatched_rows_error(rows.join, unlike.span)
        notices = (UNMATCHED_ROWS_NOTICE,)
    return notices


def keeps_unmatched_groups(aggregate: Aggregate) -> bool:
    """Whether SQL has a row for every group, since a LEFT JOIN keeps the public rows that the groups are of."""
    read = frozenset(name for key in aggregate.keys for name in columns_of(key.expr))
    return any(not read & rows.values.keys() for rows in _unmatched_rows(aggregate.input))


def _unmatched_rows_error(join: Unmatched, span: Span | None) -> Unsupported:
    return Unsupported(
        "the answer would depend on public rows that match no private row, which are not counted",
        detail="They belong to no privacy unit, and a single one can match or leave many of them unmatched.",
        hint=f"Write JOIN instead of LEFT JOIN to ask about matched rows. {join.hint}",
        span=span or join.span,
    )


# --- measures and keys -----------------------------------------------------------------------------------------------


def _adds_nothing(measure: Measure, rows: _UnmatchedRows) -> bool:
    """Whether unmatched rows leave the measure as it is: their argument is NULL, or 0 in a sum."""
    if isinstance(measure, CountDistinctUnits):
        return True  # they have none
    if isinstance(measure, CountRows):
        return False
    args = [_value_of(arg, rows) for arg in measure_args(measure)]
    if isinstance(measure, SumValues):
        return _is_null(args[0]) or _is_zero(args[0])
    if isinstance(measure, PairValues):
        return any(map(_is_null, args))
    if isinstance(measure, Blockwise):
        return len(args) == len(measure.statistic.aggregates) and all(map(_is_null, args))
    return _is_null(args[0])


def _counts_rows(measure: Measure, rows: _UnmatchedRows) -> bool:
    """COUNT(*), and COUNT of what the public row has whether it is matched or not."""
    return isinstance(measure, CountRows) or (
        isinstance(measure, CountValues) and not columns_of(measure.arg) & rows.values.keys()
    )


def _tells_unmatched(key: Expr, rows: _UnmatchedRows) -> bool:
    """Whether a key puts unmatched rows into groups by what it reads of the private side; NULL is SQL's own group."""
    return bool(columns_of(key) & rows.values.keys()) and not _is_null(_value_of(key, rows))


# --- relations -------------------------------------------------------------------------------------------------------


def _unmatched_rows(node: Rows) -> list[_UnmatchedRows]:
    match node:
        case Table() | Scan() | PublicTable() | PublicScan() | RowsHole():
            return []
        case Filter():
            kept = (_keep_rows(rows, split_conjuncts(node.condition)) for rows in _unmatched_rows(node.input))
            return [rows for rows in kept if rows is not None]
        case Project():
            return [_compute_columns(rows, ((c.name, c.expr) for c in node.columns))
                    for rows in _unmatched_rows(node.input)]  # fmt: skip
        case Join():
            return _rows_of_join(node)
        case Mark():
            return _rows_of_mark(node)
        case PerUnit():
            return [_group_rows(rows, node) for rows in _unmatched_rows(node.input)]
        case UnitWindow():
            return [_add_value(rows, node.name, Column(node.name, node.type)) for rows in _unmatched_rows(node.input)]
        case SetOperation():
            names = dict(zip([f.name for f in row_fields(node.right)], [f.name for f in row_fields(node.left)],
                             strict=True))  # fmt: skip
            moved = [replace(rows, values={names[name]: value for name, value in rows.values.items()})
                     for rows in _unmatched_rows(node.right)]  # fmt: skip
            return [*_unmatched_rows(node.left), *moved]
        case Expand():
            return _unmatched_rows(node.input)
        case _:
            assert_never(node)


def _rows_of_join(join: Join) -> list[_UnmatchedRows]:
    """Those of both sides that the join keeps, and its own where it keeps public rows that meet no private one."""
    parts = split_conjuncts(join.condition)
    result: list[_UnmatchedRows] = []
    if join.unmatched is not None:
        result.append(_UnmatchedRows(join.unmatched, _nulls(join.left)))
    for side, other, stays in (
        (join.left, join.right, join.kind is not JoinKind.INNER),
        (join.right, join.left, join.kind is JoinKind.FULL),
    ):
        for rows in _unmatched_rows(side):
            kept = _keep_rows(rows, parts)
            if kept is not None:
                result.append(kept)
            elif stays:
                result.append(replace(rows, values={**rows.values, **_nulls(other)}))
    return result


def _rows_of_mark(mark: Mark) -> list[_UnmatchedRows]:
    """A sub-select over unmatched rows looks at them unless its condition is false of them."""
    for rows in _unmatched_rows(mark.right):
        if _keep_rows(rows, split_conjuncts(mark.condition)) is not None:
            raise _unmatched_rows_error(rows.join, None)
    tested = () if mark.test is None else mark.test
    read = columns_of(mark.condition).union(*map(columns_of, tested))
    result = []
    for rows in _unmatched_rows(mark.left):
        if not read & rows.values.keys():
            result.append(rows)
        elif mark.test is None and _keep_rows(rows, split_conjuncts(mark.condition)) is None:
            result.append(_add_value(rows, mark.name, FALSE))
        else:
            result.append(_add_value(rows, mark.name, Column(mark.name, BOOLEAN)))
    return result


def _keep_rows(rows: _UnmatchedRows, conditions: Iterable[Expr]) -> _UnmatchedRows | None:
    """The rows for which all conditions may be true; None where one never is."""
    chosen = rows.chosen
    for condition in conditions:
        value = _value_of(condition, rows)
        if any(_is_null(part) or part == FALSE for part in split_conjuncts(value)):
            return None
        chosen |= bool(columns_of(condition) & rows.values.keys())
    return replace(rows, chosen=chosen)


def _compute_columns(rows: _UnmatchedRows, columns: Iterable[tuple[str, Expr]]) -> _UnmatchedRows:
    values = {name: _value_of(expr, rows) for name, expr in columns if columns_of(expr) & rows.values.keys()}
    return replace(rows, values=values)


def _group_rows(rows: _UnmatchedRows, node: PerUnit) -> _UnmatchedRows:
    """They have no unit, and are a group of their own: what it counts is known where it counts nothing."""
    keyed = _compute_columns(rows, ((key.name, key.expr) for key in node.keys))
    measures = {measure.name: _value_of_unit_measure(measure, rows) for measure in node.measures}
    return replace(keyed, values={**keyed.values, **measures})


def _value_of_unit_measure(measure: UnitMeasure, rows: _UnmatchedRows) -> Expr:
    if measure.arg is None or not _is_null(_value_of(measure.arg, rows)):
        return Column(measure.name, measure.type)
    return Literal(0, BIGINT) if measure.function.startswith("count") else Literal(None, measure.type)


def _add_value(rows: _UnmatchedRows, name: str, value: Expr) -> _UnmatchedRows:
    return replace(rows, values={**rows.values, name: value})


def _nulls(node: Rows) -> dict[str, Expr]:
    return {f.name: Literal(None, f.type) for f in row_fields(node)}


# --- expressions -----------------------------------------------------------------------------------------------------

_KEEP_NULLS = frozenset({"greatest", "least", "concat_ws", "row_hash"})
"""Functions, besides COALESCE and NULLIF, that may give a value where an argument is NULL."""


def _value_of(expr: Expr, rows: _UnmatchedRows) -> Expr:
    return _simplify(expr, rows.values)


def _is_null(value: Expr) -> bool:
    return isinstance(value, Literal) and value.value is None


def _is_zero(value: Expr) -> bool:
    return isinstance(value, Literal) and value.value is not None and value.value == 0


def _simplify(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """What is left of an expression where columns have these values: a literal where they decide it."""

    def inner(part: Expr) -> Expr:
        return _simplify(part, values)

    match expr:
        case Column():
            return values.get(expr.name, expr)
        case Literal() | HoleValue():
            return expr
        case Compare() | Arithmetic():
            left, right = inner(expr.left), inner(expr.right)
            null = _is_null(left) or _is_null(right)
            return Literal(None, expr.type) if null else replace(expr, left=left, right=right)
        case And():
            return _simplify_and(tuple(map(inner, expr.args)))
        case Or():
            return _negate(_simplify_and(tuple(_negate(inner(arg)) for arg in expr.args)))
        case Not():
            return _negate(inner(expr.arg))
        case IsNull():
            arg = inner(expr.arg)
            if isinstance(arg, Literal):
                return TRUE if arg.value is None else FALSE
            return IsNull(arg)
        case InList() | InHole() | Cast() | Clip() | Quantise():
            arg = inner(expr.arg)
            return Literal(None, expr.type) if _is_null(arg) else replace(expr, arg=arg)
        case Case():
            return _simplify_case(expr, values)
        case Call():
            return _simplify_call(expr, tuple(map(inner, expr.args)))
        case _:
            assert_never(expr)


def _simplify_and(args: tuple[Expr, ...]) -> Expr:
    parts = tuple(dict.fromkeys(part for arg in args for part in split_conjuncts(arg) if part != TRUE))
    if FALSE in parts:
        return FALSE
    return TRUE if not parts else parts[0] if len(parts) == 1 else And(parts)


def _negate(value: Expr) -> Expr:
    if isinstance(value, Not):
        return value.arg
    if isinstance(value, Literal):
        return value if value.value is None else FALSE if value.value else TRUE
    return Not(value)


def _simplify_case(expr: Case, values: Mapping[str, Expr]) -> Expr:
    branches: list[tuple[Expr, Expr]] = []
    otherwise = _simplify(expr.otherwise, values)
    for when, then in expr.branches:
        condition = _simplify(when, values)
        if any(_is_null(part) or part == FALSE for part in split_conjuncts(condition)):
            continue
        if condition == TRUE:
            otherwise = _simplify(then, values)
            break
        branches.append((condition, _simplify(then, values)))
    results = {otherwise, *(then for _, then in branches)}
    return otherwise if len(results) == 1 else replace(expr, branches=tuple(branches), otherwise=otherwise)


def _simplify_call(expr: Call, args: tuple[Expr, ...]) -> Expr:
    present = tuple(arg for arg in args if not _is_null(arg))
    if expr.function == "coalesce":
        first = present[0] if present else Literal(None, expr.type)
        return first if isinstance(first, Literal) else replace(expr, args=present)
    if expr.function == "nullif":
        return args[0] if len(present) < len(args) else replace(expr, args=args)
    if len(present) < len(args) and expr.function not in _KEEP_NULLS:
        return Literal(None, expr.type)
    return replace(expr, args=args)
