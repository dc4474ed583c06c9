"""What a connection asks: a session here, or one on a server. Both have this, and nothing else of them is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dpsql.figures import Charge
    from dpsql.session import (
        StatementResult,
        Balance,
        Explanation,
        NamedFunction,
        NamedSetting,
        NamedTable,
        Parameter,
        StatementHandle,
    )


class AnalystSession(Protocol):
    """One analyst's statements, one at a time; `cancel` and `progress` are for any thread."""

    def execute(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        *,
        settings: Mapping[str, str] | None = None,
        ticket: StatementHandle | None = None,
    ) -> StatementResult: ...

    def explain(
        self, sql: str, parameters: Sequence[Parameter] = (), *, settings: Mapping[str, str] | None = None
    ) -> Explanation: ...

    def budget(self) -> Balance: ...
    def tables(self) -> tuple[NamedTable, ...]: ...
    def functions(self) -> tuple[NamedFunction, ...]: ...
    def named_settings(self) -> tuple[NamedSetting, ...]: ...
    def cancel(self, ticket: StatementHandle | None = None) -> None: ...
    def close(self) -> None: ...

    @property
    def user(self) -> str | None: ...
    @property
    def database(self) -> str: ...
    @property
    def lost(self) -> bool: ...
    @property
    def charged(self) -> Charge: ...
    @property
    def progress(self) -> tuple[int, int]: ...
