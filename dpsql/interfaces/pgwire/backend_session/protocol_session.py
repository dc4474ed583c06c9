"""From messages to replies, over one session. No I/O: a server gives messages in and sends bytes out.

    protocol_session = ProtocolSession(session)
    send(protocol_session.make_greeting())                   # then BackendKeyData and ReadyForQuery
    for chunk in protocol_session.handle_message(message):   # blocks: on a thread, one chunk at a time
        send(chunk)
    protocol_session.cancel()                                # from another thread

Laws: Parse, Bind and Describe are free and run nothing; only Query and Execute do, a portal once. An exception that is
not one of ours reaches the client as one fixed text. A message that cannot be read is an error like any other; one that
has no place here raises ProtocolViolation, and the connection must be closed.

Text goes in and out in the client's encoding, which `SET client_encoding` changes between two statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from dpsql.base.client_encodings import UTF8, find_encoding
from dpsql.base.lexer import quote_name
from dpsql.errors import InvalidSyntax, ProgrammingError, Unsupported, relocate_errors
from dpsql.interfaces.pgwire.backend_session.copy import encode_copy_rows
from dpsql.interfaces.pgwire.backend_session.notices import ClientNotices, ReportedSettings, error_fields
from dpsql.interfaces.pgwire.backend_session.portals import Portal, PortalStore, WireStatement, read_wire_command
from dpsql.interfaces.pgwire.backend_session.results import (
    ResultColumns,
    command_tag,
    expand_formats,
    join_into_chunks,
    result_columns_of,
)
from dpsql.interfaces.pgwire.backend_session.session_interface import SessionProtocol
from dpsql.interfaces.pgwire.backend_session.transaction import TransactionState
from dpsql.interfaces.pgwire.protocol import backend
from dpsql.interfaces.pgwire.protocol.decode import decode_parameter
from dpsql.interfaces.pgwire.protocol.extension import StatementOptions, decode_statement_name
from dpsql.interfaces.pgwire.protocol.framing import ProtocolViolation
from dpsql.interfaces.pgwire.protocol.frontend import (
    Bind,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    Execute,
    Flush,
    FrontendMessage,
    FunctionCall,
    MalformedMessage,
    Parse,
    Password,
    SimpleQuery,
    Sync,
    Terminate,
    restore_bytes,
)
from dpsql.interfaces.pgwire.protocol.transcode import transcode_messages
from dpsql.interfaces.pgwire.protocol.types import find_cast_types, parameter_wire_type, to_session_type, to_wire_type
from dpsql.session.session import (
    CellError,
    CloseCommand,
    CopyCommand,
    DeallocateCommand,
    FetchCommand,
    Parameter,
    StatementHandle,
    StatementResult,
    split_statements,
)

ErrorLogger = Callable[[BaseException], None]
"""Told of exceptions that are a bug of ours; for the owner's eyes."""


ExtendedMessage = Parse | Bind | Describe | Execute | Close

_COPY_TYPES = frozenset("dcf")
"""Messages that belong to a copy: what one that failed still had on its way is no matter."""


def _ends_skipping(message: FrontendMessage) -> bool:
    """Whether the rest of what came with an error is skipped no longer."""
    return isinstance(message, Sync | Terminate) or (isinstance(message, MalformedMessage) and message.kind == "S")


def _ignore_error(error: BaseException) -> None:
    pass


