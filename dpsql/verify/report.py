"""The report of a verification, as text and as JSON."""

from __future__ import annotations

import json
import math
import platform
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from importlib.metadata import version

from dpsql.schema.model import Column, ForeignUnit, OwnUnit, RowUnit, Schema, Table
from dpsql.verify.audit import AuditResult
from dpsql.verify.coverage import FEATURES
from dpsql.verify.epsilon_bound import ALPHA, LossBound
from dpsql.verify.generate.columns import format_timestamp
from dpsql.verify.generate.neighbors import TableRows
from dpsql.verify.generate.schemas import GeneratedSchema
from dpsql.verify.shrink import FailingCase
from dpsql.version import VERSION

MAX_FAILURES = 20
MAX_SHOWN_ROWS, LINE_WIDTH = 40, 110
"""Rows of a table that stand in a line each; more are written one behind another."""
MIN_STATEMENTS = 100
"""Statements below which nothing is said of all claims."""


@dataclass(frozen=True)
class TrialCounts:
    """Counts of trials; `features` and `releases` of those that were compared."""

    count: int = 0
    releases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    failures: tuple[str, ...] = ()  # statements that post-processing refused after the charge, for released values

    def __add__(self, other: TrialCounts) -> TrialCounts:
        return TrialCounts(
            self.count + other.count,
            self.releases + other.releases,
            self.outcomes + other.outcomes,
            self.features + other.features,
            self.refusals + other.refusals,
            (*self.failures, *other.failures)[:MAX_FAILURES],
        )

    @property
    def compared_count(self) -> int:
        return self.outcomes["answered"] + self.outcomes["failed"]


@dataclass(frozen=True)
class Counterexample:
    """A claim that did not hold. `number` makes the same trials again; `example` is minimal."""

    number: int
    sql: str
    findings: tuple[str, ...]
    example: str


@dataclass(frozen=True)
class VerifyReport:
    schema: Schema | None
    seed: int
    trials: TrialCounts
    findings: tuple[Counterexample, ...]
    audited: tuple[AuditResult, ...]
    trial_seconds: float
    seconds: float
    interrupted: bool = False

    @property
    def holds(self) -> bool:
        """Whether no claim was broken."""
        return not self.findings and all(result.holds for result in self.audited)

    @property
    def has_power(self) -> bool:
        """Every planted bug was found: else the statistics show nothing."""
        return all(result.has_power for result in self.audited)

    @property
    def conclusion(self) -> str:
        if not self.holds:
            return "NOT all claims held."
        if not self.has_power:
            return "No claim was broken, but the statistics had too few releases to find planted bugs: raise --samples."
        few = self.trials.compared_count < MIN_STATEMENTS
        return "No claim was broken, in few statements: give it more --seconds." if few else "All claims held."

    @property
    def trials_per_second(self) -> float:
        return self.trials.count / self.trial_seconds if self.trial_seconds else 0.0

    @property
    def failure_rate_bound(self) -> float | None:
        """With no failure among n, the share of statements that fail is below this, at 95 % confidence."""
        if self.findings or not self.trials.compared_count:
            return None
        return 1.0 - math.exp(math.log(0.05) / self.trials.compared_count)

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
                "per_second": round(self.trials_per_second, 2),
                "releases": trials.releases,
                "outcomes": dict(trials.outcomes),
                "features": {name: trials.features[name] for name in FEATURES},
                "refusals": dict(trials.refusals.most_common(30)),
                "failures": list(trials.failures),
                "failing_share_below": self.failure_rate_bound,
            },
            "findings": [
                {"number": entry.number, "sql": entry.sql, "findings": list(entry.findings), "example": entry.example}
                for entry in self.findings
            ],
            "statistics": [_audit_to_json(entry) for entry in self.audited],
        }

    def __str__(self) -> str:
        return "\n".join(_report_lines(self))


def _audit_to_json(result: AuditResult) -> dict[str, object]:
    return {
        "template": result.template,
        "samples": result.samples,
        "holds": result.holds,
        "shown": [_bound_to_json(bound) for bound in result.shown],
        "planted_bug_found": result.has_power,
        "planted_bug": [_bound_to_json(bound) for bound in result.control],
    }


