"""From the owner's YAML file to a `Schema`.

Law: yaml is known in this file only, and only as text with lines: what a scalar means is decided by the
key that it stands under, never by YAML's guess (where `no` is false, `1e-7` text and `010` eight).
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import yaml

from dpsql.errors import SchemaError
from dpsql.schema.build import build_schema
from dpsql.schema.document import (
    DocumentNode,
    ListNode,
    MappingNode,
    NodeRef,
    TextNode,
    closest_name,
    make_schema_error,
    printable_text,
    quote_text,
)
from dpsql.schema.locations import database_path
from dpsql.schema.model import Schema

MAX_BYTES = 1 << 20
MAX_YAML_DEPTH = 20  # the format needs 6
_NULL_TAG = "tag:yaml.org,2002:null"

_DATA_SUFFIXES = (".parquet", ".csv", ".tsv", ".duckdb", ".db", ".arrow", ".feather", ".xlsx", ".ndjson", ".gz")
_START_HINT = 'Start with "dpsql: 1", then the keys privacy and tables; docs/schema.md shows a whole schema.'


def load_schema(path: str | Path, env: Mapping[str, str] = os.environ) -> Schema:
    """Read, check and resolve a schema file; `env` is where ${NAME} in engine, ledger and source is looked up."""
    return schema_from_text(read_text(str(path)), path, env)


def schema_from_text(text: str, path: str | Path, env: Mapping[str, str] = os.environ) -> Schema:
    """What `load_schema` would make of a file with this text."""
    file = str(path)
    return build_schema(NodeRef(file, "", parse_document(text, file), 1), Path(os.path.abspath(file)), env)


def compose_yaml(text: str) -> yaml.Node:
    """The nodes of a document that was loaded before, with their places in its text."""
    node: yaml.Node | None = yaml.compose(text, _YamlComposer)
    assert node is not None
    return node


def parse_document(text: str, file: str) -> DocumentNode:
    try:
        node = yaml.compose(text, _YamlComposer)
        if node is None:
            raise make_schema_error(file, None, "the schema is empty", _START_HINT)
        return _convert_node(node, file)
    except _RefusedYaml as refusal:
        raise make_schema_error(file, refusal.line, refusal.what, refusal.hint) from None
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, file) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise make_schema_error(
            file, line, "holds a character that YAML does not allow", "Remove the character."
        ) from None
    except (ValueError, OverflowError):  # escapes such as "\UFFFFFFFF" reach chr() inside the parser
        raise make_schema_error(
            file, None, "holds an escape that is no character", 'Look for "\\U" in quoted text.'
        ) from None


def read_text(file: str) -> str:
    try:
        with open(file, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise make_schema_error(file, None, "there is no such file", _similar_file_hint(Path(file))) from None
    except IsADirectoryError:
        raise make_schema_error(file, None, "is a folder, not a schema", _file_inside_hint(Path(file))) from None
    except OSError as error:
        reason = (error.strerror or "it is not a file").lower()
        raise make_schema_error(file, None, f"cannot be read: {reason}", "Give the path of a YAML file.") from None
    except ValueError:  # a NUL in the path
        raise make_schema_error(quote_text(file), None, "is not a path", "Give the path of a YAML file.") from None
    if data.startswith(b"SQLite format 3"):
        raise make_schema_error(
            file, None, "is a database, perhaps a ledger, not a schema", "Give the path of a YAML file."
        )
    if Path(file).suffix.lower() in _DATA_SUFFIXES or data.startswith(b"PAR1") or data[8:12] == b"DUCK":
        hint = f"Draft a schema with 'dpsql init {file}', and open that."
        raise make_schema_error(file, None, "holds data: it is not a schema", hint)
    if len(data) > MAX_BYTES:
        raise make_schema_error(
            file, None, "is larger than 1 MiB", "A schema describes tables; data belongs in other files."
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise make_schema_error(file, line, "is not UTF-8 text", "Save the file as UTF-8.") from None


def _similar_file_hint(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.suffix in (".yaml", ".yml")]
    except OSError:
        return "Give the path of a YAML file."
    near = closest_name(path.name, sorted(names))
    return f'Did you mean "{path.parent / near}"?' if near else "Give the path of a YAML file."


def _file_inside_hint(folder: Path) -> str:
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.suffix in (".yaml", ".yml"))
    except OSError:
        names = []
    return f'Did you mean "{folder / names[0]}"?' if names else "Give the path of a YAML file."


class _RefusedYaml(Exception):
    def __init__(self, line: int, what: str, hint: str) -> None:
        super().__init__(what)
        self.line, self.what, self.hint = line, what, hint


class _YamlComposer(yaml.SafeLoader):
    """Composes nodes without constructing values; refuses what a schema has no need of."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            # Refused whole: a few lines of nested aliases stand for billions of nodes.
            raise _RefusedYaml(line, "holds a YAML alias",  # not quoted: it may be a password that begins with *
                           "Write the value out; text that begins with * needs quotes.")  # fmt: skip
        if getattr(event, "anchor", None) is not None:
            raise _RefusedYaml(line, "holds a YAML anchor",
                           "Remove the anchor; text that begins with & needs quotes.")  # fmt: skip
        if getattr(event, "tag", None) is not None:
            raise _RefusedYaml(line, "holds a YAML tag",
                           "Remove the tag; text that begins with ! needs quotes.")  # fmt: skip
        if self.depth >= MAX_YAML_DEPTH:
            raise _RefusedYaml(
                line, f"is nested deeper than {MAX_YAML_DEPTH} levels", "Check the brackets and the indentation."
            )
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


