"""Where the pure meets the world: one analyst's statements, from text to answer.

The order is the law: compile; charge, run, perturb, store (these four in `buying`); post-process; deliver.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import assert_never

from dpsql.about import VERSION
from dpsql.accuracy import Aims
from dpsql.answer import (
    Answer,
    catalog_answer,
    done,
    json_answer,
    query_answer,
    show_answer,
    text_answer,
    type_text,
)
from dpsql.buying import Buyer
from dpsql.catalog import shows
from dpsql.catalog.find import find as find_catalog
from dpsql.catalog.identity import Identity
from dpsql.catalog.names import NamedColumn, NamedTable, named_tables
from dpsql.catalog.views import with_view_columns
from dpsql.compile import Compiled, PublicStep, compile_query
from dpsql.dataset import Dataset, now_utc
from dpsql.derivation import Told, tell
from dpsql.errors import Error, part_of
from dpsql.explain import Explanation, as_declared, explain
from dpsql.figures import CellError, Charge
from dpsql.ledger.base import Account, Balance, Claim, Receipt
from dpsql.pilot import Known, after_pilot, aims_of, known_so_far, require_allowed
from dpsql.post import sandbox
from dpsql.post.sandbox import OutputColumn, ReleasedTable
from dpsql.post.tables import empty_tables, public_table, released_tables
from dpsql.prices import Asker, kinds_of, quoted, with_prices
from dpsql.privacy.loss import Loss
from dpsql.privacy.sampling import ExactSampler, Sampler
from dpsql.recent import Recent
from dpsql.roles import Role, Roles
from dpsql.schema.model import Schema
from dpsql.settings import SessionSettings, Settings
from dpsql.sql.commands import DescribeCommand, DescribeQueryCommand, ExplainCommand, ShowCommand, read_command
from dpsql.sql.parameters import Parameter, literals
from dpsql.sql.parse import check_marks
from dpsql.state import NOBODY, Settling, new_state, plain_name
from dpsql.ticket import Ticket
from dpsql.vocabulary import NamedFunction, NamedSetting, named_functions, named_settings

__all__ = [
    "Answer", "Balance", "CellError", "Charge", "Explanation", "Loss", "NamedColumn", "NamedFunction", "NamedSetting",
    "NamedTable", "OutputColumn", "Parameter", "Receipt", "Session", "Ticket", "check_marks", "literals",
    "read_command",
]  # fmt: skip

Asking = ShowCommand | ExplainCommand | DescribeCommand | DescribeQueryCommand

KEPT = 256
"""Compiled statements, and answers, that a session remembers."""

KEPT_ROWS = 1000
"""Of an answer that is remembered."""

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

    def __post_init__(self) -> None:
        self._roles = Roles(self.dataset.schema, self.user, self.opened_with)
        self._state = new_state(self._roles)
        self._buyer = self._new_buyer(Ticket())
        self._compiled: Recent[Compiled] = Recent(KEPT)
        self._described: Recent[tuple[OutputColumn, ...]] = Recent(KEPT)
        self._answered: Recent[Answer] = Recent(KEPT)

    @property
    def _role(self) -> Role:
        return self._roles.of(self._state.now.role)

    @property
    def _account(self) -> Account:
        return self._role.account

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
        try:
            bound = literals(parameters)
            command = read_command(sql, bound)
            if isinstance(command, Settling):
                self._begin()
                self._state, tag = self._state.after(command)
                return done(tag)
            with self._set(settings):
                self._begin()
                return self._asked_by(command, sql, bound)
        except Error as error:
            error.charge = self.charged
            if error.statement is None:
                error.statement = sql
            raise

    def _begin(self) -> None:
        runs = self.dataset.runs
        ticket = self._buyer.ticket
        ticket.deadline = runs.ticket(self._state.now.variables.statement_timeout).deadline
        runs.check(ticket)

    @contextmanager
    def _set(self, settings: Mapping[str, str] | None) -> Iterator[None]:
        """For what is asked within, and whatever becomes of it."""
        before = self._state
        try:
            self._state = before.for_one(settings or {})
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

    @property
    def progress(self) -> tuple[int, int]:
        """From any thread: how many of the releases of the statement under way are there, and how many it has."""
        return self._buyer.ticket.delivered, self._buyer.ticket.releases

    def _asked_by(self, command: Asking | None, sql: str, parameters: Sequence[Parameter]) -> Answer:
        match command:
            case None:
                return self._query(sql, parameters)
            case ShowCommand(name, json=True):
                return json_answer(name, self._shows(name), "SHOW")
            case ShowCommand(name):
                return show_answer(name, self.dataset.schema, self._account.name, self._state.now, self.budget)
            case ExplainCommand(inner, offset, as_json):
                with part_of(sql, offset):
                    explained = self.explain(inner, parameters)
                if as_json:
                    return json_answer("QUERY PLAN", explained, "EXPLAIN")
                return text_answer("QUERY PLAN", str(explained).splitlines())
            case DescribeCommand(table):
                return catalog_answer(shows.columns(self._shown, plain_name(table)), "DESCRIBE")
            case DescribeQueryCommand(inner, offset):
                with part_of(sql, offset):
                    columns = self.describe(inner, parameters)
                return catalog_answer(shows.outputs([(c.name, type_text(c)) for c in columns]), "DESCRIBE")
            case _:
                assert_never(command)

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
        variables = self._state.now.variables.items()
        own = self._roles.of(NOBODY).account.name
        return Identity(self._account.name, self.dataset.schema.database, VERSION, variables, own)

    @property
    def settings(self) -> SessionSettings:
        return self._state.now.settings

    def set(self, name: str, value: str) -> None:
        self._state = self._state.set(name.lower(), value)

    def explain(
        self, sql: str, parameters: Sequence[Parameter] = (), *, settings: Mapping[str, str] | None = None
    ) -> Explanation:
        """What the statement would cost and how good it would be. Free, and asks the engine for no private rows."""
        with self._set(settings):
            return self._explain(sql, literals(parameters))

    def _explain(self, sql: str, parameters: Sequence[Parameter]) -> Explanation:
        asker = Asker(self.dataset.ledger, self._role.payers, self.clock())

        def compile_with(settings: Settings) -> Known:
            asked = self.compiled(sql, parameters, asker.now, settings=settings)
            stored = asker.stored(self._buyer.asked(asked)) if asked.pilot else None
            answer = None if stored is None else self._made(asked, stored)  # of what is stored: nothing is charged
            return known_so_far(asked, answer, lambda aims: self.compiled(sql, parameters, asker.now, aims, settings))

        kinds = kinds_of(self.settings.statement, compile_with)
        quotes = [quoted(one, self._told(one.compiled), self._buyer.asked(one.compiled), asker) for one in kinds]
        compiled = kinds[0].compiled
        outputs = [(column.name, type_text(column)) for column in self._outputs(compiled)]
        explained = explain(compiled, self.dataset.engine.name, outputs)
        return as_declared(with_prices(explained, quotes, asker), self.dataset.resolved)

    def describe(self, sql: str, parameters: Sequence[Parameter] = ()) -> tuple[OutputColumn, ...]:
        """The output columns of a query, for free."""
        return self._outputs(self.compiled(sql, parameters))

    def tables(self) -> tuple[NamedTable, ...]:
        """What can be named, as the schema declares it. Free."""
        return named_tables(self._shown)

    functions, named_settings = staticmethod(named_functions), staticmethod(named_settings)

    def budget(self) -> Balance:
        return self.dataset.ledger.balance(self._account)

    # --- queries -----------------------------------------------------------------------------------------------------

    def compiled(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        now: dt.datetime | None = None,
        aims: Aims | None = None,
        settings: Settings | None = None,
    ) -> Compiled:
        """The statement as it would run. Free."""
        now, settings = now or self.clock(), settings or self.settings.statement
        timed = _asks_for_the_time(sql) or any(_asks_for_the_time(view.sql) for view in self.dataset.schema.views)
        # As they are bound: 1.0 and 1.00 are equal numbers but other literals, and what a subclass prints is no matter.
        parameters = literals(parameters)
        key = (sql, parameters, settings, self._who, now if timed else None, aims)
        known = self._compiled.get(key)
        if known is not None:
            return known
        compiled = compile_query(sql, self.dataset.resolved, settings, parameters, now, self._who, aims)
        return self._compiled.put(key, compiled)

    def _query(self, sql: str, parameters: Sequence[Parameter]) -> Answer:
        now = self.clock()
        compiled = self.compiled(sql, parameters, now)
        answer = self._answer(compiled)
        aims = aims_of(compiled, answer) if compiled.pilot else None
        if aims is None:
            return answer
        return after_pilot(answer, self._answer(self.compiled(sql, parameters, now, aims), (compiled, answer)))

    def _answer(self, compiled: Compiled, pilot: tuple[Compiled, Answer] | None = None) -> Answer:
        self._outputs(compiled)  # a mistake in post-processing shows before anything is charged
        served = self._buyer.served(compiled)
        if served is None:
            require_allowed(compiled, self._role.payers, pilot)
        return self._made(compiled, served)

    def _made(self, compiled: Compiled, served: tuple[Claim, ...] | None) -> Answer:
        """The answer, made of releases that are bought; or of those that are `served`, and then nothing is charged."""
        same: Hashable = None
        if served and not compiled.reads:
            same = (self._account.name, self._table_key(compiled), *(claim.release for claim in served))
        known = self._answered.get(same) if same else None
        if known is not None:  # of the same releases, which never change
            return replace(known.again(), settings=compiled.settings)
        public = [self._public(read) for read in compiled.reads]
        told = Told(compiled) if served is not None else self._told(compiled)
        bought = self._buyer.buy(compiled, told, public, served)
        tables = public + released_tables(told.compiled, bought.releases, self.settings.nonnegative)
        result = sandbox.run(compiled.post_sql, tables, self.timeout)
        answer = query_answer(compiled, told.notices, result, bought.loss, bought.receipts)
        return answer if same is None or len(answer.rows) > KEPT_ROWS else self._answered.put(same, answer).again()

    def _table_key(self, compiled: Compiled) -> Hashable:
        """What a statement makes of its releases and public tables."""
        one = compiled
        return one.post_sql, one.reads, one.tables, one.errors, one.notices, self.settings.nonnegative

    def _public(self, read: PublicStep) -> ReleasedTable:
        if read.sql is not None:
            return public_table(read, self.dataset.engine.public(read.sql, {}))
        found = find_catalog(self._shown, self._who, read.place, read.table)
        return public_table(read, found.rows if found is not None else ())

    def _told(self, compiled: Compiled) -> Told:
        """The statement with what the account's own releases tell of it.

        Nothing is derived where an error was asked for: noise that is as wide on average may be beyond it more often,
        and a pilot must say again what it said.
        """
        if not self.settings.derive or compiled.settings.aiming:
            return Told(compiled)
        return tell(compiled, self._buyer.asked(compiled), self.dataset.ledger, self._account)

    def _outputs(self, compiled: Compiled) -> tuple[OutputColumn, ...]:
        key = self._table_key(compiled)
        return self._described.get(key) or self._described.put(key, self._describe(compiled))

    def _describe(self, compiled: Compiled) -> tuple[OutputColumn, ...]:
        described = sandbox.describe(compiled.post_sql, empty_tables(compiled))
        return described[: len(compiled.errors)] if compiled.errors else described

    @cached_property
    def _shown(self) -> Schema:
        return with_view_columns(self.dataset.schema, lambda sql: [(one.name, one.type) for one in self.describe(sql)])


def _asks_for_the_time(sql: str) -> bool:
    return any(word in sql.lower() for word in ("now", "current", "localtime", "timestamp", "today"))
