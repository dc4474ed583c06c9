"""CREATE, DROP and SHOW of what an account makes: the part that is the same for tables and models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import assert_never

from dpsql.answer import Answer, done, json_answer, rows_answer
from dpsql.catalog.find import place_of
from dpsql.compiled import Compiled
from dpsql.errors import ProgrammingError, UnknownTable
from dpsql.explain import Explanation
from dpsql.ledger.base import Made
from dpsql.ledger.objects import taken
from dpsql.making.base import Asked, Maker
from dpsql.making.models import ModelMaker
from dpsql.making.synthetic import SyntheticTables
from dpsql.queries import Queries
from dpsql.span import Span
from dpsql.sql.made_commands import MODEL, TABLE, CreateCommand, DropCommand, MadeCommand, ShowMadeCommand, no_schema
from dpsql.sql.parameters import Parameter
from dpsql.types import TEXT, TIMESTAMPTZ

MAKERS: Mapping[str, Maker] = {TABLE: SyntheticTables(), MODEL: ModelMaker()}


def carry_out(queries: Queries, command: MadeCommand, sql: str, parameters: Sequence[Parameter]) -> Answer:
    _check_database(queries, command)
    match command:
        case CreateCommand():
            return _create(_asked(queries, command, sql, parameters))
        case DropCommand():
            return _drop(queries, command)
        case ShowMadeCommand():
            return _show(queries, command)
        case _:
            assert_never(command)


def compiled_create(queries: Queries, command: CreateCommand, sql: str, parameters: Sequence[Parameter]) -> Compiled:
    return MAKERS[command.kind].compiled(_asked(queries, command, sql, parameters))


def explain_create(queries: Queries, command: CreateCommand, sql: str, parameters: Sequence[Parameter]) -> Explanation:
    return MAKERS[command.kind].explain(_asked(queries, command, sql, parameters))


def _asked(queries: Queries, command: CreateCommand, sql: str, parameters: Sequence[Parameter]) -> Asked:
    _check_database(queries, command)
    return Asked(queries, command, sql, parameters)


def _check_database(queries: Queries, command: MadeCommand) -> None:
    if command.database is not None and command.database.lower() != queries.dataset.schema.database.lower():
        raise no_schema(command.database, command.span)


def found(queries: Queries, kind: str, name: str, span: Span | None) -> Made:
    """The account's own object of that name, as it is now."""
    made = queries.own.find(kind, name)
    if made is None:
        names = [one.name for one in queries.own.all if one.kind == kind]
        raise UnknownTable(f'{kind} "{name}" does not exist', hint=f"Yours: {', '.join(names)}." if names else None,
                           span=span)  # fmt: skip
    return made


def _create(asked: Asked) -> Answer:
    """Names are checked before anything is charged. A release that gets no name after all is paid for, and serves."""
    queries, command = asked.queries, asked.command
    tag = f"CREATE {command.kind.upper()}"
    known = _named(queries, command)
    if known is not None and command.unless_there and known.kind == command.kind:
        return replace(done(tag), notices=(f'{known.kind} "{known.name}" already exists, nothing was made',))
    if known is not None and not (command.instead and known.kind == command.kind):
        error = taken(known.kind, known.name)
        error.span = command.span
        raise error
    making = MAKERS[command.kind].make(asked)
    made = Made(command.kind, command.name, making.release, json.dumps(making.definition), queries.clock())
    with _meanwhile(command):
        queries.dataset.ledger.objects.keep(queries.role.account.name, made, instead=command.instead)
    queries.own.again()
    return replace(making.answer, command=tag)


@contextmanager
def _meanwhile(command: CreateCommand) -> Iterator[None]:
    """Another session took the name while this one paid: a release is found by what was asked, whatever its name."""
    try:
        yield
    except ProgrammingError as error:
        error.detail = "Another session made it meanwhile. This one was charged, and its release is stored."
        error.hint = "The same statement with another name makes it for nothing."
        error.span = command.span
        raise


def _named(queries: Queries, command: CreateCommand) -> Made | None:
    """What has the name already, of the account's own; what the schema or the catalog has cannot be taken."""
    schema = queries.dataset.schema
    declared = any(one.name.lower() == command.name.lower() for one in schema.relations)
    if declared or place_of(schema, "", command.name) is not None:
        raise ProgrammingError(
            f'the name "{command.name}" is taken by a table of the schema or of the catalog',
            hint="Take another name.",
            span=command.span,
            sqlstate="42P07",
        )
    queries.own.again()
    return next((one for one in queries.own.all if one.name.lower() == command.name.lower()), None)


def _drop(queries: Queries, command: DropCommand) -> Answer:
    tag = f"DROP {command.kind.upper()}"
    there = queries.dataset.ledger.objects.drop(queries.role.account.name, command.kind, command.name)
    if not there and not command.if_there:
        found(queries, command.kind, command.name, command.span)
    queries.own.again()
    notice = () if there else (f'{command.kind} "{command.name}" does not exist, nothing was dropped',)
    return replace(done(tag), notices=notice)


def _show(queries: Queries, command: ShowMadeCommand) -> Answer:
    kind, name = command.kind, command.name
    if name is None:
        return _list(queries, kind, command.json)
    made = found(queries, kind, name, command.span)
    body, maker = queries.own.body(made), MAKERS[kind]
    return json_answer(name, maker.plain(made, body), "SHOW") if command.json else maker.show(made, body)


def _list(queries: Queries, kind: str, as_json: bool) -> Answer:
    queries.own.again()
    listed = [one for one in queries.own.all if one.kind == kind]
    rows = [(one.name, json.loads(one.definition)["statement"], one.at) for one in listed]
    if as_json:
        plain = [{"name": name, "statement": statement, "at": at.isoformat()} for name, statement, at in rows]
        return rows_answer(((f"{kind}s", TEXT),), [(json.dumps(plain),)], "SHOW")
    return rows_answer((("name", TEXT), ("statement", TEXT), ("made", TIMESTAMPTZ)), rows, "SHOW")
