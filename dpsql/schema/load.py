"""From the owner's YAML file to a `Schema`.

Law: yaml is known in this file only, and only as text with lines: what a scalar means is decided by the
key that it stands under, never by YAML's guess (where `no` is false, `1e-7` text and `010` eight).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import yaml

from dpsql.errors import SchemaError
from dpsql.schema.build import build_schema
from dpsql.schema.document import At, Entries, Items, Leaf, Node, closest, complaint, quoted
from dpsql.schema.model import Schema

MAX_BYTES = 1 << 20
MAX_DEPTH = 20  # the format needs 6
_NULL = "tag:yaml.org,2002:null"

_DATA = (".parquet", ".csv", ".tsv", ".duckdb", ".db", ".arrow", ".feather", ".xlsx", ".ndjson", ".gz")
_START = 'Start with "dpsql: 1", then the keys privacy and tables; docs/schema.md shows a whole schema.'


def load_schema(path: str | Path, env: Mapping[str, str] = os.environ) -> Schema:
    """Read, check and resolve a schema file; `env` is where ${NAME} in engine, ledger and source is looked up."""
    return schema_of(read_text(str(path)), path, env)


def schema_of(text: str, path: str | Path, env: Mapping[str, str] = os.environ) -> Schema:
    """What `load_schema` would make of a file with this text."""
    file = str(path)
    return build_schema(At(file, "", parse_document(text, file), 1), Path(os.path.abspath(file)), env)


def compose(text: str) -> yaml.Node:
    """The nodes of a document that was loaded before, with their places in its text."""
    node: yaml.Node | None = yaml.compose(text, _Composer)
    assert node is not None
    return node


def parse_document(text: str, file: str) -> Node:
    try:
        node = yaml.compose(text, _Composer)
        if node is None:
            raise complaint(file, None, "the schema is empty", _START)
        return _convert(node, file)
    except _Refused as refusal:
        raise complaint(file, refusal.line, refusal.what, refusal.hint) from None
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, file) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise complaint(file, line, "holds a character that YAML does not allow", "Remove the character.") from None
    except (ValueError, OverflowError):  # escapes such as "\UFFFFFFFF" reach chr() inside the parser
        raise complaint(file, None, "holds an escape that is no character", 'Look for "\\U" in quoted text.') from None


def read_text(file: str) -> str:
    try:
        with open(file, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise complaint(file, None, "there is no such file", _similar_file(Path(file))) from None
    except IsADirectoryError:
        raise complaint(file, None, "is a folder, not a schema", _file_inside(Path(file))) from None
    except OSError as error:
        reason = (error.strerror or "it is not a file").lower()
        raise complaint(file, None, f"cannot be read: {reason}", "Give the path of a YAML file.") from None
    except ValueError:  # a NUL in the path
        raise complaint(quoted(file), None, "is not a path", "Give the path of a YAML file.") from None
    if data.startswith(b"SQLite format 3"):
        raise complaint(file, None, "is a database, perhaps a ledger, not a schema", "Give the path of a YAML file.")
    if Path(file).suffix.lower() in _DATA or data.startswith(b"PAR1") or data[8:12] == b"DUCK":
        hint = f"Draft a schema with 'dpsql init {file}', and open that."
        raise complaint(file, None, "holds data: it is not a schema", hint)
    if len(data) > MAX_BYTES:
        raise complaint(file, None, "is larger than 1 MiB", "A schema describes tables; data belongs in other files.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise complaint(file, line, "is not UTF-8 text", "Save the file as UTF-8.") from None


def _similar_file(path: Path) -> str:
    try:
        names = [found.name for found in path.parent.iterdir() if found.suffix in (".yaml", ".yml")]
    except OSError:
        return "Give the path of a YAML file."
    near = closest(path.name, sorted(names))
    return f'Did you mean "{path.parent / near}"?' if near else "Give the path of a YAML file."


def _file_inside(folder: Path) -> str:
    try:
        names = sorted(found.name for found in folder.iterdir() if found.suffix in (".yaml", ".yml"))
    except OSError:
        names = []
    return f'Did you mean "{folder / names[0]}"?' if names else "Give the path of a YAML file."


class _Refused(Exception):
    def __init__(self, line: int, what: str, hint: str) -> None:
        super().__init__(what)
        self.line, self.what, self.hint = line, what, hint


class _Composer(yaml.SafeLoader):
    """Composes nodes without constructing values; refuses what a schema has no need of."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            # Refused whole: a few lines of nested aliases stand for billions of nodes.
            raise _Refused(line, "holds a YAML alias",  # not quoted: it may be a password that begins with *
                           "Write the value out; text that begins with * needs quotes.")  # fmt: skip
        if getattr(event, "anchor", None) is not None:
            raise _Refused(line, "holds a YAML anchor",
                           "Remove the anchor; text that begins with & needs quotes.")  # fmt: skip
        if getattr(event, "tag", None) is not None:
            raise _Refused(line, "holds a YAML tag",
                           "Remove the tag; text that begins with ! needs quotes.")  # fmt: skip
        if self.depth >= MAX_DEPTH:
            raise _Refused(line, f"is nested deeper than {MAX_DEPTH} levels", "Check the brackets and the indentation.")
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


