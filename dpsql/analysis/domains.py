"""The domain of every column of a relation: as conditions narrow it, and as the scans enforce it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from dpsql.analysis.narrow import EnforcedDomains, narrow_where
from dpsql.analysis.values import domain_of, hull_of_domains
from dpsql.plan.expr import Column, Compare, Expr, Quantise, split_conjuncts
from dpsql.plan.relations import (
    SET_COLUMN,
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


def derive_domains(node: Rows, assume: int | None = None) -> Domains:
    """The domain of every column, for the rows that are left.

    `assume` is the most rows that a unit is taken to have when its counts and sums are bounded. It holds for no data:
    only what a sum's noise is computed from may use it, since `Quantise` clips to it (a unit counts like at most that
    many rows); groups and arithmetic must not.
    """
    return _domains_of_node(node, assume, enforced=False)


def derive_enforced_domains(node: Rows) -> EnforcedDomains:
    """The domains that the scans enforce, without what conditions say."""
    return EnforcedDomains(_domains_of_node(node, None, enforced=True))


def _domains_of_node(node: Rows, assume: int | None, enforced: bool) -> Domains:
    def below(rows: Rows) -> Domains:
        domains = _domains_of_node(rows, assume, enforced)
        return EnforcedDomains(domains) if enforced else domains

    match node:
        case Scan() | PublicScan():
            return {column.name: column.values for column in node.columns}
        case RowsHole():
            return {f.name: domain.with_nullable(True) for f, domain in zip(node.columns, node.domains, strict=True)}
        case Filter():
            return _filter_domains(below(node.input), node.condition)
        case Project():
            inner = below(node.input)
            return {column.name: domain_of(column.expr, inner) for column in node.columns}
        case Join():
            return _join_domains(node, below(node.left), below(node.right))
        case Mark():
            return below(node.left) | {node.name: boolean_domain(node.test is not None)}
        case PerUnit():
            inner = below(node.input)
            keys = {key.name: domain_of(key.expr, inner) for key in node.keys}
            return keys | {m.name: _unit_measure_domain(m, inner, assume) for m in node.measures}
        case UnitWindow():
            inner = below(node.input)
            return inner | {node.name: _window_domain(node, inner, assume)}
        case SetOperation():
            return _set_operation_domains(node, below(node.left), below(node.right))
        case Expand():
            inner = below(node.input)
            keys = {key: inner[key].with_nullable(True) for key in node.keys}
            numbers = tuple(range(len(node.sets)))
            number = Domain(BIGINT, False, Fraction(0), Fraction(max(0, len(numbers) - 1)), numbers)
            return inner | keys | {SET_COLUMN: number}
        case Table() | PublicTable():
            raise TypeError("domains are derived from sanitised rows")
        case _:
            assert_never(node)


def _filter_domains(env: Domains, condition: Expr) -> Domains:
    narrowed = narrow_where(env, condition)
    if isinstance(env, EnforcedDomains):
        return narrowed
    for part in split_conjuncts(condition):
        match part:
            case Compare("=", Column() as one, Column() as other) if one.type == other.type:
                common = _intersect_equal_columns(narrowed[one.name], narrowed[other.name])
                narrowed |= {one.name: common, other.name: common}
            case _:
                pass
    return narrowed


def _intersect_equal_columns(first: Domain, second: Domain) -> Domain:
    """Values that both of two equal columns can have."""
    values = first.values if second.values is None else second.values
    if first.values is not None and second.values is not None:
        values = tuple(value for value in first.values if value in second.values)
    lowers = [bound for bound in (first.lower, second.lower) if bound is not None]
    uppers = [bound for bound in (first.upper, second.upper) if bound is not None]
    lower, upper = max(lowers, default=None), min(uppers, default=None)
    if lower is not None and upper is not None and lower > upper:  # no row is left; any bounds hold
        lower, upper, values = first.lower, first.upper, ()
    return replace(
        first, nullable=False, lower=lower, upper=upper, values=values, exact=first.exact and second.exact
    )


def _join_domains(join: Join, left: Domains, right: Domains) -> Domains:
    def optional(env: Domains) -> Domains:
        return {name: domain.with_nullable(True) for name, domain in env.items()}

    match join.kind:
        case JoinKind.INNER:
            both = left | right
            return _filter_domains(EnforcedDomains(both) if isinstance(left, EnforcedDomains) else both, join.condition)
        case JoinKind.LEFT:
            return left | optional(right)
        case JoinKind.FULL:
            return optional(left) | optional(right)
        case _:
            assert_never(join.kind)


def _set_operation_domains(node: SetOperation, left: Domains, right: Domains) -> Domains:
    if node.kind in (SetKind.INTERSECT, SetKind.EXCEPT):
        return left
    pairs = zip(row_fields(node.left), row_fields(node.right), strict=True)
    return {
        ours.name: hull_of_domains((left[ours.name], right[theirs.name]), ours.type)
        for ours, theirs in pairs
        if ours.name in left
    }


def _count_domain(least: int, assume: int | None) -> Domain:
    return Domain(BIGINT, False, Fraction(least), None if assume is None else Fraction(assume))


def _sum_domain(arg: Domain, type_: Type, assume: int | None) -> Domain:
    if assume is None or not arg.is_bounded:
        return Domain(type_, True, exact=False)
    lower, upper = arg.bounds
    return Domain(type_, True, min(lower, lower * assume), max(upper, upper * assume), exact=False)


def _aggregated_domain(arg: Expr, env: Domains) -> Domain:
    """The values that are summed: whole steps are worth their grid."""
    domain = domain_of(arg, env)
    if not isinstance(arg, Quantise):
        return domain
    return domain.with_bounds(*(bound * arg.grid for bound in domain.bounds))


def _unit_measure_domain(measure: UnitMeasure, env: Domains, assume: int | None) -> Domain:
    arg = None if measure.arg is None else _aggregated_domain(measure.arg, env)
    match measure.function:
        case "count_rows":
            return _count_domain(1, assume)
        case "count" | "count_distinct":
            return _count_domain(0, assume)
        case "sum" if arg is not None:
            return _sum_domain(arg, measure.type, assume)
        case "mean" if arg is not None:
            return Domain(measure.type, True, arg.lower, arg.upper, exact=False)
        case "median" if arg is not None:
            return Domain(measure.type, True, arg.lower, arg.upper, exact=False)
        case "min" | "max" if arg is not None:
            return replace(arg, type=measure.type)
        case _ if measure.function in _MAX_SPREADS and arg is not None:
            return _spread_domain(measure, arg)
        case _:
            return boolean_domain(True)


_MAX_SPREADS = {"var_pop": Fraction(1, 4), "var_samp": Fraction(1, 2),
            "stddev_pop": Fraction(1, 2), "stddev_samp": Fraction(3, 4)}  # fmt: skip
"""The most that a spread can be, in ranges: half of the rows at each end; of samples, one row at each (1/√2 < 3/4)."""


def _spread_domain(measure: UnitMeasure, arg: Domain) -> Domain:
    if not arg.is_bounded:
        return Domain(measure.type, True, Fraction(0), exact=False)
    lower, upper = arg.bounds
    max_range = (upper - lower) ** (2 if measure.function.startswith("var") else 1)
    return Domain(measure.type, True, Fraction(0), max_range * _MAX_SPREADS[measure.function], exact=False)


def _window_domain(node: UnitWindow, env: Domains, assume: int | None) -> Domain:
    arg = _aggregated_domain(node.args[0], env) if node.args else None
    match node.function:
        case "row_number" | "rank" | "dense_rank" | "ntile":
            return _count_domain(1, assume)
        case "count" | "count_rows":  # a frame may be empty
            return _count_domain(0, assume)
        case "sum" if arg is not None:
            return _sum_domain(arg, node.type, assume)
        case "mean" if arg is not None:
            return Domain(node.type, True, arg.lower, arg.upper, exact=False)
        case "lag" | "lead" if len(node.args) == 3:
            default = domain_of(node.args[2], env)
            return hull_of_domains((domain_of(node.args[0], env), default), node.type).with_nullable(True)
        case _ if arg is not None:
            return arg.with_nullable(True)
        case _:
            return Domain(node.type, True)
