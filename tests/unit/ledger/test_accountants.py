"""The accountants of the report say what the literature says, and what the union filter grants is the best valid one.

How many counts fit in (1, 1e-6), as MECHANISMS 3.3 has it. Two of its figures are of continuous Laplace noise (RDP 492,
PLD 564); on a count, whose neighbors differ by one, discrete Laplace noise is randomized response: 490 and 562.
"""

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction as F
from typing import Any

import pytest
from dp_accounting.pld import privacy_loss_distribution as plds
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.ledger import accountants
from dpsql.ledger.accountants import ACCOUNTANTS, ChargeHistory, HistoryCharge, NotComputed, report_accountants
from dpsql.ledger.loss_checker.checker import UnreadableRecord, recompute_loss
from dpsql.privacy.audit_record import NoisedColumns, write_release_record
from dpsql.privacy.exponential import Rank, UnitContribution, calibrate_picks_by_rho
from dpsql.privacy.filters import NO_CUMULATIVE_LOSS, FilterLimits, admit_charge, cost_of
from dpsql.privacy.loss import Loss, epsilon_to_rho
from dpsql.privacy.noise import Gaussian, Laplace, Mechanism, Sensitivity, calibrate_laplace
from dpsql.privacy.partition_selection import calibrate_selection_by_rho

EPSILON, DELTA = F(1), F(1, 10**6)
COUNT = Sensitivity(1, 1, 1)


def record(mechanism: Mechanism, moved: Sensitivity = COUNT) -> str:
    return write_release_record([NoisedColumns(1, moved, mechanism)])


def charge(mechanism: Mechanism, epsilon: F | None = None, delta: F = F(0)) -> HistoryCharge:
    return HistoryCharge(epsilon, delta, (record(mechanism),))


LAPLACE = [charge(Laplace(F(10)), F(1, 10)), charge(Laplace(F(100)), F(1, 100))]
GAUSSIAN = [
    charge(Gaussian(F("50.21")), F(1, 10), F(1, 10**9)),
    charge(Gaussian(F("458.5")), F(1, 100), F(1, 10**9)),
]
AS_WIDE = [charge(Gaussian(F("14.14213"))), charge(Gaussian(F("141.4213")))]  # standard deviations of the first two
NAMES = [name for name, _, _ in ACCOUNTANTS]
TABLE = [
    #          basic  textbook adaptive  KOV   BS16   CKS20    RDP    PLD  exact
    (LAPLACE[0], 10, 3, 3, 10, 3, 4, 10, 10, None),
    (LAPLACE[1], 100, 337, 349, 562, 349, 487, 490, 562, None),
    (GAUSSIAN[0], 10, 3, 3, 10, 88, 122, 122, 141, 141),
    (GAUSSIAN[1], 100, 328, 339, 525, 7344, 10240, 10240, 11778, 11778),
    (AS_WIDE[0], None, None, None, None, 6, 9, 9, 11, 11),
    (AS_WIDE[1], None, None, None, None, 698, 974, 974, 1120, 1120),
]


def most(fits: Callable[[int], bool]) -> int | None:
    """The largest number that fits, if 1 does."""
    if not fits(1):
        return None
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@pytest.mark.parametrize("place", range(len(NAMES)), ids=NAMES)
@pytest.mark.parametrize("row", TABLE, ids=["laplace 0.1", "0.01", "gaussian 0.1", "0.01", "std 14.14", "141.4"])
def test_how_many_counts_fit(row: tuple[Any, ...], place: int) -> None:
    one, expected = row[0], row[1 + place]
    compute = ACCOUNTANTS[place][2]

    def fits(count: int) -> bool:
        try:
            return compute(ChargeHistory((one,) * count, DELTA)) <= float(EPSILON) * (1 + 1e-12)
        except NotComputed:
            return False

    assert most(fits) == expected


def test_continuous_laplace_noise_would_allow_two_counts_more() -> None:
    """Where the table's 564 comes from: it holds for a real-valued answer, not for a count with discrete noise."""
    for build, expected in ((plds.from_laplace_mechanism, 564), (plds.from_discrete_laplace_mechanism, 562)):
        parameter = 100.0 if build is plds.from_laplace_mechanism else 0.01
        curve = build(parameter, value_discretization_interval=1e-3)
        fits = lambda count, curve=curve: curve.self_compose(count).get_epsilon_for_delta(1e-6) <= 1 + 1e-9  # noqa: E731
        assert most(fits) == expected


