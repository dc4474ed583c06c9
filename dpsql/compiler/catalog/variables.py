"""What a session says of itself: who is connected to what, and PostgreSQL's settings that clients set and read.

`Identity` has the answers to current_user, current_database() and version(). Settings that clients set when they
connect are accepted, shown again, and of no effect, but for `statement_timeout`: how long a statement may wait for the
engine.

Only those on this list, and where the value would change what an answer looks like, only the value that is true here:
time is UTC, text is UTF-8, dates are ISO.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from dpsql.errors import InvalidParameter

SERVER_VERSION = "16.2"
"""The PostgreSQL that clients are told they talk to; what they send depends on it, so it stays."""
DEFAULT_SCHEMA = "public"


@dataclass(frozen=True)
class Identity:
    """`version` is dpsql's; `variables` are what current_setting() may read; `login` is who connected, where another is
    acted for; `opened` are dpsql's own settings as RESET brings them back."""

    user: str
    database: str
    version: str
    variables: tuple[tuple[str, str], ...] = ()
    login: str | None = None
    opened: tuple[tuple[str, str], ...] = ()
    process: int = 0  # what pg_backend_pid() says; a wire gives each connection a number

    @property
    def version_text(self) -> str:
        return f"PostgreSQL {SERVER_VERSION} (dpsql {self.version})"

    def for_statement(self, sql: str) -> Identity:
        """As far as it matters to this text: what is worked out for one connection serves others of the same user."""
        return self if "pg_backend_pid" in sql.lower() else replace(self, process=0)

    def get_variable(self, name: str) -> str | None:
        return next((value for variable_name, value in self.variables if variable_name.lower() == name.lower()), None)


MAX_VALUE_CHARACTERS = 1_000


@dataclass(frozen=True)
class Variable:
    """`allowed` maps spellings to the one that is shown; None: any text. `fixed`: can be read only.

    `duration`: a time such as 500, in milliseconds, or 5s. `bare`: only letters and digits of a value count, as
    PostgreSQL reads the names of encodings; some clients send 'utf-8' with its quotes. `like`: the default is the value
    of the setting that it names.
    """

    name: str
    default: str
    allowed: Mapping[str, str] | None = None
    fixed: bool = False
    duration: bool = False
    bare: bool = False
    like: bool = False


def _spellings_of(canonical: str, *others: str) -> dict[str, str]:
    return {word.lower(): canonical for word in (canonical, *others)}


_UTC = _spellings_of("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Universal", "0", "+00", "+00:00", "Etc/Universal")
_ISO = {
    spelled: f"ISO, {order}"
    for order in ("MDY", "DMY", "YMD")
    for spelled in (f"iso, {order.lower()}", f"{order.lower()}, iso", order.lower())
} | {"iso": "ISO, MDY"}
_ON, _OFF = _spellings_of("on", "true", "yes", "1"), _spellings_of("off", "false", "no", "0")
_BOOLEAN = _ON | _OFF
_ISOLATION_LEVELS = {
    word: word for word in ("serializable", "repeatable read", "read committed", "read uncommitted")
}  # data does not change, and every charge is serialisable: they are the same here

_ALL_VARIABLES = (
    Variable("application_name", ""),
    Variable("bytea_output", "hex", _spellings_of("hex")),
    Variable("client_encoding", "UTF8", _spellings_of("UTF8", "unicode"), bare=True),
    Variable("client_min_messages", "notice"),
    Variable("DateStyle", "ISO, MDY", _ISO),
    Variable("default_table_access_method", "heap", fixed=True),
    Variable("default_transaction_isolation", "read committed", _ISOLATION_LEVELS),
    Variable("default_transaction_read_only", "on", _BOOLEAN),
    Variable("extra_float_digits", "1", {str(n): str(n) for n in range(-15, 4)}),
    Variable("idle_in_transaction_session_timeout", "0"),
    Variable("integer_datetimes", "on", fixed=True),
    Variable("IntervalStyle", "postgres", _spellings_of("postgres")),
    Variable("is_superuser", "off", fixed=True),
    Variable("jit", "off", _BOOLEAN),
    Variable("lc_messages", "C"),
    Variable("lock_timeout", "0"),
    Variable("lc_collate", "C", fixed=True),
    Variable("lc_ctype", "C", fixed=True),
    Variable("max_identifier_length", "63", fixed=True),
    Variable("max_index_keys", "32", fixed=True),
    Variable("row_security", "on", _BOOLEAN),
    Variable("search_path", '"$user", public'),
    Variable("server_encoding", "UTF8", fixed=True),
    Variable("server_version", SERVER_VERSION, fixed=True),
    Variable("server_version_num", "160002", fixed=True),
    Variable("standard_conforming_strings", "on", _ON),
    Variable("statement_timeout", "0", duration=True),
    Variable("TimeZone", "UTC", _UTC),
    Variable("transaction_isolation", "default_transaction_isolation", _ISOLATION_LEVELS, like=True),
    Variable("transaction_read_only", "default_transaction_read_only", _BOOLEAN, like=True),
)
VARIABLES = {variable.name.lower(): variable for variable in _ALL_VARIABLES}


