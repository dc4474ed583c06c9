"""Where a server is, and how to log in to it: what a URL says, and PostgreSQL's variables of the environment.

    dpsql://ana@host:5433/clinic?epsilon=0.2&sslmode=verify-full
    postgresql://ana:secret@host:5433/clinic?options=-c%20epsilon%3D0.2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import SplitResult, unquote, urlsplit

from dpsql.errors import InterfaceError

SCHEMES = ("dpsql", "postgresql", "postgres")
PORT = 5433
POSTGRES_PORT = 5432
SSLMODES = ("disable", "prefer", "require", "verify-ca", "verify-full")
BINDINGS = ("disable", "prefer", "require")
TIMEOUT = 10.0
"""Seconds for connecting and logging in, unless `connect_timeout` says otherwise."""
FORM = "Write dpsql://ana@host:5433/clinic, or postgresql://…"

_OURS = ("host", "port", "user", "password", "sslmode", "sslrootcert", "channel_binding", "connect_timeout")
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
    timeout: float = TIMEOUT
    settings: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """For people: without the password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """A socket in a folder of this machine."""
        return self.host.startswith("/")

    def with_password(self, password: str) -> ServerAddress:
        return replace(self, password=password)


def is_server(where: str) -> bool:
    """Whether a text is the URL of a server, and not of a schema: `dpsql:///path` has no host.

    >>> is_server("dpsql://ana@host/clinic"), is_server("postgresql:///clinic"), is_server("dpsql:///clinic.yaml")
    (True, True, False)
    """
    scheme, separator, rest = where.partition("://")
    known = bool(separator) and scheme.lower() in SCHEMES
    return known and (scheme.lower() != "dpsql" or not rest.startswith("/"))


def read_server(
    where: str,
    user: str | None,
    query: Mapping[str, str],
    settings: Mapping[str, str],
    environment: Mapping[str, str],
) -> ServerAddress:
    """`query` is what stands behind the question mark; arguments win over the URL, and that over the environment."""
    url = split_server(where)
    name = user or query.get("user") or _part(url.username) or environment.get("PGUSER")
    if not name:
        raise InterfaceError("the URL names no user", hint=FORM)
    given = {key: value for key, value in query.items() if key not in _OURS}
    return ServerAddress(
        host=query.get("host") or _part(url.hostname) or "localhost",
        port=_port(url, query.get("port")),
        database=unquote(url.path.removeprefix("/")) or None,
        user=name,
        password=query.get("password") or _part(url.password) or environment.get("PGPASSWORD"),
        sslmode=_choice("sslmode", query.get("sslmode") or environment.get("PGSSLMODE") or "prefer", SSLMODES),
        sslrootcert=query.get("sslrootcert") or environment.get("PGSSLROOTCERT"),
        channel_binding=_choice("channel_binding", query.get("channel_binding", "prefer"), BINDINGS),
        timeout=_timeout(query.get("connect_timeout") or environment.get("PGCONNECT_TIMEOUT")),
        settings={"application_name": "dpsql", **given, **settings},
    )


def split_server(where: str) -> SplitResult:
    try:
        url = urlsplit(where)
    except ValueError:
        raise InterfaceError("the URL of the server cannot be read", hint=FORM) from None
    if url.fragment or "/" in url.path.removeprefix("/"):
        raise InterfaceError("the URL names no database of a server", hint=FORM)
    return url


def _port(url: SplitResult, given: str | None) -> int:
    try:
        port = url.port if given is None else int(given)
    except ValueError:
        port = -1
    if port is not None and not 0 < port < 65536:
        raise InterfaceError("the port in the URL is no number from 1 to 65535", hint=FORM)
    return port or (PORT if url.scheme.lower() == "dpsql" else POSTGRES_PORT)


def _part(text: str | None) -> str | None:
    return None if text is None else unquote(text)


def _choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise InterfaceError(f'{name} cannot be "{value}"', hint=f"It is {', '.join(choices[:-1])} or {choices[-1]}.")
    return value


def _timeout(text: str | None) -> float:
    """As PostgreSQL's clients: 0 waits for ever."""
    try:
        seconds = TIMEOUT if text is None else float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e6:
        raise InterfaceError("connect_timeout is a number of seconds")
    return seconds
