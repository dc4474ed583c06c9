"""The rows of every relation of the catalogs, for one schema or for one session of it.

Law: from the schema and from who asks, never from the data; and a user never sees another user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from dpsql.catalog import information
from dpsql.catalog import relations as system
from dpsql.catalog.builtin import Attribute, Relation, elements, relation, rows, titles
from dpsql.catalog.functions import pg_proc
from dpsql.catalog.identity import Identity
from dpsql.catalog.objects import OWNER, OWNER_NAME, USER
from dpsql.catalog.own_settings import OWN
from dpsql.catalog.relations import Known
from dpsql.catalog.rows import Row
from dpsql.catalog.variables import Variables, is_variable
from dpsql.schema.model import Schema

FIRST_ROWS = ("pg_am", "pg_authid", "pg_collation", "pg_description", "pg_language", "pg_namespace", "pg_opclass",
              "pg_opfamily", "pg_proc", "pg_range", "pg_tablespace", "pg_type")  # fmt: skip
"""Relations that have rows in every PostgreSQL."""


def schema_rows(schema: Schema, one: Relation) -> list[Row]:
    """What it has for everyone who asks this schema."""
    found: list[Row] = []
    if one.place == "pg_catalog" and one.name in FIRST_ROWS:
        found += [_read(one, row) for row in rows(one.name) if not _is_replaced(schema, one, row)]
    built = (information if one.place == "information_schema" else system).SCHEMA_ROWS.get(one.name)
    known: Iterator[Known] = iter(()) if built is None else built(schema)
    found += [_complete(one, row) for row in known]
    if one.name == "pg_proc":
        found += [_complete(one, row) for row in pg_proc()]
    return found


def _is_replaced(schema: Schema, one: Relation, row: tuple[str | None, ...]) -> bool:
    """The comment on `public`, where the schema has one of its own."""
    public = one.name == "pg_description" and row[:2] == ("2200", str(system.NAMESPACE_OID))
    return public and schema.description is not None


def _read(one: Relation, row: tuple[str | None, ...]) -> Row:
    return tuple(
        _value(attribute, None if cell is None else cell) for attribute, cell in zip(one.attributes, row, strict=True)
    )


def _value(attribute: Attribute, text: str | None) -> object:
    if text is None:
        return None
    kind = attribute.type
    if kind.endswith("[]"):
        element = Attribute("", kind.removesuffix("[]"), False)
        return [_value(element, part) for part in elements(text)]
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
        return 0 if text == "-" else _procedures().get(text.removeprefix("pg_catalog."), 0)
    return text


@cache
def _procedures() -> dict[str, int]:
    return {str(row[1]): int(str(row[0])) for row in rows("pg_proc")}


_NOTHING: Mapping[str, object] = {
    "boolean": False, "integer": 0, "smallint": 0, "bigint": 0, "oid": 0, "regproc": 0, "xid": 0, "real": 0.0,
    "double precision": 0.0,
}  # fmt: skip


def _complete(one: Relation, known: Known) -> Row:
    """The other columns hold nothing: NULL where that may be."""
    return tuple(known[a.name] if a.name in known else _nothing(a) for a in one.attributes)


def _nothing(attribute: Attribute) -> object:
    if not attribute.required:
        return None
    if attribute.type.endswith(("[]", "vector")):
        return []
    return _NOTHING.get(attribute.type, "")


# --- of one session --------------------------------------------------------------------------------------------------


def pg_roles(who: Identity) -> Iterator[Known]:
    """The owner, and who asks: by both names, where one acts for another."""
    yield _role(OWNER, OWNER_NAME, owner=True)
    for oid, name in enumerate(dict.fromkeys((who.user, who.login or who.user)), USER):
        yield _role(oid, name, owner=False)
    for row in rows("pg_authid"):
        yield _role(int(str(row[0])), str(row[1]), owner=False, login=False)


def _role(oid: int, name: str, owner: bool, login: bool = True) -> Known:
    words = ("rolsuper", "rolcreaterole", "rolcreatedb", "rolreplication", "rolbypassrls")
    password = {"rolpassword": "********"}
    return {"oid": oid, "rolname": name, "rolinherit": True, "rolcanlogin": login and not owner, "rolconnlimit": -1,
            **dict.fromkeys(words, owner), **password}  # fmt: skip


def pg_user(who: Identity) -> Iterator[Known]:
    yield {"usename": who.user, "usesysid": USER, "usecreatedb": False, "usesuper": False, "userepl": False,
           "usebypassrls": False, "passwd": "********"}  # fmt: skip


def pg_settings(who: Identity) -> Iterator[Known]:
    """The session's, as SHOW ALL has them, with PostgreSQL's words for those that are its own, and ours for ours."""
    named = titles("pg_settings")
    told = {str(row[0]).lower(): dict(zip(named, row, strict=True)) for row in rows("pg_settings")}
    opened = dict(who.opened)
    for name, setting in who.variables:
        if name in OWN:
            yield _own(name, setting, opened.get(name, setting))
            continue
        texts = told.get(name.lower(), {})
        words = {word: texts.get(word) for word in ("unit", "category", "short_desc", "vartype", "min_val", "max_val")}
        yield {
            **words, "name": name, "setting": setting, "context": texts.get("context") or "user",
            "source": "default" if setting == _default(name, setting) else "session", "pending_restart": False,
            "reset_val": _default(name, setting), "boot_val": _default(name, setting),
            "category": words["category"] or "dpsql", "vartype": words["vartype"] or "string",
            "enumvals": elements(str(texts["enumvals"])) if texts.get("enumvals") else None,
        }  # fmt: skip


def _own(name: str, setting: str, opened: str) -> Known:
    known = OWN[name]
    return {
        "name": name, "setting": setting, "category": "dpsql", "short_desc": known.short, "vartype": known.vartype,
        "enumvals": list(known.choices) or None, "context": "user", "pending_restart": False,
        "source": "default" if setting == opened else "session", "reset_val": opened, "boot_val": opened,
    }  # fmt: skip


def _default(name: str, setting: str) -> str:
    return Variables().show(name) if is_variable(name) else setting


def enabled_roles(who: Identity) -> Iterator[Known]:
    yield {"role_name": who.user}


SESSION_ROWS: Mapping[tuple[str, str], Callable[[Identity], Iterator[Known]]] = {
    ("pg_catalog", "pg_authid"): pg_roles,
    ("pg_catalog", "pg_roles"): pg_roles,
    ("pg_catalog", "pg_settings"): pg_settings,
    ("pg_catalog", "pg_user"): pg_user,
    ("information_schema", "enabled_roles"): enabled_roles,
}
"""What depends on who asks: no part of what a schema's statements share."""


def session_rows(who: Identity, one: Relation) -> list[Row]:
    return [_complete(one, row) for row in SESSION_ROWS[one.place, one.name](who)]


def is_of_session(one: Relation) -> bool:
    return (one.place, one.name) in SESSION_ROWS


def all_rows(schema: Schema, who: Identity, place: str, name: str) -> list[Row]:
    one = relation(place, name)
    if one is None:
        return []
    return session_rows(who, one) if is_of_session(one) else schema_rows(schema, one)
