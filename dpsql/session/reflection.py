"""Tables and views as completion, SQLAlchemy's reflection and `\\d` show them: columns, keys and comments.

A view's columns are not declared: compiling its query gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from dpsql.compiler.catalog.objects import column_comment, format_bounds, objects_of, table_comment
from dpsql.errors import Error
from dpsql.schema.model import Column, Domain, OwnUnit, Schema, Table, View
from dpsql.types import TEXT, Type


@dataclass(frozen=True)
class NamedColumn:
    """A column as the schema declares it; `values` are its declared ones as text, None where none are declared.

    `comment` is the owner's `description`, and what the declarations say.
    """

    name: str
    type: Type
    bounds: str | None = None
    values: tuple[str, ...] | None = None
    is_unit: bool = False
    comment: str | None = None
    description: str | None = None


@dataclass(frozen=True)
class UniqueKey:
    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class ForeignKey:
    """The declared way to the privacy unit."""

    name: str
    columns: tuple[str, ...]
    table: str
    keys: tuple[str, ...]

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.columns, self.keys, strict=True))


@dataclass(frozen=True)
class NamedTable:
    """`kind` is `private`, `public`, `view` or `synthetic`: a table that the account has made, which catalogs show as a
    view."""

    name: str
    kind: str
    columns: tuple[NamedColumn, ...]
    unique: tuple[UniqueKey, ...] = ()
    foreign: tuple[ForeignKey, ...] = ()
    comment: str | None = None
    definition: str | None = None
    description: str | None = None

    @property
    def is_view(self) -> bool:
        return self.kind in ("view", "synthetic")

    def find_column(self, name: str) -> NamedColumn | None:
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)


def reflect_tables(schema: Schema) -> tuple[NamedTable, ...]:
    """In the schema's order; views last."""
    return (
        *(_reflect_table(schema, table) for table in schema.tables),
        *(_reflect_view(schema, view) for view in schema.views),
    )


def _reflect_table(schema: Schema, table: Table) -> NamedTable:
    objects = objects_of(schema)
    foreign = [key_constraint for key_constraint in objects.foreign if key_constraint.table.declared is table]
    return NamedTable(
        table.name,
        "public" if table.public else "private",
        tuple(_reflect_column(table, column) for column in table.columns),
        tuple(UniqueKey(key.name, key.columns) for key in objects.keys if key.table.declared is table),
        tuple(
            ForeignKey(
                key_constraint.name, key_constraint.columns, key_constraint.target.name, key_constraint.target_columns
            )
            for key_constraint in foreign
        ),
        table_comment(schema, table),
        description=table.description,
    )


def _reflect_column(table: Table | View, column: Column) -> NamedColumn:
    values = None if column.domain.values is None else tuple(str(value) for value in column.domain.values)
    is_unit = isinstance(table, Table) and isinstance(table.unit, OwnUnit) and table.unit.column == column.name
    bounds = format_bounds(column.domain) or None
    comment = column_comment(table, column)
    return NamedColumn(column.name, column.type, bounds, values, is_unit, comment, column.description)


def _reflect_view(schema: Schema, view: View) -> NamedTable:
    is_synthetic = any(table.name == view.name for table in schema.made)
    columns = tuple(_reflect_column(view, column) for column in view.columns)
    comment = table_comment(schema, view)
    kind = "synthetic" if is_synthetic else "view"
    return NamedTable(view.name, kind, columns, comment=comment, definition=view.sql, description=view.description)


# --- the columns of views --------------------------------------------------------------------------------------------

DescribedColumns = Iterable[tuple[str, Type | None]]


def with_view_columns(schema: Schema, describe: Callable[[str], DescribedColumns]) -> Schema:
    """The schema whose views have columns; `describe` gives the output columns of a query, for free."""
    return replace(schema, views=tuple(_add_columns(view, describe) for view in schema.views))


def _add_columns(view: View, describe: Callable[[str], DescribedColumns]) -> View:
    if view.columns:
        return view
    quoted = view.name.replace('"', '""')
    try:
        outputs = describe(f'SELECT * FROM "{quoted}" LIMIT 0')
    except Error:
        return view  # the statement that reads it will say what is wrong
    return replace(view, columns=tuple(Column(name, Domain(type_ or TEXT)) for name, type_ in outputs))
