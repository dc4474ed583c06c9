"""Release keys stay what they were: a ledger finds the releases that were paid for by them.

If a test here fails, releases that users have stored are no longer found, and who asks again pays again. A key is a
hash of texts, most of them a `repr`: of classes and fields in `dpsql/schema/model.py`, `dpsql/schema/domain.py` and
`dpsql/types.py`, of the plan's measures and holes. So keep the old name, or write the old text (a `__repr__`;
`field(repr=False)` for a new field that changes no answer), or write a migration of the ledger. Change a literal below
only together with such a migration, or where what was stored would be a wrong answer.
"""

import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.compiler.compile import compile_query
from dpsql.compiler.rewrite.weighted_rows import ColumnCoding
from dpsql.compiler.settings import EmptyGroups, default_settings
from dpsql.compiler.weighted_rows import compile_study, compile_weighted_rows
from dpsql.schema.model import Randomized, Resolved
from tests.conftest import resolve
from tests.support.count_study import counts

ROOT = Path(__file__).parents[3]
DIGITS = 16

KEYS: dict[tuple[str, str], list[str]] = {
    ("schema", "SELECT kind, COUNT(*) FROM visits GROUP BY kind"): ["829358895fd350e5"],
    ("schema", "SELECT ward, COUNT(*) FROM visits WHERE nights > 0 AND note LIKE 'a%' GROUP BY ward"): [
        "47a41fb7a0226b8d"
    ],
    (
        "schema",
        "SELECT SUM(cost), AVG(cost), STDDEV(paid), COUNT(DISTINCT patient_id), COUNT(DISTINCT kind) FROM "
        "visits WHERE at >= DATE '2024-01-01' OR NOT (ward IN ('a', 'b') AND score IS NULL)",
    ): ["40f1379cb4122548"],
    (
        "schema",
        "SELECT ward, SUM(cost, contribution_bounds_per_group => (0, 1000)) FROM visits GROUP BY ward",
    ): ["f1e8782f2d805947"],
    (
        "schema",
        "SELECT p.sex, SUM(t.value) FROM patients p JOIN visits v ON p.patient_id = v.patient_id LEFT JOIN "
        "lab_tests t ON t.visit_id = v.visit_id JOIN Wards w ON w.ward = v.ward WHERE w.floor = 1 AND CASE "
        "WHEN p.insured THEN p.weight ELSE 2 END < 70.5 GROUP BY p.sex",
    ): ["5d00799dd1f0a44d"],
    (
        "schema",
        "SELECT COUNT(*), AVG(n) FROM (SELECT patient_id, LEAST(COUNT(*), 9) AS n FROM visits GROUP BY patient_id) t",
    ): ["61260c87e24caff3"],
    (
        "schema",
        "SELECT COUNT(*) FROM (SELECT patient_id, kind, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY "
        "at) AS n FROM visits UNION ALL SELECT patient_id, sex, 1 FROM patients p WHERE EXISTS (SELECT 1 FROM "
        "visits v WHERE v.patient_id = p.patient_id AND v.kind = 'urgent')) t WHERE n = 1",
    ): ["b67d3ee01b52027f"],
    ("schema", "SELECT kind, nights, CORR(cost, nights) FROM visits GROUP BY ROLLUP (kind, nights)"): [
        "0a5dec1ed72c1a38"
    ],
    ("schema", "SELECT ward, QUANTILE_CONT(cost, 0.9), MAX(nights), MODE(kind) FROM visits GROUP BY ward"): [
        "156ffedb4adb5842",
        "2443a232b5f64569",
        "9f19df5d3145fcb9",
        "e60978243ab7f755",
    ],
    ("schema", "SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)"): [
        "19a790daad812f6c",
        "c616c01bcd2a195f",
    ],
    ("schema", "SELECT BLOCKWISE(mad(cost), 0, 5000, blocks => 10) FROM visits"): ["35839cc566de3036"],
    ("schema", "SELECT PRIVATE_ARGMAX(kind, COUNT(*)), POSTERIOR_SAMPLE(cost > 100) FROM visits"): [
        "060958c9eaf48fcb",
        "7c0d7c4ff9a67b12",
    ],
    ("people", "SELECT RANDOMIZED(region, 1) FROM people"): ["086bc53c41fdc6f9"],
    ("people", "SELECT town, COUNT(*) FROM people GROUP BY town"): ["b07fb1ec8ac52d8c"],
    ("survey", "SELECT answered, AVG(minutes) FROM calls GROUP BY answered"): ["71332b901ccd4775"],
    ("rows", "SELECT kind, COUNT(*), SUM(change) FROM events GROUP BY kind"): ["e4a10087c2fb9c0b"],
    ("snap", "SELECT COUNT(*) FROM recent WHERE moment < TIMESTAMP '2024-03-01 12:34:00'"): ["a4c5224b3be85c0a"],
}
"""By schema and statement: how the keys of its releases begin, in order."""

