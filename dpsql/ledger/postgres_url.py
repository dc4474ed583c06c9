"""The URL of a ledger in PostgreSQL: what of it may be shown, and what of it is ours.

Law: no text holds the password, nor what may be a part of it because a sign was not written as %40.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlencode

from dpsql.errors import SchemaError

DEFAULT_SCHEMA = "dpsql_ledger"
URL_SCHEMES = ("postgresql", "postgres")
# The connection is given these by us, or by nobody: with them a session would not be one of a ledger.
_RESERVED_OPTIONS = ("options", "client_encoding", "fallback_application_name", "replication")
_URL_HINT = (
    "Write postgresql://user:password@host/database?schema=name; of user and password, write @ : / ? # % and spaces"
    " as %40 %3A %2F %3F %23 %25 %20, or leave the password to PGPASSWORD or ~/.pgpass."
)


@dataclass(frozen=True)
class LedgerLocation:
    """Where a ledger is: `conninfo` is for the driver alone, `name` for people."""

    conninfo: str = field(repr=False)
    schema: str
    name: str
    prepares: bool = True  # statements are prepared, which a pooler between us and the server may not allow


def parse_ledger_url(url: str) -> LedgerLocation:
    """The place that `postgresql://user:password@host:port/database?schema=name&sslmode=…` names.

    Without `schema`, it is "dpsql_ledger": a ledger has a schema of its own, and a database may hold several.
    `prepare=no` is for a pooler that gives every transaction to another session.
    """
    match = re.fullmatch(r"(\w+)://(?:([^@/?#]*)@)?([^@/?#]*)(?:/([^@/?#]*))?(?:\?([^#]*))?", url)
    if match is None or match[1] not in URL_SCHEMES:
        raise wrong_url_error()
    _, user, hosts, database, query = match.groups()
    options = dict(parse_qsl(query or "", keep_blank_values=True))
    schema = options.pop("schema", DEFAULT_SCHEMA)
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema) or schema.startswith("pg_") or schema == "public":
        raise SchemaError(
            "the ledger's schema in PostgreSQL has no name that can be used",
            hint='Write ?schema=name, of small letters, digits and "_"; a ledger has a schema of its own.',
        )
    prepare = options.pop("prepare", "yes")
    if prepare not in ("yes", "no"):
        raise SchemaError('"prepare" in the ledger\'s url is neither yes nor no', hint="Leave it out, or write no.")
    _check_visible_parts(hosts, database or "", options)
    rest = f"?{urlencode(options)}" if options else ""
    conninfo = f"postgresql://{f'{user}@' if user else ''}{hosts}/{database or ''}{rest}"
    return LedgerLocation(conninfo, schema, _display_name(hosts, database or "", options, schema), prepare == "yes")


def _check_visible_parts(hosts: str, database: str, options: Mapping[str, str]) -> None:
    """What is shown must be what it seems: a part of a password that ends up here is refused, unshown."""
    for host in hosts.split(","):
        if not re.fullmatch(r"((\[[0-9A-Fa-f:.]+\]|[\w.-]*|%2[Ff][\w.%-]*)(:\d*)?)", host):
            raise wrong_url_error()
    if "%40" in database or any(not re.fullmatch(r"\w+", option) for option in options):
        raise wrong_url_error()
    for option in _RESERVED_OPTIONS:
        if option in options:
            raise SchemaError(f'the ledger\'s url must not hold "{option}"', hint="Leave it out.")


def _display_name(hosts: str, database: str, options: Mapping[str, str], schema: str) -> str:
    """Host and database, without the user and all options but the schema."""
    host = hosts or options.get("host", "")
    database = database or options.get("dbname", "")
    ending = "" if schema == DEFAULT_SCHEMA else f"?schema={schema}"
    return f"postgresql://{unquote(host)}/{unquote(database)}{ending}"


def wrong_url_error() -> SchemaError:
    return SchemaError("the ledger is not a postgresql url that can be read", hint=_URL_HINT)
