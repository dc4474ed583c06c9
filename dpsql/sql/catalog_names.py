"""The name of an output column that has none of its own, as PostgreSQL makes it up."""

from __future__ import annotations

from sqlglot import exp

from dpsql.sql.catalog_types import cast_type, session_function

UNNAMED = "?column?"


def title(node: exp.Expr) -> str:
    """The last name that stands in an expression: a column's, a function's, a cast's type."""
    return _title(node) or UNNAMED


def _title(node: exp.Expr) -> str | None:
    name = session_function(node)
    if name is not None:
        return {"current_catalog": "current_catalog"}.get(name, name)
    match node:
        case exp.Column():
            return str(node.name)
        case exp.Dot():
            return _title(node.expression) if isinstance(node.expression, exp.Anonymous) else str(node.name)
        case exp.Anonymous():
            return str(node.name).lower()
        case exp.Cast():
            return _title(node.this) or _type_name(node.args["to"])
        case exp.Paren() | exp.Collate() | exp.Bracket() | exp.Filter() | exp.Window() | exp.AtTimeZone():
            return _title(node.this)
        case exp.Case():
            default = node.args.get("default")
            return (_title(default) if isinstance(default, exp.Expr) else None) or "case"
        case exp.Array():
            return "array"
        case exp.Exists():
            return "exists"
        case exp.Subquery():
            return _of_query(node.this)
        case exp.Trim():
            return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")).upper(), "btrim")
        case exp.Substring():
            return "substring"
        case exp.StrPosition():
            return "position"
        case exp.Extract():
            return "extract"
    return "bool" if isinstance(node, exp.Boolean) else None


def _type_name(to: exp.Expr) -> str:
    """As it is written, or as pg_type has it."""
    kind = to.args.get("kind")
    if isinstance(kind, exp.Expr):
        return str((kind.expression if isinstance(kind, exp.Dot) else kind).name)
    return cast_type(to).removesuffix("[]")


def _of_query(query: exp.Expr) -> str | None:
    first = query.expressions[0] if isinstance(query, exp.Select) and query.expressions else None
    if isinstance(first, exp.Alias):
        return str(first.alias)
    return _title(first) if isinstance(first, exp.Expr) else None
