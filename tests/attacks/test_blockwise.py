"""BLOCKWISE, rule by rule: what the claim would break without is tried on neighbors, and must be counted or refused.

The heavy unit is 7. It has rows in every group, at both bounds, more than it may count for.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction as F

import pytest

from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compile import compile_query
from dpsql.compiler.settings import Settings
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.errors import Error, GroupingError, InvalidParameter, InvalidSyntax, UnboundedContribution, Unsupported
from dpsql.ledger.loss_checker.checker import neighbor_relations, recompute_loss
from dpsql.privacy.noise import Laplace
from dpsql.schema.model import Neighbors, RowUnit
from dpsql.verify.generate.neighbors import NeighborPair
from dpsql.verify.trial import TrialHarness, TrialStatement, open_harness
from tests.support.blockwise import Row, cells, compiled, fill, literals, world

pytestmark = pytest.mark.slow

STEPS = 1 << 20
CHANGE_ONE = Neighbors.CHANGE_ONE
CROWD: tuple[Row, ...] = tuple((20 + i, "abc"[i % 3], (37 * i % 801) / 8) for i in range(400))
HEAVY: tuple[Row, ...] = tuple((7, g, x) for g in "abc" for x in (0.0, 100.0, 100.0, 100.0, 100.0, 100.0, 99.0) * 20)


@pytest.fixture(scope="module")
def engine() -> Iterator[InMemoryEngine]:
    engine = InMemoryEngine(2)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def bench() -> Iterator[TrialHarness]:
    with open_harness() as bench:
        yield bench


# --- what a block gives ----------------------------------------------------------------------------------------------

EXACT = [
    "mad(x)", "skewness(x)", "kurtosis(x)", "kurtosis_pop(x)", "entropy(floor(x / 10))", "median(x)", "min(x)",
    "max(x)", "quantile_disc(x, 0.9)", "quantile_cont(x, 0.3)", "avg(x)", "sum(x)", "stddev(x)", "var_pop(x)",
    "stddev_pop(x)",
    "count(*)", "count(x)", "count(DISTINCT x)", "max(x) - min(x)", "mad(x) / median(x)",
    "percentile_disc(0.9) WITHIN GROUP (ORDER BY x)", "count_if(x > 50)", "mad(x) FILTER (WHERE x > 30)",
]  # fmt: skip


@pytest.mark.parametrize("statistic", EXACT)
def test_a_block_has_the_engine_s_own_statistic(statistic: str, engine: InMemoryEngine) -> None:
    """Means of 5 blocks, each the statistic as DuckDB has it on the block's rows; here no bound bites."""
    made = world()
    fill(engine, made, CROWD)
    sql = f"SELECT g, BLOCKWISE({statistic}, -10, 10000, blocks => 5) FROM events GROUP BY g"
    (step,) = compiled(sql, made).steps
    found = cells(engine, step.sql, 1)
    expected = engine.query_rows(
        f"SELECT g, avg(r) FROM (SELECT g, hash(uid, 'blocks') % 5 AS b, {statistic} AS r FROM events GROUP BY g, b) "
        "GROUP BY g"
    )
    for group, mean in expected:
        value = 4995 + found[(group,)] * step.calibrated.grids[0] / 5
        assert float(value) == pytest.approx(mean, abs=10010 / STEPS, rel=1e-9)


@pytest.mark.parametrize("combine", ["mean", "median"])
@pytest.mark.parametrize("rows", [(), ((1, "a", None), (2, "b", None))], ids=["no rows", "no values"])
def test_there_are_always_k_values_and_what_is_missing_is_the_middle(
    combine: str, rows: tuple[Row, ...], engine: InMemoryEngine
) -> None:
    """Averaged over the blocks that have rows, one unit alone would decide the answer."""
    made = world()
    fill(engine, made, rows)
    sql = f"SELECT g, BLOCKWISE(mad(x), 0, 10, blocks => 30, combine => '{combine}') AS b FROM events GROUP BY g"
    statement = compiled(sql, made)
    step = statement.steps[-1]
    found = cells(engine, step.sql, len(step.keys))
    if combine == "mean":
        assert found == {("a",): 0, ("b",): 0, ("c",): 0}
    else:
        middle = (step.calibrated.choice.upper) // 2  # type: ignore[union-attr]
        assert {key: n for key, n in found.items() if n} == {(g, middle): 30 for g in "abc"}


