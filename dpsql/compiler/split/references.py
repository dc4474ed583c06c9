"""References of post-processing to a release's columns; they get their names once all keys and measures are known."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from dpsql.compiler.bind.aggregates import measure_type
from dpsql.compiler.plan.expressions import Column, Expr
from dpsql.compiler.plan.measures import Measure
from dpsql.compiler.plan.relations import SET_COLUMN
from dpsql.compiler.plan.steps import ReleaseColumn
from dpsql.types import BIGINT, DOUBLE, Type

SET_KEY = Column(SET_COLUMN, BIGINT)
"""The key that tells which grouping set a row is of."""


@dataclass(frozen=True)
class _PendingColumn:
    kind: str
    what: Expr | Measure | None
    other: Measure | None


@dataclass
class ReleaseReferences:
    release: str
    _pending: dict[str, _PendingColumn] = field(default_factory=dict)

    def key_column(self, key: Expr) -> exp.Column:
        return self._add_reference("key", key.type, key)

    def value_column(self, measure: Measure) -> exp.Column:
        return self._add_reference("value", measure_type(measure), measure)

    def error_column(self, kind: str, measure: Measure) -> exp.Column:
        """The column that holds its "stderr", "low" or "high"."""
        return self._add_reference(kind, DOUBLE, measure)

    def covariance_column(self, first: Measure, other: Measure) -> exp.Column:
        return self._add_reference("cov", DOUBLE, first, other)

    def factor_column(self) -> exp.Column:
        """Half of a 95 % interval, in standard errors of this release's noise."""
        return self._add_reference("factor", DOUBLE, None)

    def _add_reference(
        self, kind: str, type_: Type, what: Expr | Measure | None, other: Measure | None = None
    ) -> exp.Column:
        name = f"{self.release} pending {len(self._pending)}"
        self._pending[name] = _PendingColumn(kind, what, other)
        column = exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(self.release))
        column.meta["type"] = type_
        return column

    def assign_names(self, post: exp.Expr, keys: list[Expr], measures: list[Measure]) -> tuple[ReleaseColumn, ...]:
        """Name what `post` refers to, by its place in the release's canonical order."""
        columns: dict[str, ReleaseColumn] = {}
        indexes = {measure: index for index, measure in reversed([*enumerate(measures)])}
        for identifier in list(post.find_all(exp.Identifier)):
            pending = self._pending.get(identifier.name)
            if pending is not None:
                column = _release_column(pending, keys, indexes, measures)
                identifier.set("this", column.name)
                columns[column.name] = column
        return tuple(columns[name] for name in sorted(columns))


def _release_column(
    pending: _PendingColumn, keys: list[Expr], indexes: dict[Measure, int], measures: list[Measure]
) -> ReleaseColumn:
    kind, what = pending.kind, pending.what
    if what is None:
        return ReleaseColumn(kind, DOUBLE, kind, 0)
    if what is SET_KEY:
        return ReleaseColumn(SET_COLUMN, SET_KEY.type, kind, len(keys))
    if kind == "key":
        index = keys.index(what)  # type: ignore[arg-type]
        return ReleaseColumn(f"k{index + 1}", keys[index].type, kind, index)
    index = indexes[what]  # type: ignore[index]
    if kind == "value":
        return ReleaseColumn(f"m{index + 1}", measure_type(measures[index]), kind, index)
    if pending.other is not None:
        other = indexes[pending.other]
        return ReleaseColumn(f"m{index + 1}_m{other + 1}_{kind}", DOUBLE, kind, index, other)
    return ReleaseColumn(f"m{index + 1}_{kind}", DOUBLE, kind, index)
