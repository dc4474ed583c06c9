"""Apache Superset on dpsql, as its users have it: what it shows is what dpsql answered, and it is paid for once."""

from __future__ import annotations

import datetime as dt
import re
import secrets
import tempfile
from contextlib import nullcontext
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.clients.superset.api import Json, Refused, User
from tests.clients.superset.charts import CHARTS, Chart, dashboard, metric, query
from tests.clients.superset.datasets import made_dataset, register
from tests.clients.superset.hospital import Hospital
from tests.clients.superset.relay import Relay
from tests.clients.superset.superset_process import Superset, take_picture
from tests.support.server import make_certificate, serving

pytestmark = pytest.mark.superset

PATIENTS = Chart("All patients", "big_number_total", {}, query([], ["count"]))
WARDS = {"cardiology", "emergency", "maternity", "oncology", "pediatrics", "surgery"}
ASKED = re.compile(r"\s*SELECT\b(?s:.*)\bvisits\b", re.IGNORECASE)
WRONG_PASSWORD = 'The password provided for username "{}" is incorrect.'


def chart_data(user: User, chart: Chart, dataset: int, force: bool = False) -> list[Json]:
    answer: Json = user.post("/api/v1/chart/data", chart.context(dataset, force))["result"][0]
    assert answer["error"] is None
    rows: list[Json] = answer["data"]
    return rows


def last_statement(relay: Relay, start: int) -> str:
    """The one that asked for the hospital's rows, since `start`."""
    (statement,) = {one for one in relay.since(start) if ASKED.match(one)}
    return statement


