"""Relations over private rows as DuckDB SQL: the sanitising scan and what stands above it, below any aggregate."""

from __future__ import annotations

from fractions import Fraction
from typing import assert_never

from dpsql.plan.expr import UID, Expr, Quantise
from dpsql.plan.relations import (
    SET,
    Expand,
    Field,
    Filter,
    Join,
    JoinKind,
    Mark,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    SetOperation,
    Table,
    UnitMeasure,
    UnitWindow,
    is_public,
    row_fields,
)
from dpsql.schema.model import EngineTable, Files, Source
from dpsql.sql.literals import double, identifier, text, type_name
from dpsql.sql.render_expr import cast, render_expr, sanitised
from dpsql.types import BIGINT, DOUBLE, HUGEINT, Type

NO_COLUMNS = '1 AS "_row"'


def render_rows(node: Rows) -> str:
    match node:
        case Scan():
            return _scan(node)
        case PublicScan():
            columns = [f"{sanitised(column, 't')} AS {identifier(column.name)}" for column in node.columns]
            return f"SELECT {', '.join(columns) or NO_COLUMNS} FROM {render_source(node.source)} AS t"
        case RowsHole():
            return _hole(node)
        case Filter():
            return f"SELECT * FROM ({render_rows(node.input)}) WHERE {render_expr(node.condition)}"
        case Project():
            columns = [f"{render_expr(column.expr)} AS {identifier(column.name)}" for column in node.columns]
            return f"SELECT {', '.join(_uid(node.input) + columns) or NO_COLUMNS} FROM ({render_rows(node.input)})"
        case Join():
            return _join(node)
        case Mark():
            return _mark(node)
        case PerUnit():
            return _per_unit(node)
        case UnitWindow():
            return _window(node)
        case SetOperation():
            ours, theirs = (", ".join(identifier(f.name) for f in row_fields(side)) for side in (node.left, node.right))
            left, right = render_rows(node.left), render_rows(node.right)
            return f"(SELECT {ours} FROM ({left})) {node.kind.value.upper()} (SELECT {theirs} FROM ({right}))"
        case Expand():
            return _expand(node)
        case Table() | PublicTable():
            raise TypeError("not a relation over sanitised rows")
        case _:
            assert_never(node)


def _uid(node: Rows) -> list[str]:
    return [UID] if any(f.name == UID for f in row_fields(node)) else []


def _hole(hole: RowsHole) -> str:
    """Values come as a list of structs of the columns' types: they were moved into their domains before."""
    types = ", ".join(f"{identifier(f.name)} {type_name(f.type)}" for f in hole.columns)
    columns = ", ".join(f"s.{identifier(f.name)} AS {identifier(f.name)}" for f in hole.columns)
    return f"SELECT {columns} FROM (SELECT unnest(TRY_CAST(${hole.hole} AS STRUCT({types})[])) AS s)"


def _join(node: Join) -> str:
    public = is_public(node.right)
    if not public and not node.by_unit:
        raise TypeError("a join of private rows must equate the units")
    left = [f"l.{identifier(f.name)}" for f in row_fields(node.left) if f.name != UID]
    right = [f"r.{identifier(f.name)}" for f in row_fields(node.right) if f.name != UID]
    uid = [f"l.{UID}"] if _uid(node.left) else []
    if node.kind is JoinKind.FULL:
        uid = [f"COALESCE(l.{UID}, r.{UID}) AS {UID}"]
    on = render_expr(node.condition) if public else f"l.{UID} = r.{UID} AND {render_expr(node.condition)}"
    return (
        f"SELECT {', '.join(uid + left + right) or NO_COLUMNS} FROM ({render_rows(node.left)}) AS l "
        f"{node.kind.value.upper()} JOIN ({render_rows(node.right)}) AS r ON {on}"
    )


def _mark(node: Mark) -> str:
    """Names are the plan's own and unique; only the unit's id stands on both sides."""
    if not is_public(node.right) and not node.by_unit:
        raise TypeError("a sub-select over private rows must equate the units")
    where = render_expr(node.condition)
    if node.by_unit:
        where = f"l.{UID} = r.{UID} AND {where}"
    source = f"({render_rows(node.right)}) AS r WHERE {where}"
    if node.test is None:
        found = f"EXISTS (SELECT 1 FROM {source})"
    else:
        found = f"({render_expr(node.test[0])} IN (SELECT {render_expr(node.test[1])} FROM {source}))"
    return f"SELECT l.*, {found} AS {identifier(node.name)} FROM ({render_rows(node.left)}) AS l"


def _per_unit(node: PerUnit) -> str:
    if not _uid(node.input):
        raise TypeError("rows without an id cannot be grouped by it")
    keys = [f"{render_expr(key.expr)} AS {identifier(key.name)}" for key in node.keys]
    measures = [f"{_unit_measure(m)} AS {identifier(m.name)}" for m in node.measures]
    group = ", ".join(str(place) for place in range(1, len(keys) + 2))
    return f"SELECT {', '.join([UID, *keys, *measures])} FROM ({render_rows(node.input)}) GROUP BY {group}"


