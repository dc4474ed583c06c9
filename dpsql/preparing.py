"""A statement before its values are known: the types of its parameters, and its columns. Free, and nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from dpsql.answer import Answer
from dpsql.errors import Error, Unsupported, part_of
from dpsql.held import Held
from dpsql.making.commands import MAKERS
from dpsql.post.sandbox import OutputColumn
from dpsql.schema.model import Schema
from dpsql.sql.asked_commands import AskCommand, ShowMechanismsCommand
from dpsql.sql.commands import (
    Command,
    DescribeCommand,
    DescribeQueryCommand,
    ExplainCommand,
    ShowCommand,
    read_command,
)
from dpsql.sql.copy_command import CopyCommand
from dpsql.sql.held_commands import DeclareCommand, ExecuteCommand, FetchCommand
from dpsql.sql.made_commands import CreateCommand, ShowMadeCommand
from dpsql.sql.parameters import Parameter, count_placeholders
from dpsql.sql.parse import tokenize
from dpsql.sql.placeholders import placeholders
from dpsql.sql.samples import OPTIONS
from dpsql.types import DOUBLE, TEXT, Type


@dataclass(frozen=True)
class Prepared:
    """`command` is the word that tells of it: SELECT, or that of a command. Without columns it gives no rows.

    `arrays` are the places, from 0, of parameters that stand for many values of their type. `unknown`: why its columns
    are not known before its values are, where that is so; with some values it may be right.
    """

    parameters: tuple[Type, ...]
    columns: tuple[OutputColumn, ...]
    command: str = "SELECT"
    arrays: frozenset[int] = frozenset()
    unknown: Error | None = None


class Desk(Protocol):
    def describe(self, sql: str, parameters: Sequence[Parameter] = ()) -> tuple[OutputColumn, ...]: ...
    def told(self, command: Command) -> Answer: ...


def prepare(desk: Desk, schema: Schema, held: Held, sql: str, types: Sequence[Type | None]) -> Prepared:
    command = _command(sql)
    match command:
        case None:
            return _query(desk, schema, sql, types)
        case ExplainCommand(inner) if isinstance(create := _command(inner), CreateCommand):
            kinds, arrays = _of_create(create, schema, inner, types)
            return Prepared(kinds, desk.told(_shape_of(command)).columns, _word(sql), arrays)
        case ExplainCommand(inner) if isinstance(asked := _command(inner), AskCommand):
            with part_of(sql, command.offset):
                found = _asked(desk, schema, held, asked, inner, types)
            return Prepared(found.parameters, desk.told(_shape_of(command)).columns, _word(sql), found.arrays)
        case AskCommand():
            return _asked(desk, schema, held, command, sql, types)
        case CreateCommand(kind):
            kinds, arrays = _of_create(command, schema, sql, types)
            return Prepared(kinds, MAKERS[kind].columns, _word(sql), arrays)
        case ExplainCommand(inner, offset) | DescribeQueryCommand(inner, offset):
            with part_of(sql, offset):
                found = _query(desk, schema, inner, types)
            return Prepared(found.parameters, desk.told(_shape_of(command)).columns, _word(sql), found.arrays)
        case DeclareCommand(_, inner) | CopyCommand(inner):
            if _command(inner) is not None:
                raise Unsupported(f"{_word(sql)} takes a query")
            found = _query(desk, schema, inner, types)
            return Prepared(found.parameters, (), _word(sql), found.arrays)
        case ExecuteCommand(name, arguments):
            return Prepared((), desk.describe(held.prepared(name).sql, arguments), "EXECUTE")
        case FetchCommand(name, move=move):
            return Prepared((), () if move else held.cursor(name).columns, "FETCH")
        case ShowCommand() | DescribeCommand() | ShowMadeCommand() | ShowMechanismsCommand():
            return Prepared(_texts(sql), desk.told(command).columns, _word(sql))
        case _:
            return Prepared(_texts(sql), (), _word(sql))


def _command(sql: str) -> Command | None:
    """With a value that any setting takes, in the place of each parameter."""
    return read_command(sql, ("1",) * count_placeholders(tokenize(sql)))


def _of_create(
    command: CreateCommand, schema: Schema, sql: str, given: Sequence[Type | None]
) -> tuple[tuple[Type, ...], frozenset[int]]:
    """The types of its parameters, by what stands around them in the query and by the names of options."""
    count = count_placeholders(tokenize(sql))
    types = [given[place] if place < len(given) else None for place in range(count)]
    found = {one.place: OPTIONS[one.name] for one in command.options if one.place is not None and one.name in OPTIONS}
    places = range(count) if command.places is None else command.places
    inner = placeholders(command.query, schema, command.of_query(types))
    every = {**found, **dict(zip(places, inner, strict=True))}
    kinds = (types[place] or (every[place].type if place in every else TEXT) for place in range(count))
    return tuple(kinds), frozenset(place for place, one in every.items() if one.array)


def _texts(sql: str) -> tuple[Type, ...]:
    return (TEXT,) * count_placeholders(tokenize(sql))


def _word(sql: str) -> str:
    return next((token.text.upper() for token in tokenize(sql)), "")


def _shape_of(command: ExplainCommand | DescribeQueryCommand) -> Command:
    """The same command about a query that costs nothing to explain."""
    if isinstance(command, ExplainCommand):
        return ExplainCommand("SELECT 1", 0, command.json)
    return DescribeQueryCommand("SELECT 1", 0)


def _asked(
    desk: Desk, schema: Schema, held: Held, command: AskCommand, sql: str, types: Sequence[Type | None]
) -> Prepared:
    """Each of its statements has parameters of its own; a number that is one may be given as any."""
    kinds, arrays, against = dict[int, Type](), set[int](), command.against
    columns = tuple(OutputColumn(name, type_, str(type_)) for name, type_ in held.mechanisms.columns(command))
    for part in (command.question, None if against is None else against.query):
        if part is not None:
            with part_of(sql, part.offset):
                found = _query(desk, schema, part.sql, part.own([*types, *[None] * (max(part.places, default=0) + 1)]))
            kinds |= dict(zip(part.places, found.parameters, strict=True))
            arrays |= {part.places[place] for place in found.arrays}
    if against is not None and against.place is not None:
        kinds.setdefault(against.place, DOUBLE)
    count = count_placeholders(tokenize(sql))
    return Prepared(tuple(kinds.get(place, TEXT) for place in range(count)), columns, _word(sql), frozenset(arrays))


def _query(desk: Desk, schema: Schema, sql: str, types: Sequence[Type | None]) -> Prepared:
    found = placeholders(sql, schema, types)
    kinds = tuple(one.type for one in found)
    arrays = frozenset(place for place, one in enumerate(found) if one.array)
    try:
        return Prepared(kinds, desk.describe(sql, [one.sample for one in found]), arrays=arrays)
    except Error as error:
        if not found:
            raise
        with suppress(Error):  # NULL stands nearly everywhere, also for the name of a table or a setting
            return Prepared(kinds, desk.describe(sql, [None] * len(found)), arrays=arrays)
        if not _may_be_of_a_value(error):
            raise
        return Prepared(kinds, (), arrays=arrays, unknown=error)


def _may_be_of_a_value(error: Error) -> bool:
    """Names that there are not, syntax and budgets are as wrong with all values; types and what is taken may not be."""
    return error.sqlstate[:2] in ("0A", "21", "22") or error.sqlstate == "42804"
