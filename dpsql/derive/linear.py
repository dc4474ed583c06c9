"""Cells as combinations of other cells, in exact rationals; and whether one noise is nowhere larger than another."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpsql.derive.shape import Form

Matrix = list[list[Fraction]]


def combination(target: Form, cells: Sequence[Form]) -> tuple[Fraction, ...] | None:
    """Numbers by which the cells add up to the target, earlier ones preferred; None where they do not."""
    atoms = sorted({atom for form in (target, *cells) for atom, _ in form})
    columns = [dict(form) for form in (*cells, target)]
    rows: Matrix = [[column.get(atom, Fraction(0)) for column in columns] for atom in atoms]
    pivots = _reduce(rows, len(cells))
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    numbers = [Fraction(0)] * len(cells)
    for row, pivot in zip(rows, pivots, strict=False):
        numbers[pivot] = row[-1]
    return tuple(numbers)


def _reduce(rows: Matrix, width: int) -> list[int]:
    """Gauss and Jordan, in place; the columns that lead a row."""
    pivots: list[int] = []
    for column in range(width):
        top = len(pivots)
        found = next((place for place in range(top, len(rows)) if rows[place][column]), None)
        if found is None:
            continue
        rows[top], rows[found] = rows[found], rows[top]
        rows[top] = [number / rows[top][column] for number in rows[top]]
        for place, row in enumerate(rows):
            if place != top and row[column]:
                rows[place] = [a - row[column] * b for a, b in zip(row, rows[top], strict=True)]
        pivots.append(column)
    return pivots


def covariance(numbers: Sequence[Sequence[Fraction]], variances: Sequence[Fraction]) -> Matrix:
    """Of combinations of independent noises."""
    return [
        [sum((a * b * v for a, b, v in zip(one, other, variances, strict=True)), Fraction(0)) for other in numbers]
        for one in numbers
    ]


def never_negative(matrix: Matrix) -> bool:
    """Whether x' M x >= 0 for all x, of a symmetric matrix: by completing squares, exactly."""
    rows = [list(row) for row in matrix]
    for place in range(len(rows)):
        pivot = rows[place][place]
        if pivot < 0 or (pivot == 0 and any(rows[place][place:])):
            return False
        if pivot == 0:
            continue
        for below in range(place + 1, len(rows)):
            factor = rows[below][place] / pivot
            rows[below] = [a - factor * b for a, b in zip(rows[below], rows[place], strict=True)]
    return True
