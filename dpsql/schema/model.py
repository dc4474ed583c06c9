"""The schema as frozen values; and the same resolved against a registered data version."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import exp, expm1
from pathlib import Path
from typing import Any

from dpsql.base.option_names import SYNTHETIC_PREFIX
from dpsql.types import Kind, Type

Scalar = bool | int | float | Decimal | str | dt.date | dt.datetime
"""A value of a key or literal. `datetime` is naive for timestamp, aware for timestamptz."""

EPOCH = dt.datetime(1970, 1, 1)
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, in days since then


def to_number(value: Scalar) -> Fraction:
    """Numbers as they are; dates as days, timestamps as microseconds since 1970."""
    match value:
        case bool():
            return Fraction(int(value))
        case int() | float() | Decimal():
            return Fraction(value)
        case dt.datetime():
            naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
            return Fraction((naive - EPOCH) // dt.timedelta(microseconds=1))
        case dt.date():
            return Fraction((value - EPOCH.date()).days)
        case str():
            raise TypeError("text has no order that bounds could use")


@dataclass(frozen=True)
class Domain:
    """`lower` and `upper` are in the scale of `to_number`; `values` holds no NULL and no repeats."""

    type: Type
    nullable: bool = True
    lower: Fraction | None = None
    upper: Fraction | None = None
    values: tuple[Scalar, ...] | None = None
    length: int | None = None  # most characters of a text
    # No double was on the way: only then do bounds prove that integer arithmetic fits.
    exact: bool = field(default=True, compare=False)

    @property
    def is_bounded(self) -> bool:
        return self.lower is not None and self.upper is not None

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        assert self.lower is not None and self.upper is not None
        return self.lower, self.upper

    def list_values(self, max_values: int) -> tuple[Scalar, ...] | None:
        """The values, or the whole numbers or days between the bounds; None where there are more, or no end."""
        if self.values is not None:
            return self.values if len(self.values) <= max_values else None
        if not self.is_bounded or not (self.type.is_integer or self.type.kind is Kind.DATE):
            return None
        first, last = self.bounds[0].__ceil__(), self.bounds[1].__floor__()
        if last - first >= max_values:
            return None
        if self.type.is_integer:
            return tuple(range(first, last + 1))
        if not FIRST_DAY <= first <= last <= LAST_DAY:
            return None
        return tuple(EPOCH.date() + dt.timedelta(days=number) for number in range(first, last + 1))

    def with_bounds(self, lower: Fraction | None, upper: Fraction | None) -> Domain:
        return replace(self, lower=lower, upper=upper)

    def with_nullable(self, nullable: bool) -> Domain:
        return replace(self, nullable=nullable)


def boolean_domain(nullable: bool) -> Domain:
    return Domain(Type(Kind.BOOLEAN), nullable, values=(False, True))


# The grid to which times are rounded that statements compare with a column.
#
# Law: a whole day is on every grid below a day, so that dates stay dates; rounding what is rounded changes nothing.

SNAP_PATTERN = r"[1-9][0-9]{0,3} (minutes?|hours?|days?|weeks?)"
_SECONDS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}
_ONE_DAY = dt.timedelta(days=1)
_MONDAY = EPOCH - dt.timedelta(days=3)


@dataclass(frozen=True)
class Snap:
    """`count` minutes, hours, days or weeks, counted from 1970-01-01 00:00 in UTC; weeks from a Monday."""

    count: int
    unit: str  # minute, hour, day or week

    @property
    def step(self) -> dt.timedelta:
        return dt.timedelta(seconds=self.count * _SECONDS[self.unit])

    @property
    def divides_days(self) -> bool:
        """Whether each day begins on the grid."""
        return _ONE_DAY % self.step == dt.timedelta(0)

    @property
    def whole_days(self) -> bool:
        return self.step % _ONE_DAY == dt.timedelta(0)

    def round_down(self, value: dt.date) -> dt.date:
        """The last time of the grid that is not after `value`, of the same type; itself, where no calendar has it.

        >>> Snap(1, "week").round_down(dt.date(2024, 3, 1))
        datetime.date(2024, 2, 26)
        >>> Snap(15, "minute").round_down(dt.datetime(2024, 3, 1, 12, 34))
        datetime.datetime(2024, 3, 1, 12, 30)
        """
        return self._shift_on_grid(value, 0)

    def next_step(self, value: dt.date) -> dt.date:
        """The time of the grid that follows `down(value)`."""
        return self._shift_on_grid(value, 1)

    def _shift_on_grid(self, value: dt.date, steps: int) -> dt.date:
        origin = _MONDAY if self.unit == "week" else EPOCH
        timestamp = _to_naive_utc(value)
        try:
            moved = origin + ((timestamp - origin) // self.step + steps) * self.step
        except OverflowError:
            return value
        if not isinstance(value, dt.datetime):
            return moved.date()
        return moved if value.tzinfo is None else moved.replace(tzinfo=dt.UTC)

    def __str__(self) -> str:
        return f"{self.count} {self.unit}" + ("s" if self.count > 1 else "")


def _to_naive_utc(value: dt.date) -> dt.datetime:
    if not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)


def parse_snap(text: str) -> Snap | None:
    """None where the text is no span, or one of which a day is no multiple and that is none of a day."""
    if not re.fullmatch(SNAP_PATTERN, text):
        return None
    count, unit = text.split()
    snap = Snap(int(count), unit.removesuffix("s"))
    return snap if snap.divides_days or snap.whole_days else None


# A model that an account has made, as statements read it: no part of what the owner declares.

LOGISTIC, LINEAR = "logistic", "linear"


@dataclass(frozen=True)
class Term:
    """A feature and its coefficient; of a category, the `value` for which it counts."""

    feature: str
    value: Scalar | None
    coefficient: float
    error: float
    truth: bool = False  # of a boolean: what true adds

    @property
    def name(self) -> str:
        return self.feature if self.value is None else f"{self.feature}={self.value}"


@dataclass(frozen=True)
class MadeModel:
    """In the units of the columns: a number counts times its coefficient, a category with the coefficient of its value.

    A logistic model's sum is the logarithm of the odds that the label is the second of `classes`.
    """

    name: str
    release: int
    family: str
    label: str
    classes: tuple[Scalar, ...]
    intercept: Term
    terms: tuple[Term, ...]
    written: tuple[str, ...] = ()  # the label and the features, as its statement has them

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(term.feature for term in self.terms))

    def terms_of(self, feature: str) -> tuple[Term, ...]:
        return tuple(term for term in self.terms if term.feature == feature)


class Neighbors(Enum):
    ADD_REMOVE = "add_remove"
    CHANGE_ONE = "change_one"


@dataclass(frozen=True)
class Budget:
    """The most that an account may lose, or the loss that a statement asks for."""

    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class Contributions:
    """Most that one unit may contribute: `rows` is its norm, `groups` its unknown keys. None: not declared."""

    rows: int | None = None
    groups: int | None = None


@dataclass(frozen=True)
class Policy:
    """How an account's charges add up, and what the owner allows single statements. None: nothing is said."""

    composition: str = "zcdp"
    largest_epsilon: Fraction | None = None
    largest_delta: Fraction | None = None
    expires: date | None = None


