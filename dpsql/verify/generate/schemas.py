"""Schemas to try: the owner's, or random ones; and how each of their columns lies in the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from dpsql.schema.fingerprint import hash_schema
from dpsql.schema.model import (
    Budget,
    Column,
    Contributions,
    Domain,
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
    boolean_domain,
    unit_columns_of,
)
from dpsql.types import BIGINT, DATE, DOUBLE, HUGEINT, INTEGER, SMALLINT, TEXT, TIMESTAMP, Type, decimal_type
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.columns import StoredColumn, store_column

AMPLE_BUDGET = Budget(Fraction(10**6), Fraction(9, 10))
"""Of the ledger that trials pay to: what is tried is what an answer gives away, not when the budget is at its end."""

SCHEMA_SHAPES = ("own", "unique", "one hop", "two hops", "composite", "row")


@dataclass(frozen=True)
class StoredTable:
    """A table and how its columns lie in the engine, in declared order."""

    table: Table
    columns: tuple[StoredColumn, ...]
    serials: frozenset[str]  # columns that keep the unique keys unique
    single: bool  # at most one row of each unit
    once: bool  # at most one row for each row that it refers to
    halves: tuple[tuple[str, str], ...] = ()  # of composite keys: two columns that are unique together, neither alone
    shared: bool = False  # whether units share values of columns that are declared to determine them

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def determining(self) -> tuple[str, ...]:
        """Columns that are declared to determine the unit, and do not refer to another table's."""
        links = unit_columns_of(self.table)
        return tuple(c.name for c in self.table.columns if c.determines_unit and c.name not in links)

    def column_named(self, name: str) -> StoredColumn:
        return next(column for column in self.columns if column.name == name)


@dataclass(frozen=True)
class GeneratedSchema:
    """`tables` come in an order in which what is referred to comes first."""

    schema: Schema
    tables: tuple[StoredTable, ...]

    @property
    def private_tables(self) -> tuple[StoredTable, ...]:
        return tuple(stored for stored in self.tables if not stored.table.public)

    @property
    def public_tables(self) -> tuple[StoredTable, ...]:
        return tuple(stored for stored in self.tables if stored.table.public)

    def table_named(self, name: str) -> StoredTable:
        return next(stored for stored in self.tables if stored.name == name)

    @property
    def resolved_schema(self) -> Resolved:
        """Against tables as they lie in the engine, the public ones empty."""
        sources = {stored.name: stored.table.source for stored in self.tables}
        facts = {stored.name: PublicFacts(0, {}) for stored in self.public_tables}
        return Resolved(self.schema, 1, sources, self.physical_types, hash_schema(self.schema), facts)

    @property
    def physical_types(self) -> Mapping[str, Mapping[str, Type | None]]:
        return {stored.name: {column.name: column.physical for column in stored.columns} for stored in self.tables}

    def unit_column(self, stored: StoredTable) -> str | None:
        """The table's own column that equals the unit's id, if it has one."""
        match stored.table.unit:
            case OwnUnit(column):
                return column
            case ForeignUnit(column, target, key, ()):
                return column if self.table_named(target).table.unit == OwnUnit(key) else None
            case _:
                return None


def generate_from_schema(schema: Schema, choices: ChoiceStream) -> GeneratedSchema:
    """A schema over tables that are made up: its own sources, accounts and ledger are not looked at.

    The neighboring relation, unit, group size, caps, columns and views are the schema's.
    """
    tables = tuple(replace(table, source=EngineTable((table.name,))) for table in _sort_parents_first(schema))
    privacy = replace(schema.privacy, budget=AMPLE_BUDGET)
    bare = replace(schema, engine="duckdb://", privacy=privacy, analysts=(), tables=tables)
    return GeneratedSchema(bare, tuple(_store_table(bare, table, choices) for table in tables))


def _sort_parents_first(schema: Schema) -> list[Table]:
    """A longer path to the unit comes later."""
    return sorted(schema.tables, key=lambda table: len(schema.find_unit_path(table)))


def _store_table(schema: Schema, table: Table, choices: ChoiceStream) -> StoredTable:
    """Joins compare ids also where a column is declared to determine the unit, so nothing may rest on that claim: in
    half of all databases the rows break it."""
    ids = schema.find_id_columns(table)
    columns = tuple(store_column(column, choices, column.name in ids) for column in table.columns)
    links = unit_columns_of(table)
    serials, halves, single = set[str](), list[tuple[str, str]](), False
    for key in sorted(table.unique, key=len):
        free = [name for name in key if name not in links]
        taken = {name for pair in halves for name in pair}
        if not free:
            single = True
        elif len(free) > 1 and table.unit is not None and not taken & set(free) and not serials & set(free):
            halves.append(_choose_halves(table, free))
        elif not serials & set(free):
            serials.add(next((name for name in free if name not in taken), free[0]))
    direct = isinstance(table.unit, OwnUnit) or len(schema.find_unit_path(table)) == 1
    shared = any(column.determines_unit for column in table.columns) and choices.draw_bool(0.5)
    return StoredTable(
        table, columns, frozenset(serials), single and direct, single and not direct, tuple(halves), shared
    )


