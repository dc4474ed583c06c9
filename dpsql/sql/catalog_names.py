"""The name of an output column that has none of its own, as PostgreSQL makes it up."""

from __future__ import annotations

from sqlglot import exp

from dpsql.sql.catalog_types import cast_type, session_function

UNNAMED = "?column?"


def title(node: exp.Expr) -> str:
    """The last name that stands in an expression: a column's or function's, else a cast's type, else what it is."""
    return _title(node)[0] or UNNAMED


_WEAK, _STRONG = 1, 2
"""A name of a column or function stays under a cast; that of a type, or CASE, does not."""


def _title(node: exp.Expr) -> tuple[str | None, int]:
    name = session_function(node)
    if name is not None:
        return name, _STRONG
    match node:
        case exp.Column() | exp.Dot():
            inner = node.expression if isinstance(node, exp.Dot) else None
            return _title(inner) if isinstance(inner, exp.Anonymous) else (str(node.name), _STRONG)
        case exp.Anonymous():
            return str(node.name).lower(), _STRONG
        case exp.Cast():
            below, strength = _title(node.this)
            return (below, strength) if strength == _STRONG else (_type_name(node.args["to"]), _WEAK)
        case exp.Paren() | exp.Collate() | exp.Bracket() | exp.Filter() | exp.Window():
            return _title(node.this)
        case exp.Case():
            default = node.args.get("default")
            below, strength = _title(default) if isinstance(default, exp.Expr) else (None, 0)
            return (below, strength) if strength == _STRONG else ("case", _WEAK)
        case exp.Subquery():
            return _of_query(node.this)
        case exp.Trim():
            side = str(node.args.get("position")).upper()
            return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "btrim"), _STRONG
    for kind, word in _WORDS:
        if isinstance(node, kind):
            return word, _STRONG
    return ("interval", _WEAK) if isinstance(node, exp.Interval) else (None, 0)


_WORDS: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Array, "array"),
    (exp.Exists, "exists"),
    (exp.Substring, "substring"),
    (exp.StrPosition, "position"),
    (exp.Extract, "extract"),
    (exp.AtTimeZone, "timezone"),
)


def _type_name(to: exp.Expr) -> str:
    """As it is written, or as pg_type has it."""
    kind = to.args.get("kind")
    if isinstance(kind, exp.Expr):
        return str((kind.expression if isinstance(kind, exp.Dot) else kind).name)
    return cast_type(to).removesuffix("[]")


def _of_query(query: exp.Expr) -> tuple[str | None, int]:
    first = query.expressions[0] if isinstance(query, exp.Select) and query.expressions else None
    if isinstance(first, exp.Alias):
        return str(first.alias), _STRONG
    return _title(first) if isinstance(first, exp.Expr) else (None, 0)
