r"""LIKE and regular expressions. Patterns are literals, checked to be total before any row is read.

A pattern means what it means in PostgreSQL: `\` escapes in LIKE, `.` matches a line's end too. `\d`, `\w` and `\s` are
ASCII's, and of alternatives the first that matches is taken: RE2's rules, the same in every engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpsql.compiler.functions.function import (
    Domains,
    NotEvaluable,
    ScalarFunction,
    Signature,
    SqlRenderer,
    Types,
    Value,
    has_nullable,
    integer_argument,
    literal_argument,
    quote_text,
    text_argument,
)
from dpsql.compiler.plan.expressions import Call
from dpsql.schema.model import Domain
from dpsql.types import BOOLEAN, INTEGER, TEXT

# Regular expressions that every engine takes: read here first, so that none can fail once rows are there.
#
#     (ab|c)+\d{2,3}$
#
# Literal characters, `.`, `^`, `$`, classes, groups, alternatives and counted repetition; no back references and no
# look-around, which RE2 does not have. Matching them takes time that is linear in the text (Cox 2007).

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


REGEX_FLAGS = {"regexp_like": "ic", "regexp_replace": "icg"}


def _match_signature(types: Types) -> Signature | None:
    return Signature(types, BOOLEAN) if all(type_ == TEXT for type_ in types) else None


def _replace_signature(types: Types) -> Signature | None:
    return Signature(types, TEXT) if all(type_ == TEXT for type_ in types) else None


def _substr_signature(types: Types) -> Signature | None:
    fits = types[:2] == (TEXT, TEXT) and all(type_.is_integer for type_ in types[2:])
    return Signature((TEXT, TEXT, *(INTEGER for _ in types[2:])), TEXT) if fits else None


def _boolean_domain(call: Call, args: Domains) -> Domain:
    return Domain(BOOLEAN, has_nullable(args), values=(False, True))


# --- LIKE ------------------------------------------------------------------------------------------------------------


def _render_like(operator: str) -> SqlRenderer:
    def form(call: Call, args: list[str]) -> str:
        escape = f" ESCAPE {args[2]}" if len(args) == 3 else ""
        return f"({args[0]} {operator} {args[1]}{escape})"

    return form


def _check_like(call: Call) -> str | None:
    pattern, escape = literal_argument(call, 1), literal_argument(call, 2)
    if not isinstance(pattern, str):
        return "a pattern must be a literal text"
    if len(call.args) == 3 and not (isinstance(escape, str) and len(escape) == 1 and escape.isascii()):
        return "ESCAPE takes one ASCII character"
    if isinstance(escape, str) and _ends_with_escape(pattern, escape):
        return "the pattern ends with the escape character"
    return None


def _ends_with_escape(pattern: str, escape: str) -> bool:
    at = 0
    while at < len(pattern):
        if pattern[at] == escape:
            if at + 1 == len(pattern):
                return True
            at += 1
        at += 1
    return False


def _evaluate_like(call: Call, args: list[Value]) -> Value:
    """As every engine does: of ASCII only, since engines differ in what one character is and in its cases."""
    if None in args:
        return None
    text, pattern = str(args[0]), str(args[1])
    if not (text.isascii() and pattern.isascii()):
        raise NotEvaluable
    if call.function == "ilike":
        text, pattern = text.lower(), pattern.lower()
    return _is_like_match(text, _parse_like_pattern(pattern, str(args[2]) if len(args) == 3 else ""))


def _parse_like_pattern(pattern: str, escape: str) -> list[str]:
    """The characters that are to be met, one each; `%` and `_` that stand for others are doubled."""
    parts, at = [], 0
    while at < len(pattern):
        if pattern[at] == escape:
            at += 1
            parts.append(pattern[at])
        else:
            parts.append(pattern[at] * 2 if pattern[at] in "%_" else pattern[at])
        at += 1
    return parts


def _is_like_match(text: str, parts: list[str]) -> bool:
    """By the last `%` alone: what an earlier one could take, it can take too. So no pattern takes long."""
    at = index = 0
    last_wildcard: tuple[int, int] | None = None  # where the last % stands, and how far it has reached
    while at < len(text):
        if index < len(parts) and parts[index] == "%%":
            last_wildcard = index, at
            index += 1
        elif index < len(parts) and parts[index] in ("__", text[at]):
            at, index = at + 1, index + 1
        elif last_wildcard is not None:
            last_wildcard = last_wildcard[0], last_wildcard[1] + 1
            index, at = last_wildcard[0] + 1, last_wildcard[1]
        else:
            return False
    return all(part == "%%" for part in parts[index:])


# --- regular expressions ---------------------------------------------------------------------------------------------


def _check_regex(call: Call) -> str | None:
    pattern = literal_argument(call, 1)
    if not isinstance(pattern, str):
        return "a pattern must be a literal text"
    try:
        check_regex(_regex_of_call(call))
    except MalformedRegex as error:
        return f"the pattern cannot be used: {error}"
    return None


def _regex_of_call(call: Call) -> str:
    if call.function == "similar":
        return similar_to_regex(text_argument(call, 1), text_argument(call, 2) if len(call.args) == 3 else "\\")
    return text_argument(call, 1)


def _check_regex_and(*more: Callable[[Call], str | None]) -> Callable[[Call], str | None]:
    def check(call: Call) -> str | None:
        wrong = (test(call) for test in (_check_regex, *more))
        return next((message for message in wrong if message is not None), None)

    return check


def _check_flags(call: Call) -> str | None:
    flags = literal_argument(call, 2 if call.function == "regexp_like" else 3)
    allowed = REGEX_FLAGS[call.function]
    if flags is None or (isinstance(flags, str) and set(flags) <= set(allowed)):
        return None
    return f"the flags of {call.function} are {', '.join(allowed)}"


def _regex_options(flags: object, allowed: str) -> str:
    """`s`: the dot matches a line's end too."""
    return quote_text("s" + "".join(flag for flag in allowed if isinstance(flags, str) and flag in flags))


