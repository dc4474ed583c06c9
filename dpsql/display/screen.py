"""Where text goes: answers to the standard output, all else beside it. Colours on terminals only, unless NO_COLOR.

Law: what comes from data, statements or schemas steers no terminal, in errors and notes as in tables.
"""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass
from typing import TextIO

from dpsql.display.layout import Layout
from dpsql.display.text import ASCII_FALLBACKS, escape_lines
from dpsql.errors import Error

BOLD, DIM, RED = "1", "2", "1;31"


class UsageError(Exception):
    """The arguments do not fit together; argparse tells it."""


@dataclass(frozen=True)
class Screen:
    out: TextIO
    err: TextIO

    def print(self, text: str = "") -> None:
        _write_line(self.out, text)

    def print_note(self, text: str) -> None:
        self.out.flush()  # what was answered comes first, where both go to one place
        _write_line(self.err, escape_lines(text))

    def print_error(self, text: str) -> None:
        self.out.flush()
        _write_line(self.err, f"{style_text(self.err, 'ERROR:', RED)}  {escape_lines(text)}")

    def print_exception(self, error: Exception) -> None:
        """What went wrong, and what had been charged by then.

        The text of an exception that is not ours stays untold: nothing is known of what it holds.
        """
        if not isinstance(error, Error):
            self.print_error("internal error\nHINT:  Set DPSQL_DEBUG=1 to see a traceback; it may show private data.")
            if os.environ.get("DPSQL_DEBUG") == "1":
                traceback.print_exception(error, file=self.err)
            return
        self.print_error(error.format_text(terminal_width(self.err)))
        if error.charge:
            self.print_note(f"charged: {error.charge}; asking again is free")

    def style_output(self, text: str, code: str) -> str:
        return style_text(self.out, text, code)

    def make_layout(self) -> Layout:
        """As the standard output can show it; a table that is wider than its terminal is expanded."""
        return Layout(terminal_width(self.out), "auto", colour=supports_color(self.out), plain=not _supports_box_drawing(self.out))

    @property
    def can_redraw(self) -> bool:
        """Whether a line beside the answers may be drawn again and again."""
        return self.err.isatty() and os.environ.get("TERM") != "dumb"

    def redraw_line(self, line: str) -> None:
        """The line in the place of the one that was drawn before."""
        self.err.write(f"\r\x1b[2K{line}")
        self.err.flush()


def style_text(stream: TextIO, text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if text and supports_color(stream) else text


def supports_color(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width(stream: TextIO) -> int | None:
    """In columns; None where the stream is no terminal."""
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def _supports_box_drawing(stream: TextIO) -> bool:
    try:
        "─│┼┬±…".encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _write_line(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.replace("±", "+/-").translate(ASCII_FALLBACKS).encode(encoding, "backslashreplace").decode(encoding)
    stream.write(text + "\n")
