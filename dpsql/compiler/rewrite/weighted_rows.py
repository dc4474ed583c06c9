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

from dpsql.compiler.analysis.domains import derive_domains, domain_of
from dpsql.compiler.analysis.key_values import list_few_values
from dpsql.compiler.plan.aggregate import Aggregate, Sum, Tally
from dpsql.compiler.plan.bundles import CountBundle
from dpsql.compiler.plan.clipped_sums import Norm
from dpsql.compiler.plan.expressions import (
    Case,
    Column,
    Compare,
    Expr,
    IsNull,
    Literal,
    Not,
    Quantise,
    join_conjuncts,
)
from dpsql.compiler.plan.relations import Filter, Named, Project
from dpsql.compiler.plan.steps import Axis, Bins
from dpsql.compiler.rewrite.bound_contributions import ContributionPolicy, weigh_units
from dpsql.compiler.rewrite.form_bundles import ROWS_CELL
from dpsql.compiler.rewrite.grids import declared_grids, natural_grid, quantize_evenly, to_number_expr
from dpsql.compiler.rewrite.list_groups import with_declared_nulls
from dpsql.compiler.rewrite.make_total import strip_finite
from dpsql.compiler.rewrite.pipeline import ROW_RULES, apply_rules
from dpsql.compiler.rewrite.release_plan import RuleContext
from dpsql.errors import LimitExceeded, Span, TypeMismatch, UnboundedValues
from dpsql.schema.model import Domain, Resolved, Scalar
from dpsql.types import BIGINT, Kind

MAX_VALUES = 1_000
"""Of one column: a code is found by comparing with each of them."""


@dataclass(frozen=True)
class ColumnCoding:
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
class CodedRows:
    tally: Tally
    axes: tuple[Axis, ...]


@dataclass(frozen=True)
class CodableRows:
    """Sanitised rows with the asked columns, and what is known of each: before they are coded."""

    rows: Project
    columns: tuple[Named, ...]  # of these names, over `rows`
    domains: Mapping[str, Domain]  # nullable only where the owner says so
    grids: Mapping[str, Fraction]
    labels: Mapping[str, str]  # what the query calls each column
    spans: Mapping[str, Span | None] = field(default_factory=dict)  # where it is written


def prepare_codable_rows(
    aggregate: Aggregate, context: RuleContext, labels: tuple[str, ...], spans: tuple[Span | None, ...] = ()
) -> CodableRows:
    """The rows of an aggregate whose keys are the columns to be coded."""
    aggregate = apply_rules(ROW_RULES, aggregate, context)
    env = derive_domains(with_declared_nulls(aggregate.input))
    domains = {key.name: domain_of(strip_finite(key.expr), env) for key in aggregate.keys}
    rows = Project(aggregate.input, aggregate.keys)
    columns = tuple(Named(key.name, Column(key.name, key.expr.type)) for key in aggregate.keys)
    labels_by_name = dict(zip(domains, labels, strict=True))
    plain = Project(aggregate.input, tuple(Named(key.name, strip_finite(key.expr)) for key in aggregate.keys))
    spans_by_name = dict(zip(domains, spans or (None,) * len(labels), strict=True))
    return CodableRows(rows, columns, domains, declared_grids(plain), labels_by_name, spans_by_name)


def has_no_public_values(domain: Domain) -> bool:
    """Whether nothing public bounds the values: neither a list nor, of numbers and times, bounds."""
    ordered = domain.type.is_number or domain.type.is_time
    return list_few_values(domain) is None and not (ordered and domain.is_bounded)


def code_weighted_rows(codable: CodableRows, coding: ColumnCoding, policy: ContributionPolicy) -> CodedRows:
    axes: list[Axis] = []
    codes: list[Named] = []
    for number, column in enumerate(codable.columns, 1):
        axis, code = _code_column(column, codable, coding)
        axes.append(axis)
        codes.append(Named(f"a{number}", code))
    coded = Project(codable.rows, tuple(codes))
    present = join_conjuncts(tuple(Not(IsNull(Column(code.name, BIGINT))) for code in codes))
    complete_rows = Filter(coded, present)
    # Over all tuples together: the L1 norm bounds every set of them, and so every sum that a study may form.
    summed = weigh_units(complete_rows, (), (CountBundle(ROWS_CELL, None),), replace(policy, norm=Norm.L1))
    return CodedRows(Tally(Sum(summed.input, tuple(code.name for code in codes), summed.bundles)), tuple(axes))


