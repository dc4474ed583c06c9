"""The password of a login: from the URL, PGPASSWORD or the file ~/.pgpass, or asked for without echo.

Law: it is on no screen, in no history and in no log.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from dpsql.errors import InterfaceError
from dpsql.remote.address import ServerAddress

PasswordPrompt = Callable[[str], str]
"""Asks a person, without echo."""


def resolve_password(address: ServerAddress, environment: Mapping[str, str], ask: PasswordPrompt | None = None) -> ServerAddress:
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
    wanted = (host, str(address.port), address.database or address.user, address.user)
    return next((password for line in lines if (password := match_pgpass_line(line, wanted)) is not None), None)


def match_pgpass_line(line: str, wanted: tuple[str, ...]) -> str | None:
    """
    >>> match_pgpass_line(r"*:5433:clinic:ana:a\\:b", ("host", "5433", "clinic", "ana"))
    'a:b'
    >>> match_pgpass_line("host:5433:other:ana:x", ("host", "5433", "clinic", "ana"))
    """
    match = None if line.startswith("#") else _PGPASS_LINE.fullmatch(line)
    if match is None:
        return None
    *fields, password = match.groups()
    fits = all(field == "*" or _unescape_field(field) == value for field, value in zip(fields, wanted, strict=True))
    return _unescape_field(password) if fits else None


_PGPASS_LINE = re.compile(r"((?:\\.|[^:\\])*):" * 4 + "(.*)")


def _unescape_field(field: str) -> str:
    return re.sub(r"\\(.)", r"\1", field)
