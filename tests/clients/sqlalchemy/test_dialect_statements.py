"""Statements of Core and ORM, their settings, values, errors and error bars."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pandas
import pytest
from sqlalchemy import (
    TIMESTAMP,
    Engine,
    Interval,
    Numeric,
    String,
    Uuid,
    and_,
    bindparam,
    case,
    cast,
    exc,
    extract,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    text,
    true,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, aliased, mapped_column
from sqlalchemy.schema import CreateTable

from dpsql.compiler.settings import SETTING_NAMES
from dpsql.interfaces.sqlalchemy import result_metadata, told
from dpsql.interfaces.sqlalchemy.execution import EXECUTION_OPTIONS
from tests.support.optional_dependencies import package


def statements(tables: Any) -> dict[str, Any]:
    visits, patients, tests, wards = (tables[name] for name in ("visits", "patients", "lab_tests", "wards"))
    by_ward = select(visits.c.ward, func.count().label("n")).group_by(visits.c.ward)
    grouped = by_ward.cte("grouped")
    released = by_ward.subquery()
    p = patients.alias("p")
    return {
        "count": select(func.count()).select_from(visits),
        "groups": select(patients.c.sex, func.count(), func.avg(patients.c.birth_year)).group_by(patients.c.sex),
        "join": select(patients.c.sex, func.sum(visits.c.cost)).join_from(patients, visits).group_by(patients.c.sex),
        "two joins": select(func.avg(tests.c.value)).join_from(tests, visits).join(patients),
        "alias": select(p.c.insured, func.count()).group_by(p.c.insured).order_by(p.c.insured),
        "subquery": select(func.max(released.c.n), func.count()),
        "cte": select(grouped.c.ward).where(grouped.c.n > 100).order_by(grouped.c.n.desc()).limit(3),
        "case": select(func.sum(case((visits.c.nights > 3, 1), else_=0))),
        "filter": select(func.count().filter(visits.c.cost > 100), func.count()).select_from(visits),
        "window over groups": select(
            visits.c.ward, func.rank().over(order_by=func.count().desc())
        ).group_by(visits.c.ward),
        "limit and offset": by_ward.order_by(text("n DESC")).limit(2).offset(1),
        "fetch": by_ward.order_by("n").fetch(2),
        "having": by_ward.having(func.count() > 10),
        "literal column": select(literal_column("'all'"), func.count()).select_from(visits),
        "ilike": select(func.count()).where(visits.c.ward.ilike("%CARD%")),
        "like and escape": select(func.count()).where(visits.c.ward.contains("50%", autoescape=True)),
        "extract": select(extract("year", visits.c.at), func.count()).group_by(extract("year", visits.c.at)),
        "date_trunc": select(func.date_trunc("month", visits.c.at).label("m"), func.count()).group_by("m"),
        "cast": select(cast(func.count(), String)).select_from(visits),
        "in": select(func.count()).where(visits.c.ward.in_(["surgery", "cardiology"])),
        "in nothing": select(func.count()).where(visits.c.ward.in_([])),
        "not in": select(func.count()).where(visits.c.nights.not_in([1, 2])),
        "in a sub-select": select(func.count()).where(visits.c.ward.in_(select(wards.c.ward).where(wards.c.floor > 1))),
        "tuples": select(func.count()).select_from(wards).where(tuple_(wards.c.ward, wards.c.floor).in_([("a", 1)])),
        "times": select(func.count()).where(visits.c.at.between(dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1))),
        "a date": select(func.count()).where(tests.c.day >= dt.date(2024, 6, 1)),
        "a span": select(func.count()).where(visits.c.at > literal(dt.datetime(2024, 1, 2)) - dt.timedelta(days=1)),
        "or": select(func.count()).where(or_(and_(visits.c.nights > 2, visits.c.cost < 9), visits.c.ward.is_(None))),
        "booleans": select(func.count()).where(patients.c.insured == true()),
        "distinct": select(func.count(visits.c.patient_id.distinct())),
        "union": union_all(by_ward, select(literal("all"), func.count()).select_from(visits)),
        "ratio": select(func.sum(visits.c.nights) / func.count()).select_from(visits),
        "public rows": select(wards).order_by(wards.c.ward),
        "a view": select(tables["by_sex"]).order_by("sex"),
        "exists": select(func.count()).select_from(patients).where(
            select(visits.c.visit_id).where(visits.c.patient_id == patients.c.patient_id).exists()
        ),
        "left join": select(wards.c.ward, func.count(visits.c.visit_id)).select_from(
            wards.outerjoin(visits, visits.c.ward == wards.c.ward)
        ).group_by(wards.c.ward),
        "error bars": select(func.count(), func.dp_stderr(func.count()), func.dp_low(func.count())).select_from(visits),
    }  # fmt: skip


def test_statements_are_answered(engine: Engine, tables: Any) -> None:
    refused = {}
    with engine.connect() as connection:
        for title, statement in statements(tables).items():
            try:
                assert connection.execute(statement).all() is not None
            except exc.DBAPIError as error:
                refused[title] = str(error)
    assert refused == {}


def test_the_same_question_is_the_same_however_its_values_are_bound(engine: Engine, tables: Any) -> None:
    """Bound with a cast, rendered as literals, or written by hand: paid once."""
    visits = tables["visits"]
    statement = select(func.count()).where(visits.c.at >= dt.datetime(2024, 1, 1), visits.c.ward == "surgery")
    by_hand = "SELECT COUNT(*) FROM visits WHERE ward = 'surgery' AND at >= '2024-01-01'"
    with engine.connect() as connection:
        first = connection.execute(statement)
        rendered = connection.exec_driver_sql(str(statement.compile(engine, compile_kwargs={"literal_binds": True})))
        others = [rendered, connection.execute(text(by_hand)), connection.execute(statement)]
        assert result_metadata(first).loss and not any(result_metadata(other).loss for other in others)
        assert {other.scalar() for other in others} == {first.scalar()}


TEXTS = ["'", "''", "\\", "\\' OR 1=1 --", "%", "%%s", ":a", "?", "$1", "a\nb", "\u0142\U0001f40d", ""]


@pytest.mark.parametrize("value", TEXTS)
def test_texts_are_values_bound_and_literal(engine: Engine, value: str) -> None:
    with engine.connect() as connection:
        assert connection.execute(select(literal(value))).scalar() == value
        assert connection.execute(select(literal(value, literal_execute=True))).scalar() == value
        rendered = select(literal(value)).compile(engine, compile_kwargs={"literal_binds": True})
        assert connection.exec_driver_sql(str(rendered)).scalar() == value


VALUES = [
    1, -(2**62), 1.5, Decimal("1.50"), True, False, "text", dt.date(1850, 2, 3), dt.datetime(2024, 2, 29, 1, 2, 3, 4),
    dt.time(23, 59, 59, 1), dt.timedelta(days=-3, seconds=5, microseconds=7), dt.timedelta(microseconds=1),
    dt.timedelta(days=400), uuid.UUID(int=7),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_go_there_and_come_back(engine: Engine, value: object) -> None:
    with engine.connect() as connection:
        back = connection.execute(select(literal(value))).scalar()
        assert back == value and isinstance(back, type(value))
        rendered = select(literal(value)).compile(engine, compile_kwargs={"literal_binds": True})
        assert connection.exec_driver_sql(str(rendered)).scalar() == value


def test_an_instant_with_a_zone(engine: Engine) -> None:
    instant = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    with engine.connect() as connection:
        back = connection.execute(select(cast(instant, TIMESTAMP(timezone=True)))).scalar()
    assert back == instant


def test_numeric_is_decimal_and_float_is_float(engine: Engine) -> None:
    with engine.connect() as connection:
        value, plain = literal_column("1.25"), Numeric(10, 2, asdecimal=False)
        one, other = connection.execute(select(cast(value, Numeric(10, 2)), cast(value, plain))).one()
    assert (one, type(one), other, type(other)) == (Decimal("1.25"), Decimal, 1.25, float)


# --- settings of one statement ---------------------------------------------------------------------------------------


def test_every_setting_is_an_option() -> None:
    assert tuple(EXECUTION_OPTIONS.values()) == SETTING_NAMES


def test_options_are_for_their_statement_alone(engine: Engine, tables: Any) -> None:
    statement = select(func.count()).select_from(tables["visits"])
    with engine.connect() as connection:
        dear = connection.execute(statement.execution_options(epsilon=0.5, delta="1e-8"))
        assert (result_metadata(dear).loss.epsilon, result_metadata(dear).loss.delta) == (0.5, Decimal("1e-8"))
        assert connection.execute(text("SHOW epsilon")).scalar() == "0.1"
        plain = connection.execute(select(func.count()).select_from(tables["patients"]))
        assert result_metadata(plain).loss.epsilon == Decimal("0.1")


def test_options_of_the_connection_and_of_the_engine(engines: Callable[..., Engine]) -> None:
    engine = engines("?user=ana", execution_options={"epsilon": 0.25})
    with engine.connect() as connection:
        assert connection.execute(text("SHOW epsilon")).scalar() == "0.25"
    with engine.connect().execution_options(epsilon="1/8", nonnegative=True) as connection:
        assert connection.execute(text("SHOW epsilon")).scalar() == "0.125"
        assert connection.execute(text("SHOW nonnegative")).scalar() == "on"
        connection.execute(text("SET delta = 1e-9"))  # what is set stays set, whatever the options are
        assert connection.execute(text("SHOW delta")).scalar() == "1E-9"
        with connection.begin_nested():
            assert connection.execute(text("SHOW epsilon")).scalar() == "0.125"


def test_a_failing_statement_leaves_no_setting_behind(engine: Engine) -> None:
    with engine.connect() as connection:
        for bad in ({"epsilon": -1}, {"epsilon": "x"}, {"epsilon": 0.3, "noise": "pink"}):
            with pytest.raises(exc.ProgrammingError):
                connection.execute(text("SELECT 1").execution_options(**bad))
        with pytest.raises(exc.ProgrammingError):
            connection.execute(text("SELECT nothing FROM visits").execution_options(epsilon=0.3))
        assert connection.execute(text("SHOW epsilon")).scalar() == "0.1"


def test_an_error_target_of_the_session_does_not_apply_to_a_statement_with_an_epsilon(engine: Engine) -> None:
    with engine.connect() as connection:
        connection.execute(text("SET max_error = 5"))
        answer = connection.execute(text("SELECT COUNT(*) FROM patients").execution_options(epsilon=0.2))
        assert result_metadata(answer).loss.epsilon == Decimal("0.2")
        with pytest.raises(exc.ArgumentError, match="not both"):
            connection.execute(text("SELECT 1").execution_options(epsilon=0.2, max_error=5))


def test_an_option_that_is_not_there(engine: Engine) -> None:
    with engine.connect() as connection, pytest.raises(exc.ArgumentError, match="epsilon, delta"):
        connection.execute(text("SELECT 1").execution_options(dpsql_epsilom=1))


@pytest.mark.parametrize(
    ("name", "near"), [("epsilno", "epsilon"), ("max_eror", "max_error"), ("contributions.rows", "contributions_rows")]
)
def test_an_option_that_is_nearly_a_setting_is_refused(engine: Engine, name: str, near: str) -> None:
    """It was passed over, and the default was charged."""
    with engine.connect() as connection:
        with pytest.raises(exc.ArgumentError, match=f'perhaps you meant "{near}"'):
            connection.execute(text("SELECT COUNT(*) FROM patients").execution_options(**{name: 3}))
        assert connection.connection.driver_connection.budget().charges == 0
        connection.execute(text("SELECT 1").execution_options(stream_results=True, logging_token="t", of_a_plugin=1))


# --- what an answer tells --------------------------------------------------------------------------------------------


def test_error_bars_and_losses(engine: Engine, tables: Any) -> None:
    patients = tables["patients"]
    statement = select(patients.c.sex, func.count()).group_by(patients.c.sex)
    with engine.connect() as connection:
        result = connection.execute(statement)
        rows = result.all()
        bars = result_metadata(result).errors
        assert len(bars) == len(rows) == 4 and all(bar[0] is None and bar[1].low < row[1] < bar[1].high
                                                   for row, bar in zip(rows, bars, strict=True))  # fmt: skip
        assert result_metadata(result).loss and result_metadata(result).receipts[0].account == "ana"
        assert not result_metadata(connection.execute(statement)).loss
    with Session(engine) as session:
        assert len(result_metadata(session.execute(statement)).errors) == 4
        assert len(result_metadata(session.scalars(statement)).errors) == 4
    with pytest.raises(exc.ArgumentError):
        result_metadata([1])
    assert told is result_metadata


# --- the ORM ---------------------------------------------------------------------------------------------------------


class Base(DeclarativeBase):
    pass


class Ward(Base):
    __tablename__ = "wards"
    ward: Mapped[str] = mapped_column(primary_key=True)
    floor: Mapped[int]


class Patient(Base):
    __tablename__ = "patients"
    patient_id: Mapped[int] = mapped_column(primary_key=True)
    sex: Mapped[str]


def test_public_rows_are_objects(engine: Engine) -> None:
    with Session(engine) as session:
        wards = session.scalars(select(Ward).order_by(Ward.ward)).all()
        assert len(wards) == 8 and session.get(Ward, wards[0].ward) is wards[0]
        other = aliased(Ward)
        pairs = session.execute(select(Ward.ward, other.ward).join(other, Ward.floor == other.floor)).all()
        assert len(pairs) >= 8


def test_private_rows_are_no_objects(engine: Engine) -> None:
    with Session(engine) as session:
        with pytest.raises(exc.NotSupportedError, match="single private rows"):
            session.scalars(select(Patient)).all()
        with pytest.raises(exc.NotSupportedError, match="single private rows"):
            session.get(Patient, 1)
        assert session.execute(select(Patient.sex, func.count()).group_by(Patient.sex)).all()


def test_nothing_is_written(engine: Engine) -> None:
    with Session(engine) as session:
        session.add(Ward(ward="new", floor=1))
        with pytest.raises(exc.NotSupportedError, match="INSERT is not answered"):
            session.flush()
    with engine.connect() as connection:
        made: Any = CreateTable(Ward.__table__)  # type: ignore[arg-type]
        for statement in (update(Ward).values(floor=2), insert(Ward).values(ward="a"), text("DELETE FROM wards"), made):
            with pytest.raises(exc.NotSupportedError, match="is not answered"):
                connection.execute(statement)
        with pytest.raises(exc.DBAPIError):
            connection.execute(insert(Ward), [{"ward": "a", "floor": 1}, {"ward": "b", "floor": 2}])
    with pytest.raises(exc.NotSupportedError, match="CREATE is not answered"):
        type("Other", (Base,), {"__tablename__": "other", "x": mapped_column(String, primary_key=True)})
        Base.metadata.create_all(engine)


# --- frames ----------------------------------------------------------------------------------------------------------


def test_pandas_reads(engine: Engine, tables: Any) -> None:
    patients = tables["patients"]
    statement = select(patients.c.sex, func.count().label("n")).group_by(patients.c.sex)
    frame = pandas.read_sql(statement, engine)
    again = pandas.read_sql("SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex", engine)
    assert list(frame.columns) == ["sex", "n"] and frame["n"].dtype == "int64" and frame.equals(again)
    named = text("SELECT COUNT(*) AS n FROM visits WHERE ward = :ward AND cost > :cost")
    assert len(pandas.read_sql(named, engine, params={"ward": "surgery", "cost": 10})) == 1
    assert len(pandas.read_sql_table("wards", engine)) == 8


def test_polars_reads(engine: Engine) -> None:
    polars = package("polars")
    frame = polars.read_database("SELECT ward, floor FROM wards ORDER BY ward", engine)
    assert frame.shape == (8, 2)


def test_expanding_parameters_of_a_text(engine: Engine) -> None:
    statement = text("SELECT COUNT(*) FROM wards WHERE ward IN :names").bindparams(bindparam("names", expanding=True))
    with engine.connect() as connection:
        assert connection.execute(statement, {"names": ["oncology", "cardiology"]}).scalar() == 2


def test_types_that_casts_name(engine: Engine) -> None:
    sql = str(select(cast(func.x(), Interval(second_precision=9)), cast(func.x(), Uuid)).compile(engine))
    assert sql == "SELECT CAST(x() AS INTERVAL) AS x_1, CAST(x() AS UUID) AS x_2"
