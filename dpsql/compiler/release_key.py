"""The key of a stored release: the canonical question, the tables' declarations and the caps; not ε."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from dpsql.compiler.analysis.canonical import canonical_plan_text
from dpsql.compiler.catalog.variables import Identity
from dpsql.compiler.compiled import TableStep
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.relations import PublicTable, Table
from dpsql.compiler.plan.steps import Hole
from dpsql.compiler.plan.walk import walk_rows
from dpsql.compiler.postprocess.postgres_semantics import tables_read_by
from dpsql.compiler.settings import Settings
from dpsql.compiler.split.blocks import BoundRuntimeParameter, PublicRead
from dpsql.schema.model import Resolved, Schema


def hash_plan(
    aggregate: Aggregate, declared: Sequence[str], holes: Sequence[Hole], sources: str, *, pilot: bool
) -> str:
    """The question is the canonical plan that is also rewritten and run, so one hash has one set of cells and recipes.

    Its holes count by their SQL and what its names stand for (`sources`); the releases that fill them are added when it
    is paid for (`after`). A pilot's is another: what it said must be found again, and not the better release that
    followed from it.
    """
    filled = [repr((h.name, h.shape.value, h.columns, h.most, h.sql, sorted(h.unique))) for h in holes]
    text = "\n".join([canonical_plan_text(aggregate), *declared, *filled, sources, *(["pilot"] if pilot else [])])
    return hashlib.sha256(text.encode()).hexdigest()


def list_declarations(aggregate: Aggregate, resolved: Resolved, settings: Settings) -> list[str]:
    """The declarations of the tables that are read, the caps and the relation of neighbors."""
    schema = resolved.schema
    names = sorted({n.table for n in walk_rows(aggregate.input) if isinstance(n, Table | PublicTable)})
    tables = [repr(schema.table(name)) for name in names]
    caps = (settings.rows, settings.groups, settings.chosen_noise.value)
    relation = (schema.privacy.unit, schema.privacy.neighbors.value, schema.privacy.group_size)
    return [*tables, repr(caps), repr(relation)]


def source_identities(
    holes: Sequence[BoundRuntimeParameter],
    tables: Sequence[TableStep],
    after: tuple[int, ...],
    reads: Mapping[str, PublicRead],
    schema: Schema,
    identity: Identity,
) -> str:
    """What stands behind the names in the holes' SQL: public tables, and places among the steps of `after`."""
    names = sorted({name for hole in holes for name in tables_read_by(hole.source)})
    read = [reads[name] for name in names if name in reads]
    public = [(r.name, r.place, r.table, repr(schema.table(r.table))) for r in read]
    step_indexes = {t.name: [after.index(index) for index in sorted(t.steps)] for t in tables if t.name in names}
    identity_shown = identity if any(public_read.place for public_read in read) else None  # a catalog may show who asks
    return repr((public, sorted(step_indexes.items()), identity_shown))
