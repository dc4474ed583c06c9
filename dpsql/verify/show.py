"""A failing case for people: a schema to paste, the statement, both databases and the SQL that ran."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from dpsql.schema.model import Column, ForeignUnit, OwnUnit, RowUnit, Table
from dpsql.verify.columns import format_timestamp
from dpsql.verify.neighbors import TableRows
from dpsql.verify.shrink import FailingCase
from dpsql.verify.worlds import GeneratedSchema


def render_case(case: FailingCase) -> str:
    lines = [*(f"-- {finding}" for finding in case.outcome.findings), "", "-- the schema"]
    lines += [f"-- {line}" for line in render_schema(case.world)]
    lines += ["", "-- the statement", f"{case.asked};", ""]
    lines += ["-- D", *_render_script(case.world, case.pair.first), "", "-- D', its neighbor"]
    lines += [*_render_script(case.world, case.pair.second), ""]
    if case.outcome.compiled is not None:
        for number, step in enumerate(case.outcome.compiled.steps, 1):
            lines += [f"-- what runs for release {number}", f"{step.sql};", ""]
    return "\n".join(lines).rstrip() + "\n"


def _render_script(generated: GeneratedSchema, rows: TableRows) -> Iterator[str]:
    for stored in generated.tables:
        columns = ", ".join(f'"{column.name}" {column.engine_type}' for column in stored.columns)
        yield f'CREATE OR REPLACE TABLE "{stored.name}" ({columns});'
        if rows[stored.name]:
            yield f'INSERT INTO "{stored.name}" VALUES'
            tuples = [f"  ({', '.join(row)})" for row in rows[stored.name]]
            yield from (f"{line}{';' if line is tuples[-1] else ','}" for line in tuples)


# --- the schema, as YAML ---------------------------------------------------------------------------------------------


def render_schema(generated: GeneratedSchema) -> Iterator[str]:
    privacy = generated.schema.privacy
    caps = privacy.contributions
    limits = {name: cap for name, cap in (("rows", caps.rows), ("groups", caps.groups)) if cap is not None}
    yield "dpsql: 1"
    yield "engine: duckdb:///example.duckdb"
    yield "privacy:"
    yield f"  neighbors: {privacy.neighbors.value}"
    yield f"  unit: {json.dumps(privacy.unit, ensure_ascii=False)}"
    yield f"  budget: {{epsilon: {_format_number(privacy.budget.epsilon)}, delta: {_format_number(privacy.budget.delta)}}}"
    if limits:
        yield f"  contributions: {json.dumps(limits)}"
    yield f"  group_size: {privacy.group_size}"
    yield "tables:"
    for stored in generated.tables:
        yield from _render_table(stored.table)


def _render_table(table: Table) -> Iterator[str]:
    yield f"  {json.dumps(table.name, ensure_ascii=False)}:"
    match table.unit:
        case None:
            yield "    public: true"
        case RowUnit():
            yield "    unit: row"
        case OwnUnit(name):
            yield f"    unit: {json.dumps(name, ensure_ascii=False)}"
        case ForeignUnit(name, target, key):
            yield f"    unit: {json.dumps({name: f'{target}.{key}'}, ensure_ascii=False)}"
    if table.unique:
        yield f"    unique: {json.dumps([list(key) for key in table.unique], ensure_ascii=False)}"
    yield "    columns:"
    for column in table.columns:
        yield f"      {json.dumps(column.name, ensure_ascii=False)}: {_render_column(column)}"


def _format_number(number: Fraction) -> str:
    """Exactly: what a schema declares was written as a decimal, or is a double."""
    with localcontext(Context(prec=800)):
        return f"{Decimal(number.numerator) / Decimal(number.denominator):f}"


def _render_column(column: Column) -> str:
    """Numbers, dates and values as text, which the loader reads exactly."""
    domain, parts = column.domain, [f"type: {json.dumps(str(column.type))}"]
    if domain.is_bounded:
        ends = [format_timestamp(end, column.type) if column.type.is_time else _format_number(end) for end in domain.bounds]
        parts.append(f"bounds: {json.dumps(ends)}")
    if domain.values is not None and str(column.type) != "boolean":
        parts.append(f"values: {json.dumps([str(value) for value in domain.values], ensure_ascii=False)}")
    if column.grid is not None:
        parts.append(f"grid: {json.dumps(_format_number(column.grid))}")
    if column.null_group:
        parts.append("nullable: true")
    if str(column.type) == "text":
        parts.append(f"max_length: {column.max_length}")
    return "{" + ", ".join(parts) + "}"


