"""Cells as combinations of other cells, in exact rationals; and whether one noise is nowhere larger than another."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpsql.derive.shape import CellForm

Matrix = list[list[Fraction]]


def find_combination(target: CellForm, cells: Sequence[CellForm]) -> tuple[Fraction, ...] | None:
    """Numbers by which the cells add up to the target, earlier ones preferred; None where they do not."""
    atoms = sorted({atom for form in (target, *cells) for atom, _ in form})
    columns = [dict(form) for form in (*cells, target)]
    rows: Matrix = [[column.get(atom, Fraction(0)) for column in columns] for atom in atoms]
    pivots = _row_reduce(rows, len(cells))
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    numbers = [Fraction(0)] * len(cells)
    for row, pivot in zip(rows, pivots, strict=False):
        numbers[pivot] = row[-1]
    return tuple(numbers)


def _row_reduce(rows: Matrix, width: int) -> list[int]:
    """Gauss and Jordan, in place; the columns that lead a row."""
    pivots: list[int] = []
    for column in range(width):
        top = len(pivots)
        pivot_row = next((index for index in range(top, len(rows)) if rows[index][column]), None)
        if pivot_row is None:
            continue
        rows[top], rows[pivot_row] = rows[pivot_row], rows[top]
        rows[top] = [number / rows[top][column] for number in rows[top]]
        for index, row in enumerate(rows):
            if index != top and row[column]:
                rows[index] = [a - row[column] * b for a, b in zip(row, rows[top], strict=True)]
        pivots.append(column)
    return pivots


def covariance_matrix(numbers: Sequence[Sequence[Fraction]], variances: Sequence[Fraction]) -> Matrix:
    """Of combinations of independent noises."""
    return [
        [sum((a * b * v for a, b, v in zip(row, other_row, variances, strict=True)), Fraction(0)) for other_row in numbers]
        for row in numbers
    ]


def is_positive_semidefinite(matrix: Matrix) -> bool:
    """Whether x' M x >= 0 for all x, of a symmetric matrix: by completing squares, exactly."""
    rows = [list(row) for row in matrix]
    for index in range(len(rows)):
        pivot = rows[index][index]
        if pivot < 0 or (pivot == 0 and any(rows[index][index:])):
            return False
        if pivot == 0:
            continue
        for below in range(index + 1, len(rows)):
            factor = rows[below][index] / pivot
            rows[below] = [a - factor * b for a, b in zip(rows[below], rows[index], strict=True)]
    return True
