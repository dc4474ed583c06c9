"""Random schemas with adversarial rows, and pairs of neighboring databases of them.

One or more units are heavy: far more rows than their norm, spread over several groups, some of them their own. Beside
them stand a small crowd, rows without a unit, and rows of a path that leads nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random

from support.columns import NULL, Spec, quoted, random_columns

from dpsql.schema.domain import Domain
from dpsql.schema.model import (
    Budget,
    Column,
    Contributions,
    EngineTable,
    ForeignUnit,
    Neighbors,
    OwnUnit,
    Privacy,
    Resolved,
    RowUnit,
    Schema,
    Table,
    Unit,
)
from dpsql.types import BIGINT, TEXT, Type

Row = tuple[str, ...]
Rows = Mapping[str, tuple[Row, ...]]
BUDGET = Budget(Fraction(1), Fraction(1, 10**6))


@dataclass(frozen=True)
class TableSpec:
    """`ids` come first in every row: the table's own key, if any, then what leads to the unit."""

    table: Table
    ids: tuple[Spec, ...]
    columns: tuple[Spec, ...]

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def all_columns(self) -> tuple[Spec, ...]:
        return self.ids + self.columns


@dataclass(frozen=True)
class World:
    shape: str
    resolved: Resolved
    tables: tuple[TableSpec, ...]
    uid: Spec | None

    @property
    def schema(self) -> Schema:
        return self.resolved.schema

    def table(self, name: str) -> TableSpec:
        return next(table for table in self.tables if table.name == name)

    def describe(self) -> str:
        privacy = self.schema.privacy
        caps = privacy.contributions
        lines = [f"-- {self.shape}: {privacy.neighbors.value}, unit {privacy.unit}, group_size {privacy.group_size}, "
                 f"rows {caps.rows}, groups {caps.groups}"]  # fmt: skip
        for spec in self.tables:
            lines.append(f"-- {spec.name}: unit {spec.table.unit}, unique {spec.table.unique}")
            for column in spec.all_columns:
                lines.append(f"--   {column.name}: {column.declared.domain} grid {column.declared.grid} "
                             f"null_group {column.declared.null_group} stored {column.stored}")  # fmt: skip
        return "\n".join(lines)


SHAPES = ("own", "unique", "one hop", "two hops", "row")


def an_id(name: str, type_: Type) -> Spec:
    stored = "BIGINT" if type_ == BIGINT else "VARCHAR"
    return Spec(Column(name, Domain(type_), max_length=8), type_, stored, ())


def random_world(rng: Random, shape: str | None = None, fine: bool = False) -> World:
    shape = shape or rng.choice(SHAPES)
    uid = None if shape == "row" else an_id("uid", rng.choice((BIGINT, TEXT)))
    tables: list[TableSpec] = []
    if shape in ("one hop", "two hops"):
        tables.append(_table("people", OwnUnit("uid"), (uid,), ("uid",), random_columns(rng, "p", fine)))
    if shape == "unique":
        tables.append(_table("people", OwnUnit("uid"), (uid,), ("uid",), random_columns(rng, "p", fine)))
    if shape == "own":
        tables.append(_table("events", OwnUnit("uid"), (uid,), (), random_columns(rng, "e", fine)))
    if shape == "row":
        tables.append(_table("events", RowUnit(), (), (), random_columns(rng, "e", fine)))
    if shape in ("one hop", "two hops"):
        vid = an_id("vid", BIGINT)
        unit = ForeignUnit("uid", "people", "uid")
        tables.append(_table("visits", unit, (vid, uid), ("vid",), random_columns(rng, "v", fine)))
        if shape == "two hops":
            unit = ForeignUnit("vid", "visits", "vid")
            tables.append(_table("tests", unit, (vid,), (), random_columns(rng, "t", fine)))
    unit_name = "row" if uid is None else f"{tables[0].name}.uid"
    privacy = Privacy(
        neighbors=rng.choice(tuple(Neighbors)),
        unit=unit_name,
        budget=BUDGET,
        query=BUDGET,
        contributions=Contributions(rng.randint(1, 5), rng.randint(1, 4)),
        group_size=rng.choice((1, 1, 1, 2, 3)),
    )
    return World(shape, resolve(privacy, tables), tuple(tables), uid)