class ProtocolSession:
    """`structured`: the client is dpsql's own and asked, by the startup parameter `_dpsql.client`, to be told figures;
    see `protocol/extension.py`."""

    def __init__(self, session: SessionProtocol, *, structured: bool = False, log: ErrorLogger = _ignore_error) -> None:
        self._session = session
        self._log = log
        self._transaction = TransactionState(session)
        self._portal_store = PortalStore(structured)
        self._notices = ClientNotices(session, structured)
        self._reported = ReportedSettings(session)
        self._skipping = False  # after an error in the extended protocol, until Sync
        self._encoding = UTF8  # of dpsql's own client always
        self._read_encoding()

    def make_greeting(self) -> bytes:
        """After the login: the settings. BackendKeyData and ReadyForQuery are to follow."""
        return b"".join([*self._notices.write_server_info(), *self._reported.report_changes()])

    @property
    def status(self) -> str:
        """`I` idle, `T` in a transaction, `E` in one that failed."""
        return self._transaction.status

    @property
    def progress(self) -> tuple[int, int]:
        return self._transaction.progress

    def cancel(self) -> None:
        """From any thread: who asked is told 57014; what runs goes on, is stored, and stays paid."""
        self._transaction.cancel()

    def handle_message(self, message: FrontendMessage) -> Iterator[bytes]:
        """The replies, in chunks; each is made when the iterator gets to it."""
        return join_into_chunks(self._encode_texts(self._dispatch_message(message)))

    def _dispatch_message(self, message: FrontendMessage) -> Iterator[bytes]:
        if self._skipping and not _ends_skipping(message):
            return
        match message:
            case MalformedMessage(_, reason) if message.is_extended:
                yield from self._skip_batch(ProtocolViolation(reason), None, 0)
            case MalformedMessage(kind, reason) if kind not in _COPY_TYPES:
                self._skipping = False
                yield from self._report_error(ProtocolViolation(reason), None, 0)
                yield from self._report_ready()
            case SimpleQuery(sql):
                yield from self._handle_query(sql)
            case Sync():
                yield from self._handle_sync()
            case FunctionCall():
                refused = Unsupported("functions are not called by number", hint="Call it in a SELECT.")
                yield from self._report_error(refused, None, 0)
                yield from self._report_ready()
            case Parse() | Bind() | Describe() | Execute() | Close():
                try:
                    yield from self._handle_extended(self._decode_texts(message))
                except Exception as error:
                    yield from self._skip_batch(error, *self._locate_statement(message))
            case Password():
                raise ProtocolViolation("there is no login under way")
            case Flush() | Terminate() | CopyData() | CopyDone() | CopyFail() | MalformedMessage():
                return  # what a copy that failed still had on its way is no matter

    def _skip_batch(self, error: Exception, sql: str | None, offset: int) -> Iterator[bytes]:
        """Report an error of the extended protocol; what follows up to Sync is not obeyed."""
        self._skipping = True
        yield from self._report_error(error, sql, offset)

    # --- the client's encoding ---------------------------------------------------------------------------------------

    def _read_encoding(self) -> None:
        """To be called where the setting may have changed: after statements, and where a transaction has ended."""
        if not self._notices.structured:
            name = next((value for name, value in self._session.variables if name == "client_encoding"), UTF8.name)
            self._encoding = find_encoding(name) or UTF8

    def _encode_texts(self, replies: Iterator[bytes]) -> Iterator[bytes]:
        for reply in replies:
            yield reply if self._encoding.is_utf8 else transcode_messages(reply, self._encoding)

    def _decode_text(self, text: str) -> str:
        return text if text.isascii() else self._encoding.decode(restore_bytes(text))

    def _decode_texts(self, message: ExtendedMessage) -> ExtendedMessage:
        """The message with its SQL and its names as the client means them."""
        match message:
            case Parse(name, sql):
                return replace(message, name=self._decode_text(name), sql=self._decode_text(sql))
            case Bind(portal, statement):
                return replace(message, portal=self._decode_text(portal), statement=self._decode_text(statement))
            case Execute(portal):
                return replace(message, portal=self._decode_text(portal))
            case Describe(_, name) | Close(_, name):
                return replace(message, name=self._decode_text(name))

    def _locate_statement(self, message: FrontendMessage) -> tuple[str | None, int]:
        """The statement that a message is about, and where it began in what was parsed."""
        statement: WireStatement | None = None
        match message:
            case Execute(name) | Describe("P", name) if name in self._portal_store.portals:
                statement = self._portal_store.portals[name].statement
            case Bind(_, name) | Describe("S", name):
                statement = self._portal_store.statements.get(name)
        return (None, 0) if statement is None else (statement.sql, statement.offset)

    # --- one text, of several statements ------------------------------------------------------------------------------

    def _handle_query(self, sql: str) -> Iterator[bytes]:
        self._portal_store.drop_unnamed()
        text, offset = sql, 0
        try:
            text = sql = self._decode_text(sql)
            statements = split_statements(sql)
            if not statements:
                yield backend.EMPTY_QUERY
            for text, offset in statements:  # noqa: B007  (an error is told of the one at which they stop)
                if len(statements) > 1 and not self._transaction.failed:
                    self._transaction.begin_implicit()
                yield from self._execute_simple(text)
            self._transaction.commit_implicit()
        except Exception as error:
            yield from self._report_error(error, text, offset)
        self._drop_ended_portals()
        yield from self._report_ready()

    def _execute_simple(self, sql: str) -> Iterator[bytes]:
        command = read_wire_command(sql)
        if isinstance(command, CopyCommand):
            yield from self._copy_out(sql, command, (), StatementOptions())
            return
        with self._transaction.statement_scope() as handle:
            answer, notices = self._run_statement(sql, (), StatementOptions(), handle)
            if answer.columns:
                columns = result_columns_of(answer.columns)
                yield columns.description
                row = columns.make_row_encoder(None, self._encoding, self._session.time_zone)
                for values in answer.rows:
                    self._transaction.check_canceled(handle)
                    yield row(values)
            yield from notices
            yield backend.command_complete(command_tag(answer.command, len(answer.rows)))

    def _run_statement(
        self, sql: str, parameters: tuple[Parameter, ...], options: StatementOptions, handle: StatementHandle
    ) -> tuple[StatementResult, Iterator[bytes]]:
        """The answer, and the notices to be sent after its rows."""
        command = read_wire_command(sql)
        if isinstance(command, DeallocateCommand):
            answer = self._deallocate_statements(sql, command, handle)
        elif isinstance(command, FetchCommand) and (portal := self._portal_store.find_cursor(command)) is not None:
            return self._fetch_from_portal(command, portal, handle)
        elif isinstance(command, CloseCommand) and self._portal_store.portals.get(command.name or "") is not None:
            self._transaction.require_transaction_end("CLOSE")
            self._portal_store.portals.pop(command.name or "")
            return StatementResult((), [], [], command="CLOSE CURSOR"), iter(())
        else:
            in_transaction = self._transaction.status != "I"
            answer = self._transaction.execute(sql, parameters, options, handle)
            self._read_encoding()
            if answer.command == "DISCARD ALL":
                self._portal_store.clear()
            if not in_transaction and answer.command in ("COMMIT", "ROLLBACK"):
                return answer, self._notices.write_warning("there is no transaction in progress", "25P01")
            if in_transaction and answer.command in ("BEGIN", "START TRANSACTION"):
                return answer, self._notices.write_warning(
                    "there is already a transaction in progress", sqlstate="25001"
                )
        return answer, self._notices.write_answer_notices(answer, self._session.charged)

    def _fetch_from_portal(
        self, command: FetchCommand, portal: Portal, handle: StatementHandle
    ) -> tuple[StatementResult, Iterator[bytes]]:
        """Rows of a portal that was bound by a message; it is run when the first are asked for."""
        self._transaction.require_transaction_end("FETCH")
        notices = self._start_portal(portal, handle) if portal.rows is None else iter(())
        rows = [tuple(row) for row in portal.take_rows(command.count)]
        if command.move:
            return StatementResult((), [], [], command=f"MOVE {len(rows)}"), notices
        errors: list[tuple[CellError | None, ...]] = [(None,) * len(portal.answered) for _ in rows]
        return StatementResult(portal.answered, rows, errors, command="FETCH"), notices

    def _deallocate_statements(self, sql: str, command: DeallocateCommand, handle: StatementHandle) -> StatementResult:
        """Statements prepared by a Parse message and by PREPARE share their names."""
        if command.name is None:
            for name in [name for name in self._portal_store.statements if name]:
                self._portal_store.close_statement(name)
        elif command.name in self._portal_store.statements:
            self._transaction.require_transaction_end("DEALLOCATE")
            self._portal_store.close_statement(command.name)
            return StatementResult((), [], [], command="DEALLOCATE")
        return self._transaction.execute(sql, (), StatementOptions(), handle)

    def _copy_out(
        self, sql: str, command: CopyCommand, parameters: tuple[Parameter, ...], options: StatementOptions
    ) -> Iterator[bytes]:
        self._transaction.require_transaction_end("COPY")
        with self._transaction.statement_scope(options.free) as handle, relocate_errors(sql, command.offset):
            answer = self._transaction.execute(command.sql, parameters, options, handle)
            charge = self._session.charged
            for line in encode_copy_rows(answer.columns, answer.rows, command, self._encoding, self._session.time_zone):
                self._transaction.check_canceled(handle)
                yield line
            yield from self._notices.write_answer_notices(answer, charge)
            yield backend.command_complete(command_tag("COPY", len(answer.rows)))

    # --- the extended protocol ----------------------------------------------------------------------------------------

    def _handle_extended(self, message: ExtendedMessage) -> Iterator[bytes]:
        match message:
            case Parse():
                self._portal_store.check_new_statement(message.name)
                self._portal_store.add_statement(message.name, self._prepare_statement(message))
                yield backend.PARSE_COMPLETE
            case Bind():
                self._portal_store.add_portal(message.portal, self._bind_portal(message))
                yield backend.BIND_COMPLETE
            case Describe(kind, name):
                yield from self._describe_statement(name) if kind == "S" else self._describe_portal(name)
            case Execute(name, limit):
                yield from self._execute_portal(self._portal_store.get_portal(name), limit)
            case Close(kind, name):
                if kind == "S":
                    self._portal_store.close_statement(name)
                else:
                    self._portal_store.portals.pop(name, None)
                yield backend.CLOSE_COMPLETE

    def _prepare_statement(self, message: Parse) -> WireStatement:
        statements = split_statements(message.sql)
        if len(statements) > 1:
            raise InvalidSyntax("cannot insert multiple commands into a prepared statement")
        if not statements:
            return WireStatement("", 0)
        sql, offset = statements[0]
        command = read_wire_command(sql)
        # dpsql's own client reads no copies: the session refuses it there, before anything is charged.
        copy = command if isinstance(command, CopyCommand) and not self._notices.structured else None
        client_types = [parameter_wire_type(oid) for oid in message.types]
        with relocate_errors(message.sql, offset), relocate_errors(sql, copy.offset if copy is not None else 0):
            prepared = self._session.prepare(
                sql if copy is None else copy.sql,
                [to_session_type(wire_type) for wire_type in client_types],
                settings=self._settings_in_name(message.name),
            )
        command_name = prepared.command if copy is None else "COPY"
        self._transaction.require_transaction_end(command_name)
        cast, session_types = find_cast_types(sql), enumerate(prepared.parameters)
        inferred = [
            cast.get(index + 1) or to_wire_type(type_, index in prepared.arrays) for index, type_ in session_types
        ]
        parameter_types = tuple(
            wire_type or (inferred[index] if index < len(inferred) else None)
            for index, wire_type in enumerate(client_types)
        )
        types = tuple(
            wire_type for wire_type in (*parameter_types, *inferred[len(parameter_types) :]) if wire_type is not None
        )
        columns, unknown = ((), None) if copy else (tuple(prepared.columns), prepared.unknown)
        return WireStatement(sql, offset, types, len(inferred), columns, command_name, copy, unknown)

    def _settings_in_name(self, name: str) -> dict[str, str] | None:
        """The settings of one statement, as dpsql's own client tells them."""
        return dict(decode_statement_name(name).settings) or None if self._notices.structured else None

    def _bind_portal(self, message: Bind) -> Portal:
        statement = self._portal_store.get_statement(message.statement)
        if statement.command:
            self._transaction.require_transaction_end(statement.command)
        parameter_count, value_count = len(statement.types), len(message.values)
        formats = expand_formats(message.formats, value_count, "parameter formats", "{} parameters")
        if parameter_count != value_count:
            raise ProgrammingError(
                f'bind message supplies {value_count} parameters, but prepared statement "{message.statement}" '
                f"requires {parameter_count}",
                sqlstate="08P01",
            )
        values = zip(message.values, statement.types, formats, strict=True)
        zone = self._session.time_zone
        parameters = tuple(
            [decode_parameter(value, type_, format_, self._encoding, zone) for value, type_, format_ in values]
        )
        size = sum(len(value or b"") for value in message.values) + 200
        options, formats = (
            decode_statement_name(message.portal) if self._notices.structured else StatementOptions(),
            message.result_formats,
        )
        columns = result_columns_of(
            statement.columns, formats if statement.unknown is None else (), bool(statement.types)
        )
        portal = Portal(statement, parameters[: statement.used], columns, size, options, formats=formats)
        if statement.unknown is not None:
            portal.columns = self._columns_for_values(portal)
        return portal

    def _columns_for_values(self, portal: Portal) -> ResultColumns:
        """The columns that the statement has with these values."""
        sql, settings = portal.statement.sql, dict(portal.options.settings)
        described = self._session.describe(sql, portal.parameters, settings=settings)
        return result_columns_of(described, portal.formats, digits_vary=True)

    def _describe_statement(self, name: str) -> Iterator[bytes]:
        statement = self._portal_store.get_statement(name)
        if statement.returns_rows:
            self._transaction.require_transaction_end(statement.command)
        if statement.unknown is not None:
            raise statement.unknown.with_traceback(None)
        yield backend.parameter_description([type_.oid for type_ in statement.types])
        described = result_columns_of(statement.columns, digits_vary=bool(statement.types)).description
        yield described if statement.columns else backend.NO_DATA

    def _describe_portal(self, name: str) -> Iterator[bytes]:
        columns = self._portal_columns(name)
        yield columns.description if columns.names else backend.NO_DATA

    def _portal_columns(self, name: str) -> ResultColumns:
        """The columns of a portal, or of a cursor that was declared in SQL: they share their names."""
        if name and name not in self._portal_store.portals:
            with suppress(ProgrammingError):  # there is no such cursor either
                return result_columns_of(self._session.prepare(f"FETCH FROM {quote_name(name, always=True)}").columns)
        portal = self._portal_store.get_portal(name)
        if portal.statement.returns_rows:
            self._transaction.require_transaction_end(portal.statement.command)
        if portal.statement.has_varying_columns and portal.rows is None:
            portal.columns = self._columns_for_values(portal)
        return portal.columns

    def _execute_portal(self, portal: Portal, limit: int) -> Iterator[bytes]:
        statement = portal.statement
        if not statement.command:
            yield backend.EMPTY_QUERY
        elif statement.copy is not None:
            self._start_copy_once(portal)
            yield from self._copy_out(statement.sql, statement.copy, portal.parameters, portal.options)
        else:
            yield from self._send_portal_rows(portal, limit)

    def _start_copy_once(self, portal: Portal) -> None:
        if portal.rows is not None:
            raise ProgrammingError("the portal cannot be run again", sqlstate="55000")
        portal.rows = ()

    def _send_portal_rows(self, portal: Portal, limit: int) -> Iterator[bytes]:
        """The portal's next rows. It runs once: what it has given out is not given again, and nothing is paid twice."""
        statement = portal.statement
        with self._transaction.statement_scope(portal.options.free) as handle:
            notices: Iterator[bytes] = iter(())
            if portal.rows is None:
                notices = self._start_portal(portal, handle)
            elif not statement.returns_rows:
                raise ProgrammingError("the portal cannot be run again", sqlstate="55000")
            rows = portal.rows or ()
            end = min(len(rows), portal.at + limit) if limit > 0 else len(rows)
            row = portal.columns.make_row_encoder(portal.answered, self._encoding, self._session.time_zone)
            sent = 0
            while portal.at < end:
                self._transaction.check_canceled(handle)
                portal.at, sent = portal.at + 1, sent + 1
                yield row(rows[portal.at - 1])
            yield from notices
            if limit > 0 and sent == limit and statement.returns_rows:
                yield backend.PORTAL_SUSPENDED
                return
            portal.rows = ()  # what was given out is not kept
            portal.at = 0
            yield backend.command_complete(command_tag(portal.command, sent))

    def _start_portal(self, portal: Portal, handle: StatementHandle) -> Iterator[bytes]:
        statement = portal.statement
        if not statement.returns_rows and not self._transaction.failed:
            self._transaction.begin_implicit()  # what is set is undone if what comes with it fails
        if statement.has_varying_columns and not self._transaction.failed:
            self._check_column_types(portal)
        answer, notices = self._run_statement(statement.sql, portal.parameters, portal.options, handle)
        if len(answer.columns) != len(portal.columns.names):
            raise Unsupported("cached plan must not change result type")
        portal.rows, portal.command, portal.answered = answer.rows, answer.command, answer.columns
        self._portal_store.check_open_rows()
        return notices

    def _check_column_types(self, portal: Portal) -> None:
        """Before anything is charged: a client that was promised integers cannot be sent other numbers."""
        settings = dict(portal.options.settings)
        actual_columns = self._session.describe(portal.statement.sql, portal.parameters, settings=settings)
        if len(actual_columns) == len(portal.columns.names) and not portal.columns.can_represent(actual_columns):
            hint = "Say of which type the parameter is: $1::double precision."
            raise Unsupported("cached plan must not change result type", hint=hint)

    def _handle_sync(self) -> Iterator[bytes]:
        self._skipping = False
        try:
            self._transaction.commit_implicit()
        except Exception as error:
            yield from self._report_error(error, None, 0)
        self._drop_ended_portals()
        yield from self._report_ready()

    # --- ends ---------------------------------------------------------------------------------------------------------

    def _drop_ended_portals(self) -> None:
        """Drop portals whose transaction has ended."""
        if not self._session.in_transaction or self._transaction.failed:
            self._portal_store.close_portals()

    def _report_ready(self) -> Iterator[bytes]:
        self._read_encoding()
        yield from self._reported.report_changes()
        yield backend.ready_for_query(self._transaction.status)

    def _report_error(self, error: Exception, sql: str | None, offset: int) -> Iterator[bytes]:
        charge = self._transaction.charge_of(error)
        fields = error_fields(error, sql=sql, offset=offset, charge=charge)
        if fields["C"] == "XX000":
            self._log(error)
        self._transaction.abort_transaction()
        yield from self._notices.write_error_notice(error, charge)
        yield backend.error_response(fields)
