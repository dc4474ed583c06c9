"""What was tried and what was found, as text and as JSON."""

from __future__ import annotations

import math
import platform
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import version

from dpsql.about import VERSION
from dpsql.schema.model import Schema
from dpsql.verify.audit import Audited
from dpsql.verify.features import FEATURES
from dpsql.verify.judge import ALPHA, Shown

MOST_FAILURES = 20
ENOUGH = 100
"""Statements below which nothing is said of all claims."""


@dataclass(frozen=True)
class Trials:
    """Counts of trials; `features` and `releases` of those that were compared."""

    count: int = 0
    releases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    failures: tuple[str, ...] = ()  # statements that post-processing refused after the charge, for released values

    def __add__(self, other: Trials) -> Trials:
        return Trials(
            self.count + other.count,
            self.releases + other.releases,
            self.outcomes + other.outcomes,
            self.features + other.features,
            self.refusals + other.refusals,
            (*self.failures, *other.failures)[:MOST_FAILURES],
        )

    @property
    def compared(self) -> int:
        return self.outcomes["answered"] + self.outcomes["failed"]


@dataclass(frozen=True)
class Finding:
    """A claim that did not hold. `number` makes the same trials again; `example` is minimal."""

    number: int
    sql: str
    findings: tuple[str, ...]
    example: str


@dataclass(frozen=True)
class Report:
    schema: Schema | None
    seed: int
    trials: Trials
    findings: tuple[Finding, ...]
    audited: tuple[Audited, ...]
    trial_seconds: float
    seconds: float
    interrupted: bool = False

    @property
    def holds(self) -> bool:
        """No claim was broken."""
        return not self.findings and all(one.holds for one in self.audited)

    @property
    def has_power(self) -> bool:
        """Every planted bug was found: else the statistics show nothing."""
        return all(one.has_power for one in self.audited)

    @property
    def verdict(self) -> str:
        if not self.holds:
            return "NOT all claims held."
        if not self.has_power:
            return "No claim was broken, but the statistics had too few releases to find planted bugs: raise --samples."
        few = self.trials.compared < ENOUGH
        return "No claim was broken, in few statements: give it more --seconds." if few else "All claims held."

    @property
    def rate(self) -> float:
        return self.trials.count / self.trial_seconds if self.trial_seconds else 0.0

    @property
    def bound(self) -> float | None:
        """With no failure among n, the share of statements that fail is below this, at 95 % confidence."""
        if self.findings or not self.trials.compared:
            return None
        return 1.0 - math.exp(math.log(0.05) / self.trials.compared)

    def as_json(self) -> dict[str, object]:
        trials = self.trials
        return {
            "dpsql": VERSION,
            "schema": None if self.schema is None else self.schema.path.name,
            "python": platform.python_version(),
            "duckdb": version("duckdb"),
            "platform": platform.platform(),
            "holds": self.holds,
            "has_power": self.has_power,
            "interrupted": self.interrupted,
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
            "trials": {
                "count": trials.count,
                "per_second": round(self.rate, 2),
                "releases": trials.releases,
                "outcomes": dict(trials.outcomes),
                "features": {name: trials.features[name] for name in FEATURES},
                "refusals": dict(trials.refusals.most_common(30)),
                "failures": list(trials.failures),
                "failing_share_below": self.bound,
            },
            "findings": [
                {"number": one.number, "sql": one.sql, "findings": list(one.findings), "example": one.example}
                for one in self.findings
            ],
            "statistics": [_audited_json(one) for one in self.audited],
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _audited_json(one: Audited) -> dict[str, object]:
    return {
        "template": one.template,
        "samples": one.samples,
        "holds": one.holds,
        "shown": [_shown_json(shown) for shown in one.shown],
        "planted_bug_found": one.has_power,
        "planted_bug": [_shown_json(shown) for shown in one.control],
    }


def _shown_json(shown: Shown) -> dict[str, object]:
    at_least = None if math.isinf(shown.shown) else shown.shown
    return {"measure": shown.measure, "at_least": at_least, "claimed": shown.claimed}


def _lines(report: Report) -> list[str]:
    trials, name = report.trials, "random schemas" if report.schema is None else report.schema.path.name
    lines = [
        f"Neighboring databases of {name}, seed {report.seed}",
        f"  {trials.count} statements in {report.trial_seconds:.0f} s ({report.rate:.0f} a second): "
        + ", ".join(f"{count} {kind}" for kind, count in trials.outcomes.most_common()),
        f"  {trials.releases} releases compared on both databases, and in another order with more threads",
    ]
    lines += _columns([f"{trials.features[feature]:>6} {feature}" for feature in FEATURES if trials.features[feature]])
    if untried := [feature for feature in FEATURES if not trials.features[feature]]:
        lines.append(f"  not tried: {', '.join(untried)}")
    if trials.outcomes["failed"]:
        failed = trials.outcomes["failed"]
        lines.append(f"  {failed} failed: post-processing refused a released value, after the charge")
    if report.findings:
        lines.append(f"  FAILED: {_counted(len(report.findings), 'finding')}")
    elif report.bound is not None:
        lines.append(f"  no claim was broken: at 95 % confidence, fewer than {report.bound:.2%} of such statements do")
    for finding in report.findings:
        schema = "" if report.schema is None else " SCHEMA"
        again = f"dpsql verify{schema} --seed {finding.number} --trials 8 --no-statistics"
        lines += ["", f"Finding, made again by: {again}", finding.example.rstrip()]
    if report.audited:
        lines += ["", *_statistics(report)]
    lines += ["", report.verdict]
    if report.interrupted:
        lines.append("Interrupted: this is what was tried until then.")
    return lines


def _columns(cells: list[str]) -> list[str]:
    wide = max(map(len, cells), default=0) + 2
    return ["  " + "".join(cell.ljust(wide) for cell in cells[start : start + 4]) for start in range(0, len(cells), 4)]


def _statistics(report: Report) -> list[str]:
    samples = report.audited[0].samples
    lines = [
        f"Statistics: {samples} releases of two neighbors for each of {len(report.audited)} fixed statements.",
        "What they prove of the loss (epsilon at some delta, or the noise's own figure) may not pass what is claimed.",
        f"A sound one is accused with a chance of {ALPHA:g}; half of the noise, or a lower threshold, must be found.",
        f"  {'statement':<42} {'proven':>8} {'claimed':>8}  of what{'':<24} with a planted bug",
    ]
    for one in report.audited:
        worst = max(one.shown, key=lambda shown: shown.shown - shown.claimed)
        planted = max(one.control, key=lambda shown: shown.shown - shown.claimed)
        verdict = "" if one.holds else "  FAILED"
        power = f"{_figure(planted.shown)}, found" if one.has_power else f"{_figure(planted.shown)}, NOT FOUND"
        figures = f"{_figure(worst.shown):>8} {worst.claimed:>8.3f}  {worst.measure:<31}"
        lines.append(f"  {one.template:<42} {figures} {power}{verdict}")
    return lines


def _figure(number: float) -> str:
    """Less than no loss at all is nothing."""
    return "nothing" if number <= 0.0 else f"{number:.3f}"


def _counted(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"
