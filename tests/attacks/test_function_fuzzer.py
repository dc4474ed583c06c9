"""The error channel, searched at random: every function on the worst rows, and every name of DuckDB's that is none.

`DPSQL_TRIALS` makes more expressions; each must be worked out without an error, in time and in memory, and as a key.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import duckdb
import pytest

from dpsql.compiler.functions.table import FUNCTIONS
from dpsql.compiler.plan.expressions import Call, Expr
from dpsql.compiler.render.expressions import render_expr
from dpsql.engines.duckdb import _PINNED_SETTINGS, quote_literal
from dpsql.errors import Error
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from tests.support.effort import trial_count
from tests.support.expressions import POOLS, bound, computed, load, parts
from tests.support.function_calls import EXPRESSIONS, composed
from tests.support.neighboring_databases import Neighbors, assert_alike

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

COMPOSED = 700
TRIALS = trial_count(COMPOSED)
TOGETHER = 40
SECONDS = 5.0
"""Of processor time, the most that a batch of expressions may take: 300 rows are worked out in a hundredth of it."""
MEGABYTES = 1500


@cache
def tried(seed: int, most: int) -> dict[str, Expr]:
    """Random calls that are not refused, two and three deep."""
    rng, found = Random(seed), dict[str, Expr]()
    while len(found) < most:
        sql = composed(rng, rng.choice((1, 2, 2, 3)))
        try:
            expr = bound(sql)
            render_expr(expr)
        except Error:
            continue
        found[sql] = expr
    return found


# --- every function that is accepted ---------------------------------------------------------------------------------


def calls(exprs: dict[str, Expr]) -> set[str]:
    return {part.function for expr in exprs.values() for part in parts(expr) if isinstance(part, Call)}


def test_every_record_is_called() -> None:
    """Alone, and within another function: those that analysts may write."""
    written = {name for name, function in FUNCTIONS.items() if function.written}
    assert written - calls({sql: bound(sql) for sql in EXPRESSIONS}) == set()
    assert len(written - calls(tried(3, COMPOSED))) <= len(written) // 10


@pytest.mark.parametrize("optimised", [True, False])
def test_no_composition_raises_or_runs_away(optimised: bool) -> None:
    """An expression that raised, hung or filled the memory for one row would tell that the row is there."""
    connection = duckdb.connect()
    for name, value in _PINNED_SETTINGS:
        connection.execute(f"SET GLOBAL {name} = {quote_literal(value)}")
    connection.execute("SET GLOBAL memory_limit = '1GB'")
    load(connection)
    if not optimised:
        connection.execute("PRAGMA disable_optimizer")
    items = list(tried(3, max(TRIALS, COMPOSED)).items())[: TRIALS : 1 if optimised else 3]
    for start in range(0, len(items), TOGETHER):
        some, began = items[start : start + TOGETHER], time.process_time()
        try:
            computed([expr for _, expr in some], connection)
        except duckdb.Error:
            for sql, expr in some:
                try:
                    computed([expr], connection)
                except duckdb.Error as error:
                    pytest.fail(f"{sql} raises: {error}")
            raise
        assert time.process_time() - began < SECONDS, [sql for sql, _ in some]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < MEGABYTES << 10


WORST_SCHEMA = """
dpsql: 1
engine: duckdb:///worst.duckdb
privacy:
  unit: worst.uid
  budget: {epsilon: 1000000, delta: 0.9}
  query: {epsilon: 1, delta: 1e-6}
  contributions: {rows: 3, groups: 3}
tables:
  worst:
    unit: uid
    columns:
      uid: {type: bigint}
"""


@pytest.fixture(scope="module")
def worst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The table of the worst rows as a private one, without bounds: three rows for each unit."""
    folder = Path(tmp_path_factory.mktemp("worst"))
    declared = {name: f"type: '{pool.domain.type}'" for name, pool in POOLS.items()}
    columns = "".join(f"      '{name}': {{{types}}}\n" for name, types in declared.items())
    (folder / "worst.yaml").write_text(WORST_SCHEMA + columns)
    with duckdb.connect(str(folder / "worst.duckdb")) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        load(connection)
        connection.execute("ALTER TABLE worst ADD COLUMN uid BIGINT")
        connection.execute("UPDATE worst SET uid = rowid // 3")
    session = Session(open_dataset(folder / "worst.yaml"), opened_with={"empty_groups": "show"})
    yield session
    session.dataset.close()


