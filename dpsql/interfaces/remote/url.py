"""A server's address and login: from a URL, and from PostgreSQL's environment variables.

dpsql://ana@host:5433/clinic?epsilon=0.2&sslmode=verify-full
postgresql://ana:secret@host:5433/clinic?options=-c%20epsilon%3D0.2
"""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from dpsql.errors import InterfaceError

URL_SCHEMES = ("dpsql", "postgresql", "postgres")
DEFAULT_PORT = 5433
POSTGRES_PORT = 5432
SSLMODES = ("disable", "prefer", "require", "verify-ca", "verify-full")
CHANNEL_BINDINGS = ("disable", "prefer", "require")
DEFAULT_TIMEOUT_SECONDS = 10.0
"""Seconds for connecting and logging in, unless `connect_timeout` says otherwise."""
URL_HINT = "Write dpsql://ana@host:5433/clinic, or postgresql://…"

_CLIENT_OPTIONS = ("host", "port", "user", "password", "sslmode", "sslrootcert", "channel_binding", "connect_timeout")
"""What a URL says to the client; all else is for the server: settings, `options` and `application_name`."""


@dataclass(frozen=True)
class ServerAddress:
    """`password` None: it stands elsewhere. `settings` go to the server as they are, when the login begins."""

    host: str
    port: int
    database: str | None
    user: str
    password: str | None = field(default=None, repr=False)  # never in a log or on a screen
    sslmode: str = "prefer"
    sslrootcert: str | None = None
    channel_binding: str = "prefer"
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    settings: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """The address without the password, to be shown."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """A socket in a folder of this machine."""
        return self.host.startswith("/")

    def with_password(self, password: str) -> ServerAddress:
        return replace(self, password=password)


def is_server_url(where: str) -> bool:
    """Whether a text is the URL of a server, and not of a schema: `dpsql:///path` has no host.

    >>> is_server_url("dpsql://ana@host/clinic"), is_server_url("postgresql:///clinic"), is_server_url("dpsql:///clinic.yaml")
    (True, True, False)
    """
    scheme, separator, rest = where.partition("://")
    has_scheme = bool(separator) and scheme.lower() in URL_SCHEMES
    return has_scheme and (scheme.lower() != "dpsql" or not rest.startswith("/"))


def read_server_url(
    where: str,
    user: str | None,
    query: Mapping[str, str],
    settings: Mapping[str, str],
    environment: Mapping[str, str],
) -> ServerAddress:
    """`query` is what stands behind the question mark; arguments win over the URL, and that over the environment."""
    url = split_server_url(where)
    name = user or query.get("user") or _unquote_part(url.username) or environment.get("PGUSER")
    if not name:
        raise InterfaceError("the URL names no user", hint=URL_HINT)
    server_options = {key: value for key, value in query.items() if key not in _CLIENT_OPTIONS}
    return ServerAddress(
        host=query.get("host") or _unquote_part(url.hostname) or "localhost",
        port=_port_of(url, query.get("port")),
        database=unquote(url.path.removeprefix("/")) or None,
        user=name,
        password=query.get("password") or _unquote_part(url.password) or environment.get("PGPASSWORD"),
        sslmode=_require_choice("sslmode", query.get("sslmode") or environment.get("PGSSLMODE") or "prefer", SSLMODES),
        sslrootcert=query.get("sslrootcert") or environment.get("PGSSLROOTCERT"),
        channel_binding=_require_choice("channel_binding", query.get("channel_binding", "prefer"), CHANNEL_BINDINGS),
        timeout=_parse_timeout(query.get("connect_timeout") or environment.get("PGCONNECT_TIMEOUT")),
        settings={"application_name": "dpsql", **server_options, **settings},
    )


def split_server_url(where: str) -> SplitResult:
    try:
        url = urlsplit(where)
    except ValueError:
        raise InterfaceError("the URL of the server cannot be read", hint=URL_HINT) from None
    if url.fragment or "/" in url.path.removeprefix("/"):
        raise InterfaceError("the URL names no database of a server", hint=URL_HINT)
    return url


def _port_of(url: SplitResult, port_text: str | None) -> int:
    try:
        port = url.port if port_text is None else int(port_text)
    except ValueError:
        port = -1
    if port is not None and not 0 < port < 65536:
        raise InterfaceError("the port in the URL is no number from 1 to 65535", hint=URL_HINT)
    return port or (DEFAULT_PORT if url.scheme.lower() == "dpsql" else POSTGRES_PORT)


def _unquote_part(text: str | None) -> str | None:
    return None if text is None else unquote(text)


def _require_choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise InterfaceError(f'{name} cannot be "{value}"', hint=f"It is {', '.join(choices[:-1])} or {choices[-1]}.")
    return value


def _parse_timeout(text: str | None) -> float:
    """As PostgreSQL's clients: 0 waits for ever."""
    try:
        seconds = DEFAULT_TIMEOUT_SECONDS if text is None else float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e6:
        raise InterfaceError("connect_timeout is a number of seconds")
    return seconds


# The password of a login: from the URL, PGPASSWORD or the file ~/.pgpass, or asked for without echo.
#
# Law: it is on no screen, in no history and in no log.

PasswordPrompt = Callable[[str], str]
"""Asks a person, without echo."""


def resolve_password(
    address: ServerAddress, environment: Mapping[str, str], ask: PasswordPrompt | None = None
) -> ServerAddress:
    """The address with the password of its login; InterfaceError where there is none and nobody to ask."""
    if address.password is not None:
        return address
    password = _read_pgpass(address, environment)
    if password is None and ask is not None:
        password = ask(f"Password for {address.user} at {address}: ")
    if password is None:
        raise InterfaceError(
            f'there is no password for "{address.user}" at {address}',
            hint="Set PGPASSWORD, or write a line host:port:database:user:password into ~/.pgpass.",
        )
    return address.with_password(password)


def _read_pgpass(address: ServerAddress, environment: Mapping[str, str]) -> str | None:
    """The first line of the file that fits. A file that others can read is left alone, as PostgreSQL's clients do."""
    file_name = environment.get("PGPASSFILE")
    path = Path(file_name) if file_name else Path(environment.get("HOME") or "~").expanduser() / ".pgpass"
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return None
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    host = "localhost" if address.is_local else address.host
    login_fields = (host, str(address.port), address.database or address.user, address.user)
    return next((password for line in lines if (password := match_pgpass_line(line, login_fields)) is not None), None)


def match_pgpass_line(line: str, login_fields: tuple[str, ...]) -> str | None:
    """
    >>> match_pgpass_line(r"*:5433:clinic:ana:a\\:b", ("host", "5433", "clinic", "ana"))
    'a:b'
    >>> match_pgpass_line("host:5433:other:ana:x", ("host", "5433", "clinic", "ana"))
    """
    match = None if line.startswith("#") else _PGPASS_LINE.fullmatch(line)
    if match is None:
        return None
    *fields, password = match.groups()
    fits = all(
        field == "*" or _unescape_field(field) == value for field, value in zip(fields, login_fields, strict=True)
    )
    return _unescape_field(password) if fits else None


_PGPASS_LINE = re.compile(r"((?:\\.|[^:\\])*):" * 4 + "(.*)")


def _unescape_field(field: str) -> str:
    return re.sub(r"\\(.)", r"\1", field)
