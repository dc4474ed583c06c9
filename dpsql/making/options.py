"""Options of CREATE … WITH (…): those of any statement that are of use here, and those of one kind of object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction

from dpsql import settings as setting
from dpsql.errors import Error, InvalidParameter, Unsupported
from dpsql.making.base import CreateRequest
from dpsql.option_names import STATEMENT_OPTIONS, list_option_names
from dpsql.settings import Settings, apply_options
from dpsql.sql.numerals import parse_exact_number
from dpsql.sql.options import Option

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
        settings = apply_options(request.queries.settings.statement, request.queries.dataset.schema, others)
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
