"""The domain of every column of a relation: as conditions narrow it, and as the scans enforce it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from dpsql.analysis.narrow import Enforced, narrow
from dpsql.analysis.values import domain_of, hull
from dpsql.plan.expr import Column, Compare, Expr, Quantise, conjuncts
from dpsql.plan.relations import (
    SET,
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
    SetKind,
    SetOperation,
    Table,
    UnitMeasure,
    UnitWindow,
    row_fields,
)
from dpsql.schema.domain import Domain, boolean_domain
from dpsql.types import BIGINT, Type

Domains = dict[str, Domain]


def node_domains(node: Rows, assume: int | None = None) -> Domains:
    """The domain of every column, for the rows that are left.

    `assume` is the most rows that a unit is taken to have when its counts and sums are bounded. It holds for no data:
    only what a sum's noise is computed from may use it, since `Quantise` clips to it (a unit counts like at most that
    many rows); groups and arithmetic must not.
    """
    return _domains(node, assume, enforced=False)


def enforced_domains(node: Rows) -> Enforced:
    """The domains that the scans enforce, without what conditions say."""
    return Enforced(_domains(node, None, enforced=True))


def _domains(node: Rows, assume: int | None, enforced: bool) -> Domains:
    def below(rows: Rows) -> Domains:
        found = _domains(rows, assume, enforced)
        return Enforced(found) if enforced else found

    match node:
        case Scan() | PublicScan():
            return {column.name: column.values for column in node.columns}
        case RowsHole():
            return {f.name: domain.with_nullable(True) for f, domain in zip(node.columns, node.domains, strict=True)}
        case Filter():
            return _where(below(node.input), node.condition)
        case Project():
            inner = below(node.input)
            return {column.name: domain_of(column.expr, inner) for column in node.columns}
        case Join():
            return _join(node, below(node.left), below(node.right))
        case Mark():
            return below(node.left) | {node.name: boolean_domain(node.test is not None)}
        case PerUnit():
            inner = below(node.input)
            keys = {key.name: domain_of(key.expr, inner) for key in node.keys}
            return keys | {m.name: _unit_measure(m, inner, assume) for m in node.measures}
        case UnitWindow():
            inner = below(node.input)
            return inner | {node.name: _window(node, inner, assume)}
        case SetOperation():
            return _set_operation(node, below(node.left), below(node.right))
        case Expand():
            inner = below(node.input)
            keys = {key: inner[key].with_nullable(True) for key in node.keys}
            numbers = tuple(range(len(node.sets)))
            number = Domain(BIGINT, False, Fraction(0), Fraction(max(0, len(numbers) - 1)), numbers)
            return inner | keys | {SET: number}
        case Table() | PublicTable():
            raise TypeError("domains are derived from sanitised rows")
        case _:
            assert_never(node)


def _where(env: Domains, condition: Expr) -> Domains:
    narrowed = narrow(env, condition)
    if isinstance(env, Enforced):
        return narrowed
    for part in conjuncts(condition):
        match part:
            case Compare("=", Column() as one, Column() as other) if one.type == other.type:
                meeting = _meeting(narrowed[one.name], narrowed[other.name])
                narrowed |= {one.name: meeting, other.name: meeting}
            case _:
                pass
    return narrowed


def _meeting(one: Domain, other: Domain) -> Domain:
    """Values that both of two equal columns can have."""
    values = one.values if other.values is None else other.values
    if one.values is not None and other.values is not None:
        values = tuple(value for value in one.values if value in other.values)
    lowers = [bound for bound in (one.lower, other.lower) if bound is not None]
    uppers = [bound for bound in (one.upper, other.upper) if bound is not None]
    lower, upper = max(lowers, default=None), min(uppers, default=None)
    if lower is not None and upper is not None and lower > upper:  # no row is left; any bounds hold
        lower, upper, values = one.lower, one.upper, ()
    return replace(
        one, nullable=False, lower=lower, upper=upper, values=values, exact=one.exact and other.exact
    )


def _join(join: Join, left: Domains, right: Domains) -> Domains:
    def optional(env: Domains) -> Domains:
        return {name: domain.with_nullable(True) for name, domain in env.items()}

    match join.kind:
        case JoinKind.INNER:
            both = left | right
            return _where(Enforced(both) if isinstance(left, Enforced) else both, join.condition)
        case JoinKind.LEFT:
            return left | optional(right)
        case JoinKind.FULL:
            return optional(left) | optional(right)
        case _:
            assert_never(join.kind)


def _set_operation(node: SetOperation, left: Domains, right: Domains) -> Domains:
    if node.kind in (SetKind.INTERSECT, SetKind.EXCEPT):
        return left
    pairs = zip(row_fields(node.left), row_fields(node.right), strict=True)
    return {
        ours.name: hull((left[ours.name], right[theirs.name]), ours.type)
        for ours, theirs in pairs
        if ours.name in left
    }


def _count(least: int, assume: int | None) -> Domain:
    return Domain(BIGINT, False, Fraction(least), None if assume is None else Fraction(assume))


def _total(arg: Domain, type_: Type, assume: int | None) -> Domain:
    if assume is None or not arg.bounded:
        return Domain(type_, True, exact=False)
    lower, upper = arg.bounds
    return Domain(type_, True, min(lower, lower * assume), max(upper, upper * assume), exact=False)


def _aggregated(arg: Expr, env: Domains) -> Domain:
    """The values that are summed: whole steps are worth their grid."""
    domain = domain_of(arg, env)
    if not isinstance(arg, Quantise):
        return domain
    return domain.with_bounds(*(bound * arg.grid for bound in domain.bounds))


def _unit_measure(measure: UnitMeasure, env: Domains, assume: int | None) -> Domain:
    arg = None if measure.arg is None else _aggregated(measure.arg, env)
    match measure.function:
        case "count_rows":
            return _count(1, assume)
        case "count" | "count_distinct":
            return _count(0, assume)
        case "sum" if arg is not None:
            return _total(arg, measure.type, assume)
        case "mean" if arg is not None:
            return Domain(measure.type, True, arg.lower, arg.upper, exact=False)
        case "median" if arg is not None:
            return Domain(measure.type, True, arg.lower, arg.upper, exact=False)
        case "min" | "max" if arg is not None:
            return replace(arg, type=measure.type)
        case _ if measure.function in _SPREADS and arg is not None:
            return _spread(measure, arg)
        case _:
            return boolean_domain(True)


_SPREADS = {"var_pop": Fraction(1, 4), "var_samp": Fraction(1, 2),
            "stddev_pop": Fraction(1, 2), "stddev_samp": Fraction(3, 4)}  # fmt: skip
"""The most that a spread can be, in ranges: half of the rows at each end; of samples, one row at each (1/√2 < 3/4)."""


def _spread(measure: UnitMeasure, arg: Domain) -> Domain:
    if not arg.bounded:
        return Domain(measure.type, True, Fraction(0), exact=False)
    lower, upper = arg.bounds
    wide = (upper - lower) ** (2 if measure.function.startswith("var") else 1)
    return Domain(measure.type, True, Fraction(0), wide * _SPREADS[measure.function], exact=False)


def _window(node: UnitWindow, env: Domains, assume: int | None) -> Domain:
    arg = _aggregated(node.args[0], env) if node.args else None
    match node.function:
        case "row_number" | "rank" | "dense_rank" | "ntile":
            return _count(1, assume)
        case "count" | "count_rows":  # a frame may be empty
            return _count(0, assume)
        case "sum" if arg is not None:
            return _total(arg, node.type, assume)
        case "mean" if arg is not None:
            return Domain(node.type, True, arg.lower, arg.upper, exact=False)
        case "lag" | "lead" if len(node.args) == 3:
            given = domain_of(node.args[2], env)
            return hull((domain_of(node.args[0], env), given), node.type).with_nullable(True)
        case _ if arg is not None:
            return arg.with_nullable(True)
        case _:
            return Domain(node.type, True)
