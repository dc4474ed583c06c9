"""What a statement about the catalog asks of its session, as literals: so that one database serves all sessions."""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from dpsql.catalog.identity import SCHEMA, Identity
from dpsql.catalog.objects import OWNER_NAME, USER
from dpsql.errors import InvalidParameter, Unsupported
from dpsql.sql.dialect import span_of

Setting = tuple[str, str, bool]
"""A name, a value, and whether it holds until the transaction ends."""

_NAMES = ("current_user", "current_role", "user")
_DATABASES = ("current_catalog", "current_database")
_TIMES = ("now", "current_timestamp", "clock_timestamp", "statement_timestamp", "transaction_timestamp",
          "pg_postmaster_start_time", "pg_conf_load_time")  # fmt: skip


def literal_of(name: str, node: exp.Expr, who: Identity, now: dt.datetime) -> exp.Expr:
    """The value of a function of `catalog_functions.SESSION`."""
    if name in _NAMES:
        return exp.Literal.string(who.user)
    if name == "session_user":
        return exp.Literal.string(who.login or who.user)
    if name in _DATABASES:
        return exp.Literal.string(who.database)
    if name in _TIMES:
        return exp.cast(exp.Literal.string(now.isoformat(" ")), "timestamptz")
    match name:
        case "localtimestamp":
            return exp.cast(exp.Literal.string(now.replace(tzinfo=None).isoformat(" ")), "timestamp")
        case "current_date":
            return exp.cast(exp.Literal.string(now.date().isoformat()), "date")
        case "current_schema":
            return exp.Literal.string(SCHEMA)
        case "current_schemas":
            return _schemas(node)
        case "version":
            return exp.Literal.string(who.version_text)
        case "current_setting":
            return _setting(node, who)
        case "set_config":
            return _set(node)
        case "pg_backend_pid":
            return exp.Literal.number(who.process)
        case "pg_get_userbyid":
            return exp.Anonymous(this="dp_get_userbyid", expressions=[*node.expressions, exp.Literal.string(who.user)])
        case "pg_has_role":
            return _has_role(node, who)
        case "to_regrole":
            return _role(node, who)
        case "row_security_active":
            return exp.false()
        case _:
            return exp.cast(exp.Null(), "text")


def _schemas(node: exp.Expr) -> exp.Expr:
    argument = next(iter(node.expressions), None)
    implicit = isinstance(argument, exp.Boolean) and bool(argument.this)
    names = ["pg_catalog", SCHEMA] if implicit else [SCHEMA]
    return exp.Array(expressions=[exp.Literal.string(name) for name in names])


def _text(node: exp.Expr | None) -> str | None:
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def _setting(node: exp.Expr, who: Identity) -> exp.Expr:
    name = _text(next(iter(node.expressions), None))
    if name is None:
        return _any_setting(node, who)
    value = who.variable(name)
    missing_ok = len(node.expressions) == 2 and isinstance(node.expressions[1], exp.Boolean)
    if value is None and not (missing_ok and bool(node.expressions[1].this)):
        raise InvalidParameter(f'unrecognized configuration parameter "{name}"', span=span_of(node), sqlstate="42704")
    return exp.cast(exp.Null(), "text") if value is None else exp.Literal.string(value)


def _any_setting(node: exp.Expr, who: Identity) -> exp.Expr:
    """Of a name that a row has."""
    if not node.expressions:
        raise Unsupported("current_setting takes the name of a setting", span=span_of(node))
    cases = [exp.If(this=exp.Literal.string(name.lower()), true=exp.Literal.string(value)) for name, value in
             who.variables]  # fmt: skip
    return exp.Case(this=exp.Anonymous(this="lower", expressions=[node.expressions[0].copy()]), ifs=cases)


def settings_of(tree: exp.Query) -> tuple[Setting, ...]:
    """What the statement sets by set_config(name, value, local), which the session does before it answers.

    Only where each is sure to be done once: in the list of a SELECT that reads no table.
    """
    found = []
    for node in tree.find_all(exp.Anonymous):
        if node.name.lower() == "set_config":
            alone = node.find_ancestor(exp.Select) is tree and not tree.args.get("from_") and not tree.args.get("where")
            if not alone or node.find_ancestor(exp.Case, exp.Subquery) is not None:
                raise Unsupported("set_config stands in a SELECT of its own", span=span_of(node),
                                  hint="SELECT set_config('search_path', 'public', false)")  # fmt: skip
            name, value = (_text(item) for item in (*node.expressions, None, None)[:2])
            local = node.expressions[2] if len(node.expressions) == 3 else None
            if name is None or value is None or not isinstance(local, exp.Boolean):
                told = "set_config takes a name and a value as text, and whether it is local"
                raise Unsupported(told, span=span_of(node))
            found.append((name.lower(), value, bool(local.this)))
    return tuple(found)


def _set(node: exp.Expr) -> exp.Expr:
    return exp.Literal.string(_text(node.expressions[1]) or "")


def _has_role(node: exp.Expr, who: Identity) -> exp.Expr:
    """Everyone has the role that is their own, and no other; of others' roles nothing is told."""
    own = (who.user, str(USER))
    asked = node.expressions[:-1] or [exp.Null()]  # the role, and before it perhaps the user who has it
    texts = [exp.cast(one.copy(), "text") for one in asked]
    return exp.and_(*(exp.In(this=one, expressions=[*map(exp.Literal.string, own)]) for one in texts))


def _role(node: exp.Expr, who: Identity) -> exp.Expr:
    name = _text(next(iter(node.expressions), None))
    number = {who.user: USER, OWNER_NAME: 10}.get(name or "")
    return exp.Null() if number is None else exp.Literal.number(number)
