"""What a statement about the catalog asks of its session, as literals: so that one database serves all sessions."""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from dpsql.catalog.identity import DEFAULT_SCHEMA, Identity
from dpsql.catalog.objects import OWNER_NAME, USER_OID
from dpsql.errors import InvalidParameter, Unsupported
from dpsql.sql.dialect import span_of

SettingChange = tuple[str, str, bool]
"""A name, a value, and whether it holds until the transaction ends."""

_USER_FUNCTIONS = ("current_user", "current_role", "user")
_DATABASE_FUNCTIONS = ("current_catalog", "current_database")
_TIME_FUNCTIONS = ("now", "current_timestamp", "clock_timestamp", "statement_timestamp", "transaction_timestamp",
          "pg_postmaster_start_time", "pg_conf_load_time")  # fmt: skip


def evaluate_session_function(name: str, node: exp.Expr, identity: Identity, now: dt.datetime) -> exp.Expr:
    """The value of a function of `catalog_functions.SESSION`."""
    if name in _USER_FUNCTIONS:
        return exp.Literal.string(identity.user)
    if name == "session_user":
        return exp.Literal.string(identity.login or identity.user)
    if name in _DATABASE_FUNCTIONS:
        return exp.Literal.string(identity.database)
    if name in _TIME_FUNCTIONS:
        return exp.cast(exp.Literal.string(now.isoformat(" ")), "timestamptz")
    match name:
        case "localtimestamp":
            return exp.cast(exp.Literal.string(now.replace(tzinfo=None).isoformat(" ")), "timestamp")
        case "current_date":
            return exp.cast(exp.Literal.string(now.date().isoformat()), "date")
        case "current_schema":
            return exp.Literal.string(DEFAULT_SCHEMA)
        case "current_schemas":
            return _current_schemas(node)
        case "version":
            return exp.Literal.string(identity.version_text)
        case "current_setting":
            return _current_setting(node, identity)
        case "set_config":
            return _set_config_value(node)
        case "pg_backend_pid":
            return exp.Literal.number(identity.process)
        case "pg_get_userbyid":
            return exp.Anonymous(this="dp_get_userbyid", expressions=[*node.expressions, exp.Literal.string(identity.user)])
        case "pg_has_role":
            return _rewrite_has_role(node, identity)
        case "to_regrole":
            return _role_oid(node, identity)
        case "row_security_active":
            return exp.false()
        case _:
            return exp.cast(exp.Null(), "text")


def _current_schemas(node: exp.Expr) -> exp.Expr:
    argument = next(iter(node.expressions), None)
    implicit = isinstance(argument, exp.Boolean) and bool(argument.this)
    names = ["pg_catalog", DEFAULT_SCHEMA] if implicit else [DEFAULT_SCHEMA]
    return exp.Array(expressions=[exp.Literal.string(name) for name in names])


def _string_value_of(node: exp.Expr | None) -> str | None:
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def _current_setting(node: exp.Expr, identity: Identity) -> exp.Expr:
    name = _string_value_of(next(iter(node.expressions), None))
    if name is None:
        return _setting_of_row(node, identity)
    value = identity.get_variable(name)
    missing_ok = len(node.expressions) == 2 and isinstance(node.expressions[1], exp.Boolean)
    if value is None and not (missing_ok and bool(node.expressions[1].this)):
        raise InvalidParameter(f'unrecognized configuration parameter "{name}"', span=span_of(node), sqlstate="42704")
    return exp.cast(exp.Null(), "text") if value is None else exp.Literal.string(value)


def _setting_of_row(node: exp.Expr, identity: Identity) -> exp.Expr:
    """Of a name that a row has."""
    if not node.expressions:
        raise Unsupported("current_setting takes the name of a setting", span=span_of(node))
    cases = [exp.If(this=exp.Literal.string(name.lower()), true=exp.Literal.string(value)) for name, value in
             identity.variables]  # fmt: skip
    return exp.Case(this=exp.Anonymous(this="lower", expressions=[node.expressions[0].copy()]), ifs=cases)


def find_setting_changes(tree: exp.Query) -> tuple[SettingChange, ...]:
    """What the statement sets by set_config(name, value, local), which the session does before it answers.

    Only where each is sure to be done once: in the list of a SELECT that reads no table.
    """
    changes = []
    for node in tree.find_all(exp.Anonymous):
        if node.name.lower() == "set_config":
            alone = node.find_ancestor(exp.Select) is tree and not tree.args.get("from_") and not tree.args.get("where")
            if not alone or node.find_ancestor(exp.Case, exp.Subquery) is not None:
                raise Unsupported("set_config stands in a SELECT of its own", span=span_of(node),
                                  hint="SELECT set_config('search_path', 'public', false)")  # fmt: skip
            name, value = (_string_value_of(item) for item in (*node.expressions, None, None)[:2])
            local = node.expressions[2] if len(node.expressions) == 3 else None
            if name is None or value is None or not isinstance(local, exp.Boolean):
                message = "set_config takes a name and a value as text, and whether it is local"
                raise Unsupported(message, span=span_of(node))
            changes.append((name.lower(), value, bool(local.this)))
    return tuple(changes)


def _set_config_value(node: exp.Expr) -> exp.Expr:
    return exp.Literal.string(_string_value_of(node.expressions[1]) or "")


def _rewrite_has_role(node: exp.Expr, identity: Identity) -> exp.Expr:
    """Everyone has the role that is their own, and no other; of others' roles nothing is told."""
    own = (identity.user, str(USER_OID))
    role_arguments = node.expressions[:-1] or [exp.Null()]  # the role, and before it perhaps the user who has it
    texts = [exp.cast(argument.copy(), "text") for argument in role_arguments]
    return exp.and_(*(exp.In(this=argument, expressions=[*map(exp.Literal.string, own)]) for argument in texts))


def _role_oid(node: exp.Expr, identity: Identity) -> exp.Expr:
    name = _string_value_of(next(iter(node.expressions), None))
    number = {identity.user: USER_OID, OWNER_NAME: 10}.get(name or "")
    return exp.Null() if number is None else exp.Literal.number(number)
