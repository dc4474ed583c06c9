"""What the owner's monitoring is told of a running server: whether it is well, its figures, and her budgets."""

from __future__ import annotations

import asyncio
from time import monotonic

from dpsql.errors import Error
from dpsql.pgwire.databases import Served
from dpsql.pgwire.health import Health, Response, health_response, metrics_response
from dpsql.pgwire.metrics import Left
from dpsql.pgwire.server import Server

KEPT_SECONDS = 5.0
"""For which a look at the databases holds: who asks often does not make the ledger work."""


class Watching:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._states: dict[str, str] = {}
        self._looked = float("-inf")
        self._lock = asyncio.Lock()

    def health(self, token: str | None) -> Health:
        return Health({"/health": self._health, "/metrics": self._metrics}, token)

    async def _health(self, owner: bool) -> Response:
        async with self._lock:
            if monotonic() - self._looked > KEPT_SECONDS:
                served = list(self._server.databases)
                self._states = await asyncio.to_thread(lambda: {one.name: _state(one) for one in served})
                self._looked = monotonic()
        well = not self._server.stopping and all(state == "ok" for state in self._states.values())
        return health_response(well, self._states)

    async def _metrics(self, owner: bool) -> Response:
        served = list(self._server.databases) if owner else []
        async with self._lock:
            budgets = await asyncio.to_thread(lambda: [left for one in served for left in _budgets(one)])
        return metrics_response(self._server.metrics.text(budgets))


def _state(served: Served) -> str:
    """`stale` where another data version is registered, or the files have changed: the owner reloads, or registers."""
    try:
        served.dataset.check_unchanged()
        return "ok"
    except Error as error:
        return "stale" if error.sqlstate == "55000" else "unavailable"


def _budgets(served: Served) -> list[Left]:
    ledger, found = served.dataset.ledger, []
    for account in served.dataset.accounts():
        try:
            balance = ledger.balance(account)
        except Error:
            continue
        figures = (float(balance.epsilon), float(balance.spent_epsilon), float(balance.left_epsilon))
        found.append(Left(served.name, account.name, *figures))
    return found
