"""One analyst's statements, from text to result.

The order is the law: compile; charge, run, perturb, store (these four in `purchase.py`); post-process; deliver.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

from dpsql.amounts import NO_CHARGE, CellError, Charge
from dpsql.base.cancellation import StatementHandle
from dpsql.base.time_zones import TimeZone
from dpsql.compiler.catalog import show
from dpsql.compiler.catalog.variables import Identity
from dpsql.compiler.clipping import describe_caps
from dpsql.compiler.compile import Compiled
from dpsql.compiler.parse.commands import (
    Command,
    DescribeCommand,
    DescribeQueryCommand,
    DiscardCommand,
    ExplainCommand,
    NoOpCommand,
    ResetCommand,
    SetCommand,
    ShowCommand,
    TransactionCommand,
    TransactionModesCommand,
    read_command,
)
from dpsql.compiler.parse.create_commands import CreateCommand, DropCommand, ShowArtifactsCommand
from dpsql.compiler.parse.cursor_commands import (
    CloseCommand,
    CopyCommand,
    DeallocateCommand,
    FetchCommand,
    FetchDirection,
)
from dpsql.compiler.parse.mechanism_commands import SubmitQuery
from dpsql.compiler.parse.parameters import Parameter, to_literals
from dpsql.compiler.parse.parser import Tokenizer, check_placeholder_style, split_statements
from dpsql.compiler.settings import SessionSettings, Settings
from dpsql.errors import Error, InternalError, relocate_errors
from dpsql.ledger.base import Account, Balance, Receipt
from dpsql.privacy.loss import Loss
from dpsql.privacy.sampling import ExactSampler, Sampler
from dpsql.schema.model import Schema
from dpsql.session.artifacts.create import compile_create, execute_artifact_command, explain_create
from dpsql.session.artifacts.namespace import ObjectNamespace
from dpsql.session.dataset.dataset import Dataset, now_utc
from dpsql.session.explain import Explanation
from dpsql.session.mechanisms.forecast import Forecast, MechanismAnswer, MechanismReply, Number, parse_fraction
from dpsql.session.named_statements import NamedStatements
from dpsql.session.postprocess.sandbox import OutputColumn
from dpsql.session.postprocess.worker_pool import start_worker_pool
from dpsql.session.prepare import PreparedStatement, prepare_statement
from dpsql.session.purchase import Purchase
from dpsql.session.query import QueryExecutor, SessionCache
from dpsql.session.reflection import NamedColumn, NamedTable, reflect_tables, with_view_columns
from dpsql.session.result import (
    StatementResult,
    build_catalog_result,
    build_command_result,
    build_json_result,
    build_show_result,
    build_text_result,
    format_column_type,
)
from dpsql.session.roles import ConnectionRoles, Role, check_settings
from dpsql.session.sql_reference import NamedFunction, NamedSetting, named_functions, named_settings, own_functions
from dpsql.session.statement_context import StatementContext
from dpsql.session.transaction import NO_ROLE, SettingsCommand, SettingValues, initial_state, strip_schema
from dpsql.types import Type
from dpsql.version import VERSION

__all__ = [
    "Balance",
    "CellError",
    "Charge",
    "CloseCommand",
    "CopyCommand",
    "DeallocateCommand",
    "Explanation",
    "FetchCommand",
    "FetchDirection",
    "Forecast",
    "Loss",
    "MechanismAnswer",
    "MechanismReply",
    "NamedColumn",
    "NamedFunction",
    "NamedSetting",
    "NamedTable",
    "Number",
    "OutputColumn",
    "Parameter",
    "PreparedStatement",
    "Receipt",
    "Session",
    "SessionCache",
    "StatementHandle",
    "StatementResult",
    "SubmitQuery",
    "check_placeholder_style",
    "check_settings",
    "parse_fraction",
    "read_command",
    "split_statements",
    "start_worker_pool",
    "to_literals",
]

POSTPROCESS_TIMEOUT = 60.0
"""Seconds that post-processing may take."""


@dataclass
class Session:
    dataset: Dataset
    user: str | None = None
    sampler: Sampler = field(default_factory=ExactSampler)
    clock: Callable[[], dt.datetime] = now_utc
    timeout: float = POSTPROCESS_TIMEOUT
    opened_with: Mapping[str, str] = field(default_factory=dict)  # settings, to which RESET goes back
    cache: SessionCache = field(default_factory=SessionCache)
    process: int = 0  # the number of a connection to a server: what pg_backend_pid() says

    def __post_init__(self) -> None:
        self._roles = ConnectionRoles(self.dataset.schema, self.user, self.opened_with)
        self._state = initial_state(self._roles)
        self._executing, self._preparing = StatementHandle(), StatementHandle()
        self._purchase: Purchase | None = None
        self._named_statements, self._role_of_statements = NamedStatements(), self._state.now.role
        self._told_unknown = set[str]()  # notices on clipping that this session has had

    @property
    def acts_for(self) -> str | None:
        """The account that pays where it is not the user's own."""
        return None if self._state.now.role == NO_ROLE else self._account.name

    @property
    def _account(self) -> Account:
        return self._roles.get_role(self._state.now.role).account

    @property
    def queries(self) -> QueryExecutor:
        """For free questions outside of statements, such as `budget` and `tables`."""
        return self._new_queries(self._new_context(StatementHandle()))

    def _new_context(self, cancel: StatementHandle, settings: Mapping[str, str] | None = None) -> StatementContext:
        """The context of a statement that begins now; `settings` are its own."""
        values = self._state.for_statement(settings or {}).now
        role = self._roles.get_role(values.role)
        cancel.deadline = self.dataset.runs.deadline_after(values.variables.statement_timeout)
        identity = self._build_identity(role, values)
        return StatementContext(self.dataset, role, values, identity, cancel, self.clock, self.timeout)

    def _new_queries(self, context: StatementContext) -> QueryExecutor:
        purchase = Purchase(context, self.sampler)
        return QueryExecutor(context, purchase, self.cache, lambda: self._visible_schema)

    # --- statements --------------------------------------------------------------------------------------------------

    def execute(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        *,
        settings: Mapping[str, str] | None = None,
        handle: StatementHandle | None = None,
    ) -> StatementResult:
        """One statement: a query, or a command such as SET or SHOW.

        `settings` hold for this statement alone, if it asks something. A `handle` may be canceled before its turn has
        come; with one that is `free`, what would be charged is refused before that.
        """
        self._executing, self._purchase = handle or StatementHandle(), None
        if self._role_of_statements != self._state.now.role:
            self._named_statements.change_role()
            self._role_of_statements = self._state.now.role
        try:
            bound = to_literals(parameters)
            command = read_command(sql, bound)
            if isinstance(command, SettingsCommand):
                self.dataset.runs.check_cancellation(self._executing)
                self._state, tag = self._state.apply_command(command)
                self._close_ended_statements(command)
                return build_command_result(tag)
            if command is None and "set_config" in sql.lower():
                self._apply_set_config(sql, bound)
            queries = self._new_queries(self._new_context(self._executing, settings))
            self._purchase = queries.purchase
            with queries.context.scope():
                return self._add_unknown_clipping(_Statement(self, queries).execute(command, sql, bound))
        except Error as error:
            error.charge = self.charged
            if error.statement is None:
                error.statement = sql
            raise

    def _add_unknown_clipping(self, answer: StatementResult) -> StatementResult:
        """What no histogram tells is said once, with the first answer of the session that it concerns."""
        new = tuple(notice for notice in answer.unknown_clipping if notice not in self._told_unknown)
        self._told_unknown.update(new)
        return replace(answer, notices=(*answer.notices, *new)) if new else answer

    def _close_ended_statements(self, command: SettingsCommand) -> None:
        if isinstance(command, DiscardCommand):
            self._named_statements.discard_all()
        elif isinstance(command, TransactionCommand) and not self.in_transaction:
            self._named_statements.end_transaction()

    def _apply_set_config(self, sql: str, parameters: Sequence[Parameter]) -> None:
        """set_config() in a query is SET."""
        query = self.queries.find_catalog_query(sql, parameters)
        for name, value, local in () if query is None else query.sets:
            self._state = self._state.set_value(name, value, local)

    @property
    def charged(self) -> Charge:
        """What the last statement was charged: also where it failed, ran out of time or was canceled after that."""
        return NO_CHARGE if self._purchase is None else self._purchase.charge_so_far

    def cancel(self, handle: StatementHandle | None = None) -> None:
        """From any thread: who waits in `execute` gets QueryCanceled; the run goes on, is stored, and stays paid."""
        self.dataset.runs.cancel_statement(handle or self._executing)
        self.dataset.runs.cancel_statement(self._preparing)

    @property
    def progress(self) -> tuple[int, int]:
        """From any thread: how many of the releases of the statement under way are there, and how many it has."""
        return self._executing.delivered, self._executing.releases

    def prepare(
        self, sql: str, types: Sequence[Type | None] = (), *, settings: Mapping[str, str] | None = None
    ) -> PreparedStatement:
        """The types of a statement's parameters, inferred where they are not given, and its columns.

        Free, and runs nothing: what runs is compiled again with the values.
        """
        with self._free_statement(settings) as statement:
            return statement.prepare(sql, types)

    @contextmanager
    def _free_statement(self, settings: Mapping[str, str] | None) -> Iterator[_Statement]:
        """A statement that charges nothing; a cancel and the deadline end it."""
        self._preparing = StatementHandle()
        queries = self._new_queries(self._new_context(self._preparing, settings))
        with queries.context.scope():
            yield _Statement(self, queries)

    @property
    def in_transaction(self) -> bool:
        return bool(self._state.points)

    @property
    def variables(self) -> tuple[tuple[str, str], ...]:
        """PostgreSQL's settings, as SHOW ALL lists them, with the login and its role."""
        login = self._roles.get_role(NO_ROLE).account.name
        return (*self._state.now.variables.items(), ("session_authorization", login), ("role", self._state.now.role))

    def left_text(self) -> str | None:
        """What is left of the budget after the last statement, as text; None where the ledger cannot be read now."""
        try:
            stored = None if self._purchase is None else self._purchase.balance
            return (stored or self.budget()).left_text
        except Error:
            return None

    @property
    def database(self) -> str:
        """The name that `current_database()` returns."""
        return self.dataset.schema.database

    @property
    def lost(self) -> bool:
        """Whether the connection was lost: never in process; a session on a server can be."""
        return False

    def close(self) -> None:
        """Free the engine: for who opened the dataset for this session alone."""
        self.dataset.close()

    def _build_identity(self, role: Role, values: SettingValues) -> Identity:
        opened = self._roles.initial_values(values.role).own_items
        variables = (*values.own_items, *values.variables.items())
        login = self._roles.get_role(NO_ROLE).account.name
        return Identity(role.account.name, self.dataset.schema.database, VERSION, variables, login, opened,
                        self.process, values.time_zone)  # fmt: skip

    @property
    def time_zone(self) -> TimeZone:
        """In which local times are read, and moments are shown as text."""
        return self._state.now.time_zone

    @property
    def settings(self) -> SessionSettings:
        return self._state.now.settings

    def set(self, name: str, value: str) -> None:
        self._state = self._state.set_value(name.lower(), value)

    def explain(
        self, sql: str, parameters: Sequence[Parameter] = (), *, settings: Mapping[str, str] | None = None
    ) -> Explanation:
        """What the statement would cost and how good it would be. Free, and asks the engine for no private rows."""
        with self._free_statement(settings) as statement:
            return statement.explain(sql, parameters)

    def describe(
        self, sql: str, parameters: Sequence[Parameter] = (), *, settings: Mapping[str, str] | None = None
    ) -> tuple[OutputColumn, ...]:
        """The output columns of a query, for free; with `settings`, if only none, it ends as a statement would."""
        if settings is None:
            return self.queries.describe(sql, parameters)
        with self._free_statement(settings) as statement:
            return statement.describe(sql, parameters)

    def compile_statement(
        self,
        sql: str,
        parameters: Sequence[Parameter] = (),
        now: dt.datetime | None = None,
        settings: Settings | None = None,
    ) -> Compiled:
        """The statement as it would run, but for norms; with the noise that is chosen for it where kinds cost the same,
        else with that which its settings have. Free."""
        command, queries = read_command(sql, parameters), self.queries
        if isinstance(command, CreateCommand):
            return compile_create(queries, command, sql, to_literals(parameters))
        if settings is None and now is None:
            settings = queries.settings_of(sql, parameters)
        return queries.compile_statement(sql, parameters, now, settings=settings)

    def compile_with_paid_norms(self, sql: str, parameters: Sequence[Parameter] = ()) -> Compiled:
        """A statement with the norms that the account has paid for; undecided where it has not. Free."""
        command, queries = read_command(sql, parameters), self.queries
        if isinstance(command, CreateCommand):
            return compile_create(queries, command, sql, to_literals(parameters))
        return queries.compile_with_paid_norms(sql, parameters, queries.settings_of(sql, parameters))

    def tables(self) -> tuple[NamedTable, ...]:
        """What can be named: what the schema declares, and what the account has made. Free."""
        self._namespace.refresh()
        return reflect_tables(self._visible_schema)

    def functions(self) -> tuple[NamedFunction, ...]:
        """What can be called: functions, the owner's statistics, and the account's models. Free."""
        self._namespace.refresh()
        statistics = [(statistic.name, statistic.of) for statistic in self.dataset.schema.statistics]
        return (*named_functions(), *own_functions(statistics, [(m.name, m.features) for m in self._namespace.models]))

    named_settings = staticmethod(named_settings)

    def budget(self) -> Balance:
        return self.dataset.ledger.get_balance(self._account)

    @property
    def _namespace(self) -> ObjectNamespace:
        return ObjectNamespace(self.dataset.ledger, self._account.name, self.dataset.resolved, self.cache.namespace)

    @property
    def _visible_schema(self) -> Schema:
        return self._declared_schema.with_created(self._namespace.tables)

    @cached_property
    def _declared_schema(self) -> Schema:
        return with_view_columns(
            self.dataset.schema, lambda sql: [(column.name, column.type) for column in self.describe(sql)]
        )


