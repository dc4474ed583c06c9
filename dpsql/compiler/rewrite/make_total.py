"""Make every expression total: arithmetic that cannot overflow, no infinities in keys, exact sums of a unit.

    a + b  (both within 10^6)   →  64-bit addition
    a + b  (no bounds known)    →  128-bit addition, NULL past 64 bits
    GROUP BY x * 2 (a double)   →  GROUP BY x * 2 where finite, else NULL; 0.0 for -0.0, which are one group

Arithmetic is total without this rule too: it only finds where the cheap form is. What WHERE says proves nothing here,
since an engine may compute an expression for rows that a condition is about to drop. Text that could grow without
end is refused.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from dpsql.compiler.analysis.domains import derive_domains, derive_enforced_domains, domain_of
from dpsql.compiler.analysis.narrowing import EnforcedDomains, Environment
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import UID, Arithmetic, Call, Cast, Column, Expr
from dpsql.compiler.plan.relations import (
    Expand,
    Filter,
    Join,
    Mark,
    Named,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    SetKind,
    SetOperation,
    Table,
    UnitMeasure,
    UnitWindow,
    row_fields,
)
from dpsql.compiler.plan.walk import map_expr, map_measure, map_node_exprs, map_rows, origin_of, row_inputs
from dpsql.compiler.rewrite.grids import MAX_STEPS, declared_grids, quantize_arg
from dpsql.compiler.rewrite.release_plan import RuleContext
from dpsql.errors import LimitExceeded, UnboundedValues, Unsupported
from dpsql.schema.model import Domain
from dpsql.types import BIGINT, DOUBLE, HUGEINT, TEXT, Kind, integer_range

MAX_TEXT_LENGTH = 100_000
"""Of one text that an expression may make."""


def make_total(aggregate: Aggregate, _context: RuleContext | None = None) -> Aggregate:
    rows = map_rows(aggregate.input, _make_node_total)
    env = derive_enforced_domains(rows)

    keys = tuple(Named(key.name, make_finite(_make_expr_total(key.expr, env))) for key in aggregate.keys)
    measures = tuple(map_measure(m, lambda arg: _make_expr_total(arg, env)) for m in aggregate.measures)
    return replace(aggregate, input=rows, keys=keys, measures=measures)


def _make_node_total(node: Rows) -> Rows:
    below = [derive_enforced_domains(rows) for rows in row_inputs(node)]
    env = EnforcedDomains({name: domain for domains in below for name, domain in domains.items()})
    return map_node_exprs(node, lambda expr: _make_expr_total(expr, env))


def _make_expr_total(expr: Expr, env: Environment) -> Expr:
    def change(part: Expr) -> Expr:
        if isinstance(part, Call) and part.type == TEXT:
            _check_text_length(part, env)
        if isinstance(part, Arithmetic) and part.type.is_integer and _fits_bigint(part, env):
            return replace(part, fits=True)
        return part

    return map_expr(expr, change)


def _check_text_length(part: Call, env: Environment) -> None:
    """Text that doubles in every sub-select would exhaust memory, for rows that have any: an error that tells."""
    length = domain_of(part, env).length
    if length is None or length > MAX_TEXT_LENGTH:
        raise LimitExceeded(f"{part.function} could make text of more than {MAX_TEXT_LENGTH} characters")


def _fits_bigint(part: Arithmetic, env: Environment) -> bool:
    """The result's bounds hold for every value that the operands can have, NULL aside.

    Only bounds of whole numbers that never were doubles prove it; and -2^63 // -1 and -2^63 % -1 overflow.
    """
    left, right = domain_of(part.left, env), domain_of(part.right, env)
    proven = all(operand.is_bounded and operand.exact for operand in (left, right)) and domain_of(part, env).is_bounded
    if proven and part.op in ("//", "%"):
        return left.bounds[0] > integer_range(BIGINT)[0]
    return proven


def make_finite(expr: Expr) -> Expr:
    """A float that is NULL where it is not finite, and 0.0 for -0.0: equal values look alike."""
    return Call("finite", (expr,), DOUBLE) if expr.type.is_float else expr


def strip_finite(expr: Expr) -> Expr:
    """What `make_finite` was given."""
    return expr.args[0] if isinstance(expr, Call) and expr.function == "finite" else expr


# Let what is worked out within one unit depend on the bag of its rows alone, not on the order in which they are met.
#
#     SUM(cost) per patient        →  SUM of whole steps of cost's grid, times the grid
#     MIN(a / b), GROUP BY a / b   →  of finite values, with 0.0 for -0.0
#     UNION of doubles             →  of finite values, with 0.0 for -0.0
#
# Stability: sums are of integers, which no order changes; and of values that compare as equal there is one spelling, so
# that it does not matter which of them stays. Float sums of 0.1, 0.2, 0.3 depend on threads: removing one unit would
# move another's rows (SOUNDNESS 2).

UNIT_STEP_BITS = 43
"""A range has about 2^43 steps, as fine as `Quantise` allows: nothing here is multiplied by a weight."""

_VALUE_FUNCTIONS = frozenset({"min", "max", "count_distinct", "median"})
"""Where equal values with two faces would show."""

_SPREAD_FUNCTIONS = {
    "var_pop": "VAR_POP",
    "var_samp": "VAR_SAMP",
    "stddev_pop": "STDDEV_POP",
    "stddev_samp": "STDDEV_SAMP",
}
_SUM_FUNCTIONS = {"sum": "SUM", "mean": "AVG"} | _SPREAD_FUNCTIONS

MAX_SQUARED_STEPS = 1 << 43
"""Steps of a value that is squared: the squares of 2^40 rows then add up within 128 bits."""

_OFFSET_FRAME = re.compile(r"(?i)RANGE\b.*(?<!UNBOUNDED)\s(PRECEDING|FOLLOWING)")


def make_unit_aggregates_exact(aggregate: Aggregate, _context: RuleContext | None = None) -> Aggregate:
    return replace(aggregate, input=map_rows(aggregate.input, _make_node_exact))


def _make_node_exact(node: Rows) -> Rows:
    match node:
        case PerUnit():
            values = _ColumnValues(node.input)
            keys = tuple(Named(key.name, make_finite(key.expr)) for key in node.keys)
            return replace(node, keys=keys, measures=tuple(_make_measure_exact(m, values) for m in node.measures))
        case UnitWindow():
            _check_frame(node)
            values = _ColumnValues(node.input)
            return replace(node, args=tuple(values.make_exact(node.function, arg) for arg in node.args))
        case SetOperation() if node.kind is not SetKind.UNION_ALL:
            return replace(node, left=_make_rows_finite(node.left), right=_make_rows_finite(node.right))
        case SetOperation() | Table() | Scan() | PublicTable() | PublicScan() | RowsHole():
            return node
        case Filter() | Project() | Join() | Mark() | Expand():
            return node
        case _:
            assert_never(node)


def _make_measure_exact(measure: UnitMeasure, values: _ColumnValues) -> UnitMeasure:
    return measure if measure.arg is None else replace(measure, arg=values.make_exact(measure.function, measure.arg))


class _ColumnValues:
    """What the columns of one relation can be, looked up when it is needed."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._env: Environment | None = None
        self._grids: dict[str, Fraction] = {}

    def make_exact(self, function: str, arg: Expr) -> Expr:
        if function in _VALUE_FUNCTIONS:
            return make_finite(arg)
        if function not in _SUM_FUNCTIONS:
            return arg
        if arg.type.is_integer and function not in _SPREAD_FUNCTIONS:
            # SUM of 64-bit integers has 128 bits and holds any number of them; a sum of 128-bit ones would raise.
            return Cast(arg, BIGINT) if arg.type == HUGEINT else arg
        return self._quantize_arg(function, arg)

    def _quantize_arg(self, function: str, arg: Expr) -> Expr:
        if self._env is None:
            self._env, self._grids = derive_domains(self._rows), declared_grids(self._rows)
        domain = _bound_by_type(domain_of(arg, self._env))
        if not domain.is_bounded:
            raise _unbounded_error(function, arg)
        grid = self._grids.get(arg.name) if isinstance(arg, Column) else None
        return quantize_arg(
            arg, domain, grid, MAX_SQUARED_STEPS if function in _SPREAD_FUNCTIONS else None, fine=UNIT_STEP_BITS
        )


