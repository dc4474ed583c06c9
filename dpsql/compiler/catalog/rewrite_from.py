"""FROM of a statement about the catalog (relations, table functions), and functions of the session."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from sqlglot import exp

from dpsql.compiler.catalog.builtin import CatalogRelation
from dpsql.compiler.catalog.functions import CATALOG_FUNCTIONS, TABLE_FUNCTIONS
from dpsql.compiler.catalog.objects import OWNER_NAME, USER_OID
from dpsql.compiler.catalog.oids import ObjectOids, duckdb_type_of
from dpsql.compiler.catalog.tables import is_session_relation, rows_of_session
from dpsql.compiler.catalog.variables import DEFAULT_SCHEMA, Identity
from dpsql.compiler.parse.dialect import span_of
from dpsql.errors import InvalidParameter, Unsupported


@dataclass(frozen=True)
class RewriteContext:
    """What names mean, who asks, and when."""

    names: ObjectOids
    who: Identity
    now: dt.datetime


def duckdb_data_type(name: str) -> exp.DataType:
    return exp.DataType.build(name, dialect="duckdb")


def rewrite_table(node: exp.Table, context: RewriteContext) -> exp.Expr:
    if isinstance(node.this, exp.Identifier):
        return _rewrite_relation(node, context)
    return _rewrite_function_source(node, node.this, bool(node.args.get("ordinality")))


def _rewrite_relation(node: exp.Table, context: RewriteContext) -> exp.Expr:
    relation = node.meta.get("relation")
    if relation is None:
        return node  # a part of WITH
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(relation.name, quoted=True))
    if is_session_relation(relation):
        return _build_session_table(relation, alias, context.who)
    name = relation.name if relation.namespace == "pg_catalog" else f"{relation.namespace}.{relation.name}"
    rewritten = exp.Table(this=exp.to_identifier(name, quoted=True), db=exp.to_identifier("main"), alias=alias)
    rewritten.set("joins", node.args.get("joins"))
    return rewritten


def _build_session_table(relation: CatalogRelation, alias: exp.TableAlias, identity: Identity) -> exp.Expr:
    """As VALUES, which say the types."""
    rows = rows_of_session(identity, relation)
    kinds = [duckdb_data_type(duckdb_type_of(attribute.type)) for attribute in relation.attributes]
    shown_rows = rows or [tuple(None for _ in kinds)]
    cells = [
        [exp.Cast(this=_constant_to_expr(v), to=kind.copy()) for v, kind in zip(r, kinds, strict=True)]
        for r in shown_rows
    ]
    names = [exp.to_identifier(attribute.name, quoted=True) for attribute in relation.attributes]
    inner = exp.TableAlias(this=exp.to_identifier("rows__"), columns=names)
    values = exp.Values(expressions=[exp.Tuple(expressions=row) for row in cells], alias=inner)
    query = exp.select("*").from_(values)
    if not rows:
        query = query.where(exp.false())
    return exp.Subquery(this=query, alias=alias)


def _constant_to_expr(value: object) -> exp.Expr:
    if isinstance(value, list):
        return exp.Array(expressions=[_constant_to_expr(item) for item in value])
    return exp.convert(value)


def rewrite_unnest(node: exp.Unnest, context: RewriteContext) -> exp.Expr:
    call = exp.Anonymous(this="unnest", expressions=list(node.expressions))
    offset = node.args.get("offset")
    source = exp.Table(this=call, alias=node.args.get("alias"))
    if isinstance(offset, exp.Identifier):
        if source.args.get("alias") is None:
            names = [exp.to_identifier("unnest")]
            source.set("alias", exp.TableAlias(this=exp.to_identifier("unnest"), columns=names))
        source.args["alias"].append("columns", offset)
    return _name_function_columns(source, bool(offset))


def _rewrite_function_source(node: exp.Table, call: exp.Expr, ordinality: bool) -> exp.Expr:
    """A function in FROM: its rows are a table's, or the elements of a list."""
    if isinstance(call, exp.Subquery | exp.Select):
        return node
    name = str(call.meta.get("function", ""))
    if name in TABLE_FUNCTIONS:
        table, columns = TABLE_FUNCTIONS[name]
        items = [_typed_column(table, column, type_) for column, type_ in columns]
        if ordinality:
            items.append(_typed_column("lookup__none", "ordinality", "int8"))
        query = exp.select(*items).from_(exp.to_table(table))
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
        return exp.Subquery(this=query, alias=alias)
    if name not in CATALOG_FUNCTIONS:
        return _name_function_columns(node, ordinality)
    listed = call.expressions[0] if isinstance(call, exp.Anonymous) and call.name == "unnest" else call
    if name == "_pg_expandarray":
        items = [exp.alias_(exp.Anonymous(this="struct_extract", expressions=[exp.column("e__"), exp.convert(field)]),
                            field) for field in ("x", "n")]  # fmt: skip
        inner = exp.select(exp.alias_(exp.Anonymous(this="unnest", expressions=[listed]), "e__")).subquery("s__")
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
        return exp.Subquery(this=exp.select(*items).from_(inner), alias=alias)
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
    if name != "unnest" and not CATALOG_FUNCTIONS[name].rows:
        title = (alias.args.get("columns") or [alias.this])[0].name
        return exp.Subquery(this=exp.select(exp.alias_(call, title, quoted=True)), alias=alias)
    source = exp.Table(this=exp.Anonymous(this="unnest", expressions=[listed]), alias=alias)
    return _name_function_columns(source, ordinality)