@pytest.mark.parametrize("seed", range(4))
def test_no_composition_fails_as_a_key_a_condition_or_a_value(worst: Session, seed: int) -> None:
    """Through a session: what Python cannot say of a row's key would fail after the engine has run."""
    rng, answered = Random(seed), 0
    for sql in rng.sample(list(tried(3, TRIALS)), TRIALS // 24):
        keyed = f"SELECT {sql} AS made, COUNT(*) FROM worst GROUP BY made"  # a name that no column has
        counted = f"SELECT COUNT({sql}), COUNT(DISTINCT {sql}) FROM worst WHERE ({sql}) IS NOT NULL"
        for statement in (keyed, counted):
            try:
                worst.execute(statement)
                answered += 1
            except Error as error:
                assert type(error).__name__ not in ("EngineFailed", "InternalError", "AccountSuspended"), statement
    assert answered > TRIALS // 24


# --- and every name that is not --------------------------------------------------------------------------------------

NAMES = sorted(duckdb.execute("SELECT DISTINCT function_name, function_type FROM duckdb_functions()").fetchall())
SPELLINGS = {
    "bit_length", "ceiling", "century", "char_length", "character_length", "cosh", "cot", "date_part", "datediff",
    "datesub", "datetrunc", "day", "dayofmonth", "dayofweek", "dayofyear", "decade", "epoch_ms", "epoch_us", "hour",
    "instr", "isfinite", "isinf", "isnan", "isodow", "isoyear", "lcase", "len", "microsecond", "millennium",
    "millisecond", "minute", "mod", "month", "ord", "pi", "position", "pow", "prefix", "quarter", "regexp_extract",
    "regexp_matches", "second", "strlen", "substr", "suffix", "try_strptime", "ucase", "unicode", "week", "weekday",
    "weekofyear", "year",
}  # fmt: skip
"""Other names of accepted functions."""
ENVIRONMENT = {
    "current_catalog", "current_database", "current_date", "current_schema", "current_user", "now", "session_user",
    "today", "transaction_timestamp", "user", "uuid", "version",
}  # fmt: skip
"""Values of the statement, which become literals; `uuid(x)` is a cast."""
ARGUMENTS = ("", "n", "note", "p", "w", "n, 2", "note, 'a'", "p, q", "w, w, w", "note, 1, 2", "'day', p, q")


@pytest.mark.parametrize("part", range(4))
def test_every_other_function_of_the_engine_is_refused_before_the_charge(both: Neighbors, part: int) -> None:
    """Scalar functions, macros and aggregates within a condition, by all names that DuckDB has."""
    side, before = both.without, both.without.budget()
    accepted = {*FUNCTIONS, *SPELLINGS, *ENVIRONMENT}
    names = [name for name, kind in NAMES if kind in ("scalar", "macro", "aggregate") and name not in accepted]
    assert len(names) > 500
    for name in names[part::4]:
        spelled = name if name.replace("_", "").isalnum() else f'"{name}"'
        for arguments in ARGUMENTS[:: 1 if TRIALS > 600 else 2]:
            sql = f"SELECT COUNT(*) FROM visits WHERE {spelled}({arguments}) IS NULL"
            with pytest.raises(Error):
                side.explain(sql)
                pytest.fail(f"answered: {sql}")
    assert side.budget() == before


def test_so_is_every_table_function(both: Neighbors) -> None:
    """In FROM, alone and beside private rows; but for `range` and the like, which are written out."""
    side, before = both.without, both.without.budget()
    for name in [name for name, kind in NAMES if kind in ("table", "table_macro", "pragma")]:
        for arguments in ("", "'visits'", "1, 10"):
            if name in ("range", "generate_series", "unnest"):
                continue
            for sql in (f"SELECT * FROM {name}({arguments})", f"SELECT COUNT(*) FROM visits, {name}({arguments}) AS z"):
                with pytest.raises(Error):
                    side.explain(sql)
                    pytest.fail(f"answered: {sql}")
    assert side.budget() == before


@pytest.mark.parametrize("sql", [
    "SELECT COUNT(*) FROM visits WHERE datesub() > 1", "SELECT COUNT(*) FROM visits WHERE datesub(n) > 1",
    "SELECT COUNT(*) FROM visits WHERE datesub(n, x) > 1", "SELECT COUNT(*) FROM visits WHERE date() > 1",
    "SELECT COUNT(*) FROM (SELECT pid, ntile() OVER (PARTITION BY pid ORDER BY n) AS z FROM visits) t WHERE z > 1",
    "SELECT COUNT(*) FROM (SELECT pid, arg_max() AS z FROM visits GROUP BY pid) t",
    "SELECT COUNT(*) FROM (SELECT pid, mode() AS z FROM visits GROUP BY pid) t",
    "SELECT COUNT(*) FROM (SELECT pid, ts_or_ds_add(n, x, note, day) AS z FROM visits GROUP BY pid) t",
    "SELECT COUNT(*) FROM (SELECT pid, x_m_l_table(n, x) AS z FROM visits GROUP BY pid) t",
    "SELECT COUNT(*) FROM (SELECT pid, j_s_o_n_exists(n, x, note) AS z FROM visits GROUP BY pid) t",
    "SELECT var_map(n) FROM visits", "SELECT levenshtein_less_equal() FROM visits",
])  # fmt: skip
def test_a_wrong_number_of_arguments_is_an_error_of_ours(both: Neighbors, sql: str) -> None:
    """Nothing but `dpsql.Error` reaches an analyst."""
    assert assert_alike(both, sql).kind != "answered"
