"""The settings of a connection, and how transactions keep or drop them, as PostgreSQL does.

Law: a transaction never gives back a charge; only settings are undone. RESET and DISCARD ALL go back to what the
connection was opened with: who opened it with an epsilon below the schema's is never charged the schema's unasked.
A role is a setting too, and brings its own defaults along; what was set before stays set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

from dpsql.base.time_zones import UTC, TimeZone, load_time_zone
from dpsql.compiler import settings as setting
from dpsql.compiler.catalog.variables import DEFAULT_SCHEMA, Variables, is_variable
from dpsql.compiler.parse.commands import (
    DiscardCommand,
    NoOpCommand,
    ResetCommand,
    SetCommand,
    TransactionCommand,
    TransactionModesCommand,
    TransactionStep,
)
from dpsql.compiler.settings import SessionSettings
from dpsql.errors import ProgrammingError
from dpsql.schema.model import Privacy

SettingsCommand = (
    SetCommand | ResetCommand | TransactionCommand | TransactionModesCommand | DiscardCommand | NoOpCommand
)
"""Commands that change what is set, and ask nothing."""

NO_ROLE = "none"
"""The role of who asks for herself."""


@dataclass(frozen=True)
class SettingValues:
    """dpsql's settings and PostgreSQL's."""

    settings: SessionSettings
    variables: Variables = field(default_factory=Variables)
    role: str = NO_ROLE

    def set_value(self, privacy: Privacy, name: str, value: str) -> SettingValues:
        if is_variable(name):
            return replace(self, variables=self.variables.set(name, value))
        return replace(self, settings=setting.change_setting(self.settings, privacy, name, value))

    def reset_value(self, privacy: Privacy, name: str, opened: SettingValues) -> SettingValues:
        """Set back to the value with which the connection was opened."""
        if is_variable(name):
            return replace(self, variables=self.variables.reset(name, opened.variables))
        return replace(self, settings=setting.reset_setting(self.settings, privacy, name, opened.settings))

    def show_value(self, name: str) -> str:
        if name == "role":
            return self.role
        if is_variable(name):
            return self.variables.show(name)
        return setting.show_setting(self.settings, name)

    @cached_property
    def time_zone(self) -> TimeZone:
        """The session's, with its rules."""
        zone = self.variables.zone_name
        return UTC if zone.is_utc else load_time_zone(zone.shown, zone.engine_name, zone.minutes)

    @cached_property
    def own_items(self) -> tuple[tuple[str, str], ...]:
        """dpsql's own settings, in their order."""
        return tuple((name, setting.show_setting(self.settings, name)) for name in setting.SETTING_NAMES)

    def items(self) -> list[tuple[str, str]]:
        return [*self.own_items, *self.variables.items()]


@dataclass(frozen=True)
class Savepoint:
    name: str | None  # None: where the transaction began
    now: SettingValues
    kept: SettingValues


class RoleDirectory(Protocol):
    """For whom a connection may ask, and with which settings each of them begins."""

    @property
    def initial_role(self) -> str: ...
    def resolve_role(self, name: str) -> str: ...
    def privacy_of(self, role: str) -> Privacy: ...
    def initial_values(self, role: str) -> SettingValues: ...


