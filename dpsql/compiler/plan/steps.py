"""What passes between the steps of a statement: runtime parameters that earlier steps fill, and released columns.

Nothing here depends on values: shapes, types and sizes are fixed when the statement is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from dpsql.compiler.plan.relations import Field
from dpsql.schema.model import Domain, Scalar
from dpsql.types import Type

MAX_PARAMETER_ROWS = 1_000
"""Rows of a hole: also what it counts as wherever a size is asked at compile time."""

MAX_KEYED_PARAMETER_ROWS = 100_000
"""Rows of a hole in which a private row looks up one by a key. Both numbers count as the first in a release's key: how
many rows there may be changes no answer."""

VALUE_KEY = "value"
"""The key that the values of a column are, where they are counted or compared by a score."""

MAX_PARAMETER_LENGTH = 1_024
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
    kind: str  # key, value, stderr, low, high, clipped, clip_half, clip_mid, cov, factor
    place: int
    other: int = 0  # of a covariance, the second measure


@dataclass(frozen=True)
class Axis:
    """A column of a tally as whole numbers: places in `values`, or steps of `bins`; behind the last, NULL if it counts.

    Rows in which a column has none of these are not in the tally.
    """

    name: str
    type: Type
    values: tuple[Scalar, ...] | None
    bins: Bins | None
    null: bool

    def __post_init__(self) -> None:
        if (self.values is None) == (self.bins is None):
            raise ValueError("an axis has values or bins")

    @property
    def lower(self) -> int:
        return 0 if self.bins is None else self.bins.lower

    @property
    def upper(self) -> int:
        """The last code, NULL's included."""
        last = len(self.values) - 1 if self.values is not None else self.bins.upper if self.bins is not None else 0
        return last + self.null

    @property
    def size(self) -> int:
        return self.upper - self.lower + 1


@dataclass(frozen=True)
class Bins:
    """What a chosen bin means: `origin + bin * grid`, as a number or, of dates, as days or microseconds since 1970."""

    lower: int
    upper: int
    grid: Fraction
    type: Type  # of the argument
    discrete: bool  # the answer has the argument's type; else it is a double
    origin: Fraction = Fraction(0)


def hole_text(hole: Hole) -> str:
    """What a hole is, in the key of a stored release."""
    max_rows = counted_rows(hole.most)
    return repr((hole.name, hole.shape.value, hole.columns, max_rows, hole.sql, sorted(hole.unique)))


def counted_rows(max_rows: int) -> int:
    return MAX_PARAMETER_ROWS if max_rows == MAX_KEYED_PARAMETER_ROWS else max_rows
