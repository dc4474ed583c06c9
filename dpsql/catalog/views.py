"""The schema as catalogs show it: with the columns of its views, which compiling them tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from dpsql.errors import Error
from dpsql.schema.domain import Domain
from dpsql.schema.model import Column, Schema, View
from dpsql.types import TEXT, Type

DescribedColumns = Iterable[tuple[str, Type | None]]


def with_view_columns(schema: Schema, describe: Callable[[str], DescribedColumns]) -> Schema:
    """`describe` tells the output columns of a query, for free."""
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
