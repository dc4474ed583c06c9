"""One account's queries, from text to answer: compile, buy the releases, post-process.

Compiling, describing and explaining are free.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Literal

from dpsql import pulse
from dpsql.accuracy import Aims
from dpsql.answer import Answer, query_answer, type_text
from dpsql.buying import Bought, Buyer
from dpsql.catalog import database
from dpsql.catalog.find import find as find_catalog
from dpsql.catalog.identity import Identity
from dpsql.compile import Compiled, PublicStep, compile_query
from dpsql.dataset import Dataset
from dpsql.derivation import Told, tell
from dpsql.errors import OperationalError, QueryCanceled
from dpsql.explain import Explanation, as_declared, explain
from dpsql.holding import HOLDING, size_of
from dpsql.ledger.base import Claim
from dpsql.objects.own import Belongings, Seen
from dpsql.pilot import Known, after_pilot, aims_of, known_so_far, require_allowed
from dpsql.post import sandbox
from dpsql.post.arrays import ArrayTable
from dpsql.post.sandbox import OutputColumn, Table
from dpsql.post.tables import empty_tables, public_table, released_tables
from dpsql.prices import Asker, kinds_of, quoted, with_prices
from dpsql.recent import Recent
from dpsql.roles import Role
from dpsql.schema.model import MADE, Schema
from dpsql.settings import SessionSettings, Settings
from dpsql.sql.catalog_query import CatalogQuery, read_catalog_query
from dpsql.sql.parameters import Parameter, literals
from dpsql.sql.pointing import pointing_into
from dpsql.turns import Turns

KEPT = 256
"""Compiled statements, and answers, that are remembered."""

KEPT_ROWS, KEPT_BYTES = 1000, 256 * 1024
"""Of an answer that is remembered."""

COMPILING = 2
"""Statements of one account that are compiled at a time; further ones wait."""


class Memory:
    """What was worked out lately. Sessions on one dataset may share it: what an account paid for is kept under its
    name."""

    def __init__(self, most: int = KEPT) -> None:
        self.compiled: Recent[Compiled] = Recent(most)
        self.described: Recent[tuple[OutputColumn, ...]] = Recent(most)
        self.answered: Recent[Answer] = Recent(most)
        self.about_catalog: Recent[CatalogQuery | Literal["no"]] = Recent(most)
        self.made = Seen()
        self.turns = Turns(COMPILING)


@dataclass(frozen=True)
class Queries:
    """For one statement. `shown` is the schema as catalogs show it, which takes compiling its views."""

    dataset: Dataset
    role: Role
    buyer: Buyer
    settings: SessionSettings
    who: Identity
    memory: Memory
    clock: Callable[[], dt.datetime]
    timeout: float
    shown: Callable[[], Schema]
    own: Belongings

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
        asked = (sql, parameters, settings, self.who.asking(sql), now if timed else None, aims)

        def work() -> Compiled:
            known = self.memory.compiled.get((*asked, self.own.key))
            if known is not None:
                return known
            with self._turn():
                compiled = compile_query(sql, self.own.schema, settings, parameters, now, self.who, aims)
            return self.memory.compiled.put((*asked, self.own.key), compiled)

        return self.own.knowing(work)

    def _turn(self) -> AbstractContextManager[None]:
        """To work in Python alone, where all sessions take turns anyway: one account's many are as two of another's."""
        return self.memory.turns.of(self.role.account.name, pulse.look)

    def about_catalog(self, sql: str, parameters: Sequence[Parameter] = ()) -> CatalogQuery | None:
        """The statement, where it reads the catalog alone. Free, and asks the engine nothing."""
        now = self.clock()
        bound = literals(parameters)
        key = (sql, bound, self.who.asking(sql), now if _asks_for_the_time(sql) else None, self.own.key)
        known = self.memory.about_catalog.get(key)
        if known is None:
            with self._turn():
                read = read_catalog_query(sql, bound, self.own.schema.schema, self.who, now)
            known = self.memory.about_catalog.put(key, read or "no")
        return None if known == "no" else known

    def ask(self, sql: str, parameters: Sequence[Parameter]) -> Answer:
        """What ends because the statement was canceled, or its time is over, says that."""
        try:
            with pointing_into(sql):
                answer = self._asked(sql, parameters)
                return replace(answer, rows=HOLDING.counted(self.role.account.name, answer.rows))
        except QueryCanceled:  # it says already what became of the run
            raise
        except OperationalError:
            self.dataset.runs.check(self.buyer.ticket)
            raise

    def _asked(self, sql: str, parameters: Sequence[Parameter]) -> Answer:
        catalog = self.about_catalog(sql, parameters)
        if catalog is not None and self.own.again():  # a catalog shows what there is now
            catalog = self.about_catalog(sql, parameters)
        if catalog is not None:
            told = database.run(self.shown(), catalog, self._seconds())
            columns = tuple(OutputColumn(one.name, one.type, one.spelling) for one in told.columns)
            return Answer(columns, told.rows, [(None,) * len(columns) for _ in told.rows])
        now = self.clock()
        compiled = self.compiled(sql, parameters, now)
        answer = self._answer(compiled)
        aims = aims_of(compiled, answer) if compiled.pilot else None
        if aims is None:
            return answer
        return after_pilot(answer, self._answer(self.compiled(sql, parameters, now, aims), (compiled, answer)))

    def _answer(self, compiled: Compiled, pilot: tuple[Compiled, Answer] | None = None) -> Answer:
        self._outputs(compiled)  # a mistake in post-processing shows before anything is charged
        served = self.buyer.served(compiled)
        if served is None:
            require_allowed(compiled, self.role.payers, pilot)
        return self._made(compiled, served)

    def _made(self, compiled: Compiled, served: tuple[Claim, ...] | None) -> Answer:
        """The answer, made of releases that are bought; or of those that are `served`, and then nothing is charged."""
        if served:
            known = self.memory.answered.get(self._same(compiled, [claim.release for claim in served]))
            if known is not None:  # of the same releases, which never change
                return replace(known.again(), settings=compiled.settings)
        public = [self._public(read) for read in compiled.reads]
        told = Told(compiled) if served is not None else self._told(compiled)
        bought = self.buyer.buy(compiled, told, public, served)
        tables = [*public, *released_tables(told.compiled, bought.releases, self.settings.nonnegative)]
        result = sandbox.run(compiled.post_sql, tables, self._seconds())
        answer = query_answer(compiled, told.notices, result, bought.loss, bought.receipts)
        if bought.numbers and not compiled.reads and not told.sources and _is_small(answer):
            self.memory.answered.put(self._same(compiled, bought.numbers), answer.again())
        return answer

    def _same(self, compiled: Compiled, releases: Sequence[int]) -> Hashable:
        """An account's answer, made in one way of releases that it has paid for."""
        return (self.role.account.name, self._table_key(compiled), *releases)

    def _seconds(self) -> float:
        """That are left for what follows: a cancel ends it too."""
        left = self.dataset.runs.seconds_left(self.buyer.ticket)
        return self.timeout if left is None else min(left, self.timeout)

    def _table_key(self, compiled: Compiled) -> Hashable:
        """What a statement makes of its releases and public tables."""
        return compiled.making, self.settings.nonnegative

    def _public(self, read: PublicStep) -> Table:
        if read.sql is not None:
            return public_table(read, self.dataset.engine.public(read.sql, {}))
        if read.place == MADE:
            columns = tuple((column.name, column.type) for column in read.columns)
            return ArrayTable(read.name, columns, self.own.arrays(read.table))
        found = find_catalog(self.shown(), self.who, read.place, read.table)
        return public_table(read, found.rows if found is not None else ())

    def _told(self, compiled: Compiled) -> Told:
        """The statement with what the account's own releases tell of it.

        Nothing is derived where an error was asked for: noise that is as wide on average may be beyond it more often,
        and a pilot must say again what it said.
        """
        if not self.settings.derive or compiled.settings.aiming:
            return Told(compiled)
        return tell(compiled, self.buyer.asked(compiled), self.dataset.ledger, self.role.account)

    def _outputs(self, compiled: Compiled) -> tuple[OutputColumn, ...]:
        key = self._table_key(compiled)
        return self.memory.described.get(key) or self.memory.described.put(key, self._describe(compiled))

    def _describe(self, compiled: Compiled) -> tuple[OutputColumn, ...]:
        described = sandbox.describe(compiled.post_sql, empty_tables(compiled))
        return described[: len(compiled.errors)] if compiled.errors else described

    def bought(self, compiled: Compiled) -> Bought:
        """The releases of a statement that has no post-processing of its own."""
        served = self.buyer.served(compiled)
        return self.buyer.buy(compiled, Told(compiled), [], served)

    def require_covered(self, parts: Sequence[Compiled], text: str, settings: Settings) -> None:
        """That a statement which buys these, one after another, may buy all. Free."""
        self.buyer.require_covered([(one, self._told(one)) for one in parts], text, settings)

    def is_stored(self, compiled: Compiled) -> bool:
        """Whether the account has all of it already."""
        return self.buyer.served(compiled) is not None

    def explained(
        self, settings: Settings, compile_with: Callable[[Settings], Compiled], outputs: Sequence[tuple[str, str]]
    ) -> Explanation:
        """Of such a statement."""
        asker = Asker(self.dataset.ledger, self.role.payers, self.clock())
        kinds = kinds_of(settings, lambda kind: Known(compile_with(kind)))
        quotes = [quoted(one, Told(one.compiled), self.buyer.asked(one.compiled), asker) for one in kinds]
        explanation = explain(kinds[0].compiled, self.dataset.engine.name, outputs)
        return as_declared(with_prices(explanation, quotes, asker), self.dataset.resolved)

    def explain(self, sql: str, parameters: Sequence[Parameter]) -> Explanation:
        asker = Asker(self.dataset.ledger, self.role.payers, self.clock())

        def compile_with(settings: Settings) -> Known:
            asked = self.compiled(sql, parameters, asker.now, settings=settings)
            stored = asker.stored(self.buyer.asked(asked)) if asked.pilot else None
            answer = None if stored is None else self._made(asked, stored)  # of what is stored: nothing is charged
            return known_so_far(asked, answer, lambda aims: self.compiled(sql, parameters, asker.now, aims, settings))

        kinds = kinds_of(self.settings.statement, compile_with)
        quotes = [quoted(one, self._told(one.compiled), self.buyer.asked(one.compiled), asker) for one in kinds]
        compiled = kinds[0].compiled
        with pointing_into(sql):
            outputs = [(column.name, type_text(column)) for column in self._outputs(compiled)]
        explained = explain(compiled, self.dataset.engine.name, outputs)
        return as_declared(with_prices(explained, quotes, asker), self.dataset.resolved)

    def describe(self, sql: str, parameters: Sequence[Parameter] = ()) -> tuple[OutputColumn, ...]:
        """The output columns of a query."""
        catalog = self.about_catalog(sql, parameters)
        if catalog is not None:
            described = database.describe(self.shown(), catalog)
            return tuple(OutputColumn(one.name, one.type, one.spelling) for one in described)
        compiled = self.compiled(sql, parameters)
        with pointing_into(sql):
            return self._outputs(compiled)


def _asks_for_the_time(sql: str) -> bool:
    return any(word in sql.lower() for word in ("now", "current", "localtime", "timestamp", "today"))


def _is_small(answer: Answer) -> bool:
    return len(answer.rows) <= KEPT_ROWS and size_of(answer.rows) <= KEPT_BYTES
