"""The public names are exactly these, and importing them is fast."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpsql

ROOT = Path(__file__).parent.parent
PUBLIC = {
    "connect", "Connection", "Cursor", "Answer", "Balance", "CellError", "Charge", "Explanation", "Receipt", "__version__",
    "apilevel", "paramstyle", "threadsafety",
    "Warning", "Error", "InterfaceError", "DatabaseError", "DataError", "OperationalError", "IntegrityError",
    "InternalError", "ProgrammingError", "NotSupportedError",
    "Date", "Time", "Timestamp", "DateFromTicks", "TimeFromTicks", "TimestampFromTicks", "Binary",
    "STRING", "BINARY", "NUMBER", "DATETIME", "ROWID",
}  # fmt: skip


def test_the_public_names():
    assert set(dpsql.__all__) == PUBLIC and len(dpsql.__all__) == len(PUBLIC)
    assert set(dir(dpsql)) >= PUBLIC
    for name in PUBLIC:
        assert getattr(dpsql, name) is not None


def test_unknown_names_are_told():
    with pytest.raises(AttributeError, match="'dpsql' has no attribute 'conect'"):
        _ = dpsql.conect


def test_the_version_is_that_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert dpsql.__version__ == project["version"]


def test_import_opens_nothing_heavy():
    code = "import sys, dpsql, dpsql.cli.run; print(sorted({'duckdb', 'sqlglot', 'numpy', 'yaml'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
