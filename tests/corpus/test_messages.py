"""No message shows a name that dpsql made up, whatever is wrong with a statement: the corpus with words exchanged."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from dpsql.compiler.compile import compile_query
from dpsql.compiler.settings import default_settings
from dpsql.errors import Error
from dpsql.schema.model import PublicFacts, Resolved
from tests.corpus.reader import HERE, Case, all_cases
from tests.support.effort import draw_some
from tests.unit.compiler.split.test_row_queries_suggestions import resolved

INTERNAL_NAME = re.compile(
    r"(?<![\w.])_(?:r|p|h|m|error|part|uid|set)\d*\b|\b(?:rows|part|listed|weights)\d+\b| pending \d"
)
WORD = re.compile(r"[a-z_]{3,}", re.IGNORECASE)
CASES = all_cases()
SOME = draw_some(CASES)


def data_of(schema: str) -> Resolved:
    data = resolved(HERE / f"{schema}.yaml")
    facts = {table.name: PublicFacts(100, {}) for table in data.schema.tables if table.public}
    return replace(data, public=facts)


DATA = {schema: data_of(schema) for schema in {case.schema for case in CASES}}


def spoiled(sql: str, draw: random.Random) -> str:
    """With one word written twice, left out, or in the place of another."""
    words = list(WORD.finditer(sql))
    if not words:
        return sql
    word, other = draw.choice(words), draw.choice(words)
    replacement = draw.choice(
        [other[0], "", "nothing", f"{word[0]} {word[0]}", "1", "patient_id", "(SELECT COUNT(*) FROM visits)"]
    )
    return sql[: word.start()] + replacement + sql[word.end() :]


@pytest.mark.thorough
@pytest.mark.parametrize("case", SOME, ids=lambda case: f"{case.file}: {case.title}")
def test_no_message_shows_an_internal_name(case: Case) -> None:
    data, draw = DATA[case.schema], random.Random(case.sql)
    settings = default_settings(data.schema.privacy).statement
    for sql in (case.sql, *(spoiled(case.sql, draw) for _ in range(6))):
        try:
            told = " ".join(compile_query(sql, data, settings).notices)
        except Error as error:
            told = f"{error.message} {error.detail or ''} {error.hint or ''}"
        assert INTERNAL_NAME.search(told.replace(sql, "")) is None, sql
