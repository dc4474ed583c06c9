"""A YAML file as a tree that knows its lines, and where in it a reader stands.

Law: every complaint about a schema is made by `NodeRef.error`, so that each names file, line and key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import assert_never

from dpsql.errors import SchemaError
from dpsql.schema.keys import Either, Flag, Integer, Key, ListOf, MapOf, Number, OneOf, Record, Text, ValueShape
from dpsql.schema.literals import read_integer, read_number, show_number


@dataclass(frozen=True)
class TextNode:
    """A scalar by its text. `null`: written as nothing, `~` or `null`, without quotes."""

    line: int
    text: str
    null: bool = False


@dataclass(frozen=True)
class ListNode:
    line: int
    items: tuple[DocumentNode, ...]


@dataclass(frozen=True)
class MappingNode:
    line: int
    entries: tuple[tuple[TextNode, DocumentNode], ...]


DocumentNode = TextNode | ListNode | MappingNode


@dataclass(frozen=True)
class NodeRef:
    """A node, the dotted key that leads to it, and the line where that key stands."""

    file: str
    key: str
    node: DocumentNode
    key_line: int

    @property
    def line(self) -> int:
        # An empty value has no place of its own: the parser puts it where the next token stands.
        if isinstance(self.node, TextNode) and self.node.null and not self.node.text:
            return self.key_line
        return self.node.line

    @property
    def text(self) -> str:
        assert isinstance(self.node, TextNode)
        return self.node.text

    @property
    def null(self) -> bool:
        return isinstance(self.node, TextNode) and self.node.null

    def child(self, name: str) -> NodeRef | None:
        return next((at for leaf, at in self.entries() if leaf.text == name), None)

    def entries(self) -> Iterator[tuple[TextNode, NodeRef]]:
        if isinstance(self.node, MappingNode):
            for leaf, value in self.node.entries:
                yield leaf, NodeRef(self.file, f"{self.key}.{leaf.text}" if self.key else leaf.text, value, leaf.line)

    def items(self) -> Iterator[NodeRef]:
        if isinstance(self.node, ListNode):
            for number, item in enumerate(self.node.items):
                yield NodeRef(self.file, f"{self.key}[{number}]", item, item.line)

    def error(self, what: str, hint: str | None = None, *, line: int | None = None) -> SchemaError:
        """`what` goes on after the key: "must be a number above 0"."""
        subject = f"{printable_text(self.key, 200)} " if self.key else ""
        return make_schema_error(self.file, line or self.line, f"{subject}{what}", hint)

    def mismatch_error(self, due: str, hint: str | None = None) -> SchemaError:
        return self.error(f"must be {due}, not {describe_node(self.node)}", hint)


def without_credentials(text: str) -> str:
    """
    >>> without_credentials("postgresql://ana:s3cret@host/db?password=x&port=1")
    'postgresql://…@host/db?password=…&port=1'
    """
    # Up to the last @: a password may hold one. One slash, too: a path has lost the other.
    return re.sub(r"(password=)[^&\s]*", r"\1…", re.sub(r":/+\S*@", "://…@", text), flags=re.IGNORECASE)


def make_schema_error(file: str, line: int | None, what: str, hint: str | None = None) -> SchemaError:
    file = without_credentials(file)  # whoever takes the URL of a server for a path
    return SchemaError(f"{file}:{line}: {what}" if line else f"{file}: {what}", hint=hint)


def printable_text(text: str, max_length: int = 60) -> str:
    """Text fit for one line of a message, without the credentials of a URL."""
    text = without_credentials(text)
    short = text if len(text) <= max_length else text[: max_length - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)


def quote_text(text: str) -> str:
    return f'"{printable_text(text)}"'


def describe_node(node: DocumentNode) -> str:
    match node:
        case TextNode(null=True):
            return "empty"
        case TextNode(text=text):
            return quote_text(text)
        case ListNode():
            return "a list"
        case MappingNode():
            return "a mapping"


def closest_name(name: str, names: list[str]) -> str | None:
    """The one of `names` that a mistyped `name` most likely means."""
    folded = {candidate.lower(): candidate for candidate in names}
    matches = get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None


def suggest_name(name: str, names: list[str], what: str) -> str:
    """A hint for an unknown name: the nearest known one, and all of them where they are few."""
    near = closest_name(name, names)
    if near is not None:
        return f'Did you mean "{near}"?'
    if not names:
        return f"There are no {what}."
    listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"Known {what}: {listed}."


# Holds a document against the table of keys: unknown, missing, repeated and ill-formed ones are refused here.


def check_shape(at: NodeRef, shape: ValueShape, hint: str | None = None) -> None:
    match shape:
        case Record():
            _check_record(at, shape, hint)
        case MapOf():
            _check_mapping(at, shape, hint)
        case ListOf():
            _check_list(at, shape, hint)
        case Either():
            check_shape(at, _pick_option(at, shape, hint), hint)
        case Text():
            _check_text(at, shape, hint)
        case Flag():
            read_flag(at)
        case OneOf():
            _check_one_of(at, shape)
        case Number():
            _check_number(at, shape, hint)
        case Integer():
            _check_integer(at, shape)
        case _:
            assert_never(shape)


def _check_record(at: NodeRef, shape: Record, hint: str | None) -> None:
    if not isinstance(at.node, MappingNode):
        example = hint or f"Write for example {shape.example}."
        raise at.error("must be a mapping", example) if shape.secret else at.mismatch_error("a mapping", example)
    keys = {key.name: key for key in shape.keys}
    for leaf, value in at.entries():
        key = keys.get(leaf.text)
        if key is None:
            raise _unknown_key_error(at, leaf, list(keys))
        check_shape(value, key.shape, key.hint)
    for key in shape.keys:
        if key.required and at.child(key.name) is None:
            raise _missing_key_error(at, key)


def _unknown_key_error(at: NodeRef, leaf: TextNode, key_names: list[str]) -> Exception:
    where = f"{at.key} has no key {quote_text(leaf.text)}" if at.key else f"there is no key {quote_text(leaf.text)}"
    return NodeRef(at.file, "", at.node, at.key_line).error(
        where, suggest_name(leaf.text, key_names, "keys"), line=leaf.line
    )


def _missing_key_error(at: NodeRef, key: Key) -> Exception:
    name = f"{at.key}.{key.name}" if at.key else key.name
    return NodeRef(at.file, name, at.node, at.key_line).error("is missing", key.hint, line=at.key_line)


def _check_mapping(at: NodeRef, shape: MapOf, hint: str | None) -> None:
    if not isinstance(at.node, MappingNode):
        raise at.mismatch_error(f"a mapping with an entry for each {shape.what}", hint)
    if not at.node.entries:
        raise at.error(f"must name at least one {shape.what}", hint)
    if shape.most is not None and len(at.node.entries) > shape.most:
        raise at.error(f"must have at most {shape.most} entries, not {len(at.node.entries)}", hint)
    folded: dict[str, str] = {}
    for leaf, value in at.entries():
        # isprintable: the pattern is also that of the JSON Schema, whose dialect has no such class
        if leaf.null or not re.fullmatch(shape.pattern, leaf.text) or not leaf.text.isprintable():
            raise at.error(f"has an entry {quote_text(leaf.text)} that is not {shape.due}", line=leaf.line)
        twin = folded.setdefault(leaf.text.casefold(), leaf.text)
        if twin != leaf.text:
            raise at.error(
                f"has two entries that differ by case only, {quote_text(twin)} and {quote_text(leaf.text)}",
                "Rename one: in SQL their names would mean the same.", line=leaf.line,
            )  # fmt: skip
        own = hint if isinstance(shape.item, Text | Either) else None
        check_shape(value, shape.item, _column_short_form(shape, value) or own)


def _column_short_form(shape: MapOf, value: NodeRef) -> str | None:
    if shape.what == "column" and isinstance(shape.item, Record) and isinstance(value.node, TextNode):
        return f"Write {{type: {value.text or 'bigint'}}}."
    return None


def _check_list(at: NodeRef, shape: ListOf, hint: str | None) -> None:
    if not isinstance(at.node, ListNode):
        written = f"[{at.text}]" if isinstance(at.node, TextNode) and not at.null else "[…]"
        raise at.mismatch_error("a list", hint or f"Write {written}.")
    size = len(at.node.items)
    if shape.most is not None and not shape.least <= size <= shape.most:
        due = str(shape.least) if shape.least == shape.most else f"{shape.least} to {shape.most}"
        raise at.error(f"must have {due} entries, not {size}", hint)
    if size < shape.least:
        raise at.error(f"must have {shape.least} entries or more" if size else "must not be an empty list", hint)
    for item in at.items():
        check_shape(item, shape.item, hint)


def _pick_option(at: NodeRef, shape: Either, hint: str | None) -> ValueShape:
    for option in shape.shapes:
        match at.node, option:
            case (TextNode(), Text()) | (ListNode(), ListOf()) | (MappingNode(), Record() | MapOf()):
                return option
            case (TextNode(text=text), OneOf(options)) if text in options:
                return option
    due = {Text: "text", ListOf: "a list", Record: "a mapping", MapOf: "a mapping"}
    names = [" or ".join(option.options) if isinstance(option, OneOf) else due[type(option)] for option in shape.shapes]
    raise at.mismatch_error(" or ".join(names), hint)


def _check_text(at: NodeRef, shape: Text, hint: str | None) -> None:
    if not isinstance(at.node, TextNode):
        raise at.mismatch_error(shape.due, hint)
    if at.null:
        # `values` and `null` have a better hint to give; every other empty value is a slip.
        raise at.mismatch_error(shape.due, _null_hint(at) or hint)
    if shape.pattern is not None and not re.fullmatch(shape.pattern, at.text):
        raise at.error(f"must be {shape.due}", hint) if shape.secret else at.mismatch_error(shape.due, hint)


def _null_hint(at: NodeRef) -> str | None:
    if ".values[" in at.key:
        return 'Write nullable: true to make NULL a public group, or "null" in quotes for the text.'
    if at.key.endswith(".source.null"):
        return 'Write the text in quotes, for example "" or "null".'
    return None


def _check_one_of(at: NodeRef, shape: OneOf) -> None:
    if isinstance(at.node, TextNode) and at.text in shape.options and not at.null:
        return
    due = " or ".join(shape.options)
    near = closest_name(at.text, list(shape.options)) if isinstance(at.node, TextNode) else None
    raise at.mismatch_error(due, f'Did you mean "{near}"?' if near else f"Write {due}.")


def read_flag(at: NodeRef) -> bool:
    if isinstance(at.node, TextNode) and at.text.lower() in ("true", "false"):
        return at.text.lower() == "true"
    raise at.mismatch_error("true or false", "Write true or false.")


def _check_number(at: NodeRef, shape: Number, hint: str | None) -> None:
    number = read_number(at.text) if isinstance(at.node, TextNode) and not at.null else None
    if number is None or not _is_within_limits(number, shape):
        raise at.mismatch_error(_expected_number_text(shape), _number_hint(at) or hint)
    if shape.at_most is not None and number > shape.at_most:
        raise at.mismatch_error(f"at most {show_number(shape.at_most)}", hint)


def _number_hint(at: NodeRef) -> str | None:
    if isinstance(at.node, TextNode) and at.text.count(",") == 1 and read_number(at.text.replace(",", ".")) is not None:
        return f"Write {at.text.replace(',', '.')}, with a point."
    return None


def _is_within_limits(number: Fraction, shape: Number) -> bool:
    return not (
        (shape.above is not None and number <= shape.above)
        or (shape.at_least is not None and number < shape.at_least)
        or (shape.below is not None and number >= shape.below)
    )


def _expected_number_text(shape: Number) -> str:
    if shape.above is not None:
        return f"a number above {show_number(shape.above)}"
    assert shape.at_least is not None and shape.below is not None
    return f"a number from {show_number(shape.at_least)} to below {show_number(shape.below)}"


def _check_integer(at: NodeRef, shape: Integer) -> None:
    number = read_integer(at.text) if isinstance(at.node, TextNode) and not at.null else None
    if number is None or not shape.at_least <= number <= shape.at_most:
        raise at.mismatch_error(f"a whole number from {shape.at_least} to {shape.at_most}")