def test_the_divisor_is_k_however_few_blocks_have_rows(engine: InMemoryEngine) -> None:
    made = world()
    fill(engine, made, [(1, "a", 100.0)])
    (step,) = compiled("SELECT BLOCKWISE(max(x), 0, 100, blocks => 50) FROM events", made).steps
    assert cells(engine, step.sql, 0) == {(): STEPS // 2}
    assert step.calibrated.grids == (F(100, STEPS),)


# --- neighbors -------------------------------------------------------------------------------------------------------

NEVER_RAISES = [
    "mad(x)", "skewness(x)", "kurtosis(x)", "entropy(x)", "entropy(free)", "1 / stddev(x)", "ln(min(x))",
    "sqrt(min(x) - 50)", "power(max(x), 99) * 1e300", "exp(sum(x))", "avg(x) FILTER (WHERE x > 99.5)",
    "log10(count(*) - 3)", "quantile_cont(x, 1)", "var_samp(x) / (max(x) - min(x))", "count(DISTINCT free)",
]  # fmt: skip


@pytest.mark.parametrize("by", ["", " GROUP BY g"], ids=["one group", "groups"])
@pytest.mark.parametrize("neighbors", list(Neighbors), ids=lambda n: n.value)
def test_a_heavy_unit_changes_one_block_of_each_group_and_nothing_raises(
    by: str, neighbors: Neighbors, bench: TrialHarness
) -> None:
    made = world(neighbors)
    first, second = literals((*HEAVY, *CROWD)), literals(CROWD)
    if neighbors is CHANGE_ONE:
        second = literals((*CROWD, (8, "a", 0.0), (8, "c", 100.0)))
    nums = (("0",), ("1",), ("2",))
    bench.load_pair(made, NeighborPair(*({"events": rows, "nums": nums} for rows in (first, second, first[::-1]))))
    for number, statistic in enumerate(NEVER_RAISES):
        combine = "mean" if number % 2 else "median"
        noise = NoiseKind.GAUSSIAN if number % 4 < 2 else NoiseKind.LAPLACE
        for low, high in ((0, 1), (-50, 100)):
            sql = f"SELECT BLOCKWISE({statistic}, {low}, {high}, blocks => 2, combine => '{combine}') FROM events{by}"
            outcome = bench.run_trial(TrialStatement(sql, F(1), F(1, 10**6), 2, 2, noise))
            assert (outcome.kind, outcome.findings) == ("answered", ()), sql


def test_rows_that_are_units_stay_in_one_block_where_a_join_repeats_them(bench: TrialHarness) -> None:
    """Blocks by what stands in the joined rows would put the copies of one row into several blocks."""
    made = world(unit=RowUnit())
    crowd = literals(CROWD[:60])
    victim = literals([(7, "a", 100.0)])
    nums = (("0",), ("1",), ("2",))
    bench.load_pair(made, NeighborPair(*({"events": r, "nums": nums} for r in (victim + crowd, crowd, crowd + victim))))
    for statistic in ("max(x * (n - 1))", "count(*)", "sum(n)", "mad(x + n)"):
        sql = f"SELECT BLOCKWISE({statistic}, 0, 2, blocks => 50) FROM events JOIN nums ON TRUE"
        outcome = bench.run_trial(TrialStatement(sql, F(1), F(1, 10**6), 2, 2, None))
        assert (outcome.kind, outcome.findings) == ("answered", ()), sql
        below = sql.replace("events JOIN nums ON TRUE", "t")
        nested = f"WITH t AS (SELECT x + 1 AS x, n FROM events JOIN nums ON TRUE) {below}"
        outcome = bench.run_trial(TrialStatement(nested, F(1), F(1, 10**6), 2, 2, None))
        assert (outcome.kind, outcome.findings) == ("answered", ()), nested


# --- what is claimed and charged -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by", "change_one", "group_size", "blocks_moved", "groups"),
    [
        ("", False, 1, 1, 1),
        ("", True, 1, 2, 1),
        ("", True, 3, 6, 1),
        (" GROUP BY g", False, 1, 1, 3),
        (" GROUP BY g", True, 1, 2, 3),
        (" GROUP BY g", False, 2, 2, 3),
        (" GROUP BY uid % 2 = 0", False, 1, 1, 1),  # a key that depends on the unit alone
        (" GROUP BY uid % 2 = 0", True, 1, 2, 1),
        (" GROUP BY uid % 2 = 0, g", False, 1, 1, 3),
    ],
)
def test_the_charge_counts_the_groups_that_a_unit_reaches(
    by: str, change_one: bool, group_size: int, blocks_moved: int, groups: int
) -> None:
    made = world(CHANGE_ONE if change_one else Neighbors.ADD_REMOVE, group_size=group_size)
    (step,) = compiled(f"SELECT BLOCKWISE(mad(x), 0, 1) FROM events{by}", made).steps
    moved = step.calibrated.bundles[0].claim.sensitivity
    far = blocks_moved * STEPS
    assert (moved.l1, moved.l2_squared, moved.linf) == (groups * far, groups * far**2, far)
    for noise in NoiseKind:
        sql = f"SELECT BLOCKWISE(mad(x), 0, 1, combine => 'median') FROM events{by}"
        step = compiled(sql, made, noise=noise).steps[-1]
        (pick,), loss = step.calibrated.choice.picks, step.loss  # type: ignore[union-attr]
        assert loss.epsilon is not None and loss.epsilon >= 2 * groups * blocks_moved / pick.mechanism.scale
        assert loss.rho >= F(groups * blocks_moved**2) / (2 * pick.mechanism.scale**2)
        again = recompute_loss(step.calibrated.record)
        assert again.epsilon is not None and 0 <= loss.epsilon - again.epsilon <= F(1, 1 << 79)
        assert 0 <= loss.rho - again.rho <= F(1, 1 << 79)
        assert neighbor_relations(step.calibrated.record) == {(group_size, change_one)}