@dataclass(frozen=True)
class _Statement:
    """One statement of a session under way: which command it is, and who answers it."""

    session: Session
    queries: QueryExecutor

    @property
    def in_transaction(self) -> bool:
        return self.session.in_transaction

    def execute(self, command: Command | None, sql: str, parameters: Sequence[Parameter]) -> StatementResult:
        session, context = self.session, self.queries.context
        match command:
            case None:
                return self.queries.execute_query(sql, parameters)
            case SetCommand() | ResetCommand() | DiscardCommand() | NoOpCommand():
                raise InternalError("a command that changes settings asks nothing")
            case TransactionCommand() | TransactionModesCommand():
                raise InternalError("a command of transactions asks nothing")
            case ShowCommand(name, json=True):
                return build_json_result(name, self._show_json(name), "SHOW")
            case ShowCommand(name):
                if name == "tables":
                    self.queries.namespace.refresh()
                schema = self.queries.namespace.schema.schema
                return build_show_result(name, schema, context.account.name, context.values, session.budget)
            case ExplainCommand(inner, offset, as_json):
                with relocate_errors(sql, offset):
                    explained = self._explain_command(command, parameters)
                if as_json:
                    return build_json_result("QUERY PLAN", explained, "EXPLAIN")
                return build_text_result("QUERY PLAN", str(explained).splitlines())
            case DescribeCommand(table):
                schema = self.queries.visible_schema()
                name = strip_schema(table)
                described = build_catalog_result(show.describe_table(schema, name), "DESCRIBE")
                relation = next(r for r in schema.relations if r.name.lower() == name.lower())
                return replace(described, notices=describe_caps(relation, context.settings.statement))
            case DescribeQueryCommand(inner, offset):
                with relocate_errors(sql, offset):
                    columns = self.describe(inner, parameters)
                return build_catalog_result(
                    show.describe_outputs([(c.name, format_column_type(c)) for c in columns]), "DESCRIBE"
                )
            case CreateCommand() | DropCommand() | ShowArtifactsCommand():
                return execute_artifact_command(self.queries, command, sql, parameters)
            case _:
                return session._named_statements.execute_command(command, sql, parameters, self)

    def _show_json(self, name: str) -> object:
        """The result of SHOW … (FORMAT JSON): the same values that the methods of a session return."""
        session = self.session
        readers = {"budget": session.budget, "tables": session.tables, "functions": session.functions}
        return readers.get(name, session.named_settings)()

    def _explain_command(self, command: ExplainCommand, parameters: Sequence[Parameter]) -> Explanation | Forecast:
        inner = read_command(command.sql, parameters)
        if not isinstance(inner, SubmitQuery):
            return self.explain(command.sql, parameters)
        mechanisms = self.session._named_statements.mechanisms
        return mechanisms.forecast(self.queries, inner, command.sql, parameters, dict(command.given))

    def explain(self, sql: str, parameters: Sequence[Parameter]) -> Explanation:
        command = read_command(sql, parameters)
        if isinstance(command, CreateCommand):
            return explain_create(self.queries, command, sql, to_literals(parameters))
        return self.queries.explain(sql, to_literals(parameters))

    def describe(self, sql: str, parameters: Sequence[Parameter] = ()) -> tuple[OutputColumn, ...]:
        return self.queries.describe(sql, parameters)

    @property
    def tokenize(self) -> Tokenizer:
        return self.queries.cache.tokenize

    def describe_command(self, command: Command) -> StatementResult:
        """What a command tells that asks for no rows."""
        return self.execute(command, "", ())

    def prepare(self, sql: str, types: Sequence[Type | None]) -> PreparedStatement:
        """Its columns, and the types of its parameters."""
        namespace = self.queries.namespace
        schema = self.session._declared_schema.with_created(namespace.tables, namespace.models)
        try:
            return prepare_statement(self, schema, self.session._named_statements, sql, types)
        except Error as error:
            if error.statement is None:
                error.statement = sql
            raise
