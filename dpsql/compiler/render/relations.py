"""Relations over private rows as DuckDB SQL: the sanitising scan and what stands above it, below any aggregate."""

from __future__ import annotations

from fractions import Fraction
from typing import assert_never

from dpsql.compiler.plan.expressions import UID, Expr, Quantise
from dpsql.compiler.plan.relations import (
    SET_COLUMN,
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
from dpsql.compiler.render.expressions import (
    quote_identifier,
    render_cast,
    render_double,
    render_expr,
    render_sanitized_column,
    render_text,
    render_type_name,
)
from dpsql.schema.model import EngineTable, Files, Source
from dpsql.types import BIGINT, DOUBLE, HUGEINT, Type

NO_COLUMNS = '1 AS "_row"'


def render_rows(node: Rows) -> str:
    match node:
        case Scan():
            return _render_scan(node)
        case PublicScan():
            columns = [
                f"{render_sanitized_column(column, 't')} AS {quote_identifier(column.name)}" for column in node.columns
            ]
            return f"SELECT {', '.join(columns) or NO_COLUMNS} FROM {render_source(node.source)} AS t"
        case RowsHole():
            return _render_parameter_rows(node)
        case Filter():
            return f"SELECT * FROM ({render_rows(node.input)}) WHERE {render_expr(node.condition)}"
        case Project():
            columns = [f"{render_expr(column.expr)} AS {quote_identifier(column.name)}" for column in node.columns]
            return (
                f"SELECT {', '.join(_uid_columns(node.input) + columns) or NO_COLUMNS} FROM ({render_rows(node.input)})"
            )
        case Join():
            return _render_join(node)
        case Mark():
            return _render_mark(node)
        case PerUnit():
            return _render_per_unit(node)
        case UnitWindow():
            return _render_window(node)
        case SetOperation():
            ours, theirs = (
                ", ".join(quote_identifier(f.name) for f in row_fields(side)) for side in (node.left, node.right)
            )
            left, right = render_rows(node.left), render_rows(node.right)
            return f"(SELECT {ours} FROM ({left})) {node.kind.value.upper()} (SELECT {theirs} FROM ({right}))"
        case Expand():
            return _render_expand(node)
        case Table() | PublicTable():
            raise TypeError("not a relation over sanitised rows")
        case _:
            assert_never(node)


def render_match_count(rows: Rows, columns: tuple[str, ...]) -> str:
    """How many of the rows agree on these columns, at most."""
    if not columns:
        return f"SELECT COUNT(*) FROM ({render_rows(rows)})"
    names = ", ".join(quote_identifier(name) for name in columns)
    counts = f'SELECT COUNT(*) AS "n" FROM ({render_rows(rows)}) GROUP BY {names}'
    return f'SELECT COALESCE(MAX("n"), 0) FROM ({counts})'


def _uid_columns(node: Rows) -> list[str]:
    return [UID] if any(f.name == UID for f in row_fields(node)) else []


def _render_parameter_rows(hole: RowsHole) -> str:
    """Values come as a list of structs of the columns' types: they were moved into their domains before."""
    types = ", ".join(f"{quote_identifier(f.name)} {render_type_name(f.type)}" for f in hole.columns)
    columns = ", ".join(f"s.{quote_identifier(f.name)} AS {quote_identifier(f.name)}" for f in hole.columns)
    return f"SELECT {columns} FROM (SELECT unnest(TRY_CAST(${hole.hole} AS STRUCT({types})[])) AS s)"


def _render_join(node: Join) -> str:
    public = is_public(node.right)
    if not public and not node.by_unit:
        raise TypeError("a join of private rows must equate the units")
    left = [f"l.{quote_identifier(f.name)}" for f in row_fields(node.left) if f.name != UID]
    right = [f"r.{quote_identifier(f.name)}" for f in row_fields(node.right) if f.name != UID]
    uid = [f"l.{UID}"] if _uid_columns(node.left) else []
    if node.kind is JoinKind.FULL:
        uid = [f"COALESCE(l.{UID}, r.{UID}) AS {UID}"]
    on = render_expr(node.condition) if public else f"l.{UID} = r.{UID} AND {render_expr(node.condition)}"
    return (
        f"SELECT {', '.join(uid + left + right) or NO_COLUMNS} FROM ({render_rows(node.left)}) AS l "
        f"{node.kind.value.upper()} JOIN ({render_rows(node.right)}) AS r ON {on}"
    )


def _render_mark(node: Mark) -> str:
    """Names are the plan's own and unique; only the unit's id stands on both sides."""
    if not is_public(node.right) and not node.by_unit:
        raise TypeError("a sub-select over private rows must equate the units")
    where = render_expr(node.condition)
    if node.by_unit:
        where = f"l.{UID} = r.{UID} AND {where}"
    source = f"({render_rows(node.right)}) AS r WHERE {where}"
    if node.test is None:
        mark = f"EXISTS (SELECT 1 FROM {source})"
    else:
        mark = f"({render_expr(node.test[0])} IN (SELECT {render_expr(node.test[1])} FROM {source}))"
    return f"SELECT l.*, {mark} AS {quote_identifier(node.name)} FROM ({render_rows(node.left)}) AS l"


def _render_per_unit(node: PerUnit) -> str:
    if not _uid_columns(node.input):
        raise TypeError("rows without an id cannot be grouped by it")
    keys = [f"{render_expr(key.expr)} AS {quote_identifier(key.name)}" for key in node.keys]
    measures = [f"{_render_unit_measure(m)} AS {quote_identifier(m.name)}" for m in node.measures]
    group = ", ".join(str(position) for position in range(1, len(keys) + 2))
    return f"SELECT {', '.join([UID, *keys, *measures])} FROM ({render_rows(node.input)}) GROUP BY {group}"


def _render_unit_measure(measure: UnitMeasure) -> str:
    if measure.arg is None:
        return "COUNT(*)"
    return render_exact_aggregate(measure.function, measure.arg, measure.type, "")


def render_exact_aggregate(function: str, arg: Expr, type_: Type, over: str) -> str:
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
            return _render_spread(function, arg)
        case "any" | "all":
            return f"bool_{'or' if function == 'any' else 'and'}({sql}){over}"
        case "sum" if isinstance(arg, Quantise):
            total = scale_steps(f"CAST(SUM({sql}){over} AS DOUBLE)", arg.grid)
            return total if type_ == DOUBLE else render_cast(total, type_)
        case "mean" if isinstance(arg, Quantise):
            return f"({scale_steps(f'CAST(SUM({sql}){over} AS DOUBLE)', arg.grid)} / NULLIF(COUNT({sql}){over}, 0))"
        case "sum" if arg.type.is_integer and arg.type != HUGEINT:
            return render_cast(f"SUM({sql}){over}", BIGINT)
        case "mean" if arg.type.is_integer and arg.type != HUGEINT:
            return f"(CAST(SUM({sql}){over} AS DOUBLE) / NULLIF(COUNT({sql}){over}, 0))"
        case _:
            raise TypeError(f"no exact form of {function} for {arg.type}")


def _render_spread(function: str, arg: Quantise) -> str:
    """From the exact sums of steps and of their squares, counted from the lower bound so that little cancels."""
    step = f"(CAST({render_expr(arg)} AS HUGEINT) - CAST({arg.lower} AS HUGEINT))"
    count = f"COUNT({step})"
    total, squares = (f"CAST(SUM({part}) AS DOUBLE)" for part in (step, f"{step} * {step}"))
    free = 1 if function.endswith("samp") else 0
    variance = (
        f"(GREATEST({squares} - {total} * {total} / {count}, 0) / ({count} - {free}) * {render_double(arg.grid**2)})"
    )
    statistic = f"sqrt({variance})" if function.startswith("stddev") else variance
    return f"(CASE WHEN {count} > {free} THEN {statistic} END)"


def scale_steps(steps: str, grid: Fraction) -> str:
    """Steps of a hundredth are divided by 100: the nearest double, where a product with 0.01 may be one beside it."""
    return f"({steps} / {render_double(1 / grid)})" if grid.numerator == 1 else f"({steps} * {render_double(grid)})"


TIE_SENSITIVE = frozenset({"row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"})


def _render_window(node: UnitWindow) -> str:
    partition = ", ".join([*_uid_columns(node.input), *map(render_expr, node.partition)])
    order = [
        f"{render_expr(o.expr)} {'DESC' if o.descending else 'ASC'} NULLS {'FIRST' if o.nulls_first else 'LAST'}"
        for o in node.order
    ]
    if node.function in TIE_SENSITIVE or (node.frame or "").startswith("ROWS"):
        order += [term for f in row_fields(node.input) if f.name != UID for term in _total_order(f)]
    ordered = f" ORDER BY {', '.join(order)}" if order else ""
    over = f" OVER (PARTITION BY {partition}{ordered}{' ' + node.frame if node.frame else ''})"
    args = [render_expr(arg) for arg in node.args]
    if node.function in TIE_SENSITIVE or node.function in ("rank", "dense_rank", "percent_rank", "cume_dist"):
        sql = f"{node.function}({', '.join(args)}){over}"
    elif not args:
        sql = f"COUNT(*){over}"
    else:
        sql = render_exact_aggregate(node.function, node.args[0], node.type, over)
    return f"SELECT *, {sql} AS {quote_identifier(node.name)} FROM ({render_rows(node.input)})"


def _total_order(column: Field) -> list[str]:
    """An order in which only rows that look alike are equal: 0.0 and -0.0 compare as one, and print as two."""
    name = quote_identifier(column.name)
    sign = [f"signbit({name}) NULLS LAST"] if column.type.is_float else []
    return [f"{name} NULLS LAST", *sign]


def _render_expand(node: Expand) -> str:
    return render_expanded_rows(node, f"({render_rows(node.input)})")


def render_expanded_rows(node: Expand, source: str) -> str:
    """`source` is where its input stands."""
    columns = _uid_columns(node.input)
    for f in row_fields(node.input):
        if f.name in node.keys:
            inside = [str(number) for number, names in enumerate(node.sets, node.first) if f.name in names] or ["-1"]
            name = quote_identifier(f.name)
            columns.append(f'CASE WHEN s."{SET_COLUMN}" IN ({", ".join(inside)}) THEN {name} END AS {name}')
        elif f.name != UID:
            columns.append(quote_identifier(f.name))
    numbers = ", ".join(f"({number})" for number, _ in enumerate(node.sets, node.first))
    sets = f'(VALUES {numbers}) AS s("{SET_COLUMN}")'
    return (
        f'SELECT {", ".join(columns)}{", " if columns else ""}CAST(s."{SET_COLUMN}" AS BIGINT) AS "{SET_COLUMN}" '
        f"FROM {source} CROSS JOIN {sets}"
    )


def _render_scan(scan: Scan) -> str:
    columns = [f"{render_sanitized_column(column, 't')} AS {quote_identifier(column.name)}" for column in scan.columns]
    sources = f"{render_source(scan.source)} AS t"
    if scan.unit is None:
        return f"SELECT {', '.join(columns) or NO_COLUMNS} FROM {sources}"
    before = "t"
    for number, hop in enumerate(scan.unit.hops, 1):
        after = f"h{number}"
        on = " AND ".join(
            f"{render_sanitized_column(column, before)} = {render_sanitized_column(key, after)}"
            for column, key in hop.pairs
        )
        sources += f" JOIN {render_source(hop.source)} AS {after} ON {on}"
        before = after
    uid = render_sanitized_column(scan.unit.column, before)
    return f"SELECT {', '.join([f'{uid} AS {UID}', *columns])} FROM {sources} WHERE {uid} IS NOT NULL"


def render_source(source: Source) -> str:
    match source:
        case EngineTable(name):
            return ".".join(quote_identifier(part) for part in name)
        case Files(patterns):
            # Without the option, a folder named year=2020 would add or replace a column.
            return (
                f"read_parquet([{', '.join(render_text(pattern) for pattern in patterns)}], hive_partitioning = false)"
            )
        case _:
            assert_never(source)
