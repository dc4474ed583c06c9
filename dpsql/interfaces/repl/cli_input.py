"""What a command line gives to a session: settings, statements in files, and a password that is asked for."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from getpass import getpass
from pathlib import Path

from dpsql.errors import InterfaceError
from dpsql.interfaces.display.terminal import UsageError


def settings_from_args(args: argparse.Namespace) -> dict[str, str]:
    """The settings of `--set`, `--epsilon` and `--delta`."""
    settings: dict[str, str] = {}
    for text in args.set:
        name, separator, value = text.partition("=")
        if not separator:
            raise UsageError(f"--set takes NAME=VALUE, not {text}")
        if name.strip() in ("epsilon", "delta") and not _is_number(value):
            raise UsageError(f"--set {name.strip()} takes a number, not {value}")
        settings[name.strip()] = value.strip()
    named_settings = {"epsilon": args.epsilon, "delta": args.delta}
    return settings | {name: value for name, value in named_settings.items() if value is not None}


def _is_number(text: str) -> bool:
    """As SET reads it, which may have quotes around it; its range is for the settings to judge."""
    parts = text.strip().strip("'\"").split("/")
    try:
        return all(Decimal(part).is_finite() for part in parts)
    except InvalidOperation:
        return False


def read_statements(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InterfaceError(f'the file "{path}" cannot be read: {reason}') from None


def find_password_prompt() -> Callable[[str], str] | None:
    """Asks a person at the terminal, without echo, also where statements come in by a pipe; None without a terminal."""
    if sys.stdin.isatty():
        return getpass
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except (OSError, AttributeError):
        return None
    return getpass
