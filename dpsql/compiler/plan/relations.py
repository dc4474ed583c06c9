"""Relations over private rows: every row belongs to one privacy unit and carries its id, up to the aggregate above.

The binder makes `Table`, `PublicTable` and what stands above them; rewriting puts `Scan` and `PublicScan` in their
place. Integrity is checked when a node is made, so a wrong tree cannot be built. Public rows belong to nobody; they may
stand on the side of a join that adds columns, never alone below an aggregate.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction

from dpsql.compiler.plan.expressions import UID, Expr
from dpsql.errors import Span
from dpsql.schema.model import Domain, Source
from dpsql.types import BIGINT, BOOLEAN, Type

SET_COLUMN = "_set"
"""The column that `Expand` adds: the number of the grouping set."""


@dataclass(frozen=True)
class Named:
    name: str
    expr: Expr


@dataclass(frozen=True)
class Field:
    """A column that a node gives out."""

    name: str
    type: Type


@dataclass(frozen=True)
class Table:
    """A private table as declared: `columns` maps the declared name to the name used in the plan."""

    table: str
    columns: tuple[tuple[str, Field], ...]
    unit: Type | None  # the type of the unit's id; None where each row is its own unit


@dataclass(frozen=True)
class PublicTable:
    """A public table as declared, on the side of a join that belongs to nobody."""

    table: str
    columns: tuple[tuple[str, Field], ...]


@dataclass(frozen=True)
class RowsHole:
    """Rows that an earlier step released, or public rows; at most `most` of them, bound when the release runs.

    `domains` and `unique` are fixed at compile time, and hold of what is bound, whatever was released (SOUNDNESS 8).
    """

    hole: str
    columns: tuple[Field, ...]
    domains: tuple[Domain, ...]
    most: int
    unique: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if len(self.columns) != len(self.domains):
            raise ValueError("each column of a hole has a domain")


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
    known: Domain | None = None  # of a public column: what was found when the data version was registered

    @property
    def values(self) -> Domain:
        """What the column holds: its declared domain, or what is known of it besides."""
        return self.known or self.domain


@dataclass(frozen=True)
class Hop:
    """A step of the foreign-key path: `column` (of the table before) refers to `key` of `source`.

    A composite key has more pairs in `also`.
    """

    column: ScanColumn
    source: Source
    key: ScanColumn
    also: tuple[tuple[ScanColumn, ScanColumn], ...] = ()

    @property
    def pairs(self) -> tuple[tuple[ScanColumn, ScanColumn], ...]:
        return ((self.column, self.key), *self.also)


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

    Stability: casts are total and row by row; the keys of every `hops[i]` are an accepted unique key, so a row
    has at most one id (SOUNDNESS 1, 3).
    """

    table: str
    source: Source
    columns: tuple[ScanColumn, ...]
    unit: UnitId | None
    unit_is_unique: bool  # accepted: the table has at most one row per unit
    unit_columns: frozenset[str]  # columns that equal the unit's id
    unique: tuple[frozenset[str], ...] = ()  # accepted unique keys, by the plan's names
    unit_keys: tuple[frozenset[str], ...] = ()  # columns of which no two rows of one unit share a value, unless NULL


@dataclass(frozen=True)
class PublicScan:
    """The sanitised rows of a public table: `rows` as counted when the data version was registered.

    `unique` holds accepted unique keys, by the plan's names.
    """

    table: str
    source: Source
    columns: tuple[ScanColumn, ...]
    rows: int
    unique: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class Filter:
    input: Rows
    condition: Expr

    def __post_init__(self) -> None:
        if self.condition.type != BOOLEAN:
            raise TypeError("a filter's condition is a boolean")


@dataclass(frozen=True)
class Project:
    """Computed columns; the unit's id is carried along (rule 3 of the split)."""

    input: Rows
    columns: tuple[Named, ...]

    def __post_init__(self) -> None:
        require_distinct_names([column.name for column in self.columns])


class JoinKind(Enum):
    INNER = "inner"
    LEFT = "left"
    FULL = "full"


@dataclass(frozen=True)
class Unmatched:
    """Public rows that a LEFT JOIN keeps, as it was written, without a private one; `hint` says how to count them."""

    span: Span | None
    hint: str


