"""CREATE, DROP and SHOW: the part that is the same for synthetic tables and models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import assert_never

from dpsql.compiler.catalog.tables import catalog_schema_of
from dpsql.compiler.compiled import Compiled
from dpsql.compiler.parse.create_commands import (
    MODEL,
    TABLE,
    ArtifactCommand,
    CreateCommand,
    DropCommand,
    ShowArtifactsCommand,
    unknown_schema_error,
)
from dpsql.compiler.parse.parameters import Parameter
from dpsql.errors import ProgrammingError, Span, UnknownTable
from dpsql.ledger.base import CreatedObject
from dpsql.ledger.named_objects import name_taken_error
from dpsql.session.artifacts.base import ArtifactBuilder, CreateRequest
from dpsql.session.artifacts.create_model import ModelBuilder
from dpsql.session.artifacts.create_synthetic_table import SyntheticTableBuilder
from dpsql.session.explain import Explanation
from dpsql.session.query import QueryExecutor
from dpsql.session.result import StatementResult, build_command_result, build_json_result, build_rows_result
from dpsql.types import TEXT, TIMESTAMPTZ

ARTIFACT_BUILDERS: Mapping[str, ArtifactBuilder] = {TABLE: SyntheticTableBuilder(), MODEL: ModelBuilder()}


def execute_artifact_command(
    queries: QueryExecutor, command: ArtifactCommand, sql: str, parameters: Sequence[Parameter]
) -> StatementResult:
    _check_database(queries, command)
    match command:
        case CreateCommand():
            return _execute_create(_build_request(queries, command, sql, parameters))
        case DropCommand():
            return _execute_drop(queries, command)
        case ShowArtifactsCommand():
            return _execute_show(queries, command)
        case _:
            assert_never(command)


def compile_create(
    queries: QueryExecutor, command: CreateCommand, sql: str, parameters: Sequence[Parameter]
) -> Compiled:
    return ARTIFACT_BUILDERS[command.kind].compile_release(_build_request(queries, command, sql, parameters))


def explain_create(
    queries: QueryExecutor, command: CreateCommand, sql: str, parameters: Sequence[Parameter]
) -> Explanation:
    return ARTIFACT_BUILDERS[command.kind].explain(_build_request(queries, command, sql, parameters))


def _build_request(
    queries: QueryExecutor, command: CreateCommand, sql: str, parameters: Sequence[Parameter]
) -> CreateRequest:
    _check_database(queries, command)
    return CreateRequest(queries, command, sql, parameters)


def _check_database(queries: QueryExecutor, command: ArtifactCommand) -> None:
    if command.database is not None and command.database.lower() != queries.context.dataset.schema.database.lower():
        raise unknown_schema_error(command.database, command.span)


def require_object(queries: QueryExecutor, kind: str, name: str, span: Span | None) -> CreatedObject:
    """The account's own object of that name, as it is now."""
    stored = queries.namespace.find_object(kind, name)
    if stored is None:
        names = [owned.name for owned in queries.namespace.all_objects if owned.kind == kind]
        raise UnknownTable(f'{kind} "{name}" does not exist', hint=f"Yours: {', '.join(names)}." if names else None,
                           span=span)  # fmt: skip
    return stored


def _execute_create(request: CreateRequest) -> StatementResult:
    """Names are checked before anything is charged. If the name is taken meanwhile, the release stays paid for."""
    queries, command = request.queries, request.command
    tag = f"CREATE {command.kind.upper()}"
    existing = _find_existing(queries, command)
    if existing is not None and command.unless_there and existing.kind == command.kind:
        return replace(
            build_command_result(tag), notices=(f'{existing.kind} "{existing.name}" already exists, nothing was made',)
        )
    if existing is not None and not (command.instead and existing.kind == command.kind):
        error = name_taken_error(existing.kind, existing.name)
        error.span = command.span
        raise error
    artifact = ARTIFACT_BUILDERS[command.kind].create_artifact(request)
    context = queries.context
    stored = CreatedObject(
        command.kind, command.name, artifact.release, json.dumps(artifact.definition), context.clock()
    )
    with _annotate_name_conflict(command):
        context.dataset.ledger.objects.save_object(context.account.name, stored, instead=command.instead)
    queries.namespace.refresh()
    return replace(artifact.answer, command=tag)


@contextmanager
def _annotate_name_conflict(command: CreateCommand) -> Iterator[None]:
    """Another session took the name while this one paid: a release is found by what was asked, whatever its name."""
    try:
        yield
    except ProgrammingError as error:
        error.detail = "Another session made it meanwhile. This one was charged, and its release is stored."
        error.hint = "The same statement with another name makes it for nothing."
        error.span = command.span
        raise


def _find_existing(queries: QueryExecutor, command: CreateCommand) -> CreatedObject | None:
    """The account's own object of that name; a name of the schema or the catalog is refused."""
    schema = queries.context.dataset.schema
    declared = any(relation.name.lower() == command.name.lower() for relation in schema.relations)
    if declared or catalog_schema_of(schema, "", command.name) is not None:
        raise ProgrammingError(
            f'the name "{command.name}" is taken by a table of the schema or of the catalog',
            hint="Take another name.",
            span=command.span,
            sqlstate="42P07",
        )
    queries.namespace.refresh()
    return next(
        (relation for relation in queries.namespace.all_objects if relation.name.lower() == command.name.lower()), None
    )


def _execute_drop(queries: QueryExecutor, command: DropCommand) -> StatementResult:
    tag = f"DROP {command.kind.upper()}"
    context = queries.context
    was_dropped = context.dataset.ledger.objects.drop_object(context.account.name, command.kind, command.name)
    if not was_dropped and not command.if_there:
        require_object(queries, command.kind, command.name, command.span)
    queries.namespace.refresh()
    notice = () if was_dropped else (f'{command.kind} "{command.name}" does not exist, nothing was dropped',)
    return replace(build_command_result(tag), notices=notice)


def _execute_show(queries: QueryExecutor, command: ShowArtifactsCommand) -> StatementResult:
    kind, name = command.kind, command.name
    if name is None:
        return _list_objects(queries, kind, command.json)
    stored = require_object(queries, kind, name, command.span)
    body, maker = queries.namespace.release_body(stored), ARTIFACT_BUILDERS[kind]
    return build_json_result(name, maker.to_record(stored, body), "SHOW") if command.json else maker.show(stored, body)


def _list_objects(queries: QueryExecutor, kind: str, as_json: bool) -> StatementResult:
    queries.namespace.refresh()
    listed = [stored for stored in queries.namespace.all_objects if stored.kind == kind]
    rows = [(stored.name, json.loads(stored.definition)["statement"], stored.at) for stored in listed]
    if as_json:
        plain = [
            {"name": name, "statement": statement, "at": created_at.isoformat()} for name, statement, created_at in rows
        ]
        return build_rows_result(((f"{kind}s", TEXT),), [(json.dumps(plain),)], "SHOW")
    return build_rows_result((("name", TEXT), ("statement", TEXT), ("made", TIMESTAMPTZ)), rows, "SHOW")
