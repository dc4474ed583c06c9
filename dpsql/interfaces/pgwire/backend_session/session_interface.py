"""The interface of a session that the wire protocol needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from dpsql.base.time_zones import TimeZone
from dpsql.errors import Error
from dpsql.session.session import Charge, OutputColumn, Parameter, StatementHandle, StatementResult
from dpsql.types import Type


class PreparedStatementInfo(Protocol):
    """The types of a prepared statement's parameters and columns, known before it runs."""

    @property
    def parameters(self) -> Sequence[Type]: ...
    @property
    def columns(self) -> Sequence[OutputColumn]: ...
    @property
    def command(self) -> str: ...
    @property
    def arrays(self) -> Collection[int]: ...
    @property
    def unknown(self) -> Error | None: ...


class SessionProtocol(Protocol):
    """One analyst's session. `prepare` and `describe` are free and run nothing; `execute` waits."""

    @property
    def user(self) -> str | None: ...
    @property
    def database(self) -> str: ...
    @property
    def charged(self) -> Charge: ...
    @property
    def in_transaction(self) -> bool: ...
    @property
    def time_zone(self) -> TimeZone: ...
    @property
    def variables(self) -> Sequence[tuple[str, str]]: ...
    def execute(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        *,
        settings: Mapping[str, str] | None = None,
        handle: StatementHandle | None = None,
    ) -> StatementResult: ...
    def prepare(
        self, sql: str, types: Sequence[Type | None] = (), *, settings: Mapping[str, str] | None = None
    ) -> PreparedStatementInfo: ...
    def describe(
        self, sql: str, parameters: Sequence[Parameter] = (), *, settings: Mapping[str, str] | None = None
    ) -> Sequence[OutputColumn]: ...
    def cancel(self, handle: StatementHandle | None = None) -> None: ...
    def left_text(self) -> str | None: ...
