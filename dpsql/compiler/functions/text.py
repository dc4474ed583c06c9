"""Functions of text. Each says how long its result can be: text that could grow without end is refused.

Python works results out for ASCII only: beyond it, engines differ in letters and in what one character is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

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
    text_argument,
)
from dpsql.compiler.plan.expressions import Call
from dpsql.schema.model import Domain
from dpsql.types import BIGINT, BOOLEAN, INTEGER, TEXT, Type

CASE_GROWTH = 3
"""A character becomes at most three when letters change case."""

MAX_LENGTH = 10_000
MAX_PADDING = 1_000
MAX_CODE_POINT = 0x10FFFF
BYTES_PER_CHARACTER = 4


# --- types -----------------------------------------------------------------------------------------------------------


def _text_signature(result: Type, *accepted: Type) -> Callable[[Types], Signature | None]:
    """These types in this order, later ones left out at will; the last one repeats. Whole numbers of any width fit."""

    def fit(types: Types) -> Signature | None:
        expected = tuple(accepted[min(index, len(accepted) - 1)] for index in range(len(types)))
        fits = all(t == e or (t.is_integer and e.is_integer) for t, e in zip(types, expected, strict=True))
        return Signature(expected, result) if fits else None

    return fit


_TEXTS_SIGNATURE = _text_signature(TEXT, TEXT)


# --- lengths ---------------------------------------------------------------------------------------------------------


def _sized_domain(length: Callable[[Call, int], int], may_be_null: bool = False) -> Callable[[Call, Domains], Domain]:
    """The length of the result from that of the first argument."""

    def domain(call: Call, args: Domains) -> Domain:
        first = args[0].length
        return Domain(TEXT, has_nullable(args) or may_be_null, length=None if first is None else length(call, first))

    return domain


def _concat_domain(call: Call, args: Domains) -> Domain:
    lengths = [arg.length for arg in args]
    total = None if None in lengths else sum(length for length in lengths if length is not None)
    return Domain(TEXT, has_nullable(args), length=total)


def _concat_ws_domain(call: Call, args: Domains) -> Domain:
    added = _concat_domain(call, args)
    separators = len(text_argument(call, 0)) * len(args)
    return replace(added, nullable=False, length=None if added.length is None else added.length + separators)


def _length_domain(call: Call, args: Domains) -> Domain:
    max_length = args[0].length
    factor = BYTES_PER_CHARACTER if call.function == "octet_length" else 1
    min_length = 1 if call.function == "strpos" else 0  # the empty text stands at place 1, of the empty text too
    return Domain(
        BIGINT,
        has_nullable(args),
        Fraction(0),
        None if max_length is None else Fraction(max(min_length, factor * max_length)),
    )


def _end_length(call: Call, length: int) -> int:
    count = integer_argument(call, 1)
    return min(length, count) if count >= 0 else length


def _substring_length(call: Call, length: int) -> int:
    return min(length, integer_argument(call, 2)) if len(call.args) == 3 else length


def _replaced_length(call: Call, length: int) -> int:
    old, new = len(text_argument(call, 1)), len(text_argument(call, 2))
    return length + length // old * max(0, new - old)


# --- checks ----------------------------------------------------------------------------------------------------------


def _check_numbers_between(lowest: int, highest: int, *indices: int) -> Callable[[Call], str | None]:
    def check(call: Call) -> str | None:
        for index in indices:
            value = literal_argument(call, index)
            if index < len(call.args) and not (isinstance(value, int) and lowest <= value <= highest):
                return f"the numbers in {call.function} must be literals between {lowest} and {highest}"
        return None

    return check


def _check_not_empty(*indices: int) -> Callable[[Call], str | None]:
    def check(call: Call) -> str | None:
        empty = any(index < len(call.args) and not literal_argument(call, index) for index in indices)
        return f"{call.function} takes a text that is not empty" if empty else None

    return check


def _check_not_null(*indices: int) -> Callable[[Call], str | None]:
    def check(call: Call) -> str | None:
        unknown = any(index < len(call.args) and literal_argument(call, index) is None for index in indices)
        return f"{call.function} takes no NULL here" if unknown else None

    return check


def _check_all(*checks: Callable[[Call], str | None]) -> Callable[[Call], str | None]:
    return lambda call: next((wrong for wrong in (check(call) for check in checks) if wrong is not None), None)


# --- Python ----------------------------------------------------------------------------------------------------------


def _evaluate_ascii(work: Callable[..., Value]) -> Callable[[Call, list[Value]], Value]:
    """NULL of NULL, and worked out for ASCII texts."""

    def evaluate(call: Call, values: list[Value]) -> Value:
        if any(value is None for value in values):
            return None
        if not all(value.isascii() for value in values if isinstance(value, str)):
            raise NotEvaluable
        return work(*values)

    return evaluate


def _take_left(text: str, count: int) -> str:
    return text[:count] if count else ""


def _take_right(text: str, count: int) -> str:
    return text[max(0, len(text) - count) :] if count >= 0 else text[-count:]


def _take_substring(text: str, start: int, length: int | None = None) -> str:
    return text[start - 1 :] if length is None else text[start - 1 : start - 1 + length]


def _reverse_text(text: str) -> str:
    if "\r" in text:  # before a line feed it is one character with it
        raise NotEvaluable
    return text[::-1]


def _split_part(text: str, separator: str, position: int) -> str:
    parts = text.split(separator)
    index = position - 1 if position > 0 else len(parts) + position
    return parts[index] if 0 <= index < len(parts) else ""


def _evaluate_concat(call: Call, values: list[Value]) -> Value:
    """Beyond ASCII too: nothing is counted or changed."""
    return None if None in values else "".join(str(value) for value in values)


def _evaluate_concat_ws(call: Call, values: list[Value]) -> Value:
    return str(values[0]).join(str(value) for value in values[1:] if value is not None)


def _capitalize_words(text: str) -> str:
    result, inside = "", False
    for letter in text:
        result += letter.lower() if inside else letter.upper()
        inside = letter.isalnum()
    return result


def _pad_left(text: str, length: int, fill: str = " ") -> str:
    missing = max(0, length - len(text))
    return ((fill * missing)[:missing] + text)[:length]


def _pad_right(text: str, length: int, fill: str = " ") -> str:
    return (text + fill * max(0, length - len(text)))[:length]


# --- forms -----------------------------------------------------------------------------------------------------------


def _render_call(name: str = "") -> SqlRenderer:
    return lambda call, args: f"{name or call.function}({', '.join(args)})"


def _render_concat(call: Call, args: list[str]) -> str:
    # `||` gives NULL where an argument is NULL, as SQL says; concat() skips it.
    return "(" + " || ".join(args) + ")"


def _render_split_part(call: Call, args: list[str]) -> str:
    # Not split_part: it is a macro, which DuckDB 2.0 cannot bind again where its optimizer puts a constant into it.
    return f"COALESCE(list_extract(string_split({args[0]}, {args[1]}), {args[2]}), left({args[0]}, 0))"


def _render_pad(call: Call, args: list[str]) -> str:
    return f"{call.function}({args[0]}, {args[1]}, {args[2] if len(args) == 3 else _SPACE})"


_SPACE = "' '"


def _render_initcap(call: Call, args: list[str]) -> str:
    words = rf"regexp_extract_all({args[0]}, '[\pL\pN]+|[^\pL\pN]+')"
    return f"array_to_string(list_transform({words}, lambda w: upper(w[1]) || lower(w[2:])), '')"


def _boolean_domain(call: Call, args: Domains) -> Domain:
    return Domain(BOOLEAN, has_nullable(args), values=(False, True))


def _code_domain(call: Call, args: Domains) -> Domain:
    return Domain(BIGINT, has_nullable(args), Fraction(0), Fraction(MAX_CODE_POINT))


def _render_as_bigint(name: str) -> SqlRenderer:
    return lambda call, args: f"CAST({name}({', '.join(args)}) AS BIGINT)"


# --- records ---------------------------------------------------------------------------------------------------------


def _case_function(name: str, work: Callable[[str], str], form: SqlRenderer | None = None) -> ScalarFunction:
    return ScalarFunction(
        name,
        f"{name}(ward)",
        _TEXTS_SIGNATURE,
        _sized_domain(lambda call, length: CASE_GROWTH * length),
        form or _render_call(),
        evaluate=_evaluate_ascii(work),
    )


def _trim_function(name: str, work: Callable[..., str]) -> ScalarFunction:
    """Spaces, or any of the given characters, taken off the ends."""
    return ScalarFunction(
        name,
        f"{name}(ward)",
        _TEXTS_SIGNATURE,
        _sized_domain(lambda call, length: length),
        _render_call(),
        1,
        2,
        frozenset({1}),
        _check_not_null(1),
        _evaluate_ascii(work),
    )


def _predicate_function(name: str, work: Callable[[str, str], bool]) -> ScalarFunction:
    return ScalarFunction(
        name,
        f"{name}(ward, 'a')",
        _text_signature(BOOLEAN, TEXT),
        _boolean_domain,
        _render_call(),
        2,
        2,
        evaluate=_evaluate_ascii(work),
    )


def _pad_function(name: str, work: Callable[..., str]) -> ScalarFunction:
    return ScalarFunction(
        name,
        f"{name}(ward, 5, '0')",
        _text_signature(TEXT, TEXT, INTEGER, TEXT),
        _sized_domain(lambda call, length: integer_argument(call, 1)),
        _render_pad,
        2,
        3,
        frozenset({1, 2}),
        _check_all(_check_numbers_between(0, MAX_PADDING, 1), _check_not_empty(2)),
        _evaluate_ascii(work),
    )


def _end_function(name: str, work: Callable[[str, int], str]) -> ScalarFunction:
    return ScalarFunction(
        name,
        f"{name}(ward, 3)",
        _text_signature(TEXT, TEXT, INTEGER),
        _sized_domain(_end_length),
        _render_call(),
        2,
        2,
        frozenset({1}),
        _check_numbers_between(-MAX_LENGTH, MAX_LENGTH, 1),
        _evaluate_ascii(work),
    )


TEXT_FUNCTIONS = (
    _case_function("lower", str.lower),
    _case_function("upper", str.upper),
    _case_function("initcap", _capitalize_words, _render_initcap),
    _trim_function("trim", lambda text, characters=" ": text.strip(characters) if characters else text),
    _trim_function("ltrim", lambda text, characters=" ": text.lstrip(characters) if characters else text),
    _trim_function("rtrim", lambda text, characters=" ": text.rstrip(characters) if characters else text),
    ScalarFunction(
        "length",
        "length(ward)",
        _text_signature(BIGINT, TEXT),
        _length_domain,
        _render_call(),
        evaluate=_evaluate_ascii(len),
    ),
    ScalarFunction(
        "octet_length",
        "octet_length(ward)",
        _text_signature(BIGINT, TEXT),
        _length_domain,
        _render_call("strlen"),
        evaluate=_evaluate_ascii(len),
    ),
    ScalarFunction(
        "substring",
        "substring(ward, 1, 3)",
        _text_signature(TEXT, TEXT, INTEGER),
        _sized_domain(_substring_length, True),
        _render_call(),
        2,
        3,
        frozenset({1, 2}),
        _check_numbers_between(1, MAX_LENGTH, 1, 2),
        _evaluate_ascii(_take_substring),
    ),
    _end_function("left", _take_left),
    _end_function("right", _take_right),
    ScalarFunction(
        "concat", "ward || '!'", _TEXTS_SIGNATURE, _concat_domain, _render_concat, 2, 20, evaluate=_evaluate_concat
    ),
    ScalarFunction(
        "concat_ws",
        "concat_ws('-', ward, kind)",
        _TEXTS_SIGNATURE,
        _concat_ws_domain,
        _render_call(),
        2,
        20,
        frozenset({0}),
        _check_not_null(0),
        _evaluate_concat_ws,
    ),
    ScalarFunction(
        "replace",
        "replace(ward, 'a', 'b')",
        _TEXTS_SIGNATURE,
        _sized_domain(_replaced_length),
        _render_call(),
        3,
        3,
        frozenset({1, 2}),
        _check_all(_check_not_empty(1), _check_not_null(2)),
        _evaluate_ascii(str.replace),
    ),
    ScalarFunction(
        "translate",
        "translate(ward, 'ab', 'xy')",
        _TEXTS_SIGNATURE,
        _sized_domain(lambda call, length: length),
        _render_call(),
        3,
        3,
        frozenset({1, 2}),
        _check_not_null(1, 2),
    ),
    ScalarFunction(
        "reverse",
        "reverse(ward)",
        _TEXTS_SIGNATURE,
        _sized_domain(lambda call, length: length),
        _render_call(),
        evaluate=_evaluate_ascii(_reverse_text),
    ),
    ScalarFunction(
        "repeat",
        "repeat(ward, 2)",
        _text_signature(TEXT, TEXT, INTEGER),
        _sized_domain(lambda call, length: length * integer_argument(call, 1)),
        _render_call(),
        2,
        2,
        frozenset({1}),
        _check_numbers_between(0, MAX_PADDING, 1),
        _evaluate_ascii(lambda text, count: text * count),
    ),
    _pad_function("lpad", _pad_left),
    _pad_function("rpad", _pad_right),
    ScalarFunction(
        "strpos",
        "strpos(ward, 'a')",
        _text_signature(BIGINT, TEXT),
        _length_domain,
        _render_call(),
        2,
        2,
        evaluate=_evaluate_ascii(lambda text, part: text.find(part) + 1),
    ),
    _predicate_function("starts_with", str.startswith),
    _predicate_function("ends_with", str.endswith),
    _predicate_function("contains", str.__contains__),
    ScalarFunction(
        "split_part",
        "split_part(ward, '-', 1)",
        _text_signature(TEXT, TEXT, TEXT, INTEGER),
        _sized_domain(lambda call, length: length),
        _render_split_part,
        3,
        3,
        frozenset({1, 2}),
        _check_all(_check_not_empty(1), _check_not_empty(2), _check_numbers_between(-MAX_LENGTH, MAX_LENGTH, 2)),
        _evaluate_ascii(_split_part),
    ),
    ScalarFunction(
        "ascii",
        "ascii(ward)",
        _text_signature(BIGINT, TEXT),
        _code_domain,
        _render_as_bigint("ascii"),
        evaluate=_evaluate_ascii(lambda text: ord(text[0]) if text else 0),
    ),
)
