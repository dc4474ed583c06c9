"""Relational operators. Integrity is checked when a node is made, so a wrong tree cannot be built.

`Aggregate` over `Table`, `Filter`, `Project`, `Join` is what the binder makes. Rewriting turns it into a
`Gather` over `Sum`, `CountUnits`, `Weigh` and `Scan`, which is what runs and what sensitivity is derived from.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from dpsql.plan.expr import UID, WEIGHT, Expr
from dpsql.plan.measures import Bundle, Measure
from dpsql.schema.domain import Domain, Scalar
from dpsql.schema.model import Source
from dpsql.types import BIGINT, BOOLEAN, Type


@dataclass(frozen=True)
class Named:
    name: str
    expr: Expr


@dataclass(frozen=True)
class Field:
    """A column that a node gives out."""

    name: str
    type: Type


# --- what the binder makes -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A private table as declared: `columns` maps the declared name to the name used in the plan."""

    table: str
    columns: tuple[tuple[str, Field], ...]
    unit: Type | None  # the type of the unit's id; None where each row is its own unit


@dataclass(frozen=True)
class Filter:
    input: Node
    condition: Expr

    def __post_init__(self) -> None:
        if self.condition.type != BOOLEAN:
            raise TypeError("a filter's condition is a boolean")


@dataclass(frozen=True)
class Project:
    """Computed columns; the unit's id is carried along (rule 3 of the split)."""

    input: Node
    columns: tuple[Named, ...]

    def __post_init__(self) -> None:
        _distinct([column.name for column in self.columns])


class JoinKind(Enum):
    INNER = "inner"
    LEFT = "left"


@dataclass(frozen=True)
class Join:
    """Rows of one unit on both sides: `by_unit` says that the SQL that runs equates the ids.

    The result's id is the left side's, which is never NULL.
    """

    left: Node
    right: Node
    kind: JoinKind
    condition: Expr
    by_unit: bool = False

    def __post_init__(self) -> None:
        _distinct([f.name for f in (*fields(self.left), *fields(self.right)) if f.name != UID])
        if self.condition.type != BOOLEAN:
            raise TypeError("a join's condition is a boolean")

    @property
    def is_inner(self) -> bool:
        return self.kind is JoinKind.INNER


@dataclass(frozen=True)
class Aggregate:
    """What the analyst asks of private rows: a release's keys and measures."""

    input: Node
    keys: tuple[Named, ...]
    measures: tuple[Measure, ...]

    def __post_init__(self) -> None:
        _distinct([key.name for key in self.keys])


# --- what rewriting makes --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScanColumn:
    """One sanitised column: read as `physical`, cast to and clipped into `domain`."""

    source: str
    name: str
    physical: Type | None
    domain: Domain
    max_length: int
    is_id: bool  # never cast or moved: what does not fit is NULL
    null_group: bool = False  # the owner declares that NULL is a public group
    grid: Fraction | None = None
    as_stored: bool = False  # bounds are left to `Quantise`, the only reader of this column


@dataclass(frozen=True)
class Hop:
    """A step of the foreign-key path: `column` (of the table before) refers to `key` of `source`."""

    column: ScanColumn
    source: Source
    key: ScanColumn


@dataclass(frozen=True)
class UnitId:
    """Where a scan finds the unit's id: in `column` of the table itself, or of the table at the end of `hops`."""

    column: ScanColumn
    hops: tuple[Hop, ...] = ()

    @property
    def type(self) -> Type:
        return self.column.domain.type


@dataclass(frozen=True)
class Scan:
    """The sanitised rows of a private table, each with its unit's id; rows without one are dropped.

    Stability: casts are total and row by row; every `hops[i].key` is an accepted unique key, so a row
    has at most one id (SOUNDNESS 1, 3).
    """

    table: str
    source: Source
    columns: tuple[ScanColumn, ...]
    unit: UnitId | None
    unit_is_unique: bool  # accepted: the table has at most one row per unit
    unit_columns: frozenset[str]  # columns that equal the unit's id


class Norm(Enum):
    L1 = "l1"
    L2 = "l2"


@dataclass(frozen=True)
class Weigh:
    """Adds an integer weight per unit (2^16 is a whole row), so that each unit counts like at most `rows` rows.

    Stability: with n_g the unit's rows in group g, the norm of (weight * n_g) over the groups is at most
    rows * 2^16: the sum for L1, the root of the sum of squares for L2. The weight depends on the unit's
    own rows only.
    """

    input: Node
    keys: tuple[str, ...]
    rows: int
    norm: Norm

    def __post_init__(self) -> None:
        names = {f.name for f in fields(self.input)}
        if self.rows < 1 or UID not in names or WEIGHT in names or not names.issuperset(self.keys):
            raise ValueError("weights need rows of units and at least one row each")


