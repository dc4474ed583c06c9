"""The checker agrees with every charge that calibration makes, and with none that is too small."""

import ast
import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dpsql.compiler.calibrate.calibrate import CalibratedPlan, NoiseKind
from dpsql.compiler.compile import Settings, compile_query
from dpsql.ledger.loss_checker import checker
from dpsql.ledger.loss_checker import checker as series
from dpsql.ledger.loss_checker.checker import (
    LossFigures,
    UnreadableRecord,
    add_losses,
    covers_loss,
    discrete_gaussian_tail,
    discrete_laplace_tail,
    exceeds_loss,
    recompute_loss,
    truncated_laplace_tail,
)
from dpsql.privacy import partition_selection
from dpsql.privacy.audit_record import NoisedColumns, write_release_record
from dpsql.privacy.exponential import (
    ChangedElements,
    ExtremeTarget,
    Rank,
    UnitContribution,
    calibrate_picks_by_epsilon,
    calibrate_picks_by_rho,
    picks_loss,
)
from dpsql.privacy.loss import Loss, LossTooSmall, epsilon_to_rho, sum_losses
from dpsql.privacy.noise import Sensitivity, calibrate_gaussian, calibrate_laplace, noise_loss, scale_from_square
from dpsql.privacy.partition_selection import KeyReach, Selection
from dpsql.privacy.score_selection import (
    CellMoves,
    PosteriorDraws,
    Ranking,
    Scores,
    calibrate_scale_by_epsilon,
    calibrate_scale_by_rho,
    penalty_span,
    score_loss,
)
from dpsql.schema.model import Resolved
from tests.support import loss_checker

PACKAGE = Path(checker.__file__).parent.parent


def edited(record: str, *path: str | int, to: Any) -> str:
    document = json.loads(record)
    part = document
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = to(part[path[-1]]) if callable(to) else to
    return json.dumps(document)


def times(factor: F) -> Any:
    return lambda text: str(F(text) * factor)


def more(units: int) -> Any:
    return lambda text: str(int(text) + units)


def agree(charged: Loss, record: str) -> None:
    loss_checker.agree(charged, recompute_loss(record))


def caught(charged: Loss, record: str) -> None:
    assert not covers_loss(charged, recompute_loss(record))


# --- every mechanism -------------------------------------------------------------------------------------------------

epsilons = st.fractions(F(1, 10**4), F(20), max_denominator=10**6)
rhos = st.fractions(F(1, 10**7), F(10), max_denominator=10**9)
deltas = st.integers(2, 14).map(lambda e: F(1, 10**e))
shifts = st.integers(0, 24)
relations = st.booleans()
sizes = st.integers(1, 4)


@st.composite
def sensitivities(draw: st.DrawFn) -> Sensitivity:
    linf = draw(st.integers(1, 1 << draw(shifts)))
    cells = draw(st.integers(1, 50))
    return Sensitivity(linf * cells, linf * linf * draw(st.integers(1, cells)), linf)


@st.composite
def chosen(draw: st.DrawFn) -> Selection:
    """Any kind of selection, calibrated to (rho, delta); not only the one that needs the fewest units."""
    reach = KeyReach(draw(st.integers(1, 300)), draw(sizes), draw(relations))
    rho, delta = draw(rhos), draw(deltas)
    make = draw(st.sampled_from(["optimal", "laplace", "gaussian", "weighted"]))
    if make in ("optimal", "laplace"):
        rho = scale_from_square(reach.l2_squared / (2 * rho))
    made: Selection = getattr(partition_selection, f"_calibrate_{make}")(rho, delta, reach)
    return made


@given(sensitivities(), epsilons)
def test_laplace_noise(moved: Sensitivity, epsilon: F) -> None:
    try:
        mechanism = calibrate_laplace(moved, epsilon)
    except LossTooSmall:
        return
    charged, record = noise_loss(mechanism, moved), write_release_record([NoisedColumns(1, moved, mechanism)])
    agree(charged, record)
    caught(charged, edited(record, "bundles", 0, "scale", to=times(F(99, 100))))
    caught(charged, edited(record, "bundles", 0, "l1", to=more(1)))
    caught(charged, edited(record, "bundles", 0, "kind", to="gaussian"))


