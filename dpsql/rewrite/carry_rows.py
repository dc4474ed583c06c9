"""Where each row is its own unit, and blocks are made of units: carry a hash of the row up to where blocks are made.

    Table(events)  →  Project(events, all columns and _row = hash of all of them); every Project above passes _row on

Stability: the hash is taken where the table is scanned, of its columns as sanitised, before anything is joined to
them. So it is a function of the row alone; copies of a row, which a join with public rows makes, have the same, and are
in one block. Equal rows share a block, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from dpsql.errors import Unsupported
from dpsql.plan.expr import ROW, Call, Column
from dpsql.plan.measures import Blockwise
from dpsql.plan.nodes import Aggregate
from dpsql.plan.relations import (
    Expand,
    Filter,
    Join,
    Mark,
    Named,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    SetOperation,
    Table,
    UnitWindow,
    has_uid,
    row_fields,
)
from dpsql.plan.walk import map_rows
from dpsql.types import BIGINT


def carry_row_hash(aggregate: Aggregate) -> Aggregate:
    blockwise = next((measure for measure in aggregate.measures if isinstance(measure, Blockwise)), None)
    if blockwise is None or has_uid(aggregate.input):
        return aggregate

    def change(node: Rows) -> Rows:
        match node:
            case Table():
                columns = tuple(Column(f.name, f.type) for _, f in node.columns)
                hashed = Named(ROW, Call("row_hash", columns, BIGINT))
                return Project(node, (*(Named(column.name, column) for column in columns), hashed))
            case Project():
                carried = any(f.name == ROW for f in row_fields(node.input))  # public rows have none
                return replace(node, columns=(*node.columns, Named(ROW, Column(ROW, BIGINT)))) if carried else node
            case Filter() | Join() | Mark() | PublicTable() | RowsHole():
                return node  # what they give out, of private rows, is what they are given
            case SetOperation():
                raise Unsupported(
                    "BLOCKWISE of a UNION ALL is not supported where each row is a privacy unit",
                    hint="Ask for each of its parts in a SELECT of its own.",
                    span=blockwise.span,
                )
            case PerUnit() | UnitWindow() | Expand() | Scan() | PublicScan():
                raise TypeError("rows that are units have no ids to group by, and are not scanned yet")
            case _:
                assert_never(node)

    return replace(aggregate, input=map_rows(aggregate.input, change))
