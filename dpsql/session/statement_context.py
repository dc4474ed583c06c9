"""The context of one statement: account, settings, identity, clock and deadline.

A session makes one context for each statement, and everything that the statement passes through reads it: compiling,
paying, running, post-processing. So the settings and the account of a statement cannot change while it is under way.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from dpsql.base.cancellation import StatementHandle, statement_scope
from dpsql.compiler.catalog.variables import Identity
from dpsql.compiler.settings import SessionSettings, Settings
from dpsql.ledger.base import Account
from dpsql.session.dataset.dataset import Dataset
from dpsql.session.roles import Role
from dpsql.session.transaction import SettingValues


@dataclass(frozen=True)
class StatementContext:
    """`values` are the settings of the connection with those of the statement itself; `cancel` is shared with the
    client's threads, which may cancel the statement or ask how far it is."""

    dataset: Dataset
    role: Role
    values: SettingValues
    identity: Identity
    cancel: StatementHandle
    clock: Callable[[], dt.datetime]
    timeout: float  # seconds that each piece of post-processing may take

    @property
    def account(self) -> Account:
        """The account that is charged."""
        return self.role.account

    @property
    def payers(self) -> tuple[Account, ...]:
        """The account and all above it, which are charged with it."""
        return self.role.payers

    @property
    def settings(self) -> SessionSettings:
        """Those of the connection, for how the account adds up its charges."""
        settings, composition = self.values.settings, self.account.composition
        if settings.statement.composition is composition:
            return settings
        return replace(settings, statement=replace(settings.statement, composition=composition))

    @property
    def deadline(self) -> int | None:
        """In nanoseconds of the runs' clock; None: it may wait for ever."""
        return self.cancel.deadline

    def with_settings(self, statement: Settings) -> StatementContext:
        """The same for a part of the statement, which loses a part of what the whole may lose."""
        settings = replace(self.settings, statement=statement)
        return replace(self, values=replace(self.values, settings=settings))

    def check_cancellation(self) -> None:
        """Raise QueryCanceled if the statement was canceled or its time is over."""
        self.dataset.runs.check_cancellation(self.cancel)

    def seconds_left(self) -> float:
        """For the next piece of post-processing."""
        remaining = self.dataset.runs.seconds_left(self.cancel)
        return self.timeout if remaining is None else min(remaining, self.timeout)

    def scope(self) -> AbstractContextManager[None]:
        """What runs within is this statement's: a cancel and the deadline end it, and it waits behind the account's
        own statements."""
        return statement_scope(self.account.name, self.cancel, self.check_cancellation)
