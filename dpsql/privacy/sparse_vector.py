"""The sparse vector technique: of many questions, which lie above a threshold; only those that do are paid for.

Law: the only safe generic form (Dwork, Roth 2014, Algorithm 1; Lyu, Su, Li 2017 on those that are not). The threshold
has noise of its own, drawn anew after each answer above it; each question has fresh noise; no number that leaves is
made of either. Thresholdout (Dwork et al. 2015) is the same on the distance between two means, and gives the mean of
the holdout, with a third, independent draw, where that distance is above.

Privacy. All values are whole steps, STEPS of them to the sensitivity D: |floor(a) - floor(b)| <= ceil(|a - b|), so
neighbors move each by at most STEPS. Let S be STEPS, t and q the scales of the noise of threshold and question. Take a
run of answers "below" that ends with one "above", fix the noise of all questions but the last, and let g be the largest
of the others' noisy values. It comes about where g < threshold + x <= value + y. On a neighbor g moves by at most S and
the last value by at most S, so with x moved by at most S and y by at most 2 S, whole numbers, the same comes about:
    ln P/P' <= S/t + 2 S/q,
whatever the number of questions, and also where later ones are chosen by the answers before them. A run without an
"above" needs x alone. Each further "above" begins anew with a new x and is charged again; a number given with it, of
noise of scale a, costs S/a. Every part is pure, and so is its concurrent composition with all else that is asked
meanwhile: an interactive mechanism that is e-DP is an interactive post-processing of randomized response at e (Vadhan,
Wang 2021; Lyu 2022; with losses that are chosen as answers come, Haney et al. 2023), which is e^2/2-zCDP. So a part
that loses e is charged (e, e^2/2), and parts add up.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from dpsql.errors import IntegrityError, InternalError
from dpsql.privacy.loss import Loss, LossTooSmall, sum_losses
from dpsql.privacy.noise import require_positive_share, round_up_scale
from dpsql.privacy.sampling import MAX_SCALE, Sampler

SENSITIVITY_STEPS = 1 << 16
"""To the sensitivity: fine beside any noise that is worth asking for, and coarse enough for the sampler's largest."""
ANSWER_FORMAT = 1


@dataclass(frozen=True)
class SparseVector:
    """What is fixed, and charged, before the first question: noise scales are in steps, all else in values' units.

    `answers` is how many times a question may come out above. Without `answer_scale` no numbers are given.
    """

    threshold: Fraction
    sensitivity: Fraction
    answers: int
    threshold_scale: Fraction
    query_scale: Fraction
    answer_scale: Fraction | None = None

    def __post_init__(self) -> None:
        if self.sensitivity <= 0 or self.answers < 1:
            raise ValueError("a sensitivity is positive, and at least one answer is given")
        scales = [self.threshold_scale, self.query_scale, *([self.answer_scale] if self.answer_scale else [])]
        if min(scales) <= 0 or max(scales) > MAX_SCALE:
            raise LossTooSmall("a noise scale must be positive and at most 2^40 steps")

    @property
    def steps(self) -> int:
        """How far neighbors move a value."""
        return SENSITIVITY_STEPS

    @property
    def step(self) -> Fraction:
        return self.sensitivity / self.steps

    @property
    def loss(self) -> Loss:
        """The loss of all answers together (see above); it is charged before the first question."""
        parts = [SENSITIVITY_STEPS / self.threshold_scale + 2 * SENSITIVITY_STEPS / self.query_scale]
        parts += [] if self.answer_scale is None else [SENSITIVITY_STEPS / self.answer_scale]
        return sum_losses([Loss(self.answers * e, self.answers * e * e / 2, Fraction(0)) for e in parts])

    def accuracy_margin(self, questions: int, miss: float) -> float:
        """How far from the threshold a value must be for all answers to be right, but with probability `miss`.

        8 (ln k + ln(2 c / miss)) D/e for k questions, c answers and e for each (Dwork, Roth 2014, Theorems 3.24, 3.26).
        """
        return 2 * float(self.query_scale * self.step) * (math.log(questions) + math.log(2 * self.answers / miss))

    def answer_error(self, miss: float) -> float | None:
        """How far all numbers that are given are from the exact ones, but with probability `miss`."""
        if self.answer_scale is None:
            return None
        return float(self.answer_scale * self.step) * math.log(self.answers / miss)


def calibrate_above_threshold(
    threshold: Fraction, sensitivity: Fraction, epsilon: Fraction, answers: int
) -> SparseVector:
    """The least noise for so many answers above the threshold that is charged at most `epsilon` in all."""
    answer_epsilon = require_positive_share(epsilon / answers)
    scales = (
        round_up_scale(2 * SENSITIVITY_STEPS / answer_epsilon),
        round_up_scale(4 * SENSITIVITY_STEPS / answer_epsilon),
    )
    return SparseVector(threshold, sensitivity, answers, *scales)


