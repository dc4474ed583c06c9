"""Small databases for BLOCKWISE: units with rows in groups, compiled releases and the integers that they give."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compile import Compiled, compile_query
from dpsql.compiler.settings import EmptyGroups, Settings
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.schema.model import (
    Column,
    Contributions,
    Domain,
    EngineTable,
    Neighbors,
    OwnUnit,
    Privacy,
    RowUnit,
    Schema,
    Table,
    Unit,
)
from dpsql.types import BIGINT, DOUBLE, TEXT
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.schemas import AMPLE_BUDGET, GeneratedSchema, generate_from_schema

OWN = OwnUnit("uid")

Row = tuple[int, str, float | None]
"""The unit, a group (a, b or c) and a number between 0 and 100."""


def world(neighbors: Neighbors = Neighbors.ADD_REMOVE, unit: Unit = OWN, group_size: int = 1) -> GeneratedSchema:
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
    privacy = Privacy(neighbors, name, AMPLE_BUDGET, AMPLE_BUDGET, Contributions(rows=2, groups=2), group_size)
    schema = Schema(Path("blocks.yaml"), "duckdb://", "sqlite://", privacy, (), (events, nums))
    return generate_from_schema(schema, ChoiceStream(record=()))  # simplest choices: stored as declared


def literals(rows: Sequence[Row]) -> tuple[tuple[str, ...], ...]:
    def number(x: float | None) -> str:
        return "NULL" if x is None else f"CAST('{x!r}' AS DOUBLE)"

    return tuple((str(uid), f"'{g}'", number(x), f"'w{uid % 3}'") for uid, g, x in rows)


def fill(engine: InMemoryEngine, made: GeneratedSchema, rows: Sequence[Row]) -> None:
    for laid in made.tables:
        values = (("0",), ("1",), ("2",)) if laid.name == "nums" else literals(rows)
        engine.fill_table(laid.name, [(c.name, c.engine_type) for c in laid.columns], values)


def compiled(sql: str, made: GeneratedSchema, epsilon: int = 1, noise: NoiseKind = NoiseKind.LAPLACE) -> Compiled:
    delta = Fraction(0) if noise is NoiseKind.LAPLACE else Fraction(1, 10**6)
    settings = Settings(Fraction(epsilon), delta, 2, 2, noise, empty_groups=EmptyGroups.SHOW)  # no count beside blocks
    return compile_query(sql, made.resolved_schema, settings)


def cells(engine: InMemoryEngine, sql: str, keys: int) -> dict[tuple[object, ...], int]:
    """The only column of a release, by its keys."""
    revealed = engine.run_release(sql, keys, {}).reveal()
    return dict(zip(revealed.keys, revealed.cells[0].tolist(), strict=True))
