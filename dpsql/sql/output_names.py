"""Names of output columns without an alias, as PostgreSQL makes them up."""

from __future__ import annotations

from sqlglot import exp

from dpsql.sql.dialect import WRITTEN

UNNAMED = "?column?"
TYPES = {"double": "float8", "float": "float4", "int": "int4", "bigint": "int8", "smallint": "int2",
         "decimal": "numeric", "char": "bpchar", "boolean": "bool"}  # fmt: skip
WORDS: dict[type[exp.Expr], str] = {
    exp.TimestampTrunc: "date_trunc", exp.StrPosition: "position", exp.GroupConcat: "string_agg",
    exp.AtTimeZone: "timezone", exp.JSONArrayAgg: "json_agg", exp.Exists: "exists", exp.Array: "array",
    exp.Overlaps: "overlaps",
}  # fmt: skip
"""Of what has a syntax of its own, and no name that was written."""

_NOTHING, _WEAK, _STRONG = range(3)
"""A name of a column or function stays under a cast; that of a type, or CASE, does not."""


def output_name(node: exp.Expr) -> str:
    """The name that PostgreSQL gives an output column without an alias."""
    return _named(node)[0]


def _named(node: exp.Expr) -> tuple[str, int]:
    match node:
        case exp.Column():
            return str(node.name if node.this.quoted else node.name.lower()), _STRONG
        case exp.Cast():
            below = _named(node.this)
            return below if below[1] == _STRONG else (type_name(node.to), _WEAK)
        case exp.Filter() | exp.Window() | exp.Paren() | exp.WithinGroup() | exp.Bracket() | exp.IgnoreNulls():
            return _named(node.this)
        case exp.Case():
            default = node.args.get("default")
            below = _named(default) if isinstance(default, exp.Expr) else (UNNAMED, _NOTHING)
            return below if below[1] == _STRONG else ("case", _WEAK)
        case exp.Subquery() if isinstance(node.this, exp.Select) and node.this.selects:
            first = node.this.selects[0]
            return (str(first.alias), _STRONG) if isinstance(first, exp.Alias) else _named(first)
        case exp.Interval():
            return "interval", _WEAK
        case exp.Trim():
            side = str(node.args.get("position")).upper()
            return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "btrim"), _STRONG
        case exp.Anonymous():
            return str(node.this).lower(), _STRONG
    return _function_name(node)


def _function_name(node: exp.Expr) -> tuple[str, int]:
    written = node.meta.get(WRITTEN)
    if written:
        return str(written).lower(), _STRONG
    if type(node) in WORDS:
        return WORDS[type(node)], _STRONG
    if isinstance(node, exp.Func) and not isinstance(node, exp.Binary | exp.Connector):  # else it is an operator
        return str(node.sql_name()).lower(), _STRONG
    return UNNAMED, _NOTHING


def type_name(to: exp.DataType) -> str:
    """As PostgreSQL's pg_type has it: without precision, and int4 for INTEGER."""
    if to.args.get("nested") and to.expressions:
        return type_name(to.expressions[0])
    word = to.sql().partition("(")[0].lower()
    return TYPES.get(word, word)
