"""What clients ask of the catalog is answered as PostgreSQL answers it, row by row."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.catalog_compare import Asked, Both, corpus, fill, shown
from tests.support.catalog_data import DATA, written
from tests.support.postgres import Server

pytestmark = pytest.mark.slow

# Statements whose answers may differ, each with the reason. One that no longer differs is an error too.
DIFFERENT = (
    (r"version\(\)", "our version is told beside PostgreSQL's"),
    (r"pg_get_viewdef", "a view's text is the owner's own, not PostgreSQL's rendering of it"),
    (r"pg_(table|relation|tablespace|database)_size", "sizes are constants"),
    (r"FROM (pg_catalog\.)?pg_database\b(?!.*\(now\(\))", "there is one database, and it has no files"),
    (r"pg_catalog\.pg_roles r\nWHERE", "a user sees the owner and itself, and nobody else"),
    (r"FROM pg_catalog\.pg_proc p|pg_proc p ", "functions are those that can be called here, and dpsql's own"),
    (r"pg_get_functiondef", "functions have no text"),
    (r"relacl", "there are no lists of who may do what"),
    (r"pg_(cast|ts_\w+|extension|depend|db_role_setting)\b", "no casts, text search, extensions or dependencies"),
    (r"pg_settings", "only some settings are there"),
    (r"c\.oid = '1259'|attrelid = '1259'|indrelid = '1259'|c2\.oid = i\.indexrelid", "catalogs have no indexes"),
    (r"SELECT \* FROM information_schema\.columns WHERE", "nothing can be changed"),
    (r"string_agg\(pg_catalog\.format_type|pg_catalog\.string_agg", "an aggregate without an order"),
    (r"WITH RECURSIVE typeinfo_tree|ORDER BY sp\.r, pg_type\.oid DESC", "an order with ties"),
    (r"^\s*(SELECT|select) (1|NULL, NULL, NULL|ARRAY\[1, 2, 3\].*)$", "about no catalog: post-processing answers it"),
    (r"current_setting\('jit'\)", "nothing is compiled just in time here"),
    (r"UNLISTEN", "several statements, which the wire splits"),
)  # fmt: skip
LEAST = 0.88
"""The share that is the same; the rest is in DIFFERENT."""


@pytest.fixture(scope="module")
def both(postgres: Server) -> Iterator[dict[str, Both]]:
    made = {}
    for name in ("lab", "hospital"):
        schema = shown(name)
        postgres.execute(f"DROP DATABASE IF EXISTS {name}")
        postgres.execute(f"CREATE DATABASE {name}")
        fill(postgres.database(name), schema)
        made[name] = Both(postgres.database(name), schema)
    yield made
    for one in made.values():
        one.close()


def reason(sql: str) -> str | None:
    return next((why for pattern, why in DIFFERENT if re.search(pattern, sql)), None)


def test_statements_of_clients_are_answered_as_postgres_answers_them(
    both: dict[str, Both], capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = [(asked, both[asked.schema].verdict(asked.sql)) for asked in corpus()]
    told = Counter(verdict.split(":")[0] for _, verdict in verdicts)
    with capsys.disabled():
        print(f"\ncatalog: {told['same']} of {len(verdicts)} statements as PostgreSQL answers them; {dict(told)}")
    wrong = [_told(asked, verdict) for asked, verdict in verdicts if verdict != "same" and reason(asked.sql) is None]
    assert wrong == []
    assert not [_told(asked, verdict) for asked, verdict in verdicts if verdict.startswith("error")]
    assert told["same"] >= LEAST * len(verdicts)
    differing = [asked.sql for asked, verdict in verdicts if verdict != "same"]
    unneeded = [why for pattern, why in DIFFERENT if not any(re.search(pattern, sql) for sql in differing)]
    assert unneeded == []  # in one test, since the statements take a minute


def test_a_difference_is_found(both: dict[str, Both]) -> None:
    """The comparison itself: a name, a type, a row and an order that are not PostgreSQL's."""
    lab = both["lab"]
    assert lab.verdict("SELECT relname FROM pg_class WHERE relname = 'samples'") == "same"
    assert lab.verdict("SELECT datname FROM pg_database") == "rows"
    assert lab.verdict("SELECT COUNT(*) FROM samples") == "none"
    assert lab.verdict("SELECT pg_read_file('x') FROM pg_class WHERE false").startswith("error")


def test_what_every_postgres_has_is_what_the_script_writes(postgres: Server) -> None:
    """The files of `dpsql/compiler/catalog/data`, from a server on which nobody has created anything that they hold."""
    for name, text in written(postgres.database()).items():
        assert (DATA / f"{name}.tsv").read_text(encoding="utf-8") == text, f"{name}: run tests/support/catalog_data.py"


def _told(asked: Asked, verdict: str) -> str:
    return f"{asked.file}.sql, statement {asked.place} ({asked.title}): {verdict}\n{asked.sql[:300]}"
