r"""Regular expressions that every engine takes: read here first, so that none can fail once rows are there.

    (ab|c)+\d{2,3}$

Literal characters, `.`, `^`, `$`, classes, groups, alternatives and counted repetition; no back references and no
look-around, which RE2 does not have. Matching them takes time that is linear in the text (Cox 2007).
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_REPEATED = 1_000  # RE2's own limit of a count
MOST_SIZE = 2_000
"""Of the expression with every repetition written out: RE2 refuses programs that are too large."""

_SPECIAL = set(r"\^$.|?*+()[]{}")
_CLASSES = set("dDwWsS")
_ASSERTIONS = set("bB")
_CONTROLS = {"n", "t", "r", "f", "v"}
_POSIX = {"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
          "xdigit"}  # fmt: skip


class Malformed(Exception):
    """The expression is not one of these; the text says why."""


@dataclass(frozen=True)
class Shape:
    groups: int
    size: int


def check(pattern: str) -> Shape:
    """The number of groups of a well-formed expression."""
    reader = _Reader(pattern)
    size = reader.alternatives()
    if not reader.done:
        raise Malformed("there is a ) without a (")
    return Shape(reader.groups, size)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.groups = 0

    @property
    def done(self) -> bool:
        return self._at >= len(self._text)

    def _peek(self, count: int = 1) -> str:
        return self._text[self._at : self._at + count]

    def _take(self, count: int = 1) -> str:
        taken = self._peek(count)
        if len(taken) < count:
            raise Malformed("it ends too early")
        self._at += count
        return taken

    def alternatives(self) -> int:
        size = self._sequence()
        while self._peek() == "|":
            self._take()
            size += self._sequence() + 1
        return size

    def _sequence(self) -> int:
        size = 0
        while not self.done and self._peek() not in ("|", ")"):
            size += self._repeated(self._atom())
            if size > MOST_SIZE:
                raise Malformed("it is too large")
        return size

    def _atom(self) -> int:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escape(_CLASSES | _ASSERTIONS)
        if character in "*+?{":
            raise Malformed(f"there is nothing to repeat before {character}")
        if character in "]}":
            raise Malformed(f"write \\{character} for the character {character}")
        return 1

    def _group(self) -> int:
        if self._peek() == "?":
            if self._peek(2) != "?:":
                raise Malformed("a group may only start with ( or (?:")
            self._take(2)
        else:
            self.groups += 1
        size = self.alternatives()
        if self._peek() != ")":
            raise Malformed("there is a ( without a )")
        self._take()
        return size + 2

    def _repeated(self, size: int) -> int:
        character = self._peek()
        if character and character in "*+?":
            self._take()
            size += 1
        elif character == "{":
            size = max(1, size) * self._count() + 1
        else:
            return size
        if self._peek() == "?":  # as few as possible
            self._take()
        if self._peek() and self._peek() in "*+?{":
            raise Malformed("a repetition is repeated; put the first one in parentheses")
        return size

    def _count(self) -> int:
        self._take()
        end = self._text.find("}", self._at)
        if end < 0:
            raise Malformed("there is a { without a }")
        numbers = self._take(end - self._at).split(",")
        self._take()
        if len(numbers) > 2 or not numbers[0].isascii() or not numbers[0].isdigit():
            raise Malformed("a count is written {n}, {n,} or {n,m}")
        least = int(numbers[0])
        last = numbers[-1]
        if last and not (last.isascii() and last.isdigit()):
            raise Malformed("a count is written {n}, {n,} or {n,m}")
        most = int(last) if last else least
        if not least <= most <= MOST_REPEATED:
            raise Malformed(f"a count is at most {MOST_REPEATED}, and the first is not the greater one")
        return max(1, most) + (0 if last else 1)

    def _escape(self, letters: set[str]) -> int:
        character = self._take()
        if character in letters or character in _CONTROLS:
            return 1
        if not character.isascii() or character.isalnum() or character == "_":
            raise Malformed(f"\\{character} is not known")
        return 1

    def _class(self) -> int:
        if self._peek() == "^":
            self._take()
        size = 1
        first = True
        while first or self._peek() != "]":
            size += 1
            low = self._member(first)
            first = False
            if self._peek() == "-" and self._peek(2) != "-]":
                self._take()
                high = self._member(False)
                if low is None or high is None or low > high:
                    raise Malformed("a range in [ ] goes from a character to a later one")
        self._take()
        return size

    def _member(self, first: bool) -> str | None:
        """One character of a class, or None for a whole class of them."""
        if self._peek(2) == "[:":
            self._posix()
            return None
        character = self._take()
        if character == "\\":
            character = self._peek()
            self._escape(_CLASSES)
            return None if character in _CLASSES or character in _CONTROLS else character
        if character == "[" or (character == "]" and not first):
            raise Malformed(f"write \\{character} for the character {character}")
        if character == "]":
            raise Malformed("[ ] holds at least one character; write \\] for the character ]")
        if character == "-" and not first and self._peek() != "]":
            raise Malformed("write \\- for the character -")
        return character

    def _posix(self) -> None:
        end = self._text.find(":]", self._at)
        name = self._text[self._at + 2 : end] if end >= 0 else ""
        if name.removeprefix("^") not in _POSIX:
            raise Malformed("a class such as [:alpha:] is not known")
        self._at = end + 2


def similar(pattern: str, escape: str) -> str:
    """The regular expression that means what a pattern of SIMILAR TO means."""
    result, at, within = "", 0, False
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == escape and escape:
            if at == len(pattern):
                raise Malformed("it ends with the escape character")
            result += _quoted(pattern[at])
            at += 1
        elif within:
            within = character != "]"
            result += "\\\\" if character == "\\" else character
        elif character == "%":
            result += ".*"
        elif character == "_":
            result += "."
        elif character in ".^$\\":
            result += "\\" + character
        else:
            within = character == "["
            result += character
    return result


def _quoted(character: str) -> str:
    return "\\" + character if character in _SPECIAL else character


def replacement(text: str, groups: int) -> tuple[str, int]:
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
            raise Malformed("in a replacement, \\ stands before a digit of a group, & or \\")
    return result, repeated
