"""What a connection has set, and how transactions keep or drop it, as PostgreSQL does.

Law: a transaction never gives back a charge; only settings are undone. RESET and DISCARD ALL go back to what the
connection was opened with: who opened it with an epsilon below the schema's is never charged the schema's unasked.
A role is a setting too, and brings its own defaults along; what was set before stays set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

from dpsql import settings as setting
from dpsql.catalog.identity import SCHEMA
from dpsql.catalog.variables import Variables, is_variable
from dpsql.errors import ProgrammingError
from dpsql.schema.model import Privacy
from dpsql.settings import SessionSettings
from dpsql.sql.commands import (
    DiscardCommand,
    ModesCommand,
    NothingCommand,
    ResetCommand,
    SetCommand,
    Step,
    TransactionCommand,
)

Settling = SetCommand | ResetCommand | TransactionCommand | ModesCommand | DiscardCommand | NothingCommand
"""Commands that change what is set, and ask nothing."""

NOBODY = "none"
"""The role of who asks for herself."""


@dataclass(frozen=True)
class Values:
    """dpsql's settings and PostgreSQL's."""

    settings: SessionSettings
    variables: Variables = field(default_factory=Variables)
    role: str = NOBODY

    def set(self, privacy: Privacy, name: str, value: str) -> Values:
        if is_variable(name):
            return replace(self, variables=self.variables.set(name, value))
        return replace(self, settings=setting.change(self.settings, privacy, name, value))

    def reset(self, privacy: Privacy, name: str, opened: Values) -> Values:
        """As `opened` has it."""
        if is_variable(name):
            return replace(self, variables=self.variables.reset(name, opened.variables))
        return replace(self, settings=setting.reset(self.settings, privacy, name, opened.settings))

    def show(self, name: str) -> str:
        if name == "role":
            return self.role
        if is_variable(name):
            return self.variables.show(name)
        return setting.show(self.settings, name)

    @cached_property
    def own(self) -> tuple[tuple[str, str], ...]:
        """dpsql's, in their order."""
        return tuple((name, setting.show(self.settings, name)) for name in setting.NAMES)

    def items(self) -> list[tuple[str, str]]:
        return [*self.own, *self.variables.items()]


@dataclass(frozen=True)
class Savepoint:
    name: str | None  # None: where the transaction began
    now: Values
    kept: Values


class Known(Protocol):
    """For whom a connection may ask, and with which settings each of them begins."""

    @property
    def first(self) -> str: ...
    def named(self, name: str) -> str: ...
    def privacy(self, role: str) -> Privacy: ...
    def opened(self, role: str) -> Values: ...


@dataclass(frozen=True)
class State:
    """`now` is what holds; `kept` what will hold after COMMIT, which is `now` without SET LOCAL."""

    now: Values
    kept: Values
    roles: Known = field(compare=False)
    points: tuple[Savepoint, ...] = ()  # the first is BEGIN; none: no transaction

    def after(self, command: Settling) -> tuple[State, str]:
        """The state that the command leaves, and the word that tells of it."""
        match command:
            case SetCommand(name, value, local):
                return self.set(name, value, local), "SET"
            case ResetCommand(name):
                return self.reset(name), "RESET"
            case TransactionCommand(step, savepoint, modes):
                return self.step(step, savepoint).with_modes(modes), step.value.removesuffix(" TO")
            case ModesCommand(modes, session):
                return self.with_modes(modes, session), "SET"
            case DiscardCommand():
                return new_state(self.roles), "DISCARD ALL"
            case NothingCommand(tag):
                return self, tag

    def for_one(self, given: Mapping[str, str]) -> State:
        """With what one statement brings of its own."""
        now = self.now
        for name, value in setting.for_one(given).items():
            now = now.set(self.roles.privacy(now.role), name, value)
        return replace(self, now=now)

    def set(self, name: str, value: str | None, local: bool = False) -> State:
        """None: as the connection was opened."""
        if not local:
            return replace(self, now=self._with(self.now, name, value), kept=self._with(self.kept, name, value))
        if not self.points:
            raise ProgrammingError(
                "SET LOCAL holds until the transaction ends, and none was begun",
                hint=f"Write SET {name} = …, or BEGIN first.",
                sqlstate="25P01",
            )
        return replace(self, now=self._with(self.now, name, value))

    def _with(self, values: Values, name: str, value: str | None) -> Values:
        if name == "role":
            return self._acting(values, self.roles.first if value is None else self.roles.named(value))
        privacy, opened = self.roles.privacy(values.role), self.roles.opened(values.role)
        return values.set(privacy, name, value) if value is not None else values.reset(privacy, name, opened)

    def _acting(self, values: Values, role: str) -> Values:
        """What was set before holds for the other role too; all else is as that one begins."""
        before, after, privacy = self.roles.opened(values.role), self.roles.opened(role), self.roles.privacy(role)
        changed = [name for name in setting.NAMES if values.show(name) != before.show(name)]
        for name in sorted(changed, key=lambda name: values.show(name) != "none"):  # of two aims, the one that is set
            after = after.set(privacy, name, values.show(name))
        return replace(after, variables=values.variables)

    def reset(self, name: str | None) -> State:
        """None: all of them, but for the role, as in PostgreSQL."""
        if name is not None:
            return self.set(name, None)
        return replace(self, now=self.roles.opened(self.now.role), kept=self.roles.opened(self.kept.role))

    def step(self, step: Step, savepoint: str | None) -> State:
        match step:
            case Step.BEGIN | Step.START:
                return self if self.points else replace(self, points=(Savepoint(None, self.now, self.kept),))
            case Step.COMMIT:
                return replace(self, now=self.kept, points=())
            case Step.ROLLBACK:
                if not self.points:
                    return self
                return replace(self, now=self.points[0].kept, kept=self.points[0].kept, points=())
            case Step.SAVEPOINT:
                self._in_transaction(step)
                return replace(self, points=(*self.points, Savepoint(savepoint, self.now, self.kept)))
            case Step.RELEASE:
                return replace(self, points=self.points[: self._place(step, savepoint)])
            case Step.ROLLBACK_TO:
                place = self._place(step, savepoint)
                point = self.points[place]
                return replace(self, now=point.now, kept=point.kept, points=self.points[: place + 1])

    def with_modes(self, modes: tuple[tuple[str, str], ...], session: bool = False) -> State:
        """Of this transaction, if there is one; with `session`, of those that follow."""
        state = self
        for name, value in modes if session or self.points else ():
            state = state.set(f"default_{name}" if session else name, value, local=not session)
        return state

    def _place(self, step: Step, name: str | None) -> int:
        """The last savepoint of that name."""
        self._in_transaction(step)
        places = [place for place, point in enumerate(self.points) if point.name == name and place > 0]
        if not places:
            raise ProgrammingError(f'there is no savepoint "{name}"', sqlstate="3B001")
        return places[-1]

    def _in_transaction(self, step: Step) -> None:
        if not self.points:
            raise ProgrammingError(f"{step.value} is for transactions, and none was begun", hint="BEGIN first.",
                                   sqlstate="25P01")  # fmt: skip


def new_state(roles: Known) -> State:
    """Of a connection that is opened."""
    values = roles.opened(roles.first)
    return State(values, values, roles)


def plain_name(table: str) -> str:
    """DESCRIBE public.visits means visits."""
    return table.removeprefix(f"{SCHEMA}.").removeprefix("main.")
