"""Combinations of cells, and comparing noises in every direction."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from dpsql.compiler.reuse.derive import Matrix, covariance_matrix, find_combination, is_positive_semidefinite
from dpsql.compiler.reuse.describe import CellForm


def form(**numbers: object) -> CellForm:
    return tuple((atom, Fraction(str(number))) for atom, number in numbers.items())


ABOVE, BELOW = form(sum=1, count=5), form(sum=-1, count=20)  # of values from -5 to 20


@pytest.mark.parametrize(
    ("target", "cells", "numbers"),
    [
        (form(sum=1), [ABOVE, BELOW], ("4/5", "-1/5")),
        (form(count=1), [ABOVE, BELOW], ("1/25", "1/25")),
        (form(count=1), [form(count=1), ABOVE, BELOW], ("1", "0", "0")),
        (ABOVE, [form(sum=1), form(count=1)], ("1", "5")),
        ((), [ABOVE], ("0",)),
    ],
)
def test_a_cell_is_a_combination_of_others(target: CellForm, cells: list[CellForm], numbers: tuple[str, ...]) -> None:
    assert find_combination(target, cells) == tuple(map(Fraction, numbers))


@pytest.mark.parametrize("cells", [[], [ABOVE], [form(sum=2, count=10)], [form(other=1)]])
def test_what_the_cells_do_not_hold_is_no_combination(cells: list[CellForm]) -> None:
    assert find_combination(form(sum=1), cells) is None


def test_random_combinations_add_up_to_their_target() -> None:
    rng = Random(3)
    for _ in range(300):
        cells = [tuple((atom, Fraction(rng.randint(-3, 3))) for atom in "abcd") for _ in range(rng.randint(1, 6))]
        real = [Fraction(rng.randint(-4, 4), rng.randint(1, 3)) for _ in cells]
        target = tuple((atom, sum(n * dict(c)[atom] for n, c in zip(real, cells, strict=True))) for atom in "abcd")
        found = find_combination(target, cells)
        assert found is not None
        for atom, number in target:
            assert sum(n * dict(c)[atom] for n, c in zip(found, cells, strict=True)) == number


def test_no_direction_is_missed() -> None:
    """As numpy's eigenvalues say, where they are sure."""
    rng, seen = Random(5), {True: 0, False: 0}
    for _ in range(500):
        size = rng.randint(1, 5)
        half = [[rng.randint(-3, 3) for _ in range(size)] for _ in range(size)]
        whole = np.array(half) + np.array(half).T + rng.randint(0, 12) * np.eye(size, dtype=int)
        least = min(np.linalg.eigvalsh(whole))
        if abs(least) > 1e-6:
            said = is_positive_semidefinite([[Fraction(int(number)) for number in row] for row in whole])
            assert said == (least > 0)
            seen[said] += 1
    assert min(seen.values()) > 50


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ([[0]], True), ([[-1]], False), ([[0, 0], [0, 0]], True), ([[0, 1], [1, 0]], False), ([[0, 1], [1, 5]], False),
        ([[1, 1], [1, 1]], True), ([[1, 2], [2, 1]], False),
    ],
)  # fmt: skip
def test_where_one_direction_has_no_room(matrix: list[list[int]], said: bool) -> None:
    exact: Matrix = [[Fraction(number) for number in row] for row in matrix]
    assert is_positive_semidefinite(exact) is said


def test_cells_that_share_noise_are_correlated() -> None:
    """COUNT and SUM told from one pair of cells: their noise is not independent."""
    numbers = [(Fraction(1, 25), Fraction(1, 25)), (Fraction(4, 5), Fraction(-1, 5))]
    assert covariance_matrix(numbers, [Fraction(1), Fraction(1)]) == [
        [Fraction(2, 625), Fraction(15, 625)],
        [Fraction(15, 625), Fraction(17, 25)],
    ]
