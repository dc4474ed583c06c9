"""The bounds of what an earlier release gives to a later one: those of the expression that fills the hole."""

from fractions import Fraction

import pytest

from dpsql.compiler.compile import compile_query
from dpsql.compiler.settings import default_settings
from dpsql.schema.model import Resolved


@pytest.mark.parametrize(
    ("item", "bounds"),
    [
        ("AVG(cost)", (0, 5000)), ("MEDIAN(cost)", (0, 5000)), ("MAX(cost)", (0, 5000)), ("AVG(-cost)", (-5000, 0)),
        ("AVG(CLIP(cost, 1, 9))", (1, 9)), ("AVG(cost) * 2 - 1", (-1, 9999)), ("-(AVG(cost) / 2)", (-2500, 0)),
        ("ROUND(AVG(cost / 1000.5), 1)", (0, 5)), ("COALESCE(AVG(cost), -1)", (-1, 5000)),
        ("AVG(cost) / AVG(cost)", None), ("COUNT(*)", None), ("SUM(cost)", None), ("AVG(cost) + COUNT(*)", None),
        ("EXP(AVG(cost))", None),
    ],
)  # fmt: skip
def test_bounds_of_a_hole(item: str, bounds: tuple[int, int] | None, clinic: Resolved) -> None:
    inner = f"SELECT CAST({item} AS DOUBLE PRECISION) FROM visits WHERE cost >= 0"
    sql = f"SELECT COUNT(*) FROM visits WHERE cost > ({inner})"
    *_, last = compile_query(sql, clinic, default_settings(clinic.schema.privacy).statement).steps
    (hole,) = last.holes
    found = hole.domains[0].bounds if hole.domains[0].is_bounded else None
    assert found == (None if bounds is None else tuple(map(Fraction, bounds)))


def test_a_condition_narrows_and_a_sub_select_passes_on(clinic: Resolved) -> None:
    inner = "SELECT ward, AVG(cost) AS m FROM visits WHERE cost BETWEEN 10 AND 20 GROUP BY ward"
    sql = f"SELECT COUNT(*) FROM visits WHERE cost > (SELECT MAX(m) FROM ({inner}) AS t)"
    *_, last = compile_query(sql, clinic, default_settings(clinic.schema.privacy).statement).steps
    assert last.holes[0].domains[0].bounds == (10, 20)
