"""Statements for the audit, each with two small neighboring databases on which it loses as much as it may.

One unit, number 0, has all that it can: many rows, values at the far ends, keys of its own. Its neighbor is without
it, or has it at the other end. Epsilons and deltas are large, so that a few thousand releases can tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from dpsql.calibrate import NoiseKind
from dpsql.schema.domain import Domain
from dpsql.schema.model import (
    Budget,
    Column,
    Contributions,
    EngineTable,
    ForeignUnit,
    Neighbors,
    OwnUnit,
    Privacy,
    Resolved,
    Schema,
    Table,
)
from dpsql.settings import Settings
from dpsql.types import BIGINT, DOUBLE, INTEGER, TEXT
from dpsql.verify.neighbors import TableRows

_BOUNDED_DOUBLE = Domain(DOUBLE, True, Fraction(0), Fraction(10))
PEOPLE = Table(
    "people", EngineTable(("people",)), OwnUnit("uid"), (("uid",),),
    (Column("uid", Domain(BIGINT)), Column("town", Domain(TEXT)), Column("x", _BOUNDED_DOUBLE)),
)  # fmt: skip
VISITS = Table(
    "visits", EngineTable(("visits",)), ForeignUnit("uid", "people", "uid"), (),
    (Column("uid", Domain(BIGINT)), Column("ward", Domain(TEXT, True, values=("a", "b"))), Column("note", Domain(TEXT)),
     Column("x", _BOUNDED_DOUBLE), Column("n", Domain(INTEGER, True, Fraction(-2), Fraction(3)))),
)  # fmt: skip
TABLES = (PEOPLE, VISITS)


@dataclass(frozen=True)
class Template:
    name: str
    sql: str
    noise: NoiseKind = NoiseKind.LAPLACE
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    group_size: int = 1
    rows: int = 3
    groups: int = 2
    epsilon: Fraction = Fraction(1)
    delta: Fraction = Fraction(0)
    weaker: int = 2  # by how much the planted bug divides the noise: more, where no rows reach the whole claim

    @property
    def settings(self) -> Settings:
        return Settings(self.epsilon, self.delta, self.rows, self.groups, self.noise)

    @property
    def resolved_schema(self) -> Resolved:
        budget = Budget(self.epsilon, self.delta)
        caps = Contributions(self.rows, self.groups)
        privacy = Privacy(self.neighbors, "people.uid", budget, budget, caps, self.group_size)
        schema = Schema(Path("audit.yaml"), "duckdb://", "sqlite://", privacy, (), TABLES)
        physical = {table.name: {column.name: column.type for column in table.columns} for table in schema.tables}
        return Resolved(schema, 1, {table.name: table.source for table in schema.tables}, physical, "audit")

    @property
    def neighbor_pair(self) -> tuple[TableRows, TableRows]:
        """Neighbors, in as many units as are protected at once."""
        victims = range(self.group_size)
        first = _build_side([_extreme_unit(number) for number in victims])
        if self.neighbors is Neighbors.CHANGE_ONE:
            return first, _build_side([_opposite_unit(number) for number in victims])
        return first, _build_side([])


def _build_side(units: list[TableRows]) -> TableRows:
    everyone = [*units, *(_ordinary_unit(number) for number in range(10, 16))]
    return {table: tuple(row for unit in everyone for row in unit[table]) for table in ("people", "visits")}


def _extreme_unit(number: int) -> TableRows:
    """More rows than any norm, in a ward where the crowd is too, and under keys that it alone has."""
    visits = tuple((f"{number}", "'a'", f"'own{n}'", "1e9", "7") for n in range(30))
    return {"people": ((f"{number}", "'own'", "1e9"),), "visits": visits}


def _opposite_unit(number: int) -> TableRows:
    visits = tuple((f"{number}", "'b'", f"'other{n}'", "-1e9", "-7") for n in range(30))
    return {"people": ((f"{number}", "'other'", "-1e9"),), "visits": visits}


def _ordinary_unit(number: int) -> TableRows:
    visits = tuple((f"{number}", f"'{'ab'[n]}'", "'shared'", "5", "1") for n in range(2))
    return {"people": ((f"{number}", "'shared'", "5"),), "visits": visits}


_LARGE_DELTA, _LARGE_EPSILON = Fraction(1, 10), Fraction(4)
GAUSSIAN, CHANGE_ONE = NoiseKind.GAUSSIAN, Neighbors.CHANGE_ONE

TEMPLATES = (
    Template("one count", "SELECT COUNT(*) FROM people"),
    Template("one count, gaussian", "SELECT COUNT(*) FROM people", GAUSSIAN, epsilon=_LARGE_EPSILON, delta=_LARGE_DELTA),
    Template("a count of weighted rows", "SELECT COUNT(*) FROM visits"),
    Template("a sum of weighted rows, gaussian", "SELECT SUM(x) FROM visits", GAUSSIAN, epsilon=_LARGE_EPSILON, delta=_LARGE_DELTA),
    Template("a sum that may be negative, change_one", "SELECT SUM(n) FROM visits", neighbors=CHANGE_ONE),
    Template("count, sum and average", "SELECT COUNT(x), SUM(x), AVG(x) FROM visits", group_size=2),
    Template("a variance, gaussian", "SELECT VAR_POP(x) FROM visits", GAUSSIAN, epsilon=_LARGE_EPSILON, delta=_LARGE_DELTA),
    Template("a correlation", "SELECT CORR(x, n) FROM visits", weaker=8),
    Template("distinct values", "SELECT COUNT(DISTINCT note) FROM visits"),
    Template("listed groups", "SELECT ward, COUNT(*), SUM(x) FROM visits GROUP BY ward"),
    Template("listed groups, gaussian, change_one", "SELECT ward, COUNT(*) FROM visits GROUP BY ward", GAUSSIAN,
             CHANGE_ONE, epsilon=_LARGE_EPSILON, delta=_LARGE_DELTA),
    Template("grouping sets", "SELECT ward, COUNT(*) FROM visits GROUP BY ROLLUP (ward)"),
    Template("units of each group", "SELECT ward, COUNT(DISTINCT uid) FROM visits GROUP BY ward", weaker=4),
    Template("selected groups", "SELECT note, COUNT(*) FROM visits GROUP BY note", delta=_LARGE_DELTA),
    Template("selected groups, gaussian", "SELECT note, COUNT(*) FROM visits GROUP BY note", GAUSSIAN, delta=_LARGE_DELTA),
    Template("thirty keys of one unit", "SELECT note, COUNT(*) FROM visits GROUP BY note", delta=_LARGE_DELTA, groups=30),
    Template("thirty keys of one unit, gaussian", "SELECT note, COUNT(*) FROM visits GROUP BY note", GAUSSIAN,
             delta=_LARGE_DELTA, groups=30),
    Template("one key for each unit", "SELECT DISTINCT town FROM people", delta=_LARGE_DELTA, neighbors=CHANGE_ONE),
    Template("a mixed key, two units", "SELECT ward, note, COUNT(*) FROM visits GROUP BY ward, note", GAUSSIAN,
             group_size=2, delta=_LARGE_DELTA),
    Template("a median", "SELECT MEDIAN(n) FROM visits WHERE note <> 'shared'", weaker=4),
    Template("a median, two units", "SELECT MEDIAN(n) FROM visits WHERE note <> 'shared'", group_size=2, weaker=4),
    Template("quantiles of groups, gaussian", "SELECT ward, QUANTILE_DISC(n, 0.9) FROM visits GROUP BY ward", GAUSSIAN,
             epsilon=_LARGE_EPSILON, delta=_LARGE_DELTA, weaker=4),
    Template("a largest value, change_one", "SELECT MAX(n) FROM visits", neighbors=CHANGE_ONE, weaker=8),
    Template("a most frequent value", "SELECT MODE(ward) FROM visits"),
)  # fmt: skip
