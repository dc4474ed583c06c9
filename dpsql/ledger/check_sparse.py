"""What threshold queries and the holdout lose, worked out again for the checker.

Law: as `checker`, independent; it imports nothing of privacy.

One run ends with an answer above the threshold. What is compared moves by at most l1. So does the largest of those
below, for which the noise of the threshold makes up: l1/threshold_scale. The last one must then come out above a
threshold that has moved by l1, from a value that has moved by l1: 2 l1/query_scale. A number given with it, of noise of
its own: l1/answer_scale. Both parts are pure, so their rho is half of their square; all of it for each answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class SparseVectorRecord:
    """Answers above a threshold; `answer_scale` where numbers are given with them."""

    answers: int
    l1: int
    threshold_scale: Fraction
    query_scale: Fraction
    answer_scale: Fraction | None


def read_sparse(part: dict[str, Any]) -> SparseVectorRecord:
    """ValueError, KeyError or TypeError if it is not understood to the last name."""
    gives = {"threshold": False, "thresholdout": True}[part["kind"]]
    names = ["kind", "answers", "l1", "threshold_scale", "query_scale", *["answer_scale"] * gives]
    if part.keys() != set(names):
        raise ValueError("threshold queries have other names")
    answers, l1, threshold, query = (
        _read_sparse_figure(part[name]) for name in ("answers", "l1", "threshold_scale", "query_scale")
    )
    if answers.denominator != 1 or l1.denominator != 1:
        raise ValueError("threshold queries have no whole number where they need one")
    return SparseVectorRecord(int(answers), int(l1), threshold, query, _read_sparse_figure(part["answer_scale"]) if gives else None)


def sparse_vector_loss(sparse: SparseVectorRecord) -> tuple[Fraction, Fraction]:
    """Epsilon and rho."""
    finding = Fraction(sparse.l1) / sparse.threshold_scale + Fraction(2 * sparse.l1) / sparse.query_scale
    telling = Fraction(0) if sparse.answer_scale is None else Fraction(sparse.l1) / sparse.answer_scale
    return sparse.answers * (finding + telling), sparse.answers * (finding**2 + telling**2) / 2


def _read_sparse_figure(text: Any) -> Fraction:
    if not isinstance(text, str) or (value := Fraction(text)) <= 0:
        raise ValueError("threshold queries have no positive number where they need one")
    return value
