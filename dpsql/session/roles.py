"""The role of a connection: its own user, or an analyst for whom the owner lets it act (`may_act_for`).

Law: who asks for another pays with the other's account, sees the other's budget, and is bound by the other's policy.
Whether a name that one may not act for is an analyst at all is not told. A connection that was opened in a role stays
in it: who opened it for an analyst may let her write its statements, as Superset's SQL Lab does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from dpsql.compiler import settings as setting
from dpsql.compiler.catalog.variables import Variables
from dpsql.compiler.functions.time_zones import has_posix_summer_time
from dpsql.errors import AccessDenied, Error, SchemaError
from dpsql.ledger.base import Account
from dpsql.schema.model import Privacy, Schema
from dpsql.session.dataset.accounts import account_of, default_query_budget, paying_accounts
from dpsql.session.transaction import NO_ROLE, SettingValues


@dataclass(frozen=True)
class Role:
    """An account with all who pay with it, and the owner's settings, with a default statement that it may ask."""

    account: Account
    payers: tuple[Account, ...]
    privacy: Privacy


class ConnectionRoles:
    """The roles of one connection, which was opened with `settings`."""

    def __init__(self, schema: Schema, user: str | None, settings: Mapping[str, str]) -> None:
        self._schema, self._user = schema, user
        self._opening_settings = {name.lower(): value for name, value in settings.items()}
        self._roles: dict[str, Role] = {}
        self._values: dict[str, SettingValues] = {}

    @cached_property
    def initial_role(self) -> str:
        """The role of a new connection."""
        return self._require_allowed_role(self._opening_settings.get("role", NO_ROLE))

    def resolve_role(self, name: str) -> str:
        """The role that SET ROLE names, as the schema spells it."""
        role = self._require_allowed_role(name)
        if role == self.initial_role or "role" not in self._opening_settings:
            return role
        raise AccessDenied(
            f'permission denied to set role "{name}"',
            hint=f'This connection was opened in the role "{self.initial_role}", and stays in it.',
            sqlstate="42501",
        )

    def _require_allowed_role(self, name: str) -> str:
        own = self.get_role(NO_ROLE).account.name
        if name.lower() in (NO_ROLE, own.lower()):
            return NO_ROLE
        analyst = self._schema.analyst(own)
        allowed = analyst.may_act_for if analyst is not None else ()
        for analyst_name in allowed:
            if analyst_name == name:
                return analyst_name
        raise AccessDenied(
            f'permission denied to set role "{name}"',
            hint="The owner allows it in the schema: may_act_for, beside the analyst who connects.",
            sqlstate="42501",
        )

    def get_role(self, role: str) -> Role:
        if role not in self._roles:
            schema, account = self._schema, account_of(self._schema, self._user if role == NO_ROLE else role)
            privacy = replace(schema.privacy, query=default_query_budget(schema, account))
            self._roles[role] = Role(account, paying_accounts(schema, account), privacy)
        return self._roles[role]

    def privacy_of(self, role: str) -> Privacy:
        return self.get_role(role).privacy

    def initial_values(self, role: str) -> SettingValues:
        """What holds for it where nothing was set: the owner's, the analyst's, and what the connection was given."""
        if role not in self._values:
            values = _default_values(self._schema, self.get_role(role))
            for name, value in self._opening_settings.items():
                # A client's machine may have a zone that PostgreSQL knows, and no engine: its clocks are UTC's then.
                if name != "role" and not (name == "timezone" and has_posix_summer_time(value)):
                    values = values.set_value(self.privacy_of(role), name, value)
            self._values[role] = replace(values, role=role)
        return self._values[role]


def check_settings(schema: Schema) -> None:
    """The settings that the schema gives its analysts are ones that they may set."""
    for analyst in schema.analysts:
        _default_values(schema, ConnectionRoles(schema, analyst.name, {}).get_role(NO_ROLE))


def _default_values(schema: Schema, role: Role) -> SettingValues:
    values = SettingValues(setting.default_settings(role.privacy), Variables())
    analyst = schema.analyst(role.account.name)
    for name, value in analyst.settings if analyst is not None else ():
        try:
            values = values.set_value(role.privacy, name.lower(), value)
        except Error as error:
            where = f"analysts.{role.account.name}.settings.{name}"
            raise SchemaError(f"{where}: {error.message}", hint=error.hint) from None
    return values
