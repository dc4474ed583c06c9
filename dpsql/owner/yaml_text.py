"""Text for a YAML file that no name can break out of: a column may be called `a: b`, `#`, `no` or a line break."""

from __future__ import annotations

import re

from dpsql.schema.keys import DESCRIPTION

# Words that YAML readers take for something else than text.
_RESERVED_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "nan", "inf", "y", "n", "~", ""}
_PLAIN_SCALAR = re.compile(r"[A-Za-z_][A-Za-z0-9_]*([ -][A-Za-z0-9_]+)*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\.[A-Za-z_][A-Za-z0-9_]*")
_PATH = re.compile(r"([a-z]+:///)?(\.{0,2}/)?[A-Za-z0-9_][A-Za-z0-9_./-]*")


def format_scalar(text: str) -> str:
    """The text as a scalar that reads back as it is, in quotes where it has to be.

    >>> print(*(format_scalar(text) for text in ("ward", "no", "a: b", 'say "hi"', "tab\\t")))
    ward "no" "a: b" "say \\"hi\\"" "tab\\t"
    """
    if text.lower() not in _RESERVED_WORDS and (_PLAIN_SCALAR.fullmatch(text) or _DOTTED.fullmatch(text)):
        return text
    return quote_text(text)


def quote_text(text: str) -> str:
    return '"' + "".join(_escape_character(character) for character in text) + '"'


def _escape_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character == "\t":
        return "\\t"
    if character == "\n":
        return "\\n"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def format_description(text: str | None) -> list[str]:
    """The entry of a database's comment, if a schema can hold it."""
    return [f"description: {quote_text(text)}"] if text and re.fullmatch(DESCRIPTION, text) else []


def format_number(text: str) -> str:
    """A number or date as it is; what looks otherwise in quotes."""
    return text if _NUMBER.fullmatch(text) or re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) else quote_text(text)


def format_path(text: str) -> str:
    return text if _PATH.fullmatch(text) else quote_text(text)


def format_comment(text: str) -> str:
    """Text that stays on its line, whatever it holds.

    >>> format_comment("two\\nlines")
    'two\\\\nlines'
    """
    return "".join(character if character.isprintable() else _escape_character(character) for character in text)
