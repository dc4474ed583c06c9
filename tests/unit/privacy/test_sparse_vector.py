"""Threshold queries and the holdout: what they cost, what they say without noise, and that they are sealed."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

from dpsql.errors import IntegrityError, InternalError
from dpsql.ledger.loss_checker.checker import UnreadableRecord, covers_loss, recompute_loss
from dpsql.privacy.audit_record import write_sparse_vector_record
from dpsql.privacy.exact import Exact
from dpsql.privacy.loss import LossTooSmall
from dpsql.privacy.release import evaluate_threshold_query
from dpsql.privacy.sparse_vector import (
    SENSITIVITY_STEPS,
    SparseVector,
    SparseVectorState,
    ThresholdAnswer,
    ThresholdQuery,
    calibrate_above_threshold,
    calibrate_thresholdout,
    threshold_answer_from_bytes,
    threshold_answer_to_bytes,
    thresholdout_from_sigma,
)
from dpsql.session.mechanisms.interaction import MeasuredQuestion
from tests.support.loss_checker import agree
from tests.support.shop import Silence

COUNT = ThresholdQuery(F(1), 1)
SPECS = [
    calibrate_above_threshold(F(100), F(1), F(1), 1),
    calibrate_above_threshold(F(-3, 7), F(5, 3), F(1, 10), 7),
    calibrate_above_threshold(F(10**6), F(8 * 5000), F(10), 3),
    thresholdout_from_sigma(F(1, 25), F(1, 10_000), F(1, 50), 10),
    calibrate_thresholdout(F(1, 25), F(3, 1000), F(1, 3), 4),
]


def one(cell: int) -> Exact:
    return Exact([()], [np.array([cell], np.int64)])


def test_the_known_answer_of_thresholdout() -> None:
    """n = 10,000, B = 10, sigma = 0.02: epsilon 2 B / (sigma n) = 0.1."""
    spec = thresholdout_from_sigma(F(4, 100), F(1, 10_000), F(2, 100), 10)
    assert spec.loss.epsilon is not None and abs(spec.loss.epsilon - F(1, 10)) < F(1, 1 << 78)
    scales = (spec.threshold_scale, spec.query_scale, spec.answer_scale)
    assert scales == tuple(times * F(2, 100) / spec.step for times in (2, 4, 1))
    same = calibrate_thresholdout(F(4, 100), F(1, 10_000), F(1, 10), 10)
    assert float(same.answer_scale or 0) == pytest.approx(float(scales[2] or 0))


def test_the_noise_of_the_textbook() -> None:
    """Dwork, Roth 2014, Algorithm 1: 2 D/epsilon and 4 D/epsilon; of c answers each has epsilon/c."""
    spec = calibrate_above_threshold(F(100), F(3), F(1, 2), 1)
    assert (spec.threshold_scale * spec.step, spec.query_scale * spec.step) == (12, 24)
    several = calibrate_above_threshold(F(100), F(3), F(2), 4)
    assert (several.threshold_scale, several.query_scale) == (spec.threshold_scale, spec.query_scale)
    assert several.loss.epsilon == 2 and several.loss.rho == 4 * F(1, 8)


def test_the_reported_error() -> None:
    """8 (ln k + ln(2/beta)) D/epsilon."""
    spec = calibrate_above_threshold(F(100), F(1), F(1), 1)
    assert spec.accuracy_margin(100, 0.05) == pytest.approx(8 * (4.60517 + 3.688879), rel=1e-6)
    assert spec.answer_error(0.05) is None
    assert SPECS[3].answer_error(0.05) == pytest.approx(0.02 * 5.298317, rel=1e-6)


@pytest.mark.parametrize("epsilon", [F(1), F(1, 3), F(7, 1000)])
@pytest.mark.parametrize("answers", [1, 3])
def test_no_more_is_charged_than_was_requested(epsilon: F, answers: int) -> None:
    for spec in (
        calibrate_above_threshold(F(1), F(1), epsilon, answers),
        calibrate_thresholdout(F(1), F(1), epsilon, answers),
    ):
        assert spec.loss.epsilon is not None and epsilon * F(999, 1000) < spec.loss.epsilon <= epsilon


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(LossTooSmall):
        calibrate_above_threshold(F(1), F(1), F(1, 1 << 40), 1)
    with pytest.raises(ValueError, match="positive"):
        calibrate_above_threshold(F(1), F(0), F(1), 1)


# --- the checker -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_the_checker_comes_to_the_same(spec: SparseVector) -> None:
    lost = recompute_loss(write_sparse_vector_record(spec))
    agree(spec.loss, lost)
    assert lost.delta == 0
    less = replace(spec, answers=spec.answers + 1)
    assert not covers_loss(spec.loss, recompute_loss(write_sparse_vector_record(less)))
    for name in ("threshold_scale", "query_scale", *(["answer_scale"] if spec.answer_scale else [])):
        weaker = replace(spec, **{name: getattr(spec, name) / 2})
        assert not covers_loss(spec.loss, recompute_loss(write_sparse_vector_record(weaker)))


def test_a_record_that_is_not_understood_is_not_vouched_for() -> None:
    record = write_sparse_vector_record(SPECS[3])
    for old, new in (
        ("thresholdout", "threshold"), ('"answers":"10"', '"answers":"1/2"'), ('"l1"', '"l2"'),
        ('"answers":"10"', '"answers":10'), ("thresholdout", "other"),
    ):  # fmt: skip
        assert old in record
        with pytest.raises(UnreadableRecord):
            recompute_loss(record.replace(old, new))


# --- what it says ----------------------------------------------------------------------------------------------------


def test_without_noise_it_compares() -> None:
    watch = SparseVectorState(calibrate_above_threshold(F(10), F(1), F(1), 2), Silence())
    said = [evaluate_threshold_query(one(cell), COUNT, watch, number) for number, cell in enumerate((9, 10, 3, 11), 1)]
    assert [verdict.above for verdict in said] == [False, True, False, True]
    assert all(verdict.value is None for verdict in said)


def test_without_noise_the_holdout_gives_its_mean_where_it_is_far_off() -> None:
    watch = SparseVectorState(thresholdout_from_sigma(F(1, 10), F(1, 100), F(1, 20), 2), Silence())
    asked = [(50, F(1, 2)), (50, F(13, 20)), (50, F(7, 20))]
    said = [
        evaluate_threshold_query(one(cell), ThresholdQuery(F(1, 100), 1, mean), watch, n)
        for n, (cell, mean) in enumerate(asked, 1)
    ]
    assert [verdict.above for verdict in said] == [False, True, True]
    assert said[0].value is None and all(abs(verdict.value - F(1, 2)) <= watch.spec.step for verdict in said[1:])


def test_every_question_has_its_turn_once() -> None:
    watch = SparseVectorState(calibrate_above_threshold(F(10), F(1), F(1), 1), Silence())
    evaluate_threshold_query(one(1), COUNT, watch, 1)
    for number in (0, 1, 3):
        with pytest.raises(InternalError, match="out of turn"):
            evaluate_threshold_query(one(1), COUNT, watch, number)
    assert watch.queries_evaluated == 1 and evaluate_threshold_query(one(10), COUNT, watch, 2).above
    with pytest.raises(InternalError, match="out of turn"):
        evaluate_threshold_query(one(10), COUNT, watch, 3)


@pytest.mark.parametrize(
    "further", [ThresholdQuery(F(1), 2), ThresholdQuery(F(2), 1), ThresholdQuery(F(-2), 1), ThresholdQuery(F(-1), 2)]
)
def test_a_question_that_moves_further_is_not_judged(further: ThresholdQuery) -> None:
    watch = SparseVectorState(calibrate_above_threshold(F(10), F(1), F(1), 1), Silence())
    with pytest.raises(InternalError, match="more sensitive"):
        evaluate_threshold_query(one(1), further, watch, 1)
    assert further.sensitivity == MeasuredQuestion("", further.worth, further.l1).sensitivity == 2
    assert watch.queries_evaluated == 0 and evaluate_threshold_query(
        one(11), ThresholdQuery(F(-1), 1), watch, 1
    ) == ThresholdAnswer(False)


@pytest.mark.parametrize("exact", [Exact([("f",)], [np.ones(1, np.int64)]), Exact([()], [np.ones(1, np.int64)] * 2),
                                   Exact([], [np.zeros(0, np.int64)])])  # fmt: skip
def test_other_cells_than_one_are_not_judged(exact: Exact) -> None:
    with pytest.raises(InternalError, match="other cells"):
        evaluate_threshold_query(exact, COUNT, SparseVectorState(SPECS[0], Silence()), 1)


class Loud(Silence):
    def laplace(self, n: int, scale: F) -> Any:
        return np.full(n, 41_778_113, np.int64)


@pytest.mark.parametrize("use", [pickle.dumps, copy.copy, copy.deepcopy, vars, lambda x: x.__reduce__(),
                                 lambda x: x.__getstate__(), lambda x: x._Watch__seen])  # fmt: skip
def test_a_mechanism_under_way_is_sealed(use: Callable[[Any], Any]) -> None:
    watch = SparseVectorState(SPECS[0], Loud())
    assert "41778113" not in f"{watch} {watch!r} {[watch]}"
    with pytest.raises((TypeError, AttributeError)):
        use(watch)


def test_what_is_stored_is_read_back() -> None:
    for verdict in (ThresholdAnswer(False), ThresholdAnswer(True), ThresholdAnswer(True, F(22, 7))):
        assert threshold_answer_from_bytes(threshold_answer_to_bytes(verdict, 3)) == verdict
    for damaged in (b"", b"{}", b'{"dpsql_answer":2}', b'{"dpsql_answer":1,"number":1,"above":1,"value":null}'):
        with pytest.raises(IntegrityError):
            threshold_answer_from_bytes(damaged)


def test_a_step_is_small_beside_the_least_useful_noise() -> None:
    assert calibrate_above_threshold(F(1), F(1), F(20), 1).threshold_scale > SENSITIVITY_STEPS / 11