def _table(
    name: str, unit: Unit, ids: tuple[Spec | None, ...], unique: tuple[str, ...], rest: tuple[Spec, ...]
) -> TableSpec:
    known = tuple(spec for spec in ids if spec is not None)
    columns = tuple(spec.declared for spec in known + rest)
    return TableSpec(Table(name, EngineTable((name,)), unit, tuple((key,) for key in unique), columns), known, rest)


def resolve(privacy: Privacy, tables: list[TableSpec]) -> Resolved:
    schema = Schema(Path("world.yaml"), "duckdb://", "sqlite://", privacy, (), tuple(spec.table for spec in tables))
    physical = {spec.name: {c.name: c.physical for c in spec.all_columns} for spec in tables}
    return Resolved(schema, 1, {spec.name: spec.table.source for spec in tables}, physical, "world")


# --- rows ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unit_:
    """One unit's rows in every table."""

    rows: Rows


def random_unit(world: World, rng: Random, number: int, heavy: bool) -> Unit_:
    """`number` makes its ids, so that units never share one."""
    rows: dict[str, tuple[Row, ...]] = {}
    visits = [str(number * 1000 + place) for place in range(_count(rng, heavy))]
    for table in world.tables:
        values = _Values(rng, table, heavy)
        uid = _uid(world, number)
        match table.name:
            case "people" if world.shape == "unique" or rng.random() < 0.9:
                rows["people"] = ((uid, *values.row()),)
            case "visits":
                rows["visits"] = tuple((vid, uid, *values.row()) for vid in visits)
            case "tests":
                rows["tests"] = tuple((rng.choice(visits), *values.row()) for _ in range(_count(rng, heavy)))
            case "events" if world.uid is None:
                rows["events"] = (values.row(),)
            case "events":
                rows["events"] = tuple((uid, *values.row()) for _ in range(_count(rng, heavy)))
    return Unit_(rows)


def _count(rng: Random, heavy: bool) -> int:
    return rng.choice((6, 9, 17, 40)) if heavy else rng.randint(1, 4)


def _uid(world: World, number: int) -> str:
    if world.uid is None or world.uid.physical == BIGINT:
        return str(number)
    return quoted(f"u{number}")


class _Values:
    """Rows of one unit in one table: some repeated as they are, some with keys that no one else has."""

    def __init__(self, rng: Random, table: TableSpec, heavy: bool) -> None:
        self._rng, self._table, self._heavy = rng, table, heavy
        self._focus = {c.name: rng.choice(c.pool) for c in table.columns}
        self._last: Row | None = None

    def row(self) -> Row:
        rng = self._rng
        if self._last is not None and rng.random() < 0.2:
            return self._last
        self._last = tuple(self._value(column) for column in self._table.columns)
        return self._last

    def _value(self, column: Spec) -> str:
        if column.own and self._heavy and self._rng.random() < 0.5:
            return self._rng.choice(column.own)
        # The same extreme again and again moves a sum furthest.
        return self._focus[column.name] if self._rng.random() < 0.4 else self._rng.choice(column.pool)


