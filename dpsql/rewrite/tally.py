"""Turn private rows into tuples of whole numbers with their weights: what a study looks at.

    SELECT sex, cost  (values: [f, m]; bounds: [0, 5000])   →  tuples (place of sex, step of cost), rows of each

Every column has a public range of codes: places among declared values, or steps between bounds. Rows with a value
outside of it, and with NULL where that is no code of its own, are in no tuple. One weight per unit bounds what it adds
to all tuples together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpsql.analysis.choices import few
from dpsql.analysis.domains import node_domains
from dpsql.analysis.values import domain_of
from dpsql.errors import LimitExceeded, TypeMismatch, UnboundedValues
from dpsql.plan.bundles import CountBundle
from dpsql.plan.expr import Call, Case, Column, Compare, Expr, IsNull, Literal, Not, Quantise, conjunction
from dpsql.plan.nodes import Aggregate, Norm, Sum, Tally
from dpsql.plan.relations import Filter, Named, Project, Rows
from dpsql.plan.stages import Axis, Bins
from dpsql.rewrite.exact_units import exact_units
from dpsql.rewrite.grids import declared_grids
from dpsql.rewrite.limit_joins import limit_joins
from dpsql.rewrite.limit_public import limit_public
from dpsql.rewrite.limit_work import limit_work
from dpsql.rewrite.list_groups import as_declared
from dpsql.rewrite.make_total import make_total
from dpsql.rewrite.policy import Policy
from dpsql.rewrite.push_conditions import push_conditions
from dpsql.rewrite.scan_tables import join_by_unit, scan_tables
from dpsql.rewrite.weigh_units import weigh_units
from dpsql.schema.domain import Domain, Scalar
from dpsql.schema.model import Resolved
from dpsql.span import Span
from dpsql.types import BIGINT, Kind

CELL = "rows"

MOST_VALUES = 1_000
"""Of one column: a code is found by comparing with each of them."""


@dataclass(frozen=True)
class Coding:
    """How columns become codes: at most `bins` steps for a number or time, as many values as are declared for others.

    `listed` has the values of columns that the schema declares none for, by name: released ones. With `nulls`, NULL is
    a code of columns that the owner calls nullable; else rows with NULL are left out. With `every`, NULL is a code of
    all columns, and that of values which are not in the list: no row is left out.
    """

    bins: int
    listed: Mapping[str, tuple[Scalar, ...]]
    nulls: bool
    every: bool = False


@dataclass(frozen=True)
class Tallied:
    tally: Tally
    axes: tuple[Axis, ...]


@dataclass(frozen=True)
class TallyRows:
    """Sanitised rows with the asked columns, and what is known of each: before they are coded."""

    rows: Rows
    columns: tuple[Named, ...]  # of these names, over `rows`
    domains: Mapping[str, Domain]  # nullable only where the owner says so
    grids: Mapping[str, Fraction]
    labels: Mapping[str, str]  # what the query calls each column
    spans: Mapping[str, Span | None] = field(default_factory=dict)  # where it is written


def tally_rows(
    aggregate: Aggregate, resolved: Resolved, labels: tuple[str, ...], spans: tuple[Span | None, ...] = ()
) -> TallyRows:
    """The rows of an aggregate whose keys are the columns to be coded."""
    aggregate = join_by_unit(push_conditions(scan_tables(aggregate, resolved)))
    aggregate = limit_work(limit_joins(limit_public(aggregate)))
    aggregate = make_total(exact_units(aggregate))
    env = node_domains(as_declared(aggregate.input))
    domains = {key.name: domain_of(_plain(key.expr), env) for key in aggregate.keys}
    rows = Project(aggregate.input, aggregate.keys)
    columns = tuple(Named(key.name, Column(key.name, key.expr.type)) for key in aggregate.keys)
    called = dict(zip(domains, labels, strict=True))
    plain = Project(aggregate.input, tuple(Named(key.name, _plain(key.expr)) for key in aggregate.keys))
    places = dict(zip(domains, spans or (None,) * len(labels), strict=True))
    return TallyRows(rows, columns, domains, declared_grids(plain), called, places)


def is_unknown(domain: Domain) -> bool:
    """Whether nothing public bounds the values: neither a list nor, of numbers and times, bounds."""
    ordered = domain.type.is_number or domain.type.is_time
    return few(domain) is None and not (ordered and domain.bounded)


def tally(found: TallyRows, coding: Coding, policy: Policy) -> Tallied:
    axes: list[Axis] = []
    codes: list[Named] = []
    for number, column in enumerate(found.columns, 1):
        axis, code = _coded(column, found, coding)
        axes.append(axis)
        codes.append(Named(f"a{number}", code))
    coded = Project(found.rows, tuple(codes))
    present = conjunction(tuple(Not(IsNull(Column(code.name, BIGINT))) for code in codes))
    kept = Filter(coded, present)
    # Over all tuples together: the L1 norm bounds every set of them, and so every sum that a study may form.
    summed = weigh_units(kept, (), (CountBundle(CELL, None),), replace(policy, norm=Norm.L1))
    return Tallied(Tally(Sum(summed.input, tuple(code.name for code in codes), summed.bundles)), tuple(axes))


def _plain(expr: Expr) -> Expr:
    return expr.args[0] if isinstance(expr, Call) and expr.function == "finite" else expr


def _coded(column: Named, found: TallyRows, coding: Coding) -> tuple[Axis, Expr]:
    name, value = column.name, column.expr
    domain = found.domains[name]
    null = coding.every or (coding.nulls and domain.nullable)
    listed = coding.listed.get(name)
    values = tuple(v for v in (few(domain) or ()) if v is not None) if listed is None else listed
    ordered = value.type.is_number or value.type.is_time
    if listed is None and ordered and domain.bounded and (not values or len(values) > coding.bins):
        steps = _steps(as_number(value), domain, found.grids.get(name), coding.bins)
        discrete = value.type.is_integer or value.type.is_time or value.type.kind is Kind.DECIMAL
        axis = Axis(name, value.type, None, Bins(steps.lower, steps.upper, steps.grid, value.type, discrete), null)
        return axis, _with_null(value, steps, axis)
    if not values:
        raise _no_values(found.labels[name], domain, found.spans.get(name))
    if len(values) > MOST_VALUES:
        raise LimitExceeded(
            f'column "{found.labels[name]}" has more than {MOST_VALUES:,} values', span=found.spans.get(name)
        )
    axis = Axis(name, value.type, values, None, null)
    branches = tuple(
        (Compare("=", value, Literal(one, value.type)), Literal(place, BIGINT)) for place, one in enumerate(values)
    )
    other = Literal(axis.upper if coding.every else None, BIGINT)
    return axis, _with_null(value, Case(branches, other, BIGINT), axis)


def _with_null(value: Expr, code: Expr, axis: Axis) -> Expr:
    return Case(((IsNull(value), Literal(axis.upper, BIGINT)),), code, BIGINT) if axis.null else code


def as_number(value: Expr) -> Expr:
    """Days of a date, microseconds of a moment, a number as it is."""
    match value.type.kind:
        case Kind.DATE:
            return Call("epoch_days", (value,), BIGINT)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return Call("epoch_us", (value,), BIGINT)
        case _ if value.type.is_number:
            return value
        case _:
            raise TypeMismatch(f"{value.type} has no order in steps")


def _steps(value: Expr, domain: Domain, declared: Fraction | None, most: int) -> Quantise:
    """At most `most` steps between the bounds; whole numbers, days and declared grids have one each where they fit."""
    lower, upper = domain.bounds
    natural = declared or (Fraction(1) if value.type.is_integer else None)
    if domain.type.kind is Kind.DECIMAL:
        natural = natural or Fraction(1, 10 ** (domain.type.scale or 0))
    grid = natural or (upper - lower or abs(lower) or Fraction(1)) / (most - 1)
    if (upper - lower) / grid >= most:
        wide = (upper - lower) / (most - 1)
        grid = -(-wide // natural) * natural if natural is not None else wide
    first, last = (lower / grid).__ceil__(), (upper / grid).__floor__()
    if first > last:
        first = last = round((lower + upper) / 2 / grid)
    return Quantise(value, grid, first, last)


def _no_values(name: str, domain: Domain, span: Span | None) -> UnboundedValues:
    if domain.type.is_number or domain.type.is_time:
        return UnboundedValues(
            f'column "{name}" has no bounds',
            hint=f"Declare bounds for it in the schema, or tell a range in WHERE: {name} BETWEEN … AND …."
            if domain.type.is_time
            else f"Declare bounds for it in the schema, or write CLIP({name}, 0, 100) AS {name}.",
            span=span,
        )
    return UnboundedValues(
        f'the values of column "{name}" are not known',
        hint="Declare its values in the schema, or leave it out.",
        span=span,
    )
