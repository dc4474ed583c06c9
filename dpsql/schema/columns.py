"""From a column's entry to its domain.

Law: a column read from the data is always nullable, whatever is declared (sanitising turns what does not
fit into NULL); `nullable` only says whether NULL is a public group.
"""

from __future__ import annotations

import re
from fractions import Fraction

from dpsql.schema.document import NodeRef, closest_name, quote_text
from dpsql.schema.domain import Domain, Scalar, boolean_domain, to_number
from dpsql.schema.literals import describe_expected, read_bound, read_number, read_value, read_integer, show_number
from dpsql.schema.model import Column, Randomized
from dpsql.schema.shape import read_flag
from dpsql.schema.snap import Snap, parse_snap
from dpsql.types import DATE, Kind, Type, parse_type

MAX_STEPS = 1 << 53  # a double has no more steps between its bounds that matter
_NO_VALUES = (Kind.TIME, Kind.INTERVAL, Kind.UUID)


def read_column(name: str, at: NodeRef) -> Column:
    type_ = _read_type(at)
    length, nullable = at.child("max_length"), at.child("nullable")
    if length and type_.kind is not Kind.TEXT:
        raise length.error(f"is for text columns, and this is {type_}", "Remove it.", line=length.key_line)
    max_length = (read_integer(length.text) if length else None) or Column.max_length
    randomized = _read_randomized(at, type_, max_length)
    domain = _read_domain(at, type_, max_length)
    return Column(
        name,
        domain,
        grid=_read_grid(at.child("grid"), domain),
        max_length=max_length,
        null_group=read_flag(nullable) if nullable else False,
        snap=_read_snap(at.child("snap"), type_),
        randomized=randomized,
        description=read_description(at),
    )


def read_description(at: NodeRef) -> str | None:
    """On one line, since it is shown beside names."""
    child = at.child("description")
    return " ".join(child.text.split()) or None if child else None


def _read_type(at: NodeRef) -> Type:
    child = at.child("type")
    assert child is not None  # `check` saw it
    type_ = parse_type(child.text)
    if type_ is None:
        raise child.error(f"must be a type, and there is no type {quote_text(child.text)}", _type_hint(child.text))
    return type_


_TYPE_NAMES = [kind.value for kind in Kind] + ["numeric", "varchar", "int", "float", "string", "bool", "datetime"]


def _type_hint(text: str) -> str:
    if re.match(r"(decimal|numeric)\b", text.strip().lower()):
        return "Write decimal(p,s) with 1 <= p <= 38 and 0 <= s <= p, for example decimal(10,2)."
    near = closest_name(re.sub(r"\(.*", "", text), _TYPE_NAMES)
    known = ", ".join(kind.value for kind in Kind if kind is not Kind.DECIMAL)
    return f'Did you mean "{near}"?' if near else f"Known types: {known} and decimal(p,s)."


def _read_domain(at: NodeRef, type_: Type, max_length: int) -> Domain:
    bounds, values, randomized = at.child("bounds"), at.child("values"), at.child("randomized")
    if randomized:
        values = randomized.child("values")  # the others are not said again
    declared = _read_bounds(bounds, type_) if bounds else None
    if values:
        return _read_listed_domain(values, type_, max_length, declared)
    if declared:
        return Domain(type_, True, *declared)
    return boolean_domain(True) if type_.kind is Kind.BOOLEAN else Domain(type_, True)


def _read_listed_domain(at: NodeRef, type_: Type, max_length: int, bounds: tuple[Fraction, Fraction] | None) -> Domain:
    values = _read_values(at, type_, max_length)
    if not (type_.is_number or type_.is_time):
        return Domain(type_, True, values=values)
    # The scan turns every other value into NULL, so the least and the largest value are bounds too.
    numbers = [to_number(value) for value in values]
    for item, number in zip(at.items(), numbers, strict=True):
        if bounds and not bounds[0] <= number <= bounds[1]:
            raise item.error(f"is {quote_text(item.text)}, which the bounds exclude", "Widen the bounds, or remove them.")
    return Domain(type_, True, min(numbers), max(numbers), values)