def _bound_to_json(bound: LossBound) -> dict[str, object]:
    at_least = None if math.isinf(bound.shown) else bound.shown
    return {"measure": bound.measure, "at_least": at_least, "claimed": bound.claimed}


def _report_lines(report: VerifyReport) -> list[str]:
    trials, name = report.trials, "random schemas" if report.schema is None else report.schema.path.name
    lines = [
        f"Neighboring databases of {name}, seed {report.seed}",
        f"  {trials.count} statements in {report.trial_seconds:.0f} s ({report.trials_per_second:.0f} a second): "
        + ", ".join(f"{count} {kind}" for kind, count in trials.outcomes.most_common()),
        f"  {trials.releases} releases compared on both databases, and in another order with more threads",
    ]
    lines += _layout_columns(
        [f"{trials.features[feature]:>6} {feature}" for feature in FEATURES if trials.features[feature]]
    )
    if untried := [feature for feature in FEATURES if not trials.features[feature]]:
        lines.append(f"  not tried: {', '.join(untried)}")
    if trials.outcomes["failed"]:
        failed = trials.outcomes["failed"]
        lines.append(f"  {failed} failed: post-processing refused a released value, after the charge")
    if report.findings:
        lines.append(f"  FAILED: {_format_count(len(report.findings), 'finding')}")
    elif report.failure_rate_bound is not None:
        lines.append(
            f"  no claim was broken: at 95 % confidence, fewer than {report.failure_rate_bound:.2%} of such "
            "statements do"
        )
    for finding in report.findings:
        schema = "" if report.schema is None else " SCHEMA"
        command = f"dpsql verify{schema} --seed {finding.number} --trials 8 --no-statistics"
        lines += ["", f"Finding, made again by: {command}", finding.example.rstrip()]
    if report.audited:
        lines += ["", *_audit_lines(report)]
    lines += ["", report.conclusion]
    if report.interrupted:
        lines.append("Interrupted: this is what was tried until then.")
    return lines


def _layout_columns(cells: list[str]) -> list[str]:
    wide = max(map(len, cells), default=0) + 2
    return ["  " + "".join(cell.ljust(wide) for cell in cells[start : start + 4]) for start in range(0, len(cells), 4)]


def _audit_lines(report: VerifyReport) -> list[str]:
    samples = report.audited[0].samples
    lines = [
        f"Statistics: {samples} releases of two neighbors for each of {len(report.audited)} fixed statements.",
        "What they prove of the loss (epsilon at some delta, or the noise's own figure) may not pass what is claimed.",
        f"A sound one is accused with a chance of {ALPHA:g}; half of the noise, or a lower threshold, must be found.",
        f"  {'statement':<42} {'proven':>8} {'claimed':>8}  of what{'':<24} with a planted bug",
    ]
    for result in report.audited:
        worst = max(result.shown, key=lambda bound: bound.shown - bound.claimed)
        planted = max(result.control, key=lambda bound: bound.shown - bound.claimed)
        suffix = "" if result.holds else "  FAILED"
        power = (
            f"{_format_loss(planted.shown)}, found" if result.has_power else f"{_format_loss(planted.shown)}, NOT FOUND"
        )
        figures = f"{_format_loss(worst.shown):>8} {worst.claimed:>8.3f}  {worst.measure:<31}"
        lines.append(f"  {result.template:<42} {figures} {power}{suffix}")
    return lines


def _format_loss(number: float) -> str:
    """Less than no loss at all is nothing."""
    return "nothing" if number <= 0.0 else f"{number:.3f}"


def _format_count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


# A failing case for people: a schema to paste, the statement, both databases and the SQL that ran.


def render_case(case: FailingCase) -> str:
    lines = [*(f"-- {finding}" for finding in case.outcome.findings), "", "-- the schema"]
    lines += [f"-- {line}" for line in render_schema(case.generated)]
    lines += ["", "-- the statement", f"{case.statement};", ""]
    lines += ["-- D", *_render_script(case.generated, case.pair.first), "", "-- D', its neighbor"]
    lines += [*_render_script(case.generated, case.pair.second), ""]
    if case.outcome.compiled is not None:
        for number, step in enumerate(case.outcome.compiled.steps, 1):
            lines += [f"-- what runs for release {number}", f"{step.sql};", ""]
    return "\n".join(lines).rstrip() + "\n"


