"""One account's queries, from text to answer: compile, buy the releases, post-process.

Compiling, describing and explaining are free.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Literal, TypeVar

from dpsql.base import cancellation
from dpsql.base.datetime_text import CURRENT_TIME_WORDS
from dpsql.base.fair_sharing import RESULT_QUOTA, FairSemaphore, estimate_size
from dpsql.base.lru_cache import LruCache
from dpsql.compiler.accuracy import ErrorAims, compare_errors
from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.catalog.query import CatalogQuery, read_catalog_query
from dpsql.compiler.catalog.tables import find_catalog_table as find_catalog
from dpsql.compiler.compile import Compiled, PlannedQuery, PublicStep, plan_query
from dpsql.compiler.norm_steps import KnownNorms
from dpsql.compiler.parse.commands import read_command
from dpsql.compiler.parse.parameters import Parameter, to_literals
from dpsql.compiler.parse.parser import Tokens, copy_tokens, locate_error, tokenize
from dpsql.compiler.render.relations import render_match_count
from dpsql.compiler.rewrite.count_matches import CountsNeeded
from dpsql.compiler.settings import EmptyGroups, Settings
from dpsql.errors import Error, InternalError, InvalidParameter, OperationalError, QueryCanceled, Unsupported
from dpsql.ledger.base import Entitlement, all_add_epsilons
from dpsql.privacy.filters import cost_of_losses
from dpsql.privacy.loss import sum_losses
from dpsql.privacy.release import Release, release_from_bytes
from dpsql.schema.model import CREATED_SCHEMA, Resolved, Schema
from dpsql.session.artifacts.namespace import NamespaceCache, ObjectNamespace
from dpsql.session.explain import Explanation, explain, with_declared_sources
from dpsql.session.noise_choice import NoiseChoice, NoiseOption, choose_noise
from dpsql.session.norm_purchase import DecidedStatement, NormPurchase, choose_norms, with_undecided_histograms
from dpsql.session.pilot import (
    PilotedStatement,
    aims_from_pilot,
    combine_with_pilot,
    require_epsilon_allowed,
    resolve_pilot,
)
from dpsql.session.postprocess import catalog_sandbox, sandbox
from dpsql.session.postprocess.empty_groups import count_hidden_groups, unseen_selection_notices
from dpsql.session.postprocess.release_tables import build_empty_tables, build_public_table, build_released_tables
from dpsql.session.postprocess.sandbox import ArrayTable, OutputColumn, SandboxTable
from dpsql.session.pricing import (
    PricingContext,
    StatementQuote,
    add_prices,
    compile_noise_kinds,
    put_chosen_first,
    quote_statement,
)
from dpsql.session.purchase import Purchase, PurchasedReleases, StoredReleases
from dpsql.session.result import StatementResult, build_query_result, format_column_type
from dpsql.session.reuse import ReusePlan, find_candidates, plan_reuse
from dpsql.session.statement_context import StatementContext

MAX_CACHED = 256
"""Compiled statements, and answers, that are remembered."""

MAX_CACHED_ROWS, MAX_CACHED_BYTES = 1000, 256 * 1024
"""Of an answer that is remembered."""

MAX_CACHED_PLANS = 16
"""Plans of statements whose norms are being chosen."""

MAX_CACHED_TEXTS, MAX_CACHED_CHARACTERS = 64, 4_000
"""Texts whose tokens are remembered, and of each."""

NO_NORMS: KnownNorms = MappingProxyType({})

T = TypeVar("T")

NORMS_CANCELED_HINT = "The charge for the histogram of units stands; asking again is charged for the question alone."

ALL_LISTED_NOTICE = (
    "this answer was paid for with all groups, so empty ones are in it; ask for COUNT(*) as well to leave them out,"
    " which is charged as a new question"
)

MAX_COMPILING = 2
"""Statements of one account that are compiled at a time; further ones wait."""


class SessionCache:
    """Recent work, to be reused. Sessions on one dataset may share it: what an account paid for is kept under its
    name."""

    def __init__(self, max_size: int = MAX_CACHED) -> None:
        self.compiled: LruCache[Compiled] = LruCache(max_size)
        self.plans: LruCache[PlannedQuery] = LruCache(MAX_CACHED_PLANS)
        self.decided: LruCache[DecidedStatement] = LruCache(max_size)
        self.output_columns: LruCache[tuple[OutputColumn, ...]] = LruCache(max_size)
        self.results: LruCache[StatementResult] = LruCache(max_size)
        self.catalog_queries: LruCache[CatalogQuery | Literal["no"]] = LruCache(max_size)
        self.match_counts: LruCache[int] = LruCache(max_size)
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
class _Question:
    """A statement before anything is bought for it, with the norms that the account has paid for.

    `stored` is what was looked up last: what it has of the question, or of the histograms that the question needs
    first. `failure` is what these histograms say, where it is not to be answered by them.
    """

    settings: Settings
    now: dt.datetime
    compiled: Compiled
    without_norms: Compiled
    norms: NormPurchase = field(default_factory=NormPurchase)
    stored: StoredReleases | None = None
    paid: bool = False
    failure: InvalidParameter | None = None

    @property
    def may_own_laplace(self) -> bool:
        return self.stored is not None and self.stored.may_own_laplace

    @property
    def begun(self) -> bool:
        """Whether it needs histograms, and they are paid for."""
        return bool(self.norms.known) and (self.failure is not None or not self.compiled.undecided)

    def or_failure(self) -> _Question:
        if self.failure is not None:
            raise self.failure
        return self


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
        timed = _uses_current_time(sql, parameters) or any(_uses_current_time(view.sql) for view in views)
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
            planned = self._plan_statement(sql, parameters, settings, now if timed else None, now, aims is not None)
            with self._compile_slot():
                compiled = planned.compile(aims, norms)
            return self.cache.compiled.put((*key, self.namespace.cache_key), compiled)

        return self.namespace.with_refresh(compile_or_recall)

    def _plan_statement(
        self,
        sql: str,
        parameters: tuple[Parameter, ...],
        settings: Settings,
        read_time: dt.datetime | None,
        now: dt.datetime,
        piloted: bool,
    ) -> PlannedQuery:
        """The statement before its norms are known, which are chosen in several turns. No release is in it."""
        identity = self.context.identity.for_statement(sql)
        key = (sql, parameters, settings, identity, read_time, piloted, self.namespace.cache_key)
        planned = self.cache.plans.get(key)
        if planned is not None:
            return planned
        planned = self.plan_with_counts(
            lambda resolved: plan_query(
                sql,
                resolved,
                settings,
                parameters,
                now,
                self.context.identity,
                self.cache.tokenize,
                piloted=piloted,
            )
        )
        return self.cache.plans.put(key, planned)

    def plan_with_counts(self, plan_on: Callable[[Resolved], T]) -> T:
        """Counts public rows where that decides whether a statement is answered: as any statement over them, free.

        Privacy: the noise of a unit with one row rests on them, so they are those of the registered version.
        """
        resolved, version = self.namespace.schema, self.namespace.cache_key
        while True:
            try:
                with self._compile_slot():
                    return plan_on(resolved)
            except CountsNeeded as needed:
                counted = dict(resolved.counted)
                for count in needed.counts:
                    if count.text in counted:
                        raise InternalError("public rows were counted, and their number is not known") from None
                    key = (count.text, version)
                    matches = self.cache.match_counts.get(key)
                    if matches is None:
                        sql = render_match_count(count.rows, count.columns)
                        ((matches,),) = self.context.dataset.engine.execute_public(sql, {})
                        self.context.dataset.check_unchanged()
                        self.cache.match_counts.put(key, int(matches))
                    counted[count.text] = int(matches)
                resolved = replace(resolved, counted=counted)

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
        question = self._find_question(sql, parameters)
        norms, now, settings, compiled = question.norms, question.now, question.settings, question.compiled
        if compiled.undecided:
            compiled = choose_norms(
                compiled,
                lambda known: self.compile_statement(sql, parameters, now, settings=settings, norms=known),
                partial(self._buy_norms, norms, None if question.stored is None else compiled),
                norms,
            )
        stored = question.stored if compiled is question.compiled else None
        answer = self._charge_and_build(compiled, stored)
        aims = aims_from_pilot(compiled, answer) if compiled.pilot else None
        if aims is not None:
            followed = self.compile_statement(sql, parameters, now, aims, settings, norms.known)
            answer = combine_with_pilot(answer, self._charge_and_build(followed, pilot=(compiled, answer)))
        if settings.empty_groups is not self.context.settings.statement.empty_groups:
            answer = replace(answer, notices=(*answer.notices, *self._groups_notices))
        return norms.combine(answer) if norms.known else answer

    def _find_question(self, sql: str, parameters: Sequence[Parameter]) -> _Question:
        """The statement as `_find_question_as_set`, or with what was paid for while empty groups were set otherwise."""
        question = self._find_question_as_set(sql, parameters)
        if question.paid or question.failure is not None or not self._may_have_others(question.compiled):
            return question.or_failure()
        if question.stored is None:
            stored = self.purchase.find_stored(question.compiled, self._may_derive(question.compiled))
            question = replace(question, stored=stored, paid=stored.served is not None)
        if self._may_be_paid_otherwise(question.compiled, self._find_unpaid(question)):
            other = self._with_other_groups()._find_question_as_set(sql, parameters)
            if self._can_serve(other.compiled) and not self._find_unpaid(other):
                return replace(other, compiled=self._with_asked_groups(other.compiled))
        return question

    def _find_question_as_set(self, sql: str, parameters: Sequence[Parameter]) -> _Question:
        """The statement with the norms that the account has paid for; with the kind of noise that is chosen for it,
        where that is left open. Nothing is charged."""
        now, settings = self.context.clock(), self.context.settings.statement

        def compile_kind(kind: NoiseKind) -> Compiled:
            return self.compile_statement(sql, parameters, now, settings=replace(settings, auto_noise=kind))

        compiled = compile_kind(settings.auto_noise)
        if not compiled.settings.has_open_noise or not compiled.steps:
            if not compiled.undecided:
                return _Question(settings, now, compiled, compiled)
            return self._look_up(sql, parameters, now, settings, compiled)

        def look_up(kind: NoiseKind) -> _Question:
            return self._look_up(sql, parameters, now, replace(settings, auto_noise=kind), compile_kind(kind))

        gaussian = look_up(NoiseKind.GAUSSIAN)
        same_cost = all_add_epsilons(self.context.payers)
        if gaussian.paid or not (same_cost or gaussian.may_own_laplace or not self._covers(gaussian)):
            return gaussian
        try:
            compile_kind(NoiseKind.LAPLACE)
        except Error:  # it cannot be had
            return gaussian
        laplace = look_up(NoiseKind.LAPLACE)
        questions = {NoiseKind.GAUSSIAN: gaussian, NoiseKind.LAPLACE: laplace}
        options = {
            kind: NoiseOption(question.paid, question.begun, self._covers(question))
            for kind, question in questions.items()
        }
        error = compare_errors(laplace.without_norms, gaussian.without_norms)
        return questions[choose_noise(options, error, same_cost=same_cost).kind]

    # --- what was paid for with other settings of empty groups --------------------------------------------------------
    # A question stays free whichever way it is asked again: one that was paid for without counts lists all groups, and
    # of one with counts all may be listed.

    @property
    def _hides(self) -> bool:
        return self.context.settings.statement.empty_groups is EmptyGroups.HIDE

    @property
    def _groups_notices(self) -> tuple[str, ...]:
        return (ALL_LISTED_NOTICE,) if self._hides else ()

    def _with_other_groups(self) -> QueryExecutor:
        other = EmptyGroups.SHOW if self._hides else EmptyGroups.HIDE
        return self.with_settings(replace(self.context.settings.statement, empty_groups=other))

    def _may_have_others(self, compiled: Compiled) -> bool:
        """Whether it has other releases with the other setting. What follows a pilot has an epsilon by the groups that
        the pilot shows, and so is another statement."""
        if compiled.settings.max_relative_error is not None:
            return False
        return bool(compiled.steps_of_judged_groups) if self._hides else any(step.keys for step in compiled.steps)

    def _may_be_paid_otherwise(self, compiled: Compiled, unpaid: Collection[int]) -> bool:
        """Whether it is worth looking for the others. Without counts nothing is asked less exactly than with them, so
        what both have must be there already."""
        if not self._hides:
            return bool(unpaid)
        return bool(unpaid) and not compiled.undecided and compiled.steps_of_judged_groups.issuperset(unpaid)

    def _can_serve(self, other: Compiled) -> bool:
        """Whether the answer may be read from the releases of the statement with the other setting."""
        return self._hides or not other.fills_holes  # what fills them are the groups that are left

    def _with_asked_groups(self, other: Compiled) -> Compiled:
        return other if self._hides else other.with_all_groups()

    def _find_unpaid(self, question: _Question) -> Collection[int]:
        """The places of steps that would be charged: those that are paid for need not be stored."""
        compiled, stored = question.compiled, question.stored
        if question.paid:
            return ()
        if compiled.undecided or question.failure is not None:
            return range(len(compiled.steps))
        stored = stored or self.purchase.find_stored(compiled, self._may_derive(compiled))
        if stored.served is not None:
            return ()
        return self.purchase.find_unpaid(compiled, plan_reuse(compiled, stored.candidates))

    # --- looking up ---------------------------------------------------------------------------------------------------

    def settings_of(self, sql: str, parameters: Sequence[Parameter]) -> Settings:
        """The settings with the kind of noise that a statement would have now, where kinds cost the same. Free."""
        same_cost = all_add_epsilons(self.context.payers) and self.find_catalog_query(sql, parameters) is None
        return self._find_question(sql, parameters).settings if same_cost else self.context.settings.statement

    def _look_up(
        self, sql: str, parameters: Sequence[Parameter], now: dt.datetime, settings: Settings, compiled: Compiled
    ) -> _Question:
        """What the account has of a statement with one kind of noise."""
        remembered = self._recall_decided(now, settings, compiled)
        if remembered is not None:
            return remembered
        norms, without_norms = NormPurchase(), compiled
        stored = StoredReleases(None)

        def load(statement: Compiled, _: Compiled) -> Mapping[int, Release] | None:
            nonlocal stored
            stored = self.purchase.find_stored(statement, choosing=True)
            if stored.served is None:
                return None
            norms.statements += (statement,)
            norms.releases += tuple(entitlement.release for entitlement in stored.served)
            return self._run_histograms(norms, statement, stored.served)

        failure: InvalidParameter | None = None
        if compiled.undecided:
            try:
                compiled = choose_norms(
                    compiled,
                    lambda known: self.compile_statement(sql, parameters, now, settings=settings, norms=known),
                    load,
                    norms,
                )
            except InvalidParameter as error:  # histograms that show too little
                failure = error
        paid = False
        if not compiled.undecided:
            self._output_columns(compiled)  # a mistake in post-processing shows before the data's state does
            stored = self.purchase.find_stored(compiled, self._may_derive(compiled), choosing=True)
            if norms.known and stored.served is not None:
                self.cache.decided.put(self._decided_key(settings, without_norms), DecidedStatement(compiled, norms))
            paid = stored.served is not None or not plan_reuse(compiled, stored.candidates).missing
        return _Question(settings, now, compiled, without_norms, norms, stored, paid, failure)

    def _recall_decided(self, now: dt.datetime, settings: Settings, compiled: Compiled) -> _Question | None:
        """A statement whose norms were chosen before, where the account has paid for them and for the answer."""
        if not compiled.undecided:
            return None
        decided = self.cache.decided.get(self._decided_key(settings, compiled))
        stored = None if decided is None else self.purchase.find_all_stored(decided.statements)
        norms = None if decided is None or stored is None else decided.match(stored)
        if decided is None or stored is None or norms is None:
            return None
        statement = decided.of_text(compiled.statement)
        self._output_columns(statement)
        return _Question(settings, now, statement, compiled, norms, StoredReleases(stored[-1]), paid=True)

    def _decided_key(self, settings: Settings, compiled: Compiled) -> Hashable:
        """All that the norms of a statement depend on, but for the account's histograms and the version of the data."""
        identity = self.context.identity.for_statement(compiled.statement)
        return self.context.account.name, compiled.meaning, settings, identity, self.namespace.cache_key

    def _covers(self, question: _Question) -> bool:
        """Whether the account's own budget covers what a question would be charged."""
        compiled, stored = question.compiled, question.stored
        if question.paid or stored is None or stored.balance is None:
            return True
        if compiled.norm_steps:
            compiled = with_undecided_histograms(compiled)
        whole = cost_of_losses([s.loss for s in compiled.steps], compiled.settings.epsilon, compiled.conversion)
        if stored.balance.admits(whole):
            return True
        reuse = ReusePlan(compiled) if compiled.undecided else plan_reuse(compiled, stored.candidates)
        return stored.balance.admits(self.purchase.cost_due(compiled, reuse))

    def _buy_norms(
        self, norms: NormPurchase, looked_up: Compiled | None, statement: Compiled, question: Compiled
    ) -> Mapping[int, Release]:
        """The histograms of a statement, charged if the account does not have them and its budget covers both; it does
        not have those of a question that was `looked_up`."""
        self._output_columns(question)  # a mistake in post-processing shows before anything is charged
        served = None if question is looked_up else self.purchase.find_entitlements(statement)
        if served is None:
            require_epsilon_allowed(question, self.context.payers)
            whole = with_undecided_histograms(question)  # also those that wait for the first
            self.purchase.require_covered([(whole, ReusePlan(whole))], question.statement, question.settings)
        try:
            return self._run_histograms(norms, statement, served)
        except QueryCanceled as error:
            if error.hint is not None:  # it tells of a charge; without one, nothing was charged yet
                error.hint = NORMS_CANCELED_HINT
            raise

    def _run_histograms(
        self, norms: NormPurchase, statement: Compiled, served: tuple[Entitlement, ...] | None
    ) -> Mapping[int, Release]:
        public = [self._load_public_table(read) for read in statement.reads]
        bought = self.purchase.charge_and_run(statement, ReusePlan(statement), public, served, prepares=True)
        norms.loss = sum_losses([norms.loss, bought.loss])
        norms.receipts = tuple(dict.fromkeys((*norms.receipts, *bought.receipts)))
        return bought.releases

    def _charge_and_build(
        self,
        compiled: Compiled,
        stored: StoredReleases | None = None,
        pilot: tuple[Compiled, StatementResult] | None = None,
    ) -> StatementResult:
        """The answer to a statement, of which the account has what is `stored`, if that was looked up."""
        self._output_columns(compiled)  # a mistake in post-processing shows before anything is charged
        stored = stored or self.purchase.find_stored(compiled, self._may_derive(compiled))
        if stored.served is None and compiled.settings.has_error_goal:
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
        result = sandbox.run_query(
            compiled.post_sql, tables, self.context.seconds_left(), self.context.identity.time_zone.engine_name
        )
        if not compiled.copies_values:
            result = sandbox.without_overflow(result)
        hidden = count_hidden_groups(reuse.compiled, bought.releases)
        notices = (*reuse.notices, *hidden.notices, *unseen_selection_notices(reuse.compiled, bought.releases))
        answer = build_query_result(compiled, notices, result, bought.loss, bought.receipts)
        if bought.numbers and not compiled.reads and not reuse.sources and _is_cacheable(answer):
            self.cache.results.put(self._result_key(compiled, bought.numbers), answer.copy_uncharged())
        return answer

    def _result_key(self, compiled: Compiled, releases: Sequence[int]) -> Hashable:
        """Identifies an account's answer: the releases that it has paid for, and the post-processing of them."""
        return (self.context.account.name, self._postprocessing_key(compiled), *releases)

    def _postprocessing_key(self, compiled: Compiled) -> Hashable:
        """Identifies what a statement computes from its releases and public tables."""
        return compiled.postprocessing, self.context.settings.nonnegative, self.context.identity.time_zone

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
        quotes, choice = self._quote_compiled(settings, compile_with, pricing)
        explanation = explain(quotes[0].compiled, self.context.dataset.engine.name, outputs)
        return with_declared_sources(add_prices(explanation, quotes, pricing, choice), self.context.dataset.resolved)

    def _quote_compiled(
        self, settings: Settings, compile_with: Callable[[Settings], Compiled], pricing: PricingContext
    ) -> tuple[list[StatementQuote], NoiseChoice | None]:
        """The prices of a CREATE with each kind of noise, the chosen one first."""
        kinds = compile_noise_kinds(settings, lambda kind: PilotedStatement(compile_with(kind)))
        quotes = [
            quote_statement(kind, ReusePlan(kind.compiled), self.purchase.release_requests(kind.compiled), pricing)
            for kind in kinds
        ]
        error = compare_errors(kinds[1].compiled, kinds[0].compiled) if len(kinds) > 1 else None
        return put_chosen_first(quotes, error, pricing)

    def settle_noise(self, settings: Settings, compile_with: Callable[[Settings], Compiled]) -> Settings:
        """The settings of a CREATE with the kind of noise that is chosen for it, where that is left open. Free."""
        if not settings.has_open_noise:
            return settings
        ledger, account = self.context.dataset.ledger, self.context.account
        pricing = PricingContext(ledger, self.context.payers, self.context.clock())
        if not all_add_epsilons(self.context.payers) and not ledger.may_own_laplace(account):
            gaussian = compile_with(settings)
            cost = cost_of_losses([s.loss for s in gaussian.steps], settings.epsilon, gaussian.conversion)
            if ledger.get_balance(account).admits(cost):
                return replace(settings, noise=NoiseKind.GAUSSIAN)
        quotes, _ = self._quote_compiled(settings, compile_with, pricing)
        return replace(settings, noise=quotes[0].compiled.settings.chosen_noise)

    def explain(self, sql: str, parameters: Sequence[Parameter]) -> Explanation:
        pricing = PricingContext(self.context.dataset.ledger, self.context.payers, self.context.clock())
        quotes, choice = self._quote_query(sql, parameters, pricing)
        notices: tuple[str, ...] = ()
        unpaid = [index for index, quote in enumerate(quotes[0].quotes) if not quote.is_paid]
        if self._may_have_others(compiled := quotes[0].compiled) and self._may_be_paid_otherwise(compiled, unpaid):
            others = self._with_other_groups()._quote_query(sql, parameters, pricing)
            if others[0][0].is_paid and self._can_serve(others[0][0].compiled):
                (quotes, choice), notices = others, self._groups_notices
        compiled = self._with_asked_groups(quotes[0].compiled)
        with locate_error(sql):
            outputs = [(column.name, format_column_type(column)) for column in self._output_columns(compiled)]
        explained = explain(compiled, self.context.dataset.engine.name, outputs)
        explained = replace(explained, notices=(*explained.notices, *notices))
        return with_declared_sources(add_prices(explained, quotes, pricing, choice), self.context.dataset.resolved)

    def _quote_query(
        self, sql: str, parameters: Sequence[Parameter], pricing: PricingContext
    ) -> tuple[list[StatementQuote], NoiseChoice | None]:
        """The prices of a query with each kind of noise, the chosen one first."""

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

        settings, error = self.context.settings.statement, None
        kinds = [_with_histograms(kind) for kind in compile_noise_kinds(settings, compile_with)]
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
        if len(kinds) > 1 and kinds[0].compiled.settings.has_open_noise:
            laplace, gaussian = (
                self.compile_statement(sql, parameters, pricing.now, settings=replace(settings, auto_noise=kind))
                for kind in (NoiseKind.LAPLACE, NoiseKind.GAUSSIAN)
            )
            error = compare_errors(laplace, gaussian)
        return put_chosen_first(quotes, error, pricing)

    def buy_norms(self, compile_with: Callable[[KnownNorms], Compiled]) -> NormPurchase:
        """The histograms that a statement of another kind needs first, charged where the account does not have them."""
        norms = NormPurchase()
        choose_norms(compile_with(NO_NORMS), compile_with, partial(self._buy_norms, norms, None), norms)
        return norms

    def find_paid_norms(self, compile_with: Callable[[KnownNorms], Compiled]) -> NormPurchase:
        """Those of them that the account has paid for. Free."""
        pricing = PricingContext(self.context.dataset.ledger, self.context.payers, self.context.clock())
        norms = NormPurchase()
        choose_norms(
            compile_with(NO_NORMS), compile_with, lambda statement, _: self._stored_norms(statement, pricing), norms
        )
        return norms

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


def _uses_current_time(sql: str, parameters: Sequence[Parameter] = ()) -> bool:
    """A parameter may be a word such as today, too."""
    if any(word in str(parameter).lower() for parameter in parameters for word in CURRENT_TIME_WORDS):
        return True
    text = sql.lower()
    return any(word in text for word in ("current", "localtime", "timestamp", *CURRENT_TIME_WORDS)) or (
        _AGE_CALL.search(text) is not None
    )


_AGE_CALL = re.compile(r"\bage\b\"?\s*(?:\(|/\*|--)")
"""age(x) is the age of today."""


def _is_cacheable(answer: StatementResult) -> bool:
    return len(answer.rows) <= MAX_CACHED_ROWS and estimate_size(answer.rows) <= MAX_CACHED_BYTES
