"""Where the pure meets the world: one analyst's statements, from text to answer.

The order is the law: compile; charge, run, perturb, store (these four in `buying`); post-process; deliver.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from dpsql.about import VERSION
from dpsql.answer import (
    Answer,
    catalog_answer,
    done,
    json_answer,
    show_answer,
    text_answer,
    type_text,
)
from dpsql.buying import Buyer
from dpsql.catalog import shows
from dpsql.catalog.identity import Identity
from dpsql.catalog.names import NamedColumn, NamedTable, named_tables
from dpsql.catalog.views import with_view_columns
from dpsql.compile import Compiled
from dpsql.dataset import Dataset, now_utc
from dpsql.engines.watch import cancelable
from dpsql.errors import Error, InternalError, Unsupported, part_of
from dpsql.explain import Explanation
from dpsql.figures import CellError, Charge
from dpsql.held import Held
from dpsql.interactive.decimals import Number, exact
from dpsql.interactive.forecast import Forecast, Reply, Told
from dpsql.ledger.base import Account, Balance, Receipt
from dpsql.making.commands import carry_out, compiled_create, explain_create
from dpsql.objects.own import Belongings
from dpsql.post.children import run_apart
from dpsql.post.sandbox import OutputColumn, on_behalf_of
from dpsql.preparing import Prepared, prepare
from dpsql.privacy.loss import Loss
from dpsql.privacy.sampling import ExactSampler, Sampler
from dpsql.pulse import ended_by
from dpsql.queries import Memory, Queries
from dpsql.roles import Role, Roles, check_settings
from dpsql.schema.model import Schema
from dpsql.settings import SessionSettings, Settings
from dpsql.sql.asked_commands import AskCommand
from dpsql.sql.commands import (
    Command,
    DescribeCommand,
    DescribeQueryCommand,
    DiscardCommand,
    ExplainCommand,
    ModesCommand,
    NothingCommand,
    ResetCommand,
    SetCommand,
    ShowCommand,
    TransactionCommand,
    read_command,
)
from dpsql.sql.copy_command import CopyCommand
from dpsql.sql.held_commands import DeallocateCommand
from dpsql.sql.made_commands import CreateCommand, DropCommand, ShowMadeCommand
from dpsql.sql.parameters import Parameter, literals
from dpsql.sql.parse import check_marks
from dpsql.sql.statements import split_statements
from dpsql.state import NOBODY, Settling, new_state, plain_name
from dpsql.ticket import Ticket
from dpsql.types import Type
from dpsql.vocabulary import NamedFunction, NamedSetting, named_functions, named_settings, own_functions

__all__ = [
    "Answer", "AskCommand", "Balance", "CellError", "Charge", "CopyCommand", "DeallocateCommand", "Explanation",
    "Forecast", "Loss", "Memory", "NamedColumn", "NamedFunction", "NamedSetting", "NamedTable", "Number",
    "OutputColumn", "Parameter", "Prepared", "Receipt", "Reply", "Session", "Ticket", "Told", "check_marks",
    "check_settings", "exact", "literals", "read_command", "run_apart", "split_statements",
]  # fmt: skip

TIMEOUT = 60.0
"""Seconds that post-processing may take."""


@dataclass
class Session:
    dataset: Dataset
    user: str | None = None
    sampler: Sampler = field(default_factory=ExactSampler)
    clock: Callable[[], dt.datetime] = now_utc
    timeout: float = TIMEOUT
    opened_with: Mapping[str, str] = field(default_factory=dict)  # settings, to which RESET goes back
    memory: Memory = field(default_factory=Memory)
    process: int = 0  # the number of a connection to a server: what pg_backend_pid() says

    def __post_init__(self) -> None:
        self._roles = Roles(self.dataset.schema, self.user, self.opened_with)
        self._state = new_state(self._roles)
        self._buyer = self._new_buyer(Ticket())
        self._preparing = Ticket()
        self._held, self._holder = Held(), self._state.now.role

    @property
    def acts_for(self) -> str | None:
        """The account that pays where it is not the user's own."""
        return None if self._state.now.role == NOBODY else self._account.name

    @property
    def _role(self) -> Role:
        return self._roles.of(self._state.now.role)

    @property
    def _account(self) -> Account:
        return self._role.account

    @property
    def queries(self) -> Queries:
        return Queries(self.dataset, self._role, self._buyer, self.settings, self._who, self.memory, self.clock,
                       self.timeout, lambda: self._shown, self._own)  # fmt: skip

    @property
    def _own(self) -> Belongings:
        return Belongings(self.dataset.ledger, self._account.name, self.dataset.resolved, self.memory.made)

    def _new_buyer(self, ticket: Ticket) -> Buyer:
        return Buyer(self.dataset, self._account, self.sampler, self.clock, self.timeout, ticket)

    # --- statements --------------------------------------------------------------------------------------------------

    def execute(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        *,
        settings: Mapping[str, str] | None = None,
        ticket: Ticket | None = None,
    ) -> Answer:
        """One statement: a query, or a command such as SET or SHOW.

        `settings` hold for this statement alone, if it asks something. A `ticket` may be canceled before its turn has
        come; with one that is `free`, what would be charged is refused before that.
        """
        self._buyer = self._new_buyer(ticket or Ticket())
        if self._holder != self._state.now.role:
            self._held.change_role()
            self._holder = self._state.now.role
        try:
            bound = literals(parameters)
            command = read_command(sql, bound)
            if isinstance(command, Settling):
                self._begin()
                self._state, tag = self._state.after(command)
                self._end_what_ends(command)
                return done(tag)
            if command is None and "set_config" in sql.lower():
                self._configure(sql, bound)
            with self._set(settings, self._buyer.ticket):
                self._begin()
                return self._asked_by(command, sql, bound)
        except Error as error:
            error.charge = self.charged
            if error.statement is None:
                error.statement = sql
            raise

    def _end_what_ends(self, command: Settling) -> None:
        if isinstance(command, DiscardCommand):
            self._held.forget()
        elif isinstance(command, TransactionCommand) and not self.in_transaction:
            self._held.end_transaction()

    def _configure(self, sql: str, parameters: Sequence[Parameter]) -> None:
        """set_config() in a query is SET."""
        query = self.queries.about_catalog(sql, parameters)
        for name, value, local in () if query is None else query.sets:
            self._state = self._state.set(name, value, local)

    def _begin(self) -> None:
        runs = self.dataset.runs
        ticket = self._buyer.ticket
        ticket.deadline = runs.ticket(self._state.now.variables.statement_timeout).deadline
        runs.check(ticket)

    @contextmanager
    def _set(self, settings: Mapping[str, str] | None, ticket: Ticket) -> Iterator[None]:
        """For what is asked within, and whatever becomes of it; it ends with the ticket."""
        before = self._state
        try:
            self._state = before.for_one(settings or {})
            ended = ended_by(lambda: self.dataset.runs.check(ticket))
            with on_behalf_of(self._account.name), cancelable(ticket), ended:
                yield
        finally:
            self._state = before

    @property
    def charged(self) -> Charge:
        """What the last statement was charged: also where it failed, ran out of time or was canceled after that."""
        return self._buyer.charged

    def cancel(self, ticket: Ticket | None = None) -> None:
        """From any thread: who waits in `execute` gets QueryCanceled; the run goes on, is stored, and stays paid."""
        self.dataset.runs.cancel(ticket or self._buyer.ticket)
        self.dataset.runs.cancel(self._preparing)

    @property
    def progress(self) -> tuple[int, int]:
        """From any thread: how many of the releases of the statement under way are there, and how many it has."""
        return self._buyer.ticket.delivered, self._buyer.ticket.releases

    def _asked_by(self, command: Command | None, sql: str, parameters: Sequence[Parameter]) -> Answer:
        match command:
            case None:
                return self.queries.ask(sql, parameters)
            case SetCommand() | ResetCommand() | DiscardCommand() | NothingCommand():
                raise InternalError("a command that changes settings asks nothing")
            case TransactionCommand() | ModesCommand():
                raise InternalError("a command of transactions asks nothing")
            case ShowCommand(name, json=True):
                return json_answer(name, self._shows(name), "SHOW")
            case ShowCommand(name):
                if name == "tables":
                    self._own.again()
                return show_answer(name, self._own.schema.schema, self._account.name, self._state.now, self.budget)
            case ExplainCommand(inner, offset, as_json):
                with part_of(sql, offset):
                    explained = self._explained(command, parameters)
                if as_json:
                    return json_answer("QUERY PLAN", explained, "EXPLAIN")
                return text_answer("QUERY PLAN", str(explained).splitlines())
            case DescribeCommand(table):
                return catalog_answer(shows.columns(self._shown, plain_name(table)), "DESCRIBE")
            case DescribeQueryCommand(inner, offset):
                with part_of(sql, offset):
                    columns = self.describe(inner, parameters)
                return catalog_answer(shows.outputs([(c.name, type_text(c)) for c in columns]), "DESCRIBE")
            case CreateCommand() | DropCommand() | ShowMadeCommand():
                return carry_out(self.queries, command, sql, parameters)
            case _:
                return self._held.carry_out(command, sql, parameters, self)

    def _explained(self, command: ExplainCommand, parameters: Sequence[Parameter]) -> Explanation | Forecast:
        inner = read_command(command.sql, parameters)
        if not isinstance(inner, AskCommand):
            return self.explain(command.sql, parameters)
        return self._held.mechanisms.forecast(self.queries, inner, command.sql, parameters, dict(command.given))

    def ask(self, sql: str, parameters: Sequence[Parameter]) -> Answer:
        """A query that another statement holds."""
        if read_command(sql, parameters) is not None:
            raise Unsupported("a query is expected here", hint="SELECT …, WITH … or VALUES ….")
        catalog = self.queries.about_catalog(sql, parameters)
        if catalog is not None and catalog.sets:  # it would be said to be set, and would not be
            raise Unsupported("set_config() stands in a statement of its own", hint="SELECT set_config(…), or SET ….")
        return self.queries.ask(sql, literals(parameters))

    def told(self, command: Command) -> Answer:
        """What a command tells that asks for no rows."""
        return self._asked_by(command, "", ())

    def prepare(
        self, sql: str, types: Sequence[Type | None] = (), *, settings: Mapping[str, str] | None = None
    ) -> Prepared:
        """The types of a statement's parameters, inferred where they are not given, and its columns.

        Free, and runs nothing: what runs is compiled again with the values.
        """
        ticket = self._preparing = self.dataset.runs.ticket(self._state.now.variables.statement_timeout)
        try:
            with self._set(settings, ticket):
                shown = self._declared.with_made(self._own.tables, self._own.models)
                return prepare(self, shown, self._held, sql, types)
        except Error as error:
            if error.statement is None:
                error.statement = sql
            raise

    @property
    def in_transaction(self) -> bool:
        return bool(self._state.points)

    @property
    def variables(self) -> tuple[tuple[str, str], ...]:
        """PostgreSQL's settings, as SHOW ALL tells them, and who asks."""
        own = self._roles.of(NOBODY).account.name
        return (*self._state.now.variables.items(), ("session_authorization", own), ("role", self._state.now.role))

    def left_text(self) -> str | None:
        """Of the budget, after the last statement, for people; None where the ledger cannot tell it now."""
        try:
            return (self._buyer.balance or self.budget()).left_text
        except Error:
            return None

    def _shows(self, name: str) -> object:
        """What SHOW … (FORMAT JSON) tells: the values that programs have here."""
        told = {"budget": self.budget, "tables": self.tables, "functions": self.functions}
        return told.get(name, self.named_settings)()

    @property
    def database(self) -> str:
        """As `current_database()` tells it."""
        return self.dataset.schema.database

    @property
    def lost(self) -> bool:
        """Never: it is here. A session on a server can be."""
        return False

    def close(self) -> None:
        """Free the engine: for who opened the dataset for this session alone."""
        self.dataset.close()

    @property
    def _who(self) -> Identity:
        now = self._state.now
        opened = self._roles.opened(now.role).own
        variables = (*now.own, *now.variables.items())
        login = self._roles.of(NOBODY).account.name
        return Identity(self._account.name, self.dataset.schema.database, VERSION, variables, login, opened,
                        self.process)  # fmt: skip

    @property
    def settings(self) -> SessionSettings:
        return self._state.now.settings

    def set(self, name: str, value: str) -> None:
        self._state = self._state.set(name.lower(), value)

    def explain(
        self, sql: str, parameters: Sequence[Parameter] = (), *, settings: Mapping[str, str] | None = None
    ) -> Explanation:
        """What the statement would cost and how good it would be. Free, and asks the engine for no private rows."""
        ticket = self._preparing = self.dataset.runs.ticket(self._state.now.variables.statement_timeout)
        with self._set(settings, ticket):
            command = read_command(sql, parameters)
            if isinstance(command, CreateCommand):
                return explain_create(self.queries, command, sql, literals(parameters))
            return self.queries.explain(sql, literals(parameters))

    def describe(
        self, sql: str, parameters: Sequence[Parameter] = (), *, settings: Mapping[str, str] | None = None
    ) -> tuple[OutputColumn, ...]:
        """The output columns of a query, for free; with `settings`, if only none, it ends as a statement would."""
        if settings is None:
            return self.queries.describe(sql, parameters)
        ticket = self._preparing = self.dataset.runs.ticket(self._state.now.variables.statement_timeout)
        with self._set(settings, ticket):
            return self.queries.describe(sql, parameters)

    def compiled(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        now: dt.datetime | None = None,
        settings: Settings | None = None,
    ) -> Compiled:
        """The statement as it would run. Free."""
        command = read_command(sql, parameters)
        if isinstance(command, CreateCommand):
            return compiled_create(self.queries, command, sql, literals(parameters))
        return self.queries.compiled(sql, parameters, now, settings=settings)

    def tables(self) -> tuple[NamedTable, ...]:
        """What can be named: what the schema declares, and what the account has made. Free."""
        self._own.again()
        return named_tables(self._shown)

    def functions(self) -> tuple[NamedFunction, ...]:
        """What can be called: functions, the owner's statistics, and the account's models. Free."""
        self._own.again()
        statistics = [(one.name, one.of) for one in self.dataset.schema.statistics]
        return (*named_functions(), *own_functions(statistics, [(m.name, m.features) for m in self._own.models]))

    named_settings = staticmethod(named_settings)

    def budget(self) -> Balance:
        return self.dataset.ledger.balance(self._account)

    @property
    def _shown(self) -> Schema:
        return self._declared.with_made(self._own.tables)

    @cached_property
    def _declared(self) -> Schema:
        return with_view_columns(self.dataset.schema, lambda sql: [(one.name, one.type) for one in self.describe(sql)])
