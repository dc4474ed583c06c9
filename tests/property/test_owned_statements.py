"""Statements whose rows of one unit may look at much else: the rows that each release reads are owned.

Each is bound and rewritten as for a release, and its rows are read on neighboring databases, in several orders: one
unit more or less moves no row of another. Holes hold the same values on both sides: they were released before.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import duckdb
import pytest

from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.plan.expressions import UID
from dpsql.compiler.plan.relations import Field, row_fields
from dpsql.compiler.plan.steps import Shape
from dpsql.compiler.render.relations import render_rows
from dpsql.compiler.rewrite.pipeline import GROUP_RULES, ROW_RULES, apply_rules
from dpsql.compiler.rewrite.release_plan import ReleasePlan, RuleContext
from dpsql.compiler.split.blocks import BoundRelease, BoundRuntimeParameter
from dpsql.compiler.split.split import split_query
from dpsql.session.dataset.dataset import Dataset, open_dataset
from dpsql.types import DOUBLE, TEXT

SCHEMA = """
dpsql: 1
engine: duckdb:///{name}.duckdb
privacy:
  unit: people.pid
  budget: {{epsilon: 1000, delta: 0.5}}
  query: {{epsilon: 1, delta: 1e-6}}
  contributions: {{rows: 3, groups: 3}}
tables:
  people:
    unit: pid
    unique: [pid]
    columns: {{pid: {{type: bigint}}, town: {{type: text}}, age: {{type: integer, bounds: [0, 99]}}}}
  visits:
    unit: {{pid: people.pid}}
    unique: [vid]
    columns:
      vid: {{type: bigint}}
      pid: {{type: bigint}}
      ward: {{type: text}}
      n: {{type: bigint, bounds: [0, 9]}}
      x: {{type: double, bounds: [-5, 5]}}
  sales:
    unit: {{pid: people.pid}}
    unique: [[ticket, item]]
    columns:
      ticket: {{type: bigint}}
      item: {{type: bigint, determines_unit: true}}
      pid: {{type: bigint}}
      price: {{type: bigint}}
  wards:
    public: true
    columns: {{ward: {{type: text}}, floor: {{type: integer}}}}
  returned:
    unit: {{[ticket, item]: sales}}
    columns: {{ticket: {{type: bigint}}, item: {{type: bigint}}, amount: {{type: bigint}}}}
