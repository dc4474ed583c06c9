"""`/health` and `/metrics` on a port of their own: as much of HTTP as a probe and Prometheus need.

Law: budgets are told only to who brings the owner's token; without a token file, to nobody. A request is one line and
some headers, bounded in size and time, and each connection has one.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import stat
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from dpsql.base.private_files import require_private
from dpsql.errors import Error, OperationalError
from dpsql.interfaces.pgwire.server.databases import ServedDatabase
from dpsql.interfaces.pgwire.server.metrics import AccountBudget, has_prometheus
from dpsql.interfaces.pgwire.server.server import Server

MAX_REQUEST_BYTES = 8 * 1024
"""Bytes of a request."""
REQUEST_TIMEOUT_SECONDS = 5.0
MAX_REQUESTS = 32
"""Requests at once."""
_MIN_TOKEN_LENGTH = 16


@dataclass(frozen=True)
class HttpResponse:
    status: str
    body: str
    kind: str = "text/plain; charset=utf-8"
    more: tuple[str, ...] = ()


Page = Callable[[bool], Awaitable[HttpResponse]]
"""Given whether the owner asks."""


class HealthEndpoint:
    """`pages` by path; `token` is the owner's."""

    def __init__(self, pages: dict[str, Page], token: str | None) -> None:
        self._pages, self._token = pages, token
        self._open = 0

    async def start(self, host: str, port: int) -> asyncio.Server:
        return await asyncio.start_server(self._handle_request, host, port, limit=MAX_REQUEST_BYTES)

    async def _handle_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open > MAX_REQUESTS:
                return
            async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
                response = await self._make_response(await reader.readuntil(b"\r\n\r\n"))
                writer.write(_encode_response(response))
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, OSError):
            pass  # nobody to tell, or no HTTP
        finally:
            self._open -= 1
            writer.close()

    async def _make_response(self, request: bytes) -> HttpResponse:
        lines = request.decode("latin-1").split("\r\n")
        method, _, rest = lines[0].partition(" ")
        page = self._pages.get(rest.partition(" ")[0].partition("?")[0])
        if method not in ("GET", "HEAD"):
            return HttpResponse("405 Method Not Allowed", "", more=("Allow: GET, HEAD",))
        if page is None:
            return HttpResponse("404 Not Found", "there are /health and /metrics\n")
        token = _bearer_token(lines[1:])
        if token is not None and not self._is_owner(token):
            return HttpResponse("401 Unauthorized", "", more=("WWW-Authenticate: Bearer",))
        response = await page(token is not None)
        return response if method == "GET" else HttpResponse(response.status, "", response.kind)

    def _is_owner(self, token: str) -> bool:
        return self._token is not None and hmac.compare_digest(token.encode(), self._token.encode())


def read_token(path: Path) -> str:
    """The owner's token, of a file that is hers alone."""
    try:
        require_private(path, "the token file")
        if not stat.S_ISREG(path.stat().st_mode):
            raise OperationalError(f'the token file "{path}" is no file')
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise OperationalError(f'the token file "{path}" cannot be read') from None
    if len(token) < _MIN_TOKEN_LENGTH:
        raise OperationalError(
            f'the token in "{path}" is too short', hint="Write for example: openssl rand -hex 32 > token"
        )
    return token


def make_health_response(is_healthy: bool, databases: dict[str, str]) -> HttpResponse:
    body = json.dumps({"status": "ok" if is_healthy else "not ok", "databases": databases}) + "\n"
    return HttpResponse("200 OK" if is_healthy else "503 Service Unavailable", body, "application/json")


def make_metrics_response(text: str) -> HttpResponse:
    return HttpResponse("200 OK", text, "text/plain; version=0.0.4; charset=utf-8")


def make_missing_metrics_response() -> HttpResponse:
    body = "/metrics needs the package prometheus_client: pip install 'dpsql[server]', and start the server again\n"
    return HttpResponse("501 Not Implemented", body)


def _bearer_token(headers: list[str]) -> str | None:
    for line in headers:
        name, _, value = line.partition(":")
        if name.strip().lower() == "authorization":
            kind, _, token = value.strip().partition(" ")
            return token.strip() if kind.lower() == "bearer" else ""
    return None


def _encode_response(response: HttpResponse) -> bytes:
    body = response.body.encode()
    head = (
        f"HTTP/1.1 {response.status}",
        f"Content-Type: {response.kind}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        "Cache-Control: no-store",
        *response.more,
    )
    return "\r\n".join((*head, "", "")).encode("latin-1") + body


# What the owner's monitoring reads of a running server: whether it is well, its metrics, and her budgets.

STATE_CACHE_SECONDS = 5.0
"""For which a look at the databases holds: who asks often does not make the ledger work."""


class ServerMonitor:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._states: dict[str, str] = {}
        self._refreshed_at = float("-inf")
        self._lock = asyncio.Lock()
        self._has_metrics = has_prometheus()  # imported now, and not while clients wait

    def make_endpoint(self, token: str | None) -> HealthEndpoint:
        return HealthEndpoint({"/health": self._health_page, "/metrics": self._metrics_page}, token)

    async def _health_page(self, owner: bool) -> HttpResponse:
        async with self._lock:
            if monotonic() - self._refreshed_at > STATE_CACHE_SECONDS:
                served = list(self._server.databases)
                self._states = await asyncio.to_thread(
                    lambda: {database.name: _database_state(database) for database in served}
                )
                self._refreshed_at = monotonic()
        is_healthy = not self._server.stopping and all(state == "ok" for state in self._states.values())
        return make_health_response(is_healthy, self._states)

    async def _metrics_page(self, owner: bool) -> HttpResponse:
        if not self._has_metrics:
            return make_missing_metrics_response()
        served = list(self._server.databases) if owner else []
        async with self._lock:
            budgets = await asyncio.to_thread(
                lambda: [budget for database in served for budget in _account_budgets(database)]
            )
        return make_metrics_response(self._server.metrics.render_metrics(budgets))


def _database_state(served: ServedDatabase) -> str:
    """`stale` where another data version is registered, or the files have changed: the owner reloads, or registers.
    `unwritable` where nothing can be charged: the ledger's disk is full or read-only."""
    try:
        served.dataset.check_unchanged()
    except Error as error:
        return "stale" if error.sqlstate == "55000" else "unavailable"
    try:
        served.dataset.ledger.check_writable()
    except Error:
        return "unwritable"
    return "ok"


def _account_budgets(served: ServedDatabase) -> list[AccountBudget]:
    ledger, budgets = served.dataset.ledger, []
    for account in served.dataset.list_accounts():
        try:
            balance = ledger.get_balance(account)
        except Error:
            continue
        figures = (float(balance.epsilon), float(balance.spent_epsilon), float(balance.left_epsilon))
        budgets.append(AccountBudget(served.name, account.name, *figures))
    return budgets
