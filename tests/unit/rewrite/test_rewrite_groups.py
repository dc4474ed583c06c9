"""Public groups: how many may be listed, and what is selected instead."""

import pytest

from dpsql.plan.nodes import Aggregate, ListedRows
from dpsql.rewrite.list_groups import MOST_CROSSED, MOST_LISTED, Groups, list_groups
from dpsql.rewrite.make_total import make_total
from dpsql.rewrite.scan_tables import join_by_unit, scan_tables
from dpsql.schema.model import Resolved
from dpsql.sql.parse import parse
from dpsql.sql.split import split


def groups(sql: str, resolved: Resolved) -> Groups:
    (release,) = split(parse(sql), resolved.schema).releases
    aggregate: Aggregate = make_total(join_by_unit(scan_tables(release.aggregate, resolved)))
    return list_groups(aggregate)


def listed(sql: str, resolved: Resolved) -> tuple[tuple[object, ...], ...] | None:
    found = groups(sql, resolved).listed
    if found is None:
        return None
    (factor,) = found.factors
    assert isinstance(factor, ListedRows)
    return factor.rows


def by_score(condition: str, extra: str = "") -> str:
    return f"SELECT score, COUNT(*) FROM visits WHERE {condition} GROUP BY score{extra}"


def test_a_range_is_listed_up_to_the_limit(clinic: Resolved) -> None:
    rows = listed(by_score(f"score BETWEEN 1 AND {MOST_LISTED}"), clinic)
    assert rows is not None and len(rows) == MOST_LISTED
    assert listed(by_score(f"score BETWEEN 0 AND {MOST_LISTED}"), clinic) is None


def test_several_public_keys_are_crossed_up_to_the_limit(clinic: Resolved) -> None:
    rows = listed(by_score(f"score BETWEEN 1 AND {MOST_LISTED // 2}", ", kind"), clinic)
    assert rows is not None and len(rows) == MOST_LISTED
    over = groups(by_score(f"score BETWEEN 0 AND {MOST_LISTED // 2}", ", kind"), clinic)
    assert over.listed is None and over.selected == ("k1", "k2")


def test_the_public_part_of_a_mixed_key_has_a_lower_limit(clinic: Resolved) -> None:
    within = groups(by_score(f"score BETWEEN 1 AND {MOST_CROSSED}", ", ward"), clinic)
    assert within.listed is not None and within.listed.count == MOST_CROSSED and within.selected == ("k2",)
    over = groups(by_score(f"score BETWEEN 0 AND {MOST_CROSSED}", ", ward"), clinic)
    assert over.listed is None and over.selected == ("k1", "k2")


def test_without_keys_nothing_is_listed_or_selected(clinic: Resolved) -> None:
    found = groups("SELECT COUNT(*) FROM visits", clinic)
    assert (found.listed, found.selected) == (None, ())


@pytest.mark.parametrize(
    ("key", "condition", "expected"),
    [
        ("sex", "TRUE", (("f",), ("m",), ("x",), (None,))),  # declared nullable
        ("sex", "sex IS NOT NULL", (("f",), ("m",), ("x",))),
        ("sex", "sex <> 'x'", (("f",), ("m",))),
        ("insured", "TRUE", ((False,), (True,))),  # not declared nullable: NULL is no group
        ("insured", "insured", ((True,),)),
        ("insured IS NULL", "TRUE", ((False,), (True,))),
        ("coalesce(sex, '-')", "TRUE", (("f",), ("m",), ("x",), ("-",))),
        ("birth_year / 100", "TRUE", ((19,), (20,))),
        ("'all'", "TRUE", (("all",),)),
    ],
)
def test_each_public_group_is_listed_once(
    key: str, condition: str, expected: tuple[tuple[object, ...], ...], clinic: Resolved
) -> None:
    assert listed(f"SELECT {key} AS key, COUNT(*) FROM patients WHERE {condition} GROUP BY key", clinic) == expected


def test_rows_of_a_null_that_is_no_group_are_dropped(clinic: Resolved) -> None:
    plain = groups("SELECT sex, COUNT(*) FROM patients GROUP BY sex", clinic).aggregate
    filtered = groups("SELECT insured, COUNT(*) FROM patients GROUP BY insured", clinic).aggregate
    assert type(plain.input).__name__ == "Scan" and type(filtered.input).__name__ == "Filter"
