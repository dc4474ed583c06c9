"""What a server tells its owner: lines without rows, figures that clock nothing, and pages for who may read them."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from fractions import Fraction
from pathlib import Path
from unittest.mock import Mock

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dpsql.amounts import NO_CHARGE
from dpsql.errors import InterfaceError, OperationalError
from dpsql.interfaces.pgwire.server.connection import ServerContext
from dpsql.interfaces.pgwire.server.health_endpoint import (
    MAX_REQUEST_BYTES,
    MAX_REQUESTS,
    HealthEndpoint,
    HttpResponse,
    ServerMonitor,
    make_health_response,
    read_token,
)
from dpsql.interfaces.pgwire.server.logging import FIELDS, EventLog, round_up_to_grid
from dpsql.interfaces.pgwire.server.metrics import GAUGE_HELP, AccountBudget, ServerMetrics
from dpsql.interfaces.pgwire.server.monitored_session import StatementReport
from dpsql.interfaces.pgwire.server.server import ServerOptions, check_options

# --- lines -----------------------------------------------------------------------------------------------------------


def told(form: str, level: str = "info", **fields: str) -> str:
    stream = io.StringIO()
    EventLog(level, form, stream).info("login failed", **fields)
    return stream.getvalue()


def test_a_line_is_one_line_whatever_a_client_calls_itself() -> None:
    name = 'ana\n2026-01-01 INFO login accepted user="root"\x1b[31m'
    for form in ("text", "json"):
        line = told(form, user=name)
        assert line.count("\n") == 1 and "\x1b" not in line
    assert json.loads(told("json", user=name))["user"] == name
    assert len(told("text", user="x" * 10_000)) < 400


def test_levels() -> None:
    assert told("text", "warning") == "" and "login failed" in told("text", "info")


@pytest.mark.parametrize(
    ("outcome", "sqlstate", "level"),
    [("released", None, "info"), ("refused", "0A000", "info"), ("failed", "58000", "error"),
     ("failed", "XX000", "error"), ("failed", "57P03", "error"), ("canceled", "57014", "info")],
)  # fmt: skip
def test_a_statement_that_is_the_owners_to_look_at_is_an_error(outcome: str, sqlstate: str | None, level: str) -> None:
    stream = io.StringIO()
    context = Mock(log=EventLog(form="json", stream=stream), metrics=ServerMetrics())
    report = StatementReport("SELECT", outcome, sqlstate, NO_CHARGE, 0.1)
    ServerContext.record_statement(context, Mock(user="ana", database="clinic", grid=Fraction(0)), report)
    assert json.loads(stream.getvalue())["level"] == level


def test_no_field_can_hold_a_statement() -> None:
    with pytest.raises(AssertionError):
        EventLog(stream=io.StringIO()).info("statement", sql="SELECT 1")
    assert not FIELDS & {"sql", "statement", "parameters", "rows", "values", "text", "query", "message", "detail"}


def test_time_is_shown_on_the_owners_grid_or_not_at_all() -> None:
    assert round_up_to_grid(1.234, Fraction(0)) is None
    assert {round_up_to_grid(seconds, Fraction(1, 2)) for seconds in (0.01, 0.3, 0.4999)} == {0.5}


# --- figures ---------------------------------------------------------------------------------------------------------


def samples(text: str) -> dict[tuple[str | tuple[str, str], ...], float]:
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_names_and_labels_of_all_figures() -> None:
    metrics = ServerMetrics()
    metrics.statements["clinic", "free"] += 1
    metrics.now = lambda: [(name, {"database": "clinic"} if "connections" in name else {}, 1) for name in GAUGE_HELP]
    told = samples(metrics.render_metrics([AccountBudget("clinic", "ana", 1.5, 0.5, 1.0)]))
    labels: dict[str, set[tuple[str, ...]]] = {}
    for name, *pairs in told:
        labels.setdefault(str(name), set()).add(tuple(pair[0] for pair in pairs))
    account, none = {("account", "database")}, {()}
    assert labels == {
        "dpsql_info": {("version",)}, "dpsql_connections": {("database",)}, "dpsql_logins_pending": none,
        "dpsql_statements_running": none, "dpsql_statements_waiting": none, "dpsql_threads": none,
        "dpsql_connections_total": none, "dpsql_protocol_violations_total": none, "dpsql_cancel_requests_total": none,
        "dpsql_logins_total": {("outcome",)}, "dpsql_statements_total": {("database", "outcome")},
        "dpsql_login_seconds_bucket": {("le",)}, "dpsql_login_seconds_sum": none, "dpsql_login_seconds_count": none,
        "dpsql_budget_epsilon": account, "dpsql_budget_spent_epsilon": account, "dpsql_budget_left_epsilon": account,
    }, "and nothing of the process or of Python"  # fmt: skip


def test_figures_are_as_prometheus_reads_them() -> None:
    metrics = ServerMetrics()
    metrics.statements["clinic", "free"] += 1234567
    metrics.record_login("accepted", 0.02)
    metrics.record_login("failed", 3.0)
    metrics.now = lambda: [("dpsql_connections", {"database": 'a"b\\c\nd'}, 3)]
    text = metrics.render_metrics([AccountBudget("clinic", "ana", 1.5, 0.5, 1.0)])
    figures = samples(text)
    assert figures["dpsql_statements_total", ("database", "clinic"), ("outcome", "free")] == 1234567
    assert figures["dpsql_connections", ("database", 'a"b\\c\nd')] == 3
    assert 'dpsql_connections{database="a\\"b\\\\c\\nd"} 3.0\n' in text
    assert figures["dpsql_login_seconds_bucket", ("le", "0.05")] == 1
    assert figures["dpsql_login_seconds_bucket", ("le", "+Inf")] == figures["dpsql_login_seconds_count",] == 2
    assert figures["dpsql_budget_left_epsilon", ("account", "ana"), ("database", "clinic")] == 1.0
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    for line in text.splitlines():
        if not line.startswith("#"):
            name = line.partition("{")[0].split()[0]
            assert name in names or name.rsplit("_", 1)[0] in names, line
            float(line.rsplit(" ", 1)[1])
    assert set(GAUGE_HELP) & {"dpsql_statement_seconds"} == set()


def test_budgets_are_in_the_metrics_only_with_the_token() -> None:
    assert "budget" not in ServerMetrics().render_metrics()


def test_without_prometheus_client_a_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monitor = ServerMonitor(Mock(stopping=False, databases=()))
    response = asyncio.run(monitor._metrics_page(True))
    assert response.status == "501 Not Implemented" and "pip install 'dpsql[server]'" in response.body
    assert asyncio.run(monitor._health_page(False)).status == "200 OK"


# --- pages -----------------------------------------------------------------------------------------------------------


def asked(request: bytes, token: str | None = "t" * 20, count: int = 1) -> list[bytes]:
    async def main() -> list[bytes]:
        async def page(owner: bool) -> HttpResponse:
            return HttpResponse("200 OK", f"owner={owner}")

        server = await HealthEndpoint({"/metrics": page}, token).start("127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        opened = [await asyncio.open_connection(host, port) for _ in range(count)]
        answers = []
        for reader, writer in reversed(opened):
            try:
                writer.write(request)
                answers.append(await asyncio.wait_for(reader.read(), 8))
            except ConnectionError:
                answers.append(b"")
            writer.close()
        server.close()
        return answers

    return asyncio.run(main())


def test_pages() -> None:
    assert b"owner=False" in asked(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")[0]
    assert b"owner=True" in asked(b"GET /metrics?x=1 HTTP/1.1\r\nauthorization:  bearer " + b"t" * 20 + b"\r\n\r\n")[0]
    assert asked(b"GET /metrics HTTP/1.1\r\nAuthorization: Bearer x\r\n\r\n")[0].startswith(b"HTTP/1.1 401")
    assert asked(b"GET /metrics HTTP/1.1\r\nAuthorization: Bearer \r\n\r\n", None)[0].startswith(b"HTTP/1.1 401")
    assert asked(b"GET /other HTTP/1.1\r\n\r\n")[0].startswith(b"HTTP/1.1 404")
    assert asked(b"POST /metrics HTTP/1.1\r\n\r\n")[0].startswith(b"HTTP/1.1 405")
    head = asked(b"HEAD /metrics HTTP/1.1\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.1 200") and b"owner" not in head


@pytest.mark.parametrize("request_", [b"x" * (2 * MAX_REQUEST_BYTES) + b"\r\n\r\n", b"\xff\xfe\r\n\r\n", b"\r\n\r\n"])
def test_what_is_no_request_gets_no_page(request_: bytes) -> None:
    assert b"200" not in asked(request_)[0]


def test_requests_at_once_are_limited() -> None:
    answers = asked(b"GET /metrics HTTP/1.1\r\n\r\n", count=MAX_REQUESTS + 10)
    assert sum(one == b"" for one in answers) == 10


def test_a_token_is_long_and_the_owners_alone(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    token.chmod(0o600)
    assert read_token(token) == "0123456789abcdef"
    token.chmod(0o644)
    with pytest.raises(OperationalError, match="open to others"):
        read_token(token)
    token.write_text("short")
    token.chmod(0o600)
    with pytest.raises(OperationalError, match="too short"):
        read_token(token)
    with pytest.raises(OperationalError, match="cannot be read"):
        read_token(tmp_path / "none")


def test_health_says_no_more_than_it_must() -> None:
    assert make_health_response(False, {"clinic": "stale"}).status.startswith("503")
    assert json.loads(make_health_response(True, {}).body) == {"status": "ok", "databases": {}}


# --- where it may listen ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "127.example.org", ""])
def test_beyond_this_machine_only_with_tls_or_the_owners_word(host: str, tmp_path: Path) -> None:
    with pytest.raises(InterfaceError, match="without TLS") as refused:
        check_options(ServerOptions(hosts=("127.0.0.1", host)))
    assert "--allow-plain" in str(refused.value.hint)
    check_options(ServerOptions(hosts=(host,), allow_plain=True))
    check_options(ServerOptions(hosts=(host,), certificate=tmp_path))


def test_on_this_machine_tls_is_a_choice() -> None:
    check_options(ServerOptions(hosts=("127.0.0.1", "::1", "localhost", "127.1.2.3")))
    with pytest.raises(InterfaceError, match="certificate"):
        check_options(ServerOptions(require_tls=True))
