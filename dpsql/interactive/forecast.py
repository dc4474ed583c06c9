"""What is told of an interactive mechanism: beforehand, what it costs and how good it is; then, its answers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsql.figures import TextRepr, format_rounded_up


@dataclass(frozen=True)
class MechanismAnswer:
    """One question and what was answered: whether it was above the threshold; the noisy number given with that."""

    question: str
    above: bool
    value: Fraction | None = None


@dataclass(frozen=True)
class MechanismReply:
    """What a program is told of a question, exactly; `before` it, what those were answered that were left meanwhile."""

    told: MechanismAnswer
    before: tuple[MechanismAnswer, ...]
    left: int


@dataclass(frozen=True)
class Forecast(TextRepr):
    """What a mechanism is charged up front, and how good its answers are; nothing was asked for it.

    With the probability `confidence`, all answers to so many `questions` are right where the value is further than
    `reach` from the threshold, and all numbers that are given are within `answer_error`. The last two, and what is
    charged to a holdout that is described by its noise, are None while the sensitivity is not known. `paid`: its first
    question was asked, and nothing is charged any more. `refused`: the account's own budget does not cover it.
    """

    epsilon: Fraction | None
    rho: Fraction | None
    answers: int
    sensitivity: Fraction | None
    questions: int
    confidence: float
    reach: float | None = None
    answer_error: float | None = None
    paid: bool = False
    refused: bool = False

    def __str__(self) -> str:
        if self.epsilon is None or self.rho is None or self.sensitivity is None or self.reach is None:
            charge_line = "" if self.epsilon is None else f"charged up front: epsilon {format_rounded_up(self.epsilon)}\n"
            missing = "loss and error follow" if self.epsilon is None else "the error follows"
            return f"{charge_line}{missing} from the sensitivity: declare it, or name the first question"
        times = "time" if self.answers == 1 else "times"
        lines = [
            f"{'paid for' if self.paid else 'charged'} up front: epsilon {format_rounded_up(self.epsilon)}"
            f" (rho {format_rounded_up(self.rho)}), for {self.answers} {times} above the threshold",
            f"one unit moves a value by at most {format_rounded_up(self.sensitivity)}",
            f"of {self.questions} questions all are answered rightly, with probability {self.confidence:g}, whose value"
            f" is further than {self.reach:.3g} from the threshold",
        ]
        if self.refused:
            lines[0] += "; it would be refused: your budget does not cover it"
        if self.answer_error is not None:
            lines.append(f"numbers from the holdout are within {self.answer_error:.3g} of its means")
        return "\n".join(lines)
