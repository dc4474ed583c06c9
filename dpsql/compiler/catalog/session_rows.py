"""The rows of catalogs that depend on the session: who is connected, and the settings it has.

Law: a user never sees another user. Rows that depend on the schema alone are in `pg_catalog.py` and
`information_schema.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dpsql.compiler.catalog.builtin import load_column_names, load_rows, parse_array_text
from dpsql.compiler.catalog.objects import OWN_DATABASE_OID, OWNER_NAME, OWNER_OID, USER_OID
from dpsql.compiler.catalog.pg_catalog import RowValues
from dpsql.compiler.catalog.variables import Identity, Variables, is_variable

# --- roles -----------------------------------------------------------------------------------------------------------


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


def enabled_roles_rows(identity: Identity) -> Iterator[RowValues]:
    yield {"role_name": identity.user}


def pg_stat_activity_rows(identity: Identity) -> Iterator[RowValues]:
    """One's own connection: what others do, and when, is not told."""
    yield {"datid": OWN_DATABASE_OID, "datname": identity.database, "pid": identity.process, "usesysid": USER_OID,
           "usename": identity.user, "application_name": identity.get_variable("application_name") or "",
           "state": "active", "backend_type": "client backend"}  # fmt: skip


# --- settings --------------------------------------------------------------------------------------------------------


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
    "integer_division": OwnSetting(
        "Whether a quotient of whole numbers that can only be 0 or 1 is refused.", ("refuse", "allow")
    ),
    "overshoot": OwnSetting("How likely MIN and MAX may choose a value beyond all rows."),
    "empty_groups": OwnSetting("Whether listed groups that show nothing but noise are left out.", ("hide", "show")),
}


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


SESSION_ROWS: Mapping[tuple[str, str], Callable[[Identity], Iterator[RowValues]]] = {
    ("pg_catalog", "pg_authid"): pg_roles_rows,
    ("pg_catalog", "pg_roles"): pg_roles_rows,
    ("pg_catalog", "pg_settings"): pg_settings_rows,
    ("pg_catalog", "pg_stat_activity"): pg_stat_activity_rows,
    ("pg_catalog", "pg_user"): pg_user_rows,
    ("information_schema", "enabled_roles"): enabled_roles_rows,
}
"""What depends on who asks: no part of what a schema's statements share."""
