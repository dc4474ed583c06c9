"""The rows of every relation of the catalogs, for one schema or for one session of it.

Law: from the schema and from who asks, never from the data; and a user never sees another user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from dpsql.compiler.catalog import information_schema, pg_catalog
from dpsql.compiler.catalog.builtin import (
    CATALOG_SCHEMAS,
    Attribute,
    CatalogRelation,
    CatalogRow,
    CatalogTable,
    find_relation,
    load_column_names,
    load_relations,
    load_rows,
    parse_array_text,
)
from dpsql.compiler.catalog.objects import OWNER_NAME, OWNER_OID, USER_OID
from dpsql.compiler.catalog.pg_catalog import RowValues, pg_proc_rows
from dpsql.compiler.catalog.variables import Identity, Variables, is_variable
from dpsql.schema.model import Schema
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, REAL, SMALLINT, TEXT, TIMESTAMPTZ, Type

# dpsql's own settings as pg_settings describes them, beside PostgreSQL's.


@dataclass(frozen=True)
class OwnSetting:
    """`choices` are all the values that it can have; none: it is a number, or `none`."""

    short: str
    choices: tuple[str, ...] = ()
    switch: bool = False

    @property
    def vartype(self) -> str:
        return "bool" if self.switch else "enum" if self.choices else "string"


OWN_SETTINGS = {
    "epsilon": OwnSetting("The epsilon that one statement may lose."),
    "delta": OwnSetting("The delta that one statement may lose."),
    "contributions.rows": OwnSetting("The most rows that one privacy unit contributes to an answer."),
    "contributions.groups": OwnSetting("The most groups that are not listed which one privacy unit contributes to."),
    "noise": OwnSetting("The kind of noise.", ("auto", "laplace", "gaussian")),
    "nonnegative": OwnSetting("Whether counts below zero are shown as zero.", switch=True),
    "derive": OwnSetting("Whether answers are derived from releases that were paid for before.", switch=True),
    "max_error": OwnSetting("The error that an answer may have, from which epsilon follows."),
    "max_relative_error": OwnSetting("The error as a part of an answer, from which epsilon follows."),
    "confidence": OwnSetting("How sure the error that was asked for is kept."),
    "ranges": OwnSetting("Of which columns MIN and MAX are the declared bounds.", ("declared", "all", "release")),
    "mechanism": OwnSetting("How MEDIAN is found.", ("exponential", "smooth", "ptr")),
    "proposal": OwnSetting("The sensitivity that MEDIAN by ptr tests for, in the units of the values."),
}

BUILTIN_RELATIONS = (
    "pg_am",
    "pg_authid",
    "pg_collation",
    "pg_description",
    "pg_language",
    "pg_namespace",
    "pg_opclass",
    "pg_opfamily",
    "pg_proc",
    "pg_range",
    "pg_tablespace",
    "pg_type",
)
"""Relations that have rows in every PostgreSQL."""


def rows_of_schema(schema: Schema, relation: CatalogRelation) -> list[CatalogRow]:
    """What it has for everyone who asks this schema."""
    result: list[CatalogRow] = []
    if relation.place == "pg_catalog" and relation.name in BUILTIN_RELATIONS:
        result += [
            _parse_row(relation, row) for row in load_rows(relation.name) if not _is_replaced(schema, relation, row)
        ]
    built = (information_schema if relation.place == "information_schema" else pg_catalog).SCHEMA_ROWS.get(
        relation.name
    )
    values: Iterator[RowValues] = iter(()) if built is None else built(schema)
    result += [_complete_row(relation, row) for row in values]
    if relation.name == "pg_proc":
        result += [_complete_row(relation, row) for row in pg_proc_rows()]
    return result


def _is_replaced(schema: Schema, relation: CatalogRelation, row: tuple[str | None, ...]) -> bool:
    """The comment on `public`, where the schema has one of its own."""
    public = relation.name == "pg_description" and row[:2] == ("2200", str(pg_catalog.NAMESPACE_OID))
    return public and schema.description is not None


def _parse_row(relation: CatalogRelation, row: tuple[str | None, ...]) -> CatalogRow:
    return tuple(
        _parse_value(attribute, None if cell is None else cell)
        for attribute, cell in zip(relation.attributes, row, strict=True)
    )


def _parse_value(attribute: Attribute, text: str | None) -> object:
    if text is None:
        return None
    kind = attribute.type
    if kind.endswith("[]"):
        element = Attribute("", kind.removesuffix("[]"), False)
        return [_parse_value(element, part) for part in parse_array_text(text)]
    if kind in ("int2vector", "oidvector"):
        return [int(part) for part in text.split()]
    if kind == "boolean":
        return text == "t"
    if kind in ("integer", "smallint", "bigint", "oid"):
        return int(text)
    if kind in ("real", "double precision"):
        return float(text)
    if kind == "aclitem":  # the data is that of a PostgreSQL whose owner has another name
        return re.sub(r"\bpostgres\b", OWNER_NAME, text)
    if kind == "regproc":
        return 0 if text == "-" else _procedure_oids().get(text.removeprefix("pg_catalog."), 0)
    return text


@cache
def _procedure_oids() -> dict[str, int]:
    return {str(row[1]): int(str(row[0])) for row in load_rows("pg_proc")}


_DEFAULT_VALUES: Mapping[str, object] = {
    "boolean": False, "integer": 0, "smallint": 0, "bigint": 0, "oid": 0, "regproc": 0, "xid": 0, "real": 0.0,
    "double precision": 0.0,
}  # fmt: skip


def _complete_row(relation: CatalogRelation, values: RowValues) -> CatalogRow:
    """The other columns hold nothing: NULL where that may be."""
    return tuple(values[a.name] if a.name in values else _default_value(a) for a in relation.attributes)


def _default_value(attribute: Attribute) -> object:
    if not attribute.required:
        return None
    if attribute.type.endswith(("[]", "vector")):
        return []
    return _DEFAULT_VALUES.get(attribute.type, "")


# --- of one session --------------------------------------------------------------------------------------------------


def pg_roles_rows(identity: Identity) -> Iterator[RowValues]:
    """The owner, and who asks: by both names, where one acts for another."""
    yield _role_row(OWNER_OID, OWNER_NAME, owner=True)
    for oid, name in enumerate(dict.fromkeys((identity.user, identity.login or identity.user)), USER_OID):
        yield _role_row(oid, name, owner=False)
    for row in load_rows("pg_authid"):
        yield _role_row(int(str(row[0])), str(row[1]), owner=False, login=False)


def _role_row(oid: int, name: str, owner: bool, login: bool = True) -> RowValues:
    words = ("rolsuper", "rolcreaterole", "rolcreatedb", "rolreplication", "rolbypassrls")
    password = {"rolpassword": "********"}
    return {"oid": oid, "rolname": name, "rolinherit": True, "rolcanlogin": login and not owner, "rolconnlimit": -1,
            **dict.fromkeys(words, owner), **password}  # fmt: skip


def pg_user_rows(identity: Identity) -> Iterator[RowValues]:
    yield {"usename": identity.user, "usesysid": USER_OID, "usecreatedb": False, "usesuper": False, "userepl": False,
           "usebypassrls": False, "passwd": "********"}  # fmt: skip


def pg_settings_rows(identity: Identity) -> Iterator[RowValues]:
    """The session's, as SHOW ALL has them, with PostgreSQL's words for those that are its own, and ours for ours."""
    named = load_column_names("pg_settings")
    described = {str(row[0]).lower(): dict(zip(named, row, strict=True)) for row in load_rows("pg_settings")}
    opened = dict(identity.opened)
    for name, setting in identity.variables:
        if name in OWN_SETTINGS:
            yield _own_setting_row(name, setting, opened.get(name, setting))
            continue
        texts = described.get(name.lower(), {})
        words = {word: texts.get(word) for word in ("unit", "category", "short_desc", "vartype", "min_val", "max_val")}
        yield {
            **words, "name": name, "setting": setting, "context": texts.get("context") or "user",
            "source": "default" if setting == _default_setting(name, setting) else "session", "pending_restart": False,
            "reset_val": _default_setting(name, setting), "boot_val": _default_setting(name, setting),
            "category": words["category"] or "dpsql", "vartype": words["vartype"] or "string",
            "enumvals": parse_array_text(str(texts["enumvals"])) if texts.get("enumvals") else None,
        }  # fmt: skip


def _own_setting_row(name: str, setting: str, opened: str) -> RowValues:
    own_setting = OWN_SETTINGS[name]
    return {
        "name": name,
        "setting": setting,
        "category": "dpsql",
        "short_desc": own_setting.short,
        "vartype": own_setting.vartype,
        "enumvals": list(own_setting.choices) or None,
        "context": "user",
        "pending_restart": False,
        "source": "default" if setting == opened else "session",
        "reset_val": opened,
        "boot_val": opened,
    }


def _default_setting(name: str, setting: str) -> str:
    return Variables().show(name) if is_variable(name) else setting


def enabled_roles_rows(identity: Identity) -> Iterator[RowValues]:
    yield {"role_name": identity.user}


SESSION_ROWS: Mapping[tuple[str, str], Callable[[Identity], Iterator[RowValues]]] = {
    ("pg_catalog", "pg_authid"): pg_roles_rows,
    ("pg_catalog", "pg_roles"): pg_roles_rows,
    ("pg_catalog", "pg_settings"): pg_settings_rows,
    ("pg_catalog", "pg_user"): pg_user_rows,
    ("information_schema", "enabled_roles"): enabled_roles_rows,
}
"""What depends on who asks: no part of what a schema's statements share."""


