r"""LIKE and regular expressions. Patterns are literals, checked before any row is read.

A pattern means what it means in PostgreSQL: `\` escapes in LIKE, `.` matches a line's end too. `\d`, `\w` and `\s` are
ASCII's, and of alternatives the first that matches is taken: RE2's rules, the same in every engine.
"""

from __future__ import annotations

from collections.abc import Callable

from dpsql.functions import regex
from dpsql.functions.record import (
    Domains,
    Fit,
    Form,
    Function,
    NotWorkedOut,
    Types,
    Value,
    literal_of,
    quoted,
    text_of,
    whole_of,
)
from dpsql.functions.rules import nullable
from dpsql.plan.expr import Call
from dpsql.schema.domain import Domain
from dpsql.types import BOOLEAN, INTEGER, TEXT

FLAGS = {"regexp_like": "ic", "regexp_replace": "icg"}


def _truth(types: Types) -> Fit | None:
    return Fit(types, BOOLEAN) if all(type_ == TEXT for type_ in types) else None


def _texts(types: Types) -> Fit | None:
    return Fit(types, TEXT) if all(type_ == TEXT for type_ in types) else None


def _extracted(types: Types) -> Fit | None:
    fits = types[:2] == (TEXT, TEXT) and all(type_.is_integer for type_ in types[2:])
    return Fit((TEXT, TEXT, *(INTEGER for _ in types[2:])), TEXT) if fits else None


def _boolean_domain(call: Call, args: Domains) -> Domain:
    return Domain(BOOLEAN, nullable(args), values=(False, True))


# --- LIKE ------------------------------------------------------------------------------------------------------------


def _like_form(operator: str) -> Form:
    def form(call: Call, args: list[str]) -> str:
        escape = f" ESCAPE {args[2]}" if len(args) == 3 else ""
        return f"({args[0]} {operator} {args[1]}{escape})"

    return form


def _check_like(call: Call) -> str | None:
    pattern, escape = literal_of(call, 1), literal_of(call, 2)
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


def _like(call: Call, args: list[Value]) -> Value:
    """As every engine does: of ASCII only, since engines differ in what one character is and in its cases."""
    if None in args:
        return None
    text, pattern = str(args[0]), str(args[1])
    if not (text.isascii() and pattern.isascii()):
        raise NotWorkedOut
    if call.function == "ilike":
        text, pattern = text.lower(), pattern.lower()
    return _matches(text, _pattern(pattern, str(args[2]) if len(args) == 3 else ""))


def _pattern(pattern: str, escape: str) -> list[str]:
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


def _matches(text: str, parts: list[str]) -> bool:
    """By the last `%` alone: what an earlier one could take, it can take too. So no pattern takes long."""
    at = place = 0
    many: tuple[int, int] | None = None  # where the last % stands, and how far it has reached
    while at < len(text):
        if place < len(parts) and parts[place] == "%%":
            many = place, at
            place += 1
        elif place < len(parts) and parts[place] in ("__", text[at]):
            at, place = at + 1, place + 1
        elif many is not None:
            many = many[0], many[1] + 1
            place, at = many[0] + 1, many[1]
        else:
            return False
    return all(part == "%%" for part in parts[place:])


# --- regular expressions ---------------------------------------------------------------------------------------------


def _check_regex(call: Call) -> str | None:
    pattern = literal_of(call, 1)
    if not isinstance(pattern, str):
        return "a pattern must be a literal text"
    try:
        regex.check(_expression(call))
    except regex.Malformed as error:
        return f"the pattern cannot be used: {error}"
    return None


def _expression(call: Call) -> str:
    if call.function == "similar":
        return regex.similar(text_of(call, 1), text_of(call, 2) if len(call.args) == 3 else "\\")
    return text_of(call, 1)


def _checked(*more: Callable[[Call], str | None]) -> Callable[[Call], str | None]:
    def check(call: Call) -> str | None:
        wrong = (test(call) for test in (_check_regex, *more))
        return next((message for message in wrong if message is not None), None)

    return check


