"""Connecting to a server: from an address to a link that is logged in."""

from __future__ import annotations

import os

from dpsql.remote.address import ServerAddress
from dpsql.remote.link import ServerConnection
from dpsql.remote.password import PasswordPrompt, resolve_password

__all__ = ["PasswordPrompt", "open_server_connection"]


def open_server_connection(address: ServerAddress, prompt: PasswordPrompt | None = None) -> ServerConnection:
    """`ask` asks a person for a password that stands nowhere; None where there is nobody."""
    return ServerConnection.open(resolve_password(address, os.environ, prompt))