@dataclass(frozen=True)
class SessionState:
    """`now` is what holds; `kept` what will hold after COMMIT, which is `now` without SET LOCAL."""

    now: SettingValues
    kept: SettingValues
    roles: RoleDirectory = field(compare=False)
    points: tuple[Savepoint, ...] = ()  # the first is BEGIN; none: no transaction

    def apply_command(self, command: SettingsCommand) -> tuple[SessionState, str]:
        """The state that the command leaves, and the word that tells of it."""
        match command:
            case SetCommand(name, value, local):
                return self.set_value(name, value, local), "SET"
            case ResetCommand(name):
                return self.reset_value(name), "RESET"
            case TransactionCommand(step, savepoint, modes):
                return self.apply_step(step, savepoint).with_modes(modes), step.value.removesuffix(" TO")
            case TransactionModesCommand(modes, session):
                return self.with_modes(modes, session), "SET"
            case DiscardCommand():
                return initial_state(self.roles), "DISCARD ALL"
            case NoOpCommand(tag):
                return self, tag

    def for_statement(self, overrides: Mapping[str, str]) -> SessionState:
        """With what one statement brings of its own."""
        now = self.now
        for name, value in setting.statement_overrides(overrides).items():
            now = now.set_value(self.roles.privacy_of(now.role), name, value)
        return replace(self, now=now)

    def set_value(self, name: str, value: str | None, local: bool = False) -> SessionState:
        """None: as the connection was opened."""
        if not local:
            return replace(
                self, now=self._change_value(self.now, name, value), kept=self._change_value(self.kept, name, value)
            )
        if not self.points:
            raise ProgrammingError(
                "SET LOCAL holds until the transaction ends, and none was begun",
                hint=f"Write SET {name} = …, or BEGIN first.",
                sqlstate="25P01",
            )
        return replace(self, now=self._change_value(self.now, name, value))

    def _change_value(self, values: SettingValues, name: str, value: str | None) -> SettingValues:
        if name == "role":
            return self._switch_role(
                values, self.roles.initial_role if value is None else self.roles.resolve_role(value)
            )
        privacy, opened = self.roles.privacy_of(values.role), self.roles.initial_values(values.role)
        return (
            values.set_value(privacy, name, value) if value is not None else values.reset_value(privacy, name, opened)
        )

    def _switch_role(self, values: SettingValues, role: str) -> SettingValues:
        """What was set before holds for the other role too; all else is as that one begins."""
        before, after, privacy = (
            self.roles.initial_values(values.role),
            self.roles.initial_values(role),
            self.roles.privacy_of(role),
        )
        changed = [name for name in setting.SETTING_NAMES if values.show_value(name) != before.show_value(name)]
        for name in sorted(
            changed, key=lambda name: values.show_value(name) != "none"
        ):  # of two aims, the one that is set
            after = after.set_value(privacy, name, values.show_value(name))
        return replace(after, variables=values.variables)

    def reset_value(self, name: str | None) -> SessionState:
        """None: all of them, but for the role, as in PostgreSQL."""
        if name is not None:
            return self.set_value(name, None)
        return replace(
            self, now=self.roles.initial_values(self.now.role), kept=self.roles.initial_values(self.kept.role)
        )

    def apply_step(self, step: TransactionStep, savepoint: str | None) -> SessionState:
        match step:
            case TransactionStep.BEGIN | TransactionStep.START:
                return self if self.points else replace(self, points=(Savepoint(None, self.now, self.kept),))
            case TransactionStep.COMMIT:
                return replace(self, now=self.kept, points=())
            case TransactionStep.ROLLBACK:
                if not self.points:
                    return self
                return replace(self, now=self.points[0].kept, kept=self.points[0].kept, points=())
            case TransactionStep.SAVEPOINT:
                self._require_transaction(step)
                return replace(self, points=(*self.points, Savepoint(savepoint, self.now, self.kept)))
            case TransactionStep.RELEASE:
                return replace(self, points=self.points[: self._find_savepoint(step, savepoint)])
            case TransactionStep.ROLLBACK_TO:
                index = self._find_savepoint(step, savepoint)
                point = self.points[index]
                return replace(self, now=point.now, kept=point.kept, points=self.points[: index + 1])

    def with_modes(self, modes: tuple[tuple[str, str], ...], session: bool = False) -> SessionState:
        """Set the modes of this transaction, if there is one; with `session`, those of the transactions that follow."""
        state = self
        for name, value in modes if session or self.points else ():
            state = state.set_value(f"default_{name}" if session else name, value, local=not session)
        return state

    def _find_savepoint(self, step: TransactionStep, name: str | None) -> int:
        """The last savepoint of that name."""
        self._require_transaction(step)
        indexes = [index for index, point in enumerate(self.points) if point.name == name and index > 0]
        if not indexes:
            raise ProgrammingError(f'there is no savepoint "{name}"', sqlstate="3B001")
        return indexes[-1]

    def _require_transaction(self, step: TransactionStep) -> None:
        if not self.points:
            raise ProgrammingError(f"{step.value} is for transactions, and none was begun", hint="BEGIN first.",
                                   sqlstate="25P01")  # fmt: skip


def initial_state(roles: RoleDirectory) -> SessionState:
    """The state of a new connection."""
    values = roles.initial_values(roles.initial_role)
    return SessionState(values, values, roles)


def strip_schema(table: str) -> str:
    """The name without its schema: DESCRIBE public.visits means visits."""
    return table.removeprefix(f"{DEFAULT_SCHEMA}.").removeprefix("main.")
