"""The bounds of what an earlier release gives to a later one: those of the expression that fills the hole."""

from fractions import Fraction
from typing import Any

import pytest

from dpsql.compiler.analysis.public_rows import max_row_multiplication
from dpsql.compiler.compile import compile_query
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.settings import default_settings
from dpsql.compiler.split import split
from dpsql.compiler.split.blocks import SplitState
from dpsql.compiler.split.split import split_query
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
def test_bounds_of_a_runtime_parameter(item: str, bounds: tuple[int, int] | None, clinic: Resolved) -> None:
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


@pytest.mark.parametrize(
    ("inner", "on", "keys", "matches"),
    [
        ("SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward", "x.ward = v.ward", 1, 1),
        ("SELECT AVG(cost) AS m, ward FROM visits GROUP BY 2", "v.ward = x.ward", 1, 1),
        ("SELECT ward, kind, COUNT(*) AS m FROM visits GROUP BY ward, kind", "x.ward = v.ward", 2, 1000),
        ("SELECT ward, COUNT(*) AS m FROM visits GROUP BY ward, kind", "x.ward = v.ward", 0, 1000),
        ("SELECT UPPER(ward) AS ward, COUNT(*) AS m FROM visits GROUP BY visits.ward", "x.ward = v.ward", 0, 1000),
        ("SELECT ward, COUNT(*) AS m FROM visits GROUP BY ROLLUP (ward)", "x.ward = v.ward", 0, 1000),
        ("SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward", "v.cost > x.m", 1, 1000),
        ("SELECT ward, UNNEST([1, 2]) AS m FROM visits GROUP BY ward", "x.ward = v.ward", 0, 1000),
        ("SELECT ward, 1 + generate_series(1, 2) AS m FROM visits GROUP BY ward", "x.ward = v.ward", 0, 1000),
        (
            "SELECT ward, CAST(regexp_split_to_table(ward, 'a') AS TEXT) m FROM visits GROUP BY 1",
            "x.ward = v.ward",
            0,
            1000,
        ),
    ],
)
def test_a_grouped_sub_select_is_known_by_its_keys(
    inner: str, on: str, keys: int, matches: int, clinic: Resolved
) -> None:
    sql = f"SELECT COUNT(*) FROM visits v JOIN ({inner}) AS x ON {on} WHERE x.m IS NOT NULL"
    release = split_query(parse_query(sql), clinic.schema).releases[-1]
    (hole,) = release.holes
    assert len(hole.unique) == keys and hole.most == 1000
    assert max_row_multiplication(release.aggregate.input) == matches


@pytest.mark.parametrize(
    ("condition", "most"),
    [
        ("(SELECT AVG(x.cost) FROM visits x WHERE x.ward = v.ward)", 100_000),
        ("(SELECT 1.2 * AVG(w.floor) FROM wards w WHERE w.ward = v.ward)", 100_000),
        ("(SELECT COUNT(*) FROM wards w WHERE w.floor = v.nights)", 100_000),
        ("(SELECT AVG(w.floor) FROM wards w WHERE w.floor = v.cost)", 1000),
        ("(SELECT AVG(cost) FROM visits)", 1),
    ],
)
def test_a_value_that_a_key_finds_may_be_one_of_many(condition: str, most: int, clinic: Resolved) -> None:
    sql = f"SELECT COUNT(*) FROM visits v WHERE v.cost > {condition}"
    release = split_query(parse_query(sql), clinic.schema).releases[-1]
    (hole,) = release.holes
    assert hole.most == most
    assert max_row_multiplication(release.aggregate.input) == (1 if most > 1000 else most)


def test_nodes_that_names_are_looked_up_by_stay_alive(clinic: Resolved, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node is known by its id; that of one that is dropped would be another's, with the names of another block."""
    states: list[SplitState] = []

    def remember(*args: Any, **options: Any) -> SplitState:
        states.append(SplitState(*args, **options))
        return states[-1]

    monkeypatch.setattr(split, "SplitState", remember)
    top = "WITH top AS (SELECT ward FROM visits GROUP BY ward ORDER BY COUNT(*) DESC LIMIT 3)"
    key = "CASE WHEN ward IN (SELECT ward FROM top) THEN ward ELSE 'other' END"
    split.split_query(parse_query(f"{top} SELECT {key} AS label, COUNT(*) AS n FROM visits GROUP BY 1"), clinic.schema)
    (state,) = states
    alive = {id(node) for node in state.kept}
    assert state.environments.keys() <= alive and state.scopes.keys() <= alive and len(alive) > 2
