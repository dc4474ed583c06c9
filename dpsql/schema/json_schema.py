"""The JSON Schema of the format, for editors: `python -m dpsql.schema.json_schema` writes dpsql.schema.json.

It is made from the table of keys. It says no more than a single key can: what keys must be to one another
(units, paths, types) is the loader's to say.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, assert_never

from dpsql.schema import keys
from dpsql.schema.keys import Either, Flag, Integer, Key, ListOf, MapOf, Number, OneOf, Record, Text, ValueShape
from dpsql.schema.literals import NUMBER_PATTERN
from dpsql.types import Kind

SCHEMA_FILE = Path(__file__).with_name("dpsql.schema.json")

_SCALAR = {"type": ["string", "number", "boolean"]}
_NUMBER_TEXT = {"type": "string", "pattern": f"^(?=[+]?\\.?[0-9]){NUMBER_PATTERN}$"}
"""Numbers may be text: YAML 1.1 reads 1e-7 as such, and quotes do no harm. None of ours is negative."""


def build_json_schema() -> dict[str, Any]:
    root = _shape_to_json(keys.SCHEMA)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "dpsql schema",
        "description": "A dataset behind dpsql: its tables, whom to protect, and the budgets.",
        **root,
    }


def _shape_to_json(shape: ValueShape) -> dict[str, Any]:
    match shape:
        case Record():
            return _record_to_json(shape)
        case MapOf():
            return {
                "type": "object",
                "propertyNames": {"pattern": f"^{shape.pattern}$"},
                "additionalProperties": _shape_to_json(shape.item),
                "minProperties": 1,
                **({} if shape.most is None else {"maxProperties": shape.most}),
            }
        case ListOf():
            max_items = {} if shape.most is None else {"maxItems": shape.most}
            return {"type": "array", "items": _shape_to_json(shape.item), "minItems": shape.least, **max_items}
        case Either():
            return {"anyOf": [_shape_to_json(option) for option in shape.shapes]}
        case Text(pattern=None):
            return dict(_SCALAR)
        case Text():
            # Only strings are held against the pattern; JSON Schema ignores it for the rest.
            return {**_SCALAR, "pattern": f"^{shape.pattern}$"}
        case Flag():
            return {"type": "boolean"}
        case OneOf():
            return {"enum": [int(option) if option.isdigit() else option for option in shape.options]}
        case Number():
            return {"anyOf": [_number_to_json(shape), _NUMBER_TEXT]}
        case Integer():
            return {"type": "integer", "minimum": shape.at_least, "maximum": shape.at_most}
        case _:
            assert_never(shape)


def _record_to_json(shape: Record) -> dict[str, Any]:
    required = [key.name for key in shape.keys if key.required]
    return {
        "type": "object",
        "properties": {key.name: _key_to_json(key) for key in shape.keys},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _key_to_json(key: Key) -> dict[str, Any]:
    doc = key.doc if key.default is None else f"{key.doc} Default: {key.default}."
    shape = _shape_to_json(key.shape)
    if key.name == "type":
        shape["examples"] = [kind.value if kind is not Kind.DECIMAL else "decimal(10,2)" for kind in Kind]
    return {"description": doc, **shape}


def _number_to_json(shape: Number) -> dict[str, Any]:
    limits = {
        "exclusiveMinimum": shape.above,
        "minimum": shape.at_least,
        "exclusiveMaximum": shape.below,
        "maximum": shape.at_most,
    }
    return {"type": "number", **{name: int(limit) for name, limit in limits.items() if limit is not None}}


def render_json_schema() -> str:
    return json.dumps(build_json_schema(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    SCHEMA_FILE.write_text(render_json_schema(), encoding="utf-8")
    sys.stdout.write(f"wrote {SCHEMA_FILE.name}\n")


if __name__ == "__main__":
    main()