def as_superset_tells(value: Any) -> Any:
    """Moments are milliseconds since 1970 in its JSON."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=dt.UTC).timestamp() * 1000
    return value


def in_lab(user: User, database: int, sql: str) -> Json:
    asked = {"database_id": database, "sql": sql, "schema": "public", "runAsync": False, "queryLimit": 100}
    return user.post("/api/v1/sqllab/execute/", {**asked, "client_id": secrets.token_hex(5)})


def test_a_connection_string_is_all_it_takes(admin: User, hospital: Hospital) -> None:
    form = {"database_name": "tried", "sqlalchemy_uri": hospital.address("ana"), "impersonate_user": False}
    assert admin.post("/api/v1/database/test_connection/", form) == {"message": "OK"}


def test_over_tls(admin: User) -> None:
    """With a certificate that Superset is told to trust; and not with another."""
    with serving(tls=True, options=("--require-tls",)) as server, tempfile.TemporaryDirectory() as other:
        form = {"database_name": "tried", "impersonate_user": False}
        told = {**form, "sqlalchemy_uri": server.dsn("ana", sslmode="verify-full")}
        assert admin.post("/api/v1/database/test_connection/", told) == {"message": "OK"}
        stranger = str(make_certificate(Path(other)))
        told = {**form, "sqlalchemy_uri": server.dsn("ana", sslmode="verify-full", sslrootcert=stranger)}
        with pytest.raises(Refused, match="certificate verify failed"):
            admin.post("/api/v1/database/test_connection/", told)


@pytest.mark.parametrize("user", ["ana", "nobody"])
def test_a_wrong_password_is_reported_in_its_own_words(admin: User, hospital: Hospital, user: str) -> None:
    """And that there is no such analyst is told in the same."""
    form = {"database_name": "tried", "sqlalchemy_uri": hospital.address(user, password="wrong")}
    with pytest.raises(Refused) as refused:
        admin.post("/api/v1/database/test_connection/", {**form, "impersonate_user": False})
    assert refused.value.messages == WRONG_PASSWORD.format(user)
    assert refused.value.body["errors"][0]["error_type"] == "CONNECTION_INVALID_PASSWORD_ERROR"


def test_the_schema_is_found(ana: User, database: int, hospital: Hospital) -> None:
    before = hospital.charges("ana")
    assert ana.get(f"/api/v1/database/{database}/catalogs/")["result"] == ["hospital"]
    assert "public" in ana.get(f"/api/v1/database/{database}/schemas/")["result"]
    tables = ana.get(f"/api/v1/database/{database}/tables/?q=(schema_name:public)")["result"]
    assert {(one["value"], one["type"]) for one in tables} == {("patients", "table"), ("visits", "table")}
    told = ana.get(f"/api/v1/database/{database}/table_metadata/?name=visits&schema=public")
    comments = {one["name"]: one["comment"] for one in told["columns"]}
    assert "14" in comments["nights"], "a column's comment tells its bounds"
    key = told["foreignKeys"][0]
    assert (key["column_names"], key["referred_table"]) == (["patient_id"], "patients")
    assert hospital.charges("ana") == before


def test_a_dataset_has_its_types_and_its_time(ana: User, dataset: int) -> None:
    found = ana.get(f"/api/v1/dataset/{dataset}")["result"]
    types = {one["column_name"]: (one["type"], one["is_dttm"]) for one in found["columns"]}
    assert types == {
        "patient_id": ("INTEGER", False),
        "ward": ("TEXT", False),
        "diagnosis": ("TEXT", False),
        "at": ("TIMESTAMP WITHOUT TIME ZONE", True),
        "nights": ("INTEGER", False),
        "cost": ("DOUBLE PRECISION", False),
    }
    assert found["main_dttm_col"] == "at"


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.kind)
def test_a_chart_shows_what_was_answered_and_is_paid_for_once(
    chart: Chart, ana: User, dataset: int, hospital: Hospital, relay: Relay
) -> None:
    before, start = hospital.charges("ana"), len(relay.statements)
    shown = chart_data(ana, chart, dataset)
    paid = hospital.charges("ana")
    assert paid != before
    answered = hospital.rows("ana", last_statement(relay, start))
    assert [tuple(row.values()) for row in shown] == [tuple(map(as_superset_tells, row)) for row in answered]
    assert len(shown) == rows_of(chart)
    assert chart_data(ana, chart, dataset, force=True) == shown
    assert hospital.charges("ana") == paid, "the same question again is free"


def rows_of(chart: Chart) -> int:
    """Wards, months and years are known, so each has a row, also where nobody came."""
    return {
        "table": len(WARDS),
        "big_number_total": 1,
        "echarts_timeseries_line": 12 * 2,
        "echarts_timeseries_bar": 5 * 3,
        "pivot_table_v2": 5 * len(WARDS),
    }[chart.kind]


def test_error_bars_are_metrics_too(ana: User, dataset: int, hospital: Hospital, relay: Relay) -> None:
    """In the statement of the table's chart they are released with it: it has been paid for."""
    chart_data(ana, CHARTS[0], dataset)
    paid, start = hospital.charges("ana"), len(relay.statements)
    bars = {"expressionType": "SQL", "sqlExpression": "DP_STDERR(AVG(cost))", "label": "±"}
    asked = {**CHARTS[0].query, "metrics": [*CHARTS[0].query["metrics"], bars]}
    shown = chart_data(ana, Chart("With error bars", "table", {}, asked), dataset)
    assert [tuple(row.values()) for row in shown] == hospital.rows("ana", last_statement(relay, start))
    assert all(0 < row["±"] < 100 for row in shown)
    assert hospital.charges("ana") == paid


def test_a_series_limit_keeps_the_largest(ana: User, dataset: int, hospital: Hospital) -> None:
    """The three wards with most visits, of the hospital's six: differences are some tens of standard errors."""
    (bars,) = (chart for chart in CHARTS if chart.kind == "echarts_timeseries_bar")
    assert {row["ward"] for row in chart_data(ana, bars, dataset)} == {"emergency", "cardiology", "surgery"}


def test_the_values_of_a_filter(ana: User, dataset: int, hospital: Hospital) -> None:
    """Declared ones are free; others are a release of keys, once."""

    def values(column: str) -> list[Any]:
        return list(ana.get(f"/api/v1/datasource/table/{dataset}/column/{column}/values/")["result"])

    before = hospital.charges("ana")
    assert set(values("ward")) == WARDS
    assert hospital.charges("ana") == before
    found = values("diagnosis")
    paid = hospital.charges("ana")
    assert "fracture" in found and paid != before
    assert set(values("diagnosis")) == set(found) and hospital.charges("ana") == paid


