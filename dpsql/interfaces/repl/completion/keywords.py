"""Words of SQL that the prompt knows: for colours and for completion."""

from __future__ import annotations

STATEMENT_KEYWORDS = (
    "SELECT", "WITH", "EXPLAIN", "DESCRIBE", "SHOW", "SET", "RESET", "BEGIN", "COMMIT", "ROLLBACK", "VALUES",
    "CREATE", "DROP", "DECLARE", "ASK", "CLOSE",
)  # fmt: skip
"""How a statement may begin."""

CLAUSE_KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "QUALIFY", "WINDOW", "ORDER BY", "LIMIT", "OFFSET", "UNION ALL",
    "UNION", "INTERSECT", "EXCEPT", "JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN",
    "NATURAL JOIN", "LATERAL", "ON", "USING", "AS",
)  # fmt: skip
"""What may follow what is whole."""

EXPRESSION_KEYWORDS = (
    "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "SIMILAR TO", "IS NULL", "IS NOT NULL", "IS DISTINCT FROM",
    "CASE", "WHEN", "THEN", "ELSE", "END", "DISTINCT", "EXISTS", "NULL", "TRUE", "FALSE", "CAST", "INTERVAL", "DATE",
    "TIMESTAMP", "FILTER", "WITHIN GROUP", "OVER", "PARTITION BY", "ASC", "DESC", "NULLS FIRST", "NULLS LAST", "ALL",
    "ROLLUP", "CUBE", "GROUPING SETS", "CURRENT_DATE", "CURRENT_TIMESTAMP", "AT TIME ZONE", "EXTRACT", "ROWS BETWEEN",
    "UNBOUNDED PRECEDING", "CURRENT ROW",
)  # fmt: skip
"""What may stand in an expression."""

OTHER_KEYWORDS = (
    "RECURSIVE", "MATERIALIZED", "OUTER", "PRECEDING", "FOLLOWING", "RANGE", "GROUPS", "ESCAPE", "SYMMETRIC", "UNKNOWN",
    "ANY", "SOME", "FETCH", "NEXT", "ONLY", "TIES", "PIVOT", "UNPIVOT", "DIFFERENTIAL_PRIVACY", "OPTIONS", "TABLES",
    "BUDGET", "LOCAL", "SESSION", "SAVEPOINT", "RELEASE", "TRANSACTION", "START", "WORK", "DISCARD", "ANALYZE",
    "VERBOSE", "TO", "DEFAULT", "SUMMARIZE", "COLLATE", "EXCLUDE",
    "SYNTHETIC", "TABLE", "MODEL", "MODELS", "LOGISTIC", "LINEAR", "REGRESSION", "REPLACE", "IF",
    "THRESHOLD", "THRESHOLDS", "HOLDOUT", "HOLDOUTS", "AGAINST",
)  # fmt: skip

TYPE_NAMES = frozenset(
    {"boolean", "bool", "smallint", "int2", "integer", "int", "int4", "bigint", "int8", "hugeint", "decimal", "numeric",
     "real", "float4", "float", "double", "float8", "text", "varchar", "char", "date", "timestamp", "timestamptz",
     "datetime", "time", "interval", "uuid"}
)  # fmt: skip

KEYWORDS = frozenset(
    word.lower()
    for phrase in (*STATEMENT_KEYWORDS, *CLAUSE_KEYWORDS, *EXPRESSION_KEYWORDS, *OTHER_KEYWORDS)
    for word in phrase.split()
) - {
    "at",
    "row",
    "rows",
    "work",
    "groups",
    "time",
    "zone",
    "options",
    "budget",
    "tables",
    "first",
    "last",
    "next",
    "date",
    "timestamp",
    "interval",
    "model",
    "models",
    "linear",
    "replace",
    "synthetic",
    "regression",
    "ask",
    "close",
    "threshold",
    "thresholds",
    "holdout",
    "holdouts",
    "against",
}
"""Those that are seldom a column's name."""

RESERVED_WORDS = frozenset(
    {"all", "and", "any", "as", "asc", "between", "case", "cast", "cross", "cube", "current_date", "current_timestamp",
     "desc", "distinct", "else", "end", "except", "exists", "extract", "false", "fetch", "from", "full", "group",
     "grouping", "having", "in", "inner", "intersect", "interval", "is", "join", "lateral", "left", "like", "ilike",
     "limit", "natural", "not", "null", "offset", "on", "only", "or", "order", "outer", "partition", "pivot", "qualify",
     "right", "rollback", "rollup", "select", "set", "similar", "some", "then", "to", "true", "union", "unpivot",
     "using", "values", "when", "where", "window", "with", "within"}
)  # fmt: skip
"""Words that, without quotes, are no alias of what stands before them. What a name must be quoted for: `quoting`."""

FUNCTION_KEYWORDS = frozenset({"left", "right", "extract", "cast", "exclude", "replace"})
"""Words that are functions where a parenthesis follows."""
