"""dpsql's extension of PostgreSQL's protocol, for its own client: losses, error bars, receipts, progress.

The client asks for it by the startup parameter `_dpsql.client` = `on`. A server that knows it answers with

- at login, one ParameterStatus named `dpsql.server` whose value is `encode_server_info(...)`;
- for each answer, behind its last DataRow and before its CommandComplete, one NoticeResponse for each text of
  `encode_answer_notices(answer, charge, remaining)`: severity NOTICE, code `01DP1`, message `dpsql`, the text as
  Detail. They replace the notices for people;
- for each error, before its ErrorResponse, one such notice with `encode_error_notice(error, charge)`;
- while a statement runs, whenever it likes, `encode_progress_notice(delivered, releases)`.

And the client tells with each statement, in the names of its prepared statement and portal (`Parse` and `Bind`), what
holds for that statement alone: settings, and whether it must be free. The server reads it by
`decode_statement_name(name)`: for `Parse`, the settings are those of `session.prepare`, for `Execute` those of
`session.execute`, with a handle that is `free`. A name that does not begin with NAME_PREFIX is an ordinary one.

Law: figures are exact: fractions are texts such as "1/3", floats are JSON's shortest form, which reads back the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpsql import errors
from dpsql.amounts import NO_CHARGE, CellError, Charge
from dpsql.base.serialization import dumps, from_json, loads, to_json
from dpsql.errors import Span
from dpsql.types import Type

if TYPE_CHECKING:
    from dpsql.session.session import StatementResult

STARTUP_PARAMETER = "_dpsql.client"
"""The startup parameter by which a client asks for these; `on` switches them on."""
SERVER_STATUS = "dpsql.server"
"""The ParameterStatus by which a server says that it has them."""
NOTICE_SQLSTATE = "01DP1"
"""The SQLSTATE of these notices: a warning, of the class that PostgreSQL leaves to implementations."""
NOTICE_MESSAGE = "dpsql"
NAME_PREFIX = "dpsql:"
CELLS_PER_NOTICE = 500
"""Cells in one notice: some 50 kB, however long the answer is. Only lists can make it longer; a Detail is never cut."""

Cells = Sequence[tuple[CellError | None, ...]]


# --- who answers -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ServerInfo:
    """What a server says of itself and of the login."""

    version: str
    database: str
    user: str | None


def encode_server_info(server: ServerInfo) -> str:
    return _encode_json(to_json(server))


def decode_server_info(text: str) -> ServerInfo:
    """ValueError where this is no server of ours."""
    return from_json(ServerInfo, read_json(text))


# --- what holds for one statement ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StatementOptions:
    settings: tuple[tuple[str, str], ...] = ()
    free: bool = False


def encode_statement_name(options: StatementOptions) -> str:
    """
    >>> encode_statement_name(StatementOptions((("epsilon", "0.1"),), free=True))
    'dpsql:{"settings":[["epsilon","0.1"]],"free":true}'
    >>> encode_statement_name(StatementOptions())
    ''
    """
    return "" if options == StatementOptions() else NAME_PREFIX + _encode_json(to_json(options))


def decode_statement_name(name: str) -> StatementOptions:
    """What `encode_statement_name` wrote; nothing where the name is an ordinary one.

    >>> decode_statement_name('dpsql:{"settings":[["epsilon","0.1"]],"free":true}')
    StatementOptions(settings=(('epsilon', '0.1'),), free=True)
    >>> decode_statement_name("a_cursor")
    StatementOptions(settings=(), free=False)
    """
    if not name.startswith(NAME_PREFIX):
        return StatementOptions()
    try:
        return from_json(StatementOptions, read_json(name.removeprefix(NAME_PREFIX)))
    except ValueError:
        raise errors.ProgrammingError("the name of a statement cannot be read", sqlstate="08P01") from None


# --- answers and errors ----------------------------------------------------------------------------------------------


def encode_answer_notices(answer: StatementResult, charge: Charge, remaining: str | None) -> Iterator[str]:
    """The Details of an answer's notices: first its charge and notices, then error bars, and values that the wire
    has no type for, by columns and in chunks."""
    yield _encode_json({
        "charge": to_json(charge),
        "command": answer.command,
        "columns": [[item.name, to_json(item.type), item.spelling] for item in answer.columns],
        "rows": len(answer.rows),
        "notices": list(answer.notices),
        "receipts": [[item.account, item.number, item.hash] for item in answer.receipts],
        "left": remaining,
    })  # fmt: skip
    for index, column in enumerate(answer.columns):
        for start in range(0, len(answer.rows), CELLS_PER_NOTICE):
            bars = [row[index] for row in answer.errors[start : start + CELLS_PER_NOTICE]]
            if any(bar is not None for bar in bars):
                coded = {"column": index, "from": start, "bars": [_encode_error_bar(bar) for bar in bars]}
                yield _encode_json(coded | _encode_clipping(bars))
            if column.type is None:
                values = [dumps(row[index]) for row in answer.rows[start : start + CELLS_PER_NOTICE]]
                yield _encode_json({"column": index, "from": start, "values": values})


def encode_error_notice(error: Exception, charge: Charge) -> str:
    """The notice beside an error. For an error that is not ours it shows only the charge: the text may hold rows."""
    public_error = error if isinstance(error, errors.Error) else errors.InternalError("internal error")
    error_fields = {
        "error": type(public_error).__name__,
        "span": to_json(public_error.span),
        "detail": public_error.detail,
    }
    return _encode_json({"charge": to_json(charge), **error_fields})


def encode_progress_notice(delivered: int, releases: int) -> str:
    return _encode_json({"progress": [delivered, releases]})


@dataclass
class StatementMetadata:
    """What the notices of one statement have told so far."""

    charge: Charge = NO_CHARGE
    command: str | None = None
    columns: tuple[tuple[str, Type | None, str], ...] = ()
    notices: tuple[str, ...] = ()
    receipts: tuple[tuple[str, int, str], ...] = ()
    left: str | None = None
    progress: tuple[int, int] = (0, 0)
    error: str | None = None
    """The name of the error's class."""
    span: Span | None = None
    detail: str | None = None
    """The error's own, without the sentence on its charge that others are told in it."""
    rows: int = 0
    """How many the server says that there are; memory is made for none of them before it has come."""
    bars: dict[tuple[int, int], CellError] = field(default_factory=dict)
    """By row and column, where there is one."""
    values: dict[tuple[int, int], Any] = field(default_factory=dict)
    """By row and column, where the wire has no type for the column."""

    def add_notice(self, detail: str) -> None:
        """Read one more notice; ValueError where it cannot be one."""
        plain = read_json(detail)
        try:
            self._apply_notice(plain)
        except (KeyError, TypeError, AttributeError, IndexError, RecursionError):
            raise ValueError("a notice of another form") from None

    def _apply_notice(self, plain: Mapping[str, Any]) -> None:
        if "progress" in plain:
            self.progress = from_json(_PROGRESS_TYPE, plain["progress"])
        if "charge" in plain:
            self.charge = from_json(Charge, plain["charge"])
        if "error" in plain:
            self.error, self.span = str(plain["error"]), from_json(_SPAN_TYPE, plain["span"])
            self.detail = from_json(_TEXT_TYPE, plain["detail"])
        if "columns" in plain:
            self.columns = from_json(_COLUMNS_TYPE, plain["columns"])
            self.command, self.left = str(plain["command"]), from_json(_TEXT_TYPE, plain["left"])
            self.notices = tuple(str(notice) for notice in plain["notices"])
            self.receipts = from_json(_RECEIPTS_TYPE, plain["receipts"])
            self.rows = from_json(int, plain["rows"])
        bars = plain.get("bars", ())
        clipped = plain.get("clipped", [None] * len(bars))
        for row, (bar, moved) in enumerate(zip(bars, clipped, strict=True), start=plain.get("from", 0)):
            if bar is not None:
                stderr, low, high = map(loads, bar)
                error = CellError(stderr, low, high, None if moved is None else from_json(float, loads(moved)))
                self.bars[self._check_cell(row, plain["column"])] = error
        for row, value in enumerate(plain.get("values", ()), start=plain.get("from", 0)):
            self.values[self._check_cell(row, plain["column"])] = loads(value)

    def _check_cell(self, row: int, column: int) -> tuple[int, int]:
        if 0 <= row < self.rows and 0 <= column < len(self.columns):
            return row, column
        raise ValueError("a cell that the answer does not have")

    def error_bars_of(self, row: int) -> tuple[CellError | None, ...]:
        return tuple(self.bars.get((row, column)) for column in range(len(self.columns)))


_PROGRESS_TYPE: Any = tuple[int, int]
_SPAN_TYPE: Any = Span | None
_TEXT_TYPE: Any = str | None
_COLUMNS_TYPE: Any = tuple[tuple[str, Type | None, str], ...]
_RECEIPTS_TYPE: Any = tuple[tuple[str, int, str], ...]


def _encode_error_bar(bar: CellError | None) -> Any:
    return None if bar is None else [dumps(bar.stderr), dumps(bar.low), dumps(bar.high)]


def _encode_clipping(bars: Sequence[CellError | None]) -> dict[str, Any]:
    """A field of its own, which clients of before do not read; left out where nothing is known."""
    clipped = [None if bar is None or bar.clipped is None else dumps(bar.clipped) for bar in bars]
    return {"clipped": clipped} if any(moved is not None for moved in clipped) else {}


def read_json(text: str | bytes) -> Any:
    """ValueError where it is none, or is nested deeper than anyone writes it."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists in lists without end") from None


def _encode_json(plain: object) -> str:
    return json.dumps(plain, separators=(",", ":"))
