"""Changing a schema's text where it stands: one analyst more, less, or with another password.

Law: comments, layout and all other entries stay as they were written. What comes out is loaded again by the caller, who
compares it with what was meant: so a layout that is not understood here is refused, never damaged.
"""

from __future__ import annotations

import re

import yaml

from dpsql.errors import SchemaError
from dpsql.schema.load import compose_yaml

_ANALYSTS_KEY = "analysts"
_INDENT = 2


def add_analyst(text: str, name: str, entry: str) -> str:
    """`entry` is the analyst's declaration as one line of YAML, such as {budget: {epsilon: 1, delta: 0}}."""
    root = _require_mapping(compose_yaml(text))
    analysts = _find_entry(root, _ANALYSTS_KEY)
    if analysts is None:
        return _add_first_analyst(text, root, f"{_quote_key(name)}: {entry}")
    return _add_entry(text, _require_mapping(analysts[1]), _quote_key(name), entry)


def set_password(text: str, name: str, verifier: str) -> str:
    """The analyst with this password, instead of any other that the entry has."""
    analyst = _require_mapping(_find_analyst(text, name)[1])
    for key in ("password", "password_env"):
        entry = _find_entry(analyst, key)
        if entry is not None:
            start, end = entry[0].start_mark.index, entry[1].end_mark.index
            return f'{text[:start]}password: "{verifier}"{text[end:]}'
    return _add_entry(text, analyst, "password", f'"{verifier}"')


def remove_analyst(text: str, name: str) -> str:
    key, value = _find_analyst(text, name)
    analysts_entry = _find_entry(_require_mapping(compose_yaml(text)), _ANALYSTS_KEY)
    assert analysts_entry is not None
    analysts = _require_mapping(analysts_entry[1])
    if len(analysts.value) == 1:
        return _remove_lines(text, *analysts_entry)
    if not analysts.flow_style:
        return _remove_lines(text, key, value)
    index = [key_node.value for key_node, _ in analysts.value].index(name)
    if index:
        return text[: analysts.value[index - 1][1].end_mark.index] + text[value.end_mark.index :]
    return text[: key.start_mark.index] + text[analysts.value[1][0].start_mark.index :]


# --- where things stand ----------------------------------------------------------------------------------------------


def _require_mapping(node: yaml.Node) -> yaml.MappingNode:
    if not isinstance(node, yaml.MappingNode):
        raise SchemaError("the schema is not laid out as names and values", hint="Add the analyst by hand.")
    return node


def _find_entry(mapping: yaml.MappingNode, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next(((key, value) for key, value in mapping.value if key.value == name), None)


def _find_analyst(text: str, name: str) -> tuple[yaml.Node, yaml.Node]:
    analysts = _find_entry(_require_mapping(compose_yaml(text)), _ANALYSTS_KEY)
    entry = None if analysts is None else _find_entry(_require_mapping(analysts[1]), name)
    if entry is None:
        raise SchemaError(f'the schema has no analyst "{name}"')
    return entry


def _end_index(node: yaml.Node) -> int:
    """Where the text of a node ends; that of a block ends with its last entry, not where the next thing begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end_index(last[1] if isinstance(node, yaml.MappingNode) else last)
    return int(node.end_mark.index)


def _line_end(text: str, index: int) -> int:
    """The end of the line in which a node ended: behind its comment, before the line break."""
    if index and text[index - 1] in "\r\n":  # a block of text ends where the next line begins
        return len(text[:index].rstrip("\r\n"))
    line_end = re.compile(r"[\r\n]|\Z").search(text, index)
    assert line_end is not None
    return line_end.start()


def _line_start(text: str, index: int) -> int:
    return max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1


def _line_break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


# --- changes ---------------------------------------------------------------------------------------------------------


def _add_entry(text: str, mapping: yaml.MappingNode, key: str, value: str) -> str:
    """One more entry at the end of a mapping that has some."""
    end = _end_index(mapping.value[-1][1])
    if mapping.flow_style:
        return f"{text[:end]}, {key}: {value}{text[end:]}"
    end = _line_end(text, end)
    indent = " " * mapping.value[0][0].start_mark.column
    return f"{text[:end]}{_line_break(text)}{indent}{key}: {value}{text[end:]}"


def _add_first_analyst(text: str, root: yaml.MappingNode, entry: str) -> str:
    """The first analyst: before the tables, where a reader of schemas looks for it."""
    if root.flow_style:
        return _add_entry(text, root, _ANALYSTS_KEY, f"{{{entry}}}")
    tables = _find_entry(root, "tables")
    if tables is None:
        raise SchemaError("the schema has no tables", hint="Declare its tables first.")
    start, line = _line_start(text, tables[0].start_mark.index), _line_break(text)
    return f"{text[:start]}{_ANALYSTS_KEY}:{line}{' ' * _INDENT}{entry}{line}{line}{text[start:]}"


def _remove_lines(text: str, key: yaml.Node, value: yaml.Node) -> str:
    start, end = _line_start(text, key.start_mark.index), _line_end(text, _end_index(value))
    return text[:start] + re.sub(r"\A(\r\n|\n|\r)", "", text[end:])


def _quote_key(name: str) -> str:
    """In quotes where YAML, or a reader of it, might see something else than text."""
    return (
        name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{2,}", name) and name.lower() not in _QUOTED_WORDS else f'"{name}"'
    )


_QUOTED_WORDS = {"yes", "off", "null", "true", "false"}
