"""A histogram of units by norm counts what a direct computation does, whatever the size of the values."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction

import pytest

from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compile import compile_query
from dpsql.compiler.settings import Settings
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.schema.model import Neighbors
from dpsql.verify.paired_engine import reveal_cells
from tests.property.test_clipped_sums import GROUPS, fill, make_schema


@pytest.mark.parametrize("noise", NoiseKind)
def test_each_unit_is_in_the_bin_of_its_norm(noise: NoiseKind) -> None:
    draws, sums, rows = random.Random(5), dict[int, Counter[str]](), list[tuple[str, ...]]()
    for unit in range(300):
        size = 10.0 ** draws.randint(-9, 20)
        for _ in range(draws.choice((1, 3, 10))):
            group, value = draws.choice(GROUPS), draws.choice((-1, 1)) * draws.random() * size
            rows.append((str(unit), f"'{group}'", repr(value), "1", "1"))
            sums.setdefault(unit, Counter())[group] += value  # type: ignore[assignment]
    engine = InMemoryEngine(1)
    fill(engine, rows)
    settings = Settings(Fraction(1), Fraction(1, 10**6), None, None, noise)
    compiled = compile_query("SELECT g, SUM(x) FROM events GROUP BY g", make_schema(Neighbors.ADD_REMOVE), settings)
    (histogram,) = compiled.norm_steps
    cells = reveal_cells(engine.run_release(histogram.step.sql, 1, {}))
    engine.close()
    counted = {bin_: count for (bin_,), count in zip(cells.keys, cells.columns[0], strict=True) if count}

    def norm(unit: int) -> float:
        sizes = [abs(value) for value in sums[unit].values()]
        return sum(sizes) if noise is NoiseKind.LAPLACE else math.hypot(*sizes)

    assert counted == Counter(math.floor(math.log2(norm(unit))) for unit in sums)
