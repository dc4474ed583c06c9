"""Terminal output: results to the standard output, all else to the standard error; colours, widths and layout.

Law: what comes from data, statements or schemas steers no terminal, in errors and notes as in tables.
"""

from __future__ import annotations

import os
import traceback
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TextIO

from dpsql.errors import Error

# Text for terminals. Law: a value takes exactly the columns that are counted for it, and steers nothing.
#
# What a terminal would obey, hide or move is written as an escape: control characters, marks that turn the direction of
# writing, spaces that are none, marks with no letter below them. A text that is written from right to left is followed
# by a mark that ends it, or a terminal that follows Unicode's bidirectional algorithm would show the next column before
# it.

MAX_MARKS = 4
"""Marks on one letter; scripts need three. A tower of them would cover the lines above."""

ASCII_FALLBACKS = str.maketrans({"─": "-", "│": "|", "┼": "+", "├": "|", "└": "`", "≤": "<=", "…": "..."})
"""Of what is drawn here, in ASCII."""

_SELECTORS = "\ufe0e\ufe0f"  # text or emoji? They would change a character's width, so all is shown as text.
_LEFT_TO_RIGHT = "\u200e"
_FILLERS = "\u034f\u115f\u17b4\u17b5\u3164\uffa0\u2800"  # printable by their category, and nothing is seen


def escape_text(text: str, plain: bool = False) -> str:
    """The text as it can be shown on one line; with `plain`, as ASCII.

    >>> escape_text("a\\x1b[31m\\tb"), escape_text("Zürich", plain=True)
    ('a\\\\x1b[31m\\\\tb', 'Z\\\\xfcrich')
    """
    if text.isascii() and text.isprintable():
        return text
    if plain:
        text = text.translate(ASCII_FALLBACKS)
    pieces: list[str] = []
    marks = MAX_MARKS  # at the beginning a mark has no letter to stand on
    for character in text:
        if character in _SELECTORS:
            continue
        zero = _character_width(character) == 0
        marks = marks + 1 if zero else 0
        is_control = not character.isprintable() or character in _FILLERS or _is_hidden(character)
        if is_control or marks > MAX_MARKS or (plain and not character.isascii()):
            pieces.append(_escape_character(character))
            marks = MAX_MARKS if is_control else marks
        else:
            pieces.append(character)
    joined = "".join(pieces)
    return joined + _LEFT_TO_RIGHT if any(_is_right_to_left(character) for character in joined) else joined


def escape_lines(text: str) -> str:
    """Each line as it can be shown. A tab is one space, so that a caret stays below what it points to."""
    return "\n".join(escape_text(line.replace("\t", " ")) for line in text.split("\n"))


def _escape_character(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _is_hidden(character: str) -> bool:
    """Selectors of variants: marks by their category, but nothing is drawn."""
    return "\u180b" <= character <= "\u180f" or "\ufe00" <= character <= "\ufe0f" or character >= "\U000e0000"


def _is_right_to_left(character: str) -> bool:
    return unicodedata.bidirectional(character) in ("R", "AL", "AN")


def display_width(text: str) -> int:
    """Columns that the text takes on a terminal."""
    return len(text) if text.isascii() else sum(_character_width(character) for character in text)


@lru_cache(maxsize=4096)
def _character_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf") or _is_combining_jamo(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _is_combining_jamo(character: str) -> bool:
    """Vowels and endings of Korean syllables, which stand in the square of the letter before them."""
    return "\u1160" <= character <= "\u11ff" or "\ud7b0" <= character <= "\ud7fb"


def truncate_text(text: str, width: int, plain: bool = False) -> str:
    """At most `width` columns, of which there are three or more; what is left out is told by an ellipsis.

    >>> truncate_text("cardiology", 6), truncate_text("cardiology", 6, plain=True), truncate_text("surgery", 7)
    ('cardi…', 'car...', 'surgery')
    """
    if display_width(text) <= width:
        return text
    ellipsis = "..." if plain else "…"
    remaining = width - len(ellipsis)
    prefix: list[str] = []
    for character in text:
        remaining -= _character_width(character)
        if remaining < 0:
            break
        prefix.append(character)
    ending = _LEFT_TO_RIGHT if text.endswith(_LEFT_TO_RIGHT) else ""
    return "".join(prefix) + ellipsis + ending


def pad_text(text: str, width: int, right: bool = False) -> str:
    """Exactly `width` columns, or more where the text is wider."""
    space = " " * (width - display_width(text))
    return space + text if right else text + space


# How released rows are laid out, whatever is drawn from them.

Expanded = Literal["off", "on", "auto"]
Digits = Literal["significant", "all"]


@dataclass(frozen=True)
class Layout:
    """`width` is the terminal's, in columns; None where there is none, as in a file: then nothing is cut.

    `expanded` "auto": one line for each value where a table is wider than the terminal. `digits` "significant": only
    those that the noise leaves. `errors`: whether ± is shown. `plain`: nothing but ASCII.
    """

    width: int | None = None
    expanded: Expanded = "off"
    digits: Digits = "significant"
    errors: bool = True
    colour: bool = False
    plain: bool = False


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
            self.print_note(f"charged: {error.charge}; it is not charged again")

    def style_output(self, text: str, code: str) -> str:
        return style_text(self.out, text, code)

    def make_layout(self) -> Layout:
        """As the standard output can show it; a table that is wider than its terminal is expanded."""
        return Layout(
            terminal_width(self.out), "auto", colour=supports_color(self.out), plain=not _supports_box_drawing(self.out)
        )

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
