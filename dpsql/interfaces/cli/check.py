"""`dpsql check`: the owner's report on a schema and its data. Law: it says on its first line for whom it is."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from fractions import Fraction

from dpsql.amounts import format_rounded_up
from dpsql.interfaces.dbapi.url import schema_path
from dpsql.interfaces.display.cells import FormattedNumber
from dpsql.interfaces.display.table import print_table
from dpsql.interfaces.display.terminal import BOLD, DIM, RED, Screen, escape_text
from dpsql.owner.administration import MAX_COUNTED
from dpsql.owner.check.check import check_schema
from dpsql.owner.check.report import REPORT_HEADING, QueryReport, SchemaFinding, SchemaReport, Severity, TableReport

_EXIT_FINDINGS = 3
_MAX_SIMILAR = 5
"""Findings in the same words, up to which each stands by itself."""
_LEVEL_TITLES = {
    Severity.BROKEN: "Cannot be served",
    Severity.MEND: "To mend",
    Severity.BETTER: "Could be better",
}


def run(args: argparse.Namespace, screen: Screen) -> int:
    """0 where all is well, 3 where something should be mended."""
    report = check_schema(schema_path(args.schema), args.tables, data=args.data)
    if args.json:
        screen.print(json.dumps(report.as_json(), indent=2, ensure_ascii=False))
    else:
        _print_report(report, screen)
    return 0 if report.is_ok else _EXIT_FINDINGS


def _print_report(report: SchemaReport, screen: Screen) -> None:
    if report.data:
        screen.print(screen.style_output(REPORT_HEADING, BOLD))
    screen.print(f"{escape_text(report.schema)}: unit {escape_text(report.unit)}, neighbors {report.neighbors}")
    for table in report.tables:
        _print_table_report(table, screen)
    _print_queries(report, screen)
    _print_accounts(report, screen)
    for level in Severity:
        _print_findings(level, [finding for finding in report.findings if finding.level is level], screen)
    if report.is_ok:
        screen.print()
        screen.print(_conclude(report))


def _conclude(report: SchemaReport) -> str:
    unclear = next((finding.where for finding in report.findings if finding.is_promise), None)
    if unclear is not None:
        return f"Nothing has to be mended if no two rows are about one person: look at {escape_text(unclear)} first."
    return "Nothing has to be mended." if report.findings else "All is well."


def _print_table_report(table: TableReport, screen: Screen) -> None:
    whose = "public" if table.units is None else f"{_format_count(table.units)} units"
    _print_title(screen, f"{escape_text(table.name)}: {_format_count(table.rows)} rows, {whose}")
    if table.without_unit:
        screen.print(f"{_format_count(table.without_unit)} rows belong to no unit, and are in no answer")
    heads = ("column", "type", "declared", "NULL", "unfit", "below", "above", "not listed", "too long")
    rows = [
        (
            item.name,
            item.type,
            item.declared,
            *map(_format_share, (item.null, item.unfit, item.below, item.above, item.unlisted, item.too_long)),
        )
        for item in table.columns
    ]
    print_table(screen, heads, rows)
    if table.norms:
        screen.print()
        screen.print("contributions.rows, for COUNT(*) of all rows at the default epsilon:")
        norms = [
            (
                FormattedNumber(str(item.rows)),
                "declared" if index == 0 else "",
                _format_share(item.units_clipped),
                _format_share(item.rows_lost),
                _format_share(item.noise),
            )
            for index, item in enumerate(table.norms)
        ]
        if table.automatic is not None and table.automatic.noise is not None:
            lost, noise = map(_format_share, (table.automatic.lost, table.automatic.noise))
            norms.append((FormattedNumber("auto"), "", None, lost, noise))
        print_table(screen, ("rows", "", "units clipped", "rows lost", "noise (95 %)"), norms)
    if table.keys:
        screen.print()
        screen.print("Undeclared keys, whose groups are selected at the default epsilon:")
        keys = [
            (
                item.column,
                item.groups,
                item.shown,
                _format_share(item.rows_hidden),
                item.units_to_appear,
                _format_share(item.units_over),
            )
            for item in table.keys
        ]
        names = ("key", "groups", "shown", "rows hidden", "units to appear", "units with more keys")
        print_table(screen, names, keys)
        if table.keys_left:
            screen.print(f"… and {table.keys_left} more, which were not looked at")


def _print_queries(report: SchemaReport, screen: Screen) -> None:
    queries = [question for table in report.tables for question in table.questions]
    if not queries:
        return
    epsilon, delta = report.query["epsilon"], report.query["delta"]
    _print_title(screen, f"Typical questions at epsilon {_format_parameter(epsilon)}, delta {_format_parameter(delta)}")
    heads = ("question", "exact", "lost", "noise (95 %)", "epsilon for 5 %")
    print_table(screen, heads, [_query_row(query) for query in queries])
    screen.print(
        screen.style_output("Of groups, the figures are the median's. Lost: to bounds and norm, without noise.", DIM)
    )
    if any(query.noise is not None and query.epsilon is None for query in queries):
        screen.print(screen.style_output(_NO_EPSILON_NOTE, DIM))
    for query in queries:
        if query.refused is not None:
            screen.print(f"refused: {escape_text(query.sql)}: {escape_text(query.refused)}")


_NO_EPSILON_NOTE = (
    "none: where answers were randomized, the chance of that is in the noise, and no epsilon makes it smaller."
)


def _query_row(query: QueryReport) -> tuple[object, ...]:
    exact = (
        None
        if query.exact is None
        else FormattedNumber(f"{query.exact:,.4g}" if abs(query.exact) < 1000 else f"{query.exact:,.0f}")
    )
    least = (
        FormattedNumber("none" if query.noise is not None else "")
        if query.epsilon is None
        else FormattedNumber(f"{query.epsilon:.2g}")
    )
    return query.sql, exact, _format_share(query.lost), _format_share(query.noise), least


def _print_accounts(report: SchemaReport, screen: Screen) -> None:
    _print_title(screen, "Budgets, in statements at the default that a new ledger would grant")
    rows = [
        (
            account.name,
            FormattedNumber(_format_parameter(account.epsilon)),
            FormattedNumber(_format_parameter(account.delta)),
            FormattedNumber(f"{account.statements:,}" if account.statements < MAX_COUNTED else "many"),
        )
        for account in report.accounts
    ]
    print_table(screen, ("account", "epsilon", "delta", "statements"), rows)


def _print_findings(level: Severity, findings: Sequence[SchemaFinding], screen: Screen) -> None:
    if not findings:
        return
    _print_title(screen, f"{_LEVEL_TITLES[level]} ({len(findings)})", RED if level is Severity.BROKEN else BOLD)
    by_text: dict[str, list[SchemaFinding]] = {}
    for finding in findings:
        by_text.setdefault(finding.what, []).append(finding)
    for similar in by_text.values():
        if len(similar) > _MAX_SIMILAR:
            _print_similar(similar, screen)
            continue
        for finding in similar:
            screen.print(f"- {screen.style_output(escape_text(finding.where), BOLD)}: {escape_text(finding.what)}")
            if finding.try_ is not None:
                screen.print(f"    {escape_text(finding.try_)}{_data_warning(finding, screen)}")


def _print_similar(similar: Sequence[SchemaFinding], screen: Screen) -> None:
    """What many columns have in common, once, with the first of them."""
    screen.print(f"- {screen.style_output(f'{len(similar)} places', BOLD)}: {escape_text(similar[0].what)}")
    for finding in similar[:_MAX_SIMILAR]:
        proposal = "" if finding.try_ is None else f": {escape_text(finding.try_)}{_data_warning(finding, screen)}"
        screen.print(f"    {escape_text(finding.where)}{proposal}")
    screen.print(f"    … and {len(similar) - _MAX_SIMILAR} more; --json tells all")


def _data_warning(finding: SchemaFinding, screen: Screen) -> str:
    return screen.style_output("  (read from the data, so not private: decide)", DIM) if finding.from_data else ""


def _print_title(screen: Screen, text: str, style: str = BOLD) -> None:
    screen.print()
    screen.print(screen.style_output(text, style))


def _format_share(share: float | None) -> FormattedNumber | None:
    """A share in percent; nothing is a dot, so that what is there is seen.

    >>> [str(_format_share(share)) for share in (0.0, 0.1234, 0.00001, 2.5)]
    ['·', '12.3 %', '< 0.01 %', '250 %']
    """
    if share is None:
        return None
    if share == 0:
        return FormattedNumber("·")
    if abs(share) < 0.0001:
        return FormattedNumber("< 0.01 %")
    percent = 100 * share
    return FormattedNumber(f"{percent:.2f} %" if abs(percent) < 10 else f"{percent:.1f} %" if abs(percent) < 99.5 else
                  f"{percent:,.0f} %")  # fmt: skip


def _format_parameter(value: float) -> str:
    return format_rounded_up(Fraction(f"{value:.12g}"))


def _format_count(value: int) -> str:
    return f"{value:,}"
