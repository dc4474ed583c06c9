"""What a connection holds by name: prepared statements and cursors, through a real session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.compiler.parse.cursor_commands import FetchCommand, FetchDirection
from dpsql.errors import Error, InvalidSyntax, LimitExceeded, OperationalError, ProgrammingError, Unsupported
from dpsql.session import named_statements
from dpsql.session.named_statements import _fetch_range
from dpsql.session.session import Session
from tests.support.shop import open_shop

SERIES = "SELECT x FROM generate_series(1, 5) AS t(x) ORDER BY x"
COUNT = "SELECT COUNT(*) AS n FROM orders WHERE amount < $1"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    opened = open_shop(tmp_path)[0]
    yield opened
    opened.close()


def charges(session: Session) -> int:
    return len(session.dataset.ledger.list_entries(session._account.name))


def test_a_prepared_statement_is_free_and_executing_it_is_charged(session: Session) -> None:
    assert session.execute(f"PREPARE s AS {COUNT}").command == "PREPARE"
    before = charges(session)
    rows = session.execute("EXECUTE s (5)").rows
    assert len(rows) == 1 and charges(session) > before and session.charged.epsilon > 0
    assert session.execute("EXECUTE s (5)").rows == rows and session.charged.epsilon == 0
    assert session.prepare("EXECUTE s (5)").columns[0].name == "n"
    session.execute("DEALLOCATE s")
    with pytest.raises(ProgrammingError) as caught:
        session.execute("EXECUTE s (5)")
    assert caught.value.sqlstate == "26000"


def test_texts_of_prepared_statements_are_bounded(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_statements, "MAX_PREPARED_BYTES", 100_000)
    long = f"SELECT '{'x' * 8_000}'"
    for number in range(3):
        session.execute(f"PREPARE s{number} AS {long}")
    with pytest.raises(OperationalError) as full:
        session.execute(f"PREPARE s3 AS {long}")
    assert full.value.sqlstate == "53200"
    session.execute("DEALLOCATE s0")
    session.execute(f"PREPARE s3 AS {long}")


def test_what_is_wrong_with_a_prepared_statement_is_reported_where_it_stands(session: Session) -> None:
    with pytest.raises(Error) as caught:
        session.execute("PREPARE s AS SELECT COUNT(*) FROM order_s")
    assert caught.value.span is not None and caught.value.span.start == 34
    session.execute("PREPARE s AS SELECT 1")
    with pytest.raises(ProgrammingError) as twice:
        session.execute("PREPARE s AS SELECT 2")
    assert twice.value.sqlstate == "42P05"
    with pytest.raises(ProgrammingError, match="1 given"):
        session.execute("EXECUTE s (1)")
    for inner in ("SET epsilon = 1", "EXECUTE s", "PREPARE t AS SELECT 1"):
        with pytest.raises((Unsupported, InvalidSyntax)):
            session.execute(f"PREPARE u AS {inner}")


def test_a_cursor_goes_through_rows_that_are_there(session: Session) -> None:
    session.execute("BEGIN")
    answer = session.execute(f"DECLARE c CURSOR FOR {SERIES}")
    assert answer.command == "DECLARE CURSOR" and answer.columns == ()

    def fetch(what: str) -> list[object]:
        return [row[0] for row in session.execute(f"FETCH {what} FROM c").rows]

    assert [fetch("2"), fetch("NEXT"), fetch("ALL"), fetch("NEXT")] == [[1, 2], [3], [4, 5], []]
    assert [fetch("PRIOR"), fetch("BACKWARD ALL"), fetch("PRIOR")] == [[5], [4, 3, 2, 1], []]
    assert [fetch("LAST"), fetch("FIRST"), fetch("ABSOLUTE 3"), fetch("RELATIVE -1")] == [[5], [1], [3], [2]]
    assert fetch("0") == [2]
    assert session.execute("MOVE 2 FROM c").command == "MOVE 2" and fetch("NEXT") == [5]
    assert session.execute("FETCH FIRST FROM c").command == "FETCH"
    assert [column.name for column in session.prepare("FETCH 10 FROM c").columns] == ["x"]
    assert session.execute("CLOSE c").command == "CLOSE CURSOR"
    with pytest.raises(ProgrammingError) as caught:
        fetch("NEXT")
    assert caught.value.sqlstate == "34000"


def test_a_cursor_ends_with_its_transaction_unless_it_holds(session: Session) -> None:
    with pytest.raises(ProgrammingError) as caught:
        session.execute(f"DECLARE c CURSOR FOR {SERIES}")
    assert caught.value.sqlstate == "25P01"
    session.execute(f"DECLARE h CURSOR WITH HOLD FOR {SERIES}")
    session.execute("BEGIN")
    session.execute(f"DECLARE c CURSOR FOR {SERIES}")
    session.execute("COMMIT")
    assert session.execute("FETCH h").rows == [(1,)]
    with pytest.raises(ProgrammingError):
        session.execute("FETCH c")
    session.execute("DISCARD ALL")
    with pytest.raises(ProgrammingError):
        session.execute("FETCH h")


def test_a_cursor_is_charged_once_where_it_is_declared(session: Session) -> None:
    session.execute("BEGIN")
    declared = session.execute("DECLARE c CURSOR FOR SELECT COUNT(*) FROM orders")
    assert declared.receipts and session.charged.epsilon > 0
    before = charges(session)
    fetched = session.execute("FETCH ALL FROM c")
    assert len(fetched.rows) == 1 and fetched.errors[0][0] is not None and fetched.receipts == ()
    assert session.charged.epsilon == 0 and charges(session) == before


def test_names_are_bounded(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.session.named_statements.MAX_NAMES", 2)
    monkeypatch.setattr("dpsql.session.named_statements.MAX_CURSOR_ROWS", 8)
    for number in range(2):
        session.execute(f"PREPARE s{number} AS SELECT 1")
    with pytest.raises(LimitExceeded):
        session.execute("PREPARE s AS SELECT 1")
    session.execute(f"DECLARE c CURSOR WITH HOLD FOR {SERIES}")
    with pytest.raises(LimitExceeded):
        session.execute(f"DECLARE d CURSOR WITH HOLD FOR {SERIES}")
    session.execute("DECLARE e CURSOR WITH HOLD FOR SELECT 1")
    with pytest.raises(LimitExceeded):
        session.execute("DECLARE f CURSOR WITH HOLD FOR SELECT 1")


def test_copy_is_for_a_server(session: Session) -> None:
    with pytest.raises(Unsupported, match="connections to a server"):
        session.execute("COPY (SELECT COUNT(*) FROM orders) TO STDOUT")
    assert session.charged.epsilon == 0


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_cursor_never_leaves_its_rows(rows: int) -> None:
    for at in range(rows + 2):
        for way in FetchDirection:
            for count in (None, 0, 1, 2, 7, -1, -7):
                if count is not None and count < 0 and way in (FetchDirection.FORWARD, FetchDirection.BACKWARD):
                    continue
                places, end = _fetch_range(FetchCommand("c", way, count), at, rows)
                assert all(1 <= place <= rows for place in places) and 0 <= end <= rows + 1


@pytest.mark.parametrize("name", ["epsilon", "application_name"])
def test_what_is_not_set_is_not_said_to_be(session: Session, name: str) -> None:
    """Where it is held, set_config() would be answered and do nothing: of a role, the wrong account would pay."""
    setting = f"SELECT set_config('{name}', '0.125', false)"
    before = session.execute(f"SHOW {name}").rows
    session.execute("DEALLOCATE ALL")
    with pytest.raises(Unsupported, match="a statement of its own"):
        session.execute(f"PREPARE r AS {setting}")
        session.execute("EXECUTE r")
    with pytest.raises(Unsupported, match="a statement of its own"):
        session.execute(f"DECLARE c CURSOR WITH HOLD FOR {setting}")
    assert session.execute(f"SHOW {name}").rows == before
    session.execute(setting)
    assert session.execute(f"SHOW {name}").rows == [("0.125",)]
