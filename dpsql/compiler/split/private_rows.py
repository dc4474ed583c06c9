"""A query that would give out private rows, for a study: bound like the rows below a release, and shown to nobody."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dpsql.compiler.analysis.unmatched_rows import find_unmatched_notices
from dpsql.compiler.bind.outputs import UNNAMED_COLUMN
from dpsql.compiler.bind.scope import BoundColumn, is_star
from dpsql.compiler.catalog.variables import Identity
from dpsql.compiler.parse.dialect import span_of
from dpsql.compiler.parse.parameters import Parameter
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.measures import CountRows
from dpsql.compiler.plan.relations import Named
from dpsql.compiler.split.blocks import Ownership, SplitState
from dpsql.compiler.split.declared_range import RangeSource
from dpsql.compiler.split.row_queries import is_id_column, suggest_without_ids
from dpsql.compiler.split.runtime_parameters import SubqueryParameters
from dpsql.compiler.split.split import ANONYMOUS, Splitter
from dpsql.errors import InvalidSyntax, Span, UnboundedValues, Unsupported
from dpsql.schema.model import Schema

MAX_COLUMNS = 64


@dataclass(frozen=True)
class PrivateRows:
    """The rows as an aggregate whose keys `c1`, `c2`, … are the query's columns; `names` are those of its outputs, and
    `spans` where each is written, as far as that is known."""

    aggregate: Aggregate
    names: tuple[str, ...]
    spans: tuple[Span | None, ...]


def bind_private_rows(
    query: exp.Query, schema: Schema, now: dt.datetime | None, identity: Identity = ANONYMOUS
) -> PrivateRows:
    """The private rows that a query gives out: filters, joins and computed columns, or one row per unit."""
    splitter = Splitter(SplitState(schema), identity, now, RangeSource.DECLARED)
    try:
        block = splitter.split_block(splitter.prepare_tree(query), {})
    except SqlglotError:  # a tree that its own generator cannot write
        raise InvalidSyntax("the statement is not understood") from None
    if block.ownership is not Ownership.OWNED:
        raise Unsupported(
            "this needs private rows, and the query gives out none",
            hint="SELECT columns FROM a private table, without aggregates.",
            span=span_of(query),
        )
    binder = splitter.make_binder()
    rows, columns = binder.bind_owned_query(block.post)
    assert isinstance(binder.outside, SubqueryParameters)
    if binder.outside.found or splitter.state.releases:
        raise Unsupported(
            "sub-selects over public or released rows are not supported here",
            hint="Write their values into the query.",
            span=span_of(query),
        )
    names = tuple(column.name for column in columns)
    spans = _column_spans(query, len(columns))
    _check_columns(names, spans, query)
    _refuse_id_columns(columns, spans, query, schema)
    keys = tuple(Named(f"c{number}", column.column) for number, column in enumerate(columns, 1))
    aggregate = Aggregate(rows, keys, (CountRows(),))
    find_unmatched_notices(aggregate)
    return PrivateRows(aggregate, names, spans)


def _column_spans(query: exp.Query, count: int) -> tuple[Span | None, ...]:
    """The span of the SELECT item behind each column; for columns of a *, that of the *."""
    items = query.selects
    stars = [index for index, item in enumerate(items) if is_star(item)]
    if len(stars) > 1 or (not stars and len(items) != count):
        return (None,) * count
    spans = [span_of(item) for item in items]
    for index in stars:
        spans[index : index + 1] = [spans[index]] * (count - len(items) + 1)
    return tuple(spans)


def _refuse_id_columns(
    columns: Sequence[BoundColumn], spans: Sequence[Span | None], query: exp.Query, schema: Schema
) -> None:
    """Keys without bounds or values: nobody means them, and bounds for them would be no help."""
    for column, span in zip(columns, spans, strict=True):
        if is_id_column(schema, column):
            what = "the id of the privacy unit" if column.is_unit else "a key"
            raise UnboundedValues(f'column "{column.name}" is {what}, and has no values to learn from',
                                  hint=suggest_without_ids(query, columns, schema), span=span)  # fmt: skip


def _check_columns(names: tuple[str, ...], spans: Sequence[Span | None], query: exp.Query) -> None:
    lower = [name.lower() for name in names]
    again = next((index for index, name in enumerate(lower) if name in lower[:index]), None)
    duplicate, span = (None, None) if again is None else (lower[again], spans[again] or span_of(query))
    if duplicate == UNNAMED_COLUMN:
        raise InvalidSyntax(
            "several of these columns have no names", hint="Give expressions names with AS: (age > 5) AS old.",
            span=span, sqlstate="42701",
        )  # fmt: skip
    if duplicate is not None:
        raise InvalidSyntax(f'column "{duplicate}" is there twice', hint="Give one of them an alias.", span=span,
                            sqlstate="42701")  # fmt: skip
    if len(names) > MAX_COLUMNS:
        raise Unsupported(f"these are more than {MAX_COLUMNS} columns", hint="Name those that you need.",
                          span=span_of(query))  # fmt: skip


def distinct_values_query(query: str, parameters: Sequence[Parameter], column: str) -> str:
    """A statement for the values of one column of a query."""
    rows = parse_query(query, parameters).subquery("_rows")
    return str(exp.select(exp.column(column, quoted=True)).distinct().from_(rows).sql(dialect="postgres"))
