"""Figures of a server, as Prometheus reads them.

Law: no histogram is of anything that waits for private rows: of seconds, only those of logins are told. Budgets are
the owner's: `text` has them only where it is asked for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dpsql.version import VERSION

STATEMENT_OUTCOMES = ("released", "free", "refused", "canceled", "failed")
"""Of a statement: charged; answered without a charge; an error that depends on statement, schema and ledger; left by
its client or its time; an error of the engine or of ours."""
LOGIN_OUTCOMES = ("accepted", "failed", "refused", "timeout")
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
        lines = [
            *_render_header("dpsql_info", "gauge", "The version that runs."),
            _render_sample("dpsql_info", {"version": VERSION}, 1),
        ]
        gauges = sorted(self.now(), key=lambda gauge: (gauge[0], sorted(gauge[1].items())))
        for name in dict.fromkeys(gauge[0] for gauge in gauges):
            lines += _render_header(name, "gauge", GAUGE_HELP[name])
            lines += [_render_sample(name, labels, value) for gauge_name, labels, value in gauges if gauge_name == name]
        lines += self._render_counters()
        lines += self._render_login_seconds()
        return "\n".join([*lines, *_render_budgets(list(budgets)), ""])

    def _render_counters(self) -> list[str]:
        plain = (("dpsql_connections_total", "Connections since the start.", self.connections),
                 ("dpsql_protocol_violations_total", "Connections that spoke no protocol.", self.violations),
                 ("dpsql_cancel_requests_total", "Requests to cancel a statement.", self.cancels))  # fmt: skip
        lines: list[str] = []
        for name, description, value in plain:
            lines += [*_render_header(name, "counter", description), _render_sample(name, {}, value)]
        lines += _render_header("dpsql_logins_total", "counter", "Logins by outcome.")
        lines += [
            _render_sample("dpsql_logins_total", {"outcome": outcome_name}, self.logins[outcome_name])
            for outcome_name in LOGIN_OUTCOMES
        ]
        lines += _render_header("dpsql_statements_total", "counter", "Statements by database and outcome.")
        return lines + [
            _render_sample("dpsql_statements_total", {"database": database, "outcome": outcome}, count)
            for (database, outcome), count in sorted(self.statements.items())
        ]

    def _render_login_seconds(self) -> list[str]:
        name, lines, cumulative = (
            "dpsql_login_seconds",
            _render_header("dpsql_login_seconds", "histogram", "Time of logins."),
            0,
        )
        for upper_bound, count in zip((*map(str, _LOGIN_BUCKETS), "+Inf"), self.login_seconds, strict=True):
            cumulative += count
            lines.append(_render_sample(f"{name}_bucket", {"le": upper_bound}, cumulative))
        return [
            *lines,
            _render_sample(f"{name}_sum", {}, self.login_sum),
            _render_sample(f"{name}_count", {}, cumulative),
        ]


GAUGE_HELP = {
    "dpsql_connections": "Clients that are logged in, by database.",
    "dpsql_logins_pending": "Clients that have not logged in yet.",
    "dpsql_statements_running": "Statements that have a thread.",
    "dpsql_statements_waiting": "Statements that wait for one.",
    "dpsql_threads": "Threads for statements.",
}


def _render_budgets(budgets: list[AccountBudget]) -> list[str]:
    figures = (
        ("dpsql_budget_epsilon", "The budget of an account.", [budget.epsilon for budget in budgets]),
        ("dpsql_budget_spent_epsilon", "What an account has lost.", [budget.spent for budget in budgets]),
        ("dpsql_budget_left_epsilon", "What is left of an account's budget.", [budget.left for budget in budgets]),
    )
    label_sets = [{"database": budget.database, "account": budget.account} for budget in budgets]
    lines: list[str] = []
    for name, description, values in figures if budgets else ():
        lines += _render_header(name, "gauge", description)
        lines += [_render_sample(name, labels, value) for labels, value in zip(label_sets, values, strict=True)]
    return lines


def _render_header(name: str, kind: str, description: str) -> list[str]:
    return [f"# HELP {name} {description}", f"# TYPE {name} {kind}"]


def _render_sample(name: str, labels: dict[str, str], value: float) -> str:
    """
    >>> _render_sample("x", {"database": 'a"b'}, 2)
    'x{database="a\\\\"b"} 2'
    """
    shown = ",".join(f'{label}="{_escape_label(text)}"' for label, text in labels.items())
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
