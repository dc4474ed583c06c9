"""Equal questions in different spelling are one release: asked a second time, they cost nothing.

Derivation is off, so that nothing but the release itself can answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.privacy.loss import NO_LOSS
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from tests.support.shop import DATA, SCHEMA, Silence

VIEWS = """
views:
  web_orders: SELECT uid, qty, amount, city FROM orders WHERE kind = 'web'
  by_kind: SELECT kind, COUNT(*) AS n FROM orders GROUP BY kind
"""
COUNT = "SELECT COUNT(*) FROM orders WHERE "
KINDS = "SELECT kind, COUNT(*), SUM(qty) FROM orders GROUP BY kind"

# What was asked first, and other spellings of it.
SPELLINGS: dict[str, tuple[str, ...]] = {
    # aliases, case, white space, comments, qualified names
    "SELECT kind, COUNT(*) AS n FROM orders GROUP BY kind": (
        "select KIND, count(*) as how_many from ORDERS group by Kind",
        "SELECT o.kind, COUNT(*) FROM orders AS o GROUP BY o.kind",
        "SELECT\n\tkind ,COUNT( * )\nFROM   orders -- all of them\nGROUP  BY 1",
        "SELECT public.orders.kind, COUNT(*) FROM public.orders GROUP BY orders.kind",
        "SELECT kind AS k, COUNT(1) FROM orders GROUP BY k",
        'SELECT "kind", COUNT(*) FROM "orders" GROUP BY ALL;',
        "SELECT COUNT(*), kind FROM orders GROUP BY kind",
        "SELECT * FROM by_kind",
        "SELECT DISTINCT kind, COUNT(*) OVER () AS groups, COUNT(*) FROM orders GROUP BY kind",
    ),
    # order of conjuncts, commuted operands, parentheses
    COUNT + "qty > 3 AND kind = 'web' AND paid": (
        COUNT + "kind = 'web' AND paid AND qty > 3",
        COUNT + "((paid) AND ('web' = kind)) AND (3 < qty)",
        COUNT + "paid AND paid AND qty > 3 AND kind = 'web' AND TRUE",
        COUNT + "NOT (qty <= 3 OR kind <> 'web') AND paid",
        "SELECT COUNT(*) FROM (SELECT * FROM orders WHERE paid AND kind = 'web') AS t WHERE qty > 3",
        "SELECT COUNT(*) FROM (SELECT qty FROM orders WHERE paid AND qty >= 4 AND kind IN ('web')) AS t",
        "WITH t AS (SELECT * FROM orders WHERE qty > 3) SELECT COUNT(*) FROM t WHERE kind = 'web' AND paid",
    ),
    "SELECT SUM(qty * price + 1) FROM orders": (
        "SELECT SUM(price * qty + 1) FROM orders",
        "SELECT SUM(1 + qty * price) FROM orders",
        "SELECT SUM(((1) + ((price) * (qty)))) FROM orders",
    ),
    # BETWEEN or two comparisons, whole numbers
    COUNT + "qty BETWEEN 2 AND 7": (
        COUNT + "qty >= 2 AND qty <= 7",
        COUNT + "7 >= qty AND 1 < qty",
        COUNT + "qty > 1 AND qty < 8",
        COUNT + "NOT (qty < 2 OR qty > 7)",
        COUNT + "NOT qty NOT BETWEEN 2 AND 7",
    ),
    COUNT + "made >= TIMESTAMP '2022-01-01' AND made < TIMESTAMP '2022-02-01'": (
        COUNT + "made < '2022-02-01' AND made >= '2022-01-01'",
        COUNT + "made >= DATE '2022-01-01' AND made < TIMESTAMP '2022-02-01 00:00:00'",
    ),
    # OR or IN
    COUNT + "city IN ('Oslo', 'Rome')": (
        COUNT + "city = 'Oslo' OR city = 'Rome'",
        COUNT + "city IN ('Rome', 'Oslo', 'Rome')",
        COUNT + "'Rome' = city OR city IN ('Oslo')",
        COUNT + "NOT (city <> 'Oslo' AND city <> 'Rome')",
        COUNT + "NOT city NOT IN ('Oslo', 'Rome')",
        COUNT + "city = ANY (ARRAY['Rome', 'Oslo'])",
    ),
    COUNT + "paid IS NOT TRUE": (COUNT + "NOT (paid IS TRUE)",),
    # conditions that say nothing, and what is compared with TRUE and FALSE
    "SELECT COUNT(*), SUM(qty) FROM orders": (
        "SELECT COUNT(*), SUM(qty) FROM orders WHERE TRUE",
        "SELECT COUNT(*), SUM(qty) FROM orders WHERE 1 = 1",
        "SELECT COUNT(*), SUM(qty) FROM orders WHERE 'a' <> 'b' AND 2 > 1 AND NOT FALSE",
        "SELECT COUNT(*), SUM(qty) FROM orders WHERE paid OR 1 IN (1, 2)",
    ),
    COUNT + "paid": (
        COUNT + "1=1 AND paid",
        COUNT + "paid = TRUE",
        COUNT + "TRUE = paid AND TRUE",
        COUNT + "paid <> FALSE",
        COUNT + "paid IS TRUE",
        COUNT + "paid IN (TRUE)",
        COUNT + "NOT (paid = FALSE)",
        COUNT + "COALESCE(paid, FALSE)",
        COUNT + "(paid IS TRUE) = TRUE",
    ),
    COUNT + "NOT paid AND qty > 3": (
        COUNT + "paid = FALSE AND qty > 3",
        COUNT + "paid IS FALSE AND qty > 3",
        COUNT + "qty > 3 AND paid <> TRUE",
    ),
    "SELECT COUNT(*) FILTER (WHERE paid) FROM orders": (
        "SELECT COUNT(*) FILTER (WHERE paid IS TRUE AND 1 = 1) FROM orders",
        "SELECT COUNT(CASE WHEN paid = TRUE THEN 1 END) FROM orders",
        "SELECT COUNT(CASE WHEN paid THEN 'yes' ELSE NULL END) FROM orders",
        "SELECT COUNT_IF(paid) FROM orders",
    ),
    "SELECT COUNT(DISTINCT uid) FILTER (WHERE paid) FROM orders": (
        "SELECT COUNT(DISTINCT uid) FILTER (WHERE paid IS TRUE) FROM orders",
    ),
    # what is above the same aggregates
    KINDS: (
        KINDS + " HAVING COUNT(*) > 10",
        KINDS + " ORDER BY 2 DESC LIMIT 1",
        "SELECT kind, 1.0 * SUM(qty) / COUNT(*) AS mean FROM orders GROUP BY kind ORDER BY mean",
        "SELECT kind, ROUND(SUM(qty), -1), COUNT(*) * 2 + 1 FROM orders GROUP BY kind",
        "SELECT UPPER(kind), SUM(qty), COUNT(*) FROM orders GROUP BY kind",
        "SELECT MAX(n) FROM (SELECT kind, COUNT(*) AS n, SUM(qty) AS s FROM orders GROUP BY kind) AS t WHERE s > 0",
        f"WITH t (k, n, s) AS ({KINDS}) SELECT a.n - b.n FROM t AS a, t AS b WHERE a.s > b.s",
        "SELECT kind, SUM(qty), RANK() OVER (ORDER BY COUNT(*)) FROM orders GROUP BY kind",
        "SELECT kind, COUNT(*), SUM(qty), DP_STDERR(SUM(qty)) FROM orders GROUP BY kind",
        "SELECT kind, COUNT(*), SUM(qty) FROM orders GROUP BY kind UNION ALL SELECT 'none', 0, 0",
        "SELECT kind, CASE WHEN COUNT(*) > 100 THEN SUM(qty) END FROM orders GROUP BY kind",
    ),
    # views and their text, joins
    "SELECT city, COUNT(*) FROM web_orders GROUP BY city": (
        "SELECT city, COUNT(*) FROM orders WHERE kind = 'web' GROUP BY city",
        "SELECT city, COUNT(*) FROM (SELECT uid, qty, amount, city FROM orders WHERE kind = 'web') AS t GROUP BY city",
        "WITH w AS (SELECT * FROM web_orders) SELECT city, COUNT(*) FROM w GROUP BY city",
    ),
    "SELECT region, COUNT(*) FROM orders JOIN people ON orders.uid = people.uid GROUP BY region": (
        "SELECT p.region, COUNT(*) FROM orders AS o INNER JOIN people AS p ON p.uid = o.uid GROUP BY p.region",
        "SELECT region, COUNT(*) FROM orders JOIN people USING (uid) GROUP BY region",
        "SELECT region, COUNT(*) FROM orders, people WHERE people.uid = orders.uid GROUP BY region",
    ),
    # the order of sources, and where their conditions stand
    "SELECT region, kind, COUNT(*) FROM orders o JOIN people p ON o.uid = p.uid WHERE p.vip AND o.qty > 3 "
    "GROUP BY region, kind": (
        "SELECT region, kind, COUNT(*) FROM people p JOIN orders o ON o.uid = p.uid WHERE p.vip AND o.qty > 3 "
        "GROUP BY region, kind",
        "SELECT kind, region, COUNT(*) FROM people JOIN orders USING (uid) WHERE qty > 3 AND vip = TRUE GROUP BY 1, 2",
        "SELECT region, kind, COUNT(*) FROM people p, orders o WHERE p.vip AND o.qty > 3 AND p.uid = o.uid "
        "GROUP BY region, kind",
        "SELECT region, kind, COUNT(*) FROM orders o JOIN people p ON o.uid = p.uid AND p.vip AND o.qty > 3 "
        "GROUP BY region, kind",
        "SELECT region, kind, COUNT(*) FROM people p JOIN orders o ON o.uid = p.uid AND p.vip WHERE o.qty > 3 "
        "GROUP BY region, kind",
    ),
    "SELECT COUNT(*) FROM orders o JOIN people p ON o.uid = p.uid WHERE o.qty < p.age": (
        "SELECT COUNT(*) FROM orders o JOIN people p ON o.uid = p.uid AND o.qty < p.age",
        "SELECT COUNT(*) FROM people p JOIN orders o ON p.age > o.qty AND o.uid = p.uid",
    ),
    # one aggregate in several words
    "SELECT COUNT(*) FROM orders WHERE kind = 'web' AND qty IS NOT NULL": (
        "SELECT COUNT(1) FROM orders WHERE qty IS NOT NULL AND kind = 'web'",
        "SELECT COUNT('x') FROM web_orders WHERE NOT (qty IS NULL)",
    ),
    "SELECT SUM(qty) FILTER (WHERE paid) FROM orders": (
        "SELECT SUM(CASE WHEN paid THEN qty END) FROM orders",
        "SELECT SUM(CASE WHEN paid THEN qty ELSE NULL END) AS s FROM orders",
    ),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = Path(tmp_path_factory.mktemp("shop"))
    (folder / "shop.yaml").write_text(SCHEMA + VIEWS, encoding="utf-8")
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute(DATA)
    dataset = open_dataset(folder / "shop.yaml")
    session = Session(dataset, sampler=Silence())
    session.set("derive", "off")
    yield session
    dataset.close()


@pytest.mark.parametrize(("first", "second"), [(one, two) for one, others in SPELLINGS.items() for two in others])
def test_another_spelling_costs_nothing(first: str, second: str, session: Session) -> None:
    session.execute(first)
    assert session.execute(second).loss == NO_LOSS


def test_keys_and_sums_keep_their_positions(session: Session) -> None:
    """An alias sorts otherwise than the column behind it: what was stored must still be read as what it is."""
    joined = "orders JOIN people USING (uid)"
    plain = session.execute(f"SELECT region, kind, SUM(qty), SUM(age) FROM {joined} GROUP BY 1, 2 ORDER BY 1, 2")
    for order in ("region kind qty age", "region kind age qty", "kind region qty age"):
        names = dict(zip(order.split(), "abxy", strict=True))
        renamed = ", ".join(f"{name} AS {alias}" for name, alias in names.items())
        asked = f"{names['region']}, {names['kind']}, SUM({names['qty']}), SUM({names['age']})"
        rows = f"(SELECT {renamed} FROM {joined}) AS t"
        again = session.execute(f"SELECT {asked} FROM {rows} GROUP BY a, b ORDER BY 1, 2")
        assert (again.loss, again.rows) == (NO_LOSS, plain.rows)


def test_there_are_enough_spellings() -> None:
    assert sum(map(len, SPELLINGS.values())) >= 40


def test_what_is_another_question_is_paid_for(session: Session) -> None:
    """The fixture's ledger sells: a question that is not a spelling of the first costs something."""
    others = (COUNT + "qty BETWEEN 2 AND 8", COUNT + "city IN ('Oslo', 'R')", "SELECT SUM(qty * price + 2) FROM orders")
    assert all(session.execute(sql).loss.rho > 0 for sql in others)
