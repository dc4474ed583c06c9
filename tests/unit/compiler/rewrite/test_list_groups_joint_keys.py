"""Keys that hang together are listed, or selected, together."""

import pytest

from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.plan.aggregate import ListedHole, ListedRows
from dpsql.compiler.rewrite.list_groups import GroupPlan, list_groups
from dpsql.compiler.rewrite.make_total import make_total
from dpsql.compiler.rewrite.release_plan import RuleContext
from dpsql.compiler.rewrite.scan_tables import join_by_unit, scan_tables
from dpsql.compiler.split.split import split_query
from dpsql.schema.model import Resolved


def groups(sql: str, resolved: Resolved) -> GroupPlan:
    release = split_query(parse_query(sql), resolved.schema).releases[-1]
    return list_groups(make_total(join_by_unit(scan_tables(release.aggregate, RuleContext(resolved)))))


def rows(found: GroupPlan) -> ListedRows:
    assert found.listed is not None
    (factor,) = found.listed.factors
    assert isinstance(factor, ListedRows)
    return factor


def test_two_keys_of_one_column_have_the_pairs_that_it_gives(clinic: Resolved) -> None:
    low, high = "CASE WHEN score > 1 THEN 'b' ELSE 'a' END", "CASE WHEN score > 3 THEN 'd' ELSE 'c' END"
    found = groups(f"SELECT {low}, {high}, COUNT(*) FROM visits WHERE score BETWEEN 1 AND 5 GROUP BY 1, 2", clinic)
    assert set(rows(found).rows) == {("a", "c"), ("b", "c"), ("b", "d")}


def test_keys_of_two_columns_are_crossed(clinic: Resolved) -> None:
    found = groups("SELECT kind, score % 2, COUNT(*) FROM visits WHERE score BETWEEN 1 AND 5 GROUP BY 1, 2", clinic)
    assert rows(found).count == 4


def test_what_a_selected_key_decides_is_selected_with_it(clinic: Resolved) -> None:
    found = groups("SELECT UPPER(ward), LENGTH(ward), kind, COUNT(*) FROM visits GROUP BY 1, 2, 3", clinic)
    assert len(found.selected) == 2 and rows(found).count == 2


@pytest.mark.parametrize("on", ["v.ward = w.ward", "v.ward = w.ward OR (v.ward IS NULL AND w.ward IS NULL)"])
def test_what_an_outer_join_looks_up_by_a_selected_key_is_selected_with_it(clinic: Resolved, on: str) -> None:
    found = groups(f'SELECT v.ward, w.floor, COUNT(*) FROM visits v LEFT JOIN "Wards" w ON {on} GROUP BY 1, 2', clinic)
    assert found.listed is None and len(found.selected) == 2


def test_released_values_restrict_the_list_when_they_are_bound(clinic: Resolved) -> None:
    top = "SELECT kind FROM visits GROUP BY kind ORDER BY COUNT(*) DESC LIMIT 1"
    found = rows(groups(f"SELECT kind, COUNT(*) FROM visits WHERE kind IN ({top}) GROUP BY kind", clinic))
    assert found.count == 2 and found.where is not None


def test_rows_of_a_runtime_parameter_are_the_list_whatever_the_schema_declares(clinic: Resolved) -> None:
    asked = "(VALUES ('urgent'), ('never')) AS t(k)"
    found = groups(f"SELECT t.k, COUNT(v.kind) FROM {asked} LEFT JOIN visits v ON v.kind = t.k GROUP BY 1", clinic)
    assert found.listed is not None
    (factor,) = found.listed.factors
    assert isinstance(factor, ListedHole) and factor.count == 2
