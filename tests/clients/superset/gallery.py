"""Many charts, filters and pages of Superset over the corpus's hospital: what it sends for them is part of the corpus.

`test_gallery.py` holds that tests/corpus/bi/superset_sent.sql has these statements as they were sent; the corpus holds
that dpsql answers them as DuckDB does, or refuses them with a hint. To write down new ones:

    SUPERSET_GALLERY=write make test-superset
"""

from __future__ import annotations

from typing import Any

from tests.clients.superset.charts import Json, metric, query

MONTH = "2024-03-01 : 2024-04-01"
WEEK = "2024-05-06 : 2024-05-13"
HOUR = "2024-05-06T10:00:00 : 2024-05-06T11:00:00"
GRAINS = {
    "seconds": ("PT1S", "2024-05-06T10:00:00 : 2024-05-06T10:00:30"),
    "five seconds": ("PT5S", "2024-05-06T10:00:00 : 2024-05-06T10:01:00"),
    "minutes": ("PT1M", HOUR),
    "five minutes": ("PT5M", HOUR),
    "half hours": ("PT30M", "2024-05-06 : 2024-05-07"),
    "hours": ("PT1H", "2024-05-06 : 2024-05-07"),
    "days": ("P1D", WEEK),
    "weeks": ("P1W", MONTH),
    "quarters": ("P3M", "2023-01-01 : 2025-01-01"),
}


def grain(column: str, name: str) -> Json:
    return {
        "timeGrain": name,
        "columnType": "BASE_AXIS",
        "sqlExpression": column,
        "label": column,
        "expressionType": "SQL",
    }


def custom(label: str, sql: str) -> Json:
    return {"expressionType": "SQL", "sqlExpression": sql, "label": label, "optionName": f"metric_{label}"}


def during(column: str, range: str) -> Json:
    return {"col": column, "op": "TEMPORAL_RANGE", "val": range}


def where(column: str, operator: str, value: Any = None) -> Json:
    return {"col": column, "op": operator} | ({} if value is None else {"val": value})


def asked(metrics: list[Any], filters: tuple[Json, ...] = (), **more: Any) -> Json:
    return {**query([], metrics, **more), "filters": list(filters)}


def by_grain(name: str, range: str) -> Json:
    return asked(["count"], (during("admitted", range),), columns=[grain("admitted", name)])


CHARTS: dict[str, Json] = {
    **{f"a line by {name}": by_grain(*given) for name, given in GRAINS.items()},
    "a line over a date": asked(
        [metric("SUM", "nights")], (during("day", MONTH),), columns=[grain("day", "P1W")], orderby=[["count", False]]
    ),
    "a line over moments with a zone": asked(["count"], (during("logged", WEEK),), columns=[grain("logged", "P1D")]),
    "a big number with a trend": asked([metric("SUM", "cost")], columns=[grain("admitted", "P1M")]),
    "sums, averages and distinct ones": asked(
        [
            metric("SUM", "paid"),
            metric("AVG", "rating"),
            metric("COUNT_DISTINCT", "patient_id"),
            metric("COUNT", "note"),
        ],
        columns=["kind"],
        orderby=[[metric("SUM", "paid"), False]],
    ),
    "a ratio of one's own": asked([custom("per night", "SUM(cost) / NULLIF(SUM(nights), 0)")], columns=["kind"]),
    "a share of one's own": asked([custom("urgent", "COUNT(*) FILTER (WHERE urgent) * 100.0 / COUNT(*)")]),
    "a dimension of one's own": asked(
        ["count"], columns=[custom("weekend", "CASE WHEN EXTRACT(DOW FROM day) IN (0, 6) THEN 'yes' ELSE 'no' END")]
    ),
    "filters on text": asked(
        ["count"],
        (
            where("kind", "==", "scheduled"),
            where("ward", "!=", "surgery"),
            where("diagnosis", "LIKE", "I%"),
            where("note", "ILIKE", "%a%"),
            where("ward", "NOT IN", ["oncology", "urology"]),
            where("note", "IS NOT NULL"),
        ),
    ),
    "filters on numbers": asked(
        ["count"],
        (
            where("nights", ">", 1),
            where("nights", "<=", 7),
            where("cost", ">=", 99.5),
            where("cost", "<", 4000),
            where("rating", "IN", [3, 4, 5]),
        ),
    ),
    "filters on what is missing and on truth": asked(
        ["count"], (where("rating", "IS NULL"), where("urgent", "IS TRUE")), columns=["kind"]
    ),
    "a filter in SQL, and one on groups": asked(
        ["count"], columns=["kind"], extras={"where": "(nights BETWEEN 1 AND 3)", "having": "(COUNT(*) > 10)"}
    ),
    "a series limit by another metric": asked(
        ["count"],
        (during("admitted", "2023-01-01 : 2025-01-01"),),
        columns=[grain("admitted", "P3M"), "kind"],
        series_columns=["kind"],
        series_limit=2,
        series_limit_metric=metric("SUM", "cost"),
        orderby=[["count", False]],
    ),
    "a series limit, the rest together": asked(
        ["count"],
        columns=["kind"],
        series_columns=["kind"],
        series_limit=2,
        group_others_when_limit_reached=True,
        series_limit_metric="count",
        orderby=[["count", False]],
    ),
    "totals below a table": asked(["count", metric("SUM", "paid")], row_limit=0),
    "how many rows a table has": asked(["count"], columns=["kind"], is_rowcount=True),
    "the second page of a table": asked(
        ["count"], columns=["kind"], row_limit=2, row_offset=1, orderby=[["count", False]]
    ),
    "a heat map": asked([metric("AVG", "cost")], columns=["kind", "urgent"]),
    "a box plot": asked([metric("AVG", "cost")], columns=[grain("admitted", "P1M"), "kind"], series_columns=["kind"]),
    "a list of filter values": asked([], columns=["kind"], orderby=[["kind", True]], row_limit=1000),
    "filter values that are searched for": asked(
        [], (where("kind", "ILIKE", "%e%"),), columns=["kind"], row_limit=1000
    ),
    "a list of filter values that are numbers": asked([], columns=["rating"], orderby=[["rating", True]]),
    "a range of numbers": asked([metric("MIN", "cost") | {"label": "min"}, metric("MAX", "cost") | {"label": "max"}]),
    "raw records": asked([], columns=["kind", "cost", "admitted"], orderby=[["cost", False]]) | {"metrics": None},
    "a histogram": asked([], columns=["cost"]) | {"metrics": None},
}
"""Of visits, a table."""

VIRTUAL = "SELECT v.kind, v.cost, v.admitted, p.sex FROM visits v JOIN patients p ON p.patient_id = v.patient_id"
VIRTUAL_CHARTS: dict[str, Json] = {
    "a bar chart of a virtual dataset": asked(
        ["count"], (where("kind", "IN", ["emergency", "scheduled"]),), columns=["sex"], orderby=[["count", False]]
    ),
    "a line of a virtual dataset": asked(
        [metric("SUM", "cost")],
        (during("admitted", "2024-01-01 : 2024-07-01"),),
        columns=[grain("admitted", "P1M"), "sex"],
    ),
    "a list of filter values of a virtual dataset": asked([], columns=["sex"], orderby=[["sex", True]], row_limit=1000),
}
"""Of a statement, which Superset calls a virtual dataset."""