@pytest.mark.parametrize(
    ("one", "granted"),
    [(charge(calibrate_laplace(COUNT, F(1, 10)), F(1, 10)), 10), (LAPLACE[1], 487), (GAUSSIAN[0], 122)],
)
def test_the_union_filter_grants_the_best_valid_column(one: HistoryCharge, granted: int) -> None:
    """With all of delta for the conversion, as in the table: nothing is selected there."""
    limits = FilterLimits(EPSILON, epsilon_to_rho(EPSILON, DELTA), F(0))
    lost = recompute_loss(one.records[0])
    cost, spent, count = (
        cost_of(Loss(lost.epsilon, lost.rho, lost.delta), one.epsilon or F(0), one.delta),
        NO_CUMULATIVE_LOSS,
        0,
    )
    while (after := admit_charge(limits, spent, cost)) is not None:
        spent, count = after, count + 1
    assert count == granted


@pytest.mark.parametrize(
    ("name", "expected"),
    [("advanced, textbook", 6.30823), ("basic", 10.0), ("advanced, adaptive", 5.75652)],
)
def test_known_answers_of_a_hundred_tenths(name: str, expected: float) -> None:
    """MECHANISMS 5: k = 100, epsilon = 0.1, d' = 1e-6."""
    verdicts = {verdict.accountant: verdict for verdict in report_accountants(LAPLACE[:1] * 100, DELTA)}
    assert verdicts[name].epsilon == pytest.approx(expected, abs=1e-5)


def test_the_exact_gaussian_is_the_analytic_one() -> None:
    """MECHANISMS 4.6: sigma 36.3 at (0.1, 1e-6), 4.22468 at (1, 1e-6) in units of the sensitivity."""
    wide = HistoryCharge(None, F(0), (record(Gaussian(F("4.22468") * 1000), Sensitivity(1000, 10**6, 1000)),))
    (verdict,) = [v for v in report_accountants([wide], DELTA) if v.accountant == "exact Gaussian"]
    assert verdict.epsilon == pytest.approx(1.0, abs=1e-5)


# --- mixed histories -------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(9, 400), min_size=1, max_size=6),
    st.lists(st.integers(2, 200), max_size=3),
    st.integers(1, 30),
)
def test_every_figure_is_ordered_as_proofs_order_them(sigmas: list[int], scales: list[int], times: int) -> None:
    """PLD is at most RDP, RDP at most CKS20, CKS20 at most BS16; of Gaussians alone PLD is exact."""
    charges = [charge(Gaussian(F(s))) for s in sigmas] + [charge(Laplace(F(b)), F(1, b)) for b in scales]
    verdicts = {verdict.accountant: verdict.epsilon for verdict in report_accountants(charges * times, DELTA)}
    assert verdicts["PLD"] <= verdicts["RDP"] * 1.001 + 1e-3
    assert verdicts["RDP"] <= verdicts["zCDP (CKS20)"] * 1.0001 <= verdicts["zCDP (BS16)"] * 1.0002
    if not scales:
        assert verdicts["PLD"] == pytest.approx(verdicts["exact Gaussian"], rel=1e-3, abs=1e-3)


def test_selections_have_a_delta_of_their_own() -> None:
    selection = calibrate_selection_by_rho(F(1, 100), F(1, 10**8), l0=4)
    one = HistoryCharge(None, F(0), (write_release_record([], selection),))
    assert all(v.epsilon is not None for v in report_accountants([one], DELTA) if "zCDP" in v.accountant)
    few, many = (report_accountants([one] * count, DELTA) for count in (1, 101))
    assert [v.note for v in many if v.epsilon is None][-3:] == ["the deltas of selections alone pass delta"] * 3
    assert {v.accountant for v in few if v.epsilon is not None} >= {"RDP", "PLD"}