STUDIED = "SELECT sex, birth_year FROM patients WHERE insured"
STUDY_KEY = "4dc11f60b7ae9378"


def resolve_variant(name: str) -> Resolved:
    """A schema of the golden files; `people` is that of the survey with one table, whose towns were randomized."""
    if name != "people":
        return resolve(name)
    survey = resolve("survey")
    (people, *_) = survey.schema.tables
    randomized = Randomized(Fraction(3, 2), ("A", "B"))
    columns = tuple(replace(c, randomized=randomized) if c.name == "town" else c for c in people.columns)
    return replace(survey, schema=replace(survey.schema, tables=(replace(people, columns=columns),)))


def keys_of(name: str, sql: str, empty_groups: EmptyGroups = EmptyGroups.SHOW) -> list[str]:
    resolved = resolve_variant(name)
    settings = replace(default_settings(resolved.schema.privacy).statement, empty_groups=empty_groups)
    steps = compile_query(sql, resolved, settings).steps
    return [step.plan_hash[:DIGITS] for step in steps]


def study_key() -> str:
    clinic = resolve("schema")
    rows = compile_weighted_rows(STUDIED, STUDIED, clinic, default_settings(clinic.schema.privacy).statement)
    (step,) = compile_study(rows, ColumnCoding(bins=16, listed={}, nulls=True), counts).compiled.steps
    return step.plan_hash[:DIGITS]


@pytest.mark.parametrize(("name", "sql"), KEYS)
def test_a_release_has_the_key_that_it_was_stored_under(name: str, sql: str) -> None:
    assert keys_of(name, sql) == KEYS[name, sql]


def test_a_study_of_weighted_rows_has_the_key_that_it_was_stored_under() -> None:
    assert study_key() == STUDY_KEY


def test_empty_groups_are_left_out_by_counts_under_keys_of_their_own() -> None:
    """A release of older versions has no count that rows could be told by; asked with `show`, it is found again."""
    summed = "SELECT kind, SUM(cost) FROM visits WHERE cost BETWEEN 0 AND 10 GROUP BY kind"
    counted = "SELECT kind, COUNT(*), SUM(cost) FROM visits WHERE cost BETWEEN 0 AND 10 GROUP BY kind"
    (shown,), (hidden,) = keys_of("schema", summed), keys_of("schema", summed, EmptyGroups.HIDE)
    assert shown != hidden and keys_of("schema", counted) == keys_of("schema", counted, EmptyGroups.HIDE) == [hidden]
    middle = "SELECT kind, MEDIAN(cost) FROM visits GROUP BY kind"
    shown_steps, hidden_steps = keys_of("schema", middle), keys_of("schema", middle, EmptyGroups.HIDE)
    assert [key for key in hidden_steps if key in shown_steps] == shown_steps
    assert len(hidden_steps) == len(shown_steps) + 1


CHECK = """
from tests.unit.compiler.test_release_key import KEYS, STUDY_KEY, keys_of, study_key
assert all(keys_of(*asked) == keys for asked, keys in KEYS.items()) and study_key() == STUDY_KEY
"""


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_key_does_not_depend_on_the_order_of_sets(seed: str) -> None:
    """Each process has its own: a key that followed it would be found again by chance."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", CHECK], cwd=ROOT, env=environment, check=True)
