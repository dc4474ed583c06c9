"""Answers that need no release, because the schema has them: listed groups and dummy rows.

Law: nothing here reads a private row, and nothing is charged for it. What is `StaticRows` is made when a statement is
compiled, which is pure; what public tables list is read from them, as any statement over public tables is.
"""

from __future__ import annotations

from dpsql.compiler.analysis.canonical import canonicalize
from dpsql.compiler.compiled import PublicStep, StaticRows, TableStep
from dpsql.compiler.plan.aggregate import Gather
from dpsql.compiler.plan.steps import ReleaseColumn
from dpsql.compiler.postprocess.postgres_semantics import tables_read_by
from dpsql.compiler.render.release import find_runtime_parameters, render_release
from dpsql.compiler.rewrite.bound_contributions import ContributionPolicy
from dpsql.compiler.rewrite.list_groups import is_list_only, list_declared_groups
from dpsql.compiler.rewrite.pipeline import rewrite_plan
from dpsql.compiler.rewrite.release_plan import RuleContext
from dpsql.compiler.rewrite.snap_times import snap_times
from dpsql.compiler.split.blocks import BoundRelease
from dpsql.compiler.split.split import SplitQuery
from dpsql.schema.dummy_rows import make_dummy_rows
from dpsql.schema.model import Resolved, Schema

LISTED_GROUPS_NOTICE = "the groups are known without private rows, of which none was read; some of them may have none"

StaticStep = TableStep | PublicStep | None


def releases_needed(parts: SplitQuery, resolved: Resolved, policy: ContributionPolicy) -> dict[str, StaticStep]:
    """The releases that the answer is made of, by name; what stands for those that need not be made, else None.

    A release that only fills holes of one that need not be made is not among them.
    """
    read, in_holes = set(tables_read_by(parts.post)), set[str]()
    static_steps: dict[str, StaticStep] = {}
    for release in reversed(parts.releases):  # a hole's source reads earlier ones
        if release.name not in read | in_holes:
            continue
        # What a hole reads stays a step, by which the release that has the hole is found again.
        free = None if release.name in in_holes else _find_static_groups(release, resolved, policy)
        static_steps[release.name] = free
        if free is None:
            in_holes.update(name for hole in release.holes for name in tables_read_by(hole.source))
    return static_steps


def dummy_tables(parts: SplitQuery, schema: Schema) -> list[TableStep]:
    """The rows that stand for the private tables of a preview."""
    tables: list[TableStep] = []
    for name, table_name in parts.made_up:
        table = schema.table(table_name)
        assert table is not None and table.preview
        names = tuple(column.name for column in table.columns)
        columns = tuple(ReleaseColumn(c.name, c.type, "key", index) for index, c in enumerate(table.columns))
        tables.append(TableStep(name, None, columns, (), StaticRows(names, make_dummy_rows(schema, table))))
    return tables


def _find_static_groups(release: BoundRelease, resolved: Resolved, policy: ContributionPolicy) -> StaticStep:
    if release.aggregate.measures:
        return None
    aggregate = canonicalize(release.aggregate)
    if resolved.schema.has_snapped_times:
        aggregate = snap_times(aggregate, resolved.schema).aggregate
    gather = rewrite_plan(canonicalize(aggregate), RuleContext(resolved, policy)).gather
    groups = list_declared_groups(gather)
    if groups is not None:
        return TableStep(release.name, None, release.columns, (), StaticRows(*groups))
    return _read_public_groups(release.name, gather)


def _read_public_groups(name: str, gather: Gather) -> PublicStep | None:
    """Groups that stand in public tables, read from them; None where a release tells them, or none does."""
    sql = render_release(gather) if is_list_only(gather) else ""
    return PublicStep(name, "", "", gather.keys, sql) if sql and not find_runtime_parameters(sql) else None