@pytest.mark.parametrize(
    ("charges", "name", "reason"),
    [
        ([*LAPLACE], "optimal (KOV)", "the charges differ from each other"),
        (LAPLACE, "exact Gaussian", "not all noise is Gaussian"),
        ([charge(Gaussian(F(2)))], "exact Gaussian", "noise of a few grid units is not the continuous one"),
        (
            [HistoryCharge(None, F(0), (record(Gaussian(F(2)), Sensitivity(2, 4, 2)),))],
            "PLD",
            "noise of a few grid units is not the continuous one",
        ),
        ([charge(Gaussian(F(50)))], "basic", "a charge has no epsilon of its own"),
        ([charge(Gaussian(F(50)), F(1), F(1, 10))], "basic", "the deltas of the charges alone pass delta"),
        ([charge(Laplace(F(b)), F(1, b)) for b in range(2, 40)], "PLD", "more than 32 different mechanisms"),
        ([charge(Laplace(F(1, 1000)), F(1000))] * 50, "PLD", "the loss is too large for a curve"),
        ([charge(Laplace(F(1, 1000)), F(1000))] * 50, "advanced, textbook", "a charge has too large an epsilon"),
        (
            [
                HistoryCharge(
                    F(1),
                    F(0),
                    (
                        write_release_record(
                            [],
                            None,
                            calibrate_picks_by_rho((Rank(F(1, 2)),), UnitContribution(3, False), 9, F(1, 10)),
                            UnitContribution(3, False),
                        ),
                    ),
                )
            ],
            "PLD",
            "picks over many groups have no curve of their own",
        ),
    ],
)
def test_what_is_not_computed_says_why(charges: list[HistoryCharge], name: str, reason: str) -> None:
    (verdict,) = [verdict for verdict in report_accountants(charges, DELTA) if verdict.accountant == name]
    assert (verdict.epsilon, verdict.note) == (None, reason)


def test_without_a_delta_only_sums_are_left() -> None:
    found = {verdict.accountant for verdict in report_accountants(LAPLACE[:1] * 3, F(0)) if verdict.epsilon is not None}
    assert found == {"basic", "optimal (KOV)"}


def test_an_empty_history_lost_nothing() -> None:
    assert {verdict.epsilon for verdict in report_accountants([], DELTA)} == {0.0}
    assert {
        verdict.epsilon for verdict in report_accountants([HistoryCharge(F(0), F(0), ('{"mechanisms":1}',))], DELTA)
    } == {0.0}


def test_unknown_mechanisms_are_not_reported_on() -> None:
    with pytest.raises(UnreadableRecord):
        report_accountants([HistoryCharge(F(1), F(0), ("[]",))], DELTA)


def test_the_package_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(accountants.importlib, "import_module", missing)
    verdicts = {verdict.accountant: verdict for verdict in report_accountants(LAPLACE, DELTA)}
    assert verdicts["RDP"].epsilon is None and "dp-accounting" in verdicts["PLD"].note
    assert verdicts["zCDP (CKS20)"].epsilon is not None
    gaussian = {verdict.accountant: verdict for verdict in report_accountants(GAUSSIAN, DELTA)}
    assert gaussian["exact Gaussian"].epsilon is None and "dpsql[accountants]" in gaussian["exact Gaussian"].note
    assert {name for name, verdict in gaussian.items() if verdict.epsilon is not None} >= {"basic", "zCDP (BS16)"}


# --- bounded in time and memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "charges",
    [
        [charge(Laplace(F(1, 10)), F(10))] * 100,  # an epsilon of 1000
        [charge(Laplace(F(10**7)), F(1, 10**7))] * 3000,  # of three ten-thousandths
        [HistoryCharge(None, F(0), (record(Gaussian(F(8)), Sensitivity(64, 64**2, 64)),))] * 100,
        [charge(Laplace(F(b)), F(1, b)) for b in range(2, 34)] * 500,
        [charge(Laplace(F(1, 10)), F(10)), charge(Laplace(F(10**6)), F(1, 10**6))] * 100,
    ],
    ids=["huge", "tiny", "huge gaussian", "many", "mixed"],
)
def test_no_history_makes_a_large_curve(charges: list[HistoryCharge], monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    compose, self_compose = plds.PrivacyLossDistribution.compose, plds.PrivacyLossDistribution.self_compose

    def watched(made: Any) -> Any:
        sizes.append(made._pmf_remove.size)
        return made

    monkeypatch.setattr(plds.PrivacyLossDistribution, "compose", lambda *a: watched(compose(*a)))
    monkeypatch.setattr(plds.PrivacyLossDistribution, "self_compose", lambda *a: watched(self_compose(*a)))
    (verdict,) = [v for v in report_accountants(charges, DELTA) if v.accountant == "PLD"]
    lower = math.fsum(float(c.epsilon or 0) for c in charges)
    assert verdict.epsilon is not None and max(sizes, default=0) <= 2 * accountants.MAX_POINTS
    assert verdict.epsilon <= lower * 1.01 + 1e-6 or not lower


def test_curves_are_made_once_for_equal_mechanisms(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Counter[str] = Counter()
    build = plds.from_discrete_laplace_mechanism
    monkeypatch.setattr(plds, "from_discrete_laplace_mechanism", lambda *a, **k: made.update("1") or build(*a, **k))
    report_accountants([*LAPLACE] * 50 + GAUSSIAN * 50, DELTA)
    assert sum(made.values()) == 2
