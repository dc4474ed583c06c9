"""Names of tables and columns as they are written in a statement.

Law: what `quote_name` gives means that name and nothing else. `current_user` without quotes is a function, and a question
about the wrong thing would be charged.
"""

from __future__ import annotations

import re

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

RESERVED_WORDS = frozenset(
    {"all", "alter", "analyse", "analyze", "and", "anti", "any", "array", "as", "asc", "asof", "asymmetric",
     "authorization", "between", "both", "case", "cast", "check", "collate", "collation", "column",
     "concurrently", "connect_by_root", "constraint", "create", "cross", "cube", "current_catalog", "current_date",
     "current_role", "current_schema", "current_time", "current_timestamp", "current_user", "default", "deferrable",
     "desc", "describe", "distinct", "do", "drop", "else", "end", "except", "exists", "extract", "false", "fetch",
     "for", "foreign", "freeze", "from", "full", "glob", "grant", "group", "grouping", "having", "if", "ilike", "in",
     "initially", "inner", "insert", "intersect", "interval", "into", "is", "isnull", "join", "lambda", "lateral",
     "leading", "left", "like", "limit", "localtime", "localtimestamp", "lock", "natural", "not", "notnull", "null",
     "offset", "on", "only", "or", "order", "outer", "overlaps", "partition", "partitioned_by", "pivot",
     "pivot_longer", "pivot_wider", "placing", "positional", "primary", "qualify", "references", "regexp", "returning",
     "revoke", "right", "rlike", "rollback", "rollup", "select", "semi", "session_user", "set", "show", "similar",
     "some", "summarize", "symmetric", "system_user", "table", "tablesample", "then", "to", "trailing", "true",
     "uncache", "union", "unique", "unpack", "unpivot", "user", "using", "values", "variadic", "verbose", "when",
     "where", "window", "with", "within", "xor"}
)  # fmt: skip
"""Words that read as something else without quotes, here or in DuckDB; or badly as a name."""


def quote_name(name: str, always: bool = False) -> str:
    """The name as it is written in a statement.

    >>> print(quote_name("ward"), quote_name("number of visits"), quote_name("order"), quote_name('My "Ward"'))
    ward "number of visits" "order" "My ""Ward\"""
    """
    if not always and _PLAIN_NAME.fullmatch(name) and name.lower() not in RESERVED_WORDS:
        return name
    return '"' + name.replace('"', '""') + '"'
