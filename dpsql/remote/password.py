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

Ask = Callable[[str], str]
"""Asks a person, without echo."""


def with_password(address: ServerAddress, environment: Mapping[str, str], ask: Ask | None = None) -> ServerAddress:
    """The address with the password of its login; InterfaceError where there is none and nobody to ask."""
    if address.password is not None:
        return address
    found = _from_file(address, environment)
    if found is None and ask is not None:
        found = ask(f"Password for {address.user} at {address}: ")
    if found is None:
        raise InterfaceError(
            f'there is no password for "{address.user}" at {address}',
            hint="Set PGPASSWORD, or write a line host:port:database:user:password into ~/.pgpass.",
        )
    return address.with_password(found)


def _from_file(address: ServerAddress, environment: Mapping[str, str]) -> str | None:
    """The first line of the file that fits. A file that others can read is left alone, as PostgreSQL's clients do."""
    named = environment.get("PGPASSFILE")
    path = Path(named) if named else Path(environment.get("HOME") or "~").expanduser() / ".pgpass"
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return None
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    host = "localhost" if address.is_local else address.host
    wanted = (host, str(address.port), address.database or address.user, address.user)
    return next((password for line in lines if (password := find(line, wanted)) is not None), None)


def find(line: str, wanted: tuple[str, ...]) -> str | None:
    """
    >>> find(r"*:5433:clinic:ana:a\\:b", ("host", "5433", "clinic", "ana"))
    'a:b'
    >>> find("host:5433:other:ana:x", ("host", "5433", "clinic", "ana"))
    """
    found = None if line.startswith("#") else _LINE.fullmatch(line)
    if found is None:
        return None
    *fields, password = found.groups()
    fits = all(field == "*" or _plain(field) == value for field, value in zip(fields, wanted, strict=True))
    return _plain(password) if fits else None


_LINE = re.compile(r"((?:\\.|[^:\\])*):" * 4 + "(.*)")


def _plain(field: str) -> str:
    return re.sub(r"\\(.)", r"\1", field)
