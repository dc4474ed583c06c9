"""What passes between the steps of a statement: holes that earlier steps fill, and released columns.

Nothing here depends on values: shapes, types and sizes are fixed when the statement is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from dpsql.plan.relations import Field
from dpsql.schema.domain import Domain
from dpsql.types import Type

MOST_ROWS = 1_000
"""Rows of a hole: also what it counts as wherever a size is asked at compile time."""

MOST_LENGTH = 1_024
"""Characters of a text in a hole; longer ones are NULL."""


class Shape(Enum):
    """What stands in the place of a hole: one value, a list of values, or rows."""

    VALUE = "value"
    LIST = "list"
    ROWS = "rows"


@dataclass(frozen=True)
class Hole:
    """A place in a release's SQL that an earlier step fills: `sql` is post-processing over the tables before.

    Its values are moved into the bounds of `domains`, one for each column, before they are bound. Of rows that are then
    alike in the `unique` columns one is bound.
    """

    name: str
    shape: Shape
    columns: tuple[Field, ...]
    most: int
    sql: str
    domains: tuple[Domain, ...]
    unique: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ReleaseColumn:
    """A column of the release as post-processing reads it: what of the key or measure at `place`."""

    name: str
    type: Type
    kind: str  # key, value, stderr, low, high, cov, factor
    place: int
    other: int = 0  # of a covariance, the second measure


@dataclass(frozen=True)
class Bins:
    """What a chosen bin means: `bin * grid`, as a number or, of dates, as days or microseconds since 1970."""

    lower: int
    upper: int
    grid: Fraction
    type: Type  # of the argument
    discrete: bool  # the answer has the argument's type; else it is a double
