"""Options of CREATE … WITH (…): those of any statement that are of use here, and those of one kind of object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction

from dpsql import settings as setting
from dpsql.errors import Error, InvalidParameter, Unsupported
from dpsql.making.base import Asked
from dpsql.option_names import OF_STATEMENTS, names_in
from dpsql.settings import Settings, with_options
from dpsql.sql.numerals import exact_number
from dpsql.sql.options import Option

UNIT = "privacy_unit_column"
"""May be named, as in any statement, and changes nothing."""


@dataclass(frozen=True)
class Given:
    """What the statement may lose, and the options of its own."""

    settings: Settings
    own: Mapping[str, Option]


def read_options(asked: Asked, own: tuple[str, ...]) -> Given:
    """`own` are the names of the kind's own. An accuracy that the session aims at is not for what is made."""
    options = asked.command.options
    try:
        for option in options:
            _require_known(asked.command.kind, option, own)
        others = tuple(option for option in options if option.name not in own)
        settings = with_options(asked.queries.settings.statement, asked.queries.dataset.schema, others)
    except Error as error:
        error.statement = asked.sql
        raise
    settings = replace(settings, max_error=None, max_relative_error=None)
    return Given(settings, {option.name: option for option in options if option.name in own})


def _require_known(kind: str, option: Option, own: tuple[str, ...]) -> None:
    names = (*names_in(OF_STATEMENTS), *own)
    if option.name in (*names, UNIT):
        return
    listed = f"Options: {', '.join(names)}."
    if option.name in setting.OPTIONS:
        aims = option.name in ("max_error", "max_relative_error", "confidence")
        hint = f"Give it an epsilon. {listed}" if aims else listed
        raise InvalidParameter(f"a {kind} has no {option.name}", hint=hint, span=option.span)
    near = get_close_matches(option.name, names, n=1)
    perhaps = f'Perhaps you meant "{near[0]}". ' if near else ""
    raise Unsupported(f'there is no option "{option.name}"', hint=perhaps + listed, span=option.span, sqlstate="42704")


def word(option: Option | None, known: tuple[str, ...]) -> str | None:
    """One of the known words; None where the option is not given."""
    if option is None:
        return None
    value = option.value.strip("'\"").lower()
    if value not in known:
        raise InvalidParameter(f'{option.name} must be {" or ".join(known)}, not "{option.value}"', span=option.span)
    return value


def number(option: Option | None, least: Fraction, most: Fraction) -> Fraction | None:
    found = _number(option)
    if option is not None and (found is None or not least <= found <= most):
        raise InvalidParameter(
            f"{option.name} must be a number from {float(least):g} to {float(most):g}", span=option.span
        )
    return found


def whole(option: Option | None, least: int, most: int) -> int | None:
    found = _number(option)
    if option is None:
        return None
    if found is None or found.denominator != 1 or not least <= found <= most:
        raise InvalidParameter(f"{option.name} must be a whole number from {least} to {most:,}", span=option.span)
    return int(found)


def _number(option: Option | None) -> Fraction | None:
    if option is None:
        return None
    try:
        return exact_number(option.value.strip("'\""))
    except Error:
        return None
