"""A connection that opens behind a prompt: what is there at once, and what is told where it cannot be opened."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dpsql
from dpsql.errors import AccessDenied, InterfaceError, InvalidParameter, SchemaError, StaleData
from dpsql.interfaces.dbapi.background_open import BackgroundConnection, open_in_background
from dpsql.session import preload
from dpsql.session.status_preview import preview_status

COUNT = "SELECT COUNT(*) FROM patients"
HEAVY = (
    "sqlglot",
    "duckdb",
    "numpy",
    "pandas",
    "pyarrow",
    "dpsql.session.session",
    "dpsql.compiler.compile",
    "dpsql.compiler.parse.parser",
)


@pytest.fixture
def path(folder: Path) -> Path:
    """A schema whose data was registered, and from which something was charged."""
    with dpsql.connect(folder / "clinic.yaml", user="ana") as connection:
        connection.cursor().execute(COUNT)
    return folder / "clinic.yaml"


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(at): (at.stat().st_size, at.stat().st_mtime_ns) for at in folder.rglob("*")}


def test_what_a_prompt_shows_is_what_the_connection_says(path: Path) -> None:
    soon = open_in_background(path, "ana")
    try:
        assert soon.status_preview is not None and not soon.is_done
        connection = soon.wait_for_connection()
        assert soon.status_preview.balance == connection.budget() and soon.status_preview.balance.charges == 1
        assert soon.status_preview.database == connection.database
        assert connection.cursor().execute(COUNT).fetchall()
    finally:
        soon.close()
    assert connection.closed


def test_looking_ahead_writes_nothing(path: Path) -> None:
    before = _stamps(path.parent)
    assert preview_status(path, "ana") is not None
    assert _stamps(path.parent) == before


def test_looking_ahead_imports_no_engine_and_no_sql(path: Path) -> None:
    code = (
        "import sys\nfrom dpsql.interfaces.dbapi.background_open import open_in_background\n"
        f"assert open_in_background({str(path)!r}, 'ana').status_preview\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_data_that_must_be_registered_is_opened_at_once(folder: Path) -> None:
    soon = open_in_background(folder / "clinic.yaml", "ana")
    assert soon.status_preview is None and soon.is_done
    assert soon.wait_for_connection().cursor().execute(COUNT).fetchall()
    soon.close()


def test_data_that_has_changed_is_refused_at_once(path: Path) -> None:
    csv = next(path.parent.rglob("visits*.parquet"), None) or next(path.parent.rglob("visits*.csv"))
    os.utime(csv, ns=(1, 1))
    with pytest.raises(StaleData):
        open_in_background(path, "ana")


def test_user_and_schema_are_checked_at_once(path: Path) -> None:
    with pytest.raises(AccessDenied, match="eve"):
        open_in_background(path, "eve")
    with pytest.raises(SchemaError, match="no such file"):
        open_in_background(path.with_name("clinics.yaml"), "ana")


def test_what_opening_raises_is_raised_each_time(path: Path) -> None:
    soon, told = open_in_background(path, "ana", epsilon="many"), []
    soon.start_opening(told.append)
    for _ in range(2):
        with pytest.raises(InvalidParameter):
            soon.wait_for_connection()
    soon.close()
    assert [type(error) for error in told] == [InvalidParameter]


def test_settings_and_the_user_may_stand_in_the_address(path: Path) -> None:
    soon = open_in_background(f"dpsql:///{path}?user=ana&contributions_rows=2")
    assert soon.user == "ana"
    assert soon.wait_for_connection().cursor().execute("SHOW contributions.rows").fetchall() == [("2",)]
    soon.close()


def test_leaving_while_it_opens_waits_for_one_part_at_most(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def slow(name: str) -> object:
        asked.append(name)
        time.sleep(0.2)
        return sys.modules["dpsql"]

    monkeypatch.setattr(preload, "import_module", slow)
    soon = open_in_background(path, "ana")
    soon.start_opening()
    soon.close()
    assert len(asked) <= 2, asked
    with pytest.raises(InterfaceError, match="closed"):
        soon.wait_for_connection()


def test_it_is_opened_once(path: Path) -> None:
    soon = open_in_background(path, "ana")
    soon.start_opening()
    soon.start_opening()
    assert soon.wait_for_connection() is soon.wait_for_connection()
    assert isinstance(soon, BackgroundConnection)
    soon.close()
    soon.close()
