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
from dpsql.schema.document import NodeRef, MappingNode, ListNode, TextNode, DocumentNode, closest_name, make_schema_error, quote_text
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
        raise make_schema_error(file, line, "holds a character that YAML does not allow", "Remove the character.") from None
    except (ValueError, OverflowError):  # escapes such as "\UFFFFFFFF" reach chr() inside the parser
        raise make_schema_error(file, None, "holds an escape that is no character", 'Look for "\\U" in quoted text.') from None


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
        raise make_schema_error(file, None, "is a database, perhaps a ledger, not a schema", "Give the path of a YAML file.")
    if Path(file).suffix.lower() in _DATA_SUFFIXES or data.startswith(b"PAR1") or data[8:12] == b"DUCK":
        hint = f"Draft a schema with 'dpsql init {file}', and open that."
        raise make_schema_error(file, None, "holds data: it is not a schema", hint)
    if len(data) > MAX_BYTES:
        raise make_schema_error(file, None, "is larger than 1 MiB", "A schema describes tables; data belongs in other files.")
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
            raise _RefusedYaml(line, f"is nested deeper than {MAX_YAML_DEPTH} levels", "Check the brackets and the indentation.")
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
        raise make_schema_error(file, line, "holds a character that no database stores", "Remove NUL and surrogate escapes.")
    return TextNode(line, node.value, null=node.style is None and node.tag == _NULL_TAG)


def _convert_mapping(node: yaml.MappingNode, file: str) -> MappingNode:
    seen: dict[str, int] = {}
    entries: list[tuple[TextNode, DocumentNode]] = []
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise make_schema_error(file, line, "a key must be text, not a list or a mapping", "Check the brackets.")
        leaf = _convert_scalar(key, file)
        if leaf.text in seen:
            raise make_schema_error(file, line, f"the key {quote_text(leaf.text)} is repeated; it stands already in line "
                            f"{seen[leaf.text]}", "Remove one of the two.")  # fmt: skip
        seen[leaf.text] = line
        entries.append((leaf, _convert_node(value, file)))
    return MappingNode(node.start_mark.line + 1, tuple(entries))


def _syntax_error(error: yaml.MarkedYAMLError, text: str, file: str) -> SchemaError:
    mark = error.problem_mark or error.context_mark
    line = None if mark is None else mark.line + 1
    if isinstance(error, yaml.composer.ComposerError):
        return make_schema_error(file, line, "holds more than one YAML document", 'Keep one document: remove the line "---".')
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
