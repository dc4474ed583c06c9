"""Functions of text. Each says how long its result can be: text that could grow without end is refused.

Python works results out for ASCII only: beyond it, engines differ in letters and in what one character is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dpsql.functions.record import (
    Domains,
    Fit,
    Form,
    Function,
    NotWorkedOut,
    Types,
    Value,
    literal_of,
    text_of,
    whole_of,
)
from dpsql.functions.rules import nullable
from dpsql.plan.expr import Call
from dpsql.schema.domain import Domain
from dpsql.types import BIGINT, BOOLEAN, INTEGER, TEXT, Type

GROWTH = 3
"""A character becomes at most three when letters change case."""

MOST_LENGTH = 10_000
MOST_PADDING = 1_000
MOST_CODE = 0x10FFFF
BYTES_OF_CHARACTER = 4


# --- types -----------------------------------------------------------------------------------------------------------


def _fit(result: Type, *wanted: Type) -> Callable[[Types], Fit | None]:
    """These types in this order, later ones left out at will; the last one repeats. Whole numbers of any width fit."""

    def fit(types: Types) -> Fit | None:
        expected = tuple(wanted[min(place, len(wanted) - 1)] for place in range(len(types)))
        fits = all(t == e or (t.is_integer and e.is_integer) for t, e in zip(types, expected, strict=True))
        return Fit(expected, result) if fits else None

    return fit


_TEXTS = _fit(TEXT, TEXT)


# --- lengths ---------------------------------------------------------------------------------------------------------


def _sized(length: Callable[[Call, int], int], may_be_null: bool = False) -> Callable[[Call, Domains], Domain]:
    """The length of the result from that of the first argument."""

    def domain(call: Call, args: Domains) -> Domain:
        first = args[0].length
        return Domain(TEXT, nullable(args) or may_be_null, length=None if first is None else length(call, first))

    return domain


def _added(call: Call, args: Domains) -> Domain:
    lengths = [arg.length for arg in args]
    total = None if None in lengths else sum(length for length in lengths if length is not None)
    return Domain(TEXT, nullable(args), length=total)


def _separated(call: Call, args: Domains) -> Domain:
    added = _added(call, args)
    separators = len(text_of(call, 0)) * len(args)
    return replace(added, nullable=False, length=None if added.length is None else added.length + separators)


def _counted(call: Call, args: Domains) -> Domain:
    most = args[0].length
    factor = BYTES_OF_CHARACTER if call.function == "octet_length" else 1
    least = 1 if call.function == "strpos" else 0  # the empty text stands at place 1, of the empty text too
    return Domain(BIGINT, nullable(args), Fraction(0), None if most is None else Fraction(max(least, factor * most)))


def _end_length(call: Call, length: int) -> int:
    count = whole_of(call, 1)
    return min(length, count) if count >= 0 else length


def _part_length(call: Call, length: int) -> int:
    return min(length, whole_of(call, 2)) if len(call.args) == 3 else length


def _replaced(call: Call, length: int) -> int:
    old, new = len(text_of(call, 1)), len(text_of(call, 2))
    return length + length // old * max(0, new - old)


# --- checks ----------------------------------------------------------------------------------------------------------


def _numbers_between(least: int, most: int, *places: int) -> Callable[[Call], str | None]:
    def check(call: Call) -> str | None:
        for place in places:
            value = literal_of(call, place)
            if place < len(call.args) and not (isinstance(value, int) and least <= value <= most):
                return f"the numbers in {call.function} must be literals between {least} and {most}"
        return None

    return check


def _not_empty(*places: int) -> Callable[[Call], str | None]:
    def check(call: Call) -> str | None:
        empty = any(place < len(call.args) and not literal_of(call, place) for place in places)
        return f"{call.function} takes a text that is not empty" if empty else None

    return check


def _known_texts(*places: int) -> Callable[[Call], str | None]:
    def check(call: Call) -> str | None:
        unknown = any(place < len(call.args) and literal_of(call, place) is None for place in places)
        return f"{call.function} takes no NULL here" if unknown else None

    return check


def _all_of(*checks: Callable[[Call], str | None]) -> Callable[[Call], str | None]:
    return lambda call: next((wrong for wrong in (check(call) for check in checks) if wrong is not None), None)


# --- Python ----------------------------------------------------------------------------------------------------------


def _ascii(work: Callable[..., Value]) -> Callable[[Call, list[Value]], Value]:
    """NULL of NULL, and worked out for ASCII texts."""

    def evaluate(call: Call, values: list[Value]) -> Value:
        if any(value is None for value in values):
            return None
        if not all(value.isascii() for value in values if isinstance(value, str)):
            raise NotWorkedOut
        return work(*values)

    return evaluate


def _left(text: str, count: int) -> str:
    return text[:count] if count else ""


def _right(text: str, count: int) -> str:
    return text[max(0, len(text) - count) :] if count >= 0 else text[-count:]


def _substring(text: str, start: int, length: int | None = None) -> str:
    return text[start - 1 :] if length is None else text[start - 1 : start - 1 + length]


def _reversed(text: str) -> str:
    if "\r" in text:  # before a line feed it is one character with it
        raise NotWorkedOut
    return text[::-1]


def _part(text: str, separator: str, place: int) -> str:
    parts = text.split(separator)
    index = place - 1 if place > 0 else len(parts) + place
    return parts[index] if 0 <= index < len(parts) else ""


def _concatenated(call: Call, values: list[Value]) -> Value:
    """Beyond ASCII too: nothing is counted or changed."""
    return None if None in values else "".join(str(value) for value in values)


def _joined(call: Call, values: list[Value]) -> Value:
    return str(values[0]).join(str(value) for value in values[1:] if value is not None)


def _capitals(text: str) -> str:
    result, inside = "", False
    for letter in text:
        result += letter.lower() if inside else letter.upper()
        inside = letter.isalnum()
    return result


def _left_padded(text: str, length: int, fill: str = " ") -> str:
    missing = max(0, length - len(text))
    return ((fill * missing)[:missing] + text)[:length]


def _right_padded(text: str, length: int, fill: str = " ") -> str:
    return (text + fill * max(0, length - len(text)))[:length]


# --- forms -----------------------------------------------------------------------------------------------------------


def _call(name: str = "") -> Form:
    return lambda call, args: f"{name or call.function}({', '.join(args)})"


def _concat_form(call: Call, args: list[str]) -> str:
    # `||` gives NULL where an argument is NULL, as SQL says; concat() skips it.
    return "(" + " || ".join(args) + ")"


def _part_form(call: Call, args: list[str]) -> str:
    # Not split_part: it is a macro, which DuckDB 2.0 cannot bind again where its optimizer puts a constant into it.
    return f"COALESCE(list_extract(string_split({args[0]}, {args[1]}), {args[2]}), left({args[0]}, 0))"


def _padded_form(call: Call, args: list[str]) -> str:
    return f"{call.function}({args[0]}, {args[1]}, {args[2] if len(args) == 3 else _SPACE})"


_SPACE = "' '"


def _capitals_form(call: Call, args: list[str]) -> str:
    words = rf"regexp_extract_all({args[0]}, '[\pL\pN]+|[^\pL\pN]+')"
    return f"array_to_string(list_transform({words}, lambda w: upper(w[1]) || lower(w[2:])), '')"


def _boolean_domain(call: Call, args: Domains) -> Domain:
    return Domain(BOOLEAN, nullable(args), values=(False, True))


def _code_domain(call: Call, args: Domains) -> Domain:
    return Domain(BIGINT, nullable(args), Fraction(0), Fraction(MOST_CODE))


def _as_bigint(name: str) -> Form:
    return lambda call, args: f"CAST({name}({', '.join(args)}) AS BIGINT)"


# --- records ---------------------------------------------------------------------------------------------------------


def _cased(name: str, work: Callable[[str], str], form: Form | None = None) -> Function:
    return Function(name, f"{name}(ward)", _TEXTS, _sized(lambda call, length: GROWTH * length), form or _call(),
                    evaluate=_ascii(work))  # fmt: skip


def _trimmed(name: str, work: Callable[..., str]) -> Function:
    """Spaces, or any of the given characters, taken off the ends."""
    return Function(name, f"{name}(ward)", _TEXTS, _sized(lambda call, length: length), _call(), 1, 2, frozenset({1}),
                    _known_texts(1), _ascii(work))  # fmt: skip


def _asked(name: str, work: Callable[[str, str], bool]) -> Function:
    return Function(name, f"{name}(ward, 'a')", _fit(BOOLEAN, TEXT), _boolean_domain, _call(), 2, 2,
                    evaluate=_ascii(work))  # fmt: skip


def _padded(name: str, work: Callable[..., str]) -> Function:
    return Function(name, f"{name}(ward, 5, '0')", _fit(TEXT, TEXT, INTEGER, TEXT),
                    _sized(lambda call, length: whole_of(call, 1)), _padded_form, 2, 3, frozenset({1, 2}),
                    _all_of(_numbers_between(0, MOST_PADDING, 1), _not_empty(2)), _ascii(work))  # fmt: skip


def _end(name: str, work: Callable[[str, int], str]) -> Function:
    return Function(name, f"{name}(ward, 3)", _fit(TEXT, TEXT, INTEGER), _sized(_end_length), _call(), 2, 2,
                    frozenset({1}), _numbers_between(-MOST_LENGTH, MOST_LENGTH, 1), _ascii(work))  # fmt: skip


TEXTS = (
    _cased("lower", str.lower),
    _cased("upper", str.upper),
    _cased("initcap", _capitals, _capitals_form),
    _trimmed("trim", lambda text, characters=" ": text.strip(characters) if characters else text),
    _trimmed("ltrim", lambda text, characters=" ": text.lstrip(characters) if characters else text),
    _trimmed("rtrim", lambda text, characters=" ": text.rstrip(characters) if characters else text),
    Function("length", "length(ward)", _fit(BIGINT, TEXT), _counted, _call(), evaluate=_ascii(len)),
    Function("octet_length", "octet_length(ward)", _fit(BIGINT, TEXT), _counted, _call("strlen"),
             evaluate=_ascii(len)),
    Function("substring", "substring(ward, 1, 3)", _fit(TEXT, TEXT, INTEGER), _sized(_part_length, True), _call(), 2, 3,
             frozenset({1, 2}), _numbers_between(1, MOST_LENGTH, 1, 2), _ascii(_substring)),
    _end("left", _left),
    _end("right", _right),
    Function("concat", "ward || '!'", _TEXTS, _added, _concat_form, 2, 20,
             evaluate=_concatenated),
    Function("concat_ws", "concat_ws('-', ward, kind)", _TEXTS, _separated, _call(), 2, 20, frozenset({0}),
             _known_texts(0), _joined),
    Function("replace", "replace(ward, 'a', 'b')", _TEXTS, _sized(_replaced), _call(), 3, 3, frozenset({1, 2}),
             _all_of(_not_empty(1), _known_texts(2)), _ascii(str.replace)),
    Function("translate", "translate(ward, 'ab', 'xy')", _TEXTS, _sized(lambda call, length: length), _call(), 3, 3,
             frozenset({1, 2}), _known_texts(1, 2)),
    Function("reverse", "reverse(ward)", _TEXTS, _sized(lambda call, length: length), _call(),
             evaluate=_ascii(_reversed)),
    Function("repeat", "repeat(ward, 2)", _fit(TEXT, TEXT, INTEGER),
             _sized(lambda call, length: length * whole_of(call, 1)), _call(), 2, 2, frozenset({1}),
             _numbers_between(0, MOST_PADDING, 1), _ascii(lambda text, count: text * count)),
    _padded("lpad", _left_padded),
    _padded("rpad", _right_padded),
    Function("strpos", "strpos(ward, 'a')", _fit(BIGINT, TEXT), _counted, _call(), 2, 2,
             evaluate=_ascii(lambda text, part: text.find(part) + 1)),
    _asked("starts_with", str.startswith),
    _asked("ends_with", str.endswith),
    _asked("contains", str.__contains__),
    Function("split_part", "split_part(ward, '-', 1)", _fit(TEXT, TEXT, TEXT, INTEGER),
             _sized(lambda call, length: length), _part_form, 3, 3, frozenset({1, 2}),
             _all_of(_not_empty(1), _not_empty(2), _numbers_between(-MOST_LENGTH, MOST_LENGTH, 2)), _ascii(_part)),
    Function("ascii", "ascii(ward)", _fit(BIGINT, TEXT), _code_domain, _as_bigint("ascii"),
             evaluate=_ascii(lambda text: ord(text[0]) if text else 0)),
)  # fmt: skip
