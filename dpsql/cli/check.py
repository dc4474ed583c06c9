"""`dpsql check`: the owner's report on a schema and its data. Law: it says on its first line for whom it is."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from fractions import Fraction

from dpsql.dbapi.address import schema_path
from dpsql.display.cells import Figure
from dpsql.display.screen import BOLD, DIM, RED, Screen
from dpsql.display.table import print_table
from dpsql.display.text import shown
from dpsql.figures import short_up
from dpsql.owner.books import MANY
from dpsql.owner.check import check_schema
from dpsql.owner.report import HEADING, Finding, Level, QuestionReport, Report, TableReport

_TO_MEND = 3
_ALIKE = 5
"""Findings in the same words, up to which each stands by itself."""
_TITLES = {
    Level.BROKEN: "Cannot be served",
    Level.MEND: "To mend",
    Level.BETTER: "Could be better",
}


def run(given: argparse.Namespace, screen: Screen) -> int:
    """0 where all is well, 3 where something should be mended."""
    report = check_schema(schema_path(given.schema), given.tables, data=given.data)
    if given.json:
        screen.print(json.dumps(report.as_json(), indent=2, ensure_ascii=False))
    else:
        _tell(report, screen)
    return 0 if report.well else _TO_MEND


def _tell(report: Report, screen: Screen) -> None:
    if report.data:
        screen.print(screen.style(HEADING, BOLD))
    screen.print(f"{shown(report.schema)}: unit {shown(report.unit)}, neighbors {report.neighbors}")
    for table in report.tables:
        _tell_table(table, screen)
    _tell_questions(report, screen)
    _tell_accounts(report, screen)
    for level in Level:
        _tell_findings(level, [one for one in report.findings if one.level is level], screen)
    if report.well:
        screen.print()
        screen.print("All is well." + ("" if report.findings else " There is nothing to set better."))


def _tell_table(table: TableReport, screen: Screen) -> None:
    whose = "public" if table.units is None else f"{_count(table.units)} units"
    _title(screen, f"{shown(table.name)}: {_count(table.rows)} rows, {whose}")
    if table.without_unit:
        screen.print(f"{_count(table.without_unit)} rows belong to no unit, and are in no answer")
    heads = ("column", "type", "declared", "NULL", "unfit", "below", "above", "not listed", "too long")
    rows = [
        (one.name, one.type, one.declared, *map(_share, (one.null, one.unfit, one.below, one.above, one.unlisted,
                                                         one.too_long)))
        for one in table.columns
    ]  # fmt: skip
    print_table(screen, heads, rows)
    if table.norms:
        screen.print()
        screen.print("contributions.rows, for COUNT(*) of all rows at the default epsilon:")
        norms = [
            (Figure(str(one.rows)), "declared" if place == 0 else "", _share(one.units_clipped), _share(one.rows_lost),
             _share(one.noise))
            for place, one in enumerate(table.norms)
        ]  # fmt: skip
        print_table(screen, ("rows", "", "units clipped", "rows lost", "noise (95 %)"), norms)
    if table.keys:
        screen.print()
        screen.print("Undeclared keys, whose groups are selected at the default epsilon:")
        keys = [
            (one.column, one.groups, one.shown, _share(one.rows_hidden), one.units_to_appear, _share(one.units_over))
            for one in table.keys
        ]
        names = ("key", "groups", "shown", "rows hidden", "units to appear", "units with more keys")
        print_table(screen, names, keys)
        if table.keys_left:
            screen.print(f"… and {table.keys_left} more, which were not looked at")


def _tell_questions(report: Report, screen: Screen) -> None:
    asked = [question for table in report.tables for question in table.questions]
    if not asked:
        return
    epsilon, delta = report.query["epsilon"], report.query["delta"]
    _title(screen, f"Typical questions at epsilon {_small(epsilon)}, delta {_small(delta)}")
    heads = ("question", "exact", "lost", "noise (95 %)", "epsilon for 5 %")
    print_table(screen, heads, [_question(one) for one in asked])
    screen.print(screen.style("Of groups, the figures are the median's. Lost: to bounds and norm, without noise.", DIM))
    if any(one.noise is not None and one.epsilon is None for one in asked):
        screen.print(screen.style(_NONE, DIM))
    for one in asked:
        if one.refused is not None:
            screen.print(f"refused: {shown(one.sql)}: {shown(one.refused)}")


_NONE = "none: where answers were randomized, the chance of that is in the noise, and no epsilon makes it smaller."


def _question(one: QuestionReport) -> tuple[object, ...]:
    exact = None if one.exact is None else Figure(f"{one.exact:,.4g}" if abs(one.exact) < 1000 else f"{one.exact:,.0f}")
    least = Figure("none" if one.noise is not None else "") if one.epsilon is None else Figure(f"{one.epsilon:.2g}")
    return one.sql, exact, _share(one.lost), _share(one.noise), least


def _tell_accounts(report: Report, screen: Screen) -> None:
    _title(screen, "Budgets, in statements at the default that a new ledger would grant")
    rows = [
        (one.name, Figure(_small(one.epsilon)), Figure(_small(one.delta)),
         Figure(f"{one.statements:,}" if one.statements < MANY else "many"))
        for one in report.accounts
    ]  # fmt: skip
    print_table(screen, ("account", "epsilon", "delta", "statements"), rows)


def _tell_findings(level: Level, findings: Sequence[Finding], screen: Screen) -> None:
    if not findings:
        return
    _title(screen, f"{_TITLES[level]} ({len(findings)})", RED if level is Level.BROKEN else BOLD)
    alike: dict[str, list[Finding]] = {}
    for one in findings:
        alike.setdefault(one.what, []).append(one)
    for same in alike.values():
        if len(same) > _ALIKE:
            _tell_alike(same, screen)
            continue
        for one in same:
            screen.print(f"- {screen.style(shown(one.where), BOLD)}: {shown(one.what)}")
            if one.try_ is not None:
                screen.print(f"    {shown(one.try_)}{_from_data(one, screen)}")


def _tell_alike(same: Sequence[Finding], screen: Screen) -> None:
    """What many columns have in common, once, with the first of them."""
    screen.print(f"- {screen.style(f'{len(same)} places', BOLD)}: {shown(same[0].what)}")
    for one in same[:_ALIKE]:
        tried = "" if one.try_ is None else f": {shown(one.try_)}{_from_data(one, screen)}"
        screen.print(f"    {shown(one.where)}{tried}")
    screen.print(f"    … and {len(same) - _ALIKE} more; --json tells all")


def _from_data(one: Finding, screen: Screen) -> str:
    return screen.style("  (read from the data, so not private: decide)", DIM) if one.from_data else ""


def _title(screen: Screen, text: str, style: str = BOLD) -> None:
    screen.print()
    screen.print(screen.style(text, style))


def _share(share: float | None) -> Figure | None:
    """A share in percent; nothing is a dot, so that what is there is seen.

    >>> [str(_share(share)) for share in (0.0, 0.1234, 0.00001, 2.5)]
    ['·', '12.3 %', '< 0.01 %', '250 %']
    """
    if share is None:
        return None
    if share == 0:
        return Figure("·")
    if abs(share) < 0.0001:
        return Figure("< 0.01 %")
    percent = 100 * share
    return Figure(f"{percent:.2f} %" if abs(percent) < 10 else f"{percent:.1f} %" if abs(percent) < 99.5 else
                  f"{percent:,.0f} %")  # fmt: skip


def _small(value: float) -> str:
    return short_up(Fraction(f"{value:.12g}"))


def _count(value: int) -> str:
    return f"{value:,}"
