"""Groups of public rows are those that stand in the public tables: no more, no fewer, in every grouping set, whatever
private rows there are.

The public tables are random: regions, their nations, and shops of these, with repeated names and NULL. Each answer,
made without noise, is compared with the groups that DuckDB finds in the public tables alone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from tests.support.effort import trial_count
from tests.support.shop import Silence

pytestmark = pytest.mark.thorough

SCHEMA = """
dpsql: 1
engine: duckdb:///chain.duckdb
privacy:
  unit: buyer.buyer_id
  budget: {epsilon: 1000000, delta: 0.9}
  query: {epsilon: 1, delta: 1e-6}
  contributions: {rows: 1000, groups: 1000}
tables:
  buyer:
    unit: buyer_id
    unique: [buyer_id]
    columns:
      buyer_id: {type: integer}
      sex: {type: text, values: [f, m]}
  bought:
    unit: {buyer_id: buyer.buyer_id}
    columns:
      buyer_id: {type: integer}
      shop_id: {type: integer}
      paid: {type: integer, bounds: [0, 100]}
  shop:
    public: true
    unique: [shop_id]
    columns: {shop_id: {type: integer}, name: {type: text}, size: {type: double}, nation_id: {type: integer}}
  nation:
    public: true
    unique: [nation_id]
    columns: {nation_id: {type: integer}, nation: {type: text}, region_id: {type: integer}}
  region:
    public: true
    unique: [region_id]
    columns: {region_id: {type: integer}, region: {type: text}}
"""

ROWS = (
    "bought JOIN shop ON bought.shop_id = shop.shop_id JOIN nation ON shop.nation_id = nation.nation_id "
    "JOIN region ON nation.region_id = region.region_id"
)
PUBLIC = (
    "shop JOIN nation ON shop.nation_id = nation.nation_id JOIN region ON nation.region_id = region.region_id "
    "WHERE shop.shop_id IS NOT NULL"
)
KEYS = (
    "name", "nation", "region", "size", "bought.shop_id", "upper(name)", "name || '/' || nation", "region = 'r1'",
    "size / 2", "CASE WHEN size > 3 THEN region ELSE nation END", "length(nation) + bought.shop_id",
    "1 / nullif(size, 0)", "coalesce(name, 'none')", "-size",
)  # fmt: skip
CONDITIONS = ("TRUE", "region <> 'r0'", "name IS NOT NULL AND size > 1", "nation LIKE 'n%' AND bought.shop_id < 9")
TRIALS = trial_count(160)


def fill(path: Path, draws: random.Random, shops: int) -> None:
    def some(letter: str, count: int) -> str:
        return draws.choice([f"'{letter}{n}'" for n in range(count)] + ["NULL"] * draws.choice((0, 1)))

    nations = draws.randint(1, 5)
    tables = {
        "region": [f"({n}, {some('r', 3)})" for n in range(3)],
        "nation": [f"({n}, {some('n', 4)}, {draws.choice((0, 1, 2, 7, 'NULL'))})" for n in range(nations)],
        "shop": [
            f"({n}, {some('S', 5)}, {draws.choice((0, 0.5, -0.0, 2, 7.5, 'NULL'))}, {draws.randint(0, nations)})"
            for n in range(shops)
        ],
        "buyer": [f"({n}, 'f')" for n in range(9)],
        "bought": [f"({draws.randrange(9)}, {draws.choice((*range(shops + 2), 'NULL'))}, 5)" for _ in range(40)],
    }
    with duckdb.connect(str(path)) as db:
        db.execute(
            "CREATE TABLE region (region_id INTEGER, region TEXT); "
            "CREATE TABLE nation (nation_id INTEGER, nation TEXT, region_id INTEGER); "
            "CREATE TABLE shop (shop_id INTEGER, name TEXT, size DOUBLE, nation_id INTEGER); "
            "CREATE TABLE buyer (buyer_id INTEGER, sex TEXT); "
            "CREATE TABLE bought (buyer_id INTEGER, shop_id INTEGER, paid INTEGER)"
        )
        for name, rows in tables.items():
            db.execute(f"INSERT INTO {name} VALUES {', '.join(rows)}")


@pytest.fixture(scope="module", params=range(3))
def chain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder, draws = tmp_path_factory.mktemp("chain"), random.Random(request.param)
    (folder / "chain.yaml").write_text(SCHEMA, encoding="utf-8")
    fill(folder / "chain.duckdb", draws, shops=draws.randint(3, 12))
    dataset = open_dataset(folder / "chain.yaml")
    session = Session(dataset, sampler=Silence(), opened_with={"empty_groups": "show"})
    yield session
    session.dataset.close()


def draw_grouping(draws: random.Random) -> tuple[list[str], str]:
    keys = draws.sample(KEYS, draws.randint(1, 3))
    listed = ", ".join(f"({key})" for key in keys)
    total = f"GROUPING SETS (({', '.join(keys)}), ({draws.choice(keys)}), ())"
    return keys, draws.choice((", ".join(keys), f"ROLLUP ({listed})", f"CUBE ({listed})", total))


def ask_engine(session: Session, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(session.dataset.schema.path.parent / "chain.duckdb"), read_only=True) as db:
        return db.execute(sql).fetchall()


@pytest.mark.parametrize("trial", range(TRIALS))
def test_groups_are_those_of_the_public_rows_in_every_grouping_set(chain: Session, trial: int) -> None:
    draws = random.Random(trial)
    keys, grouping = draw_grouping(draws)
    where = draws.choice(CONDITIONS)
    names = ", ".join(f"{key} AS k{number}" for number, key in enumerate(keys))
    sets = ", ".join(f"GROUPING({key})" for key in keys)
    asked = f"SELECT {names}, {sets}, COUNT(*) FROM {ROWS} WHERE {where} GROUP BY {grouping}"
    (release,) = chain.explain(asked).releases
    answer = chain.execute(asked)
    alone = f"SELECT {names}, {sets} FROM {PUBLIC} AND {where} GROUP BY {grouping}".replace("bought.", "shop.")
    expected = ask_engine(chain, alone)
    assert Counter(row[:-1] for row in answer.rows) == Counter(expected)
    counts = {row[:-1]: row[-1] for row in ask_engine(chain, asked)}
    assert {row[:-1]: row[-1] for row in answer.rows if row[-1]} == {key: n for key, n in counts.items() if n}
    # Of the number of groups the sensitivity of units per group is made.
    assert release.groups is not None and release.groups >= len(answer.rows)


def test_a_unit_is_counted_in_as_many_groups_as_public_rows_list(chain: Session) -> None:
    """Without caps that bite: in each of the groups that the sensitivity is made of, and in no more."""
    for grouping in ("name, nation", "ROLLUP (region, nation)", "CUBE (name, upper(nation))"):
        (release,) = chain.explain(f"SELECT COUNT(DISTINCT bought.buyer_id) FROM {ROWS} GROUP BY {grouping}").releases
        (bundle,) = release.bundles
        answer = chain.execute(f"SELECT COUNT(DISTINCT bought.buyer_id) FROM {ROWS} GROUP BY {grouping}")
        assert bundle.l1 == release.groups and len(answer.rows) <= release.groups
