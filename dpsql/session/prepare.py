"""Prepares a statement: the types of its parameters, and its columns. Free, and nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dpsql.compiler.parameter_types import OPTION_SAMPLES, infer_placeholders
from dpsql.compiler.parse.commands import (
    Command,
    DescribeCommand,
    DescribeQueryCommand,
    ExplainCommand,
    ShowCommand,
    read_command,
)
from dpsql.compiler.parse.create_commands import CreateCommand, ShowArtifactsCommand
from dpsql.compiler.parse.cursor_commands import CopyCommand, DeclareCommand, ExecuteCommand, FetchCommand
from dpsql.compiler.parse.mechanism_commands import ShowMechanismsCommand, SubmitQuery
from dpsql.compiler.parse.parameters import Parameter, count_placeholders
from dpsql.compiler.parse.parser import Tokenizer, tokenize
from dpsql.errors import Error, Unsupported, relocate_errors
from dpsql.schema.model import Schema
from dpsql.session.artifacts.create import ARTIFACT_BUILDERS
from dpsql.session.named_statements import NamedStatements
from dpsql.session.postprocess.sandbox import OutputColumn
from dpsql.session.result import StatementResult
from dpsql.types import DOUBLE, TEXT, Type


@dataclass(frozen=True)
class PreparedStatement:
    """`command` is the word that tells of it: SELECT, or that of a command. Without columns it gives no rows.

    `arrays` are the places, from 0, of parameters that stand for many values of their type. `unknown`: why its columns
    are not known before its values are, where that is so; with some values it may be right.
    """

    parameters: tuple[Type, ...]
    columns: tuple[OutputColumn, ...]
    command: str = "SELECT"
    arrays: frozenset[int] = frozenset()
    unknown: Error | None = None


class StatementDescriber(Protocol):
    def describe(self, sql: str, parameters: Sequence[Parameter] = ()) -> tuple[OutputColumn, ...]: ...
    def describe_command(self, command: Command) -> StatementResult: ...
    @property
    def tokenize(self) -> Tokenizer: ...


def prepare_statement(
    describer: StatementDescriber, schema: Schema, named: NamedStatements, sql: str, types: Sequence[Type | None]
) -> PreparedStatement:
    command = _parse_command(describer, sql)
    match command:
        case None:
            return _prepare_query(describer, schema, sql, types)
        case ExplainCommand(inner) if isinstance(create := _parse_command(describer, inner), CreateCommand):
            kinds, arrays = _create_parameters(create, schema, inner, types)
            return PreparedStatement(
                kinds, describer.describe_command(_free_equivalent(command)).columns, _command_word(sql), arrays
            )
        case ExplainCommand(inner) if isinstance(submitted := _parse_command(describer, inner), SubmitQuery):
            with relocate_errors(sql, command.offset):
                prepared = _prepare_submission(describer, schema, named, submitted, inner, types)
            return PreparedStatement(
                prepared.parameters,
                describer.describe_command(_free_equivalent(command)).columns,
                _command_word(sql),
                prepared.arrays,
            )
        case SubmitQuery():
            return _prepare_submission(describer, schema, named, command, sql, types)
        case CreateCommand(kind):
            kinds, arrays = _create_parameters(command, schema, sql, types)
            return PreparedStatement(kinds, ARTIFACT_BUILDERS[kind].columns, _command_word(sql), arrays)
        case ExplainCommand(inner, offset) | DescribeQueryCommand(inner, offset):
            with relocate_errors(sql, offset):
                prepared = _prepare_query(describer, schema, inner, types)
            return PreparedStatement(
                prepared.parameters,
                describer.describe_command(_free_equivalent(command)).columns,
                _command_word(sql),
                prepared.arrays,
            )
        case DeclareCommand(_, inner) | CopyCommand(inner):
            if _parse_command(describer, inner) is not None:
                raise Unsupported(f"{_command_word(sql)} takes a query")
            prepared = _prepare_query(describer, schema, inner, types)
            return PreparedStatement(prepared.parameters, (), _command_word(sql), prepared.arrays)
        case ExecuteCommand(name, arguments):
            return PreparedStatement((), describer.describe(named.get_prepared(name).sql, arguments), "EXECUTE")
        case FetchCommand(name, move=move):
            return PreparedStatement((), () if move else named.get_cursor_result(name).columns, "FETCH")
        case ShowCommand() | DescribeCommand() | ShowArtifactsCommand() | ShowMechanismsCommand():
            return PreparedStatement(
                _text_parameters(sql), describer.describe_command(command).columns, _command_word(sql)
            )
        case _:
            return PreparedStatement(_text_parameters(sql), (), _command_word(sql))


def _parse_command(describer: StatementDescriber, sql: str) -> Command | None:
    """With a value that any setting takes, in the place of each parameter."""
    return read_command(sql, ("1",) * count_placeholders(describer.tokenize(sql)))


def _create_parameters(
    command: CreateCommand, schema: Schema, sql: str, declared: Sequence[Type | None]
) -> tuple[tuple[Type, ...], frozenset[int]]:
    """The types of its parameters, by what stands around them in the query and by the names of options."""
    count = count_placeholders(tokenize(sql))
    types = [declared[index] if index < len(declared) else None for index in range(count)]
    options = {
        parameter.place: OPTION_SAMPLES[parameter.name]
        for parameter in command.options
        if parameter.place is not None and parameter.name in OPTION_SAMPLES
    }
    indexes = range(count) if command.places is None else command.places
    inner = infer_placeholders(command.query, schema, command.query_parameters(types))
    every = {**options, **dict(zip(indexes, inner, strict=True))}
    kinds = (types[index] or (every[index].type if index in every else TEXT) for index in range(count))
    return tuple(kinds), frozenset(index for index, parameter in every.items() if parameter.array)


def _text_parameters(sql: str) -> tuple[Type, ...]:
    return (TEXT,) * count_placeholders(tokenize(sql))


def _command_word(sql: str) -> str:
    return next((token.text.upper() for token in tokenize(sql)), "")


def _free_equivalent(command: ExplainCommand | DescribeQueryCommand) -> Command:
    """The same command about a query that costs nothing to explain."""
    if isinstance(command, ExplainCommand):
        return ExplainCommand("SELECT 1", 0, command.json)
    return DescribeQueryCommand("SELECT 1", 0)


def _prepare_submission(
    describer: StatementDescriber,
    schema: Schema,
    named: NamedStatements,
    command: SubmitQuery,
    sql: str,
    types: Sequence[Type | None],
) -> PreparedStatement:
    """Each of its statements has parameters of its own; a number that is one may be given as any."""
    kinds, arrays, against = dict[int, Type](), set[int](), command.against
    columns = tuple(OutputColumn(name, type_, str(type_)) for name, type_ in named.mechanisms.columns_of(command))
    for part in (command.question, None if against is None else against.query):
        if part is not None:
            with relocate_errors(sql, part.offset):
                prepared = _prepare_query(
                    describer,
                    schema,
                    part.sql,
                    part.select_parameters([*types, *[None] * (max(part.places, default=0) + 1)]),
                )
            kinds |= dict(zip(part.places, prepared.parameters, strict=True))
            arrays |= {part.places[index] for index in prepared.arrays}
    if against is not None and against.place is not None:
        kinds.setdefault(against.place, DOUBLE)
    count = count_placeholders(tokenize(sql))
    return PreparedStatement(
        tuple(kinds.get(index, TEXT) for index in range(count)), columns, _command_word(sql), frozenset(arrays)
    )


def _prepare_query(
    describer: StatementDescriber, schema: Schema, sql: str, types: Sequence[Type | None]
) -> PreparedStatement:
    parameters = infer_placeholders(sql, schema, types, describer.tokenize)
    kinds = tuple(parameter.type for parameter in parameters)
    arrays = frozenset(index for index, parameter in enumerate(parameters) if parameter.array)
    try:
        return PreparedStatement(
            kinds, describer.describe(sql, [parameter.sample for parameter in parameters]), arrays=arrays
        )
    except Error as error:
        if not parameters:
            raise
        if error.sqlstate == "42804" and all(parameter.cast for parameter in parameters):
            raise
        try:  # NULL stands nearly everywhere, also for the name of a table or a setting
            return PreparedStatement(kinds, describer.describe(sql, [None] * len(parameters)), arrays=arrays)
        except Error as error_with_null:
            if not _may_depend_on_values(error, error_with_null):
                raise error from None
        return PreparedStatement(kinds, (), arrays=arrays, unknown=error)


def _may_depend_on_values(error: Error, error_with_null: Error) -> bool:
    """Whether other values may be right: `error` came with a sample of each type, the other one with NULL for all.

    Names that there are not, syntax and budgets are as wrong with all values; types and what is taken may not be, but
    are where two values that have nothing in common are refused in the same words. A client is to be told as early as
    that: some are out of step with a server that parses a statement and then refuses to describe it.
    """
    if error.sqlstate[:2] not in ("0A", "21", "22") and error.sqlstate != "42804":
        return False
    return (error.sqlstate, error.message) != (error_with_null.sqlstate, error_with_null.message)
