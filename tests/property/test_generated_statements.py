"""Random statements from a grammar: each is answered as DuckDB answers it, or refused in our own words.

DPSQL_TRIALS=5000 pytest -s tests/property/test_generated_statements.py           more trials
DPSQL_SEED=1234 DPSQL_TRIALS=1 pytest -s tests/property/test_generated_statements.py    one of them again
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from dpsql.errors import DataError, Error, InternalError, OperationalError
from tests.corpus.compare import Tolerance, same
from tests.corpus.environment import Ground
from tests.corpus.grammar.statements import Statement, broken, generate
from tests.support.effort import trial_count
from tests.support.shop import unclipped_norms

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

TRIALS = trial_count(120)
SEED = int(os.environ.get("DPSQL_SEED", "1"))
FEW = 12
"""Keys that so few units share may be left out by partition selection."""


@pytest.fixture(scope="module")
def hospital() -> Iterator[Ground]:
    ground = Ground("hospital")
    yield ground
    ground.close()


def test_generated_statements(hospital: Ground) -> None:
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in range(SEED, SEED + TRIALS):
        outcome, why = tried(generate(Random(seed)), hospital)
        outcomes[outcome] += 1
        if outcome == "WRONG":
            wrong.append(f"seed {seed}: {why}")
    shares = ", ".join(f"{name} {count} ({100 * count / TRIALS:.1f} %)" for name, count in outcomes.most_common())
    print(f"\n{TRIALS} statements: {shares}")
    assert not wrong, "\n\n".join(wrong[:20])
    assert TRIALS < 30 or outcomes["right"] > TRIALS / 2, "the grammar asks for what is answered"


def tried(statement: Statement, ground: Ground) -> tuple[str, str]:
    try:
        with unclipped_norms():
            ours = ground.execute(statement.sql).rows
    except (InternalError, OperationalError, DataError) as error:
        ground.forget()
        return "WRONG", f"{statement.sql}\n{type(error).__name__}: {error}"
    except Error as error:
        return f"refused: {error.message}" if os.environ.get("DPSQL_REFUSALS") else "refused", ""
    except Exception as error:  # a crash is a finding, with the statement that it came from
        return "WRONG", f"{statement.sql}\n{type(error).__name__}: {error}"
    theirs = ground.reference.execute(statement.reference).fetchall()
    found = unlike(statement, ours, theirs)
    return ("right", "") if found is None else ("WRONG", f"{statement.sql}\n{found}")


def unlike(statement: Statement, ours: list[tuple[object, ...]], theirs: list[tuple[object, ...]]) -> str | None:
    """What differs first, besides listed groups that are empty and unknown ones that few units share."""
    allowed = Tolerance(relative=1e-3, absolute=0.5) if statement.loose else Tolerance(relative=1e-5, absolute=1e-3)
    n = statement.keys
    mine = {tuple(map(repr, row[:n])): row[n:] for row in ours}
    if len(mine) != len(ours):
        return "a key appears twice"
    for row in theirs:
        key, cells = tuple(map(repr, row[:n])), row[n:-1] if n else row
        found = mine.pop(key, None)
        if found is None:
            if not n or row[-1] > FEW:
                return f"missing: {row}"
        elif len(found) != len(cells) or not all(same(a, b, allowed) for a, b in zip(found, cells, strict=True)):
            return f"{key}: {found} instead of {cells}"
    for key, cells in mine.items():
        if not all(cell in (None, 0, 1) for cell in cells):  # 1 where 1 was added to nothing
            return f"made up: {key} {cells}"
    return None


def test_nonsense_is_refused_in_our_own_words(hospital: Ground) -> None:
    """Whatever is asked: an answer, or one of our errors, and never a failure after the charge."""
    wrong: list[str] = []
    for seed in range(SEED, SEED + 4 * TRIALS):
        rng = Random(seed)
        sql = broken(rng, generate(rng).sql)
        try:
            hospital.session.explain(sql)
        except InternalError as error:
            wrong.append(f"seed {seed}: {sql}\n{error}")
        except Error:
            continue
        except Exception as error:
            wrong.append(f"seed {seed}: {sql}\n{type(error).__name__}: {error}")
    assert not wrong, "\n\n".join(wrong[:20])


def test_the_comparison_can_fail() -> None:
    statement = Statement("", "", keys=1)
    assert unlike(statement, [("a", 5)], [("a", 5, 9)]) is None
    assert unlike(statement, [("a", 5), ("b", 0)], [("a", 5, 9)]) is None
    assert unlike(statement, [], [("a", 5, 9)]) is None
    assert unlike(statement, [("a", 6)], [("a", 5, 9)])
    assert unlike(statement, [], [("a", 50, 40)])
    assert unlike(statement, [("a", 5), ("b", 7)], [("a", 5, 9)])
    assert unlike(Statement("", "", keys=0), [(4,)], [(5,)])


def test_generated_statements_are_sql_that_duckdb_reads(hospital: Ground) -> None:
    """Both forms, so that a statement is never refused because it was nonsense."""
    for seed in range(SEED, SEED + 60):
        statement = generate(Random(seed))
        asked = hospital.reference.execute(statement.sql).fetchall()
        counted = hospital.reference.execute(statement.reference).fetchall()
        assert len(asked) == len(counted), statement.sql
