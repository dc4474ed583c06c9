"""EXPLAIN: stable names for tools, and figures that agree with what would be charged."""

import math
from dataclasses import fields
from fractions import Fraction

import pytest

from dpsql.compiler.compile import Compiled, compile_query
from dpsql.compiler.settings import change_setting, default_settings
from dpsql.schema.model import Resolved
from dpsql.session.explain import ExplainedBundle, ExplainedColumn, ExplainedRelease, Explanation, explain


def compiled(sql: str, resolved: Resolved, **settings: str) -> Compiled:
    chosen = default_settings(resolved.schema.privacy)
    for name, value in settings.items():
        chosen = change_setting(chosen, resolved.schema.privacy, name, value)
    return compile_query(sql, resolved, chosen.statement)


def explained(sql: str, resolved: Resolved, outputs: int = 0, **settings: str) -> Explanation:
    return explain(compiled(sql, resolved, **settings), "duckdb", [(f"o{n}", "bigint") for n in range(outputs)])


PROMISED = {
    Explanation: {"releases", "epsilon", "delta", "post_sql", "outputs"},
    ExplainedRelease: {"sql", "engine", "holes", "keys", "columns", "bundles", "selection", "epsilon", "rho", "delta"},
    ExplainedColumn: {"name", "grid"},
    ExplainedBundle: {"columns", "mechanism", "scale", "l1", "l2", "linf"},
}


@pytest.mark.parametrize("kind", PROMISED)
def test_the_promised_fields_are_there(kind: type) -> None:
    assert {field.name for field in fields(kind)} >= PROMISED[kind]


def test_a_release_lists_keys_then_columns_in_the_engines_order(clinic: Resolved) -> None:
    (release,) = explained("SELECT ward, kind, COUNT(*), AVG(cost) FROM visits GROUP BY 1, 2", clinic).releases
    assert release.keys == ("k2", "k1") and release.selection == "selection_units"
    names = [column.name for column in release.columns]
    assert names[0] == "selection_units" and names[1:] == [c for b in release.bundles for c in b.columns]
    assert release.engine == "duckdb" and release.holes == ()
    positions = [release.sql.rindex(f'AS "{name}"') for name in names]
    assert positions == sorted(positions)
    assert all(isinstance(column.grid, Fraction) for column in release.columns)


def test_figures_are_those_of_the_charge(clinic: Resolved) -> None:
    sql = "SELECT kind, COUNT(*), SUM(cost), SUM(paid) FROM visits GROUP BY kind"
    (step,) = compiled(sql, clinic).steps
    (release,) = explained(sql, clinic).releases
    assert (release.epsilon, release.rho, release.delta) == (step.loss.epsilon, step.loss.rho, step.loss.delta)
    for shown, bundle in zip(release.bundles, step.calibrated.bundles, strict=True):
        moved = bundle.claim.sensitivity
        assert (shown.l1, shown.linf) == (moved.l1, moved.linf)
        assert shown.l2**2 >= moved.l2_squared and math.isclose(shown.l2**2, moved.l2_squared, rel_tol=1e-12)
        assert shown.mechanism == "gaussian"


def test_a_pure_release_has_an_epsilon_and_no_delta(clinic: Resolved) -> None:
    shown = explained("SELECT COUNT(*) FROM visits", clinic, delta="0")
    assert shown.epsilon == 1 and shown.delta == 0
    (release,) = shown.releases
    assert release.epsilon is not None and 0 < release.epsilon <= 1 and release.bundles[0].mechanism == "laplace"


def test_an_impure_statement_may_cost_its_delta(clinic: Resolved) -> None:
    shown = explained("SELECT COUNT(*) FROM visits", clinic)
    assert shown.delta == clinic.schema.privacy.query.delta and shown.releases[0].epsilon is None


def test_public_groups_are_counted_and_selected_ones_are_not(clinic: Resolved) -> None:
    (listed,) = explained("SELECT sex, COUNT(*) FROM patients GROUP BY sex", clinic).releases
    assert (listed.groups, listed.units_to_appear, listed.selection) == (4, None, None)
    (selected,) = explained("SELECT ward, COUNT(*) FROM visits GROUP BY ward", clinic).releases
    assert selected.groups is None and selected.units_to_appear is not None and selected.units_to_appear > 1


def test_what_reads_no_private_rows_costs_nothing(clinic: Resolved) -> None:
    shown = explained("SELECT 1", clinic, 1)
    assert (shown.releases, shown.epsilon, shown.delta) == ((), 0, 0)
    assert "none" in str(shown).splitlines()[0]


def test_the_expected_error_of_a_count_is_that_of_its_noise(clinic: Resolved) -> None:
    shown = explained("SELECT COUNT(*), AVG(cost) FROM visits", clinic, 2)
    count, mean = shown.expected
    (bundle,) = shown.releases[0].bundles
    assert count is not None and count > 0 and mean is None  # an average's error depends on the answer
    alone = explained("SELECT COUNT(*) FROM patients", clinic, 1)
    assert alone.expected == (pytest.approx(alone.releases[0].bundles[0].stderr),)
    assert bundle.stderr > 0


def test_the_text_shows_loss_noise_sql_and_outputs(clinic: Resolved) -> None:
    shown = explained("SELECT ward, COUNT(*) FROM visits GROUP BY ward", clinic, 2)
    text = str(shown)
    for part in ("at most epsilon 1, delta 1e-7", "selection", "gaussian noise", shown.post_sql, "o1 bigint"):
        assert part in text
    assert shown.releases[0].sql.splitlines()[0] in text
