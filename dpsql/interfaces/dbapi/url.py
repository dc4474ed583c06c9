"""Where `connect` is sent: the path of a schema, or a URL, of a schema or of a server, with user and settings.

clinic.yaml
dpsql:///clinic.yaml?user=ana&epsilon=0.5      relative to the working folder
dpsql:////srv/clinic.yaml?user=ana             from the root
dpsql://ana@host:5433/clinic?epsilon=0.5       of a server; postgresql:// means the same
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from dpsql.errors import InterfaceError, NotSupportedError
from dpsql.interfaces.remote.url import ServerAddress, is_server_url, read_server_url, split_server_url

__all__ = ["SchemaAddress", "ServerAddress", "Setting", "is_server_url", "read_address", "read_settings", "schema_path"]

Setting = str | int | float | Decimal | Fraction | bool

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=://)")


@dataclass(frozen=True)
class SchemaAddress:
    path: Path
    user: str | None
    settings: dict[str, str]


def read_address(
    where: str | os.PathLike[str], user: str | None, settings: Mapping[str, Setting]
) -> SchemaAddress | ServerAddress:
    """Arguments win over what the URL says."""
    if not isinstance(where, str | os.PathLike):
        hint = 'For example: connect("clinic.yaml"), connect("dpsql://ana@host:5433/clinic")'
        raise InterfaceError("connect takes the path of a schema, a URL, or a dict", hint=hint)
    setting_texts = read_settings(settings)
    text = os.fspath(where)
    if is_server_url(text):
        return read_server_url(text, user, _parse_query(split_server_url(text).query), setting_texts, os.environ)
    if not text.lower().startswith("dpsql:"):
        if scheme := _SCHEME.match(text):
            raise NotSupportedError(
                f"a schema or a dpsql server is opened here, not a URL of {scheme.group()}",
                hint="Give the path of the schema, dpsql:///path/schema.yaml?user=ana, or dpsql://ana@host:5433/clinic;"
                " the schema names the files or the engine that hold the data.",
            )
        return SchemaAddress(Path(text), user, setting_texts)
    url = urlsplit(text)
    if url.fragment or not url.path.strip("/"):
        raise InterfaceError("the URL names no schema", hint="Write dpsql:///path/schema.yaml?user=ana")
    in_url = _parse_query(url.query)
    url_user = in_url.pop("user", None)
    return SchemaAddress(
        _url_path_to_file(unquote(url.path)), url_user if user is None else user, in_url | setting_texts
    )


def read_settings(settings: Mapping[str, Setting]) -> dict[str, str]:
    """Settings as SET takes them."""
    return {_setting_name(name): _setting_text(value) for name, value in settings.items()}


def schema_path(where: str) -> Path:
    """The file of a schema, for commands that have no analyst."""
    address = None if is_server_url(where) else read_address(where, None, {})
    if address is None or isinstance(address, ServerAddress):
        raise NotSupportedError("this is done with the schema itself, not with a server", hint="Give its file.")
    return address.path


def _url_path_to_file(path: str) -> Path:
    """As in the schema's own URLs, three slashes are relative, and the fourth is the root's."""
    if path.startswith("//"):
        return Path("/" + path.lstrip("/"))
    relative, absolute = Path(path.removeprefix("/")), Path(path)
    if absolute.is_absolute() and absolute.exists() and not relative.exists():
        raise InterfaceError(
            f'there is no "{relative}" in the working folder: three slashes are relative',
            hint=f"A path from the root has four: dpsql:///{quote(path)}",
        )
    return relative


def _parse_query(text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text))
    except ValueError:
        hint = "Write ?user=ana&epsilon=0.5 after the path."
        raise InterfaceError("the query of the URL is not name=value pairs", hint=hint) from None
    for name, value in pairs:
        if _setting_name(name) in options:
            raise InterfaceError(f'the URL says "{name}" twice')
        options[_setting_name(name)] = value
    return options


def _setting_name(name: str) -> str:
    """`contributions_rows` in Python is the setting `contributions.rows`."""
    return name.replace("contributions_", "contributions.", 1)


def _setting_text(value: Setting) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case str() | int() | float() | Decimal() | Fraction():
            return str(value)
        case _:
            raise InterfaceError(f"a setting cannot be a {type(value).__name__}")
