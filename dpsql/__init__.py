"""A SQL-rewriting differential-privacy proxy.

    import dpsql

    with dpsql.connect("schemas/clinic.yaml", user="ana", epsilon=0.5) as connection:
        answer = connection.sql("SELECT sex, COUNT(*) FROM patients WHERE birth_year < ? GROUP BY sex", [1980])
        print(answer)         # a table with error bars, what was charged, what is left
        answer.df()           # pandas; .pl() is polars, .arrow() Arrow, .plot() a chart

What opens data is imported when it is first used, so that `import dpsql` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpsql.amounts import CellError, Charge
from dpsql.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from dpsql.interfaces.dbapi.types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    apilevel,
    paramstyle,
    threadsafety,
)
from dpsql.version import VERSION

if TYPE_CHECKING:
    from dpsql.interfaces.dbapi.connection import Connection, connect
    from dpsql.interfaces.dbapi.cursor import Cursor
    from dpsql.interfaces.dbapi.mechanisms import AboveThreshold, Holdout
    from dpsql.interfaces.dbapi.result import Answer
    from dpsql.session.session import Balance, Explanation, Receipt

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "AboveThreshold",
    "Answer",
    "Balance",
    "Binary",
    "CellError",
    "Charge",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "Explanation",
    "Holdout",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Receipt",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

__version__ = VERSION


_LATER = {
    "AboveThreshold": "dpsql.interfaces.dbapi.mechanisms",
    "Answer": "dpsql.interfaces.dbapi.result",
    "Balance": "dpsql.session.session",
    "Connection": "dpsql.interfaces.dbapi.connection",
    "Cursor": "dpsql.interfaces.dbapi.cursor",
    "Explanation": "dpsql.session.session",
    "Holdout": "dpsql.interfaces.dbapi.mechanisms",
    "Receipt": "dpsql.session.session",
    "connect": "dpsql.interfaces.dbapi.connection",
    "load_ipython_extension": "dpsql.interfaces.dbapi.notebook",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'dpsql' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
