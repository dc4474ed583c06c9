r"""Regular expressions that every engine takes: read here first, so that none can fail once rows are there.

    (ab|c)+\d{2,3}$

Literal characters, `.`, `^`, `$`, classes, groups, alternatives and counted repetition; no back references and no
look-around, which RE2 does not have. Matching them takes time that is linear in the text (Cox 2007).
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_REPEATED = 1_000  # RE2's own limit of a count
MAX_REGEX_SIZE = 2_000
"""Of the expression with every repetition written out: RE2 refuses programs that are too large."""

_SPECIAL_CHARACTERS = set(r"\^$.|?*+()[]{}")
_CLASSES = set("dDwWsS")
_ASSERTIONS = set("bB")
_CONTROLS = {"n", "t", "r", "f", "v"}
_POSIX = {"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
          "xdigit"}  # fmt: skip


class MalformedRegex(Exception):
    """The expression is not one of these; the text says why."""


@dataclass(frozen=True)
class RegexShape:
    groups: int
    size: int


def check_regex(pattern: str) -> RegexShape:
    """The number of groups of a well-formed expression."""
    reader = _RegexParser(pattern)
    size = reader.parse_alternatives()
    if not reader.is_done:
        raise MalformedRegex("there is a ) without a (")
    return RegexShape(reader.groups, size)


class _RegexParser:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.groups = 0

    @property
    def is_done(self) -> bool:
        return self._at >= len(self._text)

    def _peek_text(self, count: int = 1) -> str:
        return self._text[self._at : self._at + count]

    def _take_text(self, count: int = 1) -> str:
        taken = self._peek_text(count)
        if len(taken) < count:
            raise MalformedRegex("it ends too early")
        self._at += count
        return taken

    def parse_alternatives(self) -> int:
        size = self._parse_sequence()
        while self._peek_text() == "|":
            self._take_text()
            size += self._parse_sequence() + 1
        return size

    def _parse_sequence(self) -> int:
        size = 0
        while not self.is_done and self._peek_text() not in ("|", ")"):
            size += self._parse_repetition(self._parse_atom())
            if size > MAX_REGEX_SIZE:
                raise MalformedRegex("it is too large")
        return size

    def _parse_atom(self) -> int:
        character = self._take_text()
        if character == "(":
            return self._parse_group()
        if character == "[":
            return self._parse_class()
        if character == "\\":
            return self._parse_escape(_CLASSES | _ASSERTIONS)
        if character in "*+?{":
            raise MalformedRegex(f"there is nothing to repeat before {character}")
        if character in "]}":
            raise MalformedRegex(f"write \\{character} for the character {character}")
        return 1

    def _parse_group(self) -> int:
        if self._peek_text() == "?":
            if self._peek_text(2) != "?:":
                raise MalformedRegex("a group may only start with ( or (?:")
            self._take_text(2)
        else:
            self.groups += 1
        size = self.parse_alternatives()
        if self._peek_text() != ")":
            raise MalformedRegex("there is a ( without a )")
        self._take_text()
        return size + 2

    def _parse_repetition(self, size: int) -> int:
        character = self._peek_text()
        if character and character in "*+?":
            self._take_text()
            size += 1
        elif character == "{":
            size = max(1, size) * self._parse_count() + 1
        else:
            return size
        if self._peek_text() == "?":  # as few as possible
            self._take_text()
        if self._peek_text() and self._peek_text() in "*+?{":
            raise MalformedRegex("a repetition is repeated; put the first one in parentheses")
        return size

    def _parse_count(self) -> int:
        self._take_text()
        end = self._text.find("}", self._at)
        if end < 0:
            raise MalformedRegex("there is a { without a }")
        numbers = self._take_text(end - self._at).split(",")
        self._take_text()
        if len(numbers) > 2 or not numbers[0].isascii() or not numbers[0].isdigit():
            raise MalformedRegex("a count is written {n}, {n,} or {n,m}")
        lowest = int(numbers[0])
        last = numbers[-1]
        if last and not (last.isascii() and last.isdigit()):
            raise MalformedRegex("a count is written {n}, {n,} or {n,m}")
        highest = int(last) if last else lowest
        if not lowest <= highest <= MAX_REPEATED:
            raise MalformedRegex(f"a count is at most {MAX_REPEATED}, and the first is not the greater one")
        return max(1, highest) + (0 if last else 1)

    def _parse_escape(self, letters: set[str]) -> int:
        character = self._take_text()
        if character in letters or character in _CONTROLS:
            return 1
        if not character.isascii() or character.isalnum() or character == "_":
            raise MalformedRegex(f"\\{character} is not known")
        return 1

    def _parse_class(self) -> int:
        if self._peek_text() == "^":
            self._take_text()
        size = 1
        first = True
        while first or self._peek_text() != "]":
            size += 1
            low = self._parse_class_member(first)
            first = False
            if self._peek_text() == "-" and self._peek_text(2) != "-]":
                self._take_text()
                high = self._parse_class_member(False)
                if low is None or high is None or low > high:
                    raise MalformedRegex("a range in [ ] goes from a character to a later one")
        self._take_text()
        return size

    def _parse_class_member(self, first: bool) -> str | None:
        """One character of a class, or None for a whole class of them."""
        if self._peek_text(2) == "[:":
            self._parse_posix_class()
            return None
        character = self._take_text()
        if character == "\\":
            character = self._peek_text()
            self._parse_escape(_CLASSES)
            return None if character in _CLASSES or character in _CONTROLS else character
        if character == "[" or (character == "]" and not first):
            raise MalformedRegex(f"write \\{character} for the character {character}")
        if character == "]":
            raise MalformedRegex("[ ] holds at least one character; write \\] for the character ]")
        if character == "-" and not first and self._peek_text() != "]":
            raise MalformedRegex("write \\- for the character -")
        return character

    def _parse_posix_class(self) -> None:
        end = self._text.find(":]", self._at)
        name = self._text[self._at + 2 : end] if end >= 0 else ""
        if name.removeprefix("^") not in _POSIX:
            raise MalformedRegex("a class such as [:alpha:] is not known")
        self._at = end + 2


def similar_to_regex(pattern: str, escape: str) -> str:
    """The regular expression that means what a pattern of SIMILAR TO means."""
    result, at, in_class = "", 0, False
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == escape and escape:
            if at == len(pattern):
                raise MalformedRegex("it ends with the escape character")
            result += _escape_character(pattern[at])
            at += 1
        elif in_class:
            in_class = character != "]"
            result += "\\\\" if character == "\\" else character
        elif character == "%":
            result += ".*"
        elif character == "_":
            result += "."
        elif character in ".^$\\":
            result += "\\" + character
        else:
            in_class = character == "["
            result += character
    return result


def _escape_character(character: str) -> str:
    return "\\" + character if character in _SPECIAL_CHARACTERS else character


def translate_replacement(text: str, groups: int) -> tuple[str, int]:
    r"""The replacement as RE2 reads it, and how many groups it repeats. `\&` is the whole match."""
    result, at, repeated = "", 0, 0
    while at < len(text):
        character = text[at]
        at += 1
        if character != "\\":
            result += character
            continue
        following = text[at : at + 1]
        at += 1
        if following == "\\":
            result += "\\\\"
        elif following == "&" or (following.isascii() and following.isdigit() and int(following) <= groups):
            result += "\\" + ("0" if following == "&" else following)
            repeated += 1
        else:
            raise MalformedRegex("in a replacement, \\ stands before a digit of a group, & or \\")
    return result, repeated
