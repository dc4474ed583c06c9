"""The name of an output column that has none of its own, as PostgreSQL makes it up."""

from __future__ import annotations

from sqlglot import exp

from dpsql.sql.catalog_types import cast_target_type, session_function_of

UNNAMED_COLUMN = "?column?"


def postgres_column_name(node: exp.Expr) -> str:
    """The last name that stands in an expression: a column's or function's, else a cast's type, else what it is."""
    return _name_and_strength(node)[0] or UNNAMED_COLUMN


_WEAK_NAME, _STRONG_NAME = 1, 2
"""A name of a column or function stays under a cast; that of a type, or CASE, does not."""


def _name_and_strength(node: exp.Expr) -> tuple[str | None, int]:
    name = session_function_of(node)
    if name is not None:
        return name, _STRONG_NAME
    match node:
        case exp.Column() | exp.Dot():
            inner = node.expression if isinstance(node, exp.Dot) else None
            return _name_and_strength(inner) if isinstance(inner, exp.Anonymous) else (str(node.name), _STRONG_NAME)
        case exp.Anonymous():
            return str(node.name).lower(), _STRONG_NAME
        case exp.Cast():
            below, strength = _name_and_strength(node.this)
            return (below, strength) if strength == _STRONG_NAME else (_cast_type_name(node.args["to"]), _WEAK_NAME)
        case exp.Paren() | exp.Collate() | exp.Bracket() | exp.Filter() | exp.Window():
            return _name_and_strength(node.this)
        case exp.Case():
            default = node.args.get("default")
            below, strength = _name_and_strength(default) if isinstance(default, exp.Expr) else (None, 0)
            return (below, strength) if strength == _STRONG_NAME else ("case", _WEAK_NAME)
        case exp.Subquery():
            return _query_column_name(node.this)
        case exp.Trim():
            side = str(node.args.get("position")).upper()
            return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "btrim"), _STRONG_NAME
    for kind, word in _NODE_FUNCTION_NAMES:
        if isinstance(node, kind):
            return word, _STRONG_NAME
    return ("interval", _WEAK_NAME) if isinstance(node, exp.Interval) else (None, 0)


_NODE_FUNCTION_NAMES: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Array, "array"),
    (exp.Exists, "exists"),
    (exp.Substring, "substring"),
    (exp.StrPosition, "position"),
    (exp.Extract, "extract"),
    (exp.AtTimeZone, "timezone"),
)


def _cast_type_name(to: exp.Expr) -> str:
    """As it is written, or as pg_type has it."""
    kind = to.args.get("kind")
    if isinstance(kind, exp.Expr):
        return str((kind.expression if isinstance(kind, exp.Dot) else kind).name)
    return cast_target_type(to).removesuffix("[]")


def _query_column_name(query: exp.Expr) -> tuple[str | None, int]:
    first = query.expressions[0] if isinstance(query, exp.Select) and query.expressions else None
    if isinstance(first, exp.Alias):
        return str(first.alias), _STRONG_NAME
    return _name_and_strength(first) if isinstance(first, exp.Expr) else (None, 0)
