"""Removing or replacing the rows of one unit moves a tally by at most the mass that studies are calibrated to.

Random schemas, rows of heavy units, joins, per-unit blocks, unions and windows, as for other releases; the columns are
coded and weighed, and the SQL is run on both neighbors, and once more with the rows in another order.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from dpsql.compiler.compiled import NormStep
from dpsql.compiler.rewrite.count_matches import CountsNeeded
from dpsql.compiler.rewrite.weighted_rows import ColumnCoding
from dpsql.compiler.settings import default_settings
from dpsql.compiler.weighted_rows import CompiledStudy, compile_study, compile_weighted_rows
from dpsql.errors import Error
from dpsql.privacy.norm_choice import NormHistogram
from dpsql.privacy.release import perturb
from dpsql.privacy.sampling import ExactSampler
from dpsql.types import TEXT
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.expressions import quote_name
from dpsql.verify.generate.from_clauses import FromClauseGenerator
from dpsql.verify.generate.neighbors import NeighborPair, extreme_pair, random_pair
from dpsql.verify.generate.schemas import SCHEMA_SHAPES, GeneratedSchema, generate_from_schema, random_schema
from dpsql.verify.trial import TrialHarness, open_harness
from tests.support.count_study import counts
from tests.support.effort import trial_count

pytestmark = pytest.mark.thorough

TRIALS = trial_count(60)
SEED = int(os.environ.get("DPSQL_SEED", "0"))


@pytest.fixture(scope="module")
def bench() -> Iterator[TrialHarness]:
    with open_harness() as bench:
        yield bench


def twice(world: GeneratedSchema, draws: ChoiceStream) -> str | None:
    """A table with one row for each unit, twice: rows that are not weighed, if the norm allows as many."""
    singles = [laid for laid in world.private_tables if laid.single]
    if not singles:
        return None
    laid = draws.choice(singles)
    column = quote_name(draws.choice([column.name for column in laid.columns]))
    rows = f"SELECT {column} AS a0 FROM {quote_name(laid.name)}"
    return f"SELECT a0 FROM ({rows} UNION ALL {rows}) AS t"


def asked(world: GeneratedSchema, draws: ChoiceStream) -> str:
    if draws.draw_bool(0.15) and (doubled := twice(world, draws)) is not None:
        return doubled
    sources = FromClauseGenerator(draws, world)
    source = sources.random_from()
    names = list(dict.fromkeys(draws.choice(source.names).sql for _ in range(draws.draw_between(1, 3))))
    where = f" WHERE {sources.expressions_over(source).random_condition(2)}" if draws.draw_bool(0.3) else ""
    items = ", ".join(f"{name} AS a{place}" for place, name in enumerate(names))
    return f"SELECT {items} FROM {source.sql}{where}"


def studied(sql: str, world: GeneratedSchema, bench: TrialHarness, draws: ChoiceStream) -> CompiledStudy:
    assert bench._resolved is not None
    rows = compile_weighted_rows(sql, sql, bench._resolved, default_settings(world.schema.privacy).statement)
    types = dict(zip(rows.names, (column.expr.type for column in rows.found.columns), strict=True))
    listed = {name: ("a", "b", "c") for name in rows.unknown_columns if types[name] == TEXT}
    coding = ColumnCoding(draws.choice((2, 5, 16, 300)), listed, draws.draw_bool(0.5))
    found = compile_study(rows, coding, counts)
    if not found.compiled.undecided:
        return found
    (norm,) = found.compiled.norm_steps
    decided = compile_study(rows, coding, counts, {norm.step.plan_hash: histogram_of(found, norm, bench)})
    assert not decided.compiled.undecided
    return decided


def histogram_of(found: CompiledStudy, norm: NormStep, bench: TrialHarness) -> NormHistogram:
    """The histogram that chooses a cap, which moves by one unit alone; its counts are made up, as any cap is sound."""
    witness = bench.paired_engine
    witness.expect_statement(found.compiled)
    crowd = witness.execute(norm.step.sql, len(norm.step.keys), {})
    assert witness.findings == []
    release = perturb(crowd, norm.step.calibrated.spec, ExactSampler(ChoiceStream(0).random_bytes))
    return NormHistogram(
        norm.bins, tuple(int(count) for count in release.cells[0]), norm.step.calibrated.bundles[0].mechanism
    )


def compare(found: CompiledStudy, bench: TrialHarness) -> list[str]:
    """What the witness finds when the tally is asked for as a release's rows are."""
    witness = bench.paired_engine
    witness.expect_statement(found.compiled)
    step = found.compiled.steps[0]
    exact = witness.execute(step.sql, len(step.keys), {})
    perturb(exact, step.calibrated.spec, ExactSampler(ChoiceStream(0).random_bytes))
    return witness.findings


@pytest.mark.parametrize("shape", SCHEMA_SHAPES)
def test_one_unit_moves_weighted_rows_by_at_most_its_mass(shape: str, bench: TrialHarness) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEED, SEED + max(1, TRIALS // len(SCHEMA_SHAPES))):
        draws = ChoiceStream(f"tally {seed}")
        world = generate_from_schema(random_schema(draws, shape), draws)
        pair: NeighborPair = (extreme_pair if seed % 4 == 0 else random_pair)(world, draws)
        bench.load_pair(world, pair)
        for _ in range(3):
            sql = asked(world, draws)
            try:
                found = studied(sql, world, bench, draws)
            except (Error, CountsNeeded):  # or public rows would have to be counted, which a session does
                seen["refused"] += 1
                continue
            mass = found.study.mass
            seen["chosen"] += bool(found.compiled.norm_steps)
            seen["weighed" if mass.whole > 1 else "plain" if mass.one_row else "few"] += 1
            assert compare(found, bench) == [], f"DPSQL_SEED={seed}\n{sql}"
    if TRIALS >= 60:
        # A generator whose questions are all refused would prove nothing.
        assert seen["weighed"] + seen["plain"] + seen["few"] >= 10, seen
        assert shape in ("unique", "row") or seen["chosen"] >= 1, seen
        if shape in ("unique", "one hop", "two hops"):
            assert seen["few"] >= 1, seen