def _typed_column(table: str, column: str, type_: str) -> exp.Expr:
    value = exp.column(column) if table != "lookup__none" else exp.Null()
    return exp.alias_(exp.Cast(this=value, to=duckdb_data_type(duckdb_type_of(type_))), column)


def _name_function_columns(node: exp.Table, ordinality: bool) -> exp.Expr:
    """A function's only column is named as the function is, by PostgreSQL."""
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier("unnest"))
    if not alias.args.get("columns"):
        alias.set("columns", [alias.this.copy()])
    if ordinality and len(alias.args["columns"]) == 1:
        alias.append("columns", exp.to_identifier("ordinality"))
    node.set("alias", alias)
    node.set("ordinality", ordinality)
    return node


def rewrite_lateral(node: exp.Lateral, context: RewriteContext) -> exp.Expr:
    """LATERAL before a function says nothing; before a sub-select it stays."""
    inner = node.this
    if isinstance(inner, exp.Table):
        if node.args.get("alias") is not None and isinstance(inner.args.get("alias"), exp.TableAlias):
            columns = node.args["alias"].args.get("columns") or [node.args["alias"].this.copy()]
            rest = (inner.args["alias"].args.get("columns") or [])[len(columns) :]
            inner.set("alias", exp.TableAlias(this=node.args["alias"].this, columns=[*columns, *rest]))
        return inner
    call = str(inner.meta.get("function", ""))
    if call:
        return _rewrite_function_source(exp.Table(this=inner, alias=node.args.get("alias")), inner, False)
    return node


# What a statement about the catalog asks of its session, as literals: so that one database serves all sessions.

SettingChange = tuple[str, str, bool]
"""A name, a value, and whether it holds until the transaction ends."""

_USER_FUNCTIONS = ("current_user", "current_role", "user")
_DATABASE_FUNCTIONS = ("current_catalog", "current_database")
_TIME_FUNCTIONS = ("now", "current_timestamp", "clock_timestamp", "statement_timestamp", "transaction_timestamp",
          "pg_postmaster_start_time", "pg_conf_load_time")  # fmt: skip


def evaluate_session_function(name: str, node: exp.Expr, identity: Identity, now: dt.datetime) -> exp.Expr:
    """The value of a function of `SESSION_FUNCTIONS`."""
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
            return exp.cast(exp.Literal.string(identity.time_zone.to_local(now).isoformat(" ")), "timestamp")
        case "current_date":
            return exp.cast(exp.Literal.string(identity.time_zone.to_local(now).date().isoformat()), "date")
        case "current_schema":
            return exp.Literal.string(DEFAULT_SCHEMA)
        case "current_schemas":
            return _current_schemas(node)
        case "version":
            return exp.Literal.string(identity.version_text)
        case "pg_client_encoding":
            return exp.Literal.string(identity.get_variable("client_encoding") or "UTF8")
        case "current_setting":
            return _current_setting(node, identity)
        case "set_config":
            return _set_config_value(node)
        case "pg_backend_pid":
            return exp.Literal.number(identity.process)
        case "pg_get_userbyid":
            return exp.Anonymous(
                this="dp_get_userbyid", expressions=[*node.expressions, exp.Literal.string(identity.user)]
            )
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
    """`current_setting` of a name that differs from row to row."""
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
