"""Equivalent spellings are one question, paid for once; different questions are never mistaken for each other."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import combinations
from pathlib import Path

import duckdb
import pytest

from dpsql.compiler.compile import Compiled, compile_query
from dpsql.compiler.settings import change_setting
from dpsql.session.session import Session
from tests.support.shop import open_shop

Shop = tuple[Session, duckdb.DuckDBPyConnection]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    session, reference = open_shop(Path(tmp_path_factory.mktemp("shop")))
    session.execute("SET empty_groups = show")  # a question is one release
    yield session, reference
    session.dataset.close()
    reference.close()


@pytest.fixture(scope="module")
def session(shop: Shop) -> Session:
    return shop[0]


def compiled(session: Session, sql: str) -> Compiled:
    return compile_query(sql, session.dataset.resolved, session.settings.statement)


def hashes(session: Session, sql: str) -> tuple[str, ...]:
    return tuple(step.plan_hash for step in compiled(session, sql).steps)


COUNT = "SELECT COUNT(*) FROM orders WHERE "
JOINED, TURNED = "SELECT COUNT(*) FROM orders o ", "SELECT COUNT(*) FROM people p JOIN orders o "
SAME = [
    ["SELECT COUNT(*) FROM orders", "select count(*) from Orders", "SELECT COUNT(1) AS n FROM orders AS o",
     "SELECT COUNT(*) + 1 FROM public.orders", "SELECT COUNT(*) FROM orders HAVING COUNT(*) > 3",
     "SELECT n * 2 FROM (SELECT COUNT(*) AS n FROM orders) AS t", "SELECT COUNT('x') FROM orders ORDER BY 1 LIMIT 1"],
    [COUNT + "qty > 3", COUNT + "qty >= 4", COUNT + "3 < qty", COUNT + "NOT (qty <= 3)", COUNT + "NOT qty < 4",
     COUNT + "(qty > 3) AND qty > 3", COUNT + "orders.qty > 3", COUNT + "qty > 3 AND TRUE", COUNT + "qty > 3 OR FALSE"],
    [COUNT + "qty BETWEEN 1 AND 5", COUNT + "qty >= 1 AND qty <= 5", COUNT + "5 >= qty AND 1 <= qty",
     COUNT + "qty > 0 AND qty < 6", COUNT + "NOT (qty < 1 OR qty > 5)"],
    [COUNT + "kind IN ('web', 'shop')", COUNT + "kind IN ('shop', 'web', 'web')",
     COUNT + "kind = 'web' OR kind = 'shop'", COUNT + "'shop' = kind OR kind IN ('web')"],
    [COUNT + "qty NOT IN (1, 2, 3)", COUNT + "qty <> 1 AND qty <> 2 AND 3 <> qty",
     COUNT + "NOT (qty = 1 OR qty IN (2, 3))",
     COUNT + "qty NOT IN (3, 2) AND NOT qty = 1", COUNT + "NOT (NOT (qty <> 1 AND qty <> 3) OR qty = 2)"],
    [COUNT + "qty <> 1 AND paid", COUNT + "paid AND NOT qty IN (1)", COUNT + "qty <> 1 AND paid AND qty <> 1"],
    [COUNT + "kind = 'web'", COUNT + "kind IN ('web')", COUNT + "'web' = kind", COUNT + "NOT kind <> 'web'"],
    [COUNT + "(paid AND qty > 1) AND kind = 'web'", COUNT + "kind = 'web' AND (qty > 1 AND paid)"],
    [COUNT + "paid", COUNT + "paid IS TRUE", COUNT + "paid = TRUE", COUNT + "paid <> FALSE", COUNT + "1 = 1 AND paid"],
    [COUNT + "NOT paid", COUNT + "paid IS FALSE", COUNT + "paid = FALSE", COUNT + "paid <> TRUE AND 'a' <> 'b'"],
    [COUNT + "paid IS NOT TRUE", COUNT + "NOT (paid IS TRUE)", COUNT + "NOT COALESCE(paid, FALSE)"],
    [JOINED + "JOIN people p ON o.uid = p.uid WHERE vip AND paid", TURNED + "ON o.uid = p.uid WHERE paid AND vip",
     JOINED + "JOIN people p ON o.uid = p.uid AND vip AND paid", TURNED + "ON vip IS TRUE AND p.uid = o.uid WHERE paid",
     "SELECT COUNT(*) FROM people p, orders o WHERE p.uid = o.uid AND paid AND vip"],
    ["SELECT SUM(amount + qty) FROM orders", "SELECT SUM(qty + amount) FROM orders"],
    ["SELECT kind, city, COUNT(*) FROM orders GROUP BY kind, city", "SELECT COUNT(*) FROM orders GROUP BY city, kind",
     "SELECT city, kind, COUNT(*) FROM orders GROUP BY 1, 2", "SELECT kind, city, COUNT(*) FROM orders GROUP BY ALL",
     "SELECT kind AS k, city, COUNT(*) FROM orders GROUP BY k, city, kind HAVING COUNT(*) > 2 ORDER BY 3"],
    ["SELECT SUM(qty), COUNT(*) FROM orders", "SELECT COUNT(*), SUM(qty) FROM orders",
     "SELECT 1.0 * SUM(qty) / COUNT(*) AS mean FROM orders"],
    ["SELECT SUM(qty) FILTER (WHERE paid) FROM orders", "SELECT SUM(CASE WHEN paid THEN qty END) FROM orders"],
]  # fmt: skip

# Each of these is a question of its own: no two may share a stored answer.
DIFFERENT = """\
SELECT COUNT(*) FROM orders
SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM items
SELECT COUNT(amount) FROM orders
SELECT COUNT(qty) FROM orders
SELECT COUNT(DISTINCT uid) FROM orders
SELECT SUM(qty) FROM orders
SELECT AVG(qty) FROM orders
SELECT SUM(amount) FROM orders
SELECT SUM(-amount) FROM orders
SELECT SUM(amount + 1) FROM orders
SELECT SUM(amount + 1.0) FROM orders
SELECT SUM(amount - 1) FROM orders
SELECT SUM(1 - amount) FROM orders
SELECT SUM(amount * 2) FROM orders
SELECT SUM((amount + qty) + 1) FROM orders
SELECT SUM(amount + (qty + 1)) FROM orders
SELECT SUM(CLIP(amount, 0, 1)) FROM orders
SELECT SUM(CLIP(amount, 0, 2)) FROM orders
SELECT SUM(CLIP(amount, -1, 1)) FROM orders
SELECT SUM(CAST(amount AS INTEGER)) FROM orders
SELECT SUM(CAST(amount AS BIGINT)) FROM orders
SELECT SUM(ROUND(amount)) FROM orders
SELECT SUM(FLOOR(amount)) FROM orders
SELECT SUM(amount) FILTER (WHERE paid) FROM orders
SELECT SUM(amount) FILTER (WHERE NOT paid) FROM orders
SELECT SUM(CASE WHEN paid THEN amount ELSE 0 END) FROM orders
SELECT COUNT(*) FROM orders WHERE qty > 3
SELECT COUNT(*) FROM orders WHERE qty > 4
SELECT COUNT(*) FROM orders WHERE qty < 3
SELECT COUNT(*) FROM orders WHERE qty <= 3
SELECT COUNT(*) FROM orders WHERE qty = 3
SELECT COUNT(*) FROM orders WHERE qty <> 3
SELECT COUNT(*) FROM orders WHERE amount > 3
SELECT COUNT(*) FROM orders WHERE amount >= 3
SELECT COUNT(*) FROM orders WHERE amount > 3.5
SELECT COUNT(*) FROM orders WHERE qty IS NULL
SELECT COUNT(*) FROM orders WHERE qty IS NOT NULL
SELECT COUNT(*) FROM orders WHERE paid
SELECT COUNT(*) FROM orders WHERE NOT paid
SELECT COUNT(*) FROM orders WHERE paid IS NOT TRUE
SELECT COUNT(*) FROM orders WHERE paid IS NOT FALSE
SELECT COUNT(*) FROM orders WHERE paid IS NOT NULL
SELECT COUNT(*) FROM orders WHERE 1 = 0
SELECT COUNT(*) FROM orders WHERE NOT (paid AND qty IS NULL)
SELECT COUNT(*) FROM orders WHERE NOT ((paid IS TRUE) AND qty IS NULL)
SELECT COUNT(*) FILTER (WHERE paid) FROM orders
SELECT SUM(CASE WHEN paid THEN 1 ELSE 0 END) FROM orders
SELECT SUM(CASE WHEN paid THEN 1 END) FROM orders
SELECT COUNT(CASE WHEN paid THEN qty END) FROM orders
SELECT COUNT(CASE WHEN paid THEN 1 ELSE 0 END) FROM orders
SELECT SUM(1) FROM orders
SELECT COUNT(*) FROM orders WHERE paid AND qty > 3
SELECT COUNT(*) FROM orders WHERE paid OR qty > 3
SELECT COUNT(*) FROM orders WHERE paid AND qty > 3 AND amount > 3
SELECT COUNT(*) FROM orders WHERE paid AND (qty > 3 OR amount > 3)
SELECT COUNT(*) FROM orders WHERE (paid AND qty > 3) OR amount > 3
SELECT COUNT(*) FROM orders WHERE kind = 'web'
SELECT COUNT(*) FROM orders WHERE kind = 'shop'
SELECT COUNT(*) FROM orders WHERE kind <> 'web'
SELECT COUNT(*) FROM orders WHERE city = 'web'
SELECT COUNT(*) FROM orders WHERE city = 'WEB'
SELECT COUNT(*) FROM orders WHERE city = 'web '
SELECT COUNT(*) FROM orders WHERE city = ''
SELECT COUNT(*) FROM orders WHERE city = 'a'') (b'
SELECT COUNT(*) FROM orders WHERE city = 'a' AND note = 'b'
SELECT COUNT(*) FROM orders WHERE city = 'b' AND note = 'a'
SELECT COUNT(*) FROM orders WHERE city = 'a'' AND note = ''b'
SELECT COUNT(*) FROM orders WHERE city IN ('a', 'b')
SELECT COUNT(*) FROM orders WHERE city IN ('a', 'b', 'c')
SELECT COUNT(*) FROM orders WHERE city IN ('a, b')
SELECT COUNT(*) FROM orders WHERE city NOT IN ('a', 'b')
SELECT COUNT(*) FROM orders WHERE city LIKE 'a%'
SELECT COUNT(*) FROM orders WHERE city ILIKE 'a%'
SELECT COUNT(*) FROM orders WHERE city LIKE 'a_'
SELECT COUNT(*) FROM orders WHERE LOWER(city) = 'a'
SELECT COUNT(*) FROM orders WHERE UPPER(city) = 'a'
SELECT COUNT(*) FROM orders WHERE city = note
SELECT COUNT(*) FROM orders WHERE city < note
SELECT COUNT(*) FROM orders WHERE note < city
SELECT COUNT(*) FROM orders WHERE qty IN (1, 2)
SELECT COUNT(*) FROM orders WHERE qty IN (1, 2, NULL)
SELECT COUNT(*) FROM orders WHERE CAST(qty AS TEXT) = '1'
SELECT COUNT(*) FROM orders WHERE qty = 1
SELECT COUNT(*) FROM orders WHERE made < '2022-01-01'
SELECT COUNT(*) FROM orders WHERE made < '2022-01-02'
SELECT COUNT(*) FROM orders WHERE EXTRACT(year FROM made) = 2022
SELECT COUNT(*) FROM orders WHERE EXTRACT(month FROM made) = 2022
SELECT kind, COUNT(*) FROM orders GROUP BY kind
SELECT city, COUNT(*) FROM orders GROUP BY city
SELECT kind, city, COUNT(*) FROM orders GROUP BY kind, city
SELECT kind, COUNT(*) FROM orders WHERE qty > 3 GROUP BY kind
SELECT kind, COUNT(amount) FROM orders GROUP BY kind
SELECT UPPER(kind), COUNT(*) FROM orders GROUP BY 1
SELECT DISTINCT city FROM orders
SELECT COUNT(*) FROM orders o JOIN people p ON o.uid = p.uid
SELECT COUNT(*) FROM orders o LEFT JOIN people p ON o.uid = p.uid
SELECT COUNT(*) FROM people p LEFT JOIN orders o ON o.uid = p.uid
SELECT COUNT(*) FROM people p LEFT JOIN orders o ON o.uid = p.uid AND o.qty > 3
SELECT COUNT(*) FROM people p LEFT JOIN orders o ON o.uid = p.uid WHERE o.qty > 3
SELECT COUNT(*) FROM people p LEFT JOIN orders o ON o.uid = p.uid AND p.vip
SELECT COUNT(*) FROM people p LEFT JOIN orders o ON o.uid = p.uid WHERE p.vip
SELECT COUNT(*) FROM people p JOIN orders o ON o.uid = p.uid AND p.vip
SELECT COUNT(*) FROM people p JOIN orders o ON o.uid = p.uid AND o.qty = p.age
SELECT COUNT(*) FROM orders a JOIN orders b ON a.uid = b.uid WHERE a.qty > 3 AND b.qty > 4
SELECT COUNT(*) FROM orders a JOIN orders b ON a.uid = b.uid WHERE a.qty > 3 AND a.amount > b.qty
SELECT COUNT(*) FROM orders a JOIN orders b ON a.uid = b.uid WHERE a.qty > b.qty
SELECT COUNT(*) FROM items i JOIN orders o ON i.oid = o.oid
SELECT SUM(o.qty) FROM (SELECT * FROM (SELECT uid, qty FROM orders) x WHERE qty > 3) y JOIN orders o ON o.uid = y.uid
SELECT SUM(y.qty) FROM (SELECT * FROM (SELECT uid, qty FROM orders) x WHERE qty > 3) y JOIN orders o ON o.uid = y.uid
SELECT SUM(x) FROM (SELECT uid, amount AS x FROM orders WHERE qty > 5) AS t
SELECT SUM(x) FROM (SELECT uid, price AS x FROM orders WHERE qty > 5) AS t
SELECT SUM(x) FROM (SELECT uid, amount AS x, qty AS y FROM orders) AS t WHERE y > 3
SELECT SUM(x) FROM (SELECT uid, amount AS y, qty AS x FROM orders) AS t WHERE y > 3""".splitlines()


@pytest.mark.parametrize("spellings", SAME, ids=lambda spellings: spellings[0])
def test_spellings_of_one_question(session: Session, spellings: list[str]) -> None:
    found = {sql: hashes(session, sql) for sql in spellings}
    assert len(set(found.values())) == 1, found
    assert len(next(iter(found.values()))) == 1


def test_no_two_questions_are_one(session: Session) -> None:
    found: dict[str, str] = {}
    for sql in DIFFERENT:
        (plan,) = hashes(session, sql)
        assert plan not in found, f"{sql!r} is taken for {found.get(plan)!r}"
        found[plan] = sql


@pytest.mark.parametrize("sql", dict.fromkeys([*(sql for spellings in SAME for sql in spellings), *DIFFERENT]))
def test_the_stored_answer_is_that_of_the_statement(shop: Shop, sql: str) -> None:
    """Whatever spelling was paid for, each has the answer that the engine gives to its own text."""
    session, reference = shop
    theirs = sorted(map(numbers, reference.execute(sql.replace("public.", "")).fetchall()), key=repr)
    ours = sorted(map(numbers, session.execute(sql).rows), key=repr)
    assert ours == [tuple(pytest.approx(v) if isinstance(v, float) else v for v in row) for row in theirs]


def numbers(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(float(value) if isinstance(value, Decimal) else value for value in row)


def test_near_misses_are_paid_apart(session: Session) -> None:
    """Through a whole session: the second question is charged, and the first one again is not."""
    for first, second in list(combinations(DIFFERENT[26:36], 2))[:12]:
        session.execute(first)
        assert session.execute(first).loss.rho == 0
        session.execute(second)
        assert session.execute(second).loss.rho == 0
    (charged,) = {session.execute(f"SELECT COUNT(*) FROM orders WHERE qty > {n}").loss.rho > 0 for n in (11, 12, 13)}
    assert charged


def test_caps_and_noise_are_part_of_the_question(session: Session) -> None:
    sql = "SELECT kind, COUNT(*) FROM orders GROUP BY kind"
    privacy, settings = session.dataset.schema.privacy, session.settings
    found = {hashes(session, sql)}
    for name, value in (("contributions.rows", "7"), ("contributions.groups", "3"), ("noise", "laplace")):
        changed = change_setting(settings, privacy, name, value).statement
        (step,) = compile_query(sql, session.dataset.resolved, changed).steps
        found.add((step.plan_hash,))
    assert len(found) == 4
    # A smaller epsilon is another price for the same question.
    cheaper = change_setting(settings, privacy, "epsilon", "1").statement
    (step,) = compile_query(sql, session.dataset.resolved, cheaper).steps
    assert (step.plan_hash,) in found
