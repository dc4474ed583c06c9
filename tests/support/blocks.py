"""Small databases for BLOCKWISE: units with rows in groups, compiled releases and the integers that they give."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from dpsql.calibrate import Noise
from dpsql.compile import Compiled, compile_query
from dpsql.engines.scratch import ScratchEngine
from dpsql.schema.domain import Domain
from dpsql.schema.model import (
    Column,
    Contributions,
    EngineTable,
    Neighbors,
    OwnUnit,
    Privacy,
    RowUnit,
    Schema,
    Table,
    Unit,
)
from dpsql.settings import Settings
from dpsql.types import BIGINT, DOUBLE, TEXT
from dpsql.verify.draws import Draws
from dpsql.verify.worlds import PLENTY, World, world_of

OWN = OwnUnit("uid")

Row = tuple[int, str, float | None]
"""The unit, a group (a, b or c) and a number between 0 and 100."""


def world(neighbors: Neighbors = Neighbors.ADD_REMOVE, unit: Unit = OWN, group_size: int = 1) -> World:
    """`events`, and a public table `nums` of three rows."""
    columns = (
        Column("uid", Domain(BIGINT)),
        Column("g", Domain(TEXT, values=("a", "b", "c"))),
        Column("x", Domain(DOUBLE, True, Fraction(0), Fraction(100)), grid=Fraction(1, 8)),
        Column("free", Domain(TEXT)),
    )
    events = Table("events", EngineTable(("events",)), unit, (), columns)
    nums = Table("nums", EngineTable(("nums",)), None, (), (Column("n", Domain(BIGINT)),))
    name = "row" if isinstance(unit, RowUnit) else "events.uid"
    privacy = Privacy(neighbors, name, PLENTY, PLENTY, Contributions(rows=2, groups=2), group_size)
    schema = Schema(Path("blocks.yaml"), "duckdb://", "sqlite://", privacy, (), (events, nums))
    return world_of(schema, Draws(record=()))  # simplest choices: stored as declared


def literals(rows: Sequence[Row]) -> tuple[tuple[str, ...], ...]:
    def number(x: float | None) -> str:
        return "NULL" if x is None else f"CAST('{x!r}' AS DOUBLE)"

    return tuple((str(uid), f"'{g}'", number(x), f"'w{uid % 3}'") for uid, g, x in rows)


def fill(engine: ScratchEngine, made: World, rows: Sequence[Row]) -> None:
    for laid in made.tables:
        values = (("0",), ("1",), ("2",)) if laid.name == "nums" else literals(rows)
        engine.fill(laid.name, [(c.name, c.spelled) for c in laid.columns], values)


def compiled(sql: str, made: World, epsilon: int = 1, noise: Noise = Noise.LAPLACE) -> Compiled:
    delta = Fraction(0) if noise is Noise.LAPLACE else Fraction(1, 10**6)
    return compile_query(sql, made.resolved, Settings(Fraction(epsilon), delta, 2, 2, noise))


def cells(engine: ScratchEngine, sql: str, keys: int) -> dict[tuple[object, ...], int]:
    """The only column of a release, by its keys."""
    revealed = engine.release(sql, keys, {}).reveal()
    return dict(zip(revealed.keys, revealed.cells[0].tolist(), strict=True))
