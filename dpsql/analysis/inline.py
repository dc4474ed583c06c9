"""Sub-selects, CTEs and views that only name and filter rows, read as if their text stood in the block around them.

    SELECT COUNT(*) FROM (SELECT qty AS q FROM orders WHERE paid) AS t WHERE q > 3
        →  SELECT COUNT(*) FROM orders WHERE paid AND qty > 3

Only columns that are passed on as they are: an expression that is read twice would be written twice, and so on upward.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dpsql.plan.expr import Column, Expr
from dpsql.plan.nodes import Aggregate
from dpsql.plan.relations import Filter, Named, Project, Rows
from dpsql.plan.walk import columns_of, map_expr, map_measure, map_rows, measure_args


def inline_projects(aggregate: Aggregate) -> Aggregate:
    aggregate = replace(aggregate, input=map_rows(aggregate.input, _lift_projection))
    if not isinstance(aggregate.input, Project):
        return aggregate
    read = [key.expr for key in aggregate.keys]
    read += [arg for measure in aggregate.measures for arg in measure_args(measure)]
    names = _column_renames(aggregate.input, read)
    if names is None:
        return aggregate
    keys = tuple(Named(key.name, _substitute_columns(key.expr, names)) for key in aggregate.keys)
    measures = tuple(map_measure(measure, lambda arg: _substitute_columns(arg, names)) for measure in aggregate.measures)
    return replace(aggregate, input=aggregate.input.input, keys=keys, measures=measures)


def _lift_projection(node: Rows) -> Rows:
    """A projection above the filters and projections that read through it."""
    if isinstance(node, Filter) and isinstance(node.input, Project):
        names = _column_renames(node.input, [node.condition])
        if names is not None:
            return replace(node.input, input=Filter(node.input.input, _substitute_columns(node.condition, names)))
    if isinstance(node, Project) and isinstance(node.input, Project):
        names = _column_renames(node.input, [column.expr for column in node.columns])
        if names is not None:
            columns = tuple(Named(column.name, _substitute_columns(column.expr, names)) for column in node.columns)
            return Project(node.input.input, columns)
    return node


def _column_renames(project: Project, exprs: Iterable[Expr]) -> dict[str, Column] | None:
    """What the columns that are read are below; None where one of them is computed."""
    renames = {column.name: column.expr for column in project.columns if isinstance(column.expr, Column)}
    return renames if all(columns_of(expr) <= renames.keys() for expr in exprs) else None


def _substitute_columns(expr: Expr, names: dict[str, Column]) -> Expr:
    return map_expr(expr, lambda part: names[part.name] if isinstance(part, Column) else part)
