"""Figures of a server, as Prometheus reads them.

Law: no histogram is of anything that waits for private rows: of seconds, only those of logins are told. Budgets are
the owner's: `text` has them only where it is asked for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dpsql.about import VERSION

OUTCOMES = ("released", "free", "refused", "canceled", "failed")
"""Of a statement: charged; answered without a charge; an error that depends on statement, schema and ledger; left by
its client or its time; an error of the engine or of ours."""
LOGINS = ("accepted", "failed", "refused", "timeout")
_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0)


@dataclass(frozen=True)
class Left:
    """One account's budget, for the owner."""

    database: str
    account: str
    epsilon: float
    spent: float
    left: float


@dataclass(eq=False)
class Metrics:
    """Counted on the event loop. `now` gives the gauges: a name, its labels, its value."""

    statements: Counter[tuple[str, str]] = field(default_factory=Counter)  # by database and outcome
    logins: Counter[str] = field(default_factory=Counter)
    connections: int = 0  # since the start
    violations: int = 0
    cancels: int = 0
    login_seconds: list[int] = field(default_factory=lambda: [0] * (len(_BUCKETS) + 1))
    login_sum: float = 0.0
    now: Callable[[], Iterable[tuple[str, dict[str, str], float]]] = tuple

    def logged_in(self, outcome: str, seconds: float) -> None:
        self.logins[outcome] += 1
        place = next((at for at, most in enumerate(_BUCKETS) if seconds <= most), len(_BUCKETS))
        self.login_seconds[place] += 1
        self.login_sum += seconds

    def text(self, budgets: Iterable[Left] = ()) -> str:
        lines = [*_head("dpsql_info", "gauge", "The version that runs."), _line("dpsql_info", {"version": VERSION}, 1)]
        gauges = sorted(self.now(), key=lambda one: (one[0], sorted(one[1].items())))
        for name in dict.fromkeys(one[0] for one in gauges):
            lines += _head(name, "gauge", GAUGES[name])
            lines += [_line(name, labels, value) for each, labels, value in gauges if each == name]
        lines += self._counters()
        lines += self._seconds()
        return "\n".join([*lines, *_budgets(list(budgets)), ""])

    def _counters(self) -> list[str]:
        plain = (("dpsql_connections_total", "Connections since the start.", self.connections),
                 ("dpsql_protocol_violations_total", "Connections that spoke no protocol.", self.violations),
                 ("dpsql_cancel_requests_total", "Requests to cancel a statement.", self.cancels))  # fmt: skip
        lines: list[str] = []
        for name, what, value in plain:
            lines += [*_head(name, "counter", what), _line(name, {}, value)]
        lines += _head("dpsql_logins_total", "counter", "Logins by outcome.")
        lines += [_line("dpsql_logins_total", {"outcome": one}, self.logins[one]) for one in LOGINS]
        lines += _head("dpsql_statements_total", "counter", "Statements by database and outcome.")
        return lines + [
            _line("dpsql_statements_total", {"database": database, "outcome": outcome}, count)
            for (database, outcome), count in sorted(self.statements.items())
        ]

    def _seconds(self) -> list[str]:
        name, lines, so_far = "dpsql_login_seconds", _head("dpsql_login_seconds", "histogram", "Time of logins."), 0
        for most, count in zip((*map(str, _BUCKETS), "+Inf"), self.login_seconds, strict=True):
            so_far += count
            lines.append(_line(f"{name}_bucket", {"le": most}, so_far))
        return [*lines, _line(f"{name}_sum", {}, self.login_sum), _line(f"{name}_count", {}, so_far)]


GAUGES = {
    "dpsql_connections": "Clients that are logged in, by database.",
    "dpsql_logins_pending": "Clients that have not logged in yet.",
    "dpsql_statements_running": "Statements that have a thread.",
    "dpsql_statements_waiting": "Statements that wait for one.",
    "dpsql_threads": "Threads for statements.",
}


def _budgets(budgets: list[Left]) -> list[str]:
    figures = (("dpsql_budget_epsilon", "The budget of an account.", [one.epsilon for one in budgets]),
               ("dpsql_budget_spent_epsilon", "What an account has lost.", [one.spent for one in budgets]),
               ("dpsql_budget_left_epsilon", "What is left of an account's budget.", [one.left for one in budgets]))
    whose = [{"database": one.database, "account": one.account} for one in budgets]
    lines: list[str] = []
    for name, what, values in figures if budgets else ():
        lines += _head(name, "gauge", what)
        lines += [_line(name, labels, value) for labels, value in zip(whose, values, strict=True)]
    return lines


def _head(name: str, kind: str, what: str) -> list[str]:
    return [f"# HELP {name} {what}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: dict[str, str], value: float) -> str:
    """
    >>> _line("x", {"database": 'a"b'}, 2)
    'x{database="a\\\\"b"} 2'
    """
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
