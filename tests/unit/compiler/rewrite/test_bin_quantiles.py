"""MIN and MAX count each unit once in a group, and say which quantile they are."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsql.compiler.compile import Compiled, compile_query
from dpsql.compiler.settings import EmptyGroups, Settings, default_settings
from dpsql.privacy.exponential import Exponential, ExtremeTarget
from tests.unit.compiler.split.test_row_queries_suggestions import CORPUS, resolved

DATA = resolved(CORPUS / "hospital.yaml")
SETTINGS = replace(
    default_settings(DATA.schema.privacy).statement,
    epsilon=Fraction(1),
    delta=Fraction(1, 10**9),
    empty_groups=EmptyGroups.SHOW,  # the choice has all of the loss
)


def compiled(sql: str, settings: Settings = SETTINGS) -> Compiled:
    return compile_query(sql, DATA, settings)


def aimed_at(sql: str, settings: Settings = SETTINGS) -> tuple[Fraction, Fraction]:
    """The units that are passed over, and the scale, both in units."""
    choice = compiled(sql, settings).steps[-1].calibrated.choice
    assert choice is not None
    (pick,) = choice.picks
    assert isinstance(pick.target, ExtremeTarget) and isinstance(pick.mechanism, Exponential)
    return Fraction(pick.target.rank, choice.whole), pick.mechanism.scale / choice.whole


def test_without_keys_a_unit_counts_once_whatever_rows_it_may_have() -> None:
    ranks = {rows: aimed_at("SELECT MAX(cost) FROM visits", replace(SETTINGS, rows=rows))[0] for rows in (1, 10, 1000)}
    assert len(set(ranks.values())) == 1
    assert ranks[1] == aimed_at("SELECT MAX(c) FROM (SELECT patient_id, MAX(cost) AS c FROM visits GROUP BY 1) AS t")[0]


def test_keys_of_the_unit_do_not_spread_it() -> None:
    sql = "SELECT p.sex, MAX(v.cost) FROM visits v JOIN patients p USING (patient_id) GROUP BY p.sex"
    assert aimed_at(sql)[1] == aimed_at("SELECT MAX(cost) FROM visits")[1]


@pytest.mark.parametrize(("noise", "times"), [("gaussian", 3), ("laplace", 3)])
def test_a_unit_is_in_no_more_groups_than_there_are(noise: str, times: int) -> None:
    kinds = replace(SETTINGS, noise=type(SETTINGS.chosen_noise)(noise))
    alone, spread = (aimed_at(f"SELECT {key} MAX(cost) FROM visits {group}", kinds)[1]
                     for key, group in (("", ""), ("kind,", "GROUP BY kind")))  # fmt: skip
    assert spread == pytest.approx(float(times * alone), rel=1e-6)


def test_the_overshoot_decides_how_many_are_passed_over() -> None:
    found = [aimed_at("SELECT MAX(cost) FROM visits", replace(SETTINGS, overshoot=Fraction(1, n)))[0]
             for n in (1000, 20, 2, 1)]  # fmt: skip
    assert sorted(found, reverse=True) == found and len(set(found)) == 4
    assert aimed_at("SELECT MAX(cost) FROM visits")[0] == found[1]


def test_the_default_overshoot_keeps_the_key_of_a_release() -> None:
    sql = "SELECT MAX(cost) FROM visits"
    hashes = [compiled(sql, replace(SETTINGS, overshoot=o)).steps[0].plan_hash for o in (Fraction(1, 20), Fraction(1))]
    assert hashes[0] == compiled(sql).steps[0].plan_hash != hashes[1]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT MAX(cost) FROM visits", "MAX(cost) is a high quantile, not the largest value: about "),
        ("SELECT kind, MIN(nights) FROM visits GROUP BY kind", "MIN(nights) is a low quantile, not the smallest value"),
    ],
)
def test_the_notice_says_which_quantile_it_is(sql: str, words: str) -> None:
    (notice,) = compiled(sql).notices
    assert notice.startswith(words) and notice.endswith("(95 %)")
    rank, _ = aimed_at(sql)
    assert f"about {float(rank):.3g}"[:8] in notice or str(int(rank)) in notice


def test_other_quantiles_have_no_notice() -> None:
    assert compiled("SELECT MEDIAN(cost), QUANTILE_DISC(cost, 0.99) FROM visits").notices == ()
