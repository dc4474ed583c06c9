"""Functions of the session as literals: the time, the user, the database and the version.

So a statement means one thing, also when it is stored and asked again, and nothing of the process shows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import cache

from sqlglot import exp

from dpsql.base.cancellation import checkpoint
from dpsql.compiler.catalog.variables import DEFAULT_SCHEMA, Identity
from dpsql.compiler.parse.dialect import WRITTEN_NAME_KEY, span_of
from dpsql.compiler.postprocess.typed_texts import respell_time_literal
from dpsql.errors import InvalidParameter, Unsupported

_SESSION_FUNCTION_NODES: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.CurrentDate, "current_date"),
    (exp.CurrentTimestamp, "now"),
    (exp.CurrentTime, "current_time"),
    (exp.Localtime, "localtime"),
    (exp.Localtimestamp, "localtimestamp"),
    (exp.CurrentUser, "current_user"),
    (exp.SessionUser, "session_user"),
    (exp.CurrentCatalog, "current_catalog"),
    (exp.CurrentDatabase, "current_database"),
    (exp.CurrentSchema, "current_schema"),
    (exp.CurrentSchemas, "current_schemas"),
    (exp.CurrentVersion, "version"),
)
_ZONED_TIMES = ("now", "statement_timestamp", "transaction_timestamp", "clock_timestamp")
"""Moments: shown with their zone. Beside columns they are what the session's clocks show, as timestamps are."""

_TIMESTAMP_FUNCTIONS = ("now", "localtimestamp", "statement_timestamp", "transaction_timestamp", "clock_timestamp")


_MAX_ARGUMENTS = {"current_schemas": 1, "current_setting": 2}


def replace_session_functions(tree: exp.Query, now: dt.datetime | None, identity: Identity) -> exp.Query:
    """The statement with these functions replaced, and its output columns named as they would have been."""

    @cache
    def local_time() -> dt.datetime | None:
        return None if now is None else identity.time_zone.to_local(now)

    builders = _literal_builders(local_time, identity)
    free = tree.find(exp.Table) is None  # of columns: all moments have their zone
    for select in list(tree.find_all(exp.Select)):
        for item in list(select.expressions):
            if (name := _called_function(item)) in builders:
                alone = not free and select.args.get("from_") is None and name in _ZONED_TIMES
                shown = exp.cast(item.copy(), "timestamptz") if alone else item.copy()
                item.replace(exp.alias_(shown, _output_name_of(item, name), quoted=True))

    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.lower() == "age" and len(call.expressions) == 1:  # since then, until midnight of today
            call.set("expressions", [exp.CurrentDate(), *call.expressions])

    def change(node: exp.Expr) -> exp.Expr:
        checkpoint()
        if isinstance(node, exp.Cast):
            respell_time_literal(node, local_time())
            return node
        name = _called_function(node)
        if name is None or name not in builders:
            return node
        _refuse_extra_arguments(node, name)
        literal: exp.Expr = builders[name](node)
        if name in _ZONED_TIMES and (free or _is_zone_converted(node)):
            literal = _moment_literal(literal, now, identity)
        for part in literal.walk():  # errors point at what was written
            part.meta.update(_source_positions(node))
        return literal

    changed = tree.transform(change, copy=False)
    assert isinstance(changed, exp.Query)
    return changed


def _moment_literal(local: exp.Expr, now: dt.datetime | None, identity: Identity) -> exp.Expr:
    """The moment itself: what clocks show may come twice, where they are set back."""
    if now is None or identity.time_zone.is_utc:
        return exp.cast(local, "timestamptz")
    return exp.cast(exp.Literal.string(now.astimezone(dt.UTC).isoformat(" ")), "timestamptz")


def _is_zone_converted(node: exp.Expr) -> bool:
    """now() AT TIME ZONE z, or timezone(z, now()): of a moment, not of what a clock shows."""
    below: exp.Expr = node
    parent: exp.Expr | None = node.parent
    while isinstance(parent, exp.Paren):
        below, parent = parent, parent.parent
    if isinstance(parent, exp.AtTimeZone):
        return parent.this is below
    return isinstance(parent, exp.Anonymous) and parent.name.lower() == "timezone" and parent.expressions[-1] is below


def _output_name_of(item: exp.Expr, name: str | None) -> str:
    """now() and CURRENT_TIMESTAMP are one function with two names."""
    bare = isinstance(item, exp.CurrentTimestamp) and item.meta.get(WRITTEN_NAME_KEY, "current_timestamp")
    return str(bare).lower() if bare else str(name)