def _render_regexp_like(call: Call, args: list[str]) -> str:
    return f"regexp_matches({args[0]}, {args[1]}, {_regex_options(literal_argument(call, 2), 'i')})"


def _render_similar(call: Call, args: list[str]) -> str:
    return f"regexp_full_match({args[0]}, {quote_text(_regex_of_call(call))}, 's')"


def _replacement_argument(call: Call) -> tuple[str, int]:
    return translate_replacement(text_argument(call, 2), check_regex(text_argument(call, 1)).groups)


def _check_replacement(call: Call) -> str | None:
    if not isinstance(literal_argument(call, 2), str):
        return "the replacement must be a literal text"
    try:
        _replacement_argument(call)
    except MalformedRegex as error:
        return str(error)
    return None


def _render_replace(call: Call, args: list[str]) -> str:
    text, _ = _replacement_argument(call)
    return (
        f"regexp_replace({args[0]}, {args[1]}, {quote_text(text)}, {_regex_options(literal_argument(call, 3), 'ig')})"
    )


def _replace_domain(call: Call, args: Domains) -> Domain:
    """Every match, of the empty text too, is replaced once; all matches together are no longer than the text."""
    length = args[0].length
    if length is not None:
        text, repeated = _replacement_argument(call)
        everywhere = "g" in str(literal_argument(call, 3) or "")
        length += (length + 1 if everywhere else 1) * len(text) + repeated * length
    return Domain(TEXT, args[0].nullable, length=length)


def _group_number(call: Call) -> int:
    return integer_argument(call, 2) if len(call.args) == 3 else 0


def _check_group(call: Call) -> str | None:
    number = literal_argument(call, 2)
    groups = check_regex(text_argument(call, 1)).groups
    fits = len(call.args) == 2 or (isinstance(number, int) and 0 <= number <= min(groups, 9))
    return None if fits else f"the pattern has no group {number}"


def _render_substr(call: Call, args: list[str]) -> str:
    # NULL where nothing matches, as in PostgreSQL; the engine's own result would be the empty text.
    extracted = f"regexp_extract({args[0]}, {args[1]}, {_group_number(call)}, 's')"
    return f"CASE WHEN regexp_matches({args[0]}, {args[1]}, 's') THEN {extracted} END"


def _substr_domain(call: Call, args: Domains) -> Domain:
    return Domain(TEXT, True, length=args[0].length)


PATTERN_FUNCTIONS = (
    ScalarFunction(
        "like",
        "ward LIKE 'a%'",
        _match_signature,
        _boolean_domain,
        _render_like("LIKE"),
        2,
        3,
        frozenset({1, 2}),
        _check_like,
        _evaluate_like,
    ),
    ScalarFunction(
        "ilike",
        "ward ILIKE 'a%'",
        _match_signature,
        _boolean_domain,
        _render_like("ILIKE"),
        2,
        3,
        frozenset({1, 2}),
        _check_like,
        _evaluate_like,
    ),
    ScalarFunction(
        "similar",
        "ward SIMILAR TO '(a|b)%'",
        _match_signature,
        _boolean_domain,
        _render_similar,
        2,
        3,
        frozenset({1, 2}),
        _check_regex,
    ),
    ScalarFunction(
        "regexp_like",
        "ward ~ '^a'",
        _match_signature,
        _boolean_domain,
        _render_regexp_like,
        2,
        3,
        frozenset({1, 2}),
        _check_regex_and(_check_flags),
    ),
    ScalarFunction(
        "regexp_replace",
        "regexp_replace(ward, '[0-9]+', '#', 'g')",
        _replace_signature,
        _replace_domain,
        _render_replace,
        3,
        4,
        frozenset({1, 2, 3}),
        _check_regex_and(_check_replacement, _check_flags),
    ),
    ScalarFunction(
        "regexp_substr",
        "regexp_substr(ward, '[0-9]+')",
        _substr_signature,
        _substr_domain,
        _render_substr,
        2,
        3,
        frozenset({1, 2}),
        _check_regex_and(_check_group),
    ),
)