@dataclass(frozen=True)
class Privacy:
    neighbors: Neighbors
    unit: str  # "table.column", or "row"
    budget: Budget
    query: Budget
    contributions: Contributions = Contributions()
    group_size: int = 1
    policy: Policy = Policy()
    units: int | None = None  # about how many there are: an order of magnitude that the owner knows


@dataclass(frozen=True)
class Limits:
    """What the engine may use; no part of what a query means. None: as the engine has it."""

    memory: str | None = None
    threads: int | None = None
    seconds: int = 600
    failures: int = 3
    min_latency: Fraction = Fraction(0)
    running: int = 8  # runs of one account at a time


@dataclass(frozen=True)
class Analyst:
    name: str
    budget: Budget
    password: str | None = field(default=None, repr=False)
    password_env: str | None = None
    parent: str | None = None  # a group; None: the dataset
    policy: Policy = Policy()
    settings: tuple[tuple[str, str], ...] = ()  # of connections that do not set them
    may_act_for: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """Analysts, or other groups, who share a budget."""

    name: str
    budget: Budget
    parent: str | None = None
    policy: Policy = Policy()


@dataclass(frozen=True)
class RowUnit:
    """Each row is its own privacy unit."""


@dataclass(frozen=True)
class OwnUnit:
    """This column is the privacy unit."""

    column: str


@dataclass(frozen=True, repr=False)
class ForeignUnit:
    """`column` refers to `table.key`, a step nearer to the unit; a composite key has more pairs in `also`."""

    column: str
    table: str
    key: str
    also: tuple[tuple[str, str], ...] = field(default=(), metadata={"means": "where given"})

    def __repr__(self) -> str:  # stored releases are found by it
        also = f", also={self.also!r}" if self.also else ""
        return f"ForeignUnit(column={self.column!r}, table={self.table!r}, key={self.key!r}{also})"

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Each column with the one that it refers to."""
        return ((self.column, self.key), *self.also)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for column, _ in self.pairs)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for _, key in self.pairs)

    def refers_to(self, table: Table, column: str) -> bool:
        """Whether it is a reference to this column alone."""
        return self.pairs == ((self.column, column),) and self.table == table.name


Unit = RowUnit | OwnUnit | ForeignUnit


@dataclass(frozen=True)
class EngineTable:
    """A table or view of the engine, by its name's parts."""

    name: tuple[str, ...]


