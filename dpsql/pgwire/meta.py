"""What dpsql's own client is told beside what PostgreSQL's protocol has words for; server and client use this file.

The client asks for it by the startup parameter `_dpsql.client` = `on`. A server that knows it answers with

- at login, one ParameterStatus named `dpsql.server` whose value is `write_server(...)`;
- for each answer, behind its last DataRow and before its CommandComplete, one NoticeResponse for each text of
  `answer_notices(answer, charge, left)`: severity NOTICE, code `01DP1`, message `dpsql`, the text as Detail. They
  replace the notices for people;
- for each error, before its ErrorResponse, one such notice with `error_notice(error, charge)`;
- while a statement runs, whenever it likes, `progress_notice(delivered, releases)`.

And the client tells with each statement, in the names of its prepared statement and portal (`Parse` and `Bind`), what
holds for that statement alone: settings, and whether it must be free. The server reads it by `read_name(name)`: for
`Parse`, the settings are those of `session.prepare`, for `Execute` those of `session.execute`, with a ticket that is
`free`. A name that does not begin with MARK is an ordinary one.

Law: figures are exact: fractions are texts such as "1/3", floats are JSON's shortest form, which reads back the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dpsql import errors
from dpsql.figures import NOTHING, CellError, Charge
from dpsql.plain import from_plain, tell, to_plain, told
from dpsql.span import Span
from dpsql.types import Type

if TYPE_CHECKING:
    from dpsql.session import Answer

PARAMETER = "_dpsql.client"
"""The startup parameter by which a client asks for these; `on` switches them on."""
SERVER = "dpsql.server"
"""The ParameterStatus by which a server says that it has them."""
CODE = "01DP1"
"""The SQLSTATE of these notices: a warning, of the class that PostgreSQL leaves to implementations."""
MESSAGE = "dpsql"
MARK = "dpsql:"
CHUNK = 500
"""Cells in one notice: some 50 kB, however long the answer is. Only lists can make it longer; a Detail is never cut."""

Cells = Sequence[tuple[CellError | None, ...]]


# --- who answers -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Server:
    """What a server says of itself and of the login."""

    version: str
    database: str
    user: str | None


def write_server(server: Server) -> str:
    return _text(to_plain(server))


def read_server(text: str) -> Server:
    """ValueError where this is no server of ours."""
    return from_plain(Server, read_json(text))


# --- what holds for one statement ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wishes:
    settings: tuple[tuple[str, str], ...] = ()
    free: bool = False


def write_name(wishes: Wishes) -> str:
    """
    >>> write_name(Wishes((("epsilon", "0.1"),), free=True))
    'dpsql:{"settings":[["epsilon","0.1"]],"free":true}'
    >>> write_name(Wishes())
    ''
    """
    return "" if wishes == Wishes() else MARK + _text(to_plain(wishes))


def read_name(name: str) -> Wishes:
    """What `write_name` wrote; nothing where the name is an ordinary one.

    >>> read_name('dpsql:{"settings":[["epsilon","0.1"]],"free":true}')
    Wishes(settings=(('epsilon', '0.1'),), free=True)
    >>> read_name("a_cursor")
    Wishes(settings=(), free=False)
    """
    if not name.startswith(MARK):
        return Wishes()
    try:
        return from_plain(Wishes, read_json(name.removeprefix(MARK)))
    except ValueError:
        raise errors.ProgrammingError("the name of a statement cannot be read", sqlstate="08P01") from None


# --- answers and errors ----------------------------------------------------------------------------------------------


def answer_notices(answer: Answer, charge: Charge, left: str | None) -> Iterator[str]:
    """The Details of an answer's notices: first what is told of it, then error bars, and values that the wire has no
    type for, by columns and in chunks."""
    yield _text({
        "charge": to_plain(charge),
        "command": answer.command,
        "columns": [[one.name, to_plain(one.type), one.spelling] for one in answer.columns],
        "rows": len(answer.rows),
        "notices": list(answer.notices),
        "receipts": [[one.account, one.number, one.hash] for one in answer.receipts],
        "left": left,
    })  # fmt: skip
    for place, column in enumerate(answer.columns):
        for start in range(0, len(answer.rows), CHUNK):
            bars = [row[place] for row in answer.errors[start : start + CHUNK]]
            if any(bar is not None for bar in bars):
                yield _text({"column": place, "from": start, "bars": [_bar(bar) for bar in bars]})
            if column.type is None:
                values = [tell(row[place]) for row in answer.rows[start : start + CHUNK]]
                yield _text({"column": place, "from": start, "values": values})


def error_notice(error: Exception, charge: Charge) -> str:
    """Of an error that is not one of ours nothing is told but the charge: its text may hold rows."""
    told = error if isinstance(error, errors.Error) else errors.InternalError("internal error")
    known = {"error": type(told).__name__, "span": to_plain(told.span), "detail": told.detail}
    return _text({"charge": to_plain(charge), **known})


def progress_notice(delivered: int, releases: int) -> str:
    return _text({"progress": [delivered, releases]})


@dataclass
class Told:
    """What the notices of one statement have told so far."""

    charge: Charge = NOTHING
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

    def add(self, detail: str) -> None:
        """Read one more notice; ValueError where it cannot be one."""
        plain = read_json(detail)
        try:
            self._add(plain)
        except (KeyError, TypeError, AttributeError, IndexError, RecursionError):
            raise ValueError("a notice of another form") from None

    def _add(self, plain: Mapping[str, Any]) -> None:
        if "progress" in plain:
            self.progress = from_plain(_PAIR, plain["progress"])
        if "charge" in plain:
            self.charge = from_plain(Charge, plain["charge"])
        if "error" in plain:
            self.error, self.span = str(plain["error"]), from_plain(_SPAN, plain["span"])
            self.detail = from_plain(_WORDS, plain["detail"])
        if "columns" in plain:
            self.columns = from_plain(_COLUMNS, plain["columns"])
            self.command, self.left = str(plain["command"]), from_plain(_WORDS, plain["left"])
            self.notices = tuple(str(one) for one in plain["notices"])
            self.receipts = from_plain(_RECEIPTS, plain["receipts"])
            self.rows = from_plain(int, plain["rows"])
        for place, bar in enumerate(plain.get("bars", ()), start=plain.get("from", 0)):
            if bar is not None:
                self.bars[self._cell(place, plain["column"])] = CellError(*map(told, bar))
        for place, value in enumerate(plain.get("values", ()), start=plain.get("from", 0)):
            self.values[self._cell(place, plain["column"])] = told(value)

    def _cell(self, row: int, column: int) -> tuple[int, int]:
        if 0 <= row < self.rows and 0 <= column < len(self.columns):
            return row, column
        raise ValueError("a cell that the answer does not have")

    def bars_of(self, row: int) -> tuple[CellError | None, ...]:
        return tuple(self.bars.get((row, column)) for column in range(len(self.columns)))


_PAIR: Any = tuple[int, int]
_SPAN: Any = Span | None
_WORDS: Any = str | None
_COLUMNS: Any = tuple[tuple[str, Type | None, str], ...]
_RECEIPTS: Any = tuple[tuple[str, int, str], ...]


def _bar(bar: CellError | None) -> Any:
    return None if bar is None else [tell(bar.stderr), tell(bar.low), tell(bar.high)]


def read_json(text: str | bytes) -> Any:
    """ValueError where it is none, or is nested deeper than anyone writes it."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists in lists without end") from None


def _text(plain: object) -> str:
    return json.dumps(plain, separators=(",", ":"))
