"""Injection by the schema: YAML, names, sources and views are data, and nothing else."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb
import pytest

from dpsql.errors import Error, SchemaError
from tests.support.attack_hospital import DATA, TABLES, VICTIM, build, for_free, outcome, schema_text
from tests.support.shop import Silence

pytestmark = pytest.mark.slow


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# --- YAML ------------------------------------------------------------------------------------------------------------

LAUGHS = "a: &a [x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nd: [*c, *c, *c, *c]\n"
YAML = {
    "python object": schema_text("h").replace("dpsql: 1",
        "dpsql: !!python/object/apply:os.system ['touch /tmp/pwned']"),
    "a tag": schema_text("h").replace("epsilon: 1,", "epsilon: !!float 1,"),
    "laughs": LAUGHS + schema_text("h"),
    "an anchor": schema_text("h").replace("columns:\n", "columns: &c\n", 1),
    "a merge": schema_text("h").replace("privacy:\n", "privacy:\n  <<: {group_size: 1}\n"),
    "a key twice": schema_text("h").replace("privacy:\n", "privacy:\n  group_size: 5\n  group_size: 1\n"),
    "another case": schema_text("h").replace("  wards:",
        "  People: {public: true, columns: {pid: {type: bigint}}}\n  wards:"),
    "two documents": schema_text("h") + "\n---\ndpsql: 1\n",
    "deep": schema_text("h") + "x: " + "[" * 5000 + "]" * 5000,
    "deep mappings": schema_text("h") + "x: " + "{a: " * 3000 + "1" + "}" * 3000,
    "large": schema_text("h") + "#" + "x" * 2_000_000,
    "an unknown key": schema_text("h") + "hooks: {before: rm}\n",
    "a zero byte": schema_text("h") + "# \x00",
    "a number for a list": schema_text("h").replace("unique: [pid]", "unique: 5"),
    "an environment": schema_text("h").replace("duckdb:///h.duckdb", "duckdb:///${NOSUCH_VARIABLE}"),
    "a network source": schema_text("h", TABLES.replace("unit: pid\n",
        "source: https://example.org/x.parquet\n    unit: pid\n", 1)),
    "a source with a statement": schema_text("h",
        TABLES.replace("unit: pid\n", "source: \"people; DROP TABLE visits\"\n    unit: pid\n", 1)),
    "a source with a function": schema_text("h",
        TABLES.replace("unit: pid\n", "source: \"read_csv('/etc/passwd')\"\n    unit: pid\n", 1)),
    "a source that is quoted": schema_text("h",
        TABLES.replace("unit: pid\n", "source: 'people\" UNION SELECT \"x'\n    unit: pid\n", 1)),
    "a ledger in memory": schema_text("h").replace("sqlite:///h.ledger", "sqlite:///:memory:"),
    "a ledger with options": schema_text("h").replace("sqlite:///h.ledger", "sqlite:///h.ledger?mode=memory"),
    "public and private": schema_text("h", TABLES.replace("unit: pid\n", "unit: pid\n    public: true\n", 1)),
    "a type with a statement": schema_text("h",
        TABLES.replace("{type: bigint}", "{type: \"bigint); DROP TABLE x; --\"}", 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", YAML)
def test_a_schema_is_data_and_nothing_else(tmp_path: Path, name: str) -> None:
    started = time.process_time()
    marker = Path("/tmp/pwned")
    with pytest.raises(Error):
        build(tmp_path, "h", YAML[name], DATA)
    assert not marker.exists() and time.process_time() - started < 5
    assert not (tmp_path / "h.ledger?mode=memory").exists()


def test_paths_that_climb_are_the_owners_own(tmp_path: Path) -> None:
    """`../` in a source is the owner's; the engine then reads that file and no other."""
    inner = tmp_path / "inner"
    inner.mkdir()
    duckdb.execute(f"COPY (SELECT i::BIGINT AS pid FROM range(50) r(i)) TO '{tmp_path}/up.parquet'")
    tables = "tables: {people: {source: ../up.parquet, unit: pid, columns: {pid: {type: bigint}}}}\n"
    schema = schema_text("h", tables).replace("engine: duckdb:///h.duckdb\n", "")
    session = build(inner, "h", schema, "SELECT 1", sampler=Silence())
    assert session.execute("SELECT COUNT(*) FROM people").rows[0][0] in range(45, 51)
    assert "up.parquet" not in outcome(session, "SELECT COUNT(*) FROM '../up.parquet'").replace(
        "'../up.parquet'", ""
    ).replace('"../up.parquet"', "")


VIEWS = ["SELECT 1; DROP TABLE visits", "SELECT * FROM visits; SELECT 1", "DROP TABLE visits", "COPY visits TO 'x'",
    "SELECT * FROM v",
         "SELECT * FROM read_csv('/etc/passwd')", "SELECT getenv('HOME') AS x", "SELECT ? AS x", "SELECT",
         "SELECT * FROM visits LIMIT 5",
         "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 99) COUNT(*) FROM visits",
         "(" * 300 + "SELECT 1" + ")" * 300]  # fmt: skip


@pytest.mark.parametrize("view", VIEWS, ids=range(len(VIEWS)))
def test_a_view_is_one_select_over_the_schema(tmp_path: Path, view: str) -> None:
    schema = schema_text("h", TABLES + f"views:\n  v: {quoted(view)}\n")
    try:
        session = build(tmp_path, "h", schema, DATA + VICTIM)
    except SchemaError:
        return
    with for_free(session):
        said = outcome(session, "SELECT COUNT(*) FROM v")
        assert said != "answered" and not said.startswith(("InternalError", "EngineFailed")), said
        assert outcome(session, "SELECT * FROM information_schema.columns") == "answered"