def test_sql_lab_answers(ana: User, database: int, hospital: Hospital) -> None:
    told = in_lab(ana, database, "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward ORDER BY ward")
    assert [(one["name"], one["type"]) for one in told["columns"]] == [("ward", "STRING"), ("visits", "LONGINTEGER")]
    answered = hospital.rows("ana", "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward ORDER BY ward")
    assert [(row["ward"], row["visits"]) for row in told["data"]] == answered


def test_sql_lab_shows_our_message_and_hint(ana: User, database: int) -> None:
    with pytest.raises(Refused) as refused:
        in_lab(ana, database, "SELECT SUM(patient_id) AS total FROM visits")
    assert "has no bounds" in refused.value.messages and "HINT:" in refused.value.messages
    with pytest.raises(Refused) as refused:
        in_lab(ana, database, "SELECT COUNT(nosuch) FROM visits")
    assert refused.value.messages == 'We can\'t seem to resolve the column "nosuch" at line 2.'


def test_options_of_the_connection_string_hold(admin: User, ana: User, hospital: Hospital) -> None:
    thrifty = register(admin, "thrifty", hospital.address("ana") + "?options=-c%20epsilon%3D0.2")
    (row,) = in_lab(ana, thrifty, "EXPLAIN SELECT COUNT(*) FROM visits WHERE nights = 4")["data"][:1]
    assert list(row.values()) == ["Loss: at most epsilon 0.2, delta 1e-7"]


def test_a_preview_is_refused_with_a_way_out(ana: User, database: int, hospital: Hospital) -> None:
    before = hospital.charges("ana")
    preview = ana.get(f"/api/v1/database/{database}/select_star/visits/public/")["result"]
    with pytest.raises(Refused) as refused:
        in_lab(ana, database, preview)
    assert "HINT:" in refused.value.messages and "COUNT(*)" in refused.value.messages
    assert hospital.charges("ana") == before


def test_a_preview_is_made_up_where_the_owner_allows_it(ana: User, database: int, hospital: Hospital) -> None:
    before = hospital.charges("ana")
    rows = in_lab(ana, database, ana.get(f"/api/v1/database/{database}/select_star/patients/public/")["result"])["data"]
    assert len(rows) == 100 and {row["sex"] for row in rows} <= {"f", "m", "x", None}
    assert hospital.charges("ana") == before


def test_a_virtual_dataset(ana: User, database: int, hospital: Hospital, relay: Relay) -> None:
    """Superset looks at one row of it for its types, so it needs a table whose preview is made up."""
    before = hospital.charges("ana")
    seniors = "SELECT sex, insured, 2025 - birth_year AS age FROM patients WHERE birth_year <= 1960"
    dataset = made_dataset(ana, database, "seniors", sql=seniors)
    found = ana.get(f"/api/v1/dataset/{dataset}")["result"]["columns"]
    assert [(one["column_name"], one["type_generic"]) for one in found] == [("sex", 1), ("insured", 3), ("age", 0)]
    assert hospital.charges("ana") == before
    start = len(relay.statements)
    chart = Chart("Seniors", "table", {}, query([], ["count", metric("AVG", "age")], columns=["sex"]))
    shown = chart_data(ana, chart, dataset)
    (statement,) = {one for one in relay.since(start) if "virtual_table" in one}
    assert [tuple(row.values()) for row in shown] == hospital.rows("ana", statement)
    assert {row["sex"] for row in shown} == {"f", "m", "x"} and hospital.charges("ana") != before


def test_an_estimate_is_free(ana: User, database: int, hospital: Hospital) -> None:
    """Superset shows PostgreSQL's figures only, of which EXPLAIN has none here; as a statement it tells the loss."""
    before = hospital.charges("ana")
    sql = "SELECT COUNT(*) FROM visits WHERE nights = 3"
    asked = {"database_id": database, "sql": sql, "schema": "public"}
    assert ana.post("/api/v1/sqllab/estimate/", asked) == {"result": [{}]}
    rows = in_lab(ana, database, f"EXPLAIN {sql}")["data"]
    assert "Loss: at most epsilon 1, delta 1e-7" in [text for row in rows for text in row.values()]
    assert hospital.charges("ana") == before