def _read_bounds(at: NodeRef, type_: Type) -> tuple[Fraction, Fraction]:
    if not (type_.is_number or type_.is_time):
        hint = "Remove bounds; text may have values." if type_.kind is Kind.TEXT else "Remove bounds."
        raise at.error(f"are for numbers, dates and timestamps, and this is {type_}", hint, line=at.key_line)
    low_at, high_at = at.items()
    low, high = (_require_bound(item, type_) for item in (low_at, high_at))
    if low > high:
        raise at.error(f"are reversed: {low_at.text} is above {high_at.text}",
                       f"Write [{high_at.text}, {low_at.text}].")  # fmt: skip
    return low, high


def _require_bound(at: NodeRef, type_: Type) -> Fraction:
    bound = read_bound(at.text, type_)
    if bound is None:
        raise at.mismatch_error(describe_expected(type_))
    return bound


def _read_values(at: NodeRef, type_: Type, max_length: int) -> tuple[Scalar, ...]:
    if type_.kind in _NO_VALUES:
        raise at.error(f"cannot be listed for {type_}", "Remove values; keys are then found by partition selection.",
                       line=at.key_line)  # fmt: skip
    seen: dict[Scalar, str] = {}
    for item in at.items():
        value = read_value(item.text, type_)
        if value is None:
            raise item.mismatch_error(describe_expected(type_))
        if isinstance(value, str) and len(value) > max_length:
            raise item.error(f"is longer than max_length, {max_length} characters",
                             f"Write max_length: {len(value)} or more.")  # fmt: skip
        if value in seen:
            raise item.error(_repeated_value_text(item.text, seen[value], type_), "Remove one of the two.")
        seen[value] = item.text
    return tuple(seen)


def _repeated_value_text(text: str, earlier: str, type_: Type) -> str:
    if text == earlier:
        return f"repeats the value {quote_text(text)}"
    return f"repeats a value: {quote_text(earlier)} and {quote_text(text)} are the same {type_}"


def _read_randomized(at: NodeRef, type_: Type, max_length: int) -> Randomized | None:
    """The values that it names are all that the column has: its domain."""
    child = at.child("randomized")
    if child is None:
        return None
    values_beside = at.child("values")
    if values_beside:
        raise values_beside.error("must not stand beside randomized, which has them", "Remove values.", line=values_beside.key_line)
    epsilon, values = child.child("epsilon"), child.child("values")
    assert epsilon is not None and values is not None  # `check` saw them
    number = read_number(epsilon.text)
    assert number is not None
    return Randomized(number, _read_values(values, type_, max_length))


def _read_grid(at: NodeRef | None, domain: Domain) -> Fraction | None:
    if at is None:
        return None
    type_ = domain.type
    grid = read_number(at.text)
    assert grid is not None  # `check` saw it
    if not type_.is_number:
        raise at.error(f"is for numbers, and this is {type_}", "Remove it.", line=at.key_line)
    step = Fraction(1, 10 ** (type_.scale or 0)) if not type_.is_float else None
    if step is not None and (grid / step).denominator != 1:
        raise at.mismatch_error(f"a multiple of {show_number(step)}, the step of {type_}")
    if domain.is_bounded:
        _check_grid_steps(at, grid, *domain.bounds)
    return grid


def _check_grid_steps(at: NodeRef, grid: Fraction, low: Fraction, high: Fraction) -> None:
    if low < high and grid > high - low:
        raise at.mismatch_error(f"at most {show_number(high - low)}, the width of the bounds")
    if max(abs(low), abs(high)) / grid > MAX_STEPS:
        raise at.error("is too fine: the bounds hold more than 2^53 steps", "Write a larger grid.")


def _read_snap(at: NodeRef | None, type_: Type) -> Snap | None:
    if at is None:
        return None
    if not type_.is_time:
        raise at.error(f"is for dates and timestamps, and this is {type_}", "Remove it.", line=at.key_line)
    snap = parse_snap(at.text)
    if snap is None:
        raise at.mismatch_error("minutes or hours that divide a day, days or weeks", "Write for example snap: 1 hour.")
    if type_ == DATE and not snap.whole_days:
        raise at.mismatch_error("days or weeks, since this is a date", "Write for example snap: 1 day.")
    return snap
