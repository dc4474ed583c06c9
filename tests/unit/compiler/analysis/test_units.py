"""Facts about units: rows per unit and columns that depend on the unit, from accepted keys alone."""

import pytest

from dpsql.compiler.analysis.units import UnitFacts, derive_unit_facts, rows_of_each_set
from dpsql.compiler.plan.aggregate import Node
from dpsql.compiler.plan.expressions import TRUE, UID, Column, Literal
from dpsql.compiler.plan.relations import Filter, Join, JoinKind, Named, Project, Scan, ScanColumn, UnitId
from dpsql.errors import InternalError
from dpsql.schema.model import Domain, EngineTable
from dpsql.types import BIGINT, TEXT, Type


def column(name: str, type_: Type = BIGINT, is_id: bool = False) -> ScanColumn:
    return ScanColumn(name, name, type_, Domain(type_), 100, is_id)


def scan(prefix: str, *, unique: bool = False, row_unit: bool = False) -> Scan:
    """A table with an id that is its unit's, and one more column."""
    unit = None if row_unit else UnitId(column(f"{prefix}_id", is_id=True))
    columns = (column(f"{prefix}_id", is_id=True), column(f"{prefix}_x", TEXT))
    return Scan(prefix, EngineTable((prefix,)), columns, unit, unique, frozenset({f"{prefix}_id"}))


def join(left: Node, right: Node, kind: JoinKind = JoinKind.INNER, by_unit: bool = True) -> Join:
    return Join(left, right, kind, TRUE, by_unit)


def test_a_table_with_many_rows_per_unit_determines_its_unit_columns_only() -> None:
    assert derive_unit_facts(scan("v")) == UnitFacts(None, frozenset({"v_id"}))


def test_a_unique_unit_has_one_row_and_determines_all_columns() -> None:
    assert derive_unit_facts(scan("p", unique=True)) == UnitFacts(1, frozenset({UID, "p_id", "p_x"}))


def test_a_row_unit_has_one_row_and_determines_all_columns() -> None:
    assert derive_unit_facts(scan("e", row_unit=True)) == UnitFacts(1, frozenset({"e_id", "e_x"}))


def test_a_filter_changes_no_fact() -> None:
    assert derive_unit_facts(Filter(scan("v"), TRUE)) == derive_unit_facts(scan("v"))


def test_a_computed_column_is_determined_if_all_it_reads_is() -> None:
    key, other, one = Column("v_id", BIGINT), Column("v_x", TEXT), Literal(1, BIGINT)
    facts = derive_unit_facts(Project(scan("v"), (Named("key", key), Named("other", other), Named("one", one))))
    assert facts == UnitFacts(None, frozenset({"key", "one"}))


def test_an_inner_join_multiplies_rows_and_unites_what_is_determined() -> None:
    both = derive_unit_facts(join(scan("p", unique=True), scan("q", unique=True)))
    assert both == UnitFacts(1, frozenset({UID, "p_id", "p_x", "q_id", "q_x"}))
    many = derive_unit_facts(join(scan("v"), scan("p", unique=True)))
    assert many == UnitFacts(None, frozenset({UID, "v_id", "p_id", "p_x"}))


def test_the_right_side_of_a_left_join_is_not_determined() -> None:
    """Some rows of a unit may find a match and others none, so a value and NULL stand side by side."""
    facts = derive_unit_facts(join(scan("v"), scan("p", unique=True), JoinKind.LEFT))
    assert facts.determined == frozenset({"v_id"})


def test_a_join_that_does_not_equate_units_is_refused() -> None:
    with pytest.raises(InternalError):
        derive_unit_facts(join(scan("v"), scan("p"), by_unit=False))


def test_grouping_sets_share_rows_evenly_or_any_of_them_has_all() -> None:
    assert rows_of_each_set(6, 2) == 3
    assert rows_of_each_set(1, 2) == 1 and rows_of_each_set(5, 2) == 5
