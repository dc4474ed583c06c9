"""What a user writes, for mypy --strict to read: see test_public_api.py. Nothing here is run."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, assert_type

import dpsql


def of_a_connection(path: Path) -> None:
    with dpsql.connect(path, user="ana", epsilon=0.5, noise="laplace") as connection:
        assert_type(connection, dpsql.Connection)
        assert_type(connection.user, str | None)
        assert_type(connection.budget(), dpsql.Balance)
        assert_type(connection.explain("SELECT 1").epsilon, Fraction)
        assert_type(connection.sql("SELECT ?", ["x"]), dpsql.Answer)
    dpsql.connect({"dpsql": 1}, folder=path)
    dpsql.connect("dpsql:///clinic.yaml?user=ana")


def of_an_answer(answer: dpsql.Answer) -> None:
    assert_type(answer.columns, tuple[str, ...])
    assert_type(answer.rows, list[tuple[Any, ...]])
    assert_type(answer.errors, list[tuple[dpsql.CellError | None, ...]])
    assert_type(answer.loss, dpsql.Charge)
    assert_type(answer.loss.rho, Fraction)
    for row in answer:
        assert_type(row, tuple[Any, ...])
    answer.plot(y=["n"], kind="bar", library="altair")


def of_a_cursor(cursor: dpsql.Cursor) -> None:
    assert_type(cursor.execute("SELECT $1", [1.5]), dpsql.Cursor)
    assert_type(cursor.fetchone(), tuple[Any, ...] | None)
    assert_type(cursor.fetchall(), list[tuple[Any, ...]])
    assert_type(cursor.rowcount, int)
    assert_type(list(cursor), list[tuple[Any, ...]])
    assert cursor.description and cursor.description[0][1] == dpsql.NUMBER
    try:
        cursor.executemany("SET epsilon = ?", [(1,)])
    except dpsql.Error as error:
        assert_type(error.sqlstate, str)
        assert_type(error.charge, dpsql.Charge)


def of_wrong_use(connection: dpsql.Connection, answer: dpsql.Answer) -> None:
    """Each of these is a mistake that mypy finds; strict mode tells where it does not."""
    connection.sql(b"SELECT 1")  # type: ignore[arg-type]
    connection.sql("SELECT ?", [object()])  # type: ignore[list-item]
    answer.plot(kind="pie")  # type: ignore[arg-type]
    answer.loss = None  # type: ignore[misc, assignment]
    dpsql.connect("clinic.yaml", epsilon=None)  # type: ignore[arg-type]
