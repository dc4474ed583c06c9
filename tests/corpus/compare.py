"""Whether two answers are the same, cell by cell."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

Rows = list[tuple[object, ...]]
MICROSECONDS = 86_400_000_000
_NAME = re.compile(r"(?!col[0-9])[A-Za-z_][A-Za-z0-9_ :%.-]*")


@dataclass(frozen=True)
class Tolerance:
    """How far two numbers, or two moments in days, may lie apart."""

    relative: float = 1e-6
    absolute: float = 1e-6

    def allows(self, a: float, b: float) -> bool:
        return math.isclose(a, b, rel_tol=self.relative, abs_tol=self.absolute)


EXACT = Tolerance()


def tolerance(text: str | None, names: Sequence[str]) -> dict[str, Tolerance]:
    """`0.5`, or `1% in mean, median`: what the named columns may differ by, or all of them."""
    if text is None:
        return {}
    number, _, columns = text.partition(" in ")
    allowed = Tolerance(relative=float(number[:-1]) / 100) if number[-1] == "%" else Tolerance(absolute=float(number))
    chosen = [name.strip() for name in columns.split(",")] if columns else names
    if not set(chosen) <= set(names):
        raise ValueError(f"a tolerance for columns that are not there: {text}")
    return dict.fromkeys(chosen, allowed)


def difference(
    ours: Rows,
    theirs: Rows,
    names: Sequence[str],
    empty: frozenset[str] = frozenset(),
    ordered: bool = False,
    allowed: Mapping[str, Tolerance] = MappingProxyType({}),
) -> str | None:
    """What differs first; nothing where the answers are the same."""
    if empty:
        ours = without_empty(ours, theirs, [place for place, name in enumerate(names) if name in empty])
    if not ordered:
        ours, theirs = sorted(ours, key=_sortable), sorted(theirs, key=_sortable)
    for our_row, row in zip(ours, theirs, strict=False):
        if len(our_row) != len(row):
            return f"{len(our_row)} columns instead of {len(row)}"
        if not all(same(a, b, allowed.get(n, EXACT)) for a, b, n in zip(our_row, row, names, strict=True)):
            return f"{_shown(our_row)} instead of {_shown(row)}"
    if len(ours) != len(theirs):
        beyond = (ours if len(ours) > len(theirs) else theirs)[min(len(ours), len(theirs))]
        return f"{len(ours)} rows instead of {len(theirs)}, such as {_shown(beyond)}"
    return None


def without_empty(ours: Rows, theirs: Rows, keys: list[int]) -> Rows:
    """Without groups that only we have, if there is nothing in them."""
    present = {tuple(repr(row[key]) for key in keys) for row in theirs}
    return [row for row in ours if tuple(repr(row[key]) for key in keys) in present or not _is_empty(row, keys)]


def _is_empty(row: tuple[object, ...], keys: list[int]) -> bool:
    return all(cell is None or cell == 0 for place, cell in enumerate(row) if place not in keys)


def same(ours: object, theirs: object, allowed: Tolerance) -> bool:
    """A SUM over nothing is 0 here, where SQL says NULL: whether there was nothing is private."""
    match ours, theirs:
        case _, None:
            return ours is None or ours == 0
        case (bool(), _) | (_, bool()):
            return ours is theirs
        case list(), list():
            return len(ours) == len(theirs) and all(same(a, b, allowed) for a, b in zip(ours, theirs, strict=True))
        case dict(), dict():
            return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key], allowed) for key in ours)
        case ((int() | float() | Decimal() | Fraction()), (int() | float() | Decimal() | Fraction())):
            return ours == theirs or allowed.allows(float(ours), float(theirs))
        case (dt.date(), dt.date()):  # a datetime is a date, too
            return type(ours) is type(theirs) and (ours == theirs or _days_apart(ours, theirs) <= allowed.absolute)
        case _:
            return type(ours) is type(theirs) and ours == theirs


def _days_apart(a: dt.date, b: dt.date) -> float:
    return abs((a - b) / dt.timedelta(microseconds=1)) / MICROSECONDS


NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "UBIGINT", "UINTEGER",
           "int2", "int4", "int8", "oid", "float8", "numeric")  # fmt: skip
TEXTS = ("VARCHAR", "text", "name", "varchar")


def unlike(ours: Sequence[tuple[str, str]], theirs: Sequence[tuple[str, str]], named: bool) -> str | None:
    """Names (where DuckDB was asked the same) and types of two answers: what differs first.

    Names that DuckDB makes up of an expression are not PostgreSQL's; of numbers and lists, the kind is not compared.
    """
    if len(ours) != len(theirs):
        return f"{len(ours)} columns instead of {len(theirs)}" if ours else None
    for (name, type_), (their_name, their_type) in zip(ours, theirs, strict=True):
        if _family(type_) != _family(their_type):
            return f"{name} is {type_} instead of {their_type}"
        if named and _NAME.fullmatch(their_name) and their_name.lower() != name.lower():
            return f"the column is named {name} instead of {their_name}"
    return None


def _family(type_: str) -> str:
    word = type_.split("(")[0]
    if type_.endswith("[]") or word == "MAP":
        return "list"
    return "number" if word in NUMBERS else "text" if word in TEXTS else type_


def _sortable(row: tuple[object, ...]) -> tuple[list[str], list[float]]:
    """By what is exact first: a hair's difference of a number must not change the order."""
    exact = [repr(cell) for cell in row if not isinstance(cell, float | Decimal)]
    return exact, [float(cell) for cell in row if isinstance(cell, float | Decimal)]


def _shown(row: tuple[object, ...]) -> str:
    return "(" + ", ".join(str(cell) for cell in row) + ")"
