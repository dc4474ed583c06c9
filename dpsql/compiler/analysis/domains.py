"""The domain of every column of a relation: as conditions narrow it, and as the scans enforce it."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from dpsql.base.intervals import MICROSECONDS_PER_DAY
from dpsql.compiler.analysis.narrowing import (
    FLIPPED_OPERATORS,
    EnforcedDomains,
    Environment,
    disjuncts,
    narrow_domain,
    narrow_unless,
    narrow_where,
    negate_condition,
)
from dpsql.compiler.functions.calendar import convert_time
from dpsql.compiler.functions.function import domain_of_call, hull_of_domains, limit_to_type
from dpsql.compiler.functions.table import FUNCTIONS
from dpsql.compiler.plan.expressions import (
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
from dpsql.compiler.plan.relations import (
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
    is_public,
    row_fields,
)
from dpsql.schema.model import Domain, Scalar, boolean_domain, to_number
from dpsql.types import BIGINT, INTEGER_BITS, TEXT, Kind, Type, integer_range

# What values an expression can have, by interval arithmetic and finite sets.
#
# A domain is a *claim about values that the scan has sanitised*. Sensitivity does not rest on it: what a sum's noise is
# computed from is clipped again by `Quantise`, and public groups are a list that the engine's rows are joined to.
# Totality does: 64-bit arithmetic and the length of text are allowed by these bounds; a slip could make an engine
# raise.

MAX_PRINTED_LENGTH = 400
"""Characters of a number, date or boolean as text (a double has at most 309 digits before its point)."""


def domain_of(expr: Expr, env: Environment) -> Domain:
    match expr:
        case Column():
            return _mark_inexact(env[expr.name]) if expr.type.is_float else env[expr.name]
        case Literal():
            return _literal_domain(expr)
        case Compare() | InList():
            return boolean_domain(any(domain_of(arg, env).nullable for arg in _operands_of(expr)))
        case And() | Or():
            return boolean_domain(any(domain_of(arg, env).nullable for arg in expr.args))
        case Not():
            return boolean_domain(domain_of(expr.arg, env).nullable)
        case IsNull():
            return boolean_domain(False)
        case Arithmetic():
            left, right = domain_of(expr.left, env), domain_of(expr.right, env)
            return _mark_exactness(_arithmetic_domain(expr, left, right), left, right)
        case Case():
            return _case_domain(expr, env)
        case Cast():
            inner = domain_of(expr.arg, env)
            return _mark_exactness(_cast_domain(inner, expr.type), inner)
        case Call():
            args = tuple(domain_of(arg, env) for arg in expr.args)
            return _mark_exactness(domain_of_call(FUNCTIONS[expr.function], expr, args), *args)
        case Clip():
            inner = domain_of(expr.arg, env)
            lower, upper = expr.lower, expr.upper
            if expr.type.is_integer:  # the whole numbers between the bounds
                lower, upper = Fraction(lower.__ceil__()), Fraction(upper.__floor__())
            if inner.exact:  # what a double may have moved past its bounds is held by the clip's own only
                lower, upper = _clip_bounds(inner, lower, upper)
            return Domain(expr.type, True, min(lower, upper), max(lower, upper))
        case Quantise():
            return Domain(BIGINT, True, Fraction(expr.lower), Fraction(expr.upper))
        case HoleValue():
            return replace(expr.domain, nullable=True, exact=not expr.type.is_float)
        case InHole():
            return boolean_domain(True)
        case _:
            assert_never(expr)


def _mark_exactness(domain: Domain, *parts: Domain) -> Domain:
    """Bounds prove nothing about integers once a double is on the way: its rounding may pass them."""
    exact = all(part.exact for part in parts) and not domain.type.is_float
    return domain if exact == domain.exact else replace(domain, exact=exact)


def _mark_inexact(domain: Domain) -> Domain:
    return replace(domain, exact=False)


def _operands_of(expr: Compare | InList) -> tuple[Expr, ...]:
    return (expr.left, expr.right) if isinstance(expr, Compare) else (expr.arg,)


def _literal_domain(literal: Literal) -> Domain:
    if literal.value is None:
        return Domain(literal.type, True, values=())
    if literal.type.is_number or literal.type.is_time or literal.type.is_microsecond_interval:
        number = to_number(literal.value)
        return Domain(literal.type, False, number, number, (literal.value,), exact=not literal.type.is_float)
    length = len(literal.value) if isinstance(literal.value, str) else None
    return Domain(literal.type, False, values=(literal.value,), length=length)


def _clip_bounds(domain: Domain, lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
    """Where [lower, upper] moves the domain's values: its bounds clipped."""

    def clip(number: Fraction) -> Fraction:
        return min(max(number, lower), upper)

    return (
        lower if domain.lower is None else clip(domain.lower),
        upper if domain.upper is None else clip(domain.upper),
    )


Fact = tuple[Expr, str, Literal]
"""An expression that compares so with a literal, or is NULL."""


