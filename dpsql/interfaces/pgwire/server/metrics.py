"""Figures of a server, as Prometheus reads them.

Law: no histogram is of anything that waits for private rows: of seconds, only those of logins are told. Budgets are
the owner's: `render_metrics` has them only where it is asked for them.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from dpsql.version import VERSION

if TYPE_CHECKING:
    from prometheus_client import Metric

STATEMENT_OUTCOMES = ("released", "free", "refused", "canceled", "failed")
"""Of a statement: charged; answered without a charge; an error that depends on statement, schema and ledger; left by
its client or its time; an error of the engine or of ours."""
LOGIN_OUTCOMES = ("accepted", "failed", "refused", "timeout")
Sample = tuple[str, dict[str, str], float]
"""What is added to the family's name; labels; the value."""
MetricFamily = tuple[str, str, str, list[Sample]]
"""Name, kind, description, samples."""
_LOGIN_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0)


@dataclass(frozen=True)
class AccountBudget:
    """One account's budget, for the owner."""

    database: str
    account: str
    epsilon: float
    spent: float
    left: float


@dataclass(eq=False)
class ServerMetrics:
    """Counted on the event loop. `now` gives the gauges: a name, its labels, its value."""

    statements: Counter[tuple[str, str]] = field(default_factory=Counter)  # by database and outcome
    logins: Counter[str] = field(default_factory=Counter)
    connections: int = 0  # since the start
    violations: int = 0
    cancels: int = 0
    login_seconds: list[int] = field(default_factory=lambda: [0] * (len(_LOGIN_BUCKETS) + 1))
    login_sum: float = 0.0
    now: Callable[[], Iterable[tuple[str, dict[str, str], float]]] = tuple

    def record_login(self, outcome: str, seconds: float) -> None:
        self.logins[outcome] += 1
        bucket = next(
            (index for index, upper_bound in enumerate(_LOGIN_BUCKETS) if seconds <= upper_bound), len(_LOGIN_BUCKETS)
        )
        self.login_seconds[bucket] += 1
        self.login_sum += seconds

    def render_metrics(self, budgets: Iterable[AccountBudget] = ()) -> str:
        """As text of Prometheus. ImportError without prometheus_client."""
        from prometheus_client import CollectorRegistry, Metric, generate_latest

        families = []
        for name, kind, description, samples in (*self._list_families(), *_list_budgets(list(budgets))):
            families.append(Metric(name, description, kind))
            for suffix, labels, value in samples:
                families[-1].add_sample(name + suffix, labels, value)
        # A registry of its own: the default one also tells of the process and of Python.
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_ListedFamilies(families))
        return generate_latest(registry).decode()

    def _list_families(self) -> Iterator[MetricFamily]:
        yield "dpsql_info", "gauge", "The version that runs.", [("", {"version": VERSION}, 1)]
        gauges: dict[str, list[Sample]] = {}
        for name, labels, value in sorted(self.now(), key=lambda gauge: (gauge[0], sorted(gauge[1].items()))):
            gauges.setdefault(name, []).append(("", labels, value))
        for name, samples in gauges.items():
            yield name, "gauge", GAUGE_HELP[name], samples
        for name, description, count in (
            ("dpsql_connections", "Connections since the start.", self.connections),
            ("dpsql_protocol_violations", "Connections that spoke no protocol.", self.violations),
            ("dpsql_cancel_requests", "Requests to cancel a statement.", self.cancels),
        ):
            yield name, "counter", description, [("_total", {}, count)]
        logins: list[Sample] = [("_total", {"outcome": outcome}, self.logins[outcome]) for outcome in LOGIN_OUTCOMES]
        yield "dpsql_logins", "counter", "Logins by outcome.", logins
        statements: list[Sample] = [
            ("_total", {"database": database, "outcome": outcome}, count)
            for (database, outcome), count in sorted(self.statements.items())
        ]
        yield "dpsql_statements", "counter", "Statements by database and outcome.", statements
        counts = list(accumulate(self.login_seconds))
        seconds: list[Sample] = [
            ("_bucket", {"le": bound}, count)
            for bound, count in zip((*map(str, _LOGIN_BUCKETS), "+Inf"), counts, strict=True)
        ]
        seconds += [("_sum", {}, self.login_sum), ("_count", {}, counts[-1])]
        yield "dpsql_login_seconds", "histogram", "Time of logins.", seconds


@dataclass(frozen=True, eq=False)
class _ListedFamilies:
    """A collector of `prometheus_client`."""

    families: list[Metric]

    def collect(self) -> list[Metric]:
        return self.families


def has_prometheus() -> bool:
    """Whether there is what renders metrics: the extra `server`."""
    try:
        importlib.import_module("prometheus_client")
    except ImportError:
        return False
    return True


GAUGE_HELP = {
    "dpsql_connections": "Clients that are logged in, by database.",
    "dpsql_logins_pending": "Clients that have not logged in yet.",
    "dpsql_statements_running": "Statements that have a thread.",
    "dpsql_statements_waiting": "Statements that wait for one.",
    "dpsql_threads": "Threads for statements.",
}


def _list_budgets(budgets: list[AccountBudget]) -> Iterator[MetricFamily]:
    figures = (
        ("dpsql_budget_epsilon", "The budget of an account.", [budget.epsilon for budget in budgets]),
        ("dpsql_budget_spent_epsilon", "What an account has lost.", [budget.spent for budget in budgets]),
        ("dpsql_budget_left_epsilon", "What is left of an account's budget.", [budget.left for budget in budgets]),
    )
    label_sets = [{"database": budget.database, "account": budget.account} for budget in budgets]
    for name, description, values in figures if budgets else ():
        yield name, "gauge", description, [("", *sample) for sample in zip(label_sets, values, strict=True)]
