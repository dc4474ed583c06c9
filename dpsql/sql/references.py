"""References of post-processing to a release's columns; they get their names once all keys and measures are known."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from dpsql.plan.expr import Column, Expr
from dpsql.plan.measures import Measure
from dpsql.plan.relations import SET
from dpsql.plan.stages import ReleaseColumn
from dpsql.sql.aggregates import measure_type
from dpsql.types import BIGINT, DOUBLE, Type

SET_KEY = Column(SET, BIGINT)
"""The key that tells which grouping set a row is of."""


@dataclass(frozen=True)
class _Pending:
    kind: str
    what: Expr | Measure | None
    other: Measure | None


@dataclass
class References:
    release: str
    _pending: dict[str, _Pending] = field(default_factory=dict)

    def key(self, key: Expr) -> exp.Column:
        return self._column("key", key.type, key)

    def value(self, measure: Measure) -> exp.Column:
        return self._column("value", measure_type(measure), measure)

    def error(self, kind: str, measure: Measure) -> exp.Column:
        """Its "stderr", "low" or "high"."""
        return self._column(kind, DOUBLE, measure)

    def covariance(self, one: Measure, other: Measure) -> exp.Column:
        return self._column("cov", DOUBLE, one, other)

    def factor(self) -> exp.Column:
        """Half of a 95 % interval, in standard errors of this release's noise."""
        return self._column("factor", DOUBLE, None)

    def _column(
        self, kind: str, type_: Type, what: Expr | Measure | None, other: Measure | None = None
    ) -> exp.Column:
        name = f"{self.release} pending {len(self._pending)}"
        self._pending[name] = _Pending(kind, what, other)
        column = exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(self.release))
        column.meta["type"] = type_
        return column

    def columns(self, post: exp.Expr, keys: list[Expr], measures: list[Measure]) -> tuple[ReleaseColumn, ...]:
        """Name what `post` refers to, by its place in the release's canonical order."""
        columns: dict[str, ReleaseColumn] = {}
        places = {measure: place for place, measure in reversed([*enumerate(measures)])}
        for identifier in list(post.find_all(exp.Identifier)):
            pending = self._pending.get(identifier.name)
            if pending is not None:
                column = _named(pending, keys, places, measures)
                identifier.set("this", column.name)
                columns[column.name] = column
        return tuple(columns[name] for name in sorted(columns))


def _named(
    pending: _Pending, keys: list[Expr], places: dict[Measure, int], measures: list[Measure]
) -> ReleaseColumn:
    kind, what = pending.kind, pending.what
    if what is None:
        return ReleaseColumn(kind, DOUBLE, kind, 0)
    if what is SET_KEY:
        return ReleaseColumn(SET, SET_KEY.type, kind, len(keys))
    if kind == "key":
        place = keys.index(what)  # type: ignore[arg-type]
        return ReleaseColumn(f"k{place + 1}", keys[place].type, kind, place)
    place = places[what]  # type: ignore[index]
    if kind == "value":
        return ReleaseColumn(f"m{place + 1}", measure_type(measures[place]), kind, place)
    if pending.other is not None:
        other = places[pending.other]
        return ReleaseColumn(f"m{place + 1}_m{other + 1}_{kind}", DOUBLE, kind, place, other)
    return ReleaseColumn(f"m{place + 1}_{kind}", DOUBLE, kind, place)
