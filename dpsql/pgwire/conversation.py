"""From messages to replies, over one session. No I/O: a server gives messages in and sends bytes out.

    conversation = Conversation(session)
    send(conversation.greeting())                  # then BackendKeyData and ReadyForQuery
    for chunk in conversation.answer(message):     # waits: on a thread, one chunk at a time
        send(chunk)
    conversation.cancel()                          # from another thread

Laws: Parse, Bind and Describe are free and run nothing; only Query and Execute do, a portal once. What a client is told
of an exception that is not one of ours is one fixed text. A message that breaks the protocol raises ProtocolViolation,
and the connection is to be closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from dpsql.errors import InvalidSyntax, ProgrammingError, Unsupported, part_of
from dpsql.pgwire import replies
from dpsql.pgwire.answering import Answering
from dpsql.pgwire.copying import copied
from dpsql.pgwire.decode import parameter
from dpsql.pgwire.errors import error_fields
from dpsql.pgwire.exchange import Exchange
from dpsql.pgwire.frames import ProtocolViolation
from dpsql.pgwire.held import Held, Portal, Statement, read_held
from dpsql.pgwire.messages import (
    Bind,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    Execute,
    Flush,
    FunctionCall,
    Message,
    Parse,
    Password,
    Query,
    Sync,
    Terminate,
)
from dpsql.pgwire.meta import Wishes, read_name
from dpsql.pgwire.results import Columns, chunked, columns_of, spread, tag
from dpsql.pgwire.telling import Notices, Reported
from dpsql.pgwire.wire_types import cast_types, own_wire_type, parameter_type, type_of
from dpsql.quoting import quoted
from dpsql.session import Answer, CopyCommand, DeallocateCommand, Parameter, Ticket, split_statements

Log = Callable[[BaseException], None]
"""Told of exceptions that are a bug of ours; for the owner's eyes."""


def _silent(error: BaseException) -> None:
    pass


