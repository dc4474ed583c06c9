"""Names of output columns without an alias, as PostgreSQL makes them up."""

from __future__ import annotations

from sqlglot import exp

from dpsql.sql.dialect import WRITTEN_NAME_KEY

UNNAMED_COLUMN = "?column?"
PG_TYPE_NAMES = {"double": "float8", "float": "float4", "int": "int4", "bigint": "int8", "smallint": "int2",
         "decimal": "numeric", "char": "bpchar", "boolean": "bool"}  # fmt: skip
SYNTAX_NAMES: dict[type[exp.Expr], str] = {
    exp.TimestampTrunc: "date_trunc", exp.StrPosition: "position", exp.GroupConcat: "string_agg",
    exp.AtTimeZone: "timezone", exp.JSONArrayAgg: "json_agg", exp.Exists: "exists", exp.Array: "array",
    exp.Overlaps: "overlaps",
}  # fmt: skip
"""Of what has a syntax of its own, and no name that was written."""

_NO_NAME, _WEAK_NAME, _STRONG_NAME = range(3)
"""A name of a column or function stays under a cast; that of a type, or CASE, does not."""


def output_name(node: exp.Expr) -> str:
    """The name that PostgreSQL gives an output column without an alias."""
    return _name_and_strength(node)[0]


def _name_and_strength(node: exp.Expr) -> tuple[str, int]:
    match node:
        case exp.Column():
            return str(node.name if node.this.quoted else node.name.lower()), _STRONG_NAME
        case exp.Cast():
            below = _name_and_strength(node.this)
            return below if below[1] == _STRONG_NAME else (pg_type_name(node.to), _WEAK_NAME)
        case exp.Filter() | exp.Window() | exp.Paren() | exp.WithinGroup() | exp.Bracket() | exp.IgnoreNulls():
            return _name_and_strength(node.this)
        case exp.Case():
            default = node.args.get("default")
            below = _name_and_strength(default) if isinstance(default, exp.Expr) else (UNNAMED_COLUMN, _NO_NAME)
            return below if below[1] == _STRONG_NAME else ("case", _WEAK_NAME)
        case exp.Subquery() if isinstance(node.this, exp.Select) and node.this.selects:
            first = node.this.selects[0]
            return (str(first.alias), _STRONG_NAME) if isinstance(first, exp.Alias) else _name_and_strength(first)
        case exp.Interval():
            return "interval", _WEAK_NAME
        case exp.Trim():
            side = str(node.args.get("position")).upper()
            return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "btrim"), _STRONG_NAME
        case exp.Anonymous():
            return str(node.this).lower(), _STRONG_NAME
    return _function_output_name(node)


def _function_output_name(node: exp.Expr) -> tuple[str, int]:
    written = node.meta.get(WRITTEN_NAME_KEY)
    if written:
        return str(written).lower(), _STRONG_NAME
    if type(node) in SYNTAX_NAMES:
        return SYNTAX_NAMES[type(node)], _STRONG_NAME
    if isinstance(node, exp.Func) and not isinstance(node, exp.Binary | exp.Connector):  # else it is an operator
        return str(node.sql_name()).lower(), _STRONG_NAME
    return UNNAMED_COLUMN, _NO_NAME


def pg_type_name(to: exp.DataType) -> str:
    """As PostgreSQL's pg_type has it: without precision, and int4 for INTEGER."""
    if to.args.get("nested") and to.expressions:
        return pg_type_name(to.expressions[0])
    word = to.sql().partition("(")[0].lower()
    return PG_TYPE_NAMES.get(word, word)
