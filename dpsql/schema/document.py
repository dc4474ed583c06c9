"""A YAML file as a tree that knows its lines, and where in it a reader stands.

Law: every complaint about a schema is made by `NodeRef.error`, so that each names file, line and key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from dpsql.errors import SchemaError


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
