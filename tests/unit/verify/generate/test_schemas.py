"""Made-up databases: what is stored is legal in the engine, keys are unique, and neighbors are neighbors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.engines.in_memory import InMemoryEngine, InMemoryEngineError
from dpsql.schema.load import load_schema
from dpsql.schema.model import Column, Domain, ForeignUnit, Neighbors, OwnUnit, unit_columns_of
from dpsql.types import TEXT, Kind, Type, decimal_type
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.columns import NULL, engine_type_name, serial_literal, store_column
from dpsql.verify.generate.neighbors import TableRows, random_pair
from dpsql.verify.generate.schemas import SCHEMA_SHAPES, GeneratedSchema, generate_from_schema, random_schema
from dpsql.verify.paired_engine import fill_engine
from dpsql.verify.report import render_schema

SCHEMAS = sorted((Path(__file__).parents[4] / "schemas").glob("*.yaml"))


@pytest.fixture(scope="module")
def engine() -> Iterator[InMemoryEngine]:
    scratch = InMemoryEngine(1)
    yield scratch
    scratch.close()


@pytest.mark.parametrize("kind", list(Kind))
def test_every_value_of_a_pool_is_one_of_its_type(kind: Kind, engine: InMemoryEngine) -> None:
    type_ = decimal_type(10, 2) if kind is Kind.DECIMAL else Type(kind)
    for seed in range(12):
        stored = store_column(Column("x", Domain(type_)), ChoiceStream(seed))
        rows = [(text,) for text in (*stored.pool, *stored.own, *stored.far)]
        engine.fill_table("t", [("x", stored.engine_type)], rows)
        assert engine.query_rows("SELECT COUNT(*) FROM t") == [(len(rows),)]
        assert stored.pool[-1] == NULL


def test_an_engine_that_failed_within_itself_begins_again_with_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB answers nothing after an internal error of its own: else every later statement would be a finding."""
    scratch = InMemoryEngine(1)
    scratch.fill_table("t", [("a", "INTEGER")], [["1"], ["2"]])
    scratch.fill_table("t", [("a", "INTEGER")], [["3"]])

    def fails(*_: object) -> None:
        raise duckdb.InternalException("INTERNAL Error: as planted")

    with monkeypatch.context() as patch:
        patch.setattr(scratch, "_run_select", fails)
        with pytest.raises(InMemoryEngineError, match="as planted"):
            scratch.query_rows("SELECT a FROM t")
    assert scratch.query_rows("SELECT a FROM t") == [(3,)]
    scratch.close()


@pytest.mark.parametrize("kind", list(Kind))
def test_serial_values_differ(kind: Kind, engine: InMemoryEngine) -> None:
    type_ = decimal_type(10, 2) if kind is Kind.DECIMAL else Type(kind)
    found = [serial_literal(Column("x", Domain(type_)), type_, number) for number in range(300)]
    engine.fill_table("t", [("x", engine_type_name(type_))], [(text,) for text in found])
    ((count, distinct),) = engine.query_rows("SELECT COUNT(x), COUNT(DISTINCT x) FROM t")
    assert count == distinct == (0 if kind in (Kind.BOOLEAN, Kind.TIME, Kind.INTERVAL) else 300)


def worlds() -> Iterator[tuple[GeneratedSchema, ChoiceStream]]:
    for seed in range(40):
        draws = ChoiceStream(seed)
        yield generate_from_schema(random_schema(draws, SCHEMA_SHAPES[seed % len(SCHEMA_SHAPES)]), draws), draws
    for path in SCHEMAS:
        for seed in range(3):
            draws = ChoiceStream(seed)
            yield generate_from_schema(load_schema(path), draws), draws


def units_of(
    world: GeneratedSchema, table: str, rows: TableRows, engine: InMemoryEngine
) -> Counter[tuple[object, tuple[str, ...]]]:
    """Each row with the unit that it belongs to, found by following the foreign keys by hand."""
    laid = world.table_named(table)
    unit = laid.table.unit
    assert isinstance(unit, OwnUnit | ForeignUnit)
    column_names = [column.name for column in laid.columns]
    place, *_ = places = [column_names.index(name) for name in unit_columns_of(laid.table)]
    if isinstance(unit, OwnUnit) or world.unit_column(laid) is not None:
        return Counter((row[place], row) for row in rows[table])
    target = world.table_named(unit.table)
    keys = [[column.name for column in target.columns].index(key) for key in unit.keys]
    owners = {tuple(row[key] for key in keys): owner for owner, row in units_of(world, unit.table, rows, engine)}
    links = [(tuple(row[index] for index in places), row) for row in rows[table]]
    return Counter((owners.get(link, NULL) if is_key(link) else NULL, row) for link, row in links)


def is_key(link: tuple[str, ...]) -> bool:
    """What is too long is none, once it is sanitised."""
    return NULL not in link and not any(text.startswith("'xxxxxxxxx") for text in link)


def test_neighbors_differ_in_as_many_units_as_are_protected(engine: InMemoryEngine) -> None:
    compared = 0
    for world, draws in worlds():
        pair, privacy = random_pair(world, draws), world.schema.privacy
        for public in world.public_tables:
            assert pair.first[public.name] == pair.second[public.name]
        left, came = set[object](), set[object]()
        for laid in world.private_tables:
            if privacy.unit == "row":
                one, other = Counter(pair.first[laid.name]), Counter(pair.second[laid.name])
                moved = (one - other).total() + (other - one).total()
                assert moved <= privacy.group_size * (2 if privacy.neighbors is Neighbors.CHANGE_ONE else 1)
                continue
            one, other = (units_of(world, laid.name, rows, engine) for rows in (pair.first, pair.second))
            left |= {unit for unit, _ in one - other} - {NULL}
            came |= {unit for unit, _ in other - one} - {NULL}
        # Under change_one, a unit that makes room for another is one: as many may come as leave.
        sides = (left, came) if privacy.neighbors is Neighbors.CHANGE_ONE else (left | came,)
        assert all(len(side) <= privacy.group_size for side in sides)
        assert not any(str(unit).startswith("'xx") for unit in left | came)
        compared += bool(left | came)
    assert compared > 20


