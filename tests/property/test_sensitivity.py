"""Removing or replacing the rows of one unit moves the exact cells by at most what the noise was computed from.

Each trial makes a schema and two neighboring databases and asks them a statement through a real session, whose engine
runs every release on both and compares integers (`dpsql/verify`). A failing case is printed after it was made minimal.

    DPSQL_TRIALS=20000 pytest tests/property/test_sensitivity.py         more trials
    DPSQL_SEED=1234 DPSQL_TRIALS=1 pytest tests/property/test_sensitivity.py    one of them again
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.compiler.compile import Compiled, compile_query
from dpsql.compiler.settings import Settings
from dpsql.errors import Error, InternalError
from dpsql.schema.model import Column, Contributions, Domain, EngineTable, Neighbors, OwnUnit, Privacy, Schema, Table
from dpsql.session.explain import explain
from dpsql.types import BIGINT, DOUBLE
from dpsql.verify.coverage import find_features
from dpsql.verify.generate import queries
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.columns import quote_literal
from dpsql.verify.generate.neighbors import NeighborPair, extreme_pair, random_pair
from dpsql.verify.generate.queries import random_query
from dpsql.verify.generate.schemas import (
    AMPLE_BUDGET,
    SCHEMA_SHAPES,
    GeneratedSchema,
    generate_from_schema,
    random_schema,
)
from dpsql.verify.report import render_case
from dpsql.verify.shrink import FailingCase, shrink_case
from dpsql.verify.trial import TrialHarness, TrialStatement, open_harness, random_trial_statement
from tests.support.effort import trial_count

pytestmark = pytest.mark.thorough

TRIALS = trial_count(200)
FEW = 50
"""Trials from which on it is asserted that they try enough."""
SEED = int(os.environ.get("DPSQL_SEED", "0"))
SHRINK = float(os.environ.get("DPSQL_SHRINK", "10"))
QUESTIONS = 4


@pytest.fixture(scope="module")
def bench() -> Iterator[TrialHarness]:
    with open_harness() as bench:
        yield bench


def try_statements(
    world: GeneratedSchema,
    pair: NeighborPair,
    ask: Callable[[GeneratedSchema, ChoiceStream], str],
    seed: int,
    count: int,
    bench: TrialHarness,
) -> tuple[Counter[str], list[Compiled]]:
    """Ask several statements; fail with a minimal example where a claim does not hold."""
    bench.load_pair(world, pair)
    seen, made = Counter[str](), list[Compiled]()
    for place in range(count):
        choices = ChoiceStream(f"{seed}/{place}")
        asked = random_trial_statement(world, ask(world, choices), choices)
        outcome = bench.run_trial(asked)
        seen[outcome.kind] += 1
        if outcome.findings:
            case = FailingCase(world, pair, asked, tuple(choices.record), outcome)
            if ask is random_query:
                case = shrink_case(case, bench, SHRINK)
            pytest.fail(f"DPSQL_SEED={seed}\n{render_case(case)}", pytrace=False)
        if outcome.compiled is not None and outcome.releases:
            made.append(outcome.compiled)
            seen.update(find_features(outcome.compiled))
    return seen, made


@pytest.mark.parametrize("shape", SCHEMA_SHAPES)
def test_one_unit_moves_cells_by_at_most_the_claim(shape: str, bench: TrialHarness) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEED, SEED + max(1, TRIALS // len(SCHEMA_SHAPES))):
        draws = ChoiceStream(seed)
        world = generate_from_schema(random_schema(draws, shape), draws)
        seen += try_statements(world, random_pair(world, draws), random_query, seed, QUESTIONS, bench)[0]
    if TRIALS >= FEW:
        # A generator whose questions are mostly refused would prove nothing.
        assert seen["answered"] > 2 * seen["refused"], seen
        kinds = ("selected groups", "listed groups", "one group")
        assert min(seen[kind] for kind in kinds) > min(5, TRIALS // 40), seen


def test_units_at_the_far_end_move_cells_by_at_most_the_claim(bench: TrialHarness) -> None:
    """The claims are met nearly exactly here, so that one step too much is seen; and they are not far too large."""
    tightest = 0.0
    for seed in range(SEED, SEED + max(1, TRIALS)):
        draws = ChoiceStream(seed)
        world = generate_from_schema(random_schema(draws, SCHEMA_SHAPES[seed % len(SCHEMA_SHAPES)]), draws)
        _, made = try_statements(world, extreme_pair(world, draws), queries.random_aggregate_query, seed, 2, bench)
        tightest = max((tightest, *(used(compiled, bench) for compiled in made)))
    assert tightest > 0.99 or TRIALS < FEW


def test_one_unit_changes_one_block_of_each_group_that_it_reaches(bench: TrialHarness) -> None:
    """Claims are met exactly: a unit that moves a block from one bound to the other uses up all of them."""
    seen: Counter[str] = Counter()
    tightest = 0.0
    for seed in range(SEED, SEED + max(1, TRIALS // 2)):
        draws = ChoiceStream(seed)
        world = generate_from_schema(random_schema(draws, SCHEMA_SHAPES[seed % len(SCHEMA_SHAPES)]), draws)
        pair = (extreme_pair if seed % 2 == 0 else random_pair)(world, draws)
        found, made = try_statements(world, pair, queries.random_blockwise_query, seed, 2, bench)
        seen += found
        tightest = max((tightest, *(used(compiled, bench) for compiled in made)))
    assert (seen["answered"] > seen["refused"] and tightest > 0.99) or TRIALS < FEW, (seen, tightest)


@pytest.mark.parametrize(
    "form", [queries.random_bounded_query, queries.random_unit_query], ids=["bounds per group", "picks"]
)
def test_what_is_worked_out_within_a_unit_moves_cells_by_at_most_the_claim(
    form: Callable[[GeneratedSchema, ChoiceStream], str], bench: TrialHarness
) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEED, SEED + max(1, TRIALS // 2)):
        draws = ChoiceStream(seed)
        world = generate_from_schema(random_schema(draws, SCHEMA_SHAPES[seed % len(SCHEMA_SHAPES)]), draws)
        pair = (extreme_pair if seed % 2 == 0 else random_pair)(world, draws)
        seen += try_statements(world, pair, form, seed, 3, bench)[0]
    assert seen["answered"] > 3 * seen["refused"] or TRIALS < FEW, seen


def used(compiled: Compiled, bench: TrialHarness) -> float:
    """The largest share of a claim that the difference of the databases reaches, of statements with one group."""
    shares = [0.0]
    witness = bench.paired_engine
    for release in explain(compiled, "duckdb", ()).releases:
        if not release.keys and not release.holes:
            one, other = (e.run_release(release.sql, 0, {}).reveal().cells for e in (witness.first, witness.second))
            places = {column.name: place for place, column in enumerate(release.columns)}
            for bundle in release.bundles:
                steps = [int(one[places[c]][0]) - int(other[places[c]][0]) for c in bundle.columns]
                shares.append(sum(map(abs, steps)) / bundle.l1)
    return max(shares)


@pytest.mark.parametrize("key", ["ROUND(x)", "x * 0", "-x", "CEIL(x)", "x * 1e-300 * 1e-300", "x", "ABS(x) * x"])
def test_a_key_has_one_spelling(key: str, bench: TrialHarness) -> None:
    """0.0 and -0.0 are one group: which of them is shown must not depend on who came first."""
    columns = (Column("uid", Domain(BIGINT)), Column("x", Domain(DOUBLE, True, Fraction(-1), Fraction(1))))
    table = Table("events", EngineTable(("events",)), OwnUnit("uid"), (), columns)
    privacy = Privacy(Neighbors.ADD_REMOVE, "events.uid", AMPLE_BUDGET, AMPLE_BUDGET, Contributions(rows=3, groups=3))
    schema = Schema(Path("keys.yaml"), "duckdb://", "sqlite://", privacy, (), (table,))
    world = generate_from_schema(schema, ChoiceStream(record=()))  # simplest choices: stored as declared
    crowd = tuple((str(n), quote_literal(value, DOUBLE)) for n, value in enumerate(("0.3", "0.0", "0.2", "0.4"), 10))
    asked = TrialStatement(
        f"SELECT {key}, COUNT(*) FROM events GROUP BY {key}", Fraction(1), Fraction(1, 10**6), 3, 3, None
    )
    for value in ("-0.3", "-0.0", "-5e-324", "0.3"):
        first, second = {"events": (("1", quote_literal(value, DOUBLE)), *crowd)}, {"events": crowd}
        bench.load_pair(world, NeighborPair(first, second, {"events": first["events"][::-1]}))
        assert bench.run_trial(asked).findings == (), (key, value)


def test_the_compiled_text_does_not_depend_on_rows_or_order_of_compilation() -> None:
    """Compile is a pure function: the same text, again, whatever was compiled between."""
    for seed in range(SEED, SEED + max(1, TRIALS // 10)):
        draws = ChoiceStream(seed)
        world = generate_from_schema(random_schema(draws), draws)
        settings = Settings(Fraction(1), Fraction(1, 10**6), 2, 2)
        questions = [random_query(world, draws) for _ in range(QUESTIONS)]
        first = [compiled_or_refused(sql, world, settings) for sql in questions]
        again = [compiled_or_refused(sql, world, settings) for sql in reversed(questions)]
        assert first == again[::-1]


def compiled_or_refused(sql: str, world: GeneratedSchema, settings: Settings) -> Compiled | None:
    try:
        return compile_query(sql, world.resolved_schema, settings)
    except InternalError:
        raise
    except Error:
        return None


def test_without_a_norm_nothing_is_run() -> None:
    """Where nothing bounds what a unit adds, the question waits for the histogram that its norm is chosen from."""
    for seed in range(SEED, SEED + max(1, TRIALS // 5)):
        draws = ChoiceStream(seed)
        world = generate_from_schema(random_schema(draws, draws.choice(("own", "one hop", "two hops"))), draws)
        settings = Settings(Fraction(1), Fraction(1, 10**6), None, None)
        sql = f"SELECT COUNT(*) FROM {world.private_tables[-1].name}"
        compiled = compile_query(sql, world.resolved_schema, settings)
        assert compiled.undecided and compiled.norm_steps and not any(norm.decided for norm in compiled.norm_steps)
