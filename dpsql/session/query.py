"""One account's queries, from text to answer: compile, buy the releases, post-process.

Compiling, describing and explaining are free.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Literal

from dpsql.base import cancellation as pulse
from dpsql.base.fair_queue import FairSemaphore
from dpsql.base.lru_cache import LruCache
from dpsql.base.memory_quota import RESULT_QUOTA, estimate_size
from dpsql.compiler.accuracy import ErrorAims
from dpsql.compiler.catalog.identity import Identity
from dpsql.compiler.catalog.query import CatalogQuery, read_catalog_query
from dpsql.compiler.catalog.tables import find_catalog_table as find_catalog
from dpsql.compiler.compile import Compiled, PublicStep, compile_query
from dpsql.compiler.parse.parameters import Parameter, to_literals
from dpsql.compiler.parse.parser import locate_error
from dpsql.compiler.settings import SessionSettings, Settings
from dpsql.errors import OperationalError, QueryCanceled
from dpsql.ledger.base import Entitlement
from dpsql.schema.model import CREATED_SCHEMA, Schema
from dpsql.session.artifacts.namespace import NamespaceCache, ObjectNamespace
from dpsql.session.dataset.dataset import Dataset
from dpsql.session.explain import Explanation, explain, with_declared_sources
from dpsql.session.pilot import (
    PilotedStatement,
    aims_from_pilot,
    combine_with_pilot,
    require_epsilon_allowed,
    resolve_pilot,
)
from dpsql.session.postprocess import catalog_sandbox as database
from dpsql.session.postprocess import sandbox
from dpsql.session.postprocess.arrays import ArrayTable
from dpsql.session.postprocess.release_tables import build_empty_tables, build_public_table, build_released_tables
from dpsql.session.postprocess.sandbox import OutputColumn, SandboxTable
from dpsql.session.pricing import PricingContext, add_prices, compile_noise_kinds, quote_statement
from dpsql.session.purchase import Purchase, PurchasedReleases
from dpsql.session.result import StatementResult, build_query_result, format_column_type
from dpsql.session.reuse import ReusePlan, find_reusable
from dpsql.session.roles import Role

MAX_CACHED = 256
"""Compiled statements, and answers, that are remembered."""

MAX_CACHED_ROWS, MAX_CACHED_BYTES = 1000, 256 * 1024
"""Of an answer that is remembered."""

MAX_COMPILING = 2
"""Statements of one account that are compiled at a time; further ones wait."""


class SessionCache:
    """What was worked out lately. Sessions on one dataset may share it: what an account paid for is kept under its
    name."""

    def __init__(self, max_size: int = MAX_CACHED) -> None:
        self.compiled: LruCache[Compiled] = LruCache(max_size)
        self.described: LruCache[tuple[OutputColumn, ...]] = LruCache(max_size)
        self.answered: LruCache[StatementResult] = LruCache(max_size)
        self.about_catalog: LruCache[CatalogQuery | Literal["no"]] = LruCache(max_size)
        self.made = NamespaceCache()
        self.turns = FairSemaphore(MAX_COMPILING)


@dataclass(frozen=True)
class QueryExecutor:
    """For one statement. `shown` is the schema as catalogs show it, which takes compiling its views."""

    dataset: Dataset
    role: Role
    buyer: Purchase
    settings: SessionSettings
    who: Identity
    memory: SessionCache
    clock: Callable[[], dt.datetime]
    timeout: float
    shown: Callable[[], Schema]
    own: ObjectNamespace

    def compile_statement(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        now: dt.datetime | None = None,
        aims: ErrorAims | None = None,
        settings: Settings | None = None,
    ) -> Compiled:
        """The statement as it would run. Free."""
        now, settings = now or self.clock(), settings or self.settings.statement
        timed = _uses_current_time(sql) or any(_uses_current_time(view.sql) for view in self.dataset.schema.views)
        # As they are bound: 1.0 and 1.00 are equal numbers but other literals, and what a subclass prints is no matter.
        parameters = to_literals(parameters)
        key = (sql, parameters, settings, self.who.for_statement(sql), now if timed else None, aims)

        def work() -> Compiled:
            cached = self.memory.compiled.get((*key, self.own.cache_key))
            if cached is not None:
                return cached
            with self._compile_slot():
                compiled = compile_query(sql, self.own.schema, settings, parameters, now, self.who, aims)
            return self.memory.compiled.put((*key, self.own.cache_key), compiled)

        return self.own.with_refresh(work)

    def _compile_slot(self) -> AbstractContextManager[None]:
        """To work in Python alone, where all sessions take turns anyway: one account's many are as two of another's."""
        return self.memory.turns.acquire(self.role.account.name, pulse.check_now)

    def find_catalog_query(self, sql: str, parameters: Sequence[Parameter] = ()) -> CatalogQuery | None:
        """The statement, where it reads the catalog alone. Free, and asks the engine nothing."""
        now = self.clock()
        bound = to_literals(parameters)
        key = (sql, bound, self.who.for_statement(sql), now if _uses_current_time(sql) else None, self.own.cache_key)
        cached = self.memory.about_catalog.get(key)
        if cached is None:
            with self._compile_slot():
                read = read_catalog_query(sql, bound, self.own.schema.schema, self.who, now)
            cached = self.memory.about_catalog.put(key, read or "no")
        return None if cached == "no" else cached

    def execute_query(self, sql: str, parameters: Sequence[Parameter]) -> StatementResult:
        """What ends because the statement was canceled, or its time is over, says that."""
        try:
            with locate_error(sql):
                answer = self._execute(sql, parameters)
                return replace(answer, rows=RESULT_QUOTA.count_rows(self.role.account.name, answer.rows))
        except QueryCanceled:  # it says already what became of the run
            raise
        except OperationalError:
            self.dataset.runs.check_cancellation(self.buyer.ticket)
            raise

    def _execute(self, sql: str, parameters: Sequence[Parameter]) -> StatementResult:
        catalog = self.find_catalog_query(sql, parameters)
        if catalog is not None and self.own.refresh():  # a catalog shows what there is now
            catalog = self.find_catalog_query(sql, parameters)
        if catalog is not None:
            result = database.run_catalog_query(self.shown(), catalog, self._seconds_left())
            columns = tuple(OutputColumn(column.name, column.type, column.spelling) for column in result.columns)
            return StatementResult(columns, result.rows, [(None,) * len(columns) for _ in result.rows])
        now = self.clock()
        compiled = self.compile_statement(sql, parameters, now)
        answer = self._charge_and_build(compiled)
        aims = aims_from_pilot(compiled, answer) if compiled.pilot else None
        if aims is None:
            return answer
        return combine_with_pilot(
            answer, self._charge_and_build(self.compile_statement(sql, parameters, now, aims), (compiled, answer))
        )

    def _charge_and_build(
        self, compiled: Compiled, pilot: tuple[Compiled, StatementResult] | None = None
    ) -> StatementResult:
        self._output_columns(compiled)  # a mistake in post-processing shows before anything is charged
        served = self.buyer.find_entitlements(compiled)
        if served is None:
            require_epsilon_allowed(compiled, self.role.payers, pilot)
        return self._build_result(compiled, served)

    def _build_result(self, compiled: Compiled, served: tuple[Entitlement, ...] | None) -> StatementResult:
        """The answer, made of releases that are bought; or of those that are `served`, and then nothing is charged."""
        if served:
            cached = self.memory.answered.get(self._result_key(compiled, [claim.release for claim in served]))
            if cached is not None:  # of the same releases, which never change
                return replace(cached.copy_uncharged(), settings=compiled.settings)
        public = [self._load_public_table(read) for read in compiled.reads]
        reuse = ReusePlan(compiled) if served is not None else self._reuse_plan(compiled)
        bought = self.buyer.charge_and_run(compiled, reuse, public, served)
        tables = [*public, *build_released_tables(reuse.compiled, bought.releases, self.settings.nonnegative)]
        result = sandbox.run_query(compiled.post_sql, tables, self._seconds_left())
        answer = build_query_result(compiled, reuse.notices, result, bought.loss, bought.receipts)
        if bought.numbers and not compiled.reads and not reuse.sources and _is_cacheable(answer):
            self.memory.answered.put(self._result_key(compiled, bought.numbers), answer.copy_uncharged())
        return answer

    def _result_key(self, compiled: Compiled, releases: Sequence[int]) -> Hashable:
        """An account's answer, made in one way of releases that it has paid for."""
        return (self.role.account.name, self._postprocessing_key(compiled), *releases)

    def _seconds_left(self) -> float:
        """That are left for what follows: a cancel ends it too."""
        remaining = self.dataset.runs.seconds_left(self.buyer.ticket)
        return self.timeout if remaining is None else min(remaining, self.timeout)

    def _postprocessing_key(self, compiled: Compiled) -> Hashable:
        """What a statement makes of its releases and public tables."""
        return compiled.postprocessing, self.settings.nonnegative

    def _load_public_table(self, read: PublicStep) -> SandboxTable:
        if read.sql is not None:
            return build_public_table(read, self.dataset.engine.execute_public(read.sql, {}))
        if read.place == CREATED_SCHEMA:
            columns = tuple((column.name, column.type) for column in read.columns)
            return ArrayTable(read.name, columns, self.own.load_arrays(read.table))
        table = find_catalog(self.shown(), self.who, read.place, read.table)
        return build_public_table(read, table.rows if table is not None else ())

    def _reuse_plan(self, compiled: Compiled) -> ReusePlan:
        """The statement with what the account's own releases tell of it.

        Nothing is derived where an error was asked for: noise that is as wide on average may be beyond it more often,
        and a pilot must say again what it said.
        """
        if not self.settings.derive or compiled.settings.has_error_goal:
            return ReusePlan(compiled)
        return find_reusable(compiled, self.buyer.release_requests(compiled), self.dataset.ledger, self.role.account)

    def _output_columns(self, compiled: Compiled) -> tuple[OutputColumn, ...]:
        key = self._postprocessing_key(compiled)
        return self.memory.described.get(key) or self.memory.described.put(key, self._describe_outputs(compiled))

    def _describe_outputs(self, compiled: Compiled) -> tuple[OutputColumn, ...]:
        described = sandbox.describe_query(compiled.post_sql, build_empty_tables(compiled))
        return described[: len(compiled.errors)] if compiled.errors else described

    def charge_releases(self, compiled: Compiled) -> PurchasedReleases:
        """The releases of a statement that has no post-processing of its own."""
        served = self.buyer.find_entitlements(compiled)
        return self.buyer.charge_and_run(compiled, ReusePlan(compiled), [], served)

    def require_covered(self, parts: Sequence[Compiled], text: str, settings: Settings) -> None:
        """That a statement which buys these, one after another, may buy all. Free."""
        self.buyer.require_covered([(part, self._reuse_plan(part)) for part in parts], text, settings)

    def is_stored(self, compiled: Compiled) -> bool:
        """Whether the account has all of it already."""
        return self.buyer.find_entitlements(compiled) is not None

    def explain_compiled(
        self, settings: Settings, compile_with: Callable[[Settings], Compiled], outputs: Sequence[tuple[str, str]]
    ) -> Explanation:
        """Of such a statement."""
        context = PricingContext(self.dataset.ledger, self.role.payers, self.clock())
        kinds = compile_noise_kinds(settings, lambda kind: PilotedStatement(compile_with(kind)))
        quotes = [
            quote_statement(
                statement, ReusePlan(statement.compiled), self.buyer.release_requests(statement.compiled), context
            )
            for statement in kinds
        ]
        explanation = explain(kinds[0].compiled, self.dataset.engine.name, outputs)
        return with_declared_sources(add_prices(explanation, quotes, context), self.dataset.resolved)

    def explain(self, sql: str, parameters: Sequence[Parameter]) -> Explanation:
        context = PricingContext(self.dataset.ledger, self.role.payers, self.clock())

        def compile_with(settings: Settings) -> PilotedStatement:
            compiled_statement = self.compile_statement(sql, parameters, context.now, settings=settings)
            stored = (
                context.find_stored(self.buyer.release_requests(compiled_statement))
                if compiled_statement.pilot
                else None
            )
            answer = (
                None if stored is None else self._build_result(compiled_statement, stored)
            )  # of what is stored: nothing is charged
            return resolve_pilot(
                compiled_statement,
                answer,
                lambda aims: self.compile_statement(sql, parameters, context.now, aims, settings),
            )

        kinds = compile_noise_kinds(self.settings.statement, compile_with)
        quotes = [
            quote_statement(
                statement,
                self._reuse_plan(statement.compiled),
                self.buyer.release_requests(statement.compiled),
                context,
            )
            for statement in kinds
        ]
        compiled = kinds[0].compiled
        with locate_error(sql):
            outputs = [(column.name, format_column_type(column)) for column in self._output_columns(compiled)]
        explained = explain(compiled, self.dataset.engine.name, outputs)
        return with_declared_sources(add_prices(explained, quotes, context), self.dataset.resolved)

    def describe(self, sql: str, parameters: Sequence[Parameter] = ()) -> tuple[OutputColumn, ...]:
        """The output columns of a query."""
        catalog = self.find_catalog_query(sql, parameters)
        if catalog is not None:
            described = database.describe_catalog_query(self.shown(), catalog)
            return tuple(OutputColumn(column.name, column.type, column.spelling) for column in described)
        compiled = self.compile_statement(sql, parameters)
        with locate_error(sql):
            return self._output_columns(compiled)


def _uses_current_time(sql: str) -> bool:
    return any(word in sql.lower() for word in ("now", "current", "localtime", "timestamp", "today"))


def _is_cacheable(answer: StatementResult) -> bool:
    return len(answer.rows) <= MAX_CACHED_ROWS and estimate_size(answer.rows) <= MAX_CACHED_BYTES
