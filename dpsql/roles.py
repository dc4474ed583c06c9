"""For whom a connection asks: its own user, or an analyst in whose place the owner lets it ask (`may_act_for`).

Law: who asks for another pays with the other's account, sees the other's budget, and is bound by the other's policy.
Whether a name that one may not act for is an analyst at all is not told. A connection that was opened in a role stays
in it: who opened it for an analyst may let her write its statements, as Superset's SQL Lab does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from dpsql import settings as setting
from dpsql.catalog.variables import Variables
from dpsql.errors import AccessDenied, Error, SchemaError
from dpsql.ledger.base import Account
from dpsql.payers import account_of, payers_of, usual_query
from dpsql.schema.model import Privacy, Schema
from dpsql.state import NOBODY, Values


@dataclass(frozen=True)
class Role:
    """An account with all who pay with it, and the owner's settings, with a default statement that it may ask."""

    account: Account
    payers: tuple[Account, ...]
    privacy: Privacy


class Roles:
    """Those of one connection, which was opened with the settings `given`."""

    def __init__(self, schema: Schema, user: str | None, given: Mapping[str, str]) -> None:
        self._schema, self._user = schema, user
        self._given = {name.lower(): value for name, value in given.items()}
        self._known: dict[str, Role] = {}
        self._values: dict[str, Values] = {}

    @cached_property
    def first(self) -> str:
        """That of a new connection."""
        return self._allowed(self._given.get("role", NOBODY))

    def named(self, name: str) -> str:
        """The role that SET ROLE names, as the schema spells it."""
        role = self._allowed(name)
        if role == self.first or "role" not in self._given:
            return role
        raise AccessDenied(
            f'permission denied to set role "{name}"',
            hint=f'This connection was opened in the role "{self.first}", and stays in it.',
            sqlstate="42501",
        )

    def _allowed(self, name: str) -> str:
        own = self.of(NOBODY).account.name
        if name.lower() in (NOBODY, own.lower()):
            return NOBODY
        analyst = self._schema.analyst(own)
        allowed = analyst.may_act_for if analyst is not None else ()
        for one in allowed:
            if one == name:
                return one
        raise AccessDenied(
            f'permission denied to set role "{name}"',
            hint="The owner allows it in the schema: may_act_for, beside the analyst who connects.",
            sqlstate="42501",
        )

    def of(self, role: str) -> Role:
        if role not in self._known:
            schema, account = self._schema, account_of(self._schema, self._user if role == NOBODY else role)
            privacy = replace(schema.privacy, query=usual_query(schema, account))
            self._known[role] = Role(account, payers_of(schema, account), privacy)
        return self._known[role]

    def privacy(self, role: str) -> Privacy:
        return self.of(role).privacy

    def opened(self, role: str) -> Values:
        """What holds for it where nothing was set: the owner's, the analyst's, and what the connection was given."""
        if role not in self._values:
            values = _with_defaults(self._schema, self.of(role))
            for name, value in self._given.items():
                if name != "role":
                    values = values.set(self.privacy(role), name, value)
            self._values[role] = replace(values, role=role)
        return self._values[role]


def check_settings(schema: Schema) -> None:
    """The settings that the schema gives its analysts are ones that they may set."""
    for analyst in schema.analysts:
        _with_defaults(schema, Roles(schema, analyst.name, {}).of(NOBODY))


def _with_defaults(schema: Schema, role: Role) -> Values:
    values = Values(setting.defaults(role.privacy), Variables())
    analyst = schema.analyst(role.account.name)
    for name, value in analyst.settings if analyst is not None else ():
        try:
            values = values.set(role.privacy, name.lower(), value)
        except Error as error:
            where = f"analysts.{role.account.name}.settings.{name}"
            raise SchemaError(f"{where}: {error.message}", hint=error.hint) from None
    return values
