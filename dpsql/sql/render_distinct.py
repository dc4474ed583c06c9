"""The distinct values of each group as DuckDB SQL, of which a unit brings at most its limit."""

from __future__ import annotations

from dpsql.plan.expr import UID
from dpsql.plan.nodes import Distinct
from dpsql.sql.literals import quote_identifier


def render_distinct_rows(node: Distinct, rows: str, ctes: dict[str, str]) -> str:
    """A source with one row for each group and value that some unit keeps.

    First the pairs of each unit, of which the heavy ones keep the first by hash, then by value; then DISTINCT over all
    units. Only units with more pairs than the limit are ranked.
    """
    names = ", ".join(quote_identifier(name) for name in (*node.keys, *node.columns))
    present = f"{quote_identifier(node.columns[0])} IS NOT NULL"
    if node.limit is None:
        return f"(SELECT DISTINCT {names} FROM {rows} WHERE {present})"
    number = sum(name.startswith("values") for name in ctes) + 1
    pairs, many = f"values{number}", f"many{number}"
    ctes[pairs] = f"MATERIALIZED (SELECT DISTINCT {UID}, {names} FROM {rows} WHERE {present})"
    ctes[many] = f"MATERIALIZED (SELECT {UID} FROM {pairs} GROUP BY {UID} HAVING COUNT(*) > {node.limit})"
    rank = f"row_number() OVER (PARTITION BY {UID} ORDER BY hash({UID}, {names}), {names})"
    ranked = f"SELECT {names}, {rank} AS place FROM {pairs} SEMI JOIN {many} USING ({UID})"
    return (
        f"(SELECT {names} FROM {pairs} ANTI JOIN {many} USING ({UID}) UNION "
        f"SELECT {names} FROM ({ranked}) WHERE place <= {node.limit})"
    )