@dataclass(frozen=True)
class Files:
    """Source files; `format` is "parquet", "csv" or "json". Patterns are absolute; `written` is what the owner wrote,
    for people: no path of the machine and no variable's value is in it."""

    patterns: tuple[str, ...]
    format: str
    header: bool = True
    delimiter: str = ","
    quote: str = '"'
    null: str = ""
    escape: str = field(default="", metadata={"means": "where given"})  # "": the quote
    encoding: str = field(default="", metadata={"means": "where given"})  # "": UTF-8
    skip: int = field(default=0, metadata={"means": "where given"})
    decimal: str = field(default="", metadata={"means": "where given"})  # "": a point
    written: tuple[str, ...] = field(default=(), repr=False, compare=False, metadata={"means": False})


Source = EngineTable | Files


def _description_field() -> Any:
    """A description. No part of what a schema means: stored releases are found by `repr`, compiled ones by a hash that
    leaves it out, so who edits it makes nobody pay again."""
    return field(default=None, repr=False, metadata={"means": False})


@dataclass(frozen=True)
class Randomized:
    """How a column was collected: by randomized response with `epsilon` among the declared values.

    An answer was kept with `keep_probability`, and became each other value with `other_probability` (Warner 1965; of k
    values, Kairouz et al. 2014). NULL was not randomized.
    """

    epsilon: Fraction
    values: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or len(self.values) < 2:
            raise ValueError("answers are randomized among two values or more, with a positive epsilon")

    @property
    def other_probability(self) -> float:
        """exp(-epsilon) / (1 + (k - 1) exp(-epsilon)): this form does not overflow."""
        rare = exp(-float(self.epsilon))
        return rare / (1.0 + (len(self.values) - 1) * rare)

    @property
    def keep_probability(self) -> float:
        return 1.0 - (len(self.values) - 1) * self.other_probability

    @property
    def signal_weight(self) -> float:
        """The part of an answer's weight that is left in what was recorded: keep less other probability."""
        rare = exp(-float(self.epsilon))
        return -expm1(-float(self.epsilon)) / (1.0 + (len(self.values) - 1) * rare)


@dataclass(frozen=True)
class Column:
    name: str
    domain: Domain  # type, bounds and values as declared; always nullable, since data is never taken at its word
    grid: Fraction | None = None
    max_length: int = 1024  # characters; longer text becomes NULL
    null_group: bool = False  # declared `nullable`: NULL is one of the public groups
    # Times compared with it are rounded to this grid. No part of what a stored release is found by: its plan has them.
    snap: Snap | None = field(default=None, repr=False)
    randomized: Randomized | None = None
    description: str | None = _description_field()
    # Checked: rows that share a value belong to one unit. No stored release depends on it: joins compare ids anyway.
    determines_unit: bool = field(default=False, repr=False, metadata={"means": "where given"})
    # How times are written in text files; read when a data version is registered, so no release depends on it.
    format: str = field(default="", repr=False, metadata={"means": "where given"})

    @property
    def type(self) -> Type:
        return self.domain.type


@dataclass(frozen=True)
class Table:
    name: str
    source: Source
    unit: Unit | None  # None: public
    unique: tuple[tuple[str, ...], ...]
    columns: tuple[Column, ...]
    preview: bool = field(default=False, repr=False)  # who asks for single rows gets made-up ones; no release has them
    description: str | None = _description_field()

    @property
    def public(self) -> bool:
        return self.unit is None

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)

    def is_unique(self, column: str) -> bool:
        return (column,) in self.unique

    def has_unique_key(self, columns: Iterable[str]) -> bool:
        """Whether no two rows have the same values of these columns."""
        return any(set(key) <= set(columns) for key in self.unique)


@dataclass(frozen=True)
class View:
    """A named query that the owner declares; analysts read it like a table.

    `columns` are known once its SQL is compiled: of a schema as it was loaded they are empty.
    """

    name: str
    sql: str
    columns: tuple[Column, ...] = ()
    description: str | None = _description_field()


CREATED_SCHEMA = "dpsql_made"
"""Where released rows stand that an account has made a table of, each under a key that tells nothing: numbers of
releases would count those of others."""


@dataclass(frozen=True)
class MadeTable:
    """A synthetic table of the account that asks: no part of what the owner declares."""

    name: str
    key: str
    columns: tuple[Column, ...]
    description: str | None = _description_field()

    @property
    def statement(self) -> str:
        return (self.description or "").removeprefix(SYNTHETIC_PREFIX)

    @property
    def view(self) -> View:
        return View(self.name, f'SELECT * FROM "{CREATED_SCHEMA}"."{self.key}"', self.columns, self.description)