def _convert_node(node: yaml.Node, file: str) -> DocumentNode:
    line = node.start_mark.line + 1
    match node:
        case yaml.ScalarNode():
            return _convert_scalar(node, file)
        case yaml.SequenceNode():
            return ListNode(line, tuple(_convert_node(item, file) for item in node.value))
        case yaml.MappingNode():
            return _convert_mapping(node, file)
        case _:
            raise make_schema_error(file, line, "holds a YAML node of an unknown kind")


def _convert_scalar(node: yaml.ScalarNode, file: str) -> TextNode:
    line = node.start_mark.line + 1
    if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in node.value):
        raise make_schema_error(
            file, line, "holds a character that no database stores", "Remove NUL and surrogate escapes."
        )
    return TextNode(line, node.value, null=node.style is None and node.tag == _NULL_TAG)


def _convert_mapping(node: yaml.MappingNode, file: str) -> MappingNode:
    seen: dict[str, int] = {}
    entries: list[tuple[TextNode, DocumentNode]] = []
    for key, value in node.value:
        line = key.start_mark.line + 1
        for leaf, item in _convert_entry(key, value, file):
            if leaf.text in seen:
                raise make_schema_error(
                    file,
                    line,
                    f"the key {quote_text(leaf.text)} is repeated; it stands already in line {seen[leaf.text]}",
                    "Remove one of the two.",
                )
            seen[leaf.text] = line
            entries.append((leaf, item))
    return MappingNode(node.start_mark.line + 1, tuple(entries))


def _convert_entry(key: yaml.Node, value: yaml.Node, file: str) -> Iterator[tuple[TextNode, DocumentNode]]:
    """An entry; [a, b]: [t.x, t.y] is short for a: t.x and b: t.y, and [a, b]: t for a: t.a and b: t.b."""
    if isinstance(key, yaml.ScalarNode):
        yield _convert_scalar(key, file), _convert_node(value, file)
        return
    if not isinstance(key, yaml.SequenceNode) or not all(isinstance(part, yaml.ScalarNode) for part in key.value):
        line = key.start_mark.line + 1
        raise make_schema_error(file, line, "a key must be text, not a mapping", "Check the brackets.")
    leaves = [_convert_scalar(part, file) for part in key.value]
    item = _convert_node(value, file)
    match item:
        case ListNode(items=items) if len(items) == len(leaves):
            yield from zip(leaves, items, strict=True)
        case TextNode(text=table, null=False) if leaves and "." not in table:
            for leaf in leaves:
                yield leaf, TextNode(item.line, f"{table}.{leaf.text}")
        case _:
            raise make_schema_error(
                file,
                key.start_mark.line + 1,
                "a list of columns must lead to a list of as many, or to the name of a table",
                "Write for example {[ticket, item]: [sales.ticket, sales.item]}, or {[ticket, item]: sales}.",
            )