def _render_script(generated: GeneratedSchema, rows: TableRows) -> Iterator[str]:
    for stored in generated.tables:
        columns = ", ".join(f'"{column.name}" {column.engine_type}' for column in stored.columns)
        yield f'CREATE OR REPLACE TABLE "{stored.name}" ({columns});'
        if rows[stored.name]:
            yield f'INSERT INTO "{stored.name}" VALUES'
            tuples = [f"({', '.join(row)})" for row in rows[stored.name]]
            lines = tuples if len(tuples) <= MAX_SHOWN_ROWS else _fill_lines(tuples)
            yield from (f"  {line}{';' if line is lines[-1] else ','}" for line in lines)


def _fill_lines(tuples: list[str]) -> list[str]:
    """Of many rows as many as fit into a line."""
    lines = [tuples[0]]
    for text in tuples[1:]:
        if len(lines[-1]) + len(text) < LINE_WIDTH:
            lines[-1] += f", {text}"
        else:
            lines.append(text)
    return lines


# --- the schema, as YAML ---------------------------------------------------------------------------------------------


def render_schema(generated: GeneratedSchema) -> Iterator[str]:
    privacy = generated.schema.privacy
    caps = privacy.contributions
    limits = {name: cap for name, cap in (("rows", caps.rows), ("groups", caps.groups)) if cap is not None}
    yield "dpsql: 1"
    yield "engine: duckdb:///example.duckdb"
    yield "privacy:"
    yield f"  neighbors: {privacy.neighbors.value}"
    yield f"  unit: {json.dumps(privacy.unit, ensure_ascii=False)}"
    yield (
        f"  budget: {{epsilon: {_format_number(privacy.budget.epsilon)}, delta: "
        f"{_format_number(privacy.budget.delta)}}}"
    )
    if limits:
        yield f"  contributions: {json.dumps(limits)}"
    yield f"  group_size: {privacy.group_size}"
    yield "tables:"
    for stored in generated.tables:
        yield from _render_table(stored.table)


def _render_table(table: Table) -> Iterator[str]:
    yield f"  {json.dumps(table.name, ensure_ascii=False)}:"
    match table.unit:
        case None:
            yield "    public: true"
        case RowUnit():
            yield "    unit: row"
        case OwnUnit(name):
            yield f"    unit: {json.dumps(name, ensure_ascii=False)}"
        case ForeignUnit() as hop:
            unit = {column: f"{hop.table}.{key}" for column, key in hop.pairs}
            yield f"    unit: {json.dumps(unit, ensure_ascii=False)}"
    if table.unique:
        yield f"    unique: {json.dumps([list(key) for key in table.unique], ensure_ascii=False)}"
    yield "    columns:"
    for column in table.columns:
        yield f"      {json.dumps(column.name, ensure_ascii=False)}: {_render_column(column)}"


def _format_number(number: Fraction) -> str:
    """Exactly: what a schema declares was written as a decimal, or is a double."""
    with localcontext(Context(prec=800)):
        return f"{Decimal(number.numerator) / Decimal(number.denominator):f}"


def _render_column(column: Column) -> str:
    """Numbers, dates and values as text, which the loader reads exactly."""
    domain, parts = column.domain, [f"type: {json.dumps(str(column.type))}"]
    if domain.is_bounded:
        ends = [
            format_timestamp(end, column.type) if column.type.is_time else _format_number(end) for end in domain.bounds
        ]
        parts.append(f"bounds: {json.dumps(ends)}")
    if domain.values is not None and str(column.type) != "boolean":
        parts.append(f"values: {json.dumps([str(value) for value in domain.values], ensure_ascii=False)}")
    if column.grid is not None:
        parts.append(f"grid: {json.dumps(_format_number(column.grid))}")
    if column.null_group:
        parts.append("nullable: true")
    if str(column.type) == "text":
        parts.append(f"max_length: {column.max_length}")
    if column.determines_unit:
        parts.append("determines_unit: true")
    return "{" + ", ".join(parts) + "}"