def _case_domain(expr: Case, env: Environment) -> Domain:
    """A branch is taken where its condition is true and no earlier one is: CASE can spell a clip."""
    domains: list[Domain] = []
    facts: tuple[Fact, ...] = ()
    for when, then in expr.branches:
        domains.append(
            _domain_under_facts(then, narrow_where(env, when), (*facts, *_facts_from_conditions(split_conjuncts(when))))
        )
        env = narrow_unless(env, when)
        facts += _facts_from_conditions(tuple(negate_condition(part) for part in disjuncts(when)))
    domains.append(_domain_under_facts(expr.otherwise, env, facts))
    return hull_of_domains(tuple(domains), expr.type)


def _facts_from_conditions(parts: tuple[Expr, ...]) -> tuple[Fact, ...]:
    """What comparisons say of expressions that are no columns (those are narrowed)."""
    facts: list[Fact] = []
    for part in parts:
        match part:
            case Compare(op, left, Literal() as literal) if not isinstance(left, Column | Literal):
                facts.append((left, op, literal))
            case Compare(op, Literal() as literal, right) if not isinstance(right, Column | Literal):
                facts.append((right, FLIPPED_OPERATORS[op], literal))
            case _:
                pass
    return tuple(facts)


def _domain_under_facts(expr: Expr, env: Environment, facts: tuple[Fact, ...]) -> Domain:
    if isinstance(expr, Cast) and any(fact[0] == expr.arg for fact in facts):
        inner = _domain_under_facts(expr.arg, env, facts)
        return _mark_exactness(_cast_domain(inner, expr.type), inner)
    domain = domain_of(expr, env)
    if not isinstance(env, EnforcedDomains):
        for about, op, literal in facts:
            domain = narrow_domain(domain, op, literal) if about == expr else domain
    return domain


def _cast_domain(inner: Domain, type_: Type) -> Domain:
    nullable = inner.nullable or not _is_widening_cast(inner, type_)
    if inner.type == type_:
        return inner
    if inner.type.kind is Kind.BOOLEAN and type_.is_integer:
        return Domain(type_, inner.nullable, Fraction(0), Fraction(1), (0, 1))
    if inner.type.is_integer and type_.is_integer:
        return _restrict_to_type(replace(inner, type=type_, nullable=nullable))
    if inner.type.is_number and type_.is_number:
        if type_.is_integer and inner.is_bounded:  # rounds to a neighbor
            lower, upper = inner.bounds
            return Domain(type_, nullable, Fraction(lower.__floor__()), Fraction(upper.__ceil__()))
        if type_.kind is Kind.DECIMAL and inner.is_bounded:  # rounds to a neighbor on its grid
            step = Fraction(1, 10 ** (type_.scale or 0))
            lower, upper = inner.bounds
            return Domain(type_, True, (lower / step).__floor__() * step, (upper / step).__ceil__() * step)
        widened = (
            (_widen_real_bound(inner.lower, -1), _widen_real_bound(inner.upper, 1)) if type_.kind is Kind.REAL else None
        )
        return Domain(type_, nullable, *(widened or (inner.lower, inner.upper)))
    if inner.is_bounded and inner.type.is_time and type_.is_time:  # zones are UTC's
        lower, upper = (_cast_time_bound(bound, inner.type.kind, type_.kind) for bound in inner.bounds)
        values = None if inner.values is None else tuple(dict.fromkeys(_convert_time_values(inner.values, type_)))
        return Domain(type_, inner.nullable, lower, upper, values)
    if type_.kind is Kind.BOOLEAN:
        return boolean_domain(nullable)
    return Domain(type_, nullable, length=MAX_PRINTED_LENGTH if type_ == TEXT else None)


def _convert_time_values(values: tuple[Scalar, ...], type_: Type) -> Iterator[Scalar]:
    return (convert_time(value, type_) for value in values if isinstance(value, dt.date))


def _restrict_to_type(domain: Domain) -> Domain:
    """What a narrower whole number cannot hold becomes NULL."""
    min_value, max_value = integer_range(domain.type)
    values = domain.values
    if values is not None:
        values = tuple(value for value in values if min_value <= to_number(value) <= max_value)
    if domain.is_bounded and (domain.bounds[1] < min_value or domain.bounds[0] > max_value):
        return replace(domain, lower=Fraction(0), upper=Fraction(0), values=())
    lower = None if domain.lower is None else max(domain.lower, Fraction(min_value))
    upper = None if domain.upper is None else min(domain.upper, Fraction(max_value))
    return replace(domain, lower=lower, upper=upper, values=values)


def _widen_real_bound(bound: Fraction | None, outward: int) -> Fraction | None:
    """A bound of numbers that were rounded to 24 bits."""
    return None if bound is None else bound + outward * abs(bound) / (1 << 23)


