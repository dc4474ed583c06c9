"""One account's queries, from text to answer: compile, buy the releases, post-process.

Compiling, describing and explaining are free.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Literal

from dpsql.base import cancellation
from dpsql.base.fair_sharing import RESULT_QUOTA, FairSemaphore, estimate_size
from dpsql.base.lru_cache import LruCache
from dpsql.compiler.accuracy import ErrorAims
from dpsql.compiler.catalog.query import CatalogQuery, read_catalog_query
from dpsql.compiler.catalog.tables import find_catalog_table as find_catalog
from dpsql.compiler.compile import Compiled, PublicStep, compile_query
from dpsql.compiler.norm_steps import KnownNorms
from dpsql.compiler.parse.commands import read_command
from dpsql.compiler.parse.parameters import Parameter, to_literals
from dpsql.compiler.parse.parser import Tokens, copy_tokens, locate_error, tokenize
from dpsql.compiler.settings import Settings
from dpsql.errors import OperationalError, QueryCanceled, Unsupported
from dpsql.privacy.loss import sum_losses
from dpsql.privacy.release import Release, release_from_bytes
from dpsql.schema.model import CREATED_SCHEMA, Schema
from dpsql.session.artifacts.namespace import NamespaceCache, ObjectNamespace
from dpsql.session.explain import Explanation, explain, with_declared_sources
from dpsql.session.pilot import (
    NormPurchase,
    PilotedStatement,
    aims_from_pilot,
    choose_norms,
    combine_with_pilot,
    require_epsilon_allowed,
    resolve_pilot,
    with_undecided_histograms,
)
from dpsql.session.postprocess import catalog_sandbox, sandbox
from dpsql.session.postprocess.release_tables import build_empty_tables, build_public_table, build_released_tables
from dpsql.session.postprocess.sandbox import ArrayTable, OutputColumn, SandboxTable
from dpsql.session.pricing import PricingContext, add_prices, compile_noise_kinds, quote_statement
from dpsql.session.purchase import Purchase, PurchasedReleases, StoredReleases
from dpsql.session.result import StatementResult, build_query_result, format_column_type
from dpsql.session.reuse import ReusePlan, find_candidates, plan_reuse
from dpsql.session.statement_context import StatementContext

MAX_CACHED = 256
"""Compiled statements, and answers, that are remembered."""

MAX_CACHED_ROWS, MAX_CACHED_BYTES = 1000, 256 * 1024
"""Of an answer that is remembered."""

MAX_CACHED_TEXTS, MAX_CACHED_CHARACTERS = 64, 4_000
"""Texts whose tokens are remembered, and of each."""

NO_NORMS: KnownNorms = MappingProxyType({})

MAX_COMPILING = 2
"""Statements of one account that are compiled at a time; further ones wait."""


class SessionCache:
    """Recent work, to be reused. Sessions on one dataset may share it: what an account paid for is kept under its
    name."""

    def __init__(self, max_size: int = MAX_CACHED) -> None:
        self.compiled: LruCache[Compiled] = LruCache(max_size)
        self.output_columns: LruCache[tuple[OutputColumn, ...]] = LruCache(max_size)
        self.results: LruCache[StatementResult] = LruCache(max_size)
        self.catalog_queries: LruCache[CatalogQuery | Literal["no"]] = LruCache(max_size)
        self.namespace = NamespaceCache()
        self.tokens: LruCache[Tokens] = LruCache(MAX_CACHED_TEXTS)
        self.compile_slots = FairSemaphore(MAX_COMPILING)

    def tokenize(self, sql: str) -> Tokens:
        """The tokens of a text: a statement is read before its values are known and again with them."""
        tokens = self.tokens.get(sql)
        if tokens is None:
            tokens = tokenize(sql)
            if len(sql) <= MAX_CACHED_CHARACTERS:
                self.tokens.put(sql, tokens)
        return copy_tokens(tokens)


@dataclass(frozen=True)
class QueryExecutor:
    """The queries of one statement. `visible_schema` is the schema as catalogs show it, which takes compiling its
    views."""

    context: StatementContext
    purchase: Purchase
    cache: SessionCache
    visible_schema: Callable[[], Schema]

    @cached_property
    def namespace(self) -> ObjectNamespace:
        """The models and synthetic tables of the account."""
        dataset = self.context.dataset
        return ObjectNamespace(dataset.ledger, self.context.account.name, dataset.resolved, self.cache.namespace)

    def with_settings(self, statement: Settings) -> QueryExecutor:
        """For a part of the statement, which is charged with the whole."""
        return replace(self, context=self.context.with_settings(statement))

    def compile_statement(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        now: dt.datetime | None = None,
        aims: ErrorAims | None = None,
        settings: Settings | None = None,
        norms: KnownNorms = NO_NORMS,
    ) -> Compiled:
        """The statement as it would run; undecided where it needs norms that are not among these. Free."""
        now, settings = now or self.context.clock(), settings or self.context.settings.statement
        views = self.context.dataset.schema.views
        timed = _uses_current_time(sql) or any(_uses_current_time(view.sql) for view in views)
        # As they are bound: 1.0 and 1.00 are equal numbers but other literals, and what a subclass prints is no matter.
        parameters = to_literals(parameters)
        chosen = tuple(sorted((name, norm.counts) for name, norm in norms.items()))
        key = (
            sql,
            parameters,
            settings,
            self.context.identity.for_statement(sql),
            now if timed else None,
            aims,
            chosen,
        )

        def compile_or_recall() -> Compiled:
            cached = self.cache.compiled.get((*key, self.namespace.cache_key))
            if cached is not None:
                return cached
            with self._compile_slot():
                compiled = compile_query(
                    sql,
                    self.namespace.schema,
                    settings,
                    parameters,
                    now,
                    self.context.identity,
                    aims,
                    self.cache.tokenize,
                    norms,
                )
            return self.cache.compiled.put((*key, self.namespace.cache_key), compiled)

        return self.namespace.with_refresh(compile_or_recall)

    def _compile_slot(self) -> AbstractContextManager[None]:
        """Compiling holds Python's interpreter lock: an account with many sessions gets at most two slots."""
        return self.cache.compile_slots.acquire(self.context.account.name, cancellation.check_now)

    def find_catalog_query(self, sql: str, parameters: Sequence[Parameter] = ()) -> CatalogQuery | None:
        """The statement, if it reads nothing but the catalog. Free, and asks the engine nothing."""
        now = self.context.clock()
        bound = to_literals(parameters)
        identity, timed = self.context.identity.for_statement(sql), _uses_current_time(sql)
        key = (sql, bound, identity, now if timed else None, self.namespace.cache_key)
        cached = self.cache.catalog_queries.get(key)
        if cached is None:
            with self._compile_slot():
                schema, tokenizer = self.namespace.schema.schema, self.cache.tokenize
                read = read_catalog_query(sql, bound, schema, self.context.identity, now, tokenizer)
            cached = self.cache.catalog_queries.put(key, read or "no")
        return None if cached == "no" else cached

    def execute_nested(self, sql: str, parameters: Sequence[Parameter]) -> StatementResult:
        """Run a query that stands within another statement."""
        if read_command(sql, parameters) is not None:
            raise Unsupported("a query is expected here", hint="SELECT …, WITH … or VALUES ….")
        catalog = self.find_catalog_query(sql, parameters)
        if catalog is not None and catalog.sets:  # it would be said to be set, and would not be
            raise Unsupported("set_config() stands in a statement of its own", hint="SELECT set_config(…), or SET ….")
        return self.execute_query(sql, to_literals(parameters))

    def execute_query(self, sql: str, parameters: Sequence[Parameter]) -> StatementResult:
        """Run a query. If it fails since it was canceled or its time is over, the error says so."""
        try:
            with locate_error(sql):
                answer = self._execute(sql, parameters)
                return replace(answer, rows=RESULT_QUOTA.count_rows(self.context.account.name, answer.rows))
        except QueryCanceled:  # it says already what became of the run
            raise
        except OperationalError:
            self.context.check_cancellation()
            raise

    def _execute(self, sql: str, parameters: Sequence[Parameter]) -> StatementResult:
        catalog = self.find_catalog_query(sql, parameters)
        if catalog is not None and self.namespace.refresh():  # a catalog shows what there is now
            catalog = self.find_catalog_query(sql, parameters)
        if catalog is not None:
            result = catalog_sandbox.run_catalog_query(self.visible_schema(), catalog, self.context.seconds_left())
            columns = tuple(OutputColumn(column.name, column.type, column.spelling) for column in result.columns)
            return StatementResult(columns, result.rows, [(None,) * len(columns) for _ in result.rows])
        now = self.context.clock()
        norms = NormPurchase()
        compiled = choose_norms(
            self.compile_statement(sql, parameters, now),
            lambda known: self.compile_statement(sql, parameters, now, norms=known),
            partial(self._buy_norms, norms),
            norms,
        )
        answer = self._charge_and_build(compiled)
        aims = aims_from_pilot(compiled, answer) if compiled.pilot else None
        if aims is not None:
            followed = self.compile_statement(sql, parameters, now, aims, norms=norms.known)
            answer = combine_with_pilot(answer, self._charge_and_build(followed, (compiled, answer)))
        return norms.combine(answer)

    def _buy_norms(self, norms: NormPurchase, statement: Compiled, question: Compiled) -> Mapping[int, Release]:
        """The histograms of a statement, charged if the account does not have them and its budget covers both."""
        self._output_columns(question)  # a mistake in post-processing shows before anything is charged
        served = self.purchase.find_entitlements(statement)
        if served is None:
            require_epsilon_allowed(question, self.context.payers)
            whole = with_undecided_histograms(question)  # also those that wait for the first
            self.purchase.require_covered([(whole, ReusePlan(whole))], question.statement, question.settings)
        public = [self._load_public_table(read) for read in statement.reads]
        bought = self.purchase.charge_and_run(statement, ReusePlan(statement), public, served, prepares=True)
        norms.loss = sum_losses([norms.loss, bought.loss])
        norms.receipts = tuple(dict.fromkeys((*norms.receipts, *bought.receipts)))
        return bought.releases

    def _charge_and_build(
        self, compiled: Compiled, pilot: tuple[Compiled, StatementResult] | None = None
    ) -> StatementResult:
        self._output_columns(compiled)  # a mistake in post-processing shows before anything is charged
        stored = self.purchase.find_stored(compiled, self._may_derive(compiled))
        if stored.served is None:
            require_epsilon_allowed(compiled, self.context.payers, pilot)
        return self._build_result(compiled, stored)

    def _build_result(self, compiled: Compiled, stored: StoredReleases) -> StatementResult:
        """The answer: from new releases, which are charged; or from stored ones that serve all of it, for free."""
        served = stored.served
        if served:
            cached = self.cache.results.get(self._result_key(compiled, [entitlement.release for entitlement in served]))
            if cached is not None:  # of the same releases, which never change
                return replace(cached.copy_uncharged(), settings=compiled.settings)
        public = [self._load_public_table(read) for read in compiled.reads]
        reuse = plan_reuse(compiled, stored.candidates)
        bought = self.purchase.charge_and_run(compiled, reuse, public, served)
        tables = [*public, *build_released_tables(reuse.compiled, bought.releases, self.context.settings.nonnegative)]
        result = sandbox.run_query(compiled.post_sql, tables, self.context.seconds_left())
        answer = build_query_result(compiled, reuse.notices, result, bought.loss, bought.receipts)
        if bought.numbers and not compiled.reads and not reuse.sources and _is_cacheable(answer):
            self.cache.results.put(self._result_key(compiled, bought.numbers), answer.copy_uncharged())
        return answer

    def _result_key(self, compiled: Compiled, releases: Sequence[int]) -> Hashable:
        """Identifies an account's answer: the releases that it has paid for, and the post-processing of them."""
        return (self.context.account.name, self._postprocessing_key(compiled), *releases)

    def _postprocessing_key(self, compiled: Compiled) -> Hashable:
        """Identifies what a statement computes from its releases and public tables."""
        return compiled.postprocessing, self.context.settings.nonnegative

    def _load_public_table(self, read: PublicStep) -> SandboxTable:
        if read.sql is not None:
            return build_public_table(read, self.context.dataset.engine.execute_public(read.sql, {}))
        if read.place == CREATED_SCHEMA:
            columns = tuple((column.name, column.type) for column in read.columns)
            return ArrayTable(read.name, columns, self.namespace.load_arrays(read.table))
        table = find_catalog(self.visible_schema(), self.context.identity, read.place, read.table)
        return build_public_table(read, table.rows if table is not None else ())

    def _reuse_plan(self, compiled: Compiled) -> ReusePlan:
        """The statement with what the account's own releases tell of it."""
        if not self._may_derive(compiled):
            return ReusePlan(compiled)
        requests, ledger = self.purchase.release_requests(compiled), self.context.dataset.ledger
        with ledger.read_snapshot():
            candidates = find_candidates(compiled, requests, ledger, self.context.account)
        return plan_reuse(compiled, candidates)

    def _may_derive(self, compiled: Compiled) -> bool:
        """Nothing is derived where an error was asked for: noise that is as wide on average may be beyond it more
        often, and a pilot must say again what it said."""
        return self.context.settings.derive and not compiled.settings.has_error_goal

    def _output_columns(self, compiled: Compiled) -> tuple[OutputColumn, ...]:
        key = self._postprocessing_key(compiled)
        return self.cache.output_columns.get(key) or self.cache.output_columns.put(
            key, self._describe_outputs(compiled)
        )

    def _describe_outputs(self, compiled: Compiled) -> tuple[OutputColumn, ...]:
        described = sandbox.describe_query(compiled.post_sql, build_empty_tables(compiled))
        return described[: len(compiled.errors)] if compiled.errors else described

    def charge_releases(self, compiled: Compiled) -> PurchasedReleases:
        """The releases of a statement that has no post-processing of its own."""
        served = self.purchase.find_entitlements(compiled)
        return self.purchase.charge_and_run(compiled, ReusePlan(compiled), [], served)

    def require_covered(self, parts: Sequence[Compiled], text: str, settings: Settings) -> None:
        """That a statement which buys these, one after another, may buy all. Free."""
        self.purchase.require_covered([(part, self._reuse_plan(part)) for part in parts], text, settings)

    def is_stored(self, compiled: Compiled) -> bool:
        """Whether the account has all of it already."""
        return self.purchase.find_entitlements(compiled) is not None

    def explain_compiled(
        self, settings: Settings, compile_with: Callable[[Settings], Compiled], outputs: Sequence[tuple[str, str]]
    ) -> Explanation:
        """Explain a CREATE of a model or a synthetic table."""
        pricing = PricingContext(self.context.dataset.ledger, self.context.payers, self.context.clock())
        kinds = compile_noise_kinds(settings, lambda kind: PilotedStatement(compile_with(kind)))
        quotes = [
            quote_statement(
                statement, ReusePlan(statement.compiled), self.purchase.release_requests(statement.compiled), pricing
            )
            for statement in kinds
        ]
        explanation = explain(kinds[0].compiled, self.context.dataset.engine.name, outputs)
        return with_declared_sources(add_prices(explanation, quotes, pricing), self.context.dataset.resolved)

    def explain(self, sql: str, parameters: Sequence[Parameter]) -> Explanation:
        pricing = PricingContext(self.context.dataset.ledger, self.context.payers, self.context.clock())

        def compile_with(settings: Settings) -> PilotedStatement:
            norms = NormPurchase()
            compiled_statement = self._compile_with_paid_norms(sql, parameters, pricing, settings, norms)
            stored = (
                pricing.find_stored(self.purchase.release_requests(compiled_statement))
                if compiled_statement.pilot
                else None
            )
            answer = (
                None if stored is None else self._build_result(compiled_statement, StoredReleases(stored))
            )  # of what is stored: nothing is charged
            return resolve_pilot(
                compiled_statement,
                answer,
                lambda aims: self.compile_statement(sql, parameters, pricing.now, aims, settings, norms.known),
            )

        kinds = [_with_histograms(kind) for kind in compile_noise_kinds(self.context.settings.statement, compile_with)]
        quotes = [
            quote_statement(
                statement,
                # what is told by other releases depends on norms, which are not there yet
                ReusePlan(statement.compiled) if statement.compiled.undecided else self._reuse_plan(statement.compiled),
                self.purchase.release_requests(statement.compiled),
                pricing,
            )
            for statement in kinds
        ]
        compiled = kinds[0].compiled
        with locate_error(sql):
            outputs = [(column.name, format_column_type(column)) for column in self._output_columns(compiled)]
        explained = explain(compiled, self.context.dataset.engine.name, outputs)
        return with_declared_sources(add_prices(explained, quotes, pricing), self.context.dataset.resolved)

    def compile_with_paid_norms(
        self, sql: str, parameters: Sequence[Parameter] = (), settings: Settings | None = None
    ) -> Compiled:
        """The statement with the norms that the account has paid for; undecided where it has not. Free."""
        pricing = PricingContext(self.context.dataset.ledger, self.context.payers, self.context.clock())
        return self._compile_with_paid_norms(sql, parameters, pricing, settings, NormPurchase())

    def _compile_with_paid_norms(
        self,
        sql: str,
        parameters: Sequence[Parameter],
        pricing: PricingContext,
        settings: Settings | None,
        norms: NormPurchase,
    ) -> Compiled:
        return choose_norms(
            self.compile_statement(sql, parameters, pricing.now, settings=settings),
            lambda known: self.compile_statement(sql, parameters, pricing.now, settings=settings, norms=known),
            lambda statement, _: self._stored_norms(statement, pricing),
            norms,
        )

    def _stored_norms(self, statement: Compiled, pricing: PricingContext) -> Mapping[int, Release] | None:
        """The histograms of a statement, where the account has paid for all of them."""
        claims = pricing.find_stored(self.purchase.release_requests(statement))
        if claims is None or any(claim.body is None for claim in claims):
            return None
        bodies = [claim.body for claim in claims if claim.body is not None]
        return {index: release_from_bytes(body) for index, body in enumerate(bodies)}

    def describe(self, sql: str, parameters: Sequence[Parameter] = ()) -> tuple[OutputColumn, ...]:
        """The output columns of a query."""
        catalog = self.find_catalog_query(sql, parameters)
        if catalog is not None:
            described = catalog_sandbox.describe_catalog_query(self.visible_schema(), catalog)
            return tuple(OutputColumn(column.name, column.type, column.spelling) for column in described)
        compiled = self.compile_statement(sql, parameters)
        with locate_error(sql):
            return self._output_columns(compiled)


def _with_histograms(statement: PilotedStatement) -> PilotedStatement:
    compiled = with_undecided_histograms(statement.compiled)
    pilot = compiled if statement.pilot is statement.compiled else statement.pilot
    return replace(statement, compiled=compiled, pilot=pilot)


def _uses_current_time(sql: str) -> bool:
    return any(word in sql.lower() for word in ("now", "current", "localtime", "timestamp", "today"))


def _is_cacheable(answer: StatementResult) -> bool:
    return len(answer.rows) <= MAX_CACHED_ROWS and estimate_size(answer.rows) <= MAX_CACHED_BYTES
