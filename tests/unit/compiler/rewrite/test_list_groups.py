"""Public groups: how many may be listed, and what is selected instead."""

import datetime as dt

import pytest

from dpsql.compiler.analysis.key_values import MAX_LISTED_KEYS
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.plan.aggregate import Aggregate, ListedRows
from dpsql.compiler.rewrite.list_groups import MAX_CROSSED_KEYS, GroupPlan, list_groups
from dpsql.compiler.rewrite.make_total import make_total
from dpsql.compiler.rewrite.release_plan import RuleContext
from dpsql.compiler.rewrite.scan_tables import join_by_unit, scan_tables
from dpsql.compiler.split.split import split_query
from dpsql.schema.model import Resolved


def groups(sql: str, resolved: Resolved) -> GroupPlan:
    (release,) = split_query(parse_query(sql), resolved.schema).releases
    aggregate: Aggregate = make_total(join_by_unit(scan_tables(release.aggregate, RuleContext(resolved))))
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
    rows = listed(by_score(f"score BETWEEN 1 AND {MAX_LISTED_KEYS}"), clinic)
    assert rows is not None and len(rows) == MAX_LISTED_KEYS
    assert listed(by_score(f"score BETWEEN 0 AND {MAX_LISTED_KEYS}"), clinic) is None


def test_several_public_keys_are_crossed_up_to_the_limit(clinic: Resolved) -> None:
    rows = listed(by_score(f"score BETWEEN 1 AND {MAX_LISTED_KEYS // 2}", ", kind"), clinic)
    assert rows is not None and len(rows) == MAX_LISTED_KEYS
    over = groups(by_score(f"score BETWEEN 0 AND {MAX_LISTED_KEYS // 2}", ", kind"), clinic)
    assert over.listed is None and over.selected == ("k1", "k2")


def test_the_public_part_of_a_mixed_key_has_a_lower_limit(clinic: Resolved) -> None:
    within = groups(by_score(f"score BETWEEN 1 AND {MAX_CROSSED_KEYS}", ", ward"), clinic)
    assert within.listed is not None and within.listed.count == MAX_CROSSED_KEYS and within.selected == ("k2",)
    over = groups(by_score(f"score BETWEEN 0 AND {MAX_CROSSED_KEYS}", ", ward"), clinic)
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


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("FLOOR(EXTRACT(year FROM AGE(DATE '2100-01-01', at)) / 2) * 2", (74, 76)),
        ("FLOOR(EXTRACT(year FROM AGE(DATE '2100-01-01', at)) / 2.0) * 2", (74.0, 76.0)),
        ("EXTRACT(year FROM at)::int / 2 * 2", (2022, 2024)),
        ("CASE WHEN EXTRACT(year FROM at) < 2024 THEN 1 WHEN EXTRACT(year FROM at) < 2025 THEN 2 END", (1, 2, None)),
        ("EXTRACT(year FROM DATE_TRUNC('year', at)::date) % 100 / 24", (0, 1)),
    ],
)
def test_a_key_is_worked_out_from_a_part_with_few_values(
    key: str, expected: tuple[object, ...], clinic: Resolved
) -> None:
    rows = listed(f"SELECT {key} AS k, COUNT(*) FROM visits GROUP BY 1", clinic)
    assert rows is not None and {row[0] for row in rows} == set(expected)


def test_a_part_may_read_several_columns(clinic: Resolved) -> None:
    rows = listed("SELECT EXTRACT(year FROM AGE(at + INTERVAL '90 years', DATE_TRUNC('day', at))) / 50 AS k, COUNT(*) "
                  "FROM visits GROUP BY 1", clinic)  # fmt: skip
    assert rows == ((1,),)


def test_a_condition_that_nothing_meets_lists_nothing(clinic: Resolved) -> None:
    for condition in ("at > '2024-05-01' AND at < '2024-01-01'", "year(at) = 2031", "at = '1999-01-01'"):
        for key in ("EXTRACT(year FROM at)", "at::date", "DATE_TRUNC('month', at)::date", "year(at) / 10"):
            rows = listed(f"SELECT {key} AS k, COUNT(*) FROM visits WHERE {condition} GROUP BY 1", clinic)
            assert rows == (), (condition, key)


MIDNIGHT = 1704067200  # 2024-01-01
TWO_DAYS = "at >= '2024-01-01' AND at < '2024-01-03'"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("floor(extract(epoch FROM at) / 3600) * 3600", [MIDNIGHT + 3600.0 * n for n in range(48)]),
        ("floor(extract(epoch FROM at) / 3600)::bigint * 3600", [MIDNIGHT + 3600 * n for n in range(48)]),
        # A cast rounds, so half a second before midnight is midnight.
        ("extract(epoch FROM at)::bigint / 3600 * 3600", [MIDNIGHT + 3600 * n for n in range(49)]),
        ("to_timestamp(floor(extract(epoch FROM at) / 43200) * 43200)",
         [dt.datetime(2024, 1, 1 + n // 2, n % 2 * 12, tzinfo=dt.UTC) for n in range(4)]),
    ],
)  # fmt: skip
def test_seconds_are_listed_by_buckets(key: str, expected: list[object], clinic: Resolved) -> None:
    rows = listed(f"SELECT {key} AS k, COUNT(*) FROM visits WHERE {TWO_DAYS} GROUP BY 1", clinic)
    assert rows is not None and [row[0] for row in rows] == expected
    assert [type(row[0]) for row in rows] == [type(value) for value in expected]


def test_buckets_of_seconds_past_the_limit_are_selected(clinic: Resolved) -> None:
    for key in ("floor(extract(epoch FROM at) / 60) * 60", "floor(extract(epoch FROM at))"):
        assert listed(f"SELECT {key} AS k, COUNT(*) FROM visits GROUP BY 1", clinic) is None
