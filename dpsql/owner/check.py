"""`dpsql check`: how well a schema fits its data, in exact figures.

Law: it charges nothing, writes to no ledger, registers no data version and answers no analyst. What it has read is in
the report alone, which says for whom it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsql.dataset import check_declarations
from dpsql.engines.measure import (
    ColumnFacts,
    column_facts,
    exact_figures,
    keys_per_unit,
    orphans,
    rows_per_unit,
    with_fields,
)
from dpsql.engines.owner import DuckDBOwner
from dpsql.errors import Error, InterfaceError
from dpsql.ledger.budget import balance_of
from dpsql.ledger.standing import more_like, usual_cost
from dpsql.owner import advice
from dpsql.owner.proposals import clipped_units, lost_rows, norms_shown
from dpsql.owner.questions import (
    MOST_UNDECLARED,
    Exactly,
    answer_question,
    hidden_groups,
    typical,
    undeclared_keys,
)
from dpsql.owner.rehearsal import rehearsal
from dpsql.owner.report import (
    AccountReport,
    ColumnReport,
    Finding,
    KeyReport,
    Level,
    Norm,
    QuestionReport,
    Report,
    TableReport,
)
from dpsql.owner.scratch import scratch
from dpsql.payers import accounts_below, dataset_account, usual_query
from dpsql.pins import expand_table
from dpsql.privacy.filters import NOTHING
from dpsql.schema.literals import show_number
from dpsql.schema.load import load_schema
from dpsql.schema.model import Column, Contributions, Files, ForeignUnit, RowUnit, Schema, Source, Table
from dpsql.session import Session, check_settings
from dpsql.types import Kind
from dpsql.versions import check_table


def check_schema(path: str | Path, tables: Sequence[str] = (), *, data: bool = True) -> Report:
    """The report on a schema that loads: on `tables` alone if any are named, on the schema alone without `data`."""
    schema = load_schema(path)
    check_settings(schema)
    check_declarations(schema)
    for name in tables:
        if schema.table(name) is None:
            known = ", ".join(table.name for table in schema.tables)
            raise InterfaceError(f'there is no table "{name}" in the schema', hint=f"Tables: {known}.")
    chosen = [table for table in schema.tables if not tables or table.name in tables]
    findings = list(advice.of_schema(schema))
    found: tuple[TableReport, ...] = ()
    if data:
        found, more = _of_data(schema, chosen)
        findings += more
    query = schema.privacy.query
    return Report(
        schema=str(path),
        unit=schema.privacy.unit,
        neighbors=schema.privacy.neighbors.value,
        query={"epsilon": float(query.epsilon), "delta": float(query.delta)},
        accounts=_accounts(schema),
        tables=found,
        findings=tuple(sorted(findings, key=lambda finding: list(Level).index(finding.level))),
        data=data,
        declared=tuple(table.name for table in schema.tables),
    )


def _accounts(schema: Schema) -> tuple[AccountReport, ...]:
    """As a new ledger would have them: the real one is not asked."""
    reports = []
    for account in (dataset_account(schema), *accounts_below(schema)):
        query = usual_query(schema, account)
        delta = query.delta if account.delta else account.delta
        more = more_like(balance_of(account, NOTHING, 0), usual_cost(query.epsilon, delta))
        reports.append(AccountReport(account.name, float(account.epsilon), float(account.delta), more))
    return tuple(reports)


def _of_data(schema: Schema, chosen: Sequence[Table]) -> tuple[tuple[TableReport, ...], list[Finding]]:
    contributions = _tried(schema)
    try:
        with rehearsal(schema, contributions) as session, _owner(schema) as owner:
            look = _Look(schema, session.dataset.resolved.relations, owner, session)
            looked = [look.table(table) for table in chosen]
    except Error as error:
        problems = _problems(schema)
        if not problems:  # no table by itself: a view of the world that is not the tables'
            problems = [Finding(Level.BROKEN, "data", str(error))]
        return (), problems
    reports = tuple(report for report, _ in looked)
    findings = [finding for _, more in looked for finding in more]
    return reports, [*findings, *advice.of_tables(schema, reports)]


def _owner(schema: Schema) -> DuckDBOwner:
    return DuckDBOwner(schema.engine, threads=schema.limits.threads, memory=schema.limits.memory)


def _tried(schema: Schema) -> Contributions:
    """Where none are declared, questions are tried with usual ones, and a finding says so."""
    declared = schema.privacy.contributions
    return Contributions(declared.rows or advice.ROWS, declared.groups or advice.GROUPS)


def _problems(schema: Schema) -> list[Finding]:
    """What stops the data from being served, table by table."""
    found: list[Finding] = []
    with scratch("check") as folder:
        for number, table in enumerate(schema.tables):
            try:
                with _owner(schema) as owner:
                    source = _readable(owner, schema, table, folder / "copies" / f"{number}.parquet")
                    check_table(owner, schema, table, source)
            except Error as error:
                what = f"{error.message}. {error.detail or ''}".strip().rstrip(".")
                found.append(Finding(Level.BROKEN, f"tables.{table.name}", what, error.hint))
    return found


def _readable(owner: DuckDBOwner, schema: Schema, table: Table, copy: Path) -> Source:
    source = expand_table(table)
    if isinstance(source, Files) and source.format != "parquet":
        owner.snapshot(source, table.columns, copy, schema.id_columns(table))
        return Files((str(copy),), "parquet")
    return source


@dataclass(frozen=True)
class _Look:
    schema: Schema
    relations: Mapping[str, Source]
    owner: DuckDBOwner
    session: Session

    def table(self, table: Table) -> tuple[TableReport, list[Finding]]:
        rows, facts = column_facts(self.owner.ask, self.relations[table.name], table.columns)
        source = expand_table(table)
        if isinstance(source, Files) and source.format != "parquet":
            facts = with_fields(self.owner.ask, source, table.columns, facts)
        columns = tuple(_column(column, facts[column.name], rows) for column in table.columns)
        advised = list(advice.of_fields(self.schema, table, facts, rows))
        if table.unit is None:
            return TableReport(table.name, rows, None, 0, 0, columns), advised
        advised += advice.of_columns(self.schema, table, facts, rows, self._values)
        histogram = rows_per_unit(self.owner.ask, self.schema, table, self.relations)
        held = sum(number * count for number, count in histogram.items())
        asked = typical(self.schema, table)
        questions = tuple(answer_question(self.session, one, self._exactly(table)) for one in asked)
        missing = 0
        if isinstance(table.unit, ForeignUnit):
            missing = orphans(self.owner.ask, self.schema, table, self.relations)
        keys = self._keys(table, facts, rows)
        report = TableReport(
            name=table.name,
            rows=rows,
            units=sum(histogram.values()),
            without_unit=rows - held,
            orphans=missing,
            columns=columns,
            norms=self._norms(table, histogram, questions[0]),
            keys=tuple(report for key in keys[:MOST_UNDECLARED] if (report := self._key(table, key)) is not None),
            questions=questions,
            most_rows=max(histogram, default=0),
            keys_left=len(keys[MOST_UNDECLARED:]),
        )
        return report, [*advised, *advice.of_contributions(self.schema, table, report)]

    def _exactly(self, table: Table) -> Exactly:
        return lambda key, value: exact_figures(self.owner.ask, self.schema, table, self.relations, key, value)

    def _values(self, table: Table, column: Column) -> tuple[tuple[str, ...], int] | None:
        return advice.listed(self.owner.ask, self.relations[table.name], table, column)

    def _norms(self, table: Table, histogram: Mapping[int, int], counted: QuestionReport) -> tuple[Norm, ...]:
        """The declared norm and others: noise grows with it, what is lost falls."""
        if isinstance(table.unit, RowUnit) or max(histogram, default=1) == 1:
            return ()
        rows = sum(number * count for number, count in histogram.items())
        own = self.session.settings.statement.rows or advice.ROWS
        noise = None if counted.noise is None else counted.noise / own
        return tuple(
            Norm(
                norm,
                clipped_units(histogram, norm) / sum(histogram.values()),
                lost_rows(histogram, norm) / rows,
                None if noise is None else noise * norm,
            )
            for norm in (own, *norms_shown(histogram, own, None if noise is None else noise * rows))
        )

    def _keys(self, table: Table, facts: Mapping[str, ColumnFacts], rows: int) -> list[Column]:
        most = max(10, rows // 5)  # with fewer rows a value is no group: nearly all would be hidden
        return [key for key in undeclared_keys(self.schema, table) if 1 < facts[key.name].distinct <= most]

    def _key(self, table: Table, key: Column) -> KeyReport | None:
        try:
            shown, needed = hidden_groups(self.session, table, key)
        except Error:  # pure differential privacy selects no groups; the question about it says so
            return None
        exact = [figures for figures in self._exactly(table)(key, None) if figures.group is not None]
        rows = sum(figures.count for figures in exact)
        hidden = sum(figures.count for figures in exact if figures.group not in shown)
        each = keys_per_unit(self.owner.ask, self.schema, table, self.relations, key)
        most = self.session.settings.statement.groups or advice.GROUPS
        over = clipped_units(each, most) / max(1, sum(each.values()))
        seen = len(shown - {None})  # as of the groups: NULL is none of the key's values
        return KeyReport(key.name, len(exact), seen, hidden / rows if rows else 0.0, needed, over)


def _column(column: Column, facts: ColumnFacts, rows: int) -> ColumnReport:
    def share(count: int) -> float:
        return count / rows if rows else 0.0

    return ColumnReport(
        name=column.name,
        type=str(column.type),
        declared=_declared(column),
        null=share(rows - facts.present),
        unfit=share(facts.unfit),
        below=share(facts.below),
        above=share(facts.above),
        unlisted=share(facts.unlisted),
        too_long=share(facts.too_long),
    )


def _declared(column: Column) -> str:
    domain = column.domain
    if domain.values is not None:
        return f"{len(domain.values)} values"
    if domain.lower is None or domain.upper is None:
        return f"up to {column.max_length} characters" if column.type.kind is Kind.TEXT else ""
    if column.type.is_time:
        return advice.times(column)
    return f"[{show_number(domain.lower)}, {show_number(domain.upper)}]"


