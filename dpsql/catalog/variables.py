"""PostgreSQL's settings that clients set when they connect: accepted, shown again, and of no effect.

Only those on this list, and where the value would change what an answer looks like, only the value that is true here:
time is UTC, text is UTF-8, dates are ISO.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpsql.catalog.identity import SERVER_VERSION
from dpsql.errors import InvalidParameter

MOST_CHARACTERS = 1_000


@dataclass(frozen=True)
class Variable:
    """`allowed` maps spellings to the one that is shown; None: any text. `fixed`: can be read only."""

    name: str
    default: str
    allowed: Mapping[str, str] | None = None
    fixed: bool = False


def _words(shown: str, *others: str) -> dict[str, str]:
    return {word.lower(): shown for word in (shown, *others)}


_UTC = _words("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Universal", "0", "+00", "+00:00", "Etc/Universal")
_ISO = {
    spelled: f"ISO, {order}"
    for order in ("MDY", "DMY", "YMD")
    for spelled in (f"iso, {order.lower()}", f"{order.lower()}, iso", order.lower())
} | {"iso": "ISO, MDY"}
_ON, _OFF = _words("on", "true", "yes", "1"), _words("off", "false", "no", "0")
_SWITCH = _ON | _OFF
_LEVELS = {
    word: word for word in ("serializable", "repeatable read", "read committed", "read uncommitted")
}  # every charge is serialisable, whatever is asked for

_LIST = (
    Variable("application_name", ""),
    Variable("bytea_output", "hex", _words("hex")),
    Variable("client_encoding", "UTF8", _words("UTF8", "UTF-8", "unicode", "utf_8")),
    Variable("client_min_messages", "notice"),
    Variable("DateStyle", "ISO, MDY", _ISO),
    Variable("default_transaction_isolation", "serializable", _LEVELS),
    Variable("default_transaction_read_only", "on", _SWITCH),
    Variable("extra_float_digits", "1", {str(n): str(n) for n in range(-15, 4)}),
    Variable("idle_in_transaction_session_timeout", "0"),
    Variable("integer_datetimes", "on", fixed=True),
    Variable("IntervalStyle", "postgres", _words("postgres")),
    Variable("is_superuser", "off", fixed=True),
    Variable("jit", "off", _SWITCH),
    Variable("lc_messages", "C"),
    Variable("lock_timeout", "0"),
    Variable("max_identifier_length", "63", fixed=True),
    Variable("row_security", "on", _SWITCH),
    Variable("search_path", '"$user", public'),
    Variable("server_encoding", "UTF8", fixed=True),
    Variable("server_version", SERVER_VERSION, fixed=True),
    Variable("server_version_num", "150000", fixed=True),
    Variable("standard_conforming_strings", "on", _ON),
    Variable("statement_timeout", "0"),
    Variable("TimeZone", "UTC", _UTC),
    Variable("transaction_isolation", "serializable", _LEVELS),
    Variable("transaction_read_only", "on", _SWITCH),
)
VARIABLES = {variable.name.lower(): variable for variable in _LIST}


@dataclass(frozen=True)
class Variables:
    """What a client has set, by folded names; what is not there has its default."""

    changed: Mapping[str, str] = field(default_factory=dict)

    def set(self, name: str, value: str) -> Variables:
        variable = VARIABLES[name.lower()]
        if variable.fixed:
            raise InvalidParameter(f'parameter "{variable.name}" cannot be changed', sqlstate="55P02")
        return Variables({**self.changed, variable.name.lower(): _accepted(variable, value)})

    def reset(self, name: str | None) -> Variables:
        if name is None:
            return Variables()
        return Variables({known: value for known, value in self.changed.items() if known != name.lower()})

    def show(self, name: str) -> str:
        variable = VARIABLES[name.lower()]
        return self.changed.get(variable.name.lower(), variable.default)

    def items(self) -> tuple[tuple[str, str], ...]:
        return tuple((variable.name, self.show(variable.name)) for variable in _LIST)


def is_variable(name: str) -> bool:
    return name.lower() in VARIABLES


def _accepted(variable: Variable, value: str) -> str:
    if len(value) > MOST_CHARACTERS or "\x00" in value:
        raise InvalidParameter(f'the value of "{variable.name}" is too long or holds a zero byte')
    if variable.allowed is None:
        return value
    accepted = variable.allowed.get(value.strip().lower())
    if accepted is None:
        shown = ", ".join(dict.fromkeys(variable.allowed.values()))
        raise InvalidParameter(f'"{value}" is not a value of "{variable.name}" here', hint=f"It can be: {shown}.")
    return accepted
