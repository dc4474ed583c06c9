"""A hash of what a schema means for compiled plans: equal hashes, equal plans."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from dataclasses import Field, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

from dpsql.schema.model import Schema

HASH_VERSION = 1


def hash_schema(schema: Schema) -> str:
    """SHA-256 over engine, privacy and tables; budgets, analysts, the ledger and the schema's own path are left out;
    so are descriptions.

    The order of tables and of unique keys has no meaning; that of columns has (`SELECT *`).
    """
    privacy = schema.privacy
    meaning = {
        "version": HASH_VERSION,
        "engine": schema.engine,
        "neighbors": privacy.neighbors,
        "unit": privacy.unit,
        "query": privacy.query,
        "contributions": privacy.contributions,
        "group_size": privacy.group_size,
        **({} if privacy.units is None else {"units": privacy.units}),
        "tables": {
            table.name: {
                "source": table.source,
                "unit": table.unit,
                "unique": sorted(sorted(key) for key in table.unique),
                "columns": table.columns,
            }
            for table in schema.tables
        },
        "views": {view.name: view.sql for view in schema.views},
    }
    text = json.dumps(_to_json(meaning), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _to_json(value: Any) -> Any:
    """JSON that keeps types apart: the text "1", the integer 1, the number 1.0 and true differ."""
    match value:
        case None | bool() | str():
            return value
        case Enum():
            return _to_json(value.value)
        case int():
            return ["int", str(value)]
        case Fraction():
            return ["fraction", str(value.numerator), str(value.denominator)]
        case float():
            return ["float", value.hex()]
        case Decimal():
            return ["decimal", str(value)]
        case dt.datetime():
            return ["datetime", value.isoformat()]
        case dt.date():
            return ["date", value.isoformat()]
        case tuple() | list():
            return ["list", *(_to_json(item) for item in value)]
        case dict():
            return {name: _to_json(item) for name, item in value.items()}
        case _ if is_dataclass(value):
            field_names = (field.name for field in fields(value) if _is_meant(field, value))
            return [type(value).__name__, {name: _to_json(getattr(value, name)) for name in field_names}]
        case _:
            raise TypeError(f"a schema holds no {type(value).__name__}")


def _is_meant(field: Field[Any], value: Any) -> bool:
    """Fields that came later count where they are given: so schemas of before keep their hash."""
    means = field.metadata.get("means", True)
    return bool(getattr(value, field.name)) if means == "where given" else bool(means)