def test_a_shared_database_charges_the_logged_in_user(
    ana: User, bob: User, shared_dataset: int, hospital: Hospital
) -> None:
    """Also where Superset has the answer of another in its own cache."""
    before = hospital.charges("ana")
    shown = chart_data(ana, PATIENTS, shared_dataset)
    paid, other, service = hospital.charges("ana"), hospital.charges("bob"), hospital.charges("superset")
    assert chart_data(bob, PATIENTS, shared_dataset) == shown, "one release, for whoever has paid for it"
    assert paid != before and hospital.charges("bob") != other
    assert (hospital.charges("ana"), hospital.charges("superset")) == (paid, service)


@pytest.mark.parametrize("way", ["SET ROLE ana", "SET ROLE NONE", "RESET ROLE", "SET SESSION AUTHORIZATION ana"])
def test_no_user_leaves_their_role_in_sql_lab(bob: User, shared: int, hospital: Hospital, way: str) -> None:
    before = hospital.charges("ana"), hospital.charges("superset")
    with pytest.raises(Refused) if way != "RESET ROLE" else nullcontext():
        in_lab(bob, shared, f"{way}; SELECT COUNT(*) AS n FROM visits WHERE nights = 7")
    assert (hospital.charges("ana"), hospital.charges("superset")) == before


def test_a_user_who_is_no_analyst_gets_nothing(eve: User, shared_dataset: int) -> None:
    with pytest.raises(Refused, match="permission denied to set role"):
        chart_data(eve, PATIENTS, shared_dataset)


def test_registering_needs_no_budget(admin: User, shared: int, shared_dataset: int) -> None:
    """An administrator sees the catalog, and that is all."""
    assert "public" in admin.get(f"/api/v1/database/{shared}/schemas/")["result"]
    with pytest.raises(Refused, match="budget"):
        chart_data(admin, PATIENTS, shared_dataset)


def test_impersonation_alone_logs_in_by_the_users_name(admin: User, hospital: Hospital) -> None:
    """Superset puts the user's name beside the service's password; so it needs the lines of docs/superset.md."""
    form = {"database_name": "tried", "sqlalchemy_uri": hospital.address("superset"), "impersonate_user": True}
    with pytest.raises(Refused) as refused:
        admin.post("/api/v1/database/test_connection/", form)
    assert refused.value.messages == WRONG_PASSWORD.format("admin")


def test_a_dashboard_is_seen_and_refreshed_for_nothing(
    ana: User, dataset: int, superset: Superset, hospital: Hospital, left: Path
) -> None:
    shown = {chart.kind: chart_data(ana, chart, dataset) for chart in CHARTS}
    paid = hospital.charges("ana")
    board = ana.post("/api/v1/dashboard/", {"dashboard_title": "Hospital", "published": True})["id"]
    ids = {chart.name: ana.post("/api/v1/chart/", chart.saved(dataset, [board]))["id"] for chart in CHARTS}
    ana.put(f"/api/v1/dashboard/{board}", dashboard(ids))
    seen = take_picture(superset, "ana", f"/superset/dashboard/{board}/", left / "dashboard.png", len(CHARTS))
    text = str(seen["text"])
    assert seen["drawn"] == len(CHARTS)
    assert not re.search(r"error|unexpected|no results", text, re.IGNORECASE), text
    assert thousands(shown["big_number_total"][0]["count"]) in text
    for row in shown["table"]:
        assert row["ward"] in text and thousands(row["count"]) in text
    for chart in CHARTS:
        assert chart_data(ana, chart, dataset, force=True) == shown[chart.kind]
    assert hospital.charges("ana") == paid


def thousands(number: int) -> str:
    """As Superset shortens numbers above a thousand, to three figures, halves up: 9.07k, 31.6k, 4.5k."""
    unit = Decimal(10) ** (len(str(number)) - 3)
    rounded = (number / unit).quantize(Decimal(1), ROUND_HALF_UP) * unit / 1000
    return f"{float(rounded):g}k"
