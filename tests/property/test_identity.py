"""With bounds and norms that do not bite, and no noise, the answer is DuckDB's answer to the original statement.

Points of time without rows are there with zeros, and a SUM over nothing is 0, not NULL: such rows and cells aside, the
answers are equal, cell by cell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random

import duckdb
import pytest

from dpsql.session.session import Session
from tests.support.shop import open_shop
from tests.support.shop_statements import OTHERWISE, SAME

pytestmark = pytest.mark.usefixtures("silent_groups")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, duckdb.DuckDBPyConnection]]:
    session, reference = open_shop(Path(tmp_path_factory.mktemp("shop")))
    yield session, reference
    session.dataset.close()
    reference.close()


def statements() -> list[tuple[str, str]]:
    return [(line, line) for line in SAME] + OTHERWISE


@pytest.mark.parametrize(("sql", "theirs"), statements(), ids=lambda sql: None)
def test_the_answer_is_the_engines(sql: str, theirs: str, shop: tuple[Session, duckdb.DuckDBPyConnection]) -> None:
    compare(sql, theirs, *shop)


def test_generated_statements(shop: tuple[Session, duckdb.DuckDBPyConnection]) -> None:
    rng = Random(7)
    for _ in range(60):
        sql = generated(rng)
        compare(sql, sql, *shop)


def test_a_wrong_answer_is_seen(shop: tuple[Session, duckdb.DuckDBPyConnection]) -> None:
    """The comparison itself can fail."""
    session, reference = shop
    with pytest.raises(AssertionError):
        compare("SELECT COUNT(*) FROM orders", "SELECT COUNT(*) + 1 FROM orders", session, reference)
    with pytest.raises(AssertionError):
        compare("SELECT AVG(amount) FROM orders", "SELECT AVG(amount) + 0.01 FROM orders", session, reference)


def test_what_is_not_a_number_is_missing(tmp_path: Path) -> None:
    """NaN and infinities are NULL: not a bound, not zero, and no value that COUNT(x) counts."""
    change = """
        UPDATE orders SET amount = CASE oid % 3 WHEN 0 THEN 'nan' WHEN 1 THEN 'inf' ELSE '-inf' END::DOUBLE
        WHERE oid % 2 = 0;
    """
    session, reference = open_shop(tmp_path, change)
    reference.execute("UPDATE orders SET amount = NULL WHERE NOT isfinite(amount)")
    for sql in ("SELECT COUNT(*), COUNT(amount), SUM(amount), AVG(amount) FROM orders",
                "SELECT kind, COUNT(amount), AVG(amount + 1) FROM orders WHERE amount > -200 GROUP BY kind",
                "SELECT SUM(amount) FROM orders", "SELECT COUNT(*) FROM orders WHERE amount IS NULL"):  # fmt: skip
        compare(sql, sql, session, reference)
    session.dataset.close()


# --- comparing -------------------------------------------------------------------------------------------------------


def compare(sql: str, theirs: str, session: Session, reference: duckdb.DuckDBPyConnection) -> None:
    ours = session.execute(sql).rows
    expected = reference.execute(theirs).fetchall()
    if "ORDER BY" not in sql.upper().rpartition(")")[2]:
        ours, expected = sorted(ours, key=repr), sorted(expected, key=repr)
    if len(ours) > len(expected):
        ours = [row for row in ours if any(row[keys_of(sql) :])]  # without points of time that are empty
    assert len(ours) == len(expected), (sql, ours, expected)
    for our_row, row in zip(ours, expected, strict=True):
        assert len(our_row) == len(row)
        assert all(same(a, b) for a, b in zip(our_row, row, strict=True)), (sql, our_row, row)


def keys_of(sql: str) -> int:
    """How many keys lead the select list of the last block."""
    written = re.split(r"\b(?:HAVING|ORDER BY|QUALIFY|LIMIT)\b", sql.rpartition("GROUP BY ")[2])[0]
    return re.sub(r"\([^()]*\)", "", written).count(",") + 1


def same(ours: object, theirs: object) -> bool:
    if theirs is None:
        return ours is None or ours == 0
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(theirs, float | Decimal) or isinstance(ours, float):
        if not isinstance(ours, int | float | Decimal):
            return False
        return math.isclose(float(ours), float(theirs), rel_tol=1e-6, abs_tol=1e-6)
    return type(ours) is type(theirs) and ours == theirs


# --- generating ------------------------------------------------------------------------------------------------------

NUMBERS = ("amount", "qty", "price", "amount + qty", "qty * qty", "ABS(amount)", "COALESCE(qty, 1)",
           "CASE WHEN paid THEN amount ELSE qty END", "GREATEST(qty, 2)", "CLIP(amount, -50, 50)")  # fmt: skip
CONDITIONS = ("amount > 20", "qty <= 7", "paid", "NOT paid", "kind = 'web'", "city <> 'Oslo'", "note IS NULL",
              "price BETWEEN 10 AND 300", "qty IN (1, 2, 3)", "LENGTH(city) > 4", "EXTRACT(month FROM made) < 7",
              "made < '2022-06-01'", "note LIKE '%i%'", "amount IS NOT NULL")  # fmt: skip
KEYS = ("kind", "city", "qty > 3", "EXTRACT(year FROM made)", "COALESCE(paid, FALSE)", "LENGTH(city)",
        "CASE WHEN price < 100 THEN 1 WHEN price < 200 THEN 2 ELSE 3 END", "SUBSTRING(city, 1, 1)")  # fmt: skip


def generated(rng: Random) -> str:
    def condition(depth: int) -> str:
        if depth and rng.random() < 0.5:
            return f"({condition(depth - 1)} {rng.choice(('AND', 'OR'))} {condition(depth - 1)})"
        return rng.choice(("", "", "NOT ")) + f"({rng.choice(CONDITIONS)})"

    def aggregate() -> str:
        inner = rng.choice(("COUNT(*)", f"COUNT({rng.choice(NUMBERS)})", f"SUM({rng.choice(NUMBERS)})",
                            f"AVG({rng.choice(NUMBERS)})", "COUNT(DISTINCT uid)"))  # fmt: skip
        plain = "DISTINCT" in inner or rng.random() < 0.7
        return inner if plain else f"{inner} FILTER (WHERE {condition(1)})"

    keys = rng.sample(KEYS, rng.choice((0, 1, 1, 2)))
    # A filter that keeps most rows, so that no unknown key falls below its threshold.
    where = f" WHERE {rng.choice(CONDITIONS)} OR TRUE" if "city" in " ".join(keys) else f" WHERE {condition(2)}"
    if any("qty" in key for key in keys):
        where += " AND qty IS NOT NULL" if "OR TRUE" not in where else ""
        where = " WHERE qty IS NOT NULL" if "OR TRUE" in where else where
    items = ", ".join(keys + [aggregate() for _ in range(rng.randint(1, 3))])
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {items} FROM orders{where}{group}"


@pytest.mark.parametrize("what", ["amount", "qty", "city", "paid"])
@pytest.mark.parametrize(("asked", "empty"), [("HISTOGRAM({})", {}), ("APPROX_TOP_K({}, 2)", []), ("MODE({})", None)])
def test_where_no_value_can_be_there_is_none(tmp_path: Path, what: str, asked: str, empty: object) -> None:
    """NULL was listed as the one value left, which no map holds: an error after the charge."""
    session, _ = open_shop(tmp_path)
    assert session.execute(f"SELECT {asked.format(what)} FILTER (WHERE FALSE) FROM orders").rows == [(empty,)]
