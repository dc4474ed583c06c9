"""The command line. Law: it holds no privacy logic, and prints released rows only."""

from __future__ import annotations

from dpsql.interfaces.cli.main import main

__all__ = ["main"]