def test_known_answer_a_hundred_blocks_between_0_and_1_at_epsilon_1() -> None:
    """MECHANISMS 5: mean + Lap((H - L) / (k epsilon)), a scale of 0.01."""
    (step,) = compiled("SELECT BLOCKWISE(mad(x), 0, 1, blocks => 100) FROM events", world()).steps
    mechanism = step.calibrated.bundles[0].mechanism
    assert isinstance(mechanism, Laplace)
    assert mechanism.scale * step.calibrated.grids[0] / 100 == F(1, 100)


# --- refusals --------------------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, type[Error], str, str]] = [
    ("BLOCKWISE(mad(x), 0, 1) … GROUP BY free", UnboundedContribution, "any number of the groups", "BLOCKWISE"),
    ("BLOCKWISE(mad(x), 0, 1, combine => 'median') … GROUP BY free", UnboundedContribution, "any number", "BLOCKWISE"),
    ("BLOCKWISE(mad(x), 0, 1) … GROUP BY ROLLUP (g)", Unsupported, "ROLLUP", "BLOCKWISE"),
    ("BLOCKWISE(mad(x), 0)", InvalidSyntax, "takes three arguments", "BLOCKWISE"),
    ("BLOCKWISE(mad(x), blocks => 3, 0, 1)", InvalidSyntax, "takes three arguments", "BLOCKWISE"),
    ("BLOCKWISE(mad(x), 0, 1, block => 3)", InvalidSyntax, 'BLOCKWISE has no argument "block"', "3"),
    ("BLOCKWISE(mad(x), 0, 1, blocks => 3, blocks => 4)", InvalidSyntax, "given twice", "4"),
    ("BLOCKWISE(mad(x), 0, 1, blocks => 1)", InvalidParameter, "between 2 and 10000", "1)"),
    ("BLOCKWISE(mad(x), 0, 1, blocks => 10001)", InvalidParameter, "between 2 and 10000", "10001"),
    ("BLOCKWISE(mad(x), 0, 1, blocks => x)", InvalidParameter, "between 2 and 10000", "x)"),
    ("BLOCKWISE(mad(x), 0, 1, combine => 'max')", InvalidParameter, "'mean' or 'median'", "'max'"),
    ("BLOCKWISE(mad(x), 1, 0)", InvalidParameter, "above the lower", "0)"),
    ("BLOCKWISE(mad(x), 0, x)", InvalidParameter, "literal numbers", "x)"),
    ("BLOCKWISE(mad(x), 0, 1e200)", InvalidParameter, "literal numbers", "1e200"),
    ("BLOCKWISE(x, 0, 1)", GroupingError, 'column "x"', "x"),
    ("BLOCKWISE(mad(x) + x, 0, 1)", GroupingError, 'column "x"', "x, 0"),
    ("BLOCKWISE(1, 0, 1)", GroupingError, "an aggregate", ""),
    ("BLOCKWISE(corr(x, x), 0, 1)", Unsupported, "of a block's rows is not supported", "corr"),
    ("BLOCKWISE(BLOCKWISE(mad(x), 0, 1), 0, 1)", Unsupported, "of a block's rows is not supported", "BLOCKWISE(mad"),
    ("BLOCKWISE(any_value(x), 0, 1)", Unsupported, "of a block's rows is not supported", "any_value"),
    ("BLOCKWISE(first(x), 0, 1)", Unsupported, "of a block's rows is not supported", "first"),
    ("BLOCKWISE(mad(uid), 0, 1)", Error, "has no bounds", "BLOCKWISE"),
    ("BLOCKWISE(mad(g), 0, 1)", Error, "needs numbers", ""),
    ("BLOCKWISE(mad(x), 0, 1) OVER ()", Unsupported, "MAD() is not supported yet", "mad"),
    ("BLOCKWISE(quantile_disc(x, x), 0, 1)", InvalidParameter, "a fraction must be a literal", "x)"),
    ("mad(x)", Unsupported, "MAD() is not supported yet", "mad"),
    ("kurtosis(x)", Unsupported, "KURTOSIS() is not supported yet", "kurtosis"),
]


@pytest.mark.parametrize(("written", "kind", "message", "at"), REFUSED, ids=[case[0] for case in REFUSED])
def test_refusals_say_why_and_where(written: str, kind: type[Error], message: str, at: str) -> None:
    asked, _, rest = written.partition(" …")
    sql = f"SELECT {asked} AS b FROM events{rest}"
    with pytest.raises(kind, match=None) as refused:
        compile_query(sql, world().resolved_schema, Settings(F(1), F(1, 10**6), 2, 2))
    assert message in refused.value.message
    if at:
        assert refused.value.span is not None and sql[refused.value.span.start :].startswith(at), refused.value.span