def _syntax_error(error: yaml.MarkedYAMLError, text: str, file: str) -> SchemaError:
    mark = error.problem_mark or error.context_mark
    line = None if mark is None else mark.line + 1
    if isinstance(error, yaml.composer.ComposerError):
        return make_schema_error(
            file, line, "holds more than one YAML document", 'Keep one document: remove the line "---".'
        )
    # This one alone quotes more than a character, and it may be of a password that begins with an exclamation mark.
    problem = "found an undefined tag handle" if "tag handle" in str(error.problem) else error.problem
    return make_schema_error(file, line, f"is not YAML: {problem}", _syntax_hint(error, text, line or 1))


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


# A schema that is a Python dict, as the tree that a YAML file is read to.
#
# Law: a value becomes the text that its owner would write in the file, so both are checked and read in the same way.
# What has no such text is refused here, with the key that it stands under.

MAX_DICT_DEPTH = 20  # the format needs 6; a dict may hold itself


DICT_NAME = "the schema"
"""How messages name a dict, which has no path."""


def schema_from_dict(document: Mapping[str, object], folder: str | Path, env: Mapping[str, str] = os.environ) -> Schema:
    """A schema that is a dict, with the keys of the file; its paths are relative to `folder`.

    It has no file to keep a ledger beside, so it names one: two dicts must not come to share a budget by accident.
    """
    root = NodeRef(DICT_NAME, "", _node_from_value(document, DICT_NAME), 0)
    ledger = root.child("ledger")
    if ledger is None and root.child("dpsql") is not None:
        raise make_schema_error(
            DICT_NAME,
            None,
            "the key ledger is missing: a dict has no file beside which one is kept",
            'Write for example "ledger": "sqlite:///clinic.ledger".',
        )
    base = Path(os.path.abspath(folder))
    schema = build_schema(root, base / "schema.yaml", env)
    file = database_path(schema.ledger)
    return schema if file is None else replace(schema, path=base / f"{file.stem}.yaml")


def _node_from_value(value: object, file: str, key: str = "", depth: int = 0) -> DocumentNode:
    if depth > MAX_DICT_DEPTH:
        raise _invalid_value_error(file, key, f"is nested deeper than {MAX_DICT_DEPTH} levels")
    match value:
        case Mapping():
            return MappingNode(
                0, tuple(_entry_from_value(name, inner, file, key, depth) for name, inner in value.items())
            )
        case list() | tuple():
            return ListNode(
                0, tuple(_node_from_value(item, file, f"{key}[{at}]", depth + 1) for at, item in enumerate(value))
            )
        case None:
            return TextNode(0, "", null=True)
        case _:
            return TextNode(0, _check_characters(_scalar_text(value, file, key), file, key))


def _entry_from_value(name: object, value: object, file: str, key: str, depth: int) -> tuple[TextNode, DocumentNode]:
    if name is None:
        name = "null"  # as yaml.safe_load makes it of the key
    if not isinstance(name, str):
        raise _invalid_value_error(file, key, f"has a key that is no text, but {type(name).__name__}")
    inner = f"{key}.{name}" if key else name
    return TextNode(0, _check_characters(name, file, inner)), _node_from_value(value, file, inner, depth + 1)


def _scalar_text(value: object, file: str, key: str) -> str:
    match value:
        case str():
            return str.__str__(value)
        case bool():
            return "true" if value else "false"
        case int():
            return int.__repr__(value)
        case float():
            return float.__repr__(value)
        case Decimal():
            return Decimal.__str__(value)
        case dt.datetime():
            return dt.datetime.isoformat(value, " ")
        case dt.date():
            return dt.date.isoformat(value)
        case os.PathLike():
            return os.fsdecode(value)
        case _:
            raise _invalid_value_error(file, key, f"cannot be a {type(value).__name__}")


def _check_characters(text: str, file: str, key: str) -> str:
    if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text):
        raise _invalid_value_error(file, key, "holds a character that no database stores")
    return text


def _invalid_value_error(file: str, key: str, what: str) -> SchemaError:
    hint = "Write text, numbers, dates, true and false, lists and dicts, as in the YAML file."
    return make_schema_error(file, None, f"{printable_text(key, 200)} {what}" if key else f"it {what}", hint)
