"""The forecast of an interactive mechanism: cost and accuracy; and its answers as rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from dpsql.amounts import TextRepr, format_rounded_up
from dpsql.errors import InvalidParameter


@dataclass(frozen=True)
class MechanismAnswer:
    """One question and what was answered: whether it was above the threshold; the noisy number given with that."""

    question: str
    above: bool
    value: Fraction | None = None


@dataclass(frozen=True)
class MechanismReply:
    """The exact answer to a question, for a program; `before` it, answers to questions that were left meanwhile. Named
    as `ASK (FORMAT JSON)` writes it."""

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
    `chooses_rows`: the first question buys a histogram of units, which chooses how many rows a unit counts for.
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
    chooses_rows: bool = False

    def __str__(self) -> str:
        if self.epsilon is None or self.rho is None or self.sensitivity is None or self.reach is None:
            charge_line = (
                "" if self.epsilon is None else f"charged up front: epsilon {format_rounded_up(self.epsilon)}\n"
            )
            missing = "loss and error follow" if self.epsilon is None else "the error follows"
            if self.chooses_rows:
                part = "some epsilon more" if self.epsilon is None else "a part of it"
                return (
                    f"{charge_line}{part} buys a histogram of units first, which chooses how many rows one unit counts "
                    f"for; {missing} from that.\nTo choose yourself, for free: declare the sensitivity, or "
                    "SET contributions.rows"
                )
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


# Exact numbers as text, and as analysts give them.

Number = int | float | str | Decimal | Fraction

_NUMBER_TEXT = re.compile(
    r"[+-]?(?:\d{1,1000}(?:\.\d{0,1000})?|\.\d{1,1000})(?:[eE][+-]?\d{1,3})?|[+-]?\d{1,4000}/\d{1,4000}", re.ASCII
)
"""Not what Fraction reads: that "1e999999999" has a billion digits, and a server would write them down."""


def format_fraction(value: Fraction) -> str:
    """As a decimal where it is one, else as a fraction.

    >>> format_fraction(Fraction(1, 25)), format_fraction(Fraction(1000)), format_fraction(Fraction(1, 3))
    ('0.04', '1000', '1/3')
    """
    twos_and_fives = value.denominator
    for prime in (2, 5):
        while twos_and_fives % prime == 0:
            twos_and_fives //= prime
    if twos_and_fives != 1 or value.denominator > 10**15:
        return str(value)
    return f"{Decimal(value.numerator) / Decimal(value.denominator):f}"


def parse_fraction(name: str, value: Number) -> Fraction:
    """The number that Python prints: 0.1 is a tenth.

    >>> parse_fraction("epsilon", 0.1), parse_fraction("epsilon", "1e-3")
    (Fraction(1, 10), Fraction(1, 1000))
    """
    try:
        if isinstance(value, bool):
            raise ValueError
        if isinstance(value, int | Fraction | Decimal):
            return Fraction(value)
        text = str(value).strip()
        if not _NUMBER_TEXT.fullmatch(text):
            raise ValueError
        return Fraction(text)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise InvalidParameter(f"{name} must be a number", hint="For example: 0.5") from None
