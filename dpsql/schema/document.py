"""A YAML file as a tree that knows its lines, and where in it a reader stands.

Law: every complaint about a schema is made by `At.error`, so that each names file, line and key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from dpsql.errors import SchemaError


@dataclass(frozen=True)
class Leaf:
    """A scalar by its text. `null`: written as nothing, `~` or `null`, without quotes."""

    line: int
    text: str
    null: bool = False


@dataclass(frozen=True)
class Items:
    line: int
    items: tuple[Node, ...]


@dataclass(frozen=True)
class Entries:
    line: int
    entries: tuple[tuple[Leaf, Node], ...]


Node = Leaf | Items | Entries


@dataclass(frozen=True)
class At:
    """A node, the dotted key that leads to it, and the line where that key stands."""

    file: str
    key: str
    node: Node
    key_line: int

    @property
    def line(self) -> int:
        # An empty value has no place of its own: the parser puts it where the next token stands.
        if isinstance(self.node, Leaf) and self.node.null and not self.node.text:
            return self.key_line
        return self.node.line

    @property
    def text(self) -> str:
        assert isinstance(self.node, Leaf)
        return self.node.text

    @property
    def null(self) -> bool:
        return isinstance(self.node, Leaf) and self.node.null

    def child(self, name: str) -> At | None:
        return next((at for leaf, at in self.entries() if leaf.text == name), None)

    def entries(self) -> Iterator[tuple[Leaf, At]]:
        if isinstance(self.node, Entries):
            for leaf, value in self.node.entries:
                yield leaf, At(self.file, f"{self.key}.{leaf.text}" if self.key else leaf.text, value, leaf.line)

    def items(self) -> Iterator[At]:
        if isinstance(self.node, Items):
            for number, item in enumerate(self.node.items):
                yield At(self.file, f"{self.key}[{number}]", item, item.line)

    def error(self, what: str, hint: str | None = None, *, line: int | None = None) -> SchemaError:
        """`what` goes on after the key: "must be a number above 0"."""
        subject = f"{shown(self.key, 200)} " if self.key else ""
        return complaint(self.file, line or self.line, f"{subject}{what}", hint)

    def wrong(self, due: str, hint: str | None = None) -> SchemaError:
        return self.error(f"must be {due}, not {describe(self.node)}", hint)


def without_credentials(text: str) -> str:
    """
    >>> without_credentials("postgresql://ana:s3cret@host/db?password=x&port=1")
    'postgresql://…@host/db?password=…&port=1'
    """
    # Up to the last @: a password may hold one. One slash, too: a path has lost the other.
    return re.sub(r"(password=)[^&\s]*", r"\1…", re.sub(r":/+\S*@", "://…@", text), flags=re.IGNORECASE)


def complaint(file: str, line: int | None, what: str, hint: str | None = None) -> SchemaError:
    file = without_credentials(file)  # whoever takes the URL of a server for a path
    return SchemaError(f"{file}:{line}: {what}" if line else f"{file}: {what}", hint=hint)


def shown(text: str, most: int = 60) -> str:
    """Text fit for one line of a message, without the credentials of a URL."""
    text = without_credentials(text)
    short = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)


def quoted(text: str) -> str:
    return f'"{shown(text)}"'


def describe(node: Node) -> str:
    match node:
        case Leaf(null=True):
            return "empty"
        case Leaf(text=text):
            return quoted(text)
        case Items():
            return "a list"
        case Entries():
            return "a mapping"


def closest(name: str, names: list[str]) -> str | None:
    """The one of `names` that a mistyped `name` most likely means."""
    folded = {known.lower(): known for known in names}
    found = get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def suggestion(name: str, names: list[str], what: str) -> str:
    """A hint for an unknown name: the nearest known one, and all of them where they are few."""
    near = closest(name, names)
    if near is not None:
        return f'Did you mean "{near}"?'
    if not names:
        return f"There are no {what}."
    listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"Known {what}: {listed}."