def _code_column(column: Named, codable: CodableRows, coding: ColumnCoding) -> tuple[Axis, Expr]:
    name, value = column.name, column.expr
    domain = codable.domains[name]
    null = coding.every or (coding.nulls and domain.nullable)
    listed = coding.listed.get(name)
    values = tuple(v for v in (list_few_values(domain) or ()) if v is not None) if listed is None else listed
    ordered = value.type.is_number or value.type.is_time
    if listed is None and ordered and domain.is_bounded and (not values or len(values) > coding.bins):
        steps, origin = _quantize_to_steps(value, domain, codable.grids.get(name), coding.bins)
        discrete = value.type.is_integer or value.type.is_time or value.type.kind is Kind.DECIMAL
        bins = Bins(steps.lower, steps.upper, steps.grid, value.type, discrete, origin)
        axis = Axis(name, value.type, None, bins, null)
        return axis, _add_null_code(value, steps, axis)
    if not values:
        raise _undeclared_values_error(codable.labels[name], domain, codable.spans.get(name))
    if len(values) > MAX_VALUES:
        raise LimitExceeded(
            f'column "{codable.labels[name]}" has more than {MAX_VALUES:,} values', span=codable.spans.get(name)
        )
    axis = Axis(name, value.type, values, None, null)
    branches = tuple(
        (Compare("=", value, Literal(listed_value, value.type)), Literal(code, BIGINT))
        for code, listed_value in enumerate(values)
    )
    other = Literal(axis.upper if coding.every else None, BIGINT)
    return axis, _add_null_code(value, Case(branches, other, BIGINT), axis)


def _add_null_code(value: Expr, code: Expr, axis: Axis) -> Expr:
    return Case(((IsNull(value), Literal(axis.upper, BIGINT)),), code, BIGINT) if axis.null else code


def _quantize_to_steps(
    value: Expr, domain: Domain, declared: Fraction | None, max_steps: int
) -> tuple[Quantise, Fraction]:
    """At most `max_steps` between the bounds; whole numbers, days and declared grids have one each where they fit."""
    number = to_number_expr(value)
    if number is None:
        raise TypeMismatch(f"{value.type} has no order in steps")
    lower, upper = domain.bounds
    natural = declared or (Fraction(1) if number.type.is_integer else natural_grid(domain))
    finest = (upper - lower or abs(lower) or Fraction(1)) / (max_steps - 1)
    return quantize_evenly(number, domain, natural, finest, max_steps)


def _undeclared_values_error(name: str, domain: Domain, span: Span | None) -> UnboundedValues:
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


# The rows of randomized answers: a tally of one column in which every row is counted, NULL among the answers.
#
#     SELECT RANDOMIZED(answer, 1) FROM people   →   places of `answer` among its values, NULL the last; rows of each
#
# Stability: every row has a place, that of NULL if its value is none of those declared: no row is left out, and how
# many there are depends on the table alone.


ONE_ROW = ContributionPolicy(1, None, Norm.L1)
"""RANDOMIZED is for tables with one row for each unit."""


def prepare_randomized_rows(aggregate: Aggregate, resolved: Resolved) -> CodedRows:
    """The only key of `aggregate` is the column."""
    context = RuleContext(resolved, ONE_ROW)
    (key,) = aggregate.keys
    codable = prepare_codable_rows(aggregate, context, (key.name,))
    if has_no_public_values(codable.domains[key.name]):
        raise _randomized_values_error(aggregate)
    # Whatever the owner says of NULL, data may hold it, and a row that were left out would be missed.
    coded = code_weighted_rows(codable, ColumnCoding(MAX_VALUES, {}, True, every=True), ONE_ROW)
    (axis,) = coded.axes
    if axis.values is None or not axis.null:
        raise _randomized_values_error(aggregate)
    return coded


def _randomized_values_error(aggregate: Aggregate) -> UnboundedValues:
    return UnboundedValues(
        "RANDOMIZED is for a column with declared values", hint="Declare its values in the schema.",
        span=aggregate.measures[0].span,
    )  # fmt: skip
