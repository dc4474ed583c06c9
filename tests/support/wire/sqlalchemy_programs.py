"""What programs do with SQLAlchemy and pandas over a driver of PostgreSQL, and what they see."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.support.wire.hospital import Place

DRIVERS = ("psycopg", "psycopg2", "asyncpg", "pg8000")


def asked(place: Place, driver: str, ask: Callable[[Any], Any], **options: Any) -> Any:
    """`ask(connection)` on an engine of the driver; asyncpg's own is an asynchronous one."""
    import sqlalchemy as sa

    url = sa.make_url(place.url(f"postgresql+{driver}"))
    if driver == "asyncpg":
        return asyncio.run(_asked_later(url, ask, options))
    engine = sa.create_engine(url, **options)
    try:
        with engine.connect() as connection:
            return ask(connection)
    finally:
        engine.dispose()


async def _asked_later(url: Any, ask: Callable[[Any], Any], options: dict[str, Any]) -> Any:
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(url, **options)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(ask)
    finally:
        await engine.dispose()


def tables() -> tuple[Any, Any]:
    import sqlalchemy as sa

    metadata = sa.MetaData()
    visits = sa.Table(
        "visits", metadata, sa.Column("patient_id", sa.BigInteger), sa.Column("ward", sa.Text),
        sa.Column("at", sa.DateTime), sa.Column("nights", sa.Integer), sa.Column("cost", sa.Double),
        sa.Column("paid", sa.Numeric(10, 2)), sa.Column("planned", sa.Boolean))  # fmt: skip
    wards = sa.Table(
        "wards", metadata, sa.Column("ward", sa.Text), sa.Column("floor", sa.SmallInteger),
        sa.Column("beds", sa.Integer), sa.Column("number", sa.BigInteger), sa.Column("rating", sa.REAL),
        sa.Column("share", sa.Double), sa.Column("fee", sa.Numeric(12, 3)), sa.Column("opened", sa.Date),
        sa.Column("inspected", sa.DateTime), sa.Column("changed", sa.DateTime(timezone=True)),
        sa.Column("rounds", sa.Time), sa.Column("code", sa.Uuid), sa.Column("open", sa.Boolean))  # fmt: skip
    return visits, wards


def public_rows(connection: Any) -> Any:
    import sqlalchemy as sa

    _, wards = tables()
    everything = sa.select(wards).order_by(wards.c.ward)
    some = sa.select(wards.c.ward).where(
        wards.c.opened == dt.date(1999, 12, 31), wards.c.fee == Decimal("1234.500"), wards.c.beds.between(10, 30),
        wards.c.ward.in_(["cardiology", "nothing"]), wards.c.ward.ilike("CARD%"), wards.c.open.is_(True),
        wards.c.inspected < dt.datetime(2020, 1, 1), wards.c.changed == dt.datetime(2024, 6, 1, 12, tzinfo=dt.UTC),
        wards.c.rounds == dt.time(7, 30))  # fmt: skip
    return [
        [tuple(row) for row in connection.execute(everything)],
        [tuple(row) for row in connection.execute(some)],
        connection.execute(sa.select(wards.c.ward).order_by(wards.c.ward).limit(1).offset(1)).scalar(),
        connection.execute(sa.text("SELECT beds FROM wards WHERE ward = :ward"), {"ward": "emergency"}).scalar_one(),
        tuple(connection.execute(sa.select(sa.literal("x"), sa.literal(1), sa.cast(5, sa.BigInteger))).one()),
    ]  # fmt: skip


def private_rows(connection: Any) -> Any:
    import sqlalchemy as sa

    visits, wards = tables()
    ward, total = visits.c.ward, sa.func.count().label("visits")
    per_ward = sa.select(ward, total, sa.func.sum(visits.c.paid)).group_by(ward).order_by(ward)
    month = sa.func.date_trunc(sa.literal_column("'month'"), visits.c.at)
    early = visits.c.at < dt.datetime(2024, 9, 1)
    per_month = sa.select(month, sa.func.count()).where(early).group_by(month).order_by(month)
    joined = (
        sa.select(wards.c.floor, sa.func.count()).join_from(visits, wards, visits.c.ward == wards.c.ward)
        .where(wards.c.floor.is_not(None)).group_by(wards.c.floor).order_by(wards.c.floor))  # fmt: skip
    inner = sa.select(visits.c.ward, total).group_by(visits.c.ward).subquery()
    first, length = sa.literal_column("1"), sa.case((visits.c.nights > 3, "long"), else_="short")
    per_length = sa.select(length, sa.func.count()).group_by(first).order_by(first)
    statements = (per_ward, per_month, joined, sa.select(sa.func.max(inner.c.visits)), per_length)
    return [[tuple(row) for row in connection.execute(one)] for one in statements]