class Conversation:
    """`structured`: the client is dpsql's own and asked, by the startup parameter `_dpsql.client`, to be told figures;
    see `meta`."""

    def __init__(self, session: Answering, *, structured: bool = False, log: Log = _silent) -> None:
        self._session = session
        self._log = log
        self._exchange = Exchange(session)
        self._held = Held(structured)
        self._notices = Notices(session, structured)
        self._reported = Reported(session)
        self._skipping = False  # after an error in the extended protocol, until Sync

    def greeting(self) -> bytes:
        """After the login: what is set. The key for cancels and ReadyForQuery are to follow."""
        return b"".join([*self._notices.of_server(), *self._reported.changes()])

    @property
    def status(self) -> str:
        """`I` idle, `T` in a transaction, `E` in one that failed."""
        return self._exchange.status

    @property
    def progress(self) -> tuple[int, int]:
        return self._exchange.progress

    def cancel(self) -> None:
        """From any thread: who asked is told 57014; what runs goes on, is stored, and stays paid."""
        self._exchange.cancel()

    def answer(self, message: Message) -> Iterator[bytes]:
        """The replies, in chunks; each is made when it is asked for."""
        return chunked(self._replies(message))

    def _replies(self, message: Message) -> Iterator[bytes]:
        if self._skipping and not isinstance(message, Sync | Terminate):
            return
        match message:
            case Query(sql):
                yield from self._query(sql)
            case Sync():
                yield from self._sync()
            case FunctionCall():
                refused = Unsupported("functions are not called by number", hint="Call it in a SELECT.")
                yield from self._failed(refused, None, 0)
                yield from self._ready()
            case Parse() | Bind() | Describe() | Execute() | Close():
                try:
                    yield from self._extended(message)
                except ProtocolViolation:
                    raise
                except Exception as error:
                    self._skipping = True
                    yield from self._failed(error, *self._place(message))
            case Password():
                raise ProtocolViolation("there is no login under way")
            case Flush() | Terminate() | CopyData() | CopyDone() | CopyFail():
                return  # what a copy that failed still had on its way is no matter

    def _place(self, message: Message) -> tuple[str | None, int]:
        """The statement that a message is about, and where it began in what was parsed."""
        statement: Statement | None = None
        match message:
            case Execute(name) | Describe("P", name) if name in self._held.portals:
                statement = self._held.portals[name].statement
            case Bind(_, name) | Describe("S", name):
                statement = self._held.statements.get(name)
        return (None, 0) if statement is None else (statement.sql, statement.offset)

    # --- one text, of several statements ------------------------------------------------------------------------------

    def _query(self, sql: str) -> Iterator[bytes]:
        self._held.drop_unnamed()
        text, offset = sql, 0
        try:
            statements = split_statements(sql)
            if not statements:
                yield replies.EMPTY_QUERY
            for text, offset in statements:  # noqa: B007  (an error is told of the one at which they stop)
                if len(statements) > 1 and not self._exchange.failed:
                    self._exchange.begin()
                yield from self._simple(text)
            self._exchange.end()
        except Exception as error:
            yield from self._failed(error, text, offset)
        self._drop_portals()
        yield from self._ready()

    def _simple(self, sql: str) -> Iterator[bytes]:
        command = read_held(sql)
        if isinstance(command, CopyCommand):
            yield from self._copy(sql, command, (), Wishes())
            return
        with self._exchange.under_way() as ticket:
            answer, told = self._run(sql, (), Wishes(), ticket)
            if answer.columns:
                columns = columns_of(answer.columns)
                yield columns.description
                row = columns.row_encoder()
                for values in answer.rows:
                    self._exchange.check(ticket)
                    yield row(values)
            yield from told
            yield replies.command_complete(tag(answer.command, len(answer.rows)))

    def _run(
        self, sql: str, parameters: tuple[Parameter, ...], wishes: Wishes, ticket: Ticket
    ) -> tuple[Answer, Iterator[bytes]]:
        """The answer, and what is to be told of it behind its rows."""
        command = read_held(sql)
        if isinstance(command, DeallocateCommand):
            answer = self._deallocate(sql, command, ticket)
        else:
            inside = self._exchange.status != "I"
            answer = self._exchange.execute(sql, parameters, wishes, ticket)
            if answer.command == "DISCARD ALL":
                self._held.clear()
            if not inside and answer.command in ("COMMIT", "ROLLBACK"):
                return answer, self._notices.warning("there is no transaction in progress", "25P01")
            if inside and answer.command in ("BEGIN", "START TRANSACTION"):
                return answer, self._notices.warning("there is already a transaction in progress", sqlstate="25001")
        return answer, self._notices.of_answer(answer, self._session.charged)

    def _deallocate(self, sql: str, command: DeallocateCommand, ticket: Ticket) -> Answer:
        """Statements that were prepared by a message and by PREPARE have their names in common."""
        if command.name is None:
            for name in [name for name in self._held.statements if name]:
                self._held.close_statement(name)
        elif command.name in self._held.statements:
            self._exchange.require_end("DEALLOCATE")
            self._held.close_statement(command.name)
            return Answer((), [], [], command="DEALLOCATE")
        return self._exchange.execute(sql, (), Wishes(), ticket)

    def _copy(
        self, sql: str, command: CopyCommand, parameters: tuple[Parameter, ...], wishes: Wishes
    ) -> Iterator[bytes]:
        self._exchange.require_end("COPY")
        with self._exchange.under_way(wishes.free) as ticket, part_of(sql, command.offset):
            answer = self._exchange.execute(command.sql, parameters, wishes, ticket)
            charge = self._session.charged
            for line in copied(answer.columns, answer.rows, command):
                self._exchange.check(ticket)
                yield line
            yield from self._notices.of_answer(answer, charge)
            yield replies.command_complete(tag("COPY", len(answer.rows)))

    # --- the extended protocol ----------------------------------------------------------------------------------------

    def _extended(self, message: Parse | Bind | Describe | Execute | Close) -> Iterator[bytes]:
        match message:
            case Parse():
                self._held.check_new_statement(message.name)
                self._held.add_statement(message.name, self._parsed(message))
                yield replies.PARSE_COMPLETE
            case Bind():
                self._held.add_portal(message.portal, self._bound(message))
                yield replies.BIND_COMPLETE
            case Describe(kind, name):
                yield from self._describe_statement(name) if kind == "S" else self._describe_portal(name)
            case Execute(name, limit):
                yield from self._execute(self._held.portal(name), limit)
            case Close(kind, name):
                if kind == "S":
                    self._held.close_statement(name)
                else:
                    self._held.portals.pop(name, None)
                yield replies.CLOSE_COMPLETE

    def _parsed(self, message: Parse) -> Statement:
        statements = split_statements(message.sql)
        if len(statements) > 1:
            raise InvalidSyntax("cannot insert multiple commands into a prepared statement")
        if not statements:
            return Statement("", 0)
        sql, offset = statements[0]
        command = read_held(sql)
        # dpsql's own client reads no copies: the session refuses it there, before anything is charged.
        copy = command if isinstance(command, CopyCommand) and not self._notices.structured else None
        given = [parameter_type(oid) for oid in message.types]
        with part_of(message.sql, offset), part_of(sql, copy.offset if copy is not None else 0):
            prepared = self._session.prepare(
                sql if copy is None else copy.sql, [type_of(one) for one in given], settings=self._wished(message.name)
            )
        word = prepared.command if copy is None else "COPY"
        self._exchange.require_end(word)
        cast, own = cast_types(sql), enumerate(prepared.parameters)
        inferred = [cast.get(at + 1) or own_wire_type(type_, at in prepared.arrays) for at, type_ in own]
        told = tuple(one or (inferred[at] if at < len(inferred) else None) for at, one in enumerate(given))
        types = tuple(one for one in (*told, *inferred[len(told) :]) if one is not None)
        columns, unknown = ((), None) if copy else (tuple(prepared.columns), prepared.unknown)
        return Statement(sql, offset, types, len(inferred), columns, word, copy, unknown)

    def _wished(self, name: str) -> dict[str, str] | None:
        """The settings of one statement, as dpsql's own client tells them."""
        return dict(read_name(name).settings) or None if self._notices.structured else None

    def _bound(self, message: Bind) -> Portal:
        statement = self._held.statement(message.statement)
        if statement.command:
            self._exchange.require_end(statement.command)
        needed, given = len(statement.types), len(message.values)
        formats = spread(message.formats, given, "parameter formats", "{} parameters")
        if needed != given:
            raise ProgrammingError(
                f'bind message supplies {given} parameters, but prepared statement "{message.statement}" '
                f"requires {needed}",
                sqlstate="08P01",
            )
        values = zip(message.values, statement.types, formats, strict=True)
        parameters = tuple([parameter(value, type_, format_) for value, type_, format_ in values])
        size = sum(len(value or b"") for value in message.values) + 200
        wishes, formats = read_name(message.portal) if self._notices.structured else Wishes(), message.result_formats
        columns = columns_of(statement.columns, formats if statement.unknown is None else (), bool(statement.types))
        portal = Portal(statement, parameters[: statement.used], columns, size, wishes, formats=formats)
        if statement.unknown is not None:
            portal.columns = self._told_by_values(portal)
        return portal

    def _told_by_values(self, portal: Portal) -> Columns:
        """What the values say that the columns are."""
        sql, settings = portal.statement.sql, dict(portal.wishes.settings)
        described = self._session.describe(sql, portal.parameters, settings=settings)
        return columns_of(described, portal.formats, digits_vary=True)

    def _describe_statement(self, name: str) -> Iterator[bytes]:
        statement = self._held.statement(name)
        if statement.gives_rows:
            self._exchange.require_end(statement.command)
        if statement.unknown is not None:
            raise statement.unknown.with_traceback(None)
        yield replies.parameter_description([type_.oid for type_ in statement.types])
        described = columns_of(statement.columns, digits_vary=bool(statement.types)).description
        yield described if statement.columns else replies.NO_DATA

    def _describe_portal(self, name: str) -> Iterator[bytes]:
        columns = self._portal_columns(name)
        yield columns.description if columns.names else replies.NO_DATA

    def _portal_columns(self, name: str) -> Columns:
        """Of a portal; or of a cursor that was declared in SQL, since these have their names in common."""
        if name and name not in self._held.portals:
            with suppress(ProgrammingError):  # there is no such cursor either
                return columns_of(self._session.prepare(f"FETCH FROM {quoted(name, always=True)}").columns)
        portal = self._held.portal(name)
        if portal.statement.gives_rows:
            self._exchange.require_end(portal.statement.command)
        if portal.statement.varies and portal.rows is None:
            portal.columns = self._told_by_values(portal)
        return portal.columns

    def _execute(self, portal: Portal, limit: int) -> Iterator[bytes]:
        statement = portal.statement
        if not statement.command:
            yield replies.EMPTY_QUERY
        elif statement.copy is not None:
            self._once(portal)
            yield from self._copy(statement.sql, statement.copy, portal.parameters, portal.wishes)
        else:
            yield from self._executed(portal, limit)

    def _once(self, portal: Portal) -> None:
        if portal.rows is not None:
            raise ProgrammingError("the portal cannot be run again", sqlstate="55000")
        portal.rows = ()

    def _executed(self, portal: Portal, limit: int) -> Iterator[bytes]:
        """The portal's next rows. It runs once: what it has given out is not given again, and nothing is paid twice."""
        statement = portal.statement
        with self._exchange.under_way(portal.wishes.free) as ticket:
            told: Iterator[bytes] = iter(())
            if portal.rows is None:
                told = self._started(portal, ticket)
            elif not statement.gives_rows:
                raise ProgrammingError("the portal cannot be run again", sqlstate="55000")
            rows = portal.rows or ()
            end = min(len(rows), portal.at + limit) if limit > 0 else len(rows)
            row = portal.columns.row_encoder(portal.answered)
            sent = 0
            while portal.at < end:
                self._exchange.check(ticket)
                portal.at, sent = portal.at + 1, sent + 1
                yield row(rows[portal.at - 1])
            yield from told
            if limit > 0 and sent == limit and statement.gives_rows:
                yield replies.PORTAL_SUSPENDED
                return
            portal.rows = ()  # what was given out is not kept
            portal.at = 0
            yield replies.command_complete(tag(portal.command, sent))

    def _started(self, portal: Portal, ticket: Ticket) -> Iterator[bytes]:
        statement = portal.statement
        if not statement.gives_rows and not self._exchange.failed:
            self._exchange.begin()  # what is set is undone if what comes with it fails
        if statement.varies and not self._exchange.failed:
            self._check_types(portal)
        answer, told = self._run(statement.sql, portal.parameters, portal.wishes, ticket)
        if len(answer.columns) != len(portal.columns.names):
            raise Unsupported("cached plan must not change result type")
        portal.rows, portal.command, portal.answered = answer.rows, answer.command, answer.columns
        self._held.check_rows()
        return told

    def _check_types(self, portal: Portal) -> None:
        """Before anything is charged: a client that was told of whole numbers cannot be given others."""
        settings = dict(portal.wishes.settings)
        answered = self._session.describe(portal.statement.sql, portal.parameters, settings=settings)
        if len(answered) == len(portal.columns.names) and not portal.columns.can_tell(answered):
            hint = "Say of which type the parameter is: $1::double precision."
            raise Unsupported("cached plan must not change result type", hint=hint)

    def _sync(self) -> Iterator[bytes]:
        self._skipping = False
        try:
            self._exchange.end()
        except Exception as error:
            yield from self._failed(error, None, 0)
        self._drop_portals()
        yield from self._ready()

    # --- ends ---------------------------------------------------------------------------------------------------------

    def _drop_portals(self) -> None:
        """They end with their transaction."""
        if not self._session.in_transaction or self._exchange.failed:
            self._held.close_portals()

    def _ready(self) -> Iterator[bytes]:
        yield from self._reported.changes()
        yield replies.ready_for_query(self._exchange.status)

    def _failed(self, error: Exception, sql: str | None, offset: int) -> Iterator[bytes]:
        charge = self._exchange.charge_of(error)
        fields = error_fields(error, sql=sql, offset=offset, charge=charge)
        if fields["C"] == "XX000":
            self._log(error)
        self._exchange.after_error()
        yield from self._notices.of_error(error, charge)
        yield replies.error_response(fields)
