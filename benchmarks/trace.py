"""What one statement passes through: modules, compiles, parses, tokenizations and ledger transactions.

    python -m benchmarks.trace             the table
    python -m benchmarks.trace --callers   and who called each of what is counted

The hospital is that of `dpsql demo` with declared contributions, asked by one analyst. Counted are calls, on all
threads:

    fresh      a statement that has to be charged and run, by `Session.execute`
    prepared   the same as PostgreSQL's drivers send it: Parse, Describe, Bind, Execute, Sync
    parameter  the same with a parameter, whose type has to be inferred and whose value narrows bounds
    repeated   a statement that the account has paid for, asked once more by another session
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType

import dpsql
from dpsql.interfaces.pgwire.backend_session.protocol_session import ProtocolSession
from dpsql.interfaces.pgwire.protocol.frontend import Bind, Describe, Execute, Parse, Sync
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from tests.support.server import make_declared_hospital

SQL = "SELECT ward, COUNT(*), AVG(cost) FROM visits GROUP BY ward"
WITH_PARAMETER = "SELECT ward, COUNT(*), AVG(cost) FROM visits WHERE nights > $1 GROUP BY ward"
USER = "ana"

COUNTED = {
    "compiles": {("compiler/compile.py", "PlannedQuery.compile")},
    "parses": {("compiler/parse/parser.py", "parse_query_with_options"), ("compiler/catalog/query.py", "_parse_query")},
    "tokenizations": {("compiler/parse/parser.py", "tokenize")},
    "reads": {("ledger/sqlite.py", "SqliteDatabase.read")},
    "writes": {("ledger/sqlite.py", "SqliteDatabase.write")},
}
"""By file and qualified name."""

_PACKAGE = str(Path(dpsql.__file__).parent) + "/"


@dataclass
class Trace:
    """What ran while it was on: files of the package, and the calls that are counted, with their callers."""

    files: set[str] = field(default_factory=set)
    calls: Counter[str] = field(default_factory=Counter)
    callers: list[str] = field(default_factory=list)

    @property
    def transactions(self) -> int:
        return self.calls["reads"] + self.calls["writes"]

    def note(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        name = _name_in_package(frame.f_code)
        if name is None or name[1] == "<module>":
            return
        self.files.add(name[0])
        for kind, functions in COUNTED.items():
            if name in functions:
                self.calls[kind] += 1
                self.callers.append(f"{kind}: {' < '.join(_caller_names(frame))}")


def _name_in_package(code: CodeType) -> tuple[str, str] | None:
    if not code.co_filename.startswith(_PACKAGE):
        return None
    return code.co_filename.removeprefix(_PACKAGE), code.co_qualname


def _caller_names(frame: FrameType | None) -> Iterator[str]:
    found = 0
    while (frame := frame.f_back if frame is not None else None) is not None and found < 6:
        name = _name_in_package(frame.f_code)
        if name is not None:
            found += 1
            yield name[1]


@contextmanager
def traced() -> Iterator[Trace]:
    """What runs within, also on threads that it starts."""
    trace = Trace()
    threading.setprofile(trace.note)
    sys.setprofile(trace.note)
    try:
        yield trace
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def execute_prepared(session: Session, sql: str, values: tuple[bytes, ...] = ()) -> None:
    """As a driver does: in two flights, the first of which asks for the types."""
    handler = ProtocolSession(session)
    for message in (
        Parse("s", sql, ()),
        Describe("S", "s"),
        Sync(),
        Bind("", "s", (), values, ()),
        Describe("P", ""),
        Execute("", 0),
        Sync(),
    ):
        for reply in handler.handle_message(message):
            assert not reply.startswith(b"E"), reply


def trace_statements(folder: Path) -> dict[str, Trace]:
    """Each on a ledger of its own, so that none derives from what another bought; sessions are open before."""
    execute, prepared = partial(Session.execute, sql=SQL), partial(execute_prepared, sql=SQL)
    with_parameter = partial(execute_prepared, sql=WITH_PARAMETER, values=(b"2",))
    return {
        "fresh": _trace_one(folder / "fresh", execute),
        "prepared": _trace_one(folder / "prepared", prepared),
        "parameter": _trace_one(folder / "parameter", with_parameter),
        "repeated": _trace_one(folder / "repeated", execute, execute),
    }


def _trace_one(
    folder: Path, work: Callable[[Session], object], before: Callable[[Session], object] = lambda session: None
) -> Trace:
    folder.mkdir()
    dataset = open_dataset(make_declared_hospital(folder))
    try:
        before(Session(dataset, USER))
        session = Session(dataset, USER)
        with traced() as trace:
            work(session)
            dataset.runs.wait_until_idle()
        return trace
    finally:
        dataset.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--callers", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        traces = trace_statements(Path(folder))
    columns = ("files", *COUNTED, "transactions")
    print(f"{'':<12}" + "".join(f"{column:>15}" for column in columns))
    for name, trace in traces.items():
        figures = (len(trace.files), *(trace.calls[kind] for kind in COUNTED), trace.transactions)
        print(f"{name:<12}" + "".join(f"{figure:>15}" for figure in figures))
    for name, trace in traces.items() if options.callers else ():
        print(f"\n{name}", *trace.callers, sep="\n    ")


if __name__ == "__main__":
    main()