def _unit_measure(measure: UnitMeasure) -> str:
    if measure.arg is None:
        return "COUNT(*)"
    return exact_aggregate(measure.function, measure.arg, measure.type, "")


def exact_aggregate(function: str, arg: Expr, type_: Type, over: str) -> str:
    """An aggregate whose result does not depend on the order of rows, also for doubles: they come as whole steps."""
    sql = render_expr(arg)
    match function:
        case "count":
            return f"COUNT({sql}){over}"
        case "count_distinct":
            return f"COUNT(DISTINCT {sql}){over}"
        case "min" | "max":
            return f"{function.upper()}({sql}){over}"
        case "median":
            middle = f"median({sql}){over}"
            return f"(CASE WHEN isfinite({middle}) THEN {middle} END)"  # between numbers that are very far apart
        case "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp" if isinstance(arg, Quantise):
            return _spread(function, arg)
        case "any" | "all":
            return f"bool_{'or' if function == 'any' else 'and'}({sql}){over}"
        case "sum" if isinstance(arg, Quantise):
            total = worth(f"CAST(SUM({sql}){over} AS DOUBLE)", arg.grid)
            return total if type_ == DOUBLE else cast(total, type_)
        case "mean" if isinstance(arg, Quantise):
            return f"({worth(f'CAST(SUM({sql}){over} AS DOUBLE)', arg.grid)} / NULLIF(COUNT({sql}){over}, 0))"
        case "sum" if arg.type.is_integer and arg.type != HUGEINT:
            return cast(f"SUM({sql}){over}", BIGINT)
        case "mean" if arg.type.is_integer and arg.type != HUGEINT:
            return f"(CAST(SUM({sql}){over} AS DOUBLE) / NULLIF(COUNT({sql}){over}, 0))"
        case _:
            raise TypeError(f"no exact form of {function} for {arg.type}")


def _spread(function: str, arg: Quantise) -> str:
    """From the exact sums of steps and of their squares, counted from the lower bound so that little cancels."""
    step = f"(CAST({render_expr(arg)} AS HUGEINT) - CAST({arg.lower} AS HUGEINT))"
    count = f"COUNT({step})"
    total, squares = (f"CAST(SUM({part}) AS DOUBLE)" for part in (step, f"{step} * {step}"))
    free = 1 if function.endswith("samp") else 0
    variance = f"(GREATEST({squares} - {total} * {total} / {count}, 0) / ({count} - {free}) * {double(arg.grid**2)})"
    found = f"sqrt({variance})" if function.startswith("stddev") else variance
    return f"(CASE WHEN {count} > {free} THEN {found} END)"


def worth(steps: str, grid: Fraction) -> str:
    """Steps of a hundredth are divided by 100: the nearest double, where a product with 0.01 may be one beside it."""
    return f"({steps} / {double(1 / grid)})" if grid.numerator == 1 else f"({steps} * {double(grid)})"


TIES_CHOOSE = frozenset({"row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"})


def _window(node: UnitWindow) -> str:
    partition = ", ".join([*_uid(node.input), *map(render_expr, node.partition)])
    order = [
        f"{render_expr(o.expr)} {'DESC' if o.descending else 'ASC'} NULLS {'FIRST' if o.nulls_first else 'LAST'}"
        for o in node.order
    ]
    if node.function in TIES_CHOOSE or (node.frame or "").startswith("ROWS"):
        order += [place for f in row_fields(node.input) if f.name != UID for place in _places(f)]
    ordered = f" ORDER BY {', '.join(order)}" if order else ""
    over = f" OVER (PARTITION BY {partition}{ordered}{' ' + node.frame if node.frame else ''})"
    args = [render_expr(arg) for arg in node.args]
    if node.function in TIES_CHOOSE or node.function in ("rank", "dense_rank", "percent_rank", "cume_dist"):
        sql = f"{node.function}({', '.join(args)}){over}"
    elif not args:
        sql = f"COUNT(*){over}"
    else:
        sql = exact_aggregate(node.function, node.args[0], node.type, over)
    return f"SELECT *, {sql} AS {identifier(node.name)} FROM ({render_rows(node.input)})"


def _places(column: Field) -> list[str]:
    """An order in which only rows that look alike are equal: 0.0 and -0.0 compare as one, and print as two."""
    name = identifier(column.name)
    sign = [f"signbit({name}) NULLS LAST"] if column.type.is_float else []
    return [f"{name} NULLS LAST", *sign]


def _expand(node: Expand) -> str:
    columns = _uid(node.input)
    for f in row_fields(node.input):
        if f.name in node.keys:
            inside = ", ".join(str(number) for number, names in enumerate(node.sets) if f.name in names) or "-1"
            columns.append(f'CASE WHEN s."{SET}" IN ({inside}) THEN {identifier(f.name)} END AS {identifier(f.name)}')
        elif f.name != UID:
            columns.append(identifier(f.name))
    numbers = ", ".join(f"({number})" for number in range(len(node.sets)))
    sets = f'(VALUES {numbers}) AS s("{SET}")'
    return f'SELECT {", ".join(columns)}{", " if columns else ""}CAST(s."{SET}" AS BIGINT) AS "{SET}" ' \
           f"FROM ({render_rows(node.input)}) CROSS JOIN {sets}"


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
