"""Schemas to try: the owner's, or random ones; and how each of their columns lies in the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from dpsql.schema.domain import Domain, boolean_domain
from dpsql.schema.fingerprint import schema_hash
from dpsql.schema.model import (
    Budget,
    Column,
    Contributions,
    EngineTable,
    ForeignUnit,
    Neighbors,
    OwnUnit,
    Privacy,
    PublicFacts,
    Resolved,
    RowUnit,
    Schema,
    Table,
    Unit,
)
from dpsql.types import BIGINT, DATE, DOUBLE, HUGEINT, INTEGER, SMALLINT, TEXT, TIMESTAMP, Type, decimal
from dpsql.verify.columns import Stored, store
from dpsql.verify.draws import Draws

PLENTY = Budget(Fraction(10**6), Fraction(9, 10))
"""Of the ledger that trials pay to: what is tried is what an answer gives away, not when the budget is at its end."""

SHAPES = ("own", "unique", "one hop", "two hops", "row")


@dataclass(frozen=True)
class Laid:
    """A table and how its columns lie in the engine, in declared order."""

    table: Table
    columns: tuple[Stored, ...]
    serials: frozenset[str]  # columns that keep the unique keys unique
    single: bool  # at most one row of each unit
    once: bool  # at most one row for each row that it refers to

    @property
    def name(self) -> str:
        return self.table.name

    def stored(self, name: str) -> Stored:
        return next(column for column in self.columns if column.name == name)


@dataclass(frozen=True)
class World:
    """`tables` come in an order in which what is referred to comes first."""

    schema: Schema
    tables: tuple[Laid, ...]

    @property
    def private(self) -> tuple[Laid, ...]:
        return tuple(laid for laid in self.tables if not laid.table.public)

    @property
    def public(self) -> tuple[Laid, ...]:
        return tuple(laid for laid in self.tables if laid.table.public)

    def laid(self, name: str) -> Laid:
        return next(laid for laid in self.tables if laid.name == name)

    @property
    def resolved(self) -> Resolved:
        """Against tables as they lie in the engine, the public ones empty."""
        sources = {laid.name: laid.table.source for laid in self.tables}
        facts = {laid.name: PublicFacts(0, {}) for laid in self.public}
        return Resolved(self.schema, 1, sources, self.physical, schema_hash(self.schema), facts)

    @property
    def physical(self) -> Mapping[str, Mapping[str, Type | None]]:
        return {laid.name: {column.name: column.physical for column in laid.columns} for laid in self.tables}

    def unit_column(self, laid: Laid) -> str | None:
        """The table's own column that equals the unit's id, if it has one."""
        match laid.table.unit:
            case OwnUnit(column):
                return column
            case ForeignUnit(column, target, key):
                return column if self.laid(target).table.unit == OwnUnit(key) else None
            case _:
                return None


def world_of(schema: Schema, draws: Draws) -> World:
    """A schema over tables that are made up: its own sources, accounts and ledger are not looked at.

    The neighboring relation, unit, group size, caps, columns and views are the schema's.
    """
    tables = tuple(replace(table, source=EngineTable((table.name,))) for table in _parents_first(schema))
    privacy = replace(schema.privacy, budget=PLENTY)
    bare = replace(schema, engine="duckdb://", privacy=privacy, analysts=(), tables=tables)
    return World(bare, tuple(_lay(bare, table, draws) for table in tables))


def _parents_first(schema: Schema) -> list[Table]:
    """A longer path to the unit comes later."""
    return sorted(schema.tables, key=lambda table: len(schema.unit_path(table)))


def _lay(schema: Schema, table: Table, draws: Draws) -> Laid:
    ids = schema.id_columns(table)
    columns = tuple(store(column, draws, column.name in ids) for column in table.columns)
    link = table.unit.column if isinstance(table.unit, OwnUnit | ForeignUnit) else None
    serials, single = set[str](), False
    for key in table.unique:
        free = [name for name in key if name != link]
        if free:
            serials.add(free[0])
        else:
            single = True
    direct = isinstance(table.unit, OwnUnit) or len(schema.unit_path(table)) == 1
    return Laid(table, columns, frozenset(serials), single and direct, single and not direct)


# --- random schemas --------------------------------------------------------------------------------------------------


def random_schema(draws: Draws, shape: str | None = None) -> Schema:
    shape = shape or draws.choice(SHAPES)
    uid = draws.choice((Column("uid", Domain(BIGINT)), Column("uid", Domain(TEXT), max_length=8)))
    tables = list(_private_tables(draws, shape, uid))
    if draws.chance(0.7):
        tables.append(_codes(draws))
    privacy = Privacy(
        neighbors=draws.choice(tuple(Neighbors)),
        unit="row" if shape == "row" else f"{tables[0].name}.uid",
        budget=PLENTY,
        query=Budget(Fraction(1), Fraction(1, 10**6)),
        contributions=Contributions(draws.between(1, 5), draws.between(1, 4)),
        group_size=draws.choice((1, 1, 1, 2, 3)),
    )
    return Schema(Path("random.yaml"), "duckdb://", "sqlite://", privacy, (), tuple(tables))


def _private_tables(draws: Draws, shape: str, uid: Column) -> list[Table]:
    vid = Column("vid", Domain(BIGINT))
    visits = ForeignUnit("uid", "people", "uid")
    match shape:
        case "own":
            return [_table("events", OwnUnit("uid"), (uid,), (), draws)]
        case "row":
            return [_table(name, RowUnit(), (), (), draws) for name in ("events", "calls")[: draws.between(1, 2)]]
        case "unique":
            return [_table("people", OwnUnit("uid"), (uid,), ("uid",), draws)]
        case _:
            found = [_table("people", OwnUnit("uid"), (uid,), ("uid",), draws),
                     _table("visits", visits, (vid, uid), ("vid",), draws)]  # fmt: skip
            if shape == "two hops":
                found.append(_table("tests", ForeignUnit("vid", "visits", "vid"), (vid,), (), draws))
            return found


def _table(name: str, unit: Unit, ids: tuple[Column, ...], unique: tuple[str, ...], draws: Draws) -> Table:
    columns = (*ids, *_random_columns(draws, name[0]))
    return Table(name, EngineTable((name,)), unit, tuple((key,) for key in unique), columns)


def _codes(draws: Draws) -> Table:
    """A public table: a key that texts of private tables may equal, a number and a word that repeat."""
    columns = (Column("code", Domain(TEXT), max_length=8), Column("level", _bounded(INTEGER, 0, 3)),
               Column("word", Domain(TEXT), max_length=8))  # fmt: skip
    unique = draws.choice(((("code",),), ()))
    return Table("codes", EngineTable(("codes",)), None, unique, columns)


def _bounded(type_: Type, lower: object, upper: object) -> Domain:
    return Domain(type_, True, Fraction(str(lower)), Fraction(str(upper)))


_DOUBLES = ((0, 100), (-1, 1), (-5000, -1000), ("0.001", 1000), (0, "1e12"), ("-0.1", "0.3"), (7, 7), (0, "1e-3"))
_INTEGERS = ((0, 10), (-20, -5), (1000, 1010), (-3, 4), (5, 5), (0, 100000), (-(2**31), 2**31 - 1))
_DECIMALS = ((0, "100.5"), ("-3.25", "7.75"), ("1000.01", "1000.99"))
_GRIDS = (None, None, None, Fraction(1, 100), Fraction(1, 4), Fraction(3, 10), Fraction(5, 2))
_LISTED = ("a", "b", "it's", "k1", "")
_DAY = 86_400_000_000


def _random_columns(draws: Draws, prefix: str) -> tuple[Column, ...]:
    """A number with bounds, a text that is not listed, and a few others, often one with declared values."""
    makers = (_double, _integer, _decimal, _fine, _unbounded, _boolean, _listed, _text, _date, _timestamp, _small)
    chosen = [draws.choice((*makers[:4], _fine)), _text, *draws.sample(makers, draws.between(1, 4))]
    if draws.chance(0.5):
        chosen.append(draws.choice((_boolean, _listed)))
    return tuple(make(f"{prefix}{place}", draws) for place, make in enumerate(chosen))


def _double(name: str, draws: Draws) -> Column:
    domain, grid = _bounded(DOUBLE, *draws.choice(_DOUBLES)), draws.choice(_GRIDS)
    fits = grid is not None and grid <= domain.bounds[1] - domain.bounds[0]
    return Column(name, domain, grid if fits else None)


def _fine(name: str, draws: Draws) -> Column:
    """Bounds that are no round number of any grid: every division leaves something over."""
    lower = (draws.below(3) - 1) * draws.share() * 10 ** draws.between(-3, 3)
    upper = lower + draws.share() * 10 ** draws.between(-3, 3)
    return Column(name, Domain(DOUBLE, True, Fraction(lower), Fraction(upper)))


def _integer(name: str, draws: Draws) -> Column:
    return Column(name, _bounded(draws.choice((INTEGER, BIGINT)), *draws.choice(_INTEGERS)))


def _small(name: str, draws: Draws) -> Column:
    """Few whole numbers: public groups."""
    return Column(name, _bounded(SMALLINT, 0, draws.between(1, 3)), null_group=draws.chance(0.5))


def _unbounded(name: str, draws: Draws) -> Column:
    return Column(name, Domain(draws.choice((BIGINT, HUGEINT, decimal(38, 10)))))


def _decimal(name: str, draws: Draws) -> Column:
    return Column(name, _bounded(decimal(10, 2), *draws.choice(_DECIMALS)))


def _boolean(name: str, draws: Draws) -> Column:
    return Column(name, boolean_domain(True), null_group=draws.chance(0.5))


def _listed(name: str, draws: Draws) -> Column:
    values = tuple(draws.sample(_LISTED, draws.between(1, 4)))
    return Column(name, Domain(TEXT, True, values=values), null_group=draws.chance(0.5))


def _text(name: str, draws: Draws) -> Column:
    return Column(name, Domain(TEXT), max_length=8)


def _date(name: str, draws: Draws) -> Column:
    return Column(name, draws.choice((_bounded(DATE, 18262, 18262 + 800), Domain(DATE))))


def _timestamp(name: str, draws: Draws) -> Column:
    return Column(name, draws.choice((_bounded(TIMESTAMP, 18262 * _DAY, 19062 * _DAY), Domain(TIMESTAMP))))