@dataclass(frozen=True)
class Join:
    """Rows of one unit on both sides (`by_unit`: the SQL that runs equates the ids), or public rows on the right.

    The result's id is the left side's; of a full join, whichever side has one. Two public sides make public rows.
    `unmatched`: an inner join in the place of one that would keep public rows, for `analysis/unmatched_rows.py` alone.
    """

    left: Rows
    right: Rows
    kind: JoinKind
    condition: Expr
    by_unit: bool = False
    unmatched: Unmatched | None = field(default=None, repr=False, compare=False)
    matches: int | None = field(default=None, repr=False, compare=False)  # public rows that one row meets, if counted

    def __post_init__(self) -> None:
        require_distinct_names([f.name for f in (*row_fields(self.left), *row_fields(self.right)) if f.name != UID])
        if self.condition.type != BOOLEAN:
            raise TypeError("a join's condition is a boolean")
        if is_public(self.left) and not is_public(self.right):
            raise ValueError("public rows stand on the right of private ones")
        if self.kind is JoinKind.FULL and is_public(self.right):
            raise ValueError("a full join would make rows without a unit")
        if self.by_unit and (is_public(self.right) or not (has_uid(self.left) and has_uid(self.right))):
            raise ValueError("these rows have no unit to equate")

    @property
    def is_inner(self) -> bool:
        return self.kind is JoinKind.INNER


@dataclass(frozen=True)
class Mark:
    """Each row of the left with a boolean `name`: whether a row of the right meets the condition.

    EXISTS, and IN where `test` is given: then `name` is `test[0] IN (test[1] of the rows that meet the condition)`,
    with SQL's NULL. The condition and `test` read columns of both sides; only the left's are given out. Where the right
    is owned, the SQL that runs equates the ids (`by_unit`), so only rows of the same unit are looked at.
    """

    left: Rows
    right: Rows
    name: str
    condition: Expr
    test: tuple[Expr, Expr] | None = None
    by_unit: bool = False

    def __post_init__(self) -> None:
        require_distinct_names(
            [f.name for f in (*row_fields(self.left), *row_fields(self.right)) if f.name != UID] + [self.name]
        )
        if is_public(self.left):
            raise ValueError("rows that are marked belong to units")
        if self.by_unit and not (has_uid(self.left) and has_uid(self.right)):
            raise ValueError("these rows have no unit to equate")


@dataclass(frozen=True)
class UnitMeasure:
    """An aggregate of one unit's rows in one of its groups: order-independent and exact (SOUNDNESS 2).

    count_rows, count, count_distinct, min, max, median, any, all; sum, mean, var_pop, var_samp, stddev_pop and
    stddev_samp are of whole grid steps once rewritten.
    """

    name: str
    function: str
    arg: Expr | None
    type: Type


@dataclass(frozen=True)
class PerUnit:
    """One row for each unit and value of the keys: GROUP BY the unit, or DISTINCT with it (then without measures).

    Stability: a unit's rows give its own results and no other's.
    """

    input: Rows
    keys: tuple[Named, ...]
    measures: tuple[UnitMeasure, ...]

    def __post_init__(self) -> None:
        require_distinct_names([key.name for key in self.keys] + [measure.name for measure in self.measures])
        if not has_uid(self.input):
            raise ValueError("these rows have no unit to group by")


@dataclass(frozen=True)
class Ordering:
    expr: Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class UnitWindow:
    """A window function over the rows of one unit (and of equal `partition`); `name` is its column.

    Where ties could choose (row_number, lag and their like, frames of rows) the order is completed with all
    columns of the input, so that the result is a function of the bag of rows (SOUNDNESS 2).
    """

    input: Rows
    name: str
    function: str
    args: tuple[Expr, ...]
    partition: tuple[Expr, ...]
    order: tuple[Ordering, ...]
    frame: str | None  # None: SQL's default
    type: Type

    def __post_init__(self) -> None:
        if not has_uid(self.input):
            raise ValueError("a window is over the rows of one unit")


class SetKind(Enum):
    UNION_ALL = "union all"
    UNION = "union"
    INTERSECT = "intersect"
    EXCEPT = "except"