@dataclass(frozen=True)
class StatisticDeclared:
    """A statistic of a block's rows that the owner names: `sql` is an expression over aggregates of `of`."""

    name: str
    of: tuple[str, ...]
    sql: str
    line: int | None = field(default=None, repr=False, compare=False, metadata={"means": False})


@dataclass(frozen=True)
class Answers:
    """How long stored answers are kept, and the grid of times on which the data becomes a new version."""

    retention: timedelta | None = None
    refresh: Snap | None = None


@dataclass(frozen=True)
class Schema:
    path: Path
    engine: str = field(repr=False)  # the URLs may hold a password
    ledger: str = field(repr=False)
    privacy: Privacy
    analysts: tuple[Analyst, ...]
    tables: tuple[Table, ...]
    views: tuple[View, ...] = ()
    limits: Limits = Limits()
    groups: tuple[Group, ...] = ()
    answers: Answers = Answers()
    statistics: tuple[StatisticDeclared, ...] = ()
    description: str | None = _description_field()
    made: tuple[MadeTable, ...] = ()  # by the account that asks; their views are among `views`
    models: tuple[MadeModel, ...] = ()  # by the same

    def with_created(self, made: tuple[MadeTable, ...], models: tuple[MadeModel, ...] = ()) -> Schema:
        """As an account sees it. What the owner declares goes first."""
        declared = {relation.name.lower() for relation in self.relations}
        visible = tuple(table for table in made if table.name.lower() not in declared)
        views = (*self.views, *(table.view for table in visible))
        return replace(self, made=visible, models=models, views=views) if visible or models else self

    @property
    def database(self) -> str:
        """The name that clients connect to."""
        return self.path.stem

    @property
    def relations(self) -> tuple[Table | View, ...]:
        """All that analysts may name in FROM."""
        return (*self.tables, *self.views)

    @property
    def has_previews(self) -> bool:
        return any(table.preview for table in self.tables)

    @property
    def has_snapped_times(self) -> bool:
        """Whether times that are compared with some column are rounded."""
        return any(column.snap for table in self.tables for column in table.columns)

    @property
    def has_randomized_answers(self) -> bool:
        return any(column.randomized for table in self.tables for column in table.columns)

    def view(self, name: str) -> View | None:
        return next((view for view in self.views if view.name.lower() == name.lower()), None)

    def table(self, name: str) -> Table | None:
        return next((table for table in self.tables if table.name == name), None)

    def analyst(self, name: str) -> Analyst | None:
        return next((analyst for analyst in self.analysts if analyst.name == name), None)

    def find_id_columns(self, table: Table) -> frozenset[str]:
        """The columns that hold a unit's id, or lead to one: never cast, never moved."""
        hops = [other.unit for other in self.tables if isinstance(other.unit, ForeignUnit)]
        arrived = {key for hop in hops if hop.table == table.name for key in hop.keys}
        return frozenset(arrived).union(unit_columns_of(table))

    def find_unit_path(self, table: Table) -> tuple[ForeignUnit, ...]:
        """The foreign keys from a private table to the unit; empty where it holds the unit itself."""
        path: list[ForeignUnit] = []
        while isinstance(table.unit, ForeignUnit):
            path.append(table.unit)
            target = self.table(table.unit.table)
            assert target is not None and len(path) <= len(self.tables)  # the loader checked it
            table = target
        return tuple(path)


def unit_columns_of(table: Table) -> tuple[str, ...]:
    """The columns that say whose a row is: the unit itself, or a reference."""
    match table.unit:
        case OwnUnit(column):
            return (column,)
        case ForeignUnit():
            return table.unit.columns
        case _:
            return ()


@dataclass(frozen=True)
class PublicFacts:
    """What registering found in a public table: its rows, the distinct values of columns that have few, and keys that
    no two rows share, declared or not."""

    rows: int
    values: Mapping[str, tuple[Scalar | None, ...]]
    unique: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Resolved:
    """A schema and what registering a data version found: where the engine reads, and physical types.

    `relations` says what to read for each table (a CSV source has become the files of its typed
    snapshot); `physical` the engine's own type of each declared column, None where dpsql has no such
    type. `unique` keys in the schema were checked for this version. `public` has what the public tables hold.
    """

    schema: Schema
    version: int
    relations: Mapping[str, Source]
    physical: Mapping[str, Mapping[str, Type | None]]
    hash: str = field(compare=False)  # of the schema's meaning: part of every compile key
    public: Mapping[str, PublicFacts] = field(default_factory=dict)
    identity: str = field(default="", compare=False)  # of the version: which files it is, and what is claimed of them
    counted: Mapping[str, int] = field(default_factory=dict, compare=False)  # public rows, for the statement at hand
