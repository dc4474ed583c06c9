"""Functions that post-processing may call; those that reach the environment, and files as sources, are refused."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dpsql.compiler.bind.blockwise import BLOCKWISE_NAME
from dpsql.compiler.bind.posteriors import POSTERIOR_FUNCTIONS
from dpsql.compiler.bind.selections import SCORED_FUNCTIONS
from dpsql.compiler.parse.dialect import span_of, sql_name_of
from dpsql.compiler.parse.googlesql import PER_GROUP
from dpsql.errors import Unsupported

DENIED_FUNCTIONS = frozenset(
    {
        "add_parquet_key", "arrow_scan", "arrow_scan_dumb", "assert_true", "checkpoint", "copy_database",
        "current_catalog", "current_connection_id", "current_database", "current_query", "current_query_id",
        "current_role", "current_schema", "current_schemas", "current_setting", "current_transaction_id",
        "current_user", "currval", "disable_logging", "disable_profiling", "enable_logging", "enable_profiling",
        "error", "force_checkpoint", "force_download", "gen_random_uuid", "get_current_time",
        "get_current_timestamp", "getenv", "getvariable", "glob", "icu_calendar_names", "in_search_path",
        "json_deserialize_sql", "json_execute_serialized_sql", "json_serialize_plan", "json_serialize_sql",
        "nextval", "pandas_scan", "parse_duckdb_log_message", "python_map_function", "query", "query_table",
        "random", "scan_arrow_ipc", "seq_scan", "session_user", "set_config", "setseed", "sleep_ms", "sniff_csv",
        "stats", "storage_info", "table_info", "test_all_types", "test_vector_types", "today",
        "current_local", "current_localtime", "current_localtimestamp", "current_version",
        "transaction_timestamp", "txid_current", "user", "uuid", "uuidv4", "uuidv7", "version", "which_secret",
        "write_log",
    }
)  # fmt: skip
DENIED_PREFIXES = ("duckdb_", "from_substrait", "get_substrait", "has_", "parquet_", "pg_", "pragma_", "read_")
GENERATOR_ERRORS = (SqlglotError, AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What sqlglot's generator raises for a call that another dialect writes with other arguments."""
SOURCE_FUNCTIONS = ("unnest", "generate_series", "range")


def check_allowed_function(node: exp.Expr) -> None:
    """Refuse a call by name; everything else the locked sandbox has is harmless."""
    if isinstance(node, exp.Parameter | exp.Placeholder | exp.SessionParameter):
        # The sandbox has parameters of its own, the releases.
        raise Unsupported("a parameter is written ?", span=span_of(node))
    if not isinstance(node, exp.Func):
        return
    if isinstance(node, exp.Anonymous) and node.name.lower() == PER_GROUP:
        raise Unsupported(
            f"{PER_GROUP} is for private rows",
            hint="Leave it out: released rows belong to no privacy unit.",
            span=span_of(node),
        )
    refuse_private_only(node)
    if any(name in DENIED_FUNCTIONS or name.startswith(DENIED_PREFIXES) for name in function_names_of(node)):
        raise Unsupported(f"{sql_name_of(node)} is not available", span=span_of(node))


def function_names_of(node: exp.Func) -> list[str]:
    """Every name that sqlglot, or DuckDB, may have for the function."""
    if isinstance(node, exp.Anonymous):
        return [node.name.lower()]  # the bare name, also of one in quotes
    names = [name.lower() for name in node.sql_names()]
    try:
        written = node.sql(dialect="duckdb").split("(")[0].lower()
    except GENERATOR_ERRORS:
        raise Unsupported(f"{sql_name_of(node)} is not available", span=span_of(node)) from None
    return [*names, written]


def check_allowed_source(source: exp.Expr) -> None:
    """FROM in post-processing: releases, VALUES, also of columns before it, unnest and series only."""
    if isinstance(source, exp.Values | exp.Unnest) or lateral_values(source) is not None:
        return
    inner = source.this if isinstance(source, exp.Table | exp.Lateral) else source
    if isinstance(inner, exp.Func) and any(name in SOURCE_FUNCTIONS for name in function_names_of(inner)):
        return
    if isinstance(source, exp.Lateral):
        raise Unsupported(
            "LATERAL is for private rows that look at rows of their own unit",
            hint="Join with a sub-select that is grouped by what it is compared with: LEFT JOIN (SELECT doctor_id,"
            " COUNT(*) AS n FROM visits GROUP BY doctor_id) AS x ON x.doctor_id = d.doctor_id.",
            span=span_of(source),
        )
    raise Unsupported(
        "this cannot stand in FROM", hint=f"Tables, sub-selects, VALUES and {', '.join(SOURCE_FUNCTIONS)} can.",
        span=span_of(source),
    )  # fmt: skip


def lateral_values(source: exp.Expr) -> exp.Values | None:
    """The VALUES of LATERAL (VALUES ('n', t.n), ('mean', t.mean)) AS v(what, value)."""
    inner = source.this if isinstance(source, exp.Lateral) else None
    values = inner.this if isinstance(inner, exp.Subquery) else None
    return values if isinstance(values, exp.Values) else None


# Functions that there are over private rows alone: what to write over rows that are public or released.

PRIVATE_ONLY_FUNCTIONS = SCORED_FUNCTIONS | POSTERIOR_FUNCTIONS | {BLOCKWISE_NAME, "randomized"}


def refuse_private_only(node: exp.Expr) -> None:
    """They are there for their noise, and what has none to hide is asked plainly."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name in PRIVATE_ONLY_FUNCTIONS:
        plain = _plain_equivalent(name, [_node_text(part) for part in node.expressions])
        raise Unsupported(
            f"{sql_name_of(node)} is for private rows, and these are public or released",
            hint=f"Nothing of them is hidden: write {plain}.",
            span=span_of(node),
        )


def _plain_equivalent(name: str, arguments: list[str]) -> str:
    first = arguments[0] if arguments else "x"
    if name in ("private_argmax", "private_top_k"):
        score = arguments[1] if len(arguments) > 1 else "COUNT(*)"
        limit = arguments[2] if name == "private_top_k" and len(arguments) > 2 else "1"
        return f"SELECT {first} … GROUP BY {first} ORDER BY {_sum_if_plain(score)} DESC LIMIT {limit}"
    if name.startswith("dirichlet"):
        return f"SELECT {first}, COUNT(*) … GROUP BY {first}"
    if name.startswith("normal"):
        return f"AVG({first}) and STDDEV({first})"
    if name.startswith("beta") or name == "posterior_sample":
        return f"AVG(CAST({first} AS INTEGER))"
    return first


def _sum_if_plain(score: str) -> str:
    """A plain expression means its sum."""
    return score if score.endswith(")") else f"SUM({score})"


def _node_text(node: exp.Expr) -> str:
    return str(node.sql(dialect="postgres"))