def _cast_time_bound(bound: Fraction, source: Kind, target: Kind) -> Fraction:
    microseconds = bound * MICROSECONDS_PER_DAY if source is Kind.DATE else bound
    return Fraction((microseconds / MICROSECONDS_PER_DAY).__floor__()) if target is Kind.DATE else microseconds


def _is_widening_cast(inner: Domain, type_: Type) -> bool:
    """Whether no value can fail the cast."""
    if type_.kind in (Kind.TEXT, Kind.DOUBLE):
        return inner.type.kind is not Kind.TEXT or type_.kind is Kind.TEXT
    if type_.is_integer and inner.type.is_number and inner.is_bounded:
        min_value, max_value = integer_range(type_)
        return min_value <= inner.bounds[0] and inner.bounds[1] <= max_value
    return inner.type.is_integer and type_.is_integer and INTEGER_BITS[inner.type.kind] <= INTEGER_BITS[type_.kind]


def _arithmetic_domain(expr: Arithmetic, left: Domain, right: Domain) -> Domain:
    by_zero = expr.op in ("/", "//", "%") and not (right.is_bounded and not right.bounds[0] <= 0 <= right.bounds[1])
    nullable = left.nullable or right.nullable or by_zero
    result = Domain(expr.type, nullable)
    if expr.op == "%" and right.is_bounded and not left.is_bounded and expr.type.is_integer:
        max_remainder = max(abs(right.bounds[0]), abs(right.bounds[1]), Fraction(1)) - 1
        return limit_to_type(replace(result, nullable=True).with_bounds(-max_remainder, max_remainder))
    if not (left.is_bounded and right.is_bounded):
        return limit_to_type(replace(result, nullable=True))
    corners = _interval_corners(expr.op, left.bounds, right.bounds)
    if corners is None:
        return limit_to_type(replace(result, nullable=True))
    return limit_to_type(result.with_bounds(min(corners), max(corners)))


def _interval_corners(
    op: str, left: tuple[Fraction, Fraction], right: tuple[Fraction, Fraction]
) -> tuple[Fraction, ...] | None:
    pairs = [(a, b) for a in left for b in right]
    match op:
        case "+":
            return tuple(a + b for a, b in pairs)
        case "-":
            return tuple(a - b for a, b in pairs)
        case "*":
            return tuple(a * b for a, b in pairs)
        case "%":
            max_remainder = max(abs(right[0]), abs(right[1])) - 1  # whole numbers only
            return (min(Fraction(0), max(left[0], -max_remainder)), max(Fraction(0), min(left[1], max_remainder)))
        case "/" | "//":
            if right[0] <= 0 <= right[1]:
                return None
            quotients = tuple(a / b for a, b in pairs)
            return tuple(Fraction(int(q)) for q in quotients) if op == "//" else quotients
    raise ValueError(f"no such operator: {op}")


Domains = dict[str, Domain]


def derive_domains(node: Rows, assume: int | None = None) -> Domains:
    """The domain of every column, for the rows that are left.

    `assume` is the most rows that a unit is taken to have when its counts and sums are bounded. It holds for no data:
    only what a sum's noise is computed from may use it, since `Quantise` clips to it (a unit counts like at most that
    many rows); groups and arithmetic must not.
    """
    return _domains_of_node(node, assume, enforced=False)


def count_distinct_domain(rows: Rows, columns: tuple[str, ...]) -> int | None:
    """How many combinations of values, none of them NULL, these columns can have; None where that is not known."""
    domains = derive_domains(rows)
    return _multiply_counts(_count_values(domains[name]) for name in columns)


def _multiply_counts(counts: Iterator[int | None]) -> int | None:
    result = 1
    for count in counts:
        if count is None:
            return None
        result *= count
    return result


def _count_values(domain: Domain) -> int | None:
    if domain.values is not None:
        return len(domain.values)
    if domain.type.kind is Kind.BOOLEAN:
        return 2
    if domain.type.is_integer and domain.is_bounded and domain.exact:
        lower, upper = domain.bounds
        return max(0, math.floor(upper) - math.ceil(lower) + 1)
    return None


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
            numbers = tuple(range(node.first, node.first + max(1, len(node.sets))))
            number = Domain(BIGINT, False, Fraction(numbers[0]), Fraction(numbers[-1]), numbers[: len(node.sets)])
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
    return replace(first, nullable=False, lower=lower, upper=upper, values=values, exact=first.exact and second.exact)


def _join_domains(join: Join, left: Domains, right: Domains) -> Domains:
    def optional(env: Domains) -> Domains:
        return {name: domain.with_nullable(True) for name, domain in env.items()}

    match join.kind:
        case JoinKind.INNER:
            both = left | right
            narrowed = _filter_domains(
                EnforcedDomains(both) if isinstance(left, EnforcedDomains) else both, join.condition
            )
            if join.unmatched is not None:  # public rows without a private one keep their groups
                narrowed |= right if is_public(join.right) else left
            return narrowed
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