def _convert(node: yaml.Node, file: str) -> Node:
    line = node.start_mark.line + 1
    match node:
        case yaml.ScalarNode():
            return _leaf(node, file)
        case yaml.SequenceNode():
            return Items(line, tuple(_convert(item, file) for item in node.value))
        case yaml.MappingNode():
            return _entries(node, file)
        case _:
            raise complaint(file, line, "holds a YAML node of an unknown kind")


def _leaf(node: yaml.ScalarNode, file: str) -> Leaf:
    line = node.start_mark.line + 1
    if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in node.value):
        raise complaint(file, line, "holds a character that no database stores", "Remove NUL and surrogate escapes.")
    return Leaf(line, node.value, null=node.style is None and node.tag == _NULL)


def _entries(node: yaml.MappingNode, file: str) -> Entries:
    seen: dict[str, int] = {}
    entries: list[tuple[Leaf, Node]] = []
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise complaint(file, line, "a key must be text, not a list or a mapping", "Check the brackets.")
        leaf = _leaf(key, file)
        if leaf.text in seen:
            raise complaint(file, line, f"the key {quoted(leaf.text)} is repeated; it stands already in line "
                            f"{seen[leaf.text]}", "Remove one of the two.")  # fmt: skip
        seen[leaf.text] = line
        entries.append((leaf, _convert(value, file)))
    return Entries(node.start_mark.line + 1, tuple(entries))


def _syntax_error(error: yaml.MarkedYAMLError, text: str, file: str) -> SchemaError:
    mark = error.problem_mark or error.context_mark
    line = None if mark is None else mark.line + 1
    if isinstance(error, yaml.composer.ComposerError):
        return complaint(file, line, "holds more than one YAML document", 'Keep one document: remove the line "---".')
    # This one alone quotes more than a character, and it may be of a password that begins with an exclamation mark.
    problem = "found an undefined tag handle" if "tag handle" in str(error.problem) else error.problem
    return complaint(file, line, f"is not YAML: {problem}", _syntax_hint(error, text, line or 1))


def _syntax_hint(error: yaml.MarkedYAMLError, text: str, line: int) -> str:
    # YAML's own line breaks, since it counted the lines; a complaint at the end may stand past the last one.
    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", text)
    if lines[min(line, len(lines)) - 1].startswith("\t") or "\\t" in str(error.problem):
        return "YAML indents with spaces, not tabs."
    if error.context in ("while scanning an alias", "while scanning an anchor"):
        return "Put text that begins with * or & in quotes."
    if error.problem == "mapping values are not allowed here":
        return 'Put text that ends in a colon or holds ": " in quotes; else check the indentation.'
    return "Check indentation, colons, brackets and quotes near this line."