def steady_unit(world: World, rng: Random, number: int, rows: int, high: bool) -> Unit_:
    """A unit whose numbers are all as low or as high as can be, mostly in one group: it moves a sum furthest."""
    spread = rng.random() < 0.4
    made: dict[str, tuple[Row, ...]] = {}
    for table in world.tables:
        fixed = [c.far[high] if c.far else c.pool[0] for c in table.columns]

        def row(place: int, table: TableSpec = table, fixed: list[str] = fixed) -> Row:
            return tuple(
                c.own[place % 3] if c.own and spread else value for c, value in zip(table.columns, fixed, strict=True)
            )

        uid = _uid(world, number)
        match table.name:
            case "people":
                made["people"] = ((uid, *row(0)),)
            case "visits":
                made["visits"] = tuple((str(number * 1000 + n), uid, *row(n)) for n in range(rows))
            case "tests":
                made["tests"] = tuple((str(number * 1000 + n % rows), *row(n)) for n in range(rows))
            case "events" if world.uid is None:
                made["events"] = (row(0),)
            case "events":
                made["events"] = tuple((uid, *row(n)) for n in range(rows))
    return Unit_(made)


def steady_pair(world: World, rng: Random) -> Pair:
    """A group of units at the far end of everything, against none of them or the same ones at the other end."""
    privacy = world.schema.privacy
    rows = rng.choice(((privacy.contributions.rows or 1), (privacy.contributions.rows or 1) + 1, 7, 40))
    numbers, high = range(1, privacy.group_size + 1), rng.random() < 0.5
    # Others beside them, so that what is cut off in a division is not always the same.
    crowd = [strays(world, rng), *(random_unit(world, rng, 100 + n, heavy=False) for n in range(2))]
    one = [*crowd, *(steady_unit(world, rng, number, rows, high) for number in numbers)]
    other = list(crowd)
    if privacy.neighbors is Neighbors.CHANGE_ONE:
        other += [steady_unit(world, rng, number, rows, not high) for number in numbers]
    return Pair(joined(world, one), joined(world, other), joined(world, one))


def strays(world: World, rng: Random) -> Unit_:
    """Rows that belong to no unit: they must never matter."""
    rows: dict[str, tuple[Row, ...]] = {}
    for table in world.tables:
        values = _Values(rng, table, True)
        match table.name:
            case "people" | "events" if table.ids:
                rows[table.name] = tuple((NULL, *values.row()) for _ in range(3))
            case "visits":
                rows["visits"] = tuple((str(-1 - n), NULL, *values.row()) for n in range(3))
            case "tests":
                rows["tests"] = tuple((vid, *values.row()) for vid in (NULL, "-1", "-99", NULL))
    if world.uid is not None and world.uid.physical == TEXT:
        # Longer than an id may be, so no id at all.
        first = world.tables[0]
        extra = ("'much too long an id'", *_Values(rng, first, True).row())
        rows[first.name] = (*rows[first.name], extra)
    return Unit_(rows)


def joined(world: World, units: list[Unit_]) -> dict[str, tuple[Row, ...]]:
    return {t.name: tuple(row for unit in units for row in unit.rows.get(t.name, ())) for t in world.tables}


@dataclass(frozen=True)
class Pair:
    """Two neighboring databases, and the first one again with other rows that belong to no unit."""

    first: Rows
    second: Rows
    strayed: Rows


def random_pair(world: World, rng: Random) -> Pair:
    """Neighbors differ in all rows of up to `group_size` units, in every table."""
    privacy = world.schema.privacy
    crowd = [random_unit(world, rng, 100 + n, heavy=rng.random() < 0.15) for n in range(rng.randint(0, 7))]
    lost = strays(world, rng)
    one, other = [lost, *crowd], [lost, *crowd]
    for number in range(1, privacy.group_size + 1):
        unit = random_unit(world, rng, number, heavy=rng.random() < 0.8)
        # Before or after the crowd: whose row comes first must not show.
        place = rng.choice((0, len(crowd)))
        if privacy.neighbors is Neighbors.CHANGE_ONE:
            one.insert(place, unit)
            other.insert(place, random_unit(world, rng, number, heavy=rng.random() < 0.8))
        else:
            (one if rng.random() < 0.7 else other).insert(place, unit)
    strayed = [unit for unit in one if unit is not lost]
    if rng.random() < 0.5:
        strayed.append(strays(world, rng))
    return Pair(joined(world, one), joined(world, other), joined(world, strayed))