def _called_function(node: exp.Expr) -> str | None:
    """The name of the function that the node calls; `pg_catalog.` may stand before it."""
    if isinstance(node, exp.Dot) and node.this.name.lower() == "pg_catalog":
        return _called_function(node.expression)
    for kind, name in _SESSION_FUNCTION_NODES:
        if isinstance(node, kind):
            return name
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    # PostgreSQL reads current_role and user as functions too; the parser takes them for columns, which user may be.
    if not isinstance(node, exp.Column) or node.table or not isinstance(node.this, exp.Identifier) or node.this.quoted:
        return None
    name = node.name.lower()
    if name != "user":
        return name if name == "current_role" else None
    select = node.find_ancestor(exp.Select)
    return name if select is not None and select.args.get("from_") is None else None


def _refuse_extra_arguments(node: exp.Expr, name: str) -> None:
    """Law 3: now(x) is not now()."""
    call = node.expression if isinstance(node, exp.Dot) else node
    max_arguments = _MAX_ARGUMENTS.get(name, 0)
    arguments = [*call.expressions, call.args.get("this")] if not isinstance(call, exp.Anonymous) else call.expressions
    if isinstance(call, exp.Func) and sum(isinstance(item, exp.Expr) for item in arguments) > max_arguments:
        what = f"takes {max_arguments} at most" if max_arguments else "takes none"
        raise Unsupported(f'"{name}" has too many arguments: it {what}', span=span_of(node), sqlstate="42883")


def _source_positions(node: exp.Expr) -> dict[str, object]:
    span = span_of(node)
    return {} if span is None else {"start": span.start, "end": span.end - 1}


def _literal_builders(
    local_time: Callable[[], dt.datetime | None], identity: Identity
) -> dict[str, Callable[[exp.Expr], exp.Expr]]:
    def time_literal(as_type: str) -> Callable[[exp.Expr], exp.Expr]:
        return lambda node: _time_literal(node, local_time(), as_type)

    def text_literal(value: str) -> Callable[[exp.Expr], exp.Expr]:
        return lambda node: exp.Literal.string(value)

    times = {name: time_literal("timestamp") for name in _TIMESTAMP_FUNCTIONS}
    clocks = {name: time_literal("time") for name in ("current_time", "localtime")}
    users = {name: text_literal(identity.user) for name in ("current_user", "current_role", "user")}
    users["session_user"] = text_literal(identity.login or identity.user)
    return {
        **times,
        **clocks,
        **users,
        "current_date": time_literal("date"),
        "today": time_literal("date"),
        "current_catalog": text_literal(identity.database),
        "current_database": text_literal(identity.database),
        "current_schema": text_literal(DEFAULT_SCHEMA),
        "current_schemas": _current_schemas,
        "current_setting": lambda node: _current_setting(node, identity),
        "version": text_literal(identity.version_text),
        "pg_backend_pid": lambda node: exp.Literal.number(0),
        "pg_is_in_recovery": lambda node: exp.false(),
        "pg_advisory_unlock_all": lambda node: exp.cast(exp.Null(), "text"),
    }


def _time_literal(node: exp.Expr, local: dt.datetime | None, as_type: str) -> exp.Expr:
    if local is None:
        raise Unsupported("the time of day is not known here", span=span_of(node))
    parts = {"date": local.date().isoformat(), "time": local.time().isoformat(), "timestamp": local.isoformat(" ")}
    return exp.cast(exp.Literal.string(parts[as_type]), as_type)


def _current_schemas(node: exp.Expr) -> exp.Expr:
    """The schemas on the search path; current_schemas(true) lists the catalog's too."""
    argument = node.this if isinstance(node, exp.CurrentSchemas) else next(iter(node.expressions), None)
    implicit = isinstance(argument, exp.Boolean) and bool(argument.this)
    names = ["pg_catalog", DEFAULT_SCHEMA] if implicit else [DEFAULT_SCHEMA]
    return exp.Array(expressions=[exp.Literal.string(name) for name in names])


def _current_setting(node: exp.Expr, identity: Identity) -> exp.Expr:
    arguments = node.expressions
    if not arguments or not isinstance(arguments[0], exp.Literal) or not arguments[0].is_string:
        raise Unsupported("current_setting takes the name of a setting as text", span=span_of(node))
    value = identity.get_variable(str(arguments[0].this))
    missing_ok = len(arguments) == 2 and isinstance(arguments[1], exp.Boolean) and bool(arguments[1].this)
    if value is None and not missing_ok:
        raise InvalidParameter(f'there is no setting "{arguments[0].this}"', span=span_of(node), sqlstate="42704")
    return exp.cast(exp.Null(), "text") if value is None else exp.Literal.string(value)
