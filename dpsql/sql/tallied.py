"""A query that would give out private rows, for a study: bound like the rows below a release, and shown to nobody."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dpsql.catalog.identity import Identity
from dpsql.errors import InvalidSyntax, UnboundedValues, Unsupported
from dpsql.plan.measures import CountRows
from dpsql.plan.nodes import Aggregate
from dpsql.plan.relations import Named
from dpsql.schema.model import Schema
from dpsql.span import Span
from dpsql.sql.blocks import Ownership, State
from dpsql.sql.dialect import span_of
from dpsql.sql.holes import Holes
from dpsql.sql.names import BoundColumn, is_star
from dpsql.sql.output_names import UNNAMED
from dpsql.sql.parameters import Parameter
from dpsql.sql.parse import parse
from dpsql.sql.ranges import Ranges
from dpsql.sql.split import NOBODY, Splitter
from dpsql.sql.suggest import is_id, without_ids

MOST_COLUMNS = 64


@dataclass(frozen=True)
class PrivateRows:
    """The rows as an aggregate whose keys `c1`, `c2`, … are the query's columns; `names` are those of its outputs, and
    `spans` where each is written, as far as that is known."""

    aggregate: Aggregate
    names: tuple[str, ...]
    spans: tuple[Span | None, ...]


def private_rows(query: exp.Query, schema: Schema, now: dt.datetime | None, who: Identity = NOBODY) -> PrivateRows:
    """The private rows that a query gives out: filters, joins and computed columns, or one row per unit."""
    splitter = Splitter(State(schema), who, now, Ranges.DECLARED)
    try:
        block = splitter.query(splitter.plain(query), {})
    except SqlglotError:  # a tree that its own generator cannot write
        raise InvalidSyntax("the statement is not understood") from None
    if block.ownership is not Ownership.OWNED:
        raise Unsupported(
            "this needs private rows, and the query gives out none",
            hint="SELECT columns FROM a private table, without aggregates.",
            span=span_of(query),
        )
    binder = splitter.binder()
    rows, columns = binder.owned_query(block.post)
    assert isinstance(binder.outside, Holes)
    if binder.outside.found or splitter.state.releases:
        raise Unsupported(
            "sub-selects over public or released rows are not supported here",
            hint="Write their values into the query.",
            span=span_of(query),
        )
    names = tuple(column.name for column in columns)
    spans = _places(query, len(columns))
    _check(names, spans, query)
    _refuse_ids(columns, spans, query, schema)
    keys = tuple(Named(f"c{number}", column.column) for number, column in enumerate(columns, 1))
    return PrivateRows(Aggregate(rows, keys, (CountRows(),)), names, spans)


def _places(query: exp.Query, count: int) -> tuple[Span | None, ...]:
    """Of each column the item of SELECT that gives it; of those that a * stands for, the *."""
    items = query.selects
    stars = [place for place, item in enumerate(items) if is_star(item)]
    if len(stars) > 1 or (not stars and len(items) != count):
        return (None,) * count
    spans = [span_of(item) for item in items]
    for place in stars:
        spans[place : place + 1] = [spans[place]] * (count - len(items) + 1)
    return tuple(spans)


def _refuse_ids(
    columns: Sequence[BoundColumn], spans: Sequence[Span | None], query: exp.Query, schema: Schema
) -> None:
    """Keys without bounds or values: nobody means them, and bounds for them would be no help."""
    for column, span in zip(columns, spans, strict=True):
        if is_id(schema, column):
            what = "the id of the privacy unit" if column.is_unit else "a key"
            raise UnboundedValues(f'column "{column.name}" is {what}, and has no values to learn from',
                                  hint=without_ids(query, columns, schema), span=span)  # fmt: skip


def _check(names: tuple[str, ...], spans: Sequence[Span | None], query: exp.Query) -> None:
    lower = [name.lower() for name in names]
    again = next((place for place, name in enumerate(lower) if name in lower[:place]), None)
    twice, span = (None, None) if again is None else (lower[again], spans[again] or span_of(query))
    if twice == UNNAMED:
        raise InvalidSyntax(
            "several of these columns have no names", hint="Give expressions names with AS: (age > 5) AS old.",
            span=span, sqlstate="42701",
        )  # fmt: skip
    if twice is not None:
        raise InvalidSyntax(f'column "{twice}" is there twice', hint="Give one of them an alias.", span=span,
                            sqlstate="42701")  # fmt: skip
    if len(names) > MOST_COLUMNS:
        raise Unsupported(f"these are more than {MOST_COLUMNS} columns", hint="Name those that you need.",
                          span=span_of(query))  # fmt: skip


def distinct_values(query: str, parameters: Sequence[Parameter], column: str) -> str:
    """A statement for the values of one column of a query."""
    rows = parse(query, parameters).subquery("_rows")
    return str(exp.select(exp.column(column, quoted=True)).distinct().from_(rows).sql(dialect="postgres"))
