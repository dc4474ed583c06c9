"""What was tried and what was found, as text and as JSON."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from dpsql.about import VERSION
from dpsql.schema.model import Schema
from dpsql.verify.audit import ALPHA, Audited, Shown
from dpsql.verify.features import FEATURES


@dataclass(frozen=True)
class Trials:
    """Counts of trials; `features` and `releases` of those that were compared."""

    count: int = 0
    releases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Trials) -> Trials:
        return Trials(
            self.count + other.count,
            self.releases + other.releases,
            self.outcomes + other.outcomes,
            self.features + other.features,
            self.refusals + other.refusals,
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
        """No claim was broken, and every planted bug was found."""
        return not self.findings and all(one.holds and one.has_power for one in self.audited)

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
            "holds": self.holds,
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
    lines += _columns([f"{trials.features[feature]:>6} {feature}" for feature in FEATURES])
    if report.findings:
        lines.append(f"  FAILED: {len(report.findings)} findings")
    elif report.bound is not None:
        lines.append(f"  no claim was broken: at 95 % confidence, fewer than {report.bound:.2%} of such statements do")
    for finding in report.findings:
        lines += ["", f"Finding, in trials of number {finding.number}:", finding.example.rstrip()]
    if report.audited:
        lines += ["", *_statistics(report)]
    lines += ["", "All claims held." if report.holds else "NOT all claims held."]
    if report.interrupted:
        lines.append("Interrupted: this is what was tried until then.")
    return lines


def _columns(cells: list[str]) -> list[str]:
    wide = max(map(len, cells)) + 2
    return ["  " + "".join(cell.ljust(wide) for cell in cells[start : start + 4]) for start in range(0, len(cells), 4)]


def _statistics(report: Report) -> list[str]:
    samples = report.audited[0].samples
    lines = [
        f"Statistics: {samples} releases of each side, what they prove against what is claimed; a sound release is "
        f"accused with a chance of {ALPHA:g}",
        f"  {'template':<42} {'proven':>8} {'claimed':>8}   with a planted bug",
    ]
    for one in report.audited:
        worst = max(one.shown, key=lambda shown: shown.shown - shown.claimed)
        planted = max(one.control, key=lambda shown: shown.shown - shown.claimed)
        verdict = "" if one.holds else "  FAILED"
        power = f"{_figure(planted.shown)}, found" if one.has_power else f"{_figure(planted.shown)}, NOT FOUND"
        lines.append(
            f"  {one.template:<42} {_figure(worst.shown):>8} {worst.claimed:>8.3f}   {power}{verdict}"
        )
    return lines


def _figure(number: float) -> str:
    return "nothing" if math.isinf(number) else f"{number:.3f}"