def _check_flags(call: Call) -> str | None:
    flags = literal_of(call, 2 if call.function == "regexp_like" else 3)
    known = FLAGS[call.function]
    if flags is None or (isinstance(flags, str) and set(flags) <= set(known)):
        return None
    return f"the flags of {call.function} are {', '.join(known)}"


def _options(flags: object, kept: str) -> str:
    """`s`: the dot matches a line's end too."""
    return quoted("s" + "".join(flag for flag in kept if isinstance(flags, str) and flag in flags))


def _like_regex(call: Call, args: list[str]) -> str:
    return f"regexp_matches({args[0]}, {args[1]}, {_options(literal_of(call, 2), 'i')})"


def _similar_form(call: Call, args: list[str]) -> str:
    return f"regexp_full_match({args[0]}, {quoted(_expression(call))}, 's')"


def _replacement(call: Call) -> tuple[str, int]:
    return regex.replacement(text_of(call, 2), regex.check(text_of(call, 1)).groups)


def _check_replacement(call: Call) -> str | None:
    if not isinstance(literal_of(call, 2), str):
        return "the replacement must be a literal text"
    try:
        _replacement(call)
    except regex.Malformed as error:
        return str(error)
    return None


def _replace_form(call: Call, args: list[str]) -> str:
    text, _ = _replacement(call)
    return f"regexp_replace({args[0]}, {args[1]}, {quoted(text)}, {_options(literal_of(call, 3), 'ig')})"


def _replace_domain(call: Call, args: Domains) -> Domain:
    """Every match, of the empty text too, is replaced once; all matches together are no longer than the text."""
    length = args[0].length
    if length is not None:
        text, repeated = _replacement(call)
        everywhere = "g" in str(literal_of(call, 3) or "")
        length += (length + 1 if everywhere else 1) * len(text) + repeated * length
    return Domain(TEXT, args[0].nullable, length=length)


def _group(call: Call) -> int:
    return whole_of(call, 2) if len(call.args) == 3 else 0


def _check_group(call: Call) -> str | None:
    number = literal_of(call, 2)
    groups = regex.check(text_of(call, 1)).groups
    fits = len(call.args) == 2 or (isinstance(number, int) and 0 <= number <= min(groups, 9))
    return None if fits else f"the pattern has no group {number}"


def _extract_form(call: Call, args: list[str]) -> str:
    # NULL where nothing matches, as in PostgreSQL; the engine's own result would be the empty text.
    found = f"regexp_extract({args[0]}, {args[1]}, {_group(call)}, 's')"
    return f"CASE WHEN regexp_matches({args[0]}, {args[1]}, 's') THEN {found} END"


def _extract_domain(call: Call, args: Domains) -> Domain:
    return Domain(TEXT, True, length=args[0].length)


PATTERNS = (
    Function("like", "ward LIKE 'a%'", _truth, _boolean_domain, _like_form("LIKE"), 2, 3, frozenset({1, 2}),
             _check_like, _like),
    Function("ilike", "ward ILIKE 'a%'", _truth, _boolean_domain, _like_form("ILIKE"), 2, 3, frozenset({1, 2}),
             _check_like, _like),
    Function("similar", "ward SIMILAR TO '(a|b)%'", _truth, _boolean_domain, _similar_form, 2, 3, frozenset({1, 2}),
             _check_regex),
    Function("regexp_like", "ward ~ '^a'", _truth, _boolean_domain, _like_regex, 2, 3, frozenset({1, 2}),
             _checked(_check_flags)),
    Function("regexp_replace", "regexp_replace(ward, '[0-9]+', '#', 'g')", _texts, _replace_domain, _replace_form,
             3, 4, frozenset({1, 2, 3}), _checked(_check_replacement, _check_flags)),
    Function("regexp_substr", "regexp_substr(ward, '[0-9]+')", _extracted, _extract_domain, _extract_form, 2, 3,
             frozenset({1, 2}), _checked(_check_group)),
)  # fmt: skip
