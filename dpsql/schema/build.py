"""From a checked document to the model: what the single keys mean, and what they must be to one another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

from dpsql.schema import accounts, keys
from dpsql.schema.accounts import child_at, integer_at, number_at, read_budget
from dpsql.schema.document import (
    ListNode,
    MappingNode,
    NodeRef,
    TextNode,
    check_shape,
    closest_name,
    printable_text,
    quote_text,
    read_flag,
    suggest_name,
)
from dpsql.schema.literals import describe_expected, read_bound, read_integer, read_number, read_value, show_number
from dpsql.schema.locations import read_engine, read_ledger, read_source
from dpsql.schema.model import (
    Answers,
    Budget,
    Column,
    Contributions,
    Domain,
    Files,
    ForeignUnit,
    Limits,
    Neighbors,
    OwnUnit,
    Privacy,
    Randomized,
    RowUnit,
    Scalar,
    Schema,
    Snap,
    StatisticDeclared,
    Table,
    Unit,
    View,
    boolean_domain,
    parse_snap,
    to_number,
)
from dpsql.types import DATE, Kind, Type, parse_type

# From a column's entry to its domain.
#
# Law: a column read from the data is always nullable, whatever is declared (sanitising turns what does not
# fit into NULL); `nullable` only says whether NULL is a public group.

MAX_STEPS = 1 << 53  # a double has no more steps between its bounds that matter
_NO_VALUES = (Kind.TIME, Kind.INTERVAL, Kind.UUID)


def read_column(name: str, at: NodeRef) -> Column:
    type_ = _read_type(at)
    length, nullable = at.child("max_length"), at.child("nullable")
    if length and type_.kind is not Kind.TEXT:
        raise length.error(f"is for text columns, and this is {type_}", "Remove it.", line=length.key_line)
    max_length = (read_integer(length.text) if length else None) or Column.max_length
    randomized = _read_randomized(at, type_, max_length)
    domain = _read_domain(at, type_, max_length)
    return Column(
        name,
        domain,
        grid=_read_grid(at.child("grid"), domain),
        max_length=max_length,
        null_group=read_flag(nullable) if nullable else False,
        snap=_read_snap(at.child("snap"), type_),
        randomized=randomized,
        description=read_description(at),
        determines_unit=_reads_true(at.child("determines_unit")),
        format=_read_time_format(at.child("format"), type_),
    )


def _read_time_format(at: NodeRef | None, type_: Type) -> str:
    if at is None:
        return ""
    if type_.kind not in (Kind.DATE, Kind.TIMESTAMP):
        raise at.error(f"is for dates and timestamps, and this is {type_}", "Remove it.", line=at.key_line)
    return at.text


def _reads_true(at: NodeRef | None) -> bool:
    return at is not None and read_flag(at)


def read_description(at: NodeRef) -> str | None:
    """On one line, since it is shown beside names."""
    child = at.child("description")
    return " ".join(child.text.split()) or None if child else None


def _read_type(at: NodeRef) -> Type:
    child = at.child("type")
    assert child is not None  # `check` saw it
    type_ = parse_type(child.text)
    if type_ is None:
        raise child.error(f"must be a type, and there is no type {quote_text(child.text)}", _type_hint(child.text))
    return type_


_TYPE_NAMES = [kind.value for kind in Kind] + ["numeric", "varchar", "int", "float", "string", "bool", "datetime"]


def _type_hint(text: str) -> str:
    if re.match(r"(decimal|numeric)\b", text.strip().lower()):
        return "Write decimal(p,s) with 1 <= p <= 38 and 0 <= s <= p, for example decimal(10,2)."
    near = closest_name(re.sub(r"\(.*", "", text), _TYPE_NAMES)
    type_names = ", ".join(kind.value for kind in Kind if kind is not Kind.DECIMAL)
    return f'Did you mean "{near}"?' if near else f"Known types: {type_names} and decimal(p,s)."


def _read_domain(at: NodeRef, type_: Type, max_length: int) -> Domain:
    bounds, values, randomized = at.child("bounds"), at.child("values"), at.child("randomized")
    if randomized:
        values = randomized.child("values")  # the others are not said again
    declared = _read_bounds(bounds, type_) if bounds else None
    if values:
        return _read_listed_domain(values, type_, max_length, declared)
    if declared:
        return Domain(type_, True, *declared)
    return boolean_domain(True) if type_.kind is Kind.BOOLEAN else Domain(type_, True)


def _read_listed_domain(at: NodeRef, type_: Type, max_length: int, bounds: tuple[Fraction, Fraction] | None) -> Domain:
    values = _read_values(at, type_, max_length)
    if not (type_.is_number or type_.is_time):
        return Domain(type_, True, values=values)
    # The scan turns every other value into NULL, so the least and the largest value are bounds too.
    numbers = [to_number(value) for value in values]
    for item, number in zip(at.items(), numbers, strict=True):
        if bounds and not bounds[0] <= number <= bounds[1]:
            raise item.error(
                f"is {quote_text(item.text)}, which the bounds exclude", "Widen the bounds, or remove them."
            )
    return Domain(type_, True, min(numbers), max(numbers), values)


def _read_bounds(at: NodeRef, type_: Type) -> tuple[Fraction, Fraction]:
    if not (type_.is_number or type_.is_time):
        hint = "Remove bounds; text may have values." if type_.kind is Kind.TEXT else "Remove bounds."
        raise at.error(f"are for numbers, dates and timestamps, and this is {type_}", hint, line=at.key_line)
    low_at, high_at = at.items()
    low, high = (_require_bound(item, type_) for item in (low_at, high_at))
    if low > high:
        raise at.error(f"are reversed: {low_at.text} is above {high_at.text}",
                       f"Write [{high_at.text}, {low_at.text}].")  # fmt: skip
    return low, high


def _require_bound(at: NodeRef, type_: Type) -> Fraction:
    bound = read_bound(at.text, type_)
    if bound is None:
        raise at.mismatch_error(describe_expected(type_))
    return bound


def _read_values(at: NodeRef, type_: Type, max_length: int) -> tuple[Scalar, ...]:
    if type_.kind in _NO_VALUES:
        raise at.error(f"cannot be listed for {type_}", "Remove values; keys are then found by partition selection.",
                       line=at.key_line)  # fmt: skip
    seen: dict[Scalar, str] = {}
    for item in at.items():
        value = read_value(item.text, type_)
        if value is None:
            raise item.mismatch_error(describe_expected(type_))
        if isinstance(value, str) and len(value) > max_length:
            raise item.error(f"is longer than max_length, {max_length} characters",
                             f"Write max_length: {len(value)} or more.")  # fmt: skip
        if value in seen:
            raise item.error(_repeated_value_text(item.text, seen[value], type_), "Remove one of the two.")
        seen[value] = item.text
    return tuple(seen)


def _repeated_value_text(text: str, earlier: str, type_: Type) -> str:
    if text == earlier:
        return f"repeats the value {quote_text(text)}"
    return f"repeats a value: {quote_text(earlier)} and {quote_text(text)} are the same {type_}"


def _read_randomized(at: NodeRef, type_: Type, max_length: int) -> Randomized | None:
    """The values that it names are all that the column has: its domain."""
    child = at.child("randomized")
    if child is None:
        return None
    values_beside = at.child("values")
    if values_beside:
        raise values_beside.error(
            "must not stand beside randomized, which has them", "Remove values.", line=values_beside.key_line
        )
    epsilon, values = child.child("epsilon"), child.child("values")
    assert epsilon is not None and values is not None  # `check` saw them
    number = read_number(epsilon.text)
    assert number is not None
    return Randomized(number, _read_values(values, type_, max_length))


def _read_grid(at: NodeRef | None, domain: Domain) -> Fraction | None:
    if at is None:
        return None
    type_ = domain.type
    grid = read_number(at.text)
    assert grid is not None  # `check` saw it
    if not type_.is_number:
        raise at.error(f"is for numbers, and this is {type_}", "Remove it.", line=at.key_line)
    step = Fraction(1, 10 ** (type_.scale or 0)) if not type_.is_float else None
    if step is not None and (grid / step).denominator != 1:
        raise at.mismatch_error(f"a multiple of {show_number(step)}, the step of {type_}")
    if domain.is_bounded:
        _check_grid_steps(at, grid, *domain.bounds)
    return grid


def _check_grid_steps(at: NodeRef, grid: Fraction, low: Fraction, high: Fraction) -> None:
    if low < high and grid > high - low:
        raise at.mismatch_error(f"at most {show_number(high - low)}, the width of the bounds")
    if max(abs(low), abs(high)) / grid > MAX_STEPS:
        raise at.error("is too fine: the bounds hold more than 2^53 steps", "Write a larger grid.")


def _read_snap(at: NodeRef | None, type_: Type) -> Snap | None:
    if at is None:
        return None
    if not type_.is_time:
        raise at.error(f"is for dates and timestamps, and this is {type_}", "Remove it.", line=at.key_line)
    snap = parse_snap(at.text)
    if snap is None:
        raise at.mismatch_error("minutes or hours that divide a day, days or weeks", "Write for example snap: 1 hour.")
    if type_ == DATE and not snap.whole_days:
        raise at.mismatch_error("days or weeks, since this is a date", "Write for example snap: 1 day.")
    return snap


# Every private row leads to one privacy unit, by the declared foreign keys.
#
# Law (SOUNDNESS 1): along a path, each key that has to be joined is declared unique, so that a row has at
# most one unit. A reference to the unit column itself carries the unit's id and needs no join.


def check_units(schema: Schema, root: NodeRef) -> None:
    unit_at = _node_at(root, "privacy", "unit")
    unit = _find_unit_column(schema, unit_at)
    for table in schema.tables:
        if table.unit is None:
            continue
        at = _node_at(root, "tables", table.name, "unit")
        match table.unit, unit:
            case RowUnit(), None:
                pass
            case _, None:
                raise at.error('must be row, since privacy.unit is "row"', "Write unit: row.")
            case RowUnit(), (owner, column):
                raise at.error(
                    f"must lead to {_quote_column(owner, column)}, the privacy unit, and each row is not a unit",
                    f"Write unit: {{…: {owner}.{column}}} with the column that refers to it.",
                )
            case OwnUnit(), (owner, column):
                _check_own_unit(table, table.unit, owner, column, at)
            case ForeignUnit(), (owner, column):
                _check_unit_path(schema, table, owner, column, root)
        _check_identifiers(schema, table, root)
        _check_determining_columns(table, root)


def _check_determining_columns(table: Table, root: NodeRef) -> None:
    for column in table.columns:
        at = _node_at(root, "tables", table.name, "columns", column.name).child("determines_unit")
        if at is None or not column.determines_unit:
            continue
        if isinstance(table.unit, RowUnit):
            raise at.error("must not stand where each row is a unit", "Remove it.", line=at.key_line)
        if column.type.is_float or column.type.kind is Kind.INTERVAL:
            raise at.error(f"must not stand on a column of type {column.type}", "Remove it.", line=at.key_line)


def _node_at(root: NodeRef, *path: str) -> NodeRef:
    at = root
    for name in path:
        child = at.child(name)
        assert child is not None  # the loader read it before
        at = child
    return at


def _quote_column(table: str, column: str) -> str:
    return quote_text(f"{table}.{column}")


def _find_unit_column(schema: Schema, at: NodeRef) -> tuple[str, str] | None:
    """The table and column of the unit; None where each row is one."""
    if at.text == "row":
        return None
    name, dot, column = at.text.partition(".")
    if not dot or not name or not column:
        raise at.mismatch_error("a column written table.column, or row", "Write for example unit: patients.patient_id.")
    table = _require_table(schema, name, at)
    _require_column(table, column, at)
    if table.unit is None:
        raise at.error(f"names the table {quote_text(name)}, which is public",
                       f"Write unit: {printable_text(column)} in it, and remove public.")  # fmt: skip
    if table.unit != OwnUnit(column):
        raise at.error(f"is {_quote_column(name, column)}, but that table has another unit",
                       f"Write unit: {printable_text(column)} in the table {quote_text(name)}.")  # fmt: skip
    return name, column


def _require_table(schema: Schema, name: str, at: NodeRef) -> Table:
    table = schema.table(name)
    if table is None:
        hint = suggest_name(name, [table.name for table in schema.tables], "tables")
        raise at.error(f"names the table {quote_text(name)}, which does not exist", hint)
    return table


def _require_column(table: Table, name: str, at: NodeRef) -> Column:
    column = table.column(name)
    if column is None:
        hint = suggest_name(name, [column.name for column in table.columns], "columns")
        raise at.error(f"names the column {_quote_column(table.name, name)}, which does not exist", hint)
    return column


def _check_own_unit(table: Table, unit: OwnUnit, owner: str, column: str, at: NodeRef) -> None:
    if table.name != owner:
        raise at.error(f"must lead to {_quote_column(owner, column)}, the privacy unit",
                       f"Write unit: {{{unit.column}: {owner}.{column}}} if the column refers to it.")  # fmt: skip
    assert unit.column == column  # `_find_unit_column` compared them


def _check_unit_path(schema: Schema, table: Table, owner: str, column: str, root: NodeRef) -> None:
    """Follow the hops from `table`; each is checked where it is declared, so errors point at its line."""
    seen = [table.name]
    while isinstance(table.unit, ForeignUnit):
        hop, at = table.unit, _node_of_hop(root, table)
        target = _check_hop(schema, table, hop, at)
        if target.name in seen:
            raise at.error(f"goes in a circle: {' to '.join(quote_text(name) for name in [*seen, target.name])}",
                           f"Let one of them refer to {owner}.{column}.")  # fmt: skip
        if not hop.refers_to(target, column) and not target.has_unique_key(hop.keys):
            raise _key_not_unique_error(hop, f"{owner}.{column}", at)
        seen.append(target.name)
        table = target
    if table.unit != OwnUnit(column) or table.name != owner:
        at = _node_at(root, "tables", seen[0], "unit")
        raise at.error(
            f"leads to the table {quote_text(table.name)}, not to {_quote_column(owner, column)}",
            f"Let {quote_text(table.name)} refer to {owner}.{column}.",
        )


def _key_not_unique_error(hop: ForeignUnit, unit: str, at: NodeRef) -> Exception:
    if not hop.also:
        what, key, shared = _quote_column(hop.table, hop.key), hop.key, "it"
    else:
        columns = ", ".join(hop.keys)
        what, key, shared = f"({columns}) of {quote_text(hop.table)}", f"[{columns}]", "them"
    return at.error(
        f"refers to {what}, which is not declared unique, so a row could have two units",
        f"Write unique: [{key}] in the table {quote_text(hop.table)}, if no two rows share {shared}, "
        f"or refer to {unit} directly.",
    )


def _node_of_hop(root: NodeRef, table: Table) -> NodeRef:
    assert isinstance(table.unit, ForeignUnit)
    return _node_at(root, "tables", table.name, "unit", table.unit.column)


def _check_hop(schema: Schema, table: Table, hop: ForeignUnit, at: NodeRef) -> Table:
    target = _require_table(schema, hop.table, at)
    if target.public:
        raise at.error(f"refers to the table {quote_text(target.name)}, which is public and belongs to no unit",
                       f"Give {quote_text(target.name)} a unit, or refer to another table.")  # fmt: skip
    for column, key in hop.pairs:
        here, there = _require_column(table, column, at), _require_column(target, key, at)
        if here.type != there.type:
            raise at.error(f"joins {_quote_column(table.name, column)} of type {here.type} with "
                           f"{_quote_column(hop.table, key)} of type {there.type}",
                           "Declare both with the type that the data has.")  # fmt: skip
    return target


def _check_identifiers(schema: Schema, table: Table, root: NodeRef) -> None:
    """An id is compared by bytes and never altered (SOUNDNESS 3): no floats, and nothing that would be clipped."""
    match table.unit:
        case OwnUnit(column):
            used = [(table, column)]
        case ForeignUnit() as hop:
            target = schema.table(hop.table)
            assert target is not None
            used = [*((table, column) for column in hop.columns), *((target, key) for key in hop.keys)]
        case _:
            used = []
    for owner, name in used:
        column_ = owner.column(name)
        assert column_ is not None
        at = _node_at(root, "tables", owner.name, "columns", name)
        if column_.type.is_float or column_.type.kind is Kind.INTERVAL:
            raise _node_at(at, "type").error(f"must not be {column_.type}, since the column identifies units",
                                        "Write bigint, text, decimal(p,s) or uuid.")  # fmt: skip
        if (randomized := at.child("randomized")) is not None:
            raise randomized.error(
                "must not stand on a column that identifies units", "Remove it.", line=randomized.key_line
            )
        for key in ("bounds", "grid"):
            declared = at.child(key)
            if declared is not None:
                raise declared.error("must not stand on a column that identifies units: clipped ids would merge two",
                                     f"Remove {key}.", line=declared.key_line)  # fmt: skip


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
        if contributions and isinstance(contributions.node, MappingNode)
        else Contributions(),
        units=integer_at(at.child("units")),
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
        raise refresh.mismatch_error(
            "minutes or hours that divide a day, days or weeks", "Write for example refresh: 1 day."
        )
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
        _refuse_public_determining(child_at(at, "columns"))
        _refuse_public_preview(at.child("preview"))
    source = read_source(at.child("source"), at, name, folder, engine, env)
    if not isinstance(source, Files) or source.format == "parquet":
        _refuse_time_formats(child_at(at, "columns"))
    return Table(
        name=name,
        source=source,
        unit=unit,
        unique=_read_unique_keys(at.child("unique"), columns),
        columns=columns,
        preview=unit is not None and _read_preview(at, preview),
        description=read_description(at),
    )


def _refuse_public_preview(at: NodeRef | None) -> None:
    if at is not None:
        raise at.error("must not stand in a public table", "Its rows may be seen: remove preview.", line=at.key_line)


def _refuse_time_formats(columns: NodeRef) -> None:
    for _, column in columns.entries():
        at = column.child("format")
        if at is not None:
            raise at.error(
                "is for CSV and JSON files",
                "Remove it: other sources have dates of their own; where they are text, make a view of the engine.",
                line=at.key_line,
            )


def _refuse_public_snap(columns: NodeRef) -> None:
    for _, column in columns.entries():
        snap = column.child("snap")
        if snap is not None:
            raise snap.error("must not stand in a public table", "Reading it is free: remove snap.", line=snap.key_line)


def _refuse_public_randomized(columns: NodeRef) -> None:
    for _, column in columns.entries():
        randomized = column.child("randomized")
        if randomized is not None:
            raise randomized.error(
                "must not stand in a public table",
                "It is read as it is, and never debiased: remove it.",
                line=randomized.key_line,
            )


def _refuse_public_determining(columns: NodeRef) -> None:
    for _, column in columns.entries():
        at = column.child("determines_unit")
        if at is not None:
            raise at.error("must not stand in a public table", "Its rows belong to no unit: remove it.",
                           line=at.key_line)  # fmt: skip


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
        if leaf.text.lower() in {earlier.name.lower() for earlier in statistics} or len({n.lower() for n in of}) < len(
            of
        ):
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
    references = [_read_reference(unit, leaf, target, columns) for leaf, target in unit.entries()]
    (column, to_table, key), *others = references
    if any(other_table != to_table for _, other_table, _ in others) or len({key for _, _, key in references}) < len(
        references
    ):
        raise unit.error(
            "must refer to different columns of one table: together they name one of its rows",
            "Write one entry for each column of that table's unique key.",
        )
    return ForeignUnit(column, to_table, key, tuple((name, other_key) for name, _, other_key in others))


def _read_reference(
    unit: NodeRef, leaf: TextNode, target: NodeRef, columns: tuple[Column, ...]
) -> tuple[str, str, str]:
    """The column, and the table and column that it refers to."""
    column = _require_column_name(unit, leaf.text, columns, leaf.line)
    table, dot, key = target.text.partition(".")
    if not dot or not table or not key:
        raise target.mismatch_error("a key written table.column", f"Write for example {{{column}: patients.{column}}}.")
    return column, table, key


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
