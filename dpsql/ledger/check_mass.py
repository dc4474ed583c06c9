"""What one unit adds to the tally of a study, and the figures of its record: see `check_studies` for the law."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

LossTriple = tuple[Fraction | None, Fraction, Fraction]
"""Epsilon, where the loss is pure; rho; delta."""


@dataclass(frozen=True)
class TallyMass:
    """What one unit adds to a study's tally: weights that sum to at most `norm`; a whole row weighs `whole`."""

    norm: int
    whole: int
    one_row: bool
    group_size: int
    change_one: bool

    @property
    def max_change(self) -> int:
        """The most that the weight of a set of tuples changes: what comes and what leaves are both at least 0."""
        return self.group_size * self.norm

    @property
    def sides(self) -> int:
        return 2 if self.change_one else 1


def read_mass(part: dict[str, Any]) -> TallyMass:
    if part.keys() != {"norm", "whole", "one_row", "group_size", "change_one"}:
        raise ValueError("a mass has other names")
    norm, whole, group_size = (read_positive_integer(part[name]) for name in ("norm", "whole", "group_size"))
    if not isinstance(part["one_row"], bool) or not isinstance(part["change_one"], bool):
        raise ValueError("a mass has a figure where it needs true or false")
    if part["one_row"] and norm != whole:
        raise ValueError("one row weighs what a whole row weighs")
    return TallyMass(norm, whole, part["one_row"], group_size, part["change_one"])


def read_positive_integer(text: Any) -> int:
    """A whole number above 0, in decimal text."""
    if not isinstance(text, str) or (value := Fraction(text)) < 1 or value.denominator != 1:
        raise ValueError("a figure of the record is no positive whole number")
    return value.numerator


def read_positive_fraction(text: Any) -> Fraction:
    """A number above 0, in decimal text."""
    if not isinstance(text, str) or (value := Fraction(text)) <= 0:
        raise ValueError("a figure of the record is no positive number")
    return value
