"""A histogram of units by norm counts what a direct computation does, whatever the size of the values."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction

import pytest

from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compile import compile_query
from dpsql.compiler.plan.clipped_sums import NORM_STEPS
from dpsql.compiler.settings import Settings
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.privacy.norm_choice import MeanBins
from dpsql.schema.model import Neighbors
from dpsql.verify.paired_engine import reveal_cells
from tests.property.test_clipped_sums import GROUPS, decide, fill, make_schema


@pytest.mark.parametrize("noise", NoiseKind)
def test_each_unit_is_in_the_bin_of_its_norm(noise: NoiseKind) -> None:
    """Values of different magnitudes count on their own: the largest decides."""
    draws, sums, rows = random.Random(5), dict[int, Counter[tuple[str, int]]](), list[tuple[str, ...]]()
    for unit in range(300):
        size = 10.0 ** draws.randint(-9, 20)
        for _ in range(draws.choice((1, 3, 10))):
            group, value = draws.choice(GROUPS), draws.choice((-1, 1)) * draws.random() * size
            rows.append((str(unit), f"'{group}'", repr(value), "1", "1"))
            magnitude = sum(abs(value) >= top for top in (2**-18, 2**32, 2**82))
            sums.setdefault(unit, Counter())[group, magnitude] += value  # type: ignore[assignment]
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


def test_each_unit_is_in_the_bin_of_its_mean() -> None:
    """Of either sign, on both grids; NULL and what is no number is left out, and means near 0 are in one bin."""
    draws, values, rows = random.Random(7), dict[int, list[float]](), list[tuple[str, ...]]()
    for unit in range(400):
        size, grid = draws.choice(
            ((1e-2, 2.0**-18), (1.0, 2.0**-18), (1e6, 2.0**-18), (1e10, 2.0**15), (1e14, 2.0**15))
        )
        for _ in range(draws.choice((1, 3, 10))):
            value = draws.choice((-1, 1)) * math.ceil(draws.random() * size / grid) * grid
            rows.append((str(unit), f"'{draws.choice(GROUPS)}'", repr(value), "1", "1"))
            values.setdefault(unit, []).append(value)
        rows.append((str(unit), "'a'", draws.choice(("NULL", "'nan'::DOUBLE")), "1", "1"))
    rows += [("1001", "'a'", "NULL", "1", "1"), ("1002", "'a'", "1e-9", "1", "1"), ("1003", "'a'", "-1e300", "1", "1")]
    engine = InMemoryEngine(1)
    fill(engine, rows)
    settings = Settings(Fraction(1), Fraction(0), None, None)
    compiled = compile_query("SELECT g, AVG(x) FROM events GROUP BY g", make_schema(Neighbors.ADD_REMOVE), settings)
    (centers,) = [norm for norm in compiled.norm_steps if isinstance(norm.bins, MeanBins)]
    cells = reveal_cells(engine.run_release(centers.step.sql, 1, {}))
    engine.close()
    counted = {bin_: count for (bin_,), count in zip(cells.keys, cells.columns[0], strict=True) if count}
    assert len(cells.keys) == centers.bins.count

    def number(mean: float) -> int:
        size = math.floor(math.log2(abs(mean))) + 19
        return size if mean > 0 else -size

    expected = Counter(number(sum(own) / len(own)) if sum(own) else 0 for own in values.values())
    assert counted == expected + Counter({0: 1, -centers.bins.last: 1})


@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize(
    ("values", "norm"),
    [
        (("0", "0.0", "3"), 3),
        (("4294967296", "1"), 2**32),  # on either side of a magnitude's end
        (("1e30", "1", "-1"), 1e30),
        (("1e-9",) * 100, 1e-7),
        (("4294967295",) * 100, 100 * 2**32 - 1),
        (("1e39", "-1e39", "2e39"), 2e39),  # beyond the largest bin
    ],
)
def test_a_unit_of_any_size_is_in_a_bin(noise: NoiseKind, values: tuple[str, ...], norm: float) -> None:
    engine = InMemoryEngine(1)
    fill(engine, [("1", "'a'", value, "1", "1") for value in values])
    settings = Settings(Fraction(1), Fraction(1, 10**6), None, None, noise)
    compiled = compile_query("SELECT g, SUM(x) FROM events GROUP BY g", make_schema(Neighbors.ADD_REMOVE), settings)
    (histogram,) = compiled.norm_steps
    cells = reveal_cells(engine.run_release(histogram.step.sql, 1, {}))
    engine.close()
    counted = [bin_ for (bin_,), count in zip(cells.keys, cells.columns[0], strict=True) if count]
    assert counted == [min(math.floor(math.log2(norm)), histogram.bins.last)]


def test_parts_over_the_same_rows_read_them_once() -> None:
    """One cell: once for all sums, once for heavy units, once for their sums. Several: once for all sums of all
    units."""
    settings = Settings(Fraction(1), Fraction(1, 10**6), None, None)
    resolved = make_schema(Neighbors.ADD_REMOVE)
    for asked, reads in (("COUNT(*)", 3), ("COUNT(*), SUM(x)", 1), ("COUNT(*), SUM(x), SUM(i), AVG(b)", 1)):
        compiled = decide(f"SELECT g, {asked} FROM events GROUP BY g", resolved, settings, random.Random(1))
        assert compiled.steps[0].sql.count("FROM steps1") == reads
        assert "steps2" not in compiled.steps[0].sql


@pytest.mark.parametrize("noise", NoiseKind)
def test_a_unit_at_its_norm_counts_in_full(noise: NoiseKind) -> None:
    """Whether a unit is scaled is decided in integers: rows of exactly C stay as they are, others come down to C."""
    engine, settings = InMemoryEngine(1), Settings(Fraction(1), Fraction(1, 10**6), None, None, noise)
    resolved = make_schema(Neighbors.ADD_REMOVE)
    for seed in range(6):
        compiled = decide("SELECT g, COUNT(*), SUM(x) FROM events GROUP BY g", resolved, settings, random.Random(seed))
        (step,) = compiled.steps
        norm = dict(step.norms)["c1_sum"].norm
        sums = (("1", "'a'", norm), ("2", "'b'", 2 * norm), ("3", "'c'", norm), ("3", "'d'", -norm))
        many = [("4", "'d'", "0", "1", "1")] * 2000  # beyond the norm of its rows alone
        fill(engine, [*((unit, group, repr(float(value)), "1", "1") for unit, group, value in sums), *many])
        cells = reveal_cells(engine.run_release(step.sql, 1, {}))
        column = cells.columns[step.calibrated.columns.index("c1_sum")]
        by_group = dict(zip([key[0] for key in cells.keys], column, strict=True))
        assert by_group["a"] == NORM_STEPS
        assert NORM_STEPS - 2 <= by_group["b"] <= NORM_STEPS
        # Sums that cancel out have a norm all the same.
        assert max(cells.columns[step.calibrated.columns.index("rows")]) <= 2 * NORM_STEPS
        share = 1 / 2 if noise is NoiseKind.LAPLACE else 1 / math.sqrt(2)
        assert by_group["c"] == -by_group["d"] == pytest.approx(NORM_STEPS * share, abs=2)
    engine.close()