def rows_of_session(identity: Identity, relation: CatalogRelation) -> list[CatalogRow]:
    return [_complete_row(relation, row) for row in SESSION_ROWS[relation.place, relation.name](identity)]


def is_session_relation(relation: CatalogRelation) -> bool:
    return (relation.place, relation.name) in SESSION_ROWS


def rows_of_relation(schema: Schema, identity: Identity, namespace: str, name: str) -> list[CatalogRow]:
    catalog_relation = find_relation(namespace, name)
    if catalog_relation is None:
        return []
    return (
        rows_of_session(identity, catalog_relation)
        if is_session_relation(catalog_relation)
        else rows_of_schema(schema, catalog_relation)
    )


# The catalog's table of a name.

_COLUMN_TYPES = {
    "boolean": BOOLEAN, "smallint": SMALLINT, "integer": INTEGER, "bigint": BIGINT, "oid": BIGINT, "xid": BIGINT,
    "regproc": BIGINT, "real": REAL, "double precision": DOUBLE, "timestamp with time zone": TIMESTAMPTZ,
    "cardinal_number": INTEGER, "time_stamp": TIMESTAMPTZ,
}  # fmt: skip


def is_catalog_schema(schema_name: str) -> bool:
    return schema_name.lower() in CATALOG_SCHEMAS