def test_keys_that_are_declared_unique_are(engine: InMemoryEngine) -> None:
    for world, draws in worlds():
        pair = random_pair(world, draws)
        for rows in (pair.first, pair.second, pair.mixed):
            fill_engine(engine, world, rows)
            for laid in world.tables:
                for key in laid.table.unique:
                    names = ", ".join(f'"{name}"' for name in key)
                    held = " AND ".join(
                        f'"{name}" IS NOT NULL'
                        + (f' AND length("{name}") <= {column.declared.max_length}' if column.physical == TEXT else "")
                        for name in key
                        for column in [laid.column_named(name)]
                    )
                    sql = f'SELECT COUNT(*) FROM (SELECT {names} FROM "{laid.name}" WHERE {held} '
                    sql += f"GROUP BY {names} HAVING COUNT(*) > 1)"
                    assert engine.query_rows(sql) == [(0,)], (laid.name, key)


def sales_of(seed: int) -> tuple[GeneratedSchema, TableRows]:
    draws = ChoiceStream(f"sales {seed}")
    world = generate_from_schema(random_schema(draws, "composite"), draws)
    return world, random_pair(world, draws).first


def test_units_share_each_half_of_a_composite_key_and_no_key() -> None:
    """Else half of a key would find a row's unit as well as all of it."""
    shared = Counter[str]()
    for seed in range(60):
        world, rows = sales_of(seed)
        (half, other), sales = world.table_named("sales").halves[0], world.table_named("sales")
        at = {name: [column.name for column in sales.columns].index(name) for name in (half, other, "uid")}
        owned = [row for row in rows["sales"] if row[at["uid"]] != NULL and is_key((row[at[half]], row[at[other]]))]
        for name in (half, other):
            owners: dict[str, set[str]] = {}
            for row in owned:
                owners.setdefault(row[at[name]], set()).add(row[at["uid"]])
            shared[name] += any(len(units) > 1 for units in owners.values())
        returned = world.table_named("returns")
        places = [[column.name for column in returned.columns].index(name) for name in unit_columns_of(returned.table)]
        links = [tuple(row[place] for place in places) for row in rows["returns"]]
        shared["half NULL"] += any(NULL in link and link != (NULL, NULL) for link in links)
        shared["too long"] += any(not is_key(link) and NULL not in link for link in links)
        shared["broken"] += len(owned) < len(rows["sales"])
    assert all(shared[name] > 20 for name in ("sale", "line", "half NULL", "broken")) and shared["too long"] > 5, shared


def test_a_column_that_determines_the_unit_does_so_in_half_of_all_databases() -> None:
    """Rows of one unit repeat it, and some have none; where units share it, joins must compare ids all the same."""
    seen = Counter[str]()
    for seed in range(200):
        draws = ChoiceStream(f"orders {seed}")
        world = generate_from_schema(random_schema(draws, "one hop"), draws)
        for laid in (stored for stored in world.private_tables if stored.determining):
            (name,), names = laid.determining, [column.name for column in laid.columns]
            rows = [row for row in random_pair(world, draws).first[laid.name] if is_key((row[names.index("uid")],))]
            values = Counter(row[names.index(name)] for row in rows)
            owners = {
                (row[names.index(name)], row[names.index("uid")]) for row in rows if row[names.index(name)] != NULL
            }
            units = Counter(value for value, _ in owners)
            assert laid.shared or max(units.values(), default=1) == 1
            seen["repeated"] += any(count > 1 for value, count in values.items() if value != NULL)
            seen["shared"] += max(units.values(), default=1) > 1
            seen["missing"] += values[NULL] > 0
    assert min(seen["repeated"], seen["shared"], seen["missing"]) > 15, seen


def test_public_tables_without_a_key_have_rows_that_are_counted() -> None:
    sizes = Counter[str]()
    for seed in range(100):
        draws = ChoiceStream(f"prices {seed}")
        world = generate_from_schema(random_schema(draws, "unique"), draws)
        rows = random_pair(world, draws).first
        for laid in (stored for stored in world.public_tables if stored.name == "prices"):
            count = len(rows[laid.name])
            sizes["few" if count <= 10 else str(count)] += 1
            kinds = Counter(row[0] for row in rows[laid.name] if row[0] != NULL)
            assert max(kinds.values()) < 15
    assert min(sizes["few"], sizes["36"], sizes["1050"]) > 3, sizes


def test_a_schema_is_shown_as_one_that_can_be_loaded(tmp_path: Path) -> None:
    for seed in range(60):
        draws = ChoiceStream(seed)
        world = generate_from_schema(random_schema(draws), draws)
        (tmp_path / "shown.yaml").write_text("\n".join(render_schema(world)) + "\n", encoding="utf-8")
        loaded = load_schema(tmp_path / "shown.yaml")
        assert {t.name: (t.unit, t.unique, t.columns) for t in loaded.tables} == {
            t.name: (t.unit, t.unique, t.columns) for t in world.schema.tables
        }
        assert loaded.privacy.contributions == world.schema.privacy.contributions
