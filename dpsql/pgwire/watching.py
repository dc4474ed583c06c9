"""What the owner's monitoring is told of a running server: whether it is well, its figures, and her budgets."""

from __future__ import annotations

import asyncio
from time import monotonic

from dpsql.errors import Error
from dpsql.pgwire.databases import ServedDatabase
from dpsql.pgwire.health import HealthEndpoint, HttpResponse, make_health_response, make_metrics_response
from dpsql.pgwire.metrics import AccountBudget
from dpsql.pgwire.server import Server

STATE_CACHE_SECONDS = 5.0
"""For which a look at the databases holds: who asks often does not make the ledger work."""


class ServerMonitor:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._states: dict[str, str] = {}
        self._looked = float("-inf")
        self._lock = asyncio.Lock()

    def make_endpoint(self, token: str | None) -> HealthEndpoint:
        return HealthEndpoint({"/health": self._health_page, "/metrics": self._metrics_page}, token)

    async def _health_page(self, owner: bool) -> HttpResponse:
        async with self._lock:
            if monotonic() - self._looked > STATE_CACHE_SECONDS:
                served = list(self._server.databases)
                self._states = await asyncio.to_thread(lambda: {database.name: _database_state(database) for database in served})
                self._looked = monotonic()
        is_healthy = not self._server.stopping and all(state == "ok" for state in self._states.values())
        return make_health_response(is_healthy, self._states)

    async def _metrics_page(self, owner: bool) -> HttpResponse:
        served = list(self._server.databases) if owner else []
        async with self._lock:
            budgets = await asyncio.to_thread(lambda: [budget for database in served for budget in _account_budgets(database)])
        return make_metrics_response(self._server.metrics.render_metrics(budgets))


def _database_state(served: ServedDatabase) -> str:
    """`stale` where another data version is registered, or the files have changed: the owner reloads, or registers."""
    try:
        served.dataset.check_unchanged()
        return "ok"
    except Error as error:
        return "stale" if error.sqlstate == "55000" else "unavailable"


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