def _bound_by_type(domain: Domain) -> Domain:
    """A short decimal is a whole number of its last place, few enough to be counted exactly without declared bounds."""
    if domain.is_bounded or domain.type.kind is not Kind.DECIMAL or 10 ** (domain.type.precision or 0) >= MAX_STEPS:
        return domain
    max_value = Fraction(10 ** (domain.type.precision or 0) - 1, 10 ** (domain.type.scale or 0))
    return domain.with_bounds(-max_value, max_value)


def _unbounded_error(function: str, arg: Expr) -> UnboundedValues:
    origin = origin_of(arg)
    function_name = _SUM_FUNCTIONS[function]
    hint = f"Write {function_name}(CLIP(…, 0, 100)) with bounds of your own."
    if origin is not None:
        name = origin.rpartition(".")[2]
        argument = name if isinstance(arg, Column) else "…"
        hint = f"Declare bounds for {origin} in the schema, or write {function_name}(CLIP({argument}, 0, 100))."
    return UnboundedValues(f"the values that {function_name} adds up for each privacy unit have no bounds", hint=hint)


def _check_frame(node: UnitWindow) -> None:
    """Privacy: an engine adds a RANGE frame's offset to values, and raises where that overflows: for some rows only."""
    if node.frame is not None and _OFFSET_FRAME.search(node.frame):
        raise Unsupported(
            "a window frame of RANGE with an offset is not supported over private rows",
            hint="Use ROWS BETWEEN … PRECEDING AND CURRENT ROW, or RANGE between UNBOUNDED PRECEDING and CURRENT ROW.",
        )


def _make_rows_finite(rows: Rows) -> Rows:
    fields = [f for f in row_fields(rows) if f.name != UID]
    if not any(f.type.is_float for f in fields):
        return rows
    return Project(rows, tuple(Named(f.name, make_finite(Column(f.name, f.type))) for f in fields))