def thresholdout_from_sigma(threshold: Fraction, sensitivity: Fraction, sigma: Fraction, overfits: int) -> SparseVector:
    """Noise of scale 2 sigma in the threshold, 4 sigma in each question, sigma in each answer (Dwork et al. 2015).

    `sensitivity` is a mean's, C/n; the loss is 2 overfits C / (n sigma) in all.
    """
    scale = sigma * SENSITIVITY_STEPS / sensitivity
    scales = (round_up_scale(2 * scale), round_up_scale(4 * scale), round_up_scale(scale))
    return SparseVector(threshold, sensitivity, overfits, *scales)


def calibrate_thresholdout(
    threshold: Fraction, sensitivity: Fraction, epsilon: Fraction, overfits: int
) -> SparseVector:
    """The same with the least sigma that is charged at most `epsilon` in all."""
    return thresholdout_from_sigma(
        threshold, sensitivity, sensitivity / require_positive_share(epsilon / (2 * overfits)), overfits
    )


@dataclass(frozen=True)
class ThresholdQuery:
    """How the engine's only cell is read: one step of it is `worth` so much, and neighbors move it by at most `l1`.

    With `beside`, its distance from that public number is what is compared.
    """

    worth: Fraction
    l1: int
    beside: Fraction | None = None

    @property
    def sensitivity(self) -> Fraction:
        return abs(self.worth) * self.l1


@dataclass(frozen=True)
class ThresholdAnswer:
    """What leaves: whether it was above, and the noisy number where one is given with that."""

    above: bool
    value: Fraction | None = None


class SparseVectorState:
    """The mechanism under way, with the threshold's noise: sealed.

    Only `privacy/release.py` may call `evaluate_exact_cell`.

    It is never stored: when the process ends, it ends. Questions have numbers, from 1, so that a copy of the process
    that goes on with the same noise finds the number taken in the ledger.
    """

    __slots__ = ("__asked", "__left", "__noise", "__sampler", "spec")

    def __init__(self, spec: SparseVector, sampler: Sampler) -> None:
        self.spec = spec
        self.__sampler = sampler
        self.__asked = 0
        self.__left = spec.answers
        self.__noise = self.__draw(spec.threshold_scale)

    @property
    def queries_evaluated(self) -> int:
        """The number of the last question that was judged."""
        return self.__asked

    def evaluate_exact_cell(self, cell: int, query: ThresholdQuery, number: int) -> ThresholdAnswer:
        """Privacy: by the claim above, for every number once, and never after the last answer."""
        spec = self.spec
        if number != self.__asked + 1 or not self.__left:
            raise InternalError("a question was asked out of turn")
        if query.sensitivity > spec.sensitivity:
            raise InternalError("a question is more sensitive than what was paid for")
        self.__asked = number
        steps = math.floor(cell * query.worth / spec.step)
        compared = steps if query.beside is None else abs(steps - math.floor(query.beside / spec.step))
        if compared + self.__draw(spec.query_scale) < math.floor(spec.threshold / spec.step) + self.__noise:
            return ThresholdAnswer(False)
        self.__left -= 1
        if self.__left:
            self.__noise = self.__draw(spec.threshold_scale)
        if spec.answer_scale is None:
            return ThresholdAnswer(True)
        return ThresholdAnswer(True, (steps + self.__draw(spec.answer_scale)) * spec.step)

    def __draw(self, scale: Fraction) -> int:
        return int(self.__sampler.laplace(1, scale)[0])

    def __repr__(self) -> str:
        return "Watch(sealed)"

    __str__ = __repr__

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise TypeError("a mechanism under way is not to be copied, stored or looked at")

    __reduce__ = __reduce_ex__ = __getstate__ = __copy__ = __deepcopy__ = _refuse_copy


def threshold_answer_to_bytes(answer: ThresholdAnswer, number: int) -> bytes:
    """As it is stored before it is delivered."""
    value = None if answer.value is None else str(answer.value)
    document = {"dpsql_answer": ANSWER_FORMAT, "number": number, "above": answer.above, "value": value}
    return json.dumps(document, separators=(",", ":")).encode()


def threshold_answer_from_bytes(data: bytes) -> ThresholdAnswer:
    """What `threshold_answer_to_bytes` wrote; IntegrityError if it did not write these bytes."""
    try:
        document = json.loads(data)
        if document["dpsql_answer"] != ANSWER_FORMAT or not isinstance(document["above"], bool):
            raise IntegrityError("the stored answer has a format that this version does not read")
        value = None if document["value"] is None else Fraction(document["value"])
        return ThresholdAnswer(document["above"], value)
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise IntegrityError("the stored answer is damaged") from error
