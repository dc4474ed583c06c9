"""What a session says of itself: who is connected to what, and PostgreSQL's settings that clients set and read.

`Identity` has the answers to current_user, current_database() and version(). Settings that clients set when they
connect are accepted, shown again, and of no effect, but for `statement_timeout`, how long a statement may wait for the
engine, and `TimeZone`.

Only those on this list, and where the value would change what an answer looks like, only the value that is true here:
dates are ISO. Times are read and shown in the session's time zone, which is part of `Identity`. Text is in any encoding
that `base/client_encodings.py` knows; a server converts it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property

from dpsql.base.client_encodings import ENCODING_SPELLINGS
from dpsql.base.time_zones import UTC, TimeZone
from dpsql.compiler.functions.time_zones import ZoneName, read_zone_setting, suggest_zones
from dpsql.errors import InvalidParameter, LimitExceeded

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
    time_zone: TimeZone = field(default=UTC, repr=False)  # in which local times are read and shown

    @property
    def version_text(self) -> str:
        return f"PostgreSQL {SERVER_VERSION} (dpsql {self.version})"

    def for_statement(self, sql: str) -> Identity:
        """As far as it matters to this text: what is worked out for one connection serves others of the same user."""
        needs_process = any(word in sql.lower() for word in ("pg_backend_pid", "pg_stat_activity"))
        return self if needs_process else replace(self, process=0)

    def get_variable(self, name: str) -> str | None:
        return next((value for variable_name, value in self.variables if variable_name.lower() == name.lower()), None)


MAX_VALUE_CHARACTERS = 1_000


@dataclass(frozen=True)
class Variable:
    """`allowed` maps spellings to the one that is shown; None: any text. `fixed`: can be read only.

    `zone`: the name of a time zone. `duration`: a time such as 500, in milliseconds, or 5s. `bare`: only letters and
    digits of a value count, as PostgreSQL reads the names of encodings; some clients send 'utf-8' with its quotes.
    `like`: the default is the value of the setting that it names. `planner`: it has no effect here, and is not offered
    where names are completed.
    """

    name: str
    default: str
    allowed: Mapping[str, str] | None = None
    fixed: bool = False
    duration: bool = False
    bare: bool = False
    like: bool = False
    planner: bool = False
    zone: bool = False


def _spellings_of(canonical: str, *others: str) -> dict[str, str]:
    return {word.lower(): canonical for word in (canonical, *others)}


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
    Variable("check_function_bodies", "on", _BOOLEAN),
    Variable("client_encoding", "UTF8", ENCODING_SPELLINGS, bare=True),
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
    Variable("TimeZone", "UTC", zone=True),
    Variable("transaction_isolation", "default_transaction_isolation", _ISOLATION_LEVELS, like=True),
    Variable("transaction_read_only", "default_transaction_read_only", _BOOLEAN, like=True),
)
_PLANNER_VARIABLES = (
    *(
        Variable(name, "on", _BOOLEAN, planner=True)
        for name in ("enable_bitmapscan", "enable_hashagg", "enable_hashjoin", "enable_indexonlyscan",
                     "enable_indexscan", "enable_material", "enable_memoize", "enable_mergejoin", "enable_nestloop",
                     "enable_seqscan", "enable_sort", "geqo", "synchronize_seqscans")
    ),
    *(
        Variable(name, default, planner=True)
        for name, default in (
            ("cursor_tuple_fraction", "0.1"), ("default_statistics_target", "100"), ("effective_cache_size", "4GB"),
            ("effective_io_concurrency", "1"), ("from_collapse_limit", "8"), ("hash_mem_multiplier", "2"),
            ("idle_session_timeout", "0"), ("join_collapse_limit", "8"), ("maintenance_work_mem", "64MB"),
            ("max_parallel_workers", "8"), ("max_parallel_workers_per_gather", "2"), ("plan_cache_mode", "auto"),
            ("random_page_cost", "4"), ("seq_page_cost", "1"), ("synchronous_commit", "on"), ("temp_buffers", "8MB"),
            ("work_mem", "4MB"),
        )
    ),
)  # fmt: skip
"""How PostgreSQL plans and how much memory it takes: scripts set them to be faster there. They have no effect here."""

_BY_NAME = {variable.name.lower(): variable for variable in (*_ALL_VARIABLES, *_PLANNER_VARIABLES)}
VARIABLES = {name: _BY_NAME[name] for name in sorted(_BY_NAME)}

MAX_CUSTOM_VARIABLES = 100
_CUSTOM_NAME = re.compile(r"[a-z_][a-z0-9_$]*(\.[a-z_][a-z0-9_$]*)+")
_OWN_PREFIXES = ("contributions", "privacy", "budget", "query", "limits", "accounts", "ledger", "engine", "dpsql")


def _is_custom_name(name: str) -> bool:
    """A name with a dot, such as `app.user_id`: whatever a program wants to keep for its connection.

    Not one that is nearly a setting of dpsql's own, or begins as a key of the schema: who means that is to hear of it.

    >>> _is_custom_name("app.user_id"), _is_custom_name("contribution.rows"), _is_custom_name("privacy.budget")
    (True, False, False)
    """
    if not _CUSTOM_NAME.fullmatch(name.lower()):
        return False
    return not get_close_matches(name.lower().partition(".")[0], _OWN_PREFIXES, cutoff=0.7)


@dataclass(frozen=True)
class Variables:
    """What a client has set, by folded names; what is not there has its default."""

    changed: Mapping[str, str] = field(default_factory=dict)

    def set(self, name: str, value: str) -> Variables:
        variable = _find_variable(name)
        if variable.fixed:
            raise InvalidParameter(f'parameter "{variable.name}" cannot be changed', sqlstate="55P02")
        changed = {**self.changed, variable.name.lower(): _accept_value(variable, value)}
        if sum(name not in VARIABLES for name in changed) > MAX_CUSTOM_VARIABLES:
            raise LimitExceeded(f"a connection has at most {MAX_CUSTOM_VARIABLES} parameters of its own")
        return Variables(changed)

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
        variable = _find_variable(name)
        changed = self.changed.get(variable.name.lower())
        if changed is None and variable.name not in _VARIABLE_NAMES:
            raise InvalidParameter(f'unrecognized configuration parameter "{name}"', sqlstate="42704")
        return changed if changed is not None else self.show(variable.default) if variable.like else variable.default

    @cached_property
    def statement_timeout(self) -> int:
        """In milliseconds; 0: none."""
        return _parse_milliseconds(self.show("statement_timeout")) or 0

    @cached_property
    def zone_name(self) -> ZoneName:
        """The time zone of the session."""
        return _read_zone(VARIABLES["timezone"], self.show("TimeZone"))

    def items(self) -> tuple[tuple[str, str], ...]:
        return self._items

    @cached_property
    def _items(self) -> tuple[tuple[str, str], ...]:
        custom = [(name, value) for name, value in self.changed.items() if name not in VARIABLES]
        return (*((variable.name, self.show(variable.name)) for variable in VARIABLES.values()), *custom)


def canonical_name(name: str) -> str:
    """As PostgreSQL shows it, in whatever case it was asked for."""
    return _find_variable(name).name if is_variable(name) else name


def is_variable(name: str) -> bool:
    return name.lower() in VARIABLES or _is_custom_name(name)


def _find_variable(name: str) -> Variable:
    """One that there is, or a custom one, which takes any text."""
    return VARIABLES.get(name.lower()) or Variable(name.lower(), "")


_VARIABLE_NAMES = frozenset(variable.name for variable in VARIABLES.values())


def _accept_value(variable: Variable, value: str) -> str:
    if len(value) > MAX_VALUE_CHARACTERS or "\x00" in value:
        raise InvalidParameter(f'the value of "{variable.name}" is too long or holds a zero byte')
    if variable.duration:
        return _format_duration(variable, value)
    if variable.zone:
        return _read_zone(variable, value).shown
    if variable.allowed is None:
        return value
    word = re.sub(r"[^0-9a-z]", "", value.lower()) if variable.bare else value.strip().lower()
    accepted = variable.allowed.get(word)
    if accepted is None:
        allowed_values = ", ".join(dict.fromkeys(variable.allowed.values()))
        raise InvalidParameter(
            f'invalid value for parameter "{variable.name}": "{value}"', hint=f"It can be: {allowed_values}."
        )
    return accepted


def _read_zone(variable: Variable, value: str) -> ZoneName:
    zone = read_zone_setting(value)
    if zone is None:
        near = " or ".join(f"'{name}'" for name in suggest_zones(value))
        hint = f"Perhaps you meant {near}." if near else "Zones have the names of IANA's list, such as 'Europe/Berlin'."
        raise InvalidParameter(f'invalid value for parameter "{variable.name}": "{value}"', hint=hint)
    return zone


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
