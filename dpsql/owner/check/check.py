"""`dpsql check`: how well a schema fits its data, in exact figures.

Law: it charges nothing, writes to no ledger, registers no data version and answers no analyst. What it has read is in
the report alone, which says for whom it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dpsql.engines.duckdb_admin import DuckDBAdmin
from dpsql.errors import Error, InterfaceError
from dpsql.ledger.budget import balance_of
from dpsql.ledger.summary import count_more_like, usual_cost
from dpsql.owner.check import advice
from dpsql.owner.check.dry_run import (
    MAX_UNDECLARED,
    ExactQuery,
    find_shown_groups,
    open_dry_run,
    report_query,
    typical_queries,
    undeclared_keys,
)
from dpsql.owner.check.report import (
    AccountReport,
    ColumnReport,
    KeyReport,
    NormReport,
    QueryReport,
    SchemaFinding,
    SchemaReport,
    Severity,
    TableReport,
)
from dpsql.owner.draft.suggestions import count_clipped_units, count_lost_rows, norms_to_show
from dpsql.owner.introspect.statistics import (
    ColumnFacts,
    add_field_counts,
    count_keys_per_unit,
    count_orphans,
    count_rows_per_unit,
    measure_columns,
    measure_exact_figures,
)
from dpsql.owner.temp_folder import open_temp_folder
from dpsql.privacy.filters import NO_CUMULATIVE_LOSS
from dpsql.schema.literals import show_number
from dpsql.schema.load import load_schema
from dpsql.schema.model import Column, Contributions, Files, ForeignUnit, RowUnit, Schema, Source, Table
from dpsql.session.dataset.accounts import dataset_account, declared_accounts, default_query_budget
from dpsql.session.dataset.dataset import check_declarations
from dpsql.session.dataset.file_identity import expand_table
from dpsql.session.dataset.versions import check_table
from dpsql.session.session import Session, check_settings
from dpsql.types import Kind


def check_schema(path: str | Path, tables: Sequence[str] = (), *, data: bool = True) -> SchemaReport:
    """The report on a schema that loads: on `tables` alone if any are named, on the schema alone without `data`."""
    schema = load_schema(path)
    check_settings(schema)
    check_declarations(schema)
    for name in tables:
        if schema.table(name) is None:
            names = ", ".join(table.name for table in schema.tables)
            raise InterfaceError(f'there is no table "{name}" in the schema', hint=f"Tables: {names}.")
    chosen = [table for table in schema.tables if not tables or table.name in tables]
    findings = list(advice.advise_schema(schema))
    reports: tuple[TableReport, ...] = ()
    if data:
        reports, more = _check_data(schema, chosen)
        findings += more
    query = schema.privacy.query
    return SchemaReport(
        schema=str(path),
        unit=schema.privacy.unit,
        neighbors=schema.privacy.neighbors.value,
        query={"epsilon": float(query.epsilon), "delta": float(query.delta)},
        accounts=_report_accounts(schema),
        tables=reports,
        findings=tuple(
            sorted(findings, key=lambda finding: (list(Severity).index(finding.level), not finding.is_promise))
        ),
        data=data,
        declared=tuple(table.name for table in schema.tables),
    )


def _report_accounts(schema: Schema) -> tuple[AccountReport, ...]:
    """As a new ledger would have them: the real one is not asked."""
    reports = []
    for account in (dataset_account(schema), *declared_accounts(schema)):
        query = default_query_budget(schema, account)
        delta = query.delta if account.delta else account.delta
        more = count_more_like(balance_of(account, NO_CUMULATIVE_LOSS, 0), usual_cost(query.epsilon, delta))
        reports.append(AccountReport(account.name, float(account.epsilon), float(account.delta), more))
    return tuple(reports)


def _check_data(schema: Schema, chosen: Sequence[Table]) -> tuple[tuple[TableReport, ...], list[SchemaFinding]]:
    declared = schema.privacy.contributions
    try:
        with open_dry_run(schema, declared) as session, _open_owner(schema) as owner:
            inspector = _TableInspector(schema, session.dataset.resolved.relations, owner, session)
            inspected = [inspector.inspect_table(table) for table in chosen]
        automatic = _count_automatically(schema, chosen) if declared.rows is not None else {}
        inspected = [(replace(report, automatic=automatic.get(report.name)), more) for report, more in inspected]
    except Error as error:
        problems = _find_problems(schema)
        if not problems:  # no table by itself: a view of the world that is not the tables'
            problems = [SchemaFinding(Severity.BROKEN, "data", str(error))]
        return (), problems
    reports = tuple(report for report, _ in inspected)
    findings = [finding for _, more in inspected for finding in more]
    return reports, [*findings, *advice.advise_dataset(schema, reports)]


def _open_owner(schema: Schema) -> DuckDBAdmin:
    return DuckDBAdmin(schema.engine, threads=schema.limits.threads, memory=schema.limits.memory)


def _count_automatically(schema: Schema, chosen: Sequence[Table]) -> dict[str, QueryReport]:
    """COUNT(*) of each table whose units have several rows, as if contributions were automatic."""
    tables = [table for table in chosen if table.unit is not None and not isinstance(table.unit, RowUnit)]
    with open_dry_run(schema, Contributions()) as session, _open_owner(schema) as owner:
        inspector = _TableInspector(schema, session.dataset.resolved.relations, owner, session)
        return {table.name: inspector.count_all_rows(table) for table in tables}


def _find_problems(schema: Schema) -> list[SchemaFinding]:
    """What stops the data from being served, table by table."""
    problems: list[SchemaFinding] = []
    with open_temp_folder("check") as folder:
        for number, table in enumerate(schema.tables):
            try:
                with _open_owner(schema) as owner:
                    source = _readable_source(owner, schema, table, folder / "copies" / f"{number}.parquet")
                    check_table(owner, schema, table, source)
            except Error as error:
                what = f"{error.message}. {error.detail or ''}".strip().rstrip(".")
                problems.append(SchemaFinding(Severity.BROKEN, f"tables.{table.name}", what, error.hint))
    return problems


def _readable_source(owner: DuckDBAdmin, schema: Schema, table: Table, copy: Path) -> Source:
    source = expand_table(table)
    if isinstance(source, Files) and source.format != "parquet":
        owner.write_snapshot(source, table.columns, copy, schema.find_id_columns(table))
        return Files((str(copy),), "parquet")
    return source


@dataclass(frozen=True)
class _TableInspector:
    schema: Schema
    relations: Mapping[str, Source]
    owner: DuckDBAdmin
    session: Session

    def inspect_table(self, table: Table) -> tuple[TableReport, list[SchemaFinding]]:
        rows, facts = measure_columns(self.owner.query_rows, self.relations[table.name], table.columns)
        source = expand_table(table)
        if isinstance(source, Files) and source.format != "parquet":
            readable = self.owner.make_readable(source, table.columns)
            facts = add_field_counts(self.owner.query_rows, readable, table.columns, facts)
        columns = tuple(_report_column(column, facts[column.name], rows) for column in table.columns)
        advised = list(advice.advise_unreadable_values(self.schema, table, facts, rows))
        if table.unit is None:
            return TableReport(table.name, rows, None, 0, 0, columns), advised
        advised += advice.advise_columns(self.schema, table, facts, rows, self._common_values_of)
        advised += advice.advise_row_unit(self.schema, table, facts)
        histogram = count_rows_per_unit(self.owner.query_rows, self.schema, table, self.relations)
        owned_rows = sum(number * count for number, count in histogram.items())
        queries = typical_queries(self.schema, table)
        questions = tuple(report_query(self.session, query, self._exact_figures_of(table)) for query in queries)
        missing = 0
        if isinstance(table.unit, ForeignUnit):
            missing = count_orphans(self.owner.query_rows, self.schema, table, self.relations)
        keys = self._group_keys(table, facts, rows)
        report = TableReport(
            name=table.name,
            rows=rows,
            units=sum(histogram.values()),
            without_unit=rows - owned_rows,
            orphans=missing,
            columns=columns,
            norms=self._report_norms(table, histogram, questions[0]),
            keys=tuple(report for key in keys[:MAX_UNDECLARED] if (report := self._report_key(table, key)) is not None),
            questions=questions,
            most_rows=max(histogram, default=0),
            unit_key=self._find_unit_key(table) if max(histogram, default=0) > 1 else None,
            keys_left=len(keys[MAX_UNDECLARED:]),
        )
        advised += advice.advise_single_rows(self.schema, table, facts, report)
        return report, [*advised, *advice.advise_units(self.schema, table, report)]

    def _find_unit_key(self, table: Table) -> str | None:
        unit = advice.unit_column_of(self.schema, table)
        id_ = None if unit is None else table.column(unit)
        if id_ is None or any(unit in key for key in table.unique):
            return None
        for column in table.columns:
            few = advice.has_few_values(column) and not self.owner.has_duplicates(
                self.relations[table.name], [id_, column], self.schema.find_id_columns(table)
            )
            if few:
                return column.name
        return None

    def count_all_rows(self, table: Table) -> QueryReport:
        return report_query(self.session, next(typical_queries(self.schema, table)), self._exact_figures_of(table))

    def _exact_figures_of(self, table: Table) -> ExactQuery:
        return lambda key, value: measure_exact_figures(
            self.owner.query_rows, self.schema, table, self.relations, key, value
        )

    def _common_values_of(self, table: Table, column: Column) -> tuple[tuple[str, ...], int] | None:
        return advice.list_common_values(self.owner.query_rows, self.relations[table.name], table, column)

    def _report_norms(self, table: Table, histogram: Mapping[int, int], counted: QueryReport) -> tuple[NormReport, ...]:
        """The declared norm and others: noise grows with it, what is lost falls."""
        declared = self.session.settings.statement.rows
        if declared is None or isinstance(table.unit, RowUnit) or max(histogram, default=1) == 1:
            return ()
        rows = sum(number * count for number, count in histogram.items())
        noise = None if counted.noise is None else counted.noise / declared
        return tuple(
            NormReport(
                norm,
                count_clipped_units(histogram, norm) / sum(histogram.values()),
                count_lost_rows(histogram, norm) / rows,
                None if noise is None else noise * norm,
            )
            for norm in (declared, *norms_to_show(histogram, declared, None if noise is None else noise * rows))
        )

    def _group_keys(self, table: Table, facts: Mapping[str, ColumnFacts], rows: int) -> list[Column]:
        max_groups = max(10, rows // 5)  # with fewer rows a value is no group: nearly all would be hidden
        return [key for key in undeclared_keys(self.schema, table) if 1 < facts[key.name].distinct <= max_groups]

    def _report_key(self, table: Table, key: Column) -> KeyReport | None:
        try:
            shown, needed = find_shown_groups(self.session, table, key)
        except Error:  # pure differential privacy selects no groups; the question about it says so
            return None
        exact = [figures for figures in self._exact_figures_of(table)(key, None) if figures.group is not None]
        rows = sum(figures.count for figures in exact)
        hidden = sum(figures.count for figures in exact if figures.group not in shown)
        each = count_keys_per_unit(self.owner.query_rows, self.schema, table, self.relations, key)
        max_keys = self.session.settings.statement.groups
        over = 0.0 if max_keys is None else count_clipped_units(each, max_keys) / max(1, sum(each.values()))
        shown_count = len(shown - {None})  # as of the groups: NULL is none of the key's values
        return KeyReport(key.name, len(exact), shown_count, hidden / rows if rows else 0.0, needed, over)


def _report_column(column: Column, facts: ColumnFacts, rows: int) -> ColumnReport:
    def share_of_rows(count: int) -> float:
        return count / rows if rows else 0.0

    return ColumnReport(
        name=column.name,
        type=str(column.type),
        declared=_describe_declared(column),
        null=share_of_rows(rows - facts.present),
        unfit=share_of_rows(facts.unfit_count),
        below=share_of_rows(facts.below),
        above=share_of_rows(facts.above),
        unlisted=share_of_rows(facts.unlisted),
        too_long=share_of_rows(facts.too_long),
    )


def _describe_declared(column: Column) -> str:
    domain = column.domain
    if domain.values is not None:
        return f"{len(domain.values)} values"
    if domain.lower is None or domain.upper is None:
        return f"up to {column.max_length} characters" if column.type.kind is Kind.TEXT else ""
    if column.type.is_time:
        return advice.format_time_bounds(column)
    return f"[{show_number(domain.lower)}, {show_number(domain.upper)}]"
