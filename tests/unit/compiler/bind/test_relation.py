"""What is said where rows name two customers, of whom they belong to one."""

from __future__ import annotations

import pytest

from dpsql.compiler.compile import compile_query
from dpsql.compiler.settings import default_settings
from dpsql.errors import NotPrivate
from tests.unit.compiler.split.test_row_queries_suggestions import CORPUS, resolved

DATA = resolved(CORPUS / "retail.yaml")
SETTINGS = default_settings(DATA.schema.privacy).statement
IS_ANOTHER = (
    '"{alias}.cs_ship_customer_sk" is not the privacy unit: a row of "{alias}" belongs to that of '
    '"cs_bill_customer_sk", whomever else it names. '
)


@pytest.mark.parametrize(
    ("sql", "alias", "advice"),
    [
        ("FROM catalog_sales JOIN customer ON cs_ship_customer_sk = c_customer_sk", "catalog_sales", "Join on the"),
        ("FROM customer c, catalog_sales s WHERE c.c_customer_sk = s.cs_ship_customer_sk", "s", "Join on the"),
        ("FROM customer c LEFT JOIN catalog_sales s ON s.cs_ship_customer_sk = c.c_customer_sk", "s", "Join on the"),
        ("FROM customer c FULL JOIN catalog_sales s ON s.cs_ship_customer_sk = c.c_customer_sk", "s", "Join on the"),
        ("FROM catalog_sales s WHERE cs_ship_customer_sk IN (SELECT c_customer_sk FROM customer)", "s", "In the sub-"),
        (
            "FROM customer c WHERE EXISTS (SELECT 1 FROM catalog_sales s WHERE s.cs_ship_customer_sk = c_customer_sk)",
            "s", "In the sub-",
        ),
        (
            "FROM catalog_sales s JOIN customer b ON s.cs_bill_customer_sk = b.c_customer_sk "
            "JOIN customer r ON s.cs_ship_customer_sk = r.c_customer_sk",
            "s", "Join on the",
        ),
    ],
)  # fmt: skip
def test_a_second_customer_of_a_row_is_not_its_unit(sql: str, alias: str, advice: str) -> None:
    with pytest.raises(NotPrivate) as raised:
        compile_query(f"SELECT COUNT(*) {sql}", DATA, SETTINGS)
    assert raised.value.hint is not None and raised.value.hint.startswith(IS_ANOTHER.format(alias=alias) + advice)


@pytest.mark.parametrize(
    "sql",
    [
        "FROM catalog_sales s JOIN customer c ON s.cs_quantity < c.c_birth_year",
        "FROM catalog_sales s JOIN customer c ON s.cs_sold_date_sk = c.c_birth_year",
        "FROM catalog_sales a JOIN catalog_sales b ON a.cs_ship_customer_sk = b.cs_ship_customer_sk",
    ],
)
def test_what_is_not_equated_to_a_unit_is_not_called_one(sql: str) -> None:
    with pytest.raises(NotPrivate) as raised:
        compile_query(f"SELECT COUNT(*) {sql}", DATA, SETTINGS)
    assert raised.value.hint is not None and "is not the privacy unit" not in raised.value.hint


def test_a_count_of_the_second_customers_says_that_they_are_no_units() -> None:
    (notice,) = [n for n in _notices("cs_ship_customer_sk") if "does not count privacy units" in n]
    assert 'belongs to that of "cs_bill_customer_sk"' in notice and notice.startswith("COUNT(DISTINCT cs_ship_")
    for other in ("cs_bill_customer_sk", "cs_item_sk", "cs_ship_addr_sk", "cs_ship_customer_sk + 1"):
        assert not any("does not count" in notice for notice in _notices(other))


def _notices(column: str) -> tuple[str, ...]:
    return compile_query(f"SELECT COUNT(DISTINCT {column}) FROM catalog_sales", DATA, SETTINGS).notices
