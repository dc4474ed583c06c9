"""Changing a schema's text where it stands: one analyst more, less, or with another password.

Law: comments, layout and all other entries stay as they were written. What comes out is loaded again by the caller, who
compares it with what was meant: so a layout that is not understood here is refused, never damaged.
"""

from __future__ import annotations

import re

import yaml

from dpsql.errors import SchemaError
from dpsql.schema.load import compose

_ANALYSTS = "analysts"
_STEP = 2


def add_analyst(text: str, name: str, entry: str) -> str:
    """`entry` is the analyst's declaration as one line of YAML, such as {budget: {epsilon: 1, delta: 0}}."""
    root = _mapping(compose(text))
    found = _find(root, _ANALYSTS)
    if found is None:
        return _add_first(text, root, f"{_key(name)}: {entry}")
    return _add(text, _mapping(found[1]), _key(name), entry)


def set_password(text: str, name: str, verifier: str) -> str:
    """The analyst with this password, instead of any other that the entry has."""
    analyst = _mapping(_analyst(text, name)[1])
    for key in ("password", "password_env"):
        found = _find(analyst, key)
        if found is not None:
            start, end = found[0].start_mark.index, found[1].end_mark.index
            return f'{text[:start]}password: "{verifier}"{text[end:]}'
    return _add(text, analyst, "password", f'"{verifier}"')


def remove_analyst(text: str, name: str) -> str:
    key, value = _analyst(text, name)
    found = _find(_mapping(compose(text)), _ANALYSTS)
    assert found is not None
    analysts = _mapping(found[1])
    if len(analysts.value) == 1:
        return _without_lines(text, *found)
    if not analysts.flow_style:
        return _without_lines(text, key, value)
    place = [one.value for one, _ in analysts.value].index(name)
    if place:
        return text[: analysts.value[place - 1][1].end_mark.index] + text[value.end_mark.index :]
    return text[: key.start_mark.index] + text[analysts.value[1][0].start_mark.index :]


# --- where things stand ----------------------------------------------------------------------------------------------


def _mapping(node: yaml.Node) -> yaml.MappingNode:
    if not isinstance(node, yaml.MappingNode):
        raise SchemaError("the schema is not laid out as names and values", hint="Add the analyst by hand.")
    return node


def _find(mapping: yaml.MappingNode, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next(((key, value) for key, value in mapping.value if key.value == name), None)


def _analyst(text: str, name: str) -> tuple[yaml.Node, yaml.Node]:
    analysts = _find(_mapping(compose(text)), _ANALYSTS)
    found = None if analysts is None else _find(_mapping(analysts[1]), name)
    if found is None:
        raise SchemaError(f'the schema has no analyst "{name}"')
    return found


def _last(node: yaml.Node) -> int:
    """Where the text of a node ends; that of a block ends with its last entry, not where the next thing begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last(last[1] if isinstance(node, yaml.MappingNode) else last)
    return int(node.end_mark.index)


def _line_end(text: str, index: int) -> int:
    """The end of the line in which a node ended: behind its comment, before the line break."""
    if index and text[index - 1] in "\r\n":  # a block of text ends where the next line begins
        return len(text[:index].rstrip("\r\n"))
    found = re.compile(r"[\r\n]|\Z").search(text, index)
    assert found is not None
    return found.start()


def _line_start(text: str, index: int) -> int:
    return max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1


def _break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


# --- changes ---------------------------------------------------------------------------------------------------------


def _add(text: str, mapping: yaml.MappingNode, key: str, value: str) -> str:
    """One more entry at the end of a mapping that has some."""
    end = _last(mapping.value[-1][1])
    if mapping.flow_style:
        return f"{text[:end]}, {key}: {value}{text[end:]}"
    end = _line_end(text, end)
    indent = " " * mapping.value[0][0].start_mark.column
    return f"{text[:end]}{_break(text)}{indent}{key}: {value}{text[end:]}"


def _add_first(text: str, root: yaml.MappingNode, entry: str) -> str:
    """The first analyst: before the tables, where a reader of schemas looks for it."""
    if root.flow_style:
        return _add(text, root, _ANALYSTS, f"{{{entry}}}")
    tables = _find(root, "tables")
    if tables is None:
        raise SchemaError("the schema has no tables", hint="Declare its tables first.")
    start, line = _line_start(text, tables[0].start_mark.index), _break(text)
    return f"{text[:start]}{_ANALYSTS}:{line}{' ' * _STEP}{entry}{line}{line}{text[start:]}"


def _without_lines(text: str, key: yaml.Node, value: yaml.Node) -> str:
    start, end = _line_start(text, key.start_mark.index), _line_end(text, _last(value))
    return text[:start] + re.sub(r"\A(\r\n|\n|\r)", "", text[end:])


def _key(name: str) -> str:
    """In quotes where YAML, or a reader of it, might see something else than text."""
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{2,}", name) and name.lower() not in _WORDS else f'"{name}"'


_WORDS = {"yes", "off", "null", "true", "false"}
