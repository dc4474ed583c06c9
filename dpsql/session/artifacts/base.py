"""The interface of builders of models and synthetic tables: request, options, and what was created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Protocol

from dpsql.base.option_names import STATEMENT_OPTIONS, list_option_names
from dpsql.compiler import settings as setting
from dpsql.compiler.compiled import Compiled
from dpsql.compiler.parse.create_commands import CreateCommand
from dpsql.compiler.parse.googlesql import Option
from dpsql.compiler.parse.literals import parse_exact_number
from dpsql.compiler.parse.parameters import Parameter, inline_parameters
from dpsql.compiler.parse.parser import tokenize
from dpsql.compiler.settings import Settings, apply_options
from dpsql.errors import Error, InvalidParameter, Unsupported
from dpsql.ledger.base import CreatedObject
from dpsql.session.explain import Explanation
from dpsql.session.postprocess.sandbox import OutputColumn
from dpsql.session.query import QueryExecutor
from dpsql.session.result import StatementResult


@dataclass(frozen=True)
class CreateRequest:
    """A CREATE, on behalf of an account; `all_parameters` are those of the whole statement, not only of its query."""

    queries: QueryExecutor
    command: CreateCommand
    sql: str
    all_parameters: Sequence[Parameter]

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The parameters of its query."""
        return self.command.query_parameters(self.all_parameters)

    @property
    def statement(self) -> str:
        """As it is told again: with the values that were bound to it."""
        return inline_parameters(self.sql, tokenize(self.sql), self.all_parameters).strip()


@dataclass(frozen=True)
class CreatedArtifact:
    """What was bought: a release, how it is read (`definition`, JSON with the statement), and what is shown of it."""

    release: int
    definition: Mapping[str, Any]
    answer: StatementResult


class ArtifactBuilder(Protocol):
    """Creates, explains and shows one kind of object: models or synthetic tables."""

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        """The columns of CREATE's result."""

    def compile_release(self, request: CreateRequest) -> Compiled:
        """The release as it would run: values that must be released first are what the account has, or none. Free."""

    def create_artifact(self, request: CreateRequest) -> CreatedArtifact:
        """Pay for the release and read it."""

    def explain(self, request: CreateRequest) -> Explanation:
        """What creating it would be charged. Free."""

    def show(self, stored: CreatedObject, body: bytes) -> StatementResult:
        """The result of SHOW for one object."""

    def to_record(self, stored: CreatedObject, body: bytes) -> object:
        """What SHOW has, as a value for JSON."""


# Options of CREATE … WITH (…): those of any statement that are of use here, and those of one kind of object.

UNIT_COLUMN_OPTION = "privacy_unit_column"
"""May be named, as in any statement, and changes nothing."""


@dataclass(frozen=True)
class CreateOptions:
    """What the statement may lose, and the options of its own."""

    settings: Settings
    own: Mapping[str, Option]


def read_create_options(request: CreateRequest, own_names: tuple[str, ...]) -> CreateOptions:
    """`own` are the names of the kind's own. An accuracy that the session aims at is not for what is made."""
    options = request.command.options
    try:
        for option in options:
            _require_option(request.command.kind, option, own_names)
        others = tuple(option for option in options if option.name not in own_names)
        context = request.queries.context
        settings = apply_options(context.settings.statement, context.dataset.schema, others)
    except Error as error:
        error.statement = request.sql
        raise
    settings = replace(settings, max_error=None, max_relative_error=None)
    return CreateOptions(settings, {option.name: option for option in options if option.name in own_names})


def _require_option(kind: str, option: Option, own_names: tuple[str, ...]) -> None:
    names = (*list_option_names(STATEMENT_OPTIONS), *own_names)
    if option.name in (*names, UNIT_COLUMN_OPTION):
        return
    listed = f"Options: {', '.join(names)}."
    if option.name in setting.OPTION_SETTINGS:
        aims = option.name in ("max_error", "max_relative_error", "confidence")
        hint = f"Give it an epsilon. {listed}" if aims else listed
        raise InvalidParameter(f"a {kind} has no {option.name}", hint=hint, span=option.span)
    near = get_close_matches(option.name, names, n=1)
    perhaps = f'Perhaps you meant "{near[0]}". ' if near else ""
    raise Unsupported(f'there is no option "{option.name}"', hint=perhaps + listed, span=option.span, sqlstate="42704")


def read_choice(option: Option | None, choices: tuple[str, ...]) -> str | None:
    """One of the known words; None where the option is not given."""
    if option is None:
        return None
    value = option.value.strip("'\"").lower()
    if value not in choices:
        raise InvalidParameter(f'{option.name} must be {" or ".join(choices)}, not "{option.value}"', span=option.span)
    return value


def read_number(option: Option | None, lower: Fraction, upper: Fraction) -> Fraction | None:
    value = _parse_number(option)
    if option is not None and (value is None or not lower <= value <= upper):
        raise InvalidParameter(
            f"{option.name} must be a number from {float(lower):g} to {float(upper):g}", span=option.span
        )
    return value


def read_integer(option: Option | None, lower: int, upper: int) -> int | None:
    value = _parse_number(option)
    if option is None:
        return None
    if value is None or value.denominator != 1 or not lower <= value <= upper:
        raise InvalidParameter(f"{option.name} must be a whole number from {lower} to {upper:,}", span=option.span)
    return int(value)


def _parse_number(option: Option | None) -> Fraction | None:
    if option is None:
        return None
    try:
        return parse_exact_number(option.value.strip("'\""))
    except Error:
        return None
