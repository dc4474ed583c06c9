"""The command line. Law: it holds no privacy logic, and prints released rows only."""

from dpsql.cli.run import main

__all__ = ["main"]