@dataclass(frozen=True)
class Variables:
    """What a client has set, by folded names; what is not there has its default."""

    changed: Mapping[str, str] = field(default_factory=dict)

    def set(self, name: str, value: str) -> Variables:
        variable = VARIABLES[name.lower()]
        if variable.fixed:
            raise InvalidParameter(f'parameter "{variable.name}" cannot be changed', sqlstate="55P02")
        return Variables({**self.changed, variable.name.lower(): _accept_value(variable, value)})

    def reset(self, name: str, opened: Variables) -> Variables:
        """Set back to the value with which the connection was opened."""
        others = {
            variable_name: value for variable_name, value in self.changed.items() if variable_name != name.lower()
        }
        return Variables(
            others
            | {variable_name: value for variable_name, value in opened.changed.items() if variable_name == name.lower()}
        )

    def show(self, name: str) -> str:
        variable = VARIABLES[name.lower()]
        changed = self.changed.get(variable.name.lower())
        return changed if changed is not None else self.show(variable.default) if variable.like else variable.default

    @cached_property
    def statement_timeout(self) -> int:
        """In milliseconds; 0: none."""
        return _parse_milliseconds(self.show("statement_timeout")) or 0

    def items(self) -> tuple[tuple[str, str], ...]:
        return self._items

    @cached_property
    def _items(self) -> tuple[tuple[str, str], ...]:
        return tuple((variable.name, self.show(variable.name)) for variable in _ALL_VARIABLES)


def canonical_name(name: str) -> str:
    """As PostgreSQL shows it, in whatever case it was asked for."""
    return VARIABLES[name.lower()].name if is_variable(name) else name


def is_variable(name: str) -> bool:
    return name.lower() in VARIABLES


def _accept_value(variable: Variable, value: str) -> str:
    if len(value) > MAX_VALUE_CHARACTERS or "\x00" in value:
        raise InvalidParameter(f'the value of "{variable.name}" is too long or holds a zero byte')
    if variable.duration:
        return _format_duration(variable, value)
    if variable.allowed is None:
        return value
    word = re.sub(r"[^0-9a-z]", "", value.lower()) if variable.bare else value.strip().lower()
    accepted = variable.allowed.get(word)
    if accepted is None:
        allowed_values = ", ".join(dict.fromkeys(variable.allowed.values()))
        raise InvalidParameter(
            f'"{value}" is not a value of "{variable.name}" here', hint=f"It can be: {allowed_values}."
        )
    return accepted


_UNITS = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1_000, "ms": 1}
_MAX_MILLISECONDS = 2**31 - 1


def _format_duration(variable: Variable, value: str) -> str:
    """In the largest unit that gives a whole number, as PostgreSQL shows it."""
    milliseconds = _parse_milliseconds(value)
    if milliseconds is None:
        raise InvalidParameter(
            f'invalid value for parameter "{variable.name}": "{value}"',
            hint="Write milliseconds, or a number with a unit: ms, s, min, h or d; 0 is no limit.",
        )
    if not 0 <= milliseconds <= _MAX_MILLISECONDS:
        raise InvalidParameter(f'"{value}" is outside the valid range of "{variable.name}", 0 to 2147483647 ms')
    if not milliseconds:
        return "0"
    unit = next(unit for unit, size in _UNITS.items() if milliseconds % size == 0)
    return f"{milliseconds // _UNITS[unit]}{unit}"


def _parse_milliseconds(text: str) -> int | None:
    match = re.fullmatch(r"\s*([+-]?[0-9]{1,12}(?:\.[0-9]{0,6})?)\s*(us|ms|s|min|h|d)?\s*", text, re.ASCII)
    if match is None:
        return None
    size = Fraction(1, 1000) if match[2] == "us" else Fraction(_UNITS[match[2] or "ms"])
    return round(Fraction(match[1]) * size)
