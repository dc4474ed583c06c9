"""What needs no release, because schema and statement tell it: groups that are listed, and made-up rows.

Law: nothing here reads a private row, and nothing is charged for it. What is `Known` is made when a statement is
compiled, which is pure; what public tables list is read from them, as any statement over public tables is.
"""

from __future__ import annotations

from dpsql.analysis.canon import canonicalise
from dpsql.compiled import Known, PublicStep, TableStep
from dpsql.plan.nodes import Gather
from dpsql.plan.stages import ReleaseColumn
from dpsql.rewrite.known_groups import is_listed, known_groups
from dpsql.rewrite.pipeline import rewrite
from dpsql.rewrite.policy import Policy
from dpsql.rewrite.snap_times import snap_times
from dpsql.schema.made_up import made_up_rows
from dpsql.schema.model import Resolved, Schema
from dpsql.sql.blocks import BoundRelease
from dpsql.sql.post import tables_read
from dpsql.sql.render import holes_read, render
from dpsql.sql.split import Split

LISTED = "the groups are known without private rows, of which none was read; some of them may have none"

Free = TableStep | PublicStep | None


def needed(parts: Split, resolved: Resolved, policy: Policy) -> dict[str, Free]:
    """The releases that the answer is made of, by name; what stands for those that need not be made, else None.

    A release that only fills holes of one that need not be made is not among them.
    """
    read, in_holes = set(tables_read(parts.post)), set[str]()
    found: dict[str, Free] = {}
    for release in reversed(parts.releases):  # a hole's source reads earlier ones
        if release.name not in read | in_holes:
            continue
        # What a hole reads stays a step, by which the release that has the hole is found again.
        free = None if release.name in in_holes else _listed(release, resolved, policy)
        found[release.name] = free
        if free is None:
            in_holes.update(name for hole in release.holes for name in tables_read(hole.source))
    return found


def made_up(parts: Split, schema: Schema) -> list[TableStep]:
    """The rows that stand for the private tables of a preview."""
    found: list[TableStep] = []
    for name, table_name in parts.made_up:
        table = schema.table(table_name)
        assert table is not None and table.preview
        names = tuple(column.name for column in table.columns)
        columns = tuple(ReleaseColumn(c.name, c.type, "key", place) for place, c in enumerate(table.columns))
        found.append(TableStep(name, None, columns, (), Known(names, made_up_rows(schema, table))))
    return found


def _listed(release: BoundRelease, resolved: Resolved, policy: Policy) -> Free:
    if release.aggregate.measures:
        return None
    asked = snap_times(canonicalise(release.aggregate), resolved.schema).aggregate
    gather = rewrite(canonicalise(asked), resolved, policy).gather
    groups = known_groups(gather)
    if groups is not None:
        return TableStep(release.name, None, release.columns, (), Known(*groups))
    return _public(release.name, gather)


def _public(name: str, gather: Gather) -> PublicStep | None:
    """Groups that stand in public tables, read from them; None where a release tells them, or none does."""
    sql = render(gather) if is_listed(gather) else ""
    return PublicStep(name, "", "", gather.keys, sql) if sql and not holes_read(sql) else None
