"""Connecting to a server: from an address to a link that is logged in."""

from __future__ import annotations

import os

from dpsql.remote.address import ServerAddress
from dpsql.remote.link import Link
from dpsql.remote.password import Ask, with_password

__all__ = ["Ask", "open_link"]


def open_link(address: ServerAddress, ask: Ask | None = None) -> Link:
    """`ask` asks a person for a password that stands nowhere; None where there is nobody."""
    return Link.open(with_password(address, os.environ, ask))
