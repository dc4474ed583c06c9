"""Charts of the hospital's visits, as Superset's editor makes them: what is drawn, and what is asked for it.

`params` is what the browser reads to draw a chart; it builds the same query from them as stands in `query`. So a chart
that was read through the API and is then looked at on a dashboard has been paid for once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

AT = "at"
YEAR = "2023-01-01 : 2024-01-01"
ALWAYS = "No filter"


@dataclass(frozen=True)
class Chart:
    name: str
    kind: str
    params: Json
    query: Json

    def context(self, dataset: int, force: bool = False) -> Json:
        """The body of /api/v1/chart/data."""
        source = {"id": dataset, "type": "table"}
        form = {**self.params, "viz_type": self.kind, "datasource": f"{dataset}__table"}
        return {"datasource": source, "force": force, "queries": [self.query], "form_data": form,
                "result_format": "json", "result_type": "full"}  # fmt: skip

    def saved(self, dataset: int, dashboards: list[int]) -> Json:
        """The body of /api/v1/chart/."""
        context = self.context(dataset)
        return {"slice_name": self.name, "viz_type": self.kind, "datasource_id": dataset, "datasource_type": "table",
                "params": json.dumps(context["form_data"]), "query_context": json.dumps(context),
                "dashboards": dashboards}  # fmt: skip


def metric(aggregate: str, column: str) -> Json:
    return {"expressionType": "SIMPLE", "column": {"column_name": column}, "aggregate": aggregate,
            "label": f"{aggregate}({column})", "optionName": f"metric_{aggregate}_{column}"}  # fmt: skip


def grained(grain: str) -> Json:
    return {"timeGrain": grain, "columnType": "BASE_AXIS", "sqlExpression": AT, "label": AT, "expressionType": "SQL"}


def within(time_range: str) -> Json:
    return {"clause": "WHERE", "expressionType": "SIMPLE", "subject": AT, "operator": "TEMPORAL_RANGE",
            "comparator": time_range}  # fmt: skip


def one_of(column: str, values: list[str]) -> Json:
    return {"clause": "WHERE", "expressionType": "SIMPLE", "subject": column, "operator": "IN",
            "operatorId": "IN", "comparator": values}  # fmt: skip


def filters(adhoc: list[Json]) -> list[Json]:
    return [{"col": one["subject"], "op": one["operator"], "val": one["comparator"]} for one in adhoc]


def query(adhoc: list[Json], metrics: list[Any], **more: Any) -> Json:
    return {"filters": filters(adhoc), "extras": {"having": "", "where": ""}, "applied_time_extras": {},
            "columns": [], "metrics": metrics, "annotation_layers": [], "row_limit": 10000, "series_limit": 0,
            "order_desc": True, "url_params": {}, "custom_params": {}, "custom_form_data": {}, **more}  # fmt: skip


def table() -> Chart:
    adhoc, metrics = [within(ALWAYS)], ["count", metric("AVG", "cost")]
    params = {"query_mode": "aggregate", "groupby": ["ward"], "metrics": metrics, "adhoc_filters": adhoc,
              "row_limit": 1000, "order_desc": True, "all_columns": [], "time_grain_sqla": "P1D"}  # fmt: skip
    asked = query(adhoc, metrics, columns=["ward"], row_limit=1000, orderby=[["count", False]])
    return Chart("Visits and their cost by ward", "table", params, asked)


def big_number() -> Chart:
    adhoc = [within(ALWAYS)]
    params = {"metric": "count", "adhoc_filters": adhoc, "header_font_size": 0.4, "y_axis_format": "SMART_NUMBER"}
    asked = query(adhoc, ["count"])
    del asked["row_limit"]  # the browser leaves it out here
    return Chart("All visits", "big_number_total", params, asked)


def line() -> Chart:
    adhoc, wards = [within(YEAR), one_of("ward", ["emergency", "surgery"])], ["ward"]
    params = {"x_axis": AT, "time_grain_sqla": "P1M", "metrics": ["count"], "groupby": wards, "adhoc_filters": adhoc,
              "order_desc": True, "row_limit": 10000, "x_axis_sort_asc": True, "show_legend": True,
              "truncate_metric": True}  # fmt: skip
    asked = query(adhoc, ["count"], columns=[grained("P1M"), "ward"], series_columns=wards, orderby=[["count", False]])
    return Chart("Visits by month", "echarts_timeseries_line", params, asked)


def bar() -> Chart:
    adhoc, wards = [within(ALWAYS)], ["ward"]
    params = {"x_axis": AT, "time_grain_sqla": "P1Y", "metrics": ["count"], "groupby": wards, "adhoc_filters": adhoc,
              "limit": 3, "order_desc": True, "row_limit": 10000, "stack": "Stack", "show_legend": True,
              "x_axis_sort_asc": True, "truncate_metric": True}  # fmt: skip
    asked = query(adhoc, ["count"], columns=[grained("P1Y"), "ward"], series_columns=wards, series_limit=3,
                  orderby=[["count", False]])  # fmt: skip
    return Chart("The three wards with most visits", "echarts_timeseries_bar", params, asked)


def pivot() -> Chart:
    adhoc, nights = [within(ALWAYS)], metric("SUM", "nights")
    params = {"groupbyColumns": [AT], "groupbyRows": ["ward"], "time_grain_sqla": "P1Y",
              "temporal_columns_lookup": {AT: True}, "metrics": [nights], "adhoc_filters": adhoc, "row_limit": 10000,
              "order_desc": True, "aggregateFunction": "Sum", "metricsLayout": "COLUMNS", "rowTotals": False,
              "valueFormat": "SMART_NUMBER", "date_format": "smart_date"}  # fmt: skip
    asked = query(adhoc, [nights], columns=[grained("P1Y"), "ward"], orderby=[[nights, False]])
    return Chart("Nights by ward and year", "pivot_table_v2", params, asked)


CHARTS = (table(), big_number(), line(), bar(), pivot())


def dashboard(ids: dict[str, int]) -> Json:
    """Where the charts stand: two rows. The body of PUT /api/v1/dashboard/<id>."""
    rows = (("Visits and their cost by ward", 7), ("All visits", 5)), (("Visits by month", 12),), (
        ("The three wards with most visits", 6), ("Nights by ward and year", 6))  # fmt: skip
    position: Json = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
        "GRID_ID": {"type": "GRID", "id": "GRID_ID", "children": [], "parents": ["ROOT_ID"]},
        "HEADER_ID": {"type": "HEADER", "id": "HEADER_ID", "meta": {"text": "Hospital"}},
    }
    for number, row in enumerate(rows):
        key = f"ROW-{number}"
        position["GRID_ID"]["children"].append(key)
        position[key] = {"type": "ROW", "id": key, "children": [], "parents": ["ROOT_ID", "GRID_ID"],
                         "meta": {"background": "BACKGROUND_TRANSPARENT"}}  # fmt: skip
        for name, width in row:
            chart = f"CHART-{ids[name]}"
            position[key]["children"].append(chart)
            meta = {"chartId": ids[name], "width": width, "height": 40, "sliceName": name}
            parents = ["ROOT_ID", "GRID_ID", key]
            position[chart] = {"type": "CHART", "id": chart, "children": [], "parents": parents, "meta": meta}
    return {"position_json": json.dumps(position), "json_metadata": json.dumps({"positions": position})}