@dataclass(frozen=True)
class Sum:
    """Integer cells summed per group; each row's components are weighted and divided by 2^shift toward zero first."""

    input: Node
    keys: tuple[str, ...]
    bundles: tuple[Bundle, ...]

    def __post_init__(self) -> None:
        if not {f.name for f in fields(self.input)}.issuperset(self.keys):
            raise ValueError("a key is not a column of the input")
        _distinct([cell for bundle in self.bundles for cell in bundle.cells])

    @property
    def weighted(self) -> bool:
        return isinstance(self.input, Weigh)


@dataclass(frozen=True)
class CountUnits:
    """Units per group: each unit counts once in a group, in at most `limit` groups.

    With `limit`, a unit keeps the groups that come first by hash of (id, key), then by key: a function of
    its own rows. With `weighted`, a unit that keeps t groups gives each 2^16/sqrt(t), rounded down.
    With `one_row`, the input has at most one row per unit and rows are counted.
    """

    input: Node
    keys: tuple[str, ...]
    cell: str
    limit: int | None
    one_row: bool
    weighted: bool = False

    def __post_init__(self) -> None:
        names = {f.name for f in fields(self.input)}
        if not names.issuperset(self.keys) or (not self.one_row and UID not in names):
            raise ValueError("units are counted by their id")

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.cell,)


@dataclass(frozen=True)
class Listed:
    """The public groups: distinct rows, one value per key."""

    keys: tuple[Field, ...]
    rows: tuple[tuple[Scalar | None, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.keys) for row in self.rows):
            raise ValueError("each listed group has a value for each key")
        # Typed, because 1 == True == 1.0 in Python.
        _distinct([str([(type(value).__name__, value) for value in row]) for row in self.rows])


Part = Sum | CountUnits


@dataclass(frozen=True)
class Gather:
    """One row per group: groups are listed, or selected by `selection`, or both crossed; missing cells are 0.

    Stability: each cell is that of its part or 0; no group leaves that is not listed or counted by `selection`.
    """

    keys: tuple[Field, ...]
    listed: Listed | None
    selection: CountUnits | None
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        covered = [f.name for f in self.listed.keys] if self.listed else []
        covered += list(self.selection.keys) if self.selection else []
        if sorted(covered) != sorted(f.name for f in self.keys):
            raise ValueError("each key is either listed or selected")
        _distinct([cell for part in self.all_parts for cell in cells_of(part)])

    @property
    def all_parts(self) -> tuple[Part, ...]:
        return self.parts if self.selection is None else (self.selection, *self.parts)


Node = Table | Filter | Project | Join | Aggregate | Scan | Weigh | Sum | CountUnits | Gather


def cells_of(part: Part) -> tuple[str, ...]:
    if isinstance(part, Sum):
        return tuple(cell for bundle in part.bundles for cell in bundle.cells)
    return part.cells


def fields(node: Node) -> tuple[Field, ...]:
    """The columns that a node gives out, the unit's id among them where rows belong to units."""
    match node:
        case Table():
            return _uid(node.unit) + tuple(f for _, f in node.columns)
        case Scan():
            types = tuple(Field(column.name, column.domain.type) for column in node.columns)
            return _uid(node.unit.type if node.unit else None) + types
        case Filter():
            return fields(node.input)
        case Project():
            uid = tuple(f for f in fields(node.input) if f.name == UID)
            return uid + tuple(Field(column.name, column.expr.type) for column in node.columns)
        case Join():
            return fields(node.left) + tuple(f for f in fields(node.right) if f.name != UID)
        case Weigh():
            return (*fields(node.input), Field(WEIGHT, BIGINT))
        case Aggregate():
            return tuple(Field(key.name, key.expr.type) for key in node.keys)
        case Sum() | CountUnits():
            inputs = {f.name: f for f in fields(node.input)}
            keys = tuple(inputs[key] for key in node.keys)
            return keys + tuple(Field(cell, BIGINT) for cell in cells_of(node))
        case Gather():
            return node.keys + tuple(Field(cell, BIGINT) for part in node.all_parts for cell in cells_of(part))


def _uid(type_: Type | None) -> tuple[Field, ...]:
    return () if type_ is None else (Field(UID, type_),)


def has_unit(node: Node) -> bool:
    return any(f.name == UID for f in fields(node))


def _distinct(names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"names repeat: {names}")


