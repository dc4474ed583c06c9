"""Holds a document against the table of keys: unknown, missing, repeated and ill-formed ones are refused here."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import assert_never

from dpsql.schema.document import At, Entries, Items, Leaf, closest, quoted, suggestion
from dpsql.schema.keys import Choice, Either, Flag, Key, ListOf, Names, Number, Record, Shape, Text, Whole
from dpsql.schema.literals import read_number, read_whole, show_number


def check(at: At, shape: Shape, hint: str | None = None) -> None:
    match shape:
        case Record():
            _check_record(at, shape, hint)
        case Names():
            _check_names(at, shape, hint)
        case ListOf():
            _check_list(at, shape, hint)
        case Either():
            check(at, _pick(at, shape, hint), hint)
        case Text():
            _check_text(at, shape, hint)
        case Flag():
            read_flag(at)
        case Choice():
            _check_choice(at, shape)
        case Number():
            _check_number(at, shape, hint)
        case Whole():
            _check_whole(at, shape)
        case _:
            assert_never(shape)


def _check_record(at: At, shape: Record, hint: str | None) -> None:
    if not isinstance(at.node, Entries):
        example = hint or f"Write for example {shape.example}."
        raise at.error("must be a mapping", example) if shape.secret else at.wrong("a mapping", example)
    keys = {key.name: key for key in shape.keys}
    for leaf, value in at.entries():
        key = keys.get(leaf.text)
        if key is None:
            raise _unknown_key(at, leaf, list(keys))
        check(value, key.shape, key.hint)
    for key in shape.keys:
        if key.required and at.child(key.name) is None:
            raise _missing(at, key)


def _unknown_key(at: At, leaf: Leaf, known: list[str]) -> Exception:
    where = f"{at.key} has no key {quoted(leaf.text)}" if at.key else f"there is no key {quoted(leaf.text)}"
    return At(at.file, "", at.node, at.key_line).error(where, suggestion(leaf.text, known, "keys"), line=leaf.line)


def _missing(at: At, key: Key) -> Exception:
    name = f"{at.key}.{key.name}" if at.key else key.name
    return At(at.file, name, at.node, at.key_line).error("is missing", key.hint, line=at.key_line)


def _check_names(at: At, shape: Names, hint: str | None) -> None:
    if not isinstance(at.node, Entries):
        raise at.wrong(f"a mapping with an entry for each {shape.what}", hint)
    if not at.node.entries:
        raise at.error(f"must name at least one {shape.what}", hint)
    if shape.most is not None and len(at.node.entries) > shape.most:
        raise at.error(f"must have one entry, not {len(at.node.entries)}", hint)
    folded: dict[str, str] = {}
    for leaf, value in at.entries():
        # isprintable: the pattern is also that of the JSON Schema, whose dialect has no such class
        if leaf.null or not re.fullmatch(shape.pattern, leaf.text) or not leaf.text.isprintable():
            raise at.error(f"has an entry {quoted(leaf.text)} that is not {shape.due}", line=leaf.line)
        twin = folded.setdefault(leaf.text.casefold(), leaf.text)
        if twin != leaf.text:
            raise at.error(
                f"has two entries that differ by case only, {quoted(twin)} and {quoted(leaf.text)}",
                "Rename one: in SQL their names would mean the same.", line=leaf.line,
            )  # fmt: skip
        own = hint if isinstance(shape.item, Text | Either) else None
        check(value, shape.item, _column_short_form(shape, value) or own)


def _column_short_form(shape: Names, value: At) -> str | None:
    if shape.what == "column" and isinstance(shape.item, Record) and isinstance(value.node, Leaf):
        return f"Write {{type: {value.text or 'bigint'}}}."
    return None


def _check_list(at: At, shape: ListOf, hint: str | None) -> None:
    if not isinstance(at.node, Items):
        written = f"[{at.text}]" if isinstance(at.node, Leaf) and not at.null else "[…]"
        raise at.wrong("a list", hint or f"Write {written}.")
    size = len(at.node.items)
    if shape.most is not None and not shape.least <= size <= shape.most:
        due = str(shape.least) if shape.least == shape.most else f"{shape.least} to {shape.most}"
        raise at.error(f"must have {due} entries, not {size}", hint)
    if size < shape.least:
        raise at.error(f"must have {shape.least} entries or more" if size else "must not be an empty list", hint)
    for item in at.items():
        check(item, shape.item, hint)


def _pick(at: At, shape: Either, hint: str | None) -> Shape:
    for option in shape.shapes:
        match at.node, option:
            case (Leaf(), Text()) | (Items(), ListOf()) | (Entries(), Record() | Names()):
                return option
    due = {Text: "text", ListOf: "a list", Record: "a mapping", Names: "a mapping"}
    raise at.wrong(" or ".join(due[type(option)] for option in shape.shapes), hint)


def _check_text(at: At, shape: Text, hint: str | None) -> None:
    if not isinstance(at.node, Leaf):
        raise at.wrong(shape.due, hint)
    if at.null:
        # `values` and `null` have a better hint to give; every other empty value is a slip.
        raise at.wrong(shape.due, _null_hint(at) or hint)
    if shape.pattern is not None and not re.fullmatch(shape.pattern, at.text):
        raise at.error(f"must be {shape.due}", hint) if shape.secret else at.wrong(shape.due, hint)


def _null_hint(at: At) -> str | None:
    if ".values[" in at.key:
        return 'Write nullable: true to make NULL a public group, or "null" in quotes for the text.'
    if at.key.endswith(".source.null"):
        return 'Write the text in quotes, for example "" or "null".'
    return None


def _check_choice(at: At, shape: Choice) -> None:
    if isinstance(at.node, Leaf) and at.text in shape.options and not at.null:
        return
    due = " or ".join(shape.options)
    near = closest(at.text, list(shape.options)) if isinstance(at.node, Leaf) else None
    raise at.wrong(due, f'Did you mean "{near}"?' if near else f"Write {due}.")


def read_flag(at: At) -> bool:
    if isinstance(at.node, Leaf) and at.text.lower() in ("true", "false"):
        return at.text.lower() == "true"
    raise at.wrong("true or false", "Write true or false.")


def _check_number(at: At, shape: Number, hint: str | None) -> None:
    number = read_number(at.text) if isinstance(at.node, Leaf) and not at.null else None
    if number is None or not _above(number, shape):
        raise at.wrong(_number_due(shape), _number_hint(at) or hint)
    if shape.at_most is not None and number > shape.at_most:
        raise at.wrong(f"at most {show_number(shape.at_most)}", hint)


def _number_hint(at: At) -> str | None:
    if isinstance(at.node, Leaf) and at.text.count(",") == 1 and read_number(at.text.replace(",", ".")) is not None:
        return f"Write {at.text.replace(',', '.')}, with a point."
    return None


def _above(number: Fraction, shape: Number) -> bool:
    return not (
        (shape.above is not None and number <= shape.above)
        or (shape.at_least is not None and number < shape.at_least)
        or (shape.below is not None and number >= shape.below)
    )


def _number_due(shape: Number) -> str:
    if shape.above is not None:
        return f"a number above {show_number(shape.above)}"
    assert shape.at_least is not None and shape.below is not None
    return f"a number from {show_number(shape.at_least)} to below {show_number(shape.below)}"


def _check_whole(at: At, shape: Whole) -> None:
    number = read_whole(at.text) if isinstance(at.node, Leaf) and not at.null else None
    if number is None or not shape.at_least <= number <= shape.at_most:
        raise at.wrong(f"a whole number from {shape.at_least} to {shape.at_most}")