def _choose_halves(table: Table, free: list[str]) -> tuple[str, str]:
    """Two columns of a key, first one that determines the unit if there is one."""
    first = next((c.name for c in table.columns if c.name in free and c.determines_unit), free[0])
    return first, next(name for name in free if name != first)


# --- random schemas --------------------------------------------------------------------------------------------------


def random_schema(choices: ChoiceStream, shape: str | None = None) -> Schema:
    shape = shape or choices.choice(SCHEMA_SHAPES)
    uid = choices.choice((Column("uid", Domain(BIGINT)), Column("uid", Domain(TEXT), max_length=8)))
    tables = list(_random_private_tables(choices, shape, uid))
    if choices.draw_bool(0.7):
        tables.append(_random_code_table(choices))
    if choices.draw_bool(0.5):
        tables.append(_random_price_table(choices))
    privacy = Privacy(
        neighbors=choices.choice(tuple(Neighbors)),
        unit="row" if shape == "row" else f"{tables[0].name}.uid",
        budget=AMPLE_BUDGET,
        query=Budget(Fraction(1), Fraction(1, 10**6)),
        contributions=_random_contributions(choices),
        units=choices.choice((None, 100, 100_000)),
        group_size=choices.choice((1, 1, 1, 2, 3)),
    )
    return Schema(Path("random.yaml"), "duckdb://", "sqlite://", privacy, (), tuple(tables))


def _random_contributions(choices: ChoiceStream) -> Contributions:
    """Caps, or some of them, or none: then norms are chosen from histograms."""
    rows, groups = choices.draw_between(1, 5), choices.draw_between(1, 4)
    return choices.choice((*(Contributions(rows, groups),) * 4, Contributions(), Contributions(None, groups)))


def _random_private_tables(choices: ChoiceStream, shape: str, uid: Column) -> list[Table]:
    vid = Column("vid", Domain(BIGINT))
    visits = ForeignUnit("uid", "people", "uid")
    match shape:
        case "own":
            return [_random_table("events", OwnUnit("uid"), (uid,), (), choices)]
        case "row":
            return [
                _random_table(name, RowUnit(), (), (), choices)
                for name in ("events", "calls")[: choices.draw_between(1, 2)]
            ]
        case "unique":
            return [_random_table("people", OwnUnit("uid"), (uid,), ("uid",), choices)]
        case _:
            people = _random_table("people", OwnUnit("uid"), (uid,), ("uid",), choices)
            if shape == "composite":
                return [people, *_random_sales(choices, uid)]
            tables = [people, _random_table("visits", visits, (vid, uid), ("vid",), choices)]
            if shape == "two hops":
                tables.append(_random_table("tests", ForeignUnit("vid", "visits", "vid"), (vid,), (), choices))
            return tables


def _random_table(
    name: str, unit: Unit, ids: tuple[Column, ...], unique: tuple[str, ...], choices: ChoiceStream
) -> Table:
    columns = (*ids, *_random_columns(choices, name[0]))
    if not isinstance(unit, RowUnit) and choices.draw_bool(0.3):
        columns += (_random_determining_column("ref", choices),)
    return Table(name, EngineTable((name,)), unit, tuple((key,) for key in unique), columns)


def _random_sales(choices: ChoiceStream, uid: Column) -> list[Table]:
    """Lines of sales, known by two columns together, and what was returned of them."""
    sale = choices.choice((Column("sale", Domain(BIGINT)), Column("sale", Domain(TEXT), max_length=8)))
    line = Column("line", Domain(BIGINT))
    keys = (replace(sale, determines_unit=choices.draw_bool(0.3)), line)
    sales = _random_table("sales", ForeignUnit("uid", "people", "uid"), (*keys, uid), (), choices)
    returned = ForeignUnit("line", "sales", "line", (("sale", "sale"),))
    unique = (("sale", "line"), ("line", "sale"))[choices.draw_below(2)]
    return [replace(sales, unique=(unique,)), _random_table("returns", returned, (sale, line), (), choices)]


def _random_determining_column(name: str, choices: ChoiceStream) -> Column:
    """A number or a word that one unit has in many rows, such as an order's."""
    column = choices.choice((Column(name, Domain(BIGINT)), Column(name, Domain(TEXT), max_length=8)))
    return replace(column, determines_unit=True)


def _random_price_table(choices: ChoiceStream) -> Table:
    """A public table without a key: many rows, of which few meet one private row."""
    columns = (Column("kind", Domain(TEXT), max_length=8), Column("level", _bounded_domain(INTEGER, 0, 3)),
               Column("cost", _bounded_domain(DOUBLE, *choices.choice(((0, 100), (-1, 1))))))  # fmt: skip
    return Table("prices", EngineTable(("prices",)), None, (), columns)


