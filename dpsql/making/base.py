"""What is the same for all that an account may make: what is asked, what was bought, and who makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dpsql.answer import StatementResult
from dpsql.compiled import Compiled
from dpsql.explain import Explanation
from dpsql.ledger.base import CreatedObject
from dpsql.post.sandbox import OutputColumn
from dpsql.queries import QueryExecutor
from dpsql.sql.made_commands import CreateCommand
from dpsql.sql.parameters import Parameter, inline_parameters
from dpsql.sql.parse import tokenize


@dataclass(frozen=True)
class CreateRequest:
    """A CREATE, on behalf of an account; `given` are the parameters of all of it."""

    queries: QueryExecutor
    command: CreateCommand
    sql: str
    given: Sequence[Parameter]

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Those of its query."""
        return self.command.query_parameters(self.given)

    @property
    def statement(self) -> str:
        """As it is told again: with the values that were bound to it."""
        return inline_parameters(self.sql, tokenize(self.sql), self.given).strip()


@dataclass(frozen=True)
class CreatedArtifact:
    """What was bought: a release, how it is read (`definition`, JSON with the statement), and what is told of it."""

    release: int
    definition: Mapping[str, Any]
    answer: StatementResult


class ArtifactBuilder(Protocol):
    """Of one kind of object."""

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        """Of the answer to CREATE, whatever is made."""

    def compile_release(self, request: CreateRequest) -> Compiled:
        """The release as it would run: values that must be released first are what the account has, or none. Free."""

    def create_artifact(self, request: CreateRequest) -> CreatedArtifact:
        """Pay for the release and read it."""

    def explain(self, request: CreateRequest) -> Explanation:
        """What it would cost. Free."""

    def show(self, stored: CreatedObject, body: bytes) -> StatementResult:
        """SHOW of one object."""

    def to_record(self, stored: CreatedObject, body: bytes) -> object:
        """The same, for programs."""
