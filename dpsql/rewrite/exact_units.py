"""Let what is worked out within one unit depend on the bag of its rows alone, not on the order in which they are met.

    SUM(cost) per patient        →  SUM of whole steps of cost's grid, times the grid
    MIN(a / b), GROUP BY a / b   →  of finite values, with 0.0 for -0.0
    UNION of doubles             →  of finite values, with 0.0 for -0.0

Stability: sums are of integers, which no order changes; and of values that compare as equal there is one spelling, so
that it does not matter which of them stays. Float sums of 0.1, 0.2, 0.3 depend on threads: removing one unit would
move another's rows (SOUNDNESS 2).
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from dpsql.analysis.domains import node_domains
from dpsql.analysis.narrow import Environment
from dpsql.analysis.values import domain_of
from dpsql.errors import UnboundedValues, Unsupported
from dpsql.plan.expr import UID, Cast, Column, Expr
from dpsql.plan.nodes import Aggregate
from dpsql.plan.relations import (
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
from dpsql.plan.walk import map_rows, walk
from dpsql.rewrite.grids import MOST, declared_grids, quantise
from dpsql.rewrite.make_total import finite
from dpsql.schema.domain import Domain
from dpsql.types import BIGINT, HUGEINT, Kind

FINE = 43
"""A range has about 2^43 steps, as fine as `Quantise` allows: nothing here is multiplied by a weight."""

_PICKS = frozenset({"min", "max", "count_distinct", "median"})
"""Where equal values with two faces would show."""

_SPREADS = {"var_pop": "VAR_POP", "var_samp": "VAR_SAMP", "stddev_pop": "STDDEV_POP", "stddev_samp": "STDDEV_SAMP"}
_SUMS = {"sum": "SUM", "mean": "AVG"} | _SPREADS

MOST_SQUARED = 1 << 43
"""Steps of a value that is squared: the squares of 2^40 rows then add up within 128 bits."""

_OFFSET = re.compile(r"(?i)RANGE\b.*(?<!UNBOUNDED)\s(PRECEDING|FOLLOWING)")


def exact_units(aggregate: Aggregate) -> Aggregate:
    return replace(aggregate, input=map_rows(aggregate.input, _exact))


def _exact(node: Rows) -> Rows:
    match node:
        case PerUnit():
            values = _Values(node.input)
            keys = tuple(Named(key.name, finite(key.expr)) for key in node.keys)
            return replace(node, keys=keys, measures=tuple(_measure(m, values) for m in node.measures))
        case UnitWindow():
            _check_frame(node)
            values = _Values(node.input)
            return replace(node, args=tuple(values.exact(node.function, arg) for arg in node.args))
        case SetOperation() if node.kind is not SetKind.UNION_ALL:
            return replace(node, left=_finite_rows(node.left), right=_finite_rows(node.right))
        case SetOperation() | Table() | Scan() | PublicTable() | PublicScan() | RowsHole():
            return node
        case Filter() | Project() | Join() | Mark() | Expand():
            return node
        case _:
            assert_never(node)


def _measure(measure: UnitMeasure, values: _Values) -> UnitMeasure:
    return measure if measure.arg is None else replace(measure, arg=values.exact(measure.function, measure.arg))


class _Values:
    """What the columns of one relation can be, looked up when it is needed."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._env: Environment | None = None
        self._grids: dict[str, Fraction] = {}

    def exact(self, function: str, arg: Expr) -> Expr:
        if function in _PICKS:
            return finite(arg)
        if function not in _SUMS:
            return arg
        if arg.type.is_integer and function not in _SPREADS:
            # SUM of 64-bit integers has 128 bits and holds any number of them; a sum of 128-bit ones would raise.
            return Cast(arg, BIGINT) if arg.type == HUGEINT else arg
        return self._steps(function, arg)

    def _steps(self, function: str, arg: Expr) -> Expr:
        if self._env is None:
            self._env, self._grids = node_domains(self._rows), declared_grids(self._rows)
        domain = _bounded_by_type(domain_of(arg, self._env))
        if not domain.bounded:
            raise _unbounded(function, arg)
        grid = self._grids.get(arg.name) if isinstance(arg, Column) else None
        return quantise(arg, domain, grid, MOST_SQUARED if function in _SPREADS else None, fine=FINE)


def _bounded_by_type(domain: Domain) -> Domain:
    """A short decimal is a whole number of its last place, few enough to be counted exactly without declared bounds."""
    if domain.bounded or domain.type.kind is not Kind.DECIMAL or 10 ** (domain.type.precision or 0) >= MOST:
        return domain
    most = Fraction(10 ** (domain.type.precision or 0) - 1, 10 ** (domain.type.scale or 0))
    return domain.with_bounds(-most, most)


def _unbounded(function: str, arg: Expr) -> UnboundedValues:
    origin = next((part.origin for part in walk(arg) if isinstance(part, Column) and part.origin), None)
    asked = _SUMS[function]
    hint = f"Write {asked}(CLIP(…, 0, 100)) with bounds of your own."
    if origin is not None:
        name = origin.rpartition(".")[2]
        whole = name if isinstance(arg, Column) else "…"
        hint = f"Declare bounds for {origin} in the schema, or write {asked}(CLIP({whole}, 0, 100))."
    return UnboundedValues(f"the values that {asked} adds up for each privacy unit have no bounds", hint=hint)


def _check_frame(node: UnitWindow) -> None:
    """Privacy: an engine adds a RANGE frame's offset to values, and raises where that overflows: for some rows only."""
    if node.frame is not None and _OFFSET.search(node.frame):
        raise Unsupported(
            "a window frame of RANGE with an offset is not supported over private rows",
            hint="Use ROWS BETWEEN … PRECEDING AND CURRENT ROW, or RANGE between UNBOUNDED PRECEDING and CURRENT ROW.",
        )


def _finite_rows(rows: Rows) -> Rows:
    fields = [f for f in row_fields(rows) if f.name != UID]
    if not any(f.type.is_float for f in fields):
        return rows
    return Project(rows, tuple(Named(f.name, finite(Column(f.name, f.type))) for f in fields))
