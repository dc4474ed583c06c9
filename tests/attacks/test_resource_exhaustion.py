"""Attacks that told nothing of the rows, but did harm."""

from __future__ import annotations

import time
from contextlib import suppress
from decimal import Decimal

import pytest

from dpsql.errors import Error
from tests.support.neighboring_databases import Neighbors, assert_answered, assert_refused

pytestmark = pytest.mark.slow

MOST_SECONDS = 1.0


@pytest.mark.parametrize("measure", ["SUM(CLIP(w, 1e308, 1.0000001e308))", "VAR_POP(CLIP(w, -1e308, 1e308))"])
def test_a_release_that_no_double_holds_is_refused(both: Neighbors, measure: str) -> None:
    """It was charged and stored, but Python's OverflowError was all that the analyst got, however often she asked."""
    assert_refused(both, f"SELECT {measure} FROM visits")


def test_squares_of_bounds_that_no_double_holds_are_refused(both: Neighbors) -> None:
    own = "SELECT pid, STDDEV(CLIP(w, -1e308, 1e308)) AS s FROM visits GROUP BY pid"
    assert_refused(both, f"SELECT SUM(CLIP(s, 0, 5)) FROM ({own}) t")


def test_a_parameter_with_too_many_digits_is_refused(both: Neighbors) -> None:
    assert_refused(both, "SELECT COUNT(*) FROM visits WHERE n = ?", (10**5000,))


@pytest.mark.parametrize("digits", ["literal", "parameter", "option"])
def test_no_number_takes_the_machine(both: Neighbors, digits: str) -> None:
    """A statement may have a million characters, and a parameter any number: 10^7 digits took more than ten minutes."""
    many, began = 200_000, time.process_time()
    asked: dict[str, tuple[str, tuple[Decimal, ...]]] = {
        "literal": (f"SELECT COUNT(*) FROM visits WHERE n = {'9' * many}", ()),
        "parameter": ("SELECT COUNT(*) FROM visits WHERE n = ?", (Decimal(f"1e{many}"),)),
        "option": (f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.{'3' * many}) COUNT(*) FROM visits", ()),
    }
    with suppress(Error):
        both.without.explain(*asked[digits])
    assert time.process_time() - began < MOST_SECONDS


def test_a_sub_select_over_public_rows_may_be_a_column(both: Neighbors) -> None:
    assert_answered(both, "SELECT COUNT(*), (SELECT MAX(rank) FROM kinds) FROM visits")


@pytest.mark.parametrize("asked", ["SELECT DISTINCT n > 3", "SELECT n > 3, MAX(CLIP(n, 0, 9))"])
def test_groups_that_are_listed_do_not_read_the_runtime_parameters_of_their_rows(both: Neighbors, asked: str) -> None:
    """The engine was given values that its SQL did not ask for, and failed after the charge, always."""
    grouped = "" if "DISTINCT" in asked else " GROUP BY 1"
    released = "(SELECT kind, COUNT(*) AS c FROM visits GROUP BY kind) r"
    assert_answered(both, f"{asked} FROM visits v LEFT JOIN {released} ON r.kind = v.kind{grouped}")
