"""What is the same for all that an account may make: what is asked, what was bought, and who makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dpsql.answer import Answer
from dpsql.compiled import Compiled
from dpsql.explain import Explanation
from dpsql.ledger.base import Made
from dpsql.post.sandbox import OutputColumn
from dpsql.queries import Queries
from dpsql.sql.made_commands import CreateCommand
from dpsql.sql.parameters import Parameter, written_out
from dpsql.sql.parse import tokenize


@dataclass(frozen=True)
class Asked:
    """A CREATE, on behalf of an account; `given` are the parameters of all of it."""

    queries: Queries
    command: CreateCommand
    sql: str
    given: Sequence[Parameter]

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Those of its query."""
        return self.command.of_query(self.given)

    @property
    def statement(self) -> str:
        """As it is told again: with the values that were bound to it."""
        return written_out(self.sql, tokenize(self.sql), self.given).strip()


@dataclass(frozen=True)
class Making:
    """What was bought: a release, how it is read (`definition`, JSON with the statement), and what is told of it."""

    release: int
    definition: Mapping[str, Any]
    answer: Answer


class Maker(Protocol):
    """Of one kind of object."""

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        """Of the answer to CREATE, whatever is made."""

    def compiled(self, asked: Asked) -> Compiled:
        """The release as it would run: values that must be released first are what the account has, or none. Free."""

    def make(self, asked: Asked) -> Making:
        """Pay for the release and read it."""

    def explain(self, asked: Asked) -> Explanation:
        """What it would cost. Free."""

    def show(self, made: Made, body: bytes) -> Answer:
        """SHOW of one object."""

    def plain(self, made: Made, body: bytes) -> object:
        """The same, for programs."""
