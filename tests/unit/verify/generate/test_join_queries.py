"""Statements that join along keys and with public rows: each form is drawn, and answered, not always refused."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from dpsql.schema.model import Neighbors, Schema
from dpsql.verify import run
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.join_queries import random_public_query
from dpsql.verify.generate.queries import random_query
from dpsql.verify.generate.schemas import GeneratedSchema, generate_from_schema, random_schema
from dpsql.verify.report import TrialCounts
from dpsql.verify.run import run_batch

pytestmark = pytest.mark.slow

BOTH = r"\.(sale|line) = \w+\.(sale|line) AND \w+\.(sale|line) = \w+\.(sale|line)"
COMPOSITE_FORMS = {
    "join": rf"ON \w+{BOTH}",
    "EXISTS": rf"(?<!NOT )EXISTS \(SELECT 1 FROM \w+ AS \w+ WHERE \w+{BOTH}",
    "NOT EXISTS": rf"NOT EXISTS \(SELECT 1 FROM \w+ AS \w+ WHERE \w+{BOTH}",
    "IN": r"\.(sale|line)\) IN \(SELECT \w+\.(sale|line), \w+\.(sale|line) FROM",
    "NOT IN": r"\.(sale|line)\) NOT IN \(SELECT \w+\.(sale|line), \w+\.(sale|line) FROM",
    "rows without a partner": rf"(LEFT|RIGHT) JOIN \w+ AS \w+ ON \w+{BOTH} WHERE \w+\.(sale|line) IS NULL",
    "a part of a key": r"ON q1\.(sale|line) = q2\.(sale|line)(?! AND)",
}
PUBLIC_FORMS = {
    "public rows twice": r"JOIN prices AS \w+ ON .* JOIN prices AS \w+ ON ",
    "looked up": r"\(SELECT (1\.2 \* )?AVG\(z\.\w+\) FROM prices AS z WHERE [^ ]+ = [^ ]+\)",
    "looked up by two columns": r"FROM prices AS z WHERE [^ ]+ = [^ ]+ AND [^ ]+ = [^ ]+\)",
    "with a factor": r"\(SELECT 1\.2 \* \w+\(z\.\w+\) FROM prices AS z",
    "private rows without a public one": r"LEFT JOIN prices AS q2 ON .* WHERE q2\.\w+ IS NULL",
    "public rows without a private one": r"prices AS q2 LEFT JOIN .* WHERE q1\.\w+ IS NULL",
}
DETERMINING_FORMS = {
    "join": r"JOIN \w+ AS \w+ ON \w+\.ref = \w+\.ref",
    "sub-select": r"WHERE \w+\.ref = \w+\.ref",
    "IN": r"\.ref (NOT )?IN \(SELECT \w+\.ref",
    "a row for each": r"GROUP BY q1\.ref\) AS t",
}


def schema_of(shape: str, number: int, table: str = "") -> Schema:
    """With public prices if these are asked for; under add_remove, so that no statement is of randomized answers."""
    for attempt in range(99):
        schema = random_schema(ChoiceStream(f"{shape} {number} {attempt}"), shape)
        if not table or schema.table(table) is not None:
            return replace(schema, privacy=replace(schema.privacy, neighbors=Neighbors.ADD_REMOVE))
    raise AssertionError(f"no schema has {table}")


def world_of(shape: str, number: int) -> tuple[GeneratedSchema, ChoiceStream]:
    draws = ChoiceStream(f"{shape} {number}")
    return generate_from_schema(schema_of(shape, number), draws), draws


@pytest.mark.parametrize(
    ("shape", "forms"), [("composite", COMPOSITE_FORMS), ("unique", PUBLIC_FORMS), ("own", DETERMINING_FORMS)]
)
def test_each_form_is_drawn(shape: str, forms: dict[str, str]) -> None:
    drawn = Counter[str]()
    for number in range(400):
        world, draws = world_of(shape, number)
        for _ in range(8):
            sql = random_query(world, draws)
            drawn.update(form for form, pattern in forms.items() if re.search(pattern, sql))
    assert all(drawn[form] >= 5 for form in forms), drawn


def batches_of(shape: str, count: int, features: tuple[str, ...] = ()) -> TrialCounts:
    """Of so many batches, or until all of these features were answered twice."""
    trials = TrialCounts()
    for number in range(count):
        trials_of_batch, findings = run_batch(schema_of(shape, number), 7000 + number)
        assert not findings, findings[0].example
        trials += trials_of_batch
        if features and _are_covered(features, trials):
            break
    return trials


def _are_covered(features: tuple[str, ...], trials: TrialCounts) -> bool:
    return all(trials.features[name] >= 2 for name in features)


@pytest.mark.parametrize(
    ("shape", "features"),
    [
        ("composite", ("composite keys", "rows of a composite key", "anti-joins")),
        ("unique", ("counted joins", "rows found by a key", "anti-joins")),
        ("own", ("rows of a determining column", "rows found by a key")),
    ],
)
def test_each_feature_is_answered_and_compared(shape: str, features: tuple[str, ...]) -> None:
    trials = batches_of(shape, 60, features)
    assert _are_covered(features, trials), trials.features
    assert trials.outcomes["answered"] > 2 * trials.outcomes["refused"]


def test_public_rows_that_meet_no_private_one_are_refused_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after it: the refusal is in what compiles, so no release runs."""

    def anti_join(generated: GeneratedSchema, choices: ChoiceStream) -> str:
        for _ in range(200):
            sql = random_public_query(generated, choices) or ""
            if re.search(PUBLIC_FORMS["public rows without a private one"], sql):
                return sql
        return "SELECT COUNT(*) FROM prices AS q2 LEFT JOIN people AS q1 ON q1.p1 = q2.kind WHERE q1.p1 IS NULL"

    monkeypatch.setattr(run, "random_query", anti_join)
    trials = TrialCounts()
    for number in range(4):
        trials += run_batch(schema_of("unique", number, "prices"), number)[0]
    assert trials.outcomes == Counter(refused=trials.count) and trials.releases == 0
    assert max(trials.refusals, key=trials.refusals.__getitem__).startswith("the answer would depend on public rows")