@dataclass(frozen=True)
class SetOperation:
    """Rows of two relations of one unit, by position; the ids are compared too, so units never mix."""

    kind: SetKind
    left: Rows
    right: Rows

    def __post_init__(self) -> None:
        left_fields, right_fields = row_fields(self.left), row_fields(self.right)
        if [f.type for f in left_fields] != [f.type for f in right_fields]:
            raise TypeError("both sides of a set operation have the same types")
        if is_public(self.left) or is_public(self.right):
            raise ValueError("set operations are of private rows")
        if self.kind is not SetKind.UNION_ALL and not has_uid(self.left):
            raise ValueError("equal rows of two units must not become one")  # where each row is its own unit


@dataclass(frozen=True)
class Expand:
    """Each row once for each grouping set, with the keys that are not in the set NULL, and the set's number `_set`.

    The numbers start with `first`, so that one set alone keeps the number that it has among others.

    Stability: a unit has rows * sets rows, and in each set as many as it had before.
    """

    input: Rows
    keys: tuple[str, ...]
    sets: tuple[frozenset[str], ...]
    first: int = 0


Rows = (
    Table
    | PublicTable
    | RowsHole
    | Scan
    | PublicScan
    | Filter
    | Project
    | Join
    | Mark
    | PerUnit
    | UnitWindow
    | SetOperation
    | Expand
)


def rows_before_sets(rows: Rows) -> Rows:
    """The rows that grouping sets repeat; those that are in none stay as they are.

    Of what is worked out for each unit, group and set: for each unit and group of all keys.
    """
    inner = rows
    if isinstance(inner, PerUnit) and any(key.name == SET_COLUMN for key in inner.keys):
        keys = tuple(key for key in inner.keys if key.name != SET_COLUMN)
        return replace(inner, input=rows_before_sets(inner.input), keys=keys)
    while isinstance(inner, Filter):
        inner = inner.input
    if not isinstance(inner, Expand):
        return rows
    inner = inner.input
    while isinstance(inner, Filter):
        inner = inner.input
    return inner


def row_fields(node: Rows) -> tuple[Field, ...]:
    """The columns that a relation gives out, the unit's id first where rows belong to units."""
    match node:
        case Table():
            return _uid_field(node.unit) + tuple(f for _, f in node.columns)
        case PublicTable():
            return tuple(f for _, f in node.columns)
        case RowsHole():
            return node.columns
        case Scan():
            types = tuple(Field(column.name, column.domain.type) for column in node.columns)
            return _uid_field(node.unit.type if node.unit else None) + types
        case PublicScan():
            return tuple(Field(column.name, column.domain.type) for column in node.columns)
        case Filter():
            return row_fields(node.input)
        case Project():
            return _uid_fields_of(node.input) + tuple(Field(column.name, column.expr.type) for column in node.columns)
        case Join():
            return row_fields(node.left) + tuple(f for f in row_fields(node.right) if f.name != UID)
        case Mark():
            return (*row_fields(node.left), Field(node.name, BOOLEAN))
        case PerUnit():
            keys = tuple(Field(key.name, key.expr.type) for key in node.keys)
            return _uid_fields_of(node.input) + keys + tuple(Field(m.name, m.type) for m in node.measures)
        case UnitWindow():
            return (*row_fields(node.input), Field(node.name, node.type))
        case SetOperation():
            return row_fields(node.left)
        case Expand():
            return (*row_fields(node.input), Field(SET_COLUMN, BIGINT))


def has_uid(node: Rows) -> bool:
    """Whether rows carry their unit's id; those of public tables, and of tables where each row is a unit, do not."""
    return any(f.name == UID for f in row_fields(node))


def is_public(node: Rows) -> bool:
    """Whether the rows belong to nobody."""
    match node:
        case PublicTable() | PublicScan() | RowsHole():
            return True
        case Table() | Scan() | PerUnit() | SetOperation():
            return False
        case Filter() | Project() | UnitWindow() | Expand():
            return is_public(node.input)
        case Join() | Mark():
            return is_public(node.left)


def require_distinct_names(names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"names repeat: {names}")


def _uid_field(type_: Type | None) -> tuple[Field, ...]:
    return () if type_ is None else (Field(UID, type_),)


def _uid_fields_of(node: Rows) -> tuple[Field, ...]:
    return tuple(f for f in row_fields(node) if f.name == UID)
