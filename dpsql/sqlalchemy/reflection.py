"""What an inspector shows: the tables of the schema, as `Connection.tables()` names them. Free; never from the data."""

from __future__ import annotations

from sqlalchemy.engine.interfaces import (
    ReflectedColumn,
    ReflectedForeignKeyConstraint,
    ReflectedPrimaryKeyConstraint,
    ReflectedUniqueConstraint,
)

from dpsql.session import NamedTable
from dpsql.sqlalchemy.types import to_sqlalchemy_type


def reflect_columns(table: NamedTable) -> list[ReflectedColumn]:
    """All are nullable: what does not fit its declaration becomes NULL."""
    return [
        {
            "name": column.name,
            "type": to_sqlalchemy_type(column.type),
            "nullable": True,
            "default": None,
            "comment": column.comment,
        }
        for column in table.columns
    ]


def reflect_primary_key(table: NamedTable) -> ReflectedPrimaryKeyConstraint:
    """The first unique key that is declared: it is checked when data is registered, and mappers want one."""
    if not table.unique:
        return {"constrained_columns": [], "name": None}
    return {"constrained_columns": list(table.unique[0].columns), "name": table.unique[0].name}


def reflect_unique_keys(table: NamedTable) -> list[ReflectedUniqueConstraint]:
    return [{"name": key.name, "column_names": list(key.columns)} for key in table.unique[1:]]


def reflect_foreign_keys(table: NamedTable, schema: str | None) -> list[ReflectedForeignKeyConstraint]:
    """The declared way to the privacy unit."""
    return [
        {
            "name": key.name,
            "constrained_columns": [key.column],
            "referred_schema": schema,
            "referred_table": key.table,
            "referred_columns": [key.key],
            "options": {},
        }
        for key in table.foreign
    ]
