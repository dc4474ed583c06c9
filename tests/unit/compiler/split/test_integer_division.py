"""Quotients of whole numbers: refused where only 0 or 1 can come of them, told elsewhere, and PostgreSQL's meaning."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpsql.compiler.compile import Compiled, compile_query
from dpsql.compiler.settings import default_settings
from dpsql.compiler.split.integer_division import IntegerDivision
from dpsql.errors import Unsupported
from tests.unit.compiler.split.test_row_queries_suggestions import CORPUS, resolved

DATA = resolved(CORPUS / "hospital.yaml")
ALLOW = IntegerDivision.ALLOW
SETTINGS = default_settings(DATA.schema.privacy).statement


def compiled(sql: str, division: IntegerDivision = IntegerDivision.REFUSE) -> Compiled:
    return compile_query(sql, DATA, replace(SETTINGS, division=division))


PARTS = (
    "SUM(CASE WHEN urgent THEN 1 ELSE 0 END) / COUNT(*)",
    "SUM(CASE WHEN urgent THEN 1 END) / COUNT(*)",
    "SUM(urgent::int) / COUNT(*)",
    "COALESCE(SUM(urgent::int), 0) / NULLIF(COUNT(*), 0)",
    "COUNT(*) FILTER (WHERE urgent) / COUNT(*)",
    "COUNT_IF(urgent) / COUNT(*)",
    "COUNT(note) / COUNT(*)",
    "COUNT(DISTINCT patient_id) / COUNT(*)",
    "COUNT(DISTINCT patient_id) FILTER (WHERE urgent) / COUNT(DISTINCT patient_id)",
    "COUNT(*) FILTER (WHERE urgent AND nights > 2) / COUNT(*) FILTER (WHERE urgent)",
    "SUM(nights) FILTER (WHERE urgent) / SUM(nights)",
    "SUM(CASE WHEN urgent THEN nights ELSE 0 END) / SUM(nights)",
    "SUM(CASE WHEN urgent THEN nights ELSE 0 END) / SUM(nights) * 100",
    "(COUNT(*) FILTER (WHERE urgent)) / (COUNT(*))",
)


@pytest.mark.parametrize("ratio", PARTS)
def test_what_can_only_be_0_or_1_is_refused_with_what_works(ratio: str) -> None:
    sql = f"SELECT kind, {ratio} AS share FROM visits GROUP BY kind"
    with pytest.raises(Unsupported, match="can only be 0 or 1") as caught:
        compiled(sql)
    assert caught.value.span is not None and "SET integer_division = allow" in str(caught.value.hint)
    mended, _, _ = str(caught.value.hint).removeprefix("Write ").partition("; SET ")
    mended, _, mean = mended.partition(", or ")
    for text in [mended] if mended.startswith("SELECT") else [f"SELECT {mended} FROM visits"]:
        assert compiled(text).warnings == ()
    if mean:
        assert compiled(f"SELECT {mean} FROM visits").warnings == ()
    assert any("quotient of whole numbers" in warning for warning in compiled(sql, ALLOW).warnings)


@pytest.mark.parametrize(
    "ratio",
    [
        "SUM(nights) / COUNT(*)", "COUNT(*) / COUNT(DISTINCT patient_id)", "100 * COUNT(note) / COUNT(*)",
        "COUNT(*) FILTER (WHERE urgent) / COUNT(*) FILTER (WHERE nights > 2)", "SUM(nights) / SUM(rating)",
        "SUM(CASE WHEN urgent THEN 1 ELSE -1 END) / COUNT(*)", "SUM(CASE WHEN urgent THEN 2 ELSE 0 END) / COUNT(*)",
        "SUM(CASE WHEN urgent THEN nights - 3 ELSE 0 END) / SUM(nights - 3)",
    ],
)  # fmt: skip
def test_other_quotients_are_answered_with_a_warning(ratio: str) -> None:
    answer = compiled(f"SELECT {ratio} AS r FROM visits")
    assert len(answer.warnings) == 1 and "1.0 * " in answer.warnings[0] and answer.warnings[0] in answer.notices
    assert "//" in answer.post_sql


@pytest.mark.parametrize(
    "select",
    [
        "AVG(CASE WHEN urgent THEN 1 ELSE 0 END) FROM visits", "1.0 * COUNT(note) / COUNT(*) FROM visits",
        "COUNT(*) / 7 FROM visits", "SUM(cost) / COUNT(*) FROM visits", "SUM(paid) / COUNT(*) FROM visits",
        "COUNT(note) / COUNT(*)::numeric FROM visits", "7 / 2 FROM visits GROUP BY kind",
    ],
)  # fmt: skip
def test_nothing_is_said_where_nothing_is_lost(select: str) -> None:
    assert compiled(f"SELECT {select}").warnings == ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT kind, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY kind",
        "SELECT 1.0 * n / t AS r, n / t AS s FROM (SELECT COUNT(*) AS n, SUM(COUNT(*)) OVER () AS t FROM visits "
        "GROUP BY kind) AS v",
        "SELECT COUNT(*) / SUM(n) AS r FROM (SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind) AS v",
        "SELECT SUM(n) / COUNT(*) AS r FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS v",
    ],
)
def test_sums_of_bigints_are_numeric_as_in_postgresql(sql: str) -> None:
    answer = compiled(sql)
    assert answer.warnings == () and "//" not in answer.post_sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(note) / NULLIF(COUNT(*), 0.0) AS r FROM visits",
        "SELECT NULLIF(SUM(nights), 0.0) / COUNT(*) AS r FROM visits",
        "SELECT 7 / NULLIF(COUNT(*), SUM(COUNT(*)) OVER ()) AS r FROM visits GROUP BY kind",
        "SELECT a / b AS r FROM (SELECT SUM(nights) AS a, NULLIF(COUNT(*), 0.0) AS b FROM visits) AS v",
    ],
)
def test_nullif_has_the_type_of_its_comparison_as_in_postgresql(sql: str) -> None:
    answer = compiled(sql)
    assert answer.warnings == () and "//" not in answer.post_sql
    assert "//" in compiled(sql.replace("0.0", "0").replace("SUM(COUNT(*)) OVER ()", "9"), ALLOW).post_sql


def test_quotients_of_columns_of_an_inner_query_are_warned_of() -> None:
    sql = "SELECT kind, a / b AS r FROM (SELECT kind, COUNT(note) AS a, COUNT(*) AS b FROM visits GROUP BY kind) AS v"
    (warning,) = compiled(sql).warnings
    assert warning.startswith("a / b is a quotient of whole numbers") and "1.0 * a / b keeps it" in warning


def test_aliases_are_looked_through() -> None:
    with pytest.raises(Unsupported, match="can only be 0 or 1") as caught:
        compiled("SELECT COUNT(note) AS a, COUNT(*) AS b, a / b AS share FROM visits")
    assert "Write 1.0 * a / b" in str(caught.value.hint)


def test_the_hint_has_the_whole_statement() -> None:
    with pytest.raises(Unsupported) as caught:
        compiled("SELECT kind,\n  COUNT(*) FILTER (WHERE urgent) / COUNT(*) AS share\nFROM visits GROUP BY kind;")
    assert caught.value.hint == (
        "Write SELECT kind, 1.0 * COUNT(*) FILTER (WHERE urgent) / COUNT(*) AS share FROM visits GROUP BY kind, or "
        "AVG(CASE WHEN urgent THEN 1 ELSE 0 END); SET integer_division = allow gives what is written."
    )
