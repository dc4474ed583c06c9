"""A schema that is a Python dict, as the tree that a YAML file is read to.

Law: a value becomes the text that its owner would write in the file, so both are checked and read in the same way. What
has no such text is refused here, with the key that it stands under.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from dpsql.errors import SchemaError
from dpsql.schema.build import build_schema
from dpsql.schema.document import NodeRef, MappingNode, ListNode, TextNode, DocumentNode, make_schema_error, printable_text
from dpsql.schema.model import Schema
from dpsql.schema.places import database_path

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
        raise make_schema_error(DICT_NAME, None, "the key ledger is missing: a dict has no file beside which one is kept",
                        'Write for example "ledger": "sqlite:///clinic.ledger".')  # fmt: skip
    base = Path(os.path.abspath(folder))
    schema = build_schema(root, base / "schema.yaml", env)
    file = database_path(schema.ledger)
    return schema if file is None else replace(schema, path=base / f"{file.stem}.yaml")


def _node_from_value(value: object, file: str, key: str = "", depth: int = 0) -> DocumentNode:
    if depth > MAX_DICT_DEPTH:
        raise _invalid_value_error(file, key, f"is nested deeper than {MAX_DICT_DEPTH} levels")
    match value:
        case Mapping():
            return MappingNode(0, tuple(_entry_from_value(name, inner, file, key, depth) for name, inner in value.items()))
        case list() | tuple():
            return ListNode(0, tuple(_node_from_value(item, file, f"{key}[{at}]", depth + 1) for at, item in enumerate(value)))
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
