"""Descriptions of releases: text that the ledger keeps, and what they tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.compiler.reuse.describe import CellKind, DescribedRelease, shape_from_text, shape_to_text
from dpsql.errors import IntegrityError
from dpsql.session.session import Session
from tests.support.shop import open_shop


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    session, reference = open_shop(Path(tmp_path_factory.mktemp("shop")))
    yield session
    session.dataset.close()
    reference.close()


def described(session: Session, sql: str) -> DescribedRelease:
    (step,) = session.compile_statement(sql).steps
    assert step.described is not None
    return step.described


STATEMENTS = (
    "SELECT COUNT(*) FROM orders",
    "SELECT region, vip, COUNT(*), AVG(age), VAR_POP(age) FROM people WHERE age > 3 GROUP BY region, vip",
    "SELECT city, kind, SUM(qty), COUNT(DISTINCT uid), COUNT(DISTINCT note) FROM orders GROUP BY city, kind",
    "SELECT CORR(qty, amount) FROM orders JOIN people USING (uid) WHERE vip",
)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_text_says_it_all(sql: str, session: Session) -> None:
    shape = described(session, sql).shape
    assert shape_from_text(shape_to_text(shape)) == shape
    assert shape_to_text(shape) == shape_to_text(described(session, sql.lower()).shape)


def test_it_holds_no_value_of_the_release(session: Session) -> None:
    """Everything in it is known before the engine is asked."""
    before = shape_to_text(described(session, STATEMENTS[2]).shape)
    session.execute(STATEMENTS[2])
    assert shape_to_text(described(session, STATEMENTS[2]).shape) == before


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"dpsql_shape":1}', '{"dpsql_shape":1,"rows":"a","conditions":[],'
                                  '"keys":[["k"]],"cells":[],"selection":null}'])  # fmt: skip
def test_damaged_text_is_found(text: str) -> None:
    with pytest.raises(IntegrityError):
        shape_from_text(text)


def test_another_format_describes_nothing() -> None:
    assert shape_from_text('{"dpsql_shape":99}') is None


def test_conditions_stand_apart_from_rows(session: Session) -> None:
    one = described(session, "SELECT kind, COUNT(*) FROM orders WHERE paid AND qty > 3 GROUP BY kind").shape
    other = described(session, "SELECT SUM(amount) FROM orders").shape
    assert one.rows == other.rows and len(one.conditions) == 3 and not other.conditions
    assert one.keys[0].present in one.conditions  # rows without a kind are in no group


def test_other_rows_caps_and_noises_are_distinguished(session: Session) -> None:
    sql = "SELECT COUNT(*) FROM orders"
    rows = {described(session, sql).shape.rows, described(session, "SELECT COUNT(*) FROM people").shape.rows}
    rows.add(described(session, "SELECT COUNT(*) FROM orders JOIN people USING (uid)").shape.rows)
    for name, value in (("contributions.rows", "7"), ("contributions.groups", "3"), ("noise", "laplace")):
        session.execute(f"SET {name} = {value}")
        rows.add(described(session, sql).shape.rows)
        session.execute(f"RESET {name}")
    assert len(rows) == 6


def test_forms_are_of_clipped_sums_on_their_grid(session: Session) -> None:
    shape = described(session, "SELECT SUM(qty), COUNT(qty), SUM(CLIP(qty, 0, 3)) FROM orders").shape
    names = {atom for cell in shape.cells if cell is not None for atom, _ in cell.form}
    assert names == {
        "weighed 4000 l2 count ['qty']",
        "weighed 4000 l2 sum ['qty'] 1 -5 20",
        "weighed 4000 l2 sum (clip:0:3 ['qty']) 1 0 3",
    }
    above = shape.cells[0]
    assert above is not None and above.kind is CellKind.WEIGHED and not above.spread
    assert dict(above.form)["weighed 4000 l2 count ['qty']"] == Fraction(5)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT kind, COUNT(*) FROM orders GROUP BY ROLLUP (kind)",
        "SELECT COUNT(*) FROM orders WHERE qty > (SELECT AVG(age) FROM people)",
        "SELECT MEDIAN(age) FROM people",
    ],
)
def test_nothing_is_derived_from_sets_runtime_parameters_and_bins(sql: str, session: Session) -> None:
    assert session.compile_statement(sql).steps[-1].described is None
