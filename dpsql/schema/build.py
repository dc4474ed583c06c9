"""From a checked document to the model: what the single keys mean, and what they must be to one another."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

from dpsql.schema import accounts, keys
from dpsql.schema.accounts import number_at, read_budget, child_at, integer_at
from dpsql.schema.columns import read_column, read_description
from dpsql.schema.document import NodeRef, ListNode, TextNode, quote_text, suggest_name
from dpsql.schema.literals import show_number
from dpsql.schema.model import (
    Answers,
    Budget,
    Column,
    Contributions,
    ForeignUnit,
    Limits,
    Neighbors,
    OwnUnit,
    Privacy,
    RowUnit,
    Schema,
    StatisticDeclared,
    Table,
    Unit,
    View,
)
from dpsql.schema.places import read_engine, read_ledger, read_source
from dpsql.schema.shape import check_shape, read_flag
from dpsql.schema.snap import parse_snap
from dpsql.schema.units import check_units

QUERY_EPSILON_SHARE = Fraction(1, 20)  # of the budget: some twenty questions, or many more under zCDP
QUERY_DELTA_SHARE = Fraction(1, 100)


def build_schema(root: NodeRef, path: Path, env: Mapping[str, str]) -> Schema:
    check_shape(root, keys.SCHEMA, 'Start with "dpsql: 1", then the keys privacy and tables.')
    engine = read_engine(root.child("engine"), path.parent, env)
    schema = Schema(
        path=path,
        engine=engine,
        ledger=read_ledger(root.child("ledger"), path.parent, path.stem, env),
        privacy=_read_privacy(child_at(root, "privacy")),
        analysts=accounts.read_analysts(root),
        groups=accounts.read_groups(root),
        tables=tuple(
            _read_table(leaf.text, at, path.parent, engine, env, _read_preview(root, False))
            for leaf, at in child_at(root, "tables").entries()
        ),
        views=_read_views(root.child("views"), [leaf.text for leaf, _ in child_at(root, "tables").entries()]),
        limits=_read_limits(root.child("limits")),
        statistics=_read_statistics(root.child("statistics")),
        answers=_read_answers(root.child("answers")),
        description=read_description(root),
    )
    check_units(schema, root)
    return schema


def _read_privacy(at: NodeRef) -> Privacy:
    neighbors = at.child("neighbors")
    contributions = at.child("contributions")
    budget = read_budget(child_at(at, "budget"))
    return Privacy(
        neighbors=Neighbors(neighbors.text if neighbors else "add_remove"),
        unit=child_at(at, "unit").text,
        budget=budget,
        query=_read_query_budget(at.child("query"), budget),
        contributions=Contributions(integer_at(contributions.child("rows")), integer_at(contributions.child("groups")))
        if contributions
        else Contributions(),
        group_size=integer_at(at.child("group_size")) or 1,
        policy=accounts.read_policy(at, budget),
    )


def _read_query_budget(at: NodeRef | None, budget: Budget) -> Budget:
    epsilon, delta = (at.child("epsilon"), at.child("delta")) if at else (None, None)
    query = Budget(
        number_at(epsilon) if epsilon else budget.epsilon * QUERY_EPSILON_SHARE,
        number_at(delta) if delta else budget.delta * QUERY_DELTA_SHARE,
    )
    if epsilon and query.epsilon > budget.epsilon:
        raise _over_budget_error(epsilon, budget.epsilon)
    if delta and query.delta > budget.delta:
        raise _over_budget_error(delta, budget.delta)
    return query


def _over_budget_error(at: NodeRef, maximum: Fraction) -> Exception:
    return at.mismatch_error(f"at most the budget's {show_number(maximum)}", "Lower it, or raise privacy.budget.")


def _read_answers(at: NodeRef | None) -> Answers:
    retention, refresh = (at.child("retention"), at.child("refresh")) if at else (None, None)
    retention_time = None
    if retention:
        count, unit = retention.text.split()
        retention_time = timedelta(days=int(count) * (7 if unit.startswith("week") else 1))
    grid = parse_snap(refresh.text) if refresh else None
    if refresh and grid is None:
        raise refresh.mismatch_error("minutes or hours that divide a day, days or weeks", "Write for example refresh: 1 day.")
    return Answers(retention_time, grid)


def _read_limits(at: NodeRef | None) -> Limits:
    if at is None:
        return Limits()
    memory, latency = at.child("memory"), at.child("min_latency")
    return Limits(
        memory=memory.text if memory else None,
        threads=integer_at(at.child("threads")),
        seconds=integer_at(at.child("seconds")) or Limits.seconds,
        failures=integer_at(at.child("failures")) or Limits.failures,
        min_latency=number_at(latency) if latency else Limits.min_latency,
        running=integer_at(at.child("running")) or Limits.running,
    )


def _read_preview(at: NodeRef, otherwise: bool) -> bool:
    preview = at.child("preview")
    return otherwise if preview is None else preview.text == "dummy"


def _read_table(name: str, at: NodeRef, folder: Path, engine: str, env: Mapping[str, str], preview: bool) -> Table:
    columns = tuple(read_column(leaf.text, child) for leaf, child in child_at(at, "columns").entries())
    unit = _read_unit(at, columns)
    if unit is None:
        _refuse_public_snap(child_at(at, "columns"))
        _refuse_public_randomized(child_at(at, "columns"))
        _refuse_public_preview(at.child("preview"))
    return Table(
        name=name,
        source=read_source(at.child("source"), at, name, folder, engine, env),
        unit=unit,
        unique=_read_unique_keys(at.child("unique"), columns),
        columns=columns,
        preview=unit is not None and _read_preview(at, preview),
        description=read_description(at),
    )


def _refuse_public_preview(at: NodeRef | None) -> None:
    if at is not None:
        raise at.error("must not stand in a public table", "Its rows may be seen: remove preview.", line=at.key_line)


def _refuse_public_snap(columns: NodeRef) -> None:
    for _, column in columns.entries():
        snap = column.child("snap")
        if snap is not None:
            raise snap.error("must not stand in a public table", "Reading it is free: remove snap.", line=snap.key_line)


def _refuse_public_randomized(columns: NodeRef) -> None:
    for _, column in columns.entries():
        randomized = column.child("randomized")
        if randomized is not None:
            raise randomized.error("must not stand in a public table", "It is read as it is, and never debiased: remove it.",
                              line=randomized.key_line)  # fmt: skip


def _read_views(at: NodeRef | None, tables: list[str]) -> tuple[View, ...]:
    views: list[View] = []
    taken = {name.lower() for name in tables}
    for leaf, child in at.entries() if at else ():
        if leaf.text.lower() in taken or leaf.text.startswith("_"):
            raise child.error("must have another name", "A table or another view has it, or it begins with _.",
                              line=child.key_line)  # fmt: skip
        taken.add(leaf.text.lower())
        sql = child if isinstance(child.node, TextNode) else child_at(child, "sql")
        views.append(View(leaf.text, sql.text, description=read_description(child)))
    return tuple(views)


def _read_statistics(at: NodeRef | None) -> tuple[StatisticDeclared, ...]:
    statistics: list[StatisticDeclared] = []
    for leaf, child in at.entries() if at else ():
        of, sql = tuple(item.text for item in child_at(child, "of").items()), child_at(child, "sql")
        if leaf.text.lower() in {earlier.name.lower() for earlier in statistics} or len({n.lower() for n in of}) < len(of):
            raise child.error("must not repeat a name", "Names that differ in case only are one.", line=child.key_line)
        statistics.append(StatisticDeclared(leaf.text, of, sql.text, sql.line))
    return tuple(statistics)


def _read_unit(table: NodeRef, columns: tuple[Column, ...]) -> Unit | None:
    unit, public = table.child("unit"), table.child("public")
    is_public = public is not None and read_flag(public)
    if is_public and unit:
        raise unit.error("must not stand in a public table", "Remove unit, or remove public.", line=unit.key_line)
    if is_public:
        return None
    if unit is None:
        raise table.error(
            "must have a unit, or public: true",
            "Write for example unit: patient_id, unit: {patient_id: patients.patient_id}, unit: row, or public: true.",
            line=table.key_line,
        )
    if isinstance(unit.node, TextNode):
        return RowUnit() if unit.text == "row" else OwnUnit(_require_column_name(unit, unit.text, columns))
    (leaf, target), = unit.entries()
    column = _require_column_name(unit, leaf.text, columns, leaf.line)
    to_table, dot, key = target.text.partition(".")
    if not dot or not to_table or not key:
        raise target.mismatch_error("a key written table.column", f"Write for example {{{column}: patients.{column}}}.")
    return ForeignUnit(column, to_table, key)


def _require_column_name(at: NodeRef, name: str, columns: tuple[Column, ...], line: int | None = None) -> str:
    names = [column.name for column in columns]
    if name in names:
        return name
    raise at.error(f"names {quote_text(name)}, which is not among the columns of the table",
                   suggest_name(name, names, "columns"), line=line)  # fmt: skip


def _read_unique_keys(at: NodeRef | None, columns: tuple[Column, ...]) -> tuple[tuple[str, ...], ...]:
    unique_keys: list[tuple[str, ...]] = []
    for item in at.items() if at else ():
        parts = list(item.items()) if isinstance(item.node, ListNode) else [item]
        key = tuple(_require_column_name(part, part.text, columns) for part in parts)
        if len(set(key)) < len(key):
            raise item.error("names a column twice", "Name each column once.")
        if any(set(key) == set(other) for other in unique_keys):
            raise item.error("repeats a key", "Remove it.")
        unique_keys.append(key)
    return tuple(unique_keys)
