"""The public names are exactly these, and importing them is fast."""

import ast
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpsql
import dpsql.errors
from tests.support.optional_dependencies import package

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
PUBLIC = {
    "connect", "Connection", "Cursor", "Answer", "Balance", "CellError", "Charge", "Explanation", "Receipt",
    "AboveThreshold", "Holdout",
    "__version__", "apilevel", "paramstyle", "threadsafety",
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


def test_unknown_names_are_reported():
    with pytest.raises(AttributeError, match="'dpsql' has no attribute 'conect'"):
        _ = dpsql.conect


def test_the_version_is_that_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert dpsql.__version__ == project["version"]


def test_import_opens_nothing_heavy():
    code = (
        "import sys, dpsql, dpsql.interfaces.cli.main; print(sorted({'duckdb', 'sqlglot', 'numpy', 'yaml'} & "
        "set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_import_is_light_with_all_that_needs_no_data():
    """Errors, constructors, type objects, and the parts of an answer that people catch, compare and build."""
    code = (
        "import sys, dpsql; dpsql.Error, dpsql.NUMBER, dpsql.CellError, dpsql.Charge, dpsql.Date(2024, 1, 1);"
        "print(sorted({'duckdb', 'sqlglot', 'numpy', 'yaml', 'pandas', 'polars', 'pyarrow', 'matplotlib', 'altair'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_answer_needs_no_optional_library(tmp_path):
    """Those are imported where they are asked for."""
    code = (
        "import sys, dpsql.interfaces.dbapi.connection;"
        "print(sorted({'pandas', 'polars', 'pyarrow', 'matplotlib', 'altair', 'IPython'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", [dpsql.Connection, dpsql.Cursor, dpsql.Answer], ids=lambda kind: kind.__name__)
def test_every_method_has_a_docstring_and_types_for_editors(kind):
    """A docstring; of a field, the text below it."""
    source = ast.parse(inspect.getsource(kind)).body[0]
    pairs = zip(source.body, [*source.body[1:], None], strict=True)
    told = {one.target.id for one, below in pairs if isinstance(one, ast.AnnAssign) and isinstance(below, ast.Expr)}
    fields = {one.target.id for one in source.body if isinstance(one, ast.AnnAssign)}
    names = {name for name in vars(kind) if not name.startswith("_")} | fields
    silent = [name for name in names - told if not inspect.getdoc(getattr(kind, name, None)) or name in fields]
    assert inspect.getdoc(kind) and silent == []


def test_every_public_name_has_a_docstring_for_editors():
    words = {"__version__", "apilevel", "paramstyle", "threadsafety", "STRING", "BINARY", "NUMBER", "DATETIME", "ROWID"}
    assert [name for name in PUBLIC - words if not getattr(dpsql, name).__doc__] == []


def test_errors_have_docstrings_of_their_own():
    kinds = [kind for kind in vars(dpsql.errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) > 25 and [kind.__name__ for kind in kinds if not kind.__dict__.get("__doc__")] == []


def test_types_are_those_that_a_user_sees():
    """The package says that it is typed, and a strict reader of a user's code agrees with it."""
    assert (ROOT / "dpsql" / "py.typed").exists()
    package("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "tests/typed_use.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
