"""Every private row leads to one privacy unit, by the declared foreign keys.

Law (SOUNDNESS 1): along a path, each key that has to be joined is declared unique, so that a row has at
most one unit. A reference to the unit column itself carries the unit's id and needs no join.
"""

from __future__ import annotations

from dpsql.schema.document import NodeRef, quote_text, printable_text, suggest_name
from dpsql.schema.model import Column, ForeignUnit, OwnUnit, RowUnit, Schema, Table
from dpsql.types import Kind


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
                raise at.error(f"must lead to {_quote_column(owner, column)}, the privacy unit, and each row is not a unit",
                               f"Write unit: {{…: {owner}.{column}}} with the column that refers to it.")  # fmt: skip
            case OwnUnit(), (owner, column):
                _check_own_unit(table, table.unit, owner, column, at)
            case ForeignUnit(), (owner, column):
                _check_unit_path(schema, table, owner, column, root)
        _check_identifiers(schema, table, root)


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
    assert unit.column == column  # `_unit_column` compared them


def _check_unit_path(schema: Schema, table: Table, owner: str, column: str, root: NodeRef) -> None:
    """Follow the hops from `table`; each is checked where it is declared, so errors point at its line."""
    seen = [table.name]
    while isinstance(table.unit, ForeignUnit):
        hop, at = table.unit, _node_of_hop(root, table)
        target = _check_hop(schema, table, hop, at)
        if target.name in seen:
            raise at.error(f"goes in a circle: {' to '.join(quote_text(name) for name in [*seen, target.name])}",
                           f"Let one of them refer to {owner}.{column}.")  # fmt: skip
        direct = (hop.table, hop.key) == (owner, column)
        if not direct and not target.is_unique(hop.key):
            raise at.error(f"refers to {_quote_column(hop.table, hop.key)}, which is not declared unique, so a row could "
                           "have two units", f"Write unique: [{hop.key}] in the table {quote_text(hop.table)}, if no two "
                           f"rows share it, or refer to {owner}.{column} directly.")  # fmt: skip
        seen.append(target.name)
        table = target
    if table.unit != OwnUnit(column) or table.name != owner:
        at = _node_at(root, "tables", seen[0], "unit")
        raise at.error(f"leads to the table {quote_text(table.name)}, not to {_quote_column(owner, column)}",
                       f"Let {quote_text(table.name)} refer to {owner}.{column}.")  # fmt: skip


def _node_of_hop(root: NodeRef, table: Table) -> NodeRef:
    assert isinstance(table.unit, ForeignUnit)
    return _node_at(root, "tables", table.name, "unit", table.unit.column)


def _check_hop(schema: Schema, table: Table, hop: ForeignUnit, at: NodeRef) -> Table:
    target = _require_table(schema, hop.table, at)
    if target.public:
        raise at.error(f"refers to the table {quote_text(target.name)}, which is public and belongs to no unit",
                       f"Give {quote_text(target.name)} a unit, or refer to another table.")  # fmt: skip
    here, there = _require_column(table, hop.column, at), _require_column(target, hop.key, at)
    if here.type != there.type:
        raise at.error(f"joins {_quote_column(table.name, hop.column)} of type {here.type} with "
                       f"{_quote_column(hop.table, hop.key)} of type {there.type}",
                       "Declare both with the type that the data has.")  # fmt: skip
    return target


def _check_identifiers(schema: Schema, table: Table, root: NodeRef) -> None:
    """An id is compared by bytes and never altered (SOUNDNESS 3): no floats, and nothing that would be clipped."""
    match table.unit:
        case OwnUnit(column):
            used = [(table, column)]
        case ForeignUnit(column, target_name, key):
            target = schema.table(target_name)
            assert target is not None
            used = [(table, column), (target, key)]
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
            raise randomized.error("must not stand on a column that identifies units", "Remove it.", line=randomized.key_line)
        for key in ("bounds", "grid"):
            declared = at.child(key)
            if declared is not None:
                raise declared.error("must not stand on a column that identifies units: clipped ids would merge two",
                                     f"Remove {key}.", line=declared.key_line)  # fmt: skip