@given(sensitivities(), rhos)
def test_gaussian_noise(moved: Sensitivity, rho: F) -> None:
    try:
        mechanism = calibrate_gaussian(moved, rho)
    except LossTooSmall:
        return
    charged, record = noise_loss(mechanism, moved), write_release_record([NoisedColumns(2, moved, mechanism)])
    agree(charged, record)
    caught(charged, edited(record, "bundles", 0, "scale", to=times(F(99, 100))))
    caught(charged, edited(record, "bundles", 0, "l2_squared", to=more(1 + moved.l2_squared // 1000)))


@given(chosen())
def test_selections(selection: Selection) -> None:
    charged, record = selection.loss, write_release_record([], selection)
    agree(charged, record)
    caught(charged, edited(record, "selection", "scale", to=times(F(99, 100))))
    caught(charged, edited(record, "selection", "group_size", to=more(1)))
    if not selection.weighted:  # of weights, one key may be the worst, however many there can be
        caught(charged, edited(record, "selection", "l0", to=times(F(2))))
    if json.loads(record)["selection"]["limit"] != "1":
        caught(charged, edited(record, "selection", "limit", to=lambda limit: str(int(limit) * 97 // 100)))
    if not selection.reach.change_one:
        caught(charged, edited(record, "selection", "change_one", to=True))


@settings(max_examples=40)
@given(epsilons, rhos, deltas, st.integers(1, 100), sizes, relations)
def test_selections_that_calibration_prefers(
    epsilon: F, rho: F, delta: F, l0: int, group_size: int, change_one: bool
) -> None:
    how: dict[str, Any] = {"l0": l0, "group_size": group_size, "change_one": change_one}
    for selection in (
        partition_selection.calibrate_selection_by_rho(rho, delta, **how),
        partition_selection.calibrate_selection_by_epsilon(epsilon, delta, delta, **how),
    ):
        agree(selection.loss, write_release_record([], selection))


@given(
    st.lists(st.one_of(st.fractions(F(1, 100), F(99, 100), max_denominator=100).map(Rank),
                       st.booleans().map(ExtremeTarget)), min_size=1, max_size=4),
    st.builds(UnitContribution, st.integers(1, 1 << 22), relations, relations, sizes, relations),
    st.integers(1, 1 << 20), epsilons, rhos, st.booleans(),
)  # fmt: skip
def test_picks(
    targets: list[Rank | ExtremeTarget], weights: UnitContribution, bins: int, epsilon: F, rho: F, pure: bool
) -> None:
    if pure and (weights.summed or weights.single):
        picks = calibrate_picks_by_epsilon(tuple(targets), weights, bins, epsilon)
    else:
        picks = calibrate_picks_by_rho(tuple(targets), weights, bins, rho)
    charged, record = picks_loss(picks, weights), write_release_record([], None, picks, weights)
    agree(charged, record)
    caught(charged, edited(record, "picks", -1, "scale", to=times(F(99, 100))))
    caught(charged, edited(record, "weights", "norm", to=more(1)))
    caught(charged, edited(record, "weights", "group_size", to=more(1)))
    rank = next((n for n, target in enumerate(targets) if isinstance(target, Rank)), None)
    if not weights.change_one and not (weights.single and rank is None):
        caught(charged, edited(record, "weights", "change_one", to=True))
    if rank is not None and not (weights.change_one and weights.single):
        caught(charged, edited(record, "picks", rank, to=lambda pick: {**pick, "target": "max", "at": "7"}))


@given(
    st.one_of(st.just(Rank(F(1, 2))), st.booleans().map(ExtremeTarget)),
    st.builds(ChangedElements, sizes, sizes, relations),
    rhos,
)
def test_picks_among_blocks(target: Rank | ExtremeTarget, weights: ChangedElements, rho: F) -> None:
    """Elements that only take other values; under change_one that of another unit as well."""
    for picks in (
        calibrate_picks_by_rho((target,), weights, 100, rho),
        calibrate_picks_by_epsilon((target,), weights, 100, rho),
    ):
        charged, record = picks_loss(picks, weights), write_release_record([], None, picks, weights)
        agree(charged, record)
        caught(charged, edited(record, "weights", "groups", to=more(1)))
        if not weights.change_one:
            caught(charged, edited(record, "weights", "change_one", to=True))


@given(
    st.builds(CellMoves, sensitivities(), relations, relations, sizes, relations),
    st.integers(1, 20), st.sampled_from(["exponential", "flip", "posterior"]), epsilons, rhos,
)  # fmt: skip
def test_scores(moves: CellMoves, rounds: int, kind: str, epsilon: F, rho: F) -> None:
    width = penalty_span(50) if kind == "posterior" else 1
    if kind == "flip":
        scale = calibrate_scale_by_epsilon(rounds, width, moves, epsilon)
    else:
        scale = calibrate_scale_by_rho(rounds, width, moves, rho)
    scores: Scores = Ranking(scale, rounds, kind == "flip", 0)
    if kind == "posterior":
        scores = PosteriorDraws(scale, rounds, 50, F(1), F(1), 1)
    charged, record = score_loss(scores, moves), write_release_record([], scores=(scores, moves))
    agree(charged, record)
    caught(charged, edited(record, "scores", "scale", to=times(F(99, 100))))
    caught(charged, edited(record, "scores", "rounds", to=more(1)))
    if not moves.single:
        caught(charged, edited(record, "scores", "l1", to=more(1 + moves.norms.l1 // 1000)))
    if moves.is_one_sided and 2 * moves.norms.l2_squared < moves.norms.l1**2 and not moves.single:
        caught(charged, edited(record, "scores", "change_one", to=True))
        caught(charged, edited(record, "scores", "non_negative", to=False))
    if kind == "exponential":
        caught(charged, edited(record, "scores", "kind", to="flip"))
    if kind == "posterior":
        caught(charged, edited(record, "scores", "first", to="49"))


@given(st.lists(sensitivities(), max_size=3), chosen(), rhos)
def test_the_mechanisms_of_a_release_add_up(moved: list[Sensitivity], selection: Selection, rho: F) -> None:
    try:
        bundles = [NoisedColumns(1, each, calibrate_gaussian(each, rho)) for each in moved]
    except LossTooSmall:
        return
    charged = sum_losses([selection.loss, *(noise_loss(each.mechanism, each.sensitivity) for each in bundles)])
    record = write_release_record(bundles, selection)
    agree(charged, record)
    caught(Loss(charged.epsilon, charged.rho * F(99, 100), charged.delta), record)
    caught(Loss(charged.epsilon, charged.rho, charged.delta * F(9, 10)), record)


# --- statements ------------------------------------------------------------------------------------------------------

CLINIC = [
    "SELECT COUNT(*) FROM visits",
    "SELECT kind, COUNT(*), AVG(cost), SUM(paid), COUNT(score), STDDEV(cost) FROM visits GROUP BY kind",
    "SELECT ward, COUNT(*), COUNT(DISTINCT patient_id) FROM visits GROUP BY ward",
    "SELECT ward, kind, SUM(cost) FROM visits GROUP BY ROLLUP (ward, kind)",
    "SELECT DISTINCT ward FROM visits",
    "SELECT kind, MEDIAN(cost), MIN(cost), MAX(cost), QUANTILE_CONT(cost, 0.9) FROM visits GROUP BY kind",
    "SELECT MEDIAN(cost) FROM visits",
]


@pytest.mark.parametrize("noise", list(NoiseKind))
@pytest.mark.parametrize("epsilon", [F(1, 100), F(1), F(9)])
@pytest.mark.parametrize("sql", CLINIC)
def test_what_statements_are_charged(sql: str, epsilon: F, noise: NoiseKind, clinic: Resolved) -> None:
    for step in compile_query(sql, clinic, Settings(epsilon, F(1, 10**7), 8, 4, noise)).steps:
        agree(step.calibrated.loss, step.calibrated.record)
        if step.calibrated.loss.rho:  # the public groups of a choice are a step that loses nothing
            caught(cut(step.calibrated.loss), step.calibrated.record)


def cut(charged: Loss) -> Loss:
    return Loss(charged.epsilon, charged.rho * F(999, 1000), charged.delta)


@pytest.mark.parametrize("noise", list(NoiseKind))
@pytest.mark.parametrize("schema", ["schema", "survey", "rows"])
def test_under_every_neighboring_relation(schema: str, noise: NoiseKind, resolved: Any) -> None:
    """The survey changes one person for another, two at once; in `rows` each row is a unit."""
    opened = resolved(schema)
    for table in opened.schema.tables:
        if table.public:
            continue
        sql = f'SELECT COUNT(*) FROM "{table.name}"'
        for step in compile_query(sql, opened, Settings(F(1, 2), F(1, 10**7), 8, 4, noise)).steps:
            agree(step.calibrated.loss, step.calibrated.record)


def test_a_record_of_a_median_has_its_weights(clinic: Resolved) -> None:
    sql = "SELECT MEDIAN(cost) FROM visits"
    (step,) = compile_query(sql, clinic, Settings(F(1), F(1, 10**7), 8, 4, NoiseKind.LAPLACE)).steps
    calibrated: CalibratedPlan = step.calibrated
    assert json.loads(calibrated.record)["weights"] == {
        "norm": str(8 << 16), "summed": True, "single": True, "group_size": "1", "change_one": False,
    }  # fmt: skip


def test_the_text_is_canonical_and_short() -> None:
    moved = Sensitivity(6, 12, 2)
    record = write_release_record([NoisedColumns(2, moved, calibrate_gaussian(moved, F(1, 200)))])
    assert record == (
        '{"bundles":[{"cells":"2","kind":"gaussian","l1":"6","l2_squared":"12","linf":"2",'
        '"scale":"36323739/1048576"}],"mechanisms":1}'
    )


# --- what covers -----------------------------------------------------------------------------------------------------


def test_what_covers_what() -> None:
    lost = LossFigures(F(1), F(1, 2), F(1, 100))
    assert covers_loss(LossFigures(F(1), F(1, 2), F(1, 100)), lost)
    assert covers_loss(LossFigures(None, F(1, 2), F(1, 100)), lost)
    assert not covers_loss(LossFigures(F(1), F(1, 2), F(0)), replace(lost, epsilon=None))  # called pure, and it is not
    for name in ("epsilon", "rho", "delta"):
        assert not covers_loss(replace(lost, **{name: getattr(lost, name) * F(999_999, 1_000_000)}), lost)
        assert exceeds_loss(replace(lost, **{name: getattr(lost, name) * F(21, 10)}), lost)
    assert covers_loss(replace(lost, delta=F(1, 100) * (1 - F(1, 10**10))), lost)  # the series are that much off


@pytest.mark.parametrize("epsilon", [F(1, 100), F(1), F(20)])
def test_an_epsilon_beside_gaussian_noise_is_converted_with_the_delta_beyond_the_selection(epsilon: F) -> None:
    conversion, selecting = F(9, 10**7), F(1, 10**7)
    rho = epsilon_to_rho(epsilon, conversion)
    lost = add_losses([LossFigures(F(2), F(1, 2), F(0)), LossFigures(None, rho, selecting)])
    charged = LossFigures(2 + epsilon, F(1, 2) + rho, selecting + conversion)
    assert covers_loss(charged, lost)
    assert not covers_loss(replace(charged, epsilon=2 + epsilon * F(999, 1000)), lost)
    assert not covers_loss(replace(charged, delta=selecting + conversion / 2), lost)
    assert not covers_loss(replace(charged, delta=selecting), lost)  # nothing is left for the conversion


@pytest.mark.parametrize(
    "record",
    [
        "", "[]", "{}", "null", '{"mechanisms":2}', '{"mechanisms":1,"tails":[]}', '{"mechanisms":1,"bundles":[{}]}',
        '{"mechanisms":1,"bundles":[{"cells":"1","kind":"cauchy","l1":"1","l2_squared":"1","linf":"1","scale":"1"}]}',
        '{"mechanisms":1,"bundles":[{"cells":"1","kind":"laplace","l1":"1","l2_squared":"1","linf":"1","scale":"0"}]}',
        '{"mechanisms":1,"bundles":[{"cells":"1","kind":"laplace","l1":1,"l2_squared":"1","linf":"1","scale":"1"}]}',
        '{"mechanisms":1,"bundles":[{"cells":"1","kind":"laplace","l1":"1/2","l2_squared":"1","linf":"1","scale":"1"}]}',
        '{"mechanisms":1,"bundles":[{"cells":"1","kind":"laplace","l1":"1","l2_squared":"1","scale":"1"}]}',
        '{"mechanisms":1,"picks":[{"at":"1/2","scale":"3","target":"rank"}]}',
        '{"mechanisms":1,"weights":{"norm":"1","summed":true,"single":true,"group_size":"1","change_one":false}}',
    ],
)  # fmt: skip
def test_what_is_not_known_is_not_vouched_for(record: str) -> None:
    with pytest.raises(UnreadableRecord):
        recompute_loss(record)


def test_no_mechanism_loses_nothing() -> None:
    assert recompute_loss('{"mechanisms":1}') == LossFigures(F(0), F(0), F(0))


CHECKER = PACKAGE / "ledger" / "loss_checker"
INDEPENDENT = sorted(path.stem for path in CHECKER.glob("*.py"))


@pytest.mark.parametrize("name", INDEPENDENT)
def test_it_shares_no_arithmetic_with_what_it_checks(name: str) -> None:
    tree = ast.parse((CHECKER / f"{name}.py").read_text(encoding="utf-8"))
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    own = [module for module in modules if module and module.startswith("dpsql")]
    assert [module for module in own if module.removeprefix("dpsql.ledger.loss_checker.") not in INDEPENDENT] == []


# --- the mathematics -------------------------------------------------------------------------------------------------


def pmf(weight: Any, reach: int) -> dict[int, Decimal]:
    with localcontext() as context:
        context.prec = 40
        weights = {x: weight(x) for x in range(-reach, reach + 1)}
        whole = sum(weights.values())
        return {x: value / whole for x, value in weights.items()}


def close(a: F, b: Decimal | float, relative: float = 1e-12) -> bool:
    return math.isclose(float(a), float(b), rel_tol=relative)


@pytest.mark.parametrize("scale", [F(1, 3), F(2), F(17, 2)])
def test_laplace_tails_by_summing(scale: F) -> None:
    def weight(x: int) -> Decimal:
        return (-abs(x) / (Decimal(scale.numerator) / scale.denominator)).exp()

    whole, cut = pmf(weight, 700), pmf(weight, 9)
    for m in range(-12, 40):
        assert close(discrete_laplace_tail(scale, m), sum(p for x, p in whole.items() if x >= m))
        assert close(truncated_laplace_tail(scale, 9, m), sum(p for x, p in cut.items() if x >= m))


@pytest.mark.parametrize("sigma", [F(1, 4), F(1), F(5, 2), F(30)])
def test_gaussian_tails_by_summing(sigma: F) -> None:
    s = Decimal(sigma.numerator) / sigma.denominator
    whole = pmf(lambda x: (-(x * x) / (2 * s * s)).exp(), int(16 * sigma) + 8)
    for m in (-3, 0, 1, 2, 7, int(4 * sigma) + 1, int(9 * sigma) + 1):
        assert close(discrete_gaussian_tail(sigma, m), sum((p for x, p in whole.items() if x >= m), Decimal(0)), 1e-11)


@pytest.mark.parametrize("z", [0.001, 0.5, 2.0, 2.9, 3.1, 6.0, 12.0])
def test_the_wide_gaussian_meets_the_narrow_and_the_normal(z: float, monkeypatch: pytest.MonkeyPatch) -> None:
    sigma = F(2000)
    m = max(1, int(z * 2000))
    smooth = discrete_gaussian_tail(sigma, m)
    monkeypatch.setattr(series, "_MAX_SUMMED_SIGMA", 1 << 20)
    assert close(smooth, float(discrete_gaussian_tail(sigma, m)), 1e-10)
    assert close(discrete_gaussian_tail(F(1 << 40), int(z * (1 << 40))), float(norm.sf(z)), 1e-9)


def moves(most: int, largest: int) -> Iterator[tuple[int, ...]]:
    """The ways to spread at most `most` over keys, at most `largest` on each, largest first."""
    yield ()
    for head in range(1, min(most, largest) + 1):
        for rest in moves(most - head, head):
            yield (head, *rest)


@pytest.mark.parametrize(("l0", "k"), list(itertools.product((1, 2, 3), (1, 2, 3))))
@pytest.mark.parametrize("kind", ["laplace", "gaussian", "truncated"])
def test_no_way_to_spread_keys_shows_more(kind: str, l0: int, k: int) -> None:
    """All ways to spread what k units have over keys, summed one by one; the figure is attained, and not passed."""
    scale, limit = F(2), 9
    record = {"kind": kind, "scale": "2", "limit": "9", "l0": str(l0), "group_size": str(k), "change_one": False}
    lost = recompute_loss(json.dumps({"mechanisms": 1, "selection": record}))
    tail = {"laplace": discrete_laplace_tail, "gaussian": discrete_gaussian_tail}.get(
        kind, lambda s, m: truncated_laplace_tail(s, limit, m)
    )
    worst = max(sum((tail(scale, limit - v + 1) for v in way), F(0)) for way in moves(k * l0, k))
    assert close(lost.delta, float(min(F(1), worst)))


@pytest.mark.parametrize("l0", [1, 2, 5])
def test_no_spread_of_weights_shows_more(l0: int) -> None:
    """One unit with t keys, for every t."""
    sigma, limit, one = F(100_000), 500_000, 1 << 16
    record = {"kind": "weighted", "scale": str(sigma), "limit": str(limit), "l0": str(l0), "group_size": "1",
              "change_one": False, "weight": str(one)}  # fmt: skip
    lost = recompute_loss(json.dumps({"mechanisms": 1, "selection": record}))
    worst = max(t * discrete_gaussian_tail(sigma, limit + 1 - int(one / math.sqrt(t))) for t in range(1, l0 + 1))
    assert close(lost.delta, float(worst)) and lost.rho == F(one**2, 2 * sigma**2)


@pytest.mark.parametrize(
    ("at", "change_one", "single"),
    list(itertools.product((F(1, 2), F(9, 10)), (False, True), (False, True))),
)
def test_no_move_of_weights_moves_scores_further(at: F, change_one: bool, single: bool) -> None:
    """Scores at every place of two blocks, for rows of one unit that come (and of one that leave), tried one by one."""
    norm, blocks, places = 4, 1 if single else 2, 3
    record = {"mechanisms": 1, "picks": [{"target": "rank", "at": str(at), "scale": "1"}], "weights": {
        "norm": str(norm), "summed": True, "single": single, "group_size": "1", "change_one": change_one}}  # fmt: skip
    lost = recompute_loss(json.dumps(record))
    units = [way for way in itertools.product(range(norm + 1), repeat=blocks * places) if sum(way) <= norm]
    corners = [way for way in units if sum(way) in (0, norm) and max(way) in (0, norm)]

    def sides(way: tuple[int, ...], block: int, place: int) -> tuple[F, F]:
        rows = way[block * places : (block + 1) * places]
        below, upto, level = sum(rows[:place]), sum(rows[: place + 1]), at * sum(rows)
        return below - level, level - upto

    summed, squared = F(0), F(0)
    for come, leave in itertools.product(units, corners if change_one else [(0,) * (blocks * places)]):
        moved = [
            max(abs(a - b) for place in range(places)
                for a, b in zip(sides(come, block, place), sides(leave, block, place), strict=True))
            for block in range(blocks)
        ]  # fmt: skip
        summed, squared = max(summed, sum(moved, F(0))), max(squared, sum((d * d for d in moved), F(0)))
    assert lost.epsilon is not None
    assert lost.epsilon == 2 * summed  # attained
    assert squared / 2 <= lost.rho  # an L2 norm of 4 allows more than a sum of 4
