"""The session's identity: the answers to current_user, current_database() and version()."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