def catalog_schema_of(schema: Schema, schema_name: str, table_name: str) -> str | None:
    """The catalog's schema in which a table is looked up; pg_catalog's need no qualifier."""
    if schema_name:
        return schema_name.lower() if is_catalog_schema(schema_name) else None
    is_declared = any(declared.name.lower() == table_name.lower() for declared in schema.relations)
    return "pg_catalog" if not is_declared and find_relation("pg_catalog", table_name.lower()) is not None else None


def catalog_table_names(schema_name: str) -> tuple[str, ...]:
    return tuple(name for namespace, name in load_relations() if namespace == schema_name.lower())


def find_catalog_table(schema: Schema, identity: Identity, schema_name: str, table_name: str) -> CatalogTable | None:
    """The rows of a catalog's table; lists in it as PostgreSQL writes them."""
    namespace = catalog_schema_of(schema, schema_name, table_name)
    catalog_relation = None if namespace is None else find_relation(namespace, table_name.lower())
    if catalog_relation is None:
        return None
    rows = rows_of_relation(schema, identity, catalog_relation.place, catalog_relation.name)
    return CatalogTable(
        _column_types(catalog_relation), tuple(tuple(_list_to_text(value) for value in row) for row in rows)
    )


def _column_types(one: CatalogRelation) -> tuple[tuple[str, Type], ...]:
    words = [(one.name, one.type.removeprefix("information_schema.")) for one in one.attributes]
    return tuple((name, _COLUMN_TYPES.get(word, TEXT)) for name, word in words)


def _list_to_text(value: object) -> object:
    return "{" + ",".join(str(part) for part in value) + "}" if isinstance(value, list) else value