"""
STATEMENTS = [
    "SELECT COUNT(*) FROM visits v WHERE v.n > (SELECT AVG(y.n) FROM visits y WHERE y.ward = v.ward)",
    "SELECT SUM(v.n) FROM visits v WHERE (SELECT COUNT(*) FROM visits y WHERE y.ward = v.ward AND y.n = v.n) < 5",
    "SELECT v.ward, COUNT(*) FROM people p JOIN visits v USING (pid)"
    " WHERE p.age > (SELECT 0.5 * AVG(q.age) FROM people q WHERE q.town = v.ward) GROUP BY v.ward",
    "SELECT AVG(CLIP(x.n, 0, 9)), SUM(x.m) FROM people p"
    " CROSS JOIN LATERAL (SELECT COUNT(*) AS n, MAX(v.n) AS m FROM visits v WHERE v.pid = p.pid AND v.n > 0) x",
    "SELECT SUM(l.n) FROM people p JOIN LATERAL"
    " (SELECT v.n FROM visits v WHERE v.pid = p.pid ORDER BY v.ward LIMIT 2) l ON TRUE",
    "SELECT COUNT(*), SUM(l.n) FROM visits o LEFT JOIN LATERAL"
    " (SELECT v.n, v.x FROM visits v WHERE v.pid = o.pid AND v.ward = o.ward LIMIT 1) l ON l.x > 0",
    "SELECT COUNT(*) FROM visits v CROSS JOIN LATERAL (SELECT AVG(y.n) AS a FROM visits y WHERE y.ward = v.ward) g"
    " WHERE v.n > g.a",
    "SELECT l.k, SUM(l.y) FROM people p, visits v, LATERAL (VALUES ('n', v.n), ('x', v.x), ('age', p.age)) l(k, y)"
    " WHERE p.pid = v.pid AND l.y > 1 GROUP BY l.k",
    "SELECT COUNT(*) FROM people p CROSS JOIN (VALUES (1), (2), (3)) t(k) WHERE p.age % 4 < t.k",
    "SELECT ward, COUNT(*) FROM (SELECT DISTINCT ON (pid) pid, ward FROM visits ORDER BY pid, x) t GROUP BY ward",
    "SELECT SUM(n) FROM (SELECT DISTINCT ON (ward, pid) n FROM visits) t",
    "SELECT ticket, COUNT(*) FROM returned GROUP BY ticket",
    "SELECT COUNT(*) FROM visits v WHERE v.n > (SELECT AVG(w.floor) FROM wards w WHERE w.ward = v.ward)",
    "SELECT COUNT(*) FROM visits v WHERE v.n >= (SELECT COUNT(*) FROM wards w WHERE w.ward = v.ward AND w.floor = v.n)",
    "SELECT SUM(v.n) FROM visits v JOIN (SELECT ward, AVG(n) AS a FROM visits GROUP BY ward) x USING (ward)"
    " WHERE v.n > x.a",
    "SELECT COUNT(*) FROM sales s WHERE EXISTS (SELECT 1 FROM returned r WHERE r.item = s.item AND r.amount > 2)",
    "SELECT SUM(CLIP(n, 0, 9)) FROM (SELECT item, COUNT(*) AS n FROM sales GROUP BY item) t",
    "SELECT COUNT(*) FROM sales s, returned r WHERE (s.item = r.item AND s.price > 4)"
    " OR (r.item = s.item AND r.amount < 3)",
    "SELECT SUM(CLIP(s.price - r.amount, 0, 9)) FROM sales s"
    " JOIN returned r ON r.ticket = s.ticket AND s.item = r.item",
    "SELECT COUNT(*) FROM sales s LEFT JOIN returned r USING (item, ticket) WHERE r.amount IS NULL",
    "SELECT COUNT(*) FROM sales s WHERE (item, ticket) NOT IN (SELECT item, ticket FROM returned WHERE amount > 1)",
    "SELECT COUNT(*) FROM returned a JOIN returned b ON a.ticket = b.ticket AND a.item = b.item"
    " AND a.amount < b.amount",
    "SELECT COUNT(*) FROM people p JOIN sales s USING (pid) FULL JOIN returned r ON r.ticket = s.ticket"
    " AND r.item = s.item",
    "SELECT COUNT(*), SUM(a) FROM (SELECT ROUND(pid), pid, MIN(n) AS a FROM visits GROUP BY ROUND(pid), pid) t",
]


def fill(path: Path, rng: Random, units: list[int]) -> None:
    """Rows of each unit are the same on all sides, their order is not; many are equal in all but their key."""
    people, visits, sales, returned = [], [], [], []
    for unit in units:
        own = Random(unit)
        people.append(f"({unit}, '{own.choice('ab')}', {own.randrange(99)})")
        for number in range(12 if unit == 7 else own.randrange(5)):
            x = own.choice(["0.5", "-0.0", "0.0", "'NaN'", "NULL", "9"])
            ward = own.choice(["'a'", "'b'", "NULL"])
            visits.append(f"({unit * 100 + number}, {unit}, {ward}, {own.randrange(3)}, {x})")
        for number in range(9 if unit == 7 else own.randrange(4)):
            # Tickets are shared by units, items (which determine the unit) are not; some halves are NULL.
            sales.append(f"({number % 3}, {unit * 10 + number}, {unit}, {own.randrange(9)})")
            half = own.choice(["NULL", str(number % 3)])
            sales.append(f"({half}, {own.choice(['NULL', str(-unit)]) if half == 'NULL' else 'NULL'}, {unit}, 1)")
            some = own.sample(range(9), own.randrange(4))
            returned += [f"({number % 3}, {unit * 10 + number}, {amount})" for amount in some]
    visits += ["(9901, NULL, 'a', 5, 0.5)"]
    returned += ["(NULL, 201, 3)", "(0, NULL, 3)", "(NULL, NULL, 3)", "(2, 99999, 3)", "(0, 0, 3)"]
    for rows in (people, visits, sales, returned):
        rng.shuffle(rows)
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE people (pid BIGINT, town VARCHAR, age INTEGER)")
        database.execute("CREATE TABLE visits (vid BIGINT, pid BIGINT, ward VARCHAR, n BIGINT, x DOUBLE)")
        database.execute("CREATE TABLE sales (ticket BIGINT, item BIGINT, pid BIGINT, price BIGINT)")
        database.execute("CREATE TABLE returned (ticket BIGINT, item BIGINT, amount BIGINT)")
        database.execute("CREATE TABLE wards AS FROM (VALUES ('a', 1), ('a', 2), ('b', 0), (NULL, 1)) w(ward, floor)")
        database.execute(f"INSERT INTO sales VALUES {', '.join(sales)}")
        database.execute(f"INSERT INTO returned VALUES {', '.join(returned)}")
        database.execute(f"INSERT INTO people VALUES {', '.join(people)}")
        database.execute(f"INSERT INTO visits VALUES {', '.join(visits)}")


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> list[Dataset]:
    """With unit 7, the same in another order, and without it."""
    folder, crowd = tmp_path_factory.mktemp("owned"), list(range(20, 40))
    found = []
    for turn, units in enumerate(([7, *crowd], [*crowd, 7], crowd)):
        name = f"side{turn}"
        folder.joinpath(f"{name}.yaml").write_text(SCHEMA.format(name=name))
        fill(folder / f"{name}.duckdb", Random(turn), units)
        found.append(open_dataset(folder / f"{name}.yaml"))
    return found


def value(field: Field, number: int) -> object:
    if field.type == TEXT:
        return "ab"[number]
    return [1.0, 0.25][number] if field.type == DOUBLE else number


def filled(hole: BoundRuntimeParameter) -> object:
    rows = [{field.name: value(field, number) for field in hole.columns} for number in (0, 1)]
    values = [next(iter(row.values())) for row in rows]
    return {Shape.ROWS: rows, Shape.LIST: values, Shape.VALUE: values[0]}[hole.shape]


def read(dataset: Dataset, release: BoundRelease) -> dict[object, Counter[str]]:
    context = RuleContext(dataset.resolved)
    prepared = ReleasePlan(release.aggregate, apply_rules(ROW_RULES, release.aggregate, context))
    rows = apply_rules(GROUP_RULES, prepared, context).rows
    fields = [f.name for f in row_fields(rows)]
    assert fields[0] == UID
    names = ", ".join(f'"{name}"' for name in fields)
    holes = {hole.name: filled(hole) for hole in release.holes}
    found: dict[object, Counter[str]] = {}
    for row in dataset.engine.execute_public(f"SELECT {names} FROM ({render_rows(rows)})", holes):
        found.setdefault(row[0], Counter())[repr(row)] += 1
    return found


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_unit_moves_no_row_of_another(sql: str, sides: list[Dataset]) -> None:
    for place, release in enumerate(split_query(parse_query(sql), sides[0].schema).releases):
        one, mixed, without = (read(side, release) for side in sides)
        assert one == mixed, (place, "the order of rows decides")
        assert len(one) > 1
        assert {unit: rows for unit, rows in one.items() if unit != 7} == without, place
