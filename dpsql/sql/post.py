"""Post-processing as the sandbox's SQL. Only releases are there, so sqlglot's own generator is good enough."""

from __future__ import annotations

from sqlglot import exp


def render_post(post: exp.Query) -> str:
    return str(post.sql(dialect="duckdb"))
