"""Relations over private rows as DuckDB SQL: the sanitising scan and what stands above it, below any aggregate."""

from __future__ import annotations

from typing import assert_never

from dpsql.plan.expr import UID
from dpsql.plan.nodes import (
    Aggregate,
    CountUnits,
    Filter,
    Gather,
    Join,
    Node,
    Project,
    Scan,
    Sum,
    Table,
    Weigh,
    fields,
    has_unit,
)
from dpsql.schema.model import EngineTable, Files, Source
from dpsql.sql.literals import identifier, text
from dpsql.sql.render_expr import render_expr, sanitised

NO_COLUMNS = '1 AS "_row"'


def render_rows(node: Node) -> str:
    match node:
        case Scan():
            return _scan(node)
        case Filter():
            return f"SELECT * FROM ({render_rows(node.input)}) WHERE {render_expr(node.condition)}"
        case Project():
            uid = [UID] if has_unit(node.input) else []
            columns = [f"{render_expr(column.expr)} AS {identifier(column.name)}" for column in node.columns]
            return f"SELECT {', '.join(uid + columns) or NO_COLUMNS} FROM ({render_rows(node.input)})"
        case Join():
            return _join(node)
        case Table() | Aggregate() | Weigh() | Sum() | CountUnits() | Gather():
            raise TypeError("not a relation over sanitised rows")
        case _:
            assert_never(node)


def _join(node: Join) -> str:
    if not node.by_unit:
        raise TypeError("a join of private rows must equate the units")
    right = [f"r.{identifier(f.name)}" for f in fields(node.right) if f.name != UID]
    return (
        f"SELECT {', '.join(['l.*', *right])} FROM ({render_rows(node.left)}) AS l "
        f"{node.kind.value.upper()} JOIN ({render_rows(node.right)}) AS r "
        f"ON l.{UID} = r.{UID} AND {render_expr(node.condition)}"
    )


def _scan(scan: Scan) -> str:
    columns = [f"{sanitised(column, 't')} AS {identifier(column.name)}" for column in scan.columns]
    sources = f"{render_source(scan.source)} AS t"
    if scan.unit is None:
        return f"SELECT {', '.join(columns) or NO_COLUMNS} FROM {sources}"
    before = "t"
    for number, hop in enumerate(scan.unit.hops, 1):
        after = f"h{number}"
        on = f"{sanitised(hop.column, before)} = {sanitised(hop.key, after)}"
        sources += f" JOIN {render_source(hop.source)} AS {after} ON {on}"
        before = after
    uid = sanitised(scan.unit.column, before)
    return f"SELECT {', '.join([f'{uid} AS {UID}', *columns])} FROM {sources} WHERE {uid} IS NOT NULL"


def render_source(source: Source) -> str:
    match source:
        case EngineTable(name):
            return ".".join(identifier(part) for part in name)
        case Files(patterns):
            # Without the option, a folder named year=2020 would add or replace a column.
            return f"read_parquet([{', '.join(text(pattern) for pattern in patterns)}], hive_partitioning = false)"
        case _:
            assert_never(source)
