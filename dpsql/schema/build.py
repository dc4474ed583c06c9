"""From a checked document to the model: what the single keys mean, and what they must be to one another."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

from dpsql.schema import accounts, keys
from dpsql.schema.accounts import number, read_budget, there, whole
from dpsql.schema.columns import read_column, read_description
from dpsql.schema.document import At, Items, Leaf, quoted, suggestion
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
from dpsql.schema.shape import check, read_flag
from dpsql.schema.snap import parse_snap
from dpsql.schema.units import check_units

QUERY_EPSILON = Fraction(1, 20)  # of the budget: some twenty questions, or many more under zCDP
QUERY_DELTA = Fraction(1, 100)


def build_schema(root: At, path: Path, env: Mapping[str, str]) -> Schema:
    check(root, keys.SCHEMA, 'Start with "dpsql: 1", then the keys privacy and tables.')
    engine = read_engine(root.child("engine"), path.parent, env)
    schema = Schema(
        path=path,
        engine=engine,
        ledger=read_ledger(root.child("ledger"), path.parent, path.stem, env),
        privacy=_privacy(there(root, "privacy")),
        analysts=accounts.read_analysts(root),
        groups=accounts.read_groups(root),
        tables=tuple(
            _table(leaf.text, at, path.parent, engine, env, _preview(root, False))
            for leaf, at in there(root, "tables").entries()
        ),
        views=_views(root.child("views"), [leaf.text for leaf, _ in there(root, "tables").entries()]),
        limits=_limits(root.child("limits")),
        statistics=_statistics(root.child("statistics")),
        answers=_answers(root.child("answers")),
        description=read_description(root),
    )
    check_units(schema, root)
    return schema


def _privacy(at: At) -> Privacy:
    neighbors = at.child("neighbors")
    contributions = at.child("contributions")
    budget = read_budget(there(at, "budget"))
    return Privacy(
        neighbors=Neighbors(neighbors.text if neighbors else "add_remove"),
        unit=there(at, "unit").text,
        budget=budget,
        query=_query(at.child("query"), budget),
        contributions=Contributions(whole(contributions.child("rows")), whole(contributions.child("groups")))
        if contributions
        else Contributions(),
        group_size=whole(at.child("group_size")) or 1,
        policy=accounts.read_policy(at, budget),
    )


def _query(at: At | None, budget: Budget) -> Budget:
    epsilon, delta = (at.child("epsilon"), at.child("delta")) if at else (None, None)
    query = Budget(
        number(epsilon) if epsilon else budget.epsilon * QUERY_EPSILON,
        number(delta) if delta else budget.delta * QUERY_DELTA,
    )
    if epsilon and query.epsilon > budget.epsilon:
        raise _overread_budget(epsilon, budget.epsilon)
    if delta and query.delta > budget.delta:
        raise _overread_budget(delta, budget.delta)
    return query


def _overread_budget(at: At, most: Fraction) -> Exception:
    return at.wrong(f"at most the budget's {show_number(most)}", "Lower it, or raise privacy.budget.")


def _answers(at: At | None) -> Answers:
    retention, refresh = (at.child("retention"), at.child("refresh")) if at else (None, None)
    kept = None
    if retention:
        count, unit = retention.text.split()
        kept = timedelta(days=int(count) * (7 if unit.startswith("week") else 1))
    grid = parse_snap(refresh.text) if refresh else None
    if refresh and grid is None:
        raise refresh.wrong("minutes or hours that divide a day, days or weeks", "Write for example refresh: 1 day.")
    return Answers(kept, grid)


def _limits(at: At | None) -> Limits:
    if at is None:
        return Limits()
    memory, latency = at.child("memory"), at.child("min_latency")
    return Limits(
        memory=memory.text if memory else None,
        threads=whole(at.child("threads")),
        seconds=whole(at.child("seconds")) or Limits.seconds,
        failures=whole(at.child("failures")) or Limits.failures,
        min_latency=number(latency) if latency else Limits.min_latency,
        running=whole(at.child("running")) or Limits.running,
    )


def _preview(at: At, otherwise: bool) -> bool:
    found = at.child("preview")
    return otherwise if found is None else found.text == "dummy"


def _table(name: str, at: At, folder: Path, engine: str, env: Mapping[str, str], preview: bool) -> Table:
    columns = tuple(read_column(leaf.text, child) for leaf, child in there(at, "columns").entries())
    unit = _unit(at, columns)
    if unit is None:
        _no_snap(there(at, "columns"))
        _no_randomized(there(at, "columns"))
        _no_preview(at.child("preview"))
    return Table(
        name=name,
        source=read_source(at.child("source"), at, name, folder, engine, env),
        unit=unit,
        unique=_unique(at.child("unique"), columns),
        columns=columns,
        preview=unit is not None and _preview(at, preview),
        description=read_description(at),
    )


def _no_preview(at: At | None) -> None:
    if at is not None:
        raise at.error("must not stand in a public table", "Its rows may be seen: remove preview.", line=at.key_line)


def _no_snap(columns: At) -> None:
    for _, column in columns.entries():
        snap = column.child("snap")
        if snap is not None:
            raise snap.error("must not stand in a public table", "Reading it is free: remove snap.", line=snap.key_line)


def _no_randomized(columns: At) -> None:
    for _, column in columns.entries():
        found = column.child("randomized")
        if found is not None:
            raise found.error("must not stand in a public table", "It is read as it is, and never debiased: remove it.",
                              line=found.key_line)  # fmt: skip


def _views(at: At | None, tables: list[str]) -> tuple[View, ...]:
    views: list[View] = []
    taken = {name.lower() for name in tables}
    for leaf, child in at.entries() if at else ():
        if leaf.text.lower() in taken or leaf.text.startswith("_"):
            raise child.error("must have another name", "A table or another view has it, or it begins with _.",
                              line=child.key_line)  # fmt: skip
        taken.add(leaf.text.lower())
        sql = child if isinstance(child.node, Leaf) else there(child, "sql")
        views.append(View(leaf.text, sql.text, description=read_description(child)))
    return tuple(views)


def _statistics(at: At | None) -> tuple[StatisticDeclared, ...]:
    found: list[StatisticDeclared] = []
    for leaf, child in at.entries() if at else ():
        of, sql = tuple(item.text for item in there(child, "of").items()), there(child, "sql")
        if leaf.text.lower() in {known.name.lower() for known in found} or len({n.lower() for n in of}) < len(of):
            raise child.error("must not repeat a name", "Names that differ in case only are one.", line=child.key_line)
        found.append(StatisticDeclared(leaf.text, of, sql.text, sql.line))
    return tuple(found)


def _unit(table: At, columns: tuple[Column, ...]) -> Unit | None:
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
    if isinstance(unit.node, Leaf):
        return RowUnit() if unit.text == "row" else OwnUnit(_column(unit, unit.text, columns))
    (leaf, target), = unit.entries()
    column = _column(unit, leaf.text, columns, leaf.line)
    to_table, dot, key = target.text.partition(".")
    if not dot or not to_table or not key:
        raise target.wrong("a key written table.column", f"Write for example {{{column}: patients.{column}}}.")
    return ForeignUnit(column, to_table, key)


def _column(at: At, name: str, columns: tuple[Column, ...], line: int | None = None) -> str:
    names = [column.name for column in columns]
    if name in names:
        return name
    raise at.error(f"names {quoted(name)}, which is not among the columns of the table",
                   suggestion(name, names, "columns"), line=line)  # fmt: skip


def _unique(at: At | None, columns: tuple[Column, ...]) -> tuple[tuple[str, ...], ...]:
    found: list[tuple[str, ...]] = []
    for item in at.items() if at else ():
        parts = list(item.items()) if isinstance(item.node, Items) else [item]
        key = tuple(_column(part, part.text, columns) for part in parts)
        if len(set(key)) < len(key):
            raise item.error("names a column twice", "Name each column once.")
        if any(set(key) == set(other) for other in found):
            raise item.error("repeats a key", "Remove it.")
        found.append(key)
    return tuple(found)
