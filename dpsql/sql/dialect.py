"""The one SQL that analysts write: sqlglot's PostgreSQL plus DuckDB's spellings."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import TokenType

from dpsql.errors import Unsupported
from dpsql.span import Span
from dpsql.sql.spellings import FUNCTIONS

WRITTEN = "written"
"""The note in which a function keeps its name as it was written."""


class Reader(Postgres):
    ORIGINAL_NAME_META_KEY = WRITTEN

    class Tokenizer(Postgres.Tokenizer):
        KEYWORDS = {**Postgres.Tokenizer.KEYWORDS, "//": TokenType.DIV}

    class Parser(PostgresParser):
        FUNCTIONS = {**PostgresParser.FUNCTIONS, **FUNCTIONS}


def span_of(node: exp.Expr) -> Span | None:
    """From the first to the last character that sqlglot remembers of a node and all below it."""
    spans = [Span(n.meta["start"], n.meta["end"] + 1) for n in node.walk() if "start" in n.meta]
    if not spans:
        return None
    result = spans[0]
    for span in spans[1:]:
        result = result.union(span)
    return result


# What a node may carry without meaning anything here: notes of the parser for its own generators.
NOTES = frozenset({"typed", "safe", "big_int", "coalesce", "ignore_nulls", "_type", "nested", "value_constructor"})


CLAUSES = {
    ("", "pivots"): "PIVOT",
    ("", "hints"): "a table hint",
    ("", "hint"): "a hint",
    ("", "locks"): "FOR UPDATE",
    ("", "laterals"): "LATERAL",
    ("", "sample"): "TABLESAMPLE",
    ("", "into"): "INTO",
    ("", "match_condition"): "MATCH_CONDITION",
    ("", "grouping_sets"): "GROUPING SETS",
    ("", "limit_options"): "WITH TIES",
    ("", "query"): "a sub-select",
    ("", "unnest"): "UNNEST",
    ("", "having_max"): "HAVING MAX",
    ("tablealias", "columns"): "a list of column names",
    ("join", "method"): "NATURAL, ASOF or another method",
    ("count", "expressions"): "a second argument",
    ("in", "field"): "a column as list",
    ("distinct", "on"): "DISTINCT ON",
    ("trim", "position"): "BOTH, LEADING or TRAILING",
    ("trim", "expression"): "TRIM of other characters",
    ("select", "kind"): "AS STRUCT or VALUE",
    ("group", "all"): "GROUP BY ALL",
    ("with", "recursive"): "RECURSIVE",
}
WORDS = {
    "tablealias": "an alias", "anonymous": "a function", "similarto": "SIMILAR TO", "nullsafeneq": "IS DISTINCT FROM",
    "nullsafeeq": "IS NOT DISTINCT FROM", "havingmax": "HAVING MAX", "groupingsets": "GROUPING SETS",
    "regexplike": "~", "regexpilike": "~*", "tuple": "a list of values", "ordered": "ORDER BY", "order": "ORDER BY",
    "withingroup": "WITHIN GROUP", "subquery": "a sub-select", "cte": "a CTE", "collate": "COLLATE", "escape": "ESCAPE",
    "bytestring": "E''", "interval": "INTERVAL", "atttimezone": "AT TIME ZONE", "attimezone": "AT TIME ZONE",
    "rand": "RANDOM()", "currentversion": "VERSION()", "timestamptrunc": "DATE_TRUNC()", "strtodate": "a format",
    "rollup": "ROLLUP", "cube": "CUBE", "limit": "LIMIT", "array": "an array", "bracket": "[ ]",
    "groupconcat": "STRING_AGG()", "jsonarrayagg": "JSON_AGG()", "bitwiseleftshift": "<<", "bitwiserightshift": ">>",
    "parameter": "a parameter $n", "placeholder": "a placeholder",
}  # fmt: skip


def only(node: exp.Expr, *consumed: str) -> None:
    """Refuse a node that carries more than the caller reads (law 3: nothing is dropped silently)."""
    for name, value in node.args.items():
        if name in consumed or name in NOTES or value is None or value is False or value == []:
            continue
        inner = value[0] if isinstance(value, list) else value
        where = span_of(inner) if isinstance(inner, exp.Expr) else span_of(node)
        word = CLAUSES.get((node.key, name)) or CLAUSES.get(("", name)) or name.rstrip("_").replace("_", " ").upper()
        raise Unsupported(
            f"{word} is not supported over private rows",
            hint="Leave it out, or move it to an outer SELECT over the aggregated rows.",
            span=where,
        )


def spelled(node: exp.Expr) -> str:
    """What an analyst would call this node."""
    if isinstance(node, exp.Anonymous):
        return f"{str(node.this).upper()}()"
    if node.meta.get(WRITTEN):
        return f"{str(node.meta[WRITTEN]).upper()}()"
    if node.key in WORDS:
        return WORDS[node.key]
    if isinstance(node, exp.Func):
        return f"{node.sql_name()}()"
    return node.key.replace("_", " ").upper()