def _random_code_table(choices: ChoiceStream) -> Table:
    """A public table: a key that texts of private tables may equal, a number and a word that repeat."""
    columns = (Column("code", Domain(TEXT), max_length=8), Column("level", _bounded_domain(INTEGER, 0, 3)),
               Column("word", Domain(TEXT), max_length=8))  # fmt: skip
    unique = choices.choice(((("code",),), ()))
    return Table("codes", EngineTable(("codes",)), None, unique, columns)


def _bounded_domain(type_: Type, lower: object, upper: object) -> Domain:
    return Domain(type_, True, Fraction(str(lower)), Fraction(str(upper)))


_DOUBLES = ((0, 100), (-1, 1), (-5000, -1000), ("0.001", 1000), (0, "1e12"), ("-0.1", "0.3"), (7, 7), (0, "1e-3"))
_INTEGERS = ((0, 10), (-20, -5), (1000, 1010), (-3, 4), (5, 5), (0, 100000), (-(2**31), 2**31 - 1))
_DECIMALS = ((0, "100.5"), ("-3.25", "7.75"), ("1000.01", "1000.99"))
_GRIDS = (None, None, None, Fraction(1, 100), Fraction(1, 4), Fraction(3, 10), Fraction(5, 2))
_LISTED = ("a", "b", "it's", "k1", "")
_DAY = 86_400_000_000


def _random_columns(choices: ChoiceStream, prefix: str) -> tuple[Column, ...]:
    """A number with bounds, a text that is not listed, and a few others, often one with declared values."""
    makers = (
        _random_double,
        _random_integer,
        _random_decimal,
        _random_unaligned_double,
        _random_unbounded_number,
        _random_boolean,
        _random_listed_text,
        _random_text,
        _random_date,
        _random_timestamp,
        _random_small_integer,
    )
    chosen = [
        choices.choice((*makers[:4], _random_unaligned_double)),
        _random_text,
        *choices.sample(makers, choices.draw_between(1, 4)),
    ]
    if choices.draw_bool(0.5):
        chosen.append(choices.choice((_random_boolean, _random_listed_text)))
    return tuple(make(f"{prefix}{index}", choices) for index, make in enumerate(chosen))


def _random_double(name: str, choices: ChoiceStream) -> Column:
    domain, grid = _bounded_domain(DOUBLE, *choices.choice(_DOUBLES)), choices.choice(_GRIDS)
    fits = grid is not None and grid <= domain.bounds[1] - domain.bounds[0]
    return Column(name, domain, grid if fits else None)


def _random_unaligned_double(name: str, choices: ChoiceStream) -> Column:
    """Bounds that are no round number of any grid: every division leaves something over."""
    lower = (choices.draw_below(3) - 1) * choices.draw_fraction() * 10 ** choices.draw_between(-3, 3)
    upper = lower + choices.draw_fraction() * 10 ** choices.draw_between(-3, 3)
    return Column(name, Domain(DOUBLE, True, Fraction(lower), Fraction(upper)))


def _random_integer(name: str, choices: ChoiceStream) -> Column:
    return Column(name, _bounded_domain(choices.choice((INTEGER, BIGINT)), *choices.choice(_INTEGERS)))


def _random_small_integer(name: str, choices: ChoiceStream) -> Column:
    """Few whole numbers: public groups."""
    return Column(name, _bounded_domain(SMALLINT, 0, choices.draw_between(1, 3)), null_group=choices.draw_bool(0.5))


def _random_unbounded_number(name: str, choices: ChoiceStream) -> Column:
    return Column(name, Domain(choices.choice((BIGINT, HUGEINT, decimal_type(38, 10)))))


def _random_decimal(name: str, choices: ChoiceStream) -> Column:
    return Column(name, _bounded_domain(decimal_type(10, 2), *choices.choice(_DECIMALS)))


def _random_boolean(name: str, choices: ChoiceStream) -> Column:
    return Column(name, boolean_domain(True), null_group=choices.draw_bool(0.5))


def _random_listed_text(name: str, choices: ChoiceStream) -> Column:
    values = tuple(choices.sample(_LISTED, choices.draw_between(1, 4)))
    return Column(name, Domain(TEXT, True, values=values), null_group=choices.draw_bool(0.5))


def _random_text(name: str, choices: ChoiceStream) -> Column:
    return Column(name, Domain(TEXT), max_length=8)


def _random_date(name: str, choices: ChoiceStream) -> Column:
    return Column(name, choices.choice((_bounded_domain(DATE, 18262, 18262 + 800), Domain(DATE))))


def _random_timestamp(name: str, choices: ChoiceStream) -> Column:
    return Column(name, choices.choice((_bounded_domain(TIMESTAMP, 18262 * _DAY, 19062 * _DAY), Domain(TIMESTAMP))))
