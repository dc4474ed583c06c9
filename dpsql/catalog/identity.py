"""Who asks, of what: the answers to current_user, current_database() and version()."""

from __future__ import annotations

from dataclasses import dataclass

SERVER_VERSION = "15.0"
"""The PostgreSQL that clients are told they talk to; what they send depends on it, so it stays."""
SCHEMA = "public"


@dataclass(frozen=True)
class Identity:
    """`version` is dpsql's; `variables` are what current_setting() may read; `login` is who connected, where another is
    acted for."""

    user: str
    database: str
    version: str
    variables: tuple[tuple[str, str], ...] = ()
    login: str | None = None

    @property
    def version_text(self) -> str:
        return f"PostgreSQL {SERVER_VERSION} (dpsql {self.version})"

    def variable(self, name: str) -> str | None:
        return next((value for known, value in self.variables if known.lower() == name.lower()), None)
