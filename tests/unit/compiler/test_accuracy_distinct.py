"""Counts of distinct values: what is told of those that can only be noise, and of those that are wide."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.compiler.compile import Compiled, compile_query
from dpsql.compiler.settings import Settings, default_settings
from tests.unit.compiler.split.test_row_queries_suggestions import CORPUS, resolved

DATA = resolved(CORPUS / "hospital.yaml")
SETTINGS = replace(default_settings(DATA.schema.privacy).statement, epsilon=Fraction(1), delta=Fraction(1, 10**9))


def compiled(sql: str, settings: Settings = SETTINGS) -> Compiled:
    return compile_query(sql, DATA, settings)


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT COUNT(DISTINCT kind) FROM visits", 3), ("SELECT COUNT(DISTINCT urgent) FROM visits", 2),
        ("SELECT COUNT(DISTINCT nights) FROM visits", 15), ("SELECT COUNT(DISTINCT (kind, urgent)) FROM visits", 6),
        ("SELECT kind, COUNT(DISTINCT rating) FROM visits GROUP BY kind", 5),
        ("SELECT COUNT(DISTINCT nights) FROM visits WHERE nights < 3", 3),
    ],
)  # fmt: skip
def test_counts_that_can_only_be_noise_are_warned_of_before_the_charge(sql: str, values: int) -> None:
    (warning,) = compiled(sql).warnings
    assert f"is nothing but noise: it is at most {values}, and off by up to " in warning and "GROUP BY" in warning
    assert compiled(sql, replace(SETTINGS, epsilon=Fraction(10**5))).warnings == ()


def test_a_wide_error_of_values_that_are_not_known_is_warned_of() -> None:
    (warning,) = compiled("SELECT COUNT(DISTINCT diagnosis) FROM visits").warnings
    assert "one unit may bring 1,000 values" in warning and "SET contributions.rows = 1" in warning
    (warning,) = compiled("SELECT COUNT(DISTINCT diagnosis) FROM visits", replace(SETTINGS, rows=3)).warnings
    assert "one unit may bring 3 values" in warning
    assert compiled("SELECT COUNT(DISTINCT diagnosis) FROM visits", replace(SETTINGS, rows=1)).warnings == ()


@pytest.mark.parametrize(
    ("sql", "limit"),
    [
        ("SELECT COUNT(DISTINCT kind) FROM visits", 3), ("SELECT COUNT(DISTINCT (kind, urgent)) FROM visits", 6),
        ("SELECT kind, COUNT(DISTINCT urgent) FROM visits GROUP BY kind", 6),
        ("SELECT COUNT(DISTINCT diagnosis) FROM visits", 1000),
        ("SELECT ward, COUNT(DISTINCT kind) FROM visits GROUP BY ward", 1000),
    ],
)  # fmt: skip
def test_no_unit_brings_more_values_than_there_can_be(sql: str, limit: int) -> None:
    step = compiled(sql, replace(SETTINGS, epsilon=Fraction(10**5))).steps[0]
    (claim,) = [bundle.claim for bundle in step.calibrated.bundles if bundle.claim.cells == ("d1",)]
    assert claim.sensitivity.l1 == limit


def test_counts_of_units_in_many_listed_groups_choose_in_how_many() -> None:
    automatic = replace(SETTINGS, rows=None, groups=None)
    undecided = {
        sql: compiled(f"SELECT {sql}, COUNT(DISTINCT patient_id) FROM visits GROUP BY 1", automatic).undecided
        for sql in ("kind", "EXTRACT(dow FROM day)", "day")
    }
    assert undecided == {"kind": False, "EXTRACT(dow FROM day)": False, "day": True}
