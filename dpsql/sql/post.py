"""Post-processing as the sandbox's SQL. Only releases are there, so sqlglot's own generator is good enough."""

from __future__ import annotations

from sqlglot import ErrorLevel, exp

from dpsql.errors import Unsupported
from dpsql.sql.growing import limit_result_sizes
from dpsql.sql.meanings import apply_postgres_semantics
from dpsql.sql.number_formats import rewrite_number_formats
from dpsql.sql.sandboxed import GENERATOR_ERRORS


def render_postprocessing(post: exp.Query) -> str:
    """What the generator cannot write is refused; by default it would be left out, with a line in a log."""
    for series in [node for node in post.find_all(exp.ExplodingGenerateSeries) if isinstance(node.parent, exp.Explode)]:
        series.replace(exp.GenerateSeries(**{key: value for key, value in series.args.items() if value is not None}))
    limit_result_sizes(post)
    rewrite_number_formats(post)
    apply_postgres_semantics(post)
    try:
        return str(post.sql(dialect="duckdb", unsupported_level=ErrorLevel.RAISE))
    except GENERATOR_ERRORS:
        raise Unsupported(
            "a clause after the aggregation is not supported", hint="DuckDB has no such clause for a SELECT."
        ) from None


def tables_read_by(post: exp.Query) -> frozenset[str]:
    """The names of all tables that a post-processing query reads, CTEs of its own among them."""
    return frozenset(table.name for table in post.find_all(exp.Table))
