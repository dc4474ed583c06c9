"""Compiling is pure, and gives every error its statement."""

import datetime as dt
from dataclasses import replace

import pytest

from dpsql.compiler.compile import Compiled, Settings, compile_query
from dpsql.compiler.settings import default_settings
from dpsql.errors import Error, LimitExceeded, Unsupported
from dpsql.schema.model import Resolved

SQL = "SELECT ward, COUNT(*), AVG(cost) FROM visits WHERE score > 1 GROUP BY ward ORDER BY 2"
NOW = dt.datetime(2024, 5, 6, 7, 8, tzinfo=dt.UTC)


@pytest.fixture()
def settings(clinic: Resolved) -> Settings:
    return default_settings(clinic.schema.privacy).statement


def test_the_same_statement_compiles_to_the_same(clinic: Resolved, settings: Settings) -> None:
    assert compile_query(SQL, clinic, settings) == compile_query(SQL, clinic, settings)


def test_the_time_is_passed_in(clinic: Resolved, settings: Settings) -> None:
    sql = "SELECT COUNT(*) FROM visits WHERE at < now()"
    (step,) = compile_query(sql, clinic, settings, (), NOW).steps
    assert "2024-05-06T07:08:00" in step.sql
    assert (
        compile_query(sql, clinic, settings, (), NOW).steps[0].plan_hash
        != compile_query(sql, clinic, settings, (), NOW + dt.timedelta(seconds=1)).steps[0].plan_hash
    )
    with pytest.raises(Unsupported):
        compile_query(sql, clinic, settings)


def test_an_error_has_its_statement_and_position(clinic: Resolved, settings: Settings) -> None:
    with pytest.raises(Error) as caught:
        compile_query("SELECT AVG(costs) FROM visits", clinic, settings)
    assert caught.value.statement == "SELECT AVG(costs) FROM visits" and caught.value.position == 12


def test_parameters_change_the_question_and_not_the_text(clinic: Resolved, settings: Settings) -> None:
    sql = "SELECT COUNT(*) FROM visits WHERE ward = ?"
    one, other = (compile_query(sql, clinic, settings, [ward]) for ward in ("a", "b"))
    assert one.statement == other.statement == sql and one.steps[0].plan_hash != other.steps[0].plan_hash


def test_a_statement_without_private_rows_has_no_steps_and_no_loss(clinic: Resolved, settings: Settings) -> None:
    compiled = compile_query("SELECT 1 + 1", clinic, settings)
    assert compiled.steps == () and compiled.loss.rho == 0 and compiled.loss.epsilon == 0


def test_equal_releases_of_one_statement_are_found_by_one_hash(clinic: Resolved, settings: Settings) -> None:
    compiled = compile_query(
        "SELECT (SELECT COUNT(*) FROM visits WHERE cost > 1), (SELECT COUNT(1) FROM visits v WHERE 1 < v.cost)",
        clinic,
        settings,
    )
    one, other = compiled.steps
    assert one.plan_hash == other.plan_hash


def test_the_neighboring_relation_is_part_of_the_question(clinic: Resolved, settings: Settings) -> None:
    privacy = replace(clinic.schema.privacy, group_size=3)
    other = replace(clinic, schema=replace(clinic.schema, privacy=privacy))
    hashes = {compile_query(SQL, resolved, settings).steps[0].plan_hash for resolved in (clinic, other)}
    assert len(hashes) == 2


def test_error_bars_stand_behind_the_selected_columns(clinic: Resolved, settings: Settings) -> None:
    compiled: Compiled = compile_query(SQL, clinic, settings)
    bars = compiled.errors
    assert len(bars) == 3 and bars[0] is None and bars[1] is not None and bars[2] is not None
    places = [place for bar in bars[1:] if bar for place in (bar.stderr, bar.low, bar.high, bar.clipped)]
    assert places == list(range(3, 11))


def test_depth_is_an_error_of_ours(clinic: Resolved, settings: Settings) -> None:
    nested = "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 190 + "visits" + ") s" * 190
    with pytest.raises(LimitExceeded):
        compile_query(nested, clinic, settings)


def test_sql_of_the_engine_computes_nothing_that_was_not_selected(clinic: Resolved, settings: Settings) -> None:
    (step,) = compile_query("SELECT COUNT(*) FROM visits", clinic, settings).steps
    assert "note" not in step.sql and "cost" not in step.sql