def reflected_rows(connection: Any) -> Any:
    """Of tables as the catalog describes them: values are cast to its types, such as FLOAT(53) and TIMESTAMP."""
    import sqlalchemy as sa

    found = sa.MetaData()
    found.reflect(connection, only=["visits", "wards"])
    visits, wards = found.tables["visits"], found.tables["wards"]
    count = sa.select(sa.func.count()).select_from(visits)

    def by(key: Any) -> Any:
        early = visits.c.at < dt.datetime(2024, 9, 1)
        return sa.select(key.label("key"), sa.func.count()).where(early).group_by("key").order_by("key")

    statements = (
        count.where(visits.c.cost > 250.5),
        count.where(visits.c.at < dt.datetime(2024, 9, 1), visits.c.paid >= Decimal("10.25")),
        count.where(visits.c.planned == sa.true(), visits.c.nights.between(1, 4)),
        sa.select(wards.c.ward).where(wards.c.share > 0.1, wards.c.opened > dt.date(1950, 1, 1)).order_by(wards.c.ward),
        count.where(sa.cast(visits.c.cost, sa.Float(53)) > sa.cast(100, sa.Float(24))),
        count.where(sa.cast(visits.c.at, sa.dialects.postgresql.TIMESTAMP(precision=0)) < dt.datetime(2024, 9, 1)),
        count.where(sa.cast(visits.c.at, sa.dialects.postgresql.TIMESTAMP(precision=6)) < dt.datetime(2024, 9, 1)),
        # What must be known before rows are read comes as a parameter too, which asyncpg and pg8000 describe first.
        by(sa.func.date_trunc("month", visits.c.at)),
        by(sa.func.to_char(visits.c.at, "YYYY-MM")),
        sa.select(sa.func.percentile_cont(0.5).within_group(visits.c.cost)),
    )
    return [[tuple(row) for row in connection.execute(one)] for one in statements]


def transactions(connection: Any) -> Any:
    import sqlalchemy as sa

    seen: list[Any] = []
    connection.execute(sa.text("SET LOCAL statement_timeout = 4444"))
    seen.append(connection.execute(sa.text("SHOW statement_timeout")).scalar())
    connection.commit()
    seen.append(connection.execute(sa.text("SHOW statement_timeout")).scalar())
    try:
        connection.execute(sa.text("SELECT nothing FROM wards"))
    except sa.exc.DBAPIError as error:
        seen.append(type(error).__name__)
    connection.rollback()
    with connection.begin_nested():
        seen.append(connection.execute(sa.text("SELECT 1")).scalar())
    connection.rollback()
    free = connection.execution_options(isolation_level="AUTOCOMMIT")
    seen.append(free.execute(sa.text("SELECT 2")).scalar())
    return seen


def streamed(connection: Any) -> Any:
    import sqlalchemy as sa

    found = connection.execution_options(stream_results=True, max_row_buffer=500).execute(
        sa.text("SELECT i FROM generate_series(1, 3000) AS s(i)"))  # fmt: skip
    return [len(part) for part in found.partitions(1000)]


def frames(connection: Any) -> Any:
    import pandas as pd
    import sqlalchemy as sa

    some = sa.text("SELECT ward, beds, share, opened FROM wards WHERE beds > :n ORDER BY ward")
    frame = pd.read_sql(some, connection, params={"n": 0})
    chunks = pd.read_sql(sa.text("SELECT i FROM generate_series(1, 2500) AS s(i)"), connection, chunksize=1000)
    return [frame.to_dict("list"), [str(one) for one in frame.dtypes], [len(one) for one in chunks]]


ASKS = (public_rows, transactions, streamed, frames)
