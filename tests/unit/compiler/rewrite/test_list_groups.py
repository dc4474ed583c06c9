"""Public groups: how many may be listed, and what is selected instead."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from dpsql.compiler.analysis.key_values import MAX_LISTED_KEYS
from dpsql.compiler.analysis.sensitivity import Neighboring, derive_sensitivity_bounds
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.plan.aggregate import Aggregate, CountUnits, Gather, ListedHole, ListedRows, Norm
from dpsql.compiler.plan.expressions import And, Column, Compare, Literal, split_conjuncts
from dpsql.compiler.plan.measures import CountRows
from dpsql.compiler.plan.relations import (
    SET_COLUMN,
    Expand,
    Field,
    Filter,
    Join,
    JoinKind,
    Mark,
    Named,
    PublicTable,
    Rows,
    RowsHole,
    Table,
)
from dpsql.compiler.plan.walk import walk_nodes
from dpsql.compiler.render.release import render_release
from dpsql.compiler.rewrite.bound_contributions import ContributionPolicy
from dpsql.compiler.rewrite.count_matches import CountsNeeded
from dpsql.compiler.rewrite.list_groups import MAX_CROSSED_KEYS, GroupPlan, list_groups
from dpsql.compiler.rewrite.make_total import make_total
from dpsql.compiler.rewrite.pipeline import rewrite_plan
from dpsql.compiler.rewrite.release_plan import RuleContext
from dpsql.compiler.rewrite.scan_tables import join_by_unit, scan_tables
from dpsql.compiler.split.split import split_query
from dpsql.errors import LimitExceeded, UnboundedContribution
from dpsql.schema.model import Domain, PublicFacts, Resolved
from dpsql.types import BIGINT, BOOLEAN, INTEGER, TEXT


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
        ("CASE WHEN EXTRACT(year FROM at) < 2024 THEN 1 WHEN EXTRACT(year FROM at) < 2025 THEN 2 END", (1, 2)),
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


POLICY = ContributionPolicy(8, 4, Norm.L2)
RELATION = Neighboring(False, 1)


def visits() -> Table:
    columns = (("ward", Field("v_ward", TEXT)), ("kind", Field("v_kind", TEXT)), ("nights", Field("v_nights", INTEGER)))
    return Table("visits", columns, BIGINT)


def wards(prefix: str = "w") -> PublicTable:
    return PublicTable("Wards", (("ward", Field(f"{prefix}_ward", TEXT)), ("floor", Field(f"{prefix}_floor", INTEGER))))


def text(name: str) -> Column:
    return Column(name, TEXT)


def number(name: str) -> Column:
    return Column(name, INTEGER)


ON_WARD = Compare("=", text("v_ward"), text("w_ward"))


def asked(rows: Rows, *keys: Column, sets: tuple[frozenset[str], ...] = ()) -> Aggregate:
    named = tuple(Named(f"k{place}", key) for place, key in enumerate(keys, 1))
    return Aggregate(rows, named, (CountRows(),), sets)


def gathered(aggregate: Aggregate, resolved: Resolved, policy: ContributionPolicy = POLICY) -> Gather:
    return rewrite_plan(aggregate, RuleContext(resolved, policy)).gather


def join(kind: JoinKind = JoinKind.INNER) -> Join:
    return Join(visits(), wards(), kind, ON_WARD)


def with_wards(clinic: Resolved, facts: PublicFacts, unique: bool = True) -> Resolved:
    tables = tuple(
        t if t.name != "Wards" else replace(t, unique=t.unique if unique else ()) for t in clinic.schema.tables
    )
    return replace(clinic, schema=replace(clinic.schema, tables=tables), public={"Wards": facts})


def test_a_public_column_lists_its_registered_values(clinic: Resolved) -> None:
    by_floor = gathered(asked(join(), number("w_floor")), clinic)
    assert by_floor.selection is None and by_floor.listed is not None
    (factor,) = by_floor.listed.factors
    assert isinstance(factor, ListedRows) and factor.rows == ((1,), (2,), (None,))


def test_a_private_key_equated_to_a_public_column_lists_that(clinic: Resolved) -> None:
    (factor,) = gathered(asked(join(), text("v_ward")), clinic).listed.factors  # type: ignore[union-attr]
    assert isinstance(factor, ListedRows) and {row[0] for row in factor.rows} == {"cardiology", "maternity", "surgery"}


def test_an_outer_join_does_not_bind_the_key_that_it_keeps(clinic: Resolved) -> None:
    kept = gathered(asked(join(JoinKind.LEFT), text("v_ward")), clinic)
    assert kept.listed is None and kept.selection is not None
    added = gathered(asked(join(JoinKind.LEFT), text("w_ward")), clinic)
    assert added.selection is None and added.listed is not None
    (factor,) = added.listed.factors
    assert isinstance(factor, ListedRows) and (None,) in factor.rows  # visits without a ward


def test_keys_of_one_public_table_list_the_pairs_that_stand_in_it(clinic: Resolved) -> None:
    both = gathered(asked(join(), text("w_ward"), number("w_floor")), clinic)
    assert both.listed is not None
    (factor,) = both.listed.factors
    assert isinstance(factor, ListedHole) and factor.count == 3 and not factor.and_null
    outer = gathered(asked(join(JoinKind.LEFT), text("w_ward"), number("w_floor")), clinic)
    assert outer.listed is not None and outer.listed.count == 4  # and the visits that met none


def test_a_filter_on_public_columns_filters_the_list(clinic: Resolved) -> None:
    second = Compare("=", number("w_floor"), Literal(2, INTEGER))
    (factor,) = gathered(asked(Filter(join(), second), text("v_ward")), clinic).listed.factors  # type: ignore[union-attr]
    assert isinstance(factor, ListedHole) and isinstance(factor.rows, Filter)
    assert second in split_conjuncts(factor.rows.condition)
    private = Compare("<", number("w_floor"), number("v_nights"))
    (plain,) = gathered(asked(Filter(join(), private), text("w_ward")), clinic).listed.factors  # type: ignore[union-attr]
    assert isinstance(plain, ListedRows)


def test_tables_that_are_tied_to_each_other_are_listed_together(clinic: Resolved) -> None:
    again = Join(join(), wards("u"), JoinKind.INNER, Compare("=", text("w_ward"), text("u_ward")))
    pairs = gathered(asked(again, text("w_ward"), number("u_floor")), clinic)
    assert pairs.listed is not None
    (factor,) = pairs.listed.factors
    assert isinstance(factor, ListedHole) and factor.count == 3  # not 3 * 3


def test_a_larger_public_table_is_listed_by_its_rows_up_to_the_limit(clinic: Resolved) -> None:
    wide = with_wards(clinic, PublicFacts(9_000, {}))
    listed = gathered(asked(join(), text("w_ward")), wide)
    assert listed.selection is None and listed.listed is not None and listed.listed.count == 9_000
    beyond = gathered(asked(join(), text("w_ward")), with_wards(clinic, PublicFacts(90_000, {})))
    assert beyond.listed is None and beyond.selection is not None


def test_keys_of_one_table_are_no_more_than_its_rows_however_many_are_joined_to_it(clinic: Resolved) -> None:
    same_floor = Compare("=", number("w_floor"), number("u_floor"))
    crossed = Join(join(), wards("u"), JoinKind.INNER, same_floor)
    resolved = with_wards(clinic, PublicFacts(200, {}))
    own = gathered(asked(crossed, text("w_ward"), number("w_floor")), resolved)
    assert own.selection is None and own.listed is not None and own.listed.count == 200  # not 200 * 200
    of_both = gathered(asked(crossed, text("w_ward"), text("u_ward")), resolved)
    assert of_both.listed is None  # there may be 200 * 200


def hole(prefix: str = "h") -> RowsHole:
    columns = (Field(f"{prefix}_ward", TEXT), Field(f"{prefix}_floor", INTEGER))
    return RowsHole(prefix, columns, (Domain(TEXT), Domain(INTEGER)), 1000)


ON_HOLE = Compare("=", text("v_ward"), text("h_ward"))


@pytest.mark.parametrize("key", ["v_ward", "h_ward"])
def test_a_key_equated_to_a_runtime_parameter_lists_what_will_be_bound_without_null(key: str, clinic: Resolved) -> None:
    gather = gathered(asked(Join(visits(), hole(), JoinKind.INNER, ON_HOLE), text(key)), clinic)
    assert gather.selection is None and gather.listed is not None and gather.listed.count == 1000
    (factor,) = gather.listed.factors
    assert isinstance(factor, ListedHole) and factor.columns == ("h_ward",)
    assert "IS NULL" in render_release(gather)


def test_keys_of_a_runtime_parameter_stay_together_and_cross_with_others(clinic: Resolved) -> None:
    rows = Join(visits(), hole(), JoinKind.INNER, ON_HOLE)
    pairs = gathered(asked(rows, text("h_ward"), number("h_floor")), clinic)
    assert pairs.listed is not None and len(pairs.listed.factors) == 1 and pairs.listed.count == 1000
    crossed = gathered(asked(rows, text("h_ward"), text("v_kind")), clinic)
    assert crossed.listed is not None and crossed.listed.count == 2000
    free = Filter(rows, Compare("<", number("v_nights"), number("h_floor")))
    mixed = gathered(asked(Join(visits(), hole(), JoinKind.INNER, Compare("<", number("v_nights"), number("h_floor"))),
                           number("h_floor"), text("v_ward")), clinic)  # fmt: skip
    assert mixed.selection is not None and mixed.selection.keys == ("k2",) and mixed.listed is not None
    assert gathered(asked(free, text("h_ward")), clinic).selection is None


def test_a_runtime_parameter_joined_with_an_outer_join_has_a_group_for_rows_that_met_none(clinic: Resolved) -> None:
    gather = gathered(asked(Join(visits(), hole(), JoinKind.LEFT, ON_HOLE), text("h_ward")), clinic)
    assert gather.listed is not None and gather.listed.count == 1001
    kept = gathered(asked(Join(visits(), hole(), JoinKind.LEFT, ON_HOLE), text("v_ward")), clinic)
    assert kept.listed is None


# --- grouping sets ---------------------------------------------------------------------------------------------------


def test_every_set_lists_its_own_groups_with_its_number(clinic: Resolved) -> None:
    sets = (frozenset({"k1", "k2"}), frozenset({"k1"}), frozenset[str]())
    gather = gathered(asked(visits(), text("v_kind"), number("v_nights"), sets=sets), clinic)
    assert [key.name for key in gather.keys] == ["k1", "k2", SET_COLUMN] and gather.listed is not None
    (factor,) = gather.listed.factors
    assert isinstance(factor, ListedRows) and gather.listed.count == 2 * 15 + 2 + 1
    assert factor.rows[-3:] == (("urgent", None, 1), ("planned", None, 1), (None, None, 2))


def test_a_null_that_is_no_group_drops_the_row_from_sets_with_the_key_only(clinic: Resolved) -> None:
    sets = (frozenset({"k1"}), frozenset[str]())
    gather = gathered(asked(visits(), text("v_kind"), sets=sets), clinic)
    (expand,) = {node for node in walk_nodes(gather) if isinstance(node, Expand)}
    assert not isinstance(expand.input, Filter)
    sql = render_release(gather)
    assert '(NOT ("_set" IN (0)))' in sql or '(NOT ("_set" IN (CAST(0 AS BIGINT))))' in sql


def test_where_one_key_is_not_public_all_sets_are_selected(clinic: Resolved) -> None:
    sets = (frozenset({"k1", "k2"}), frozenset({"k2"}), frozenset[str]())
    gather = gathered(asked(visits(), text("v_ward"), text("v_kind"), sets=sets), clinic)
    assert gather.listed is None and gather.selection is not None
    assert gather.selection.keys == ("k1", "k2", SET_COLUMN) and gather.selection.limit == POLICY.groups


def test_a_row_in_three_sets_counts_three_times_in_the_norm(by_row: Resolved) -> None:
    """Where each row is a unit nothing is weighed: its copies are in the claim."""
    events = Table("events", (("kind", Field("kind", TEXT)), ("page", Field("page", TEXT))), None)
    sets = (frozenset({"k1"}), frozenset[str](), frozenset[str]())
    gather = gathered(asked(events, text("kind"), sets=sets), by_row, ContributionPolicy(None, None, Norm.L2))
    (claim,) = derive_sensitivity_bounds(gather, RELATION)
    assert claim.sensitivity.l1 == 3
    selected = gathered(asked(events, text("page"), sets=sets), by_row, ContributionPolicy(None, None, Norm.L2))
    assert isinstance(selected.selection, CountUnits) and selected.selection.one_row
    assert selected.selection.limit is None


def test_a_row_that_meets_several_public_rows_cannot_select_groups(by_row: Resolved) -> None:
    events = Table("events", (("page", Field("page", TEXT)),), None)
    rows = Join(events, hole(), JoinKind.INNER, Compare("<", text("page"), text("h_ward")))
    with pytest.raises(UnboundedContribution, match="its own privacy unit"):
        gathered(asked(rows, text("page")), by_row, ContributionPolicy(None, None, Norm.L2))
    assert (
        derive_sensitivity_bounds(gathered(asked(rows), by_row, ContributionPolicy(1, 1, Norm.L2)), RELATION)[
            0
        ].sensitivity.l1
        == 1000
    )


# --- the limit -------------------------------------------------------------------------------------------------------


def test_more_public_rows_than_allowed_are_refused_before_anything_runs(clinic: Resolved) -> None:
    less = Join(visits(), wards(), JoinKind.INNER, Compare("<", text("v_ward"), text("w_ward")))
    within, beyond = (with_wards(clinic, PublicFacts(rows, {})) for rows in (1000, 1001))
    gathered(asked(less), within)
    with pytest.raises(CountsNeeded) as needed:
        gathered(asked(less), beyond)
    (count,) = needed.value.counts
    with pytest.raises(LimitExceeded, match="1001 public rows") as raised:
        gathered(asked(less), replace(beyond, counted={count.text: 1001}))
    gathered(asked(less), replace(beyond, counted={count.text: 1000}))
    assert raised.value.hint is not None and '"Wards"' in raised.value.hint and "unique" in raised.value.hint
    gathered(asked(join()), beyond)  # by its unique key
    with pytest.raises(CountsNeeded):
        gathered(asked(join()), with_wards(clinic, PublicFacts(1001, {}), unique=False))


def test_a_public_table_of_another_version_lists_other_values(clinic: Resolved) -> None:
    key = Named("k1", Column("w_floor", INTEGER))
    facts = PublicFacts(2, {"floor": (3, 7), "ward": ("a", "b")})
    gather = gathered(Aggregate(join(), (key,), (CountRows(),)), with_wards(clinic, facts))
    assert gather.listed is not None and gather.listed.factors[0].rows == ((3,), (7,))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("condition", "unique", "answered"),
    [
        (ON_WARD, False, True),  # looked up: the first match decides
        (And((ON_WARD, Compare("<", number("v_nights"), number("w_floor")))), False, False),  # tried on every match
        (And((ON_WARD, Compare("<", number("v_nights"), number("w_floor")))), True, True),
        (Compare("<", number("v_nights"), number("w_floor")), True, False),
        (And((ON_WARD, Compare("<", Literal(1, INTEGER), number("w_floor")))), False, True),  # filtered beforehand
    ],
)
def test_exists_meets_as_many_public_rows_as_it_tries(
    clinic: Resolved, condition: And | Compare, unique: bool, answered: bool
) -> None:
    many = with_wards(clinic, PublicFacts(5_000, {}), unique)
    marked = Mark(visits(), wards(), "found", condition, None, by_unit=False)
    aggregate = asked(Filter(marked, Column("found", BOOLEAN)))
    if answered:
        assert gathered(aggregate, many)
    else:
        with pytest.raises(LimitExceeded, match="5000 public rows"):
            gathered(aggregate, many)
