"""Every private row leads to one privacy unit, by the declared foreign keys.

Law (SOUNDNESS 1): along a path, each key that has to be joined is declared unique, so that a row has at
most one unit. A reference to the unit column itself carries the unit's id and needs no join.
"""

from __future__ import annotations

from dpsql.schema.document import At, quoted, shown, suggestion
from dpsql.schema.model import Column, ForeignUnit, OwnUnit, RowUnit, Schema, Table
from dpsql.types import Kind


def check_units(schema: Schema, root: At) -> None:
    unit_at = _at(root, "privacy", "unit")
    unit = _unit_column(schema, unit_at)
    for table in schema.tables:
        if table.unit is None:
            continue
        at = _at(root, "tables", table.name, "unit")
        match table.unit, unit:
            case RowUnit(), None:
                pass
            case _, None:
                raise at.error('must be row, since privacy.unit is "row"', "Write unit: row.")
            case RowUnit(), (owner, column):
                raise at.error(f"must lead to {_dotted(owner, column)}, the privacy unit, and each row is not a unit",
                               f"Write unit: {{…: {owner}.{column}}} with the column that refers to it.")  # fmt: skip
            case OwnUnit(), (owner, column):
                _check_own(table, table.unit, owner, column, at)
            case ForeignUnit(), (owner, column):
                _check_path(schema, table, owner, column, root)
        _check_identifiers(schema, table, root)


def _at(root: At, *path: str) -> At:
    at = root
    for name in path:
        child = at.child(name)
        assert child is not None  # the loader read it before
        at = child
    return at


def _dotted(table: str, column: str) -> str:
    return quoted(f"{table}.{column}")


def _unit_column(schema: Schema, at: At) -> tuple[str, str] | None:
    """The table and column of the unit; None where each row is one."""
    if at.text == "row":
        return None
    name, dot, column = at.text.partition(".")
    if not dot or not name or not column:
        raise at.wrong("a column written table.column, or row", "Write for example unit: patients.patient_id.")
    table = _table(schema, name, at)
    _column(table, column, at)
    if table.unit is None:
        raise at.error(f"names the table {quoted(name)}, which is public",
                       f"Write unit: {shown(column)} in it, and remove public.")  # fmt: skip
    if table.unit != OwnUnit(column):
        raise at.error(f"is {_dotted(name, column)}, but that table has another unit",
                       f"Write unit: {shown(column)} in the table {quoted(name)}.")  # fmt: skip
    return name, column


def _table(schema: Schema, name: str, at: At) -> Table:
    table = schema.table(name)
    if table is None:
        hint = suggestion(name, [table.name for table in schema.tables], "tables")
        raise at.error(f"names the table {quoted(name)}, which does not exist", hint)
    return table


def _column(table: Table, name: str, at: At) -> Column:
    column = table.column(name)
    if column is None:
        hint = suggestion(name, [column.name for column in table.columns], "columns")
        raise at.error(f"names the column {_dotted(table.name, name)}, which does not exist", hint)
    return column


def _check_own(table: Table, unit: OwnUnit, owner: str, column: str, at: At) -> None:
    if table.name != owner:
        raise at.error(f"must lead to {_dotted(owner, column)}, the privacy unit",
                       f"Write unit: {{{unit.column}: {owner}.{column}}} if the column refers to it.")  # fmt: skip
    assert unit.column == column  # `_unit_column` compared them


def _check_path(schema: Schema, table: Table, owner: str, column: str, root: At) -> None:
    """Follow the hops from `table`; each is checked where it is declared, so errors point at its line."""
    seen = [table.name]
    while isinstance(table.unit, ForeignUnit):
        hop, at = table.unit, _hop_at(root, table)
        target = _check_hop(schema, table, hop, at)
        if target.name in seen:
            raise at.error(f"goes in a circle: {' to '.join(quoted(name) for name in [*seen, target.name])}",
                           f"Let one of them refer to {owner}.{column}.")  # fmt: skip
        direct = (hop.table, hop.key) == (owner, column)
        if not direct and not target.is_unique(hop.key):
            raise at.error(f"refers to {_dotted(hop.table, hop.key)}, which is not declared unique, so a row could "
                           "have two units", f"Write unique: [{hop.key}] in the table {quoted(hop.table)}, if no two "
                           f"rows share it, or refer to {owner}.{column} directly.")  # fmt: skip
        seen.append(target.name)
        table = target
    if table.unit != OwnUnit(column) or table.name != owner:
        at = _at(root, "tables", seen[0], "unit")
        raise at.error(f"leads to the table {quoted(table.name)}, not to {_dotted(owner, column)}",
                       f"Let {quoted(table.name)} refer to {owner}.{column}.")  # fmt: skip


def _hop_at(root: At, table: Table) -> At:
    assert isinstance(table.unit, ForeignUnit)
    return _at(root, "tables", table.name, "unit", table.unit.column)


def _check_hop(schema: Schema, table: Table, hop: ForeignUnit, at: At) -> Table:
    target = _table(schema, hop.table, at)
    if target.public:
        raise at.error(f"refers to the table {quoted(target.name)}, which is public and belongs to no unit",
                       f"Give {quoted(target.name)} a unit, or refer to another table.")  # fmt: skip
    here, there = _column(table, hop.column, at), _column(target, hop.key, at)
    if here.type != there.type:
        raise at.error(f"joins {_dotted(table.name, hop.column)} of type {here.type} with "
                       f"{_dotted(hop.table, hop.key)} of type {there.type}",
                       "Declare both with the type that the data has.")  # fmt: skip
    return target


def _check_identifiers(schema: Schema, table: Table, root: At) -> None:
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
        at = _at(root, "tables", owner.name, "columns", name)
        if column_.type.is_float or column_.type.kind is Kind.INTERVAL:
            raise _at(at, "type").error(f"must not be {column_.type}, since the column identifies units",
                                        "Write bigint, text, decimal(p,s) or uuid.")  # fmt: skip
        if (said := at.child("randomized")) is not None:
            raise said.error("must not stand on a column that identifies units", "Remove it.", line=said.key_line)
        for key in ("bounds", "grid"):
            declared = at.child(key)
            if declared is not None:
                raise declared.error("must not stand on a column that identifies units: clipped ids would merge two",
                                     f"Remove {key}.", line=declared.key_line)  # fmt: skip
