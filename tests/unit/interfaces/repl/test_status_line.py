"""The line beneath the prompt: what is left, and what comes next."""

from __future__ import annotations

import re
import threading

import pytest

import dpsql
from dpsql.interfaces.repl.status_line import StatusLine, format_statement_cost

COUNT = "SELECT COUNT(*) AS n FROM patients"


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_error_that_is_reported_before_is_the_one_that_comes(connection: dpsql.Connection, noise: str) -> None:
    connection.sql(f"SET noise = {noise}")
    told = format_statement_cost(connection.explain(COUNT))
    bar = connection.sql(COUNT).errors[0][0]
    assert bar is not None
    (half,) = re.findall(r"n ± ([\d.]+)", told)
    assert float(half) == pytest.approx((bar.high - bar.low) / 2, rel=0.01)


def test_what_is_paid_for_is_free(connection: dpsql.Connection) -> None:
    connection.sql(COUNT)
    assert format_statement_cost(connection.explain(COUNT)).startswith("next: free, paid for before, n ± ")
    assert format_statement_cost(connection.explain("SELECT 1")) == "next: free, it reads no private rows"


def test_what_would_be_refused_is_reported(connection: dpsql.Connection) -> None:
    connection.sql("SET epsilon = 1000")
    assert format_statement_cost(connection.explain(COUNT)) == "next: would be refused, your budget does not cover it"


def test_what_is_typed_is_priced_and_a_charge_lessens_what_is_left(connection: dpsql.Connection) -> None:
    news = threading.Semaphore(0)
    beneath = StatusLine(lambda: connection, None, news.release)
    beneath.start()
    try:
        assert news.acquire(timeout=30) and beneath.render().startswith("left of ana's budget: 100 %")
        beneath.update_text(COUNT)
        assert news.acquire(timeout=30) and "next: epsilon 1, n ± " in beneath.render()
        assert beneath.render(40).startswith("100 % left · next: ") and len(beneath.render(30)) <= 30
        assert beneath.render(5) == ""
        beneath.update_text(f"SELECT 1; {COUNT}; {COUNT};")
        assert news.acquire(timeout=30) and "next: 3 statements, epsilon 2 in all" in beneath.render()
        beneath.update_text("SELECT nonsense FROM")
        assert news.acquire(timeout=30) and "next" not in beneath.render()
        connection.sql(COUNT)
        beneath.refresh_balance()
        assert news.acquire(timeout=30) and "100 %" not in beneath.render()
    finally:
        beneath.close()


def test_fractions_that_are_cut_off_are_reported_while_typing(connection: dpsql.Connection) -> None:
    news = threading.Semaphore(0)
    beneath = StatusLine(lambda: connection, None, news.release)
    beneath.start()
    try:
        assert news.acquire(timeout=30)
        beneath.update_text("SELECT SUM(birth_year) / COUNT(*) AS mean FROM patients")
        assert news.acquire(timeout=30)
        assert "warning: SUM(birth_year) / COUNT(*) is a quotient of whole numbers" in beneath.render()
        beneath.update_text("SELECT COUNT(*) FILTER (WHERE insured) / COUNT(*) FROM patients")
        assert news.acquire(timeout=30)
        assert "next: would be refused, a quotient of whole numbers that can only be 0 or 1" in beneath.render()
    finally:
        beneath.close()
