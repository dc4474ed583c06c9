"""Sub-selects within a block over private rows that are not over private rows themselves: they become holes.

A released or public sub-select in WHERE, ON, FROM or an aggregate's argument is worked out first; its values are bound
when the release runs. A hole has a type and a domain at compile time, whatever the values (SOUNDNESS 8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from dpsql.errors import NotPrivate, Unsupported
from dpsql.plan.expr import HoleValue
from dpsql.plan.relations import Field, RowsHole
from dpsql.plan.stages import MOST_LENGTH, MOST_ROWS, Shape
from dpsql.schema.domain import Domain
from dpsql.sql.blocks import Block, BoundHole, Environment, Grouped, Ownership, State
from dpsql.sql.clauses import with_of
from dpsql.sql.correlated import decorrelate
from dpsql.sql.dialect import span_of
from dpsql.sql.hole_domains import source_domains
from dpsql.sql.names import Namer
from dpsql.sql.outputs import Output
from dpsql.types import TEXT, Type


def must_aggregate(query: exp.Expr, node: exp.Expr) -> NotPrivate:
    """A sub-select that would give single rows to what is not private."""
    hint = "Aggregate in it, for example: SELECT AVG(cost) FROM visits."
    if isinstance(node.parent, exp.Exists):
        hint = "Compare a count with a number that the noise does not reach: (SELECT COUNT(*) FROM …) > 20."
    elif isinstance(node.parent, exp.In) or isinstance(query.parent, exp.In):
        hint = "Group in it, so that the values are released: SELECT ward FROM visits GROUP BY ward."
    return NotPrivate("a sub-select over private rows must aggregate them", hint=hint, span=span_of(query))


@dataclass
class Holes:
    """The holes of one release. `query` makes a block of a sub-select, `ownership` tells whose rows it gives out."""

    state: State
    query: Callable[[exp.Expr, Environment], Block]
    ownership: Callable[[exp.Expr, Environment], Ownership]
    named: Callable[[exp.Table, Environment], Block | None]
    found: list[BoundHole] = field(default_factory=list)
    _values: dict[tuple[int, Shape], BoundHole] = field(default_factory=dict)

    def is_owned(self, query: exp.Expr) -> bool:
        return self.ownership(query, self.state.environment_of(query)) is Ownership.OWNED

    def is_named(self, source: exp.Table) -> bool:
        """Whether the name means a CTE or a view, and no table."""
        return self.named(source, self.state.environment_of(source)) is not None

    def value(self, query: exp.Expr) -> HoleValue:
        hole = self._single(query, Shape.VALUE)
        return HoleValue(hole.name, hole.domains[0])

    def values(self, query: exp.Expr) -> tuple[str, Domain]:
        hole = self._single(query, Shape.LIST)
        return hole.name, hole.domains[0]

    def rows(self, source: exp.Expr, namer: Namer, keys: int = 0) -> tuple[RowsHole, tuple[str, ...]]:
        """The last `keys` columns, where there are some, are bound once each."""
        block = self._block(source)
        outputs = _known(block, source)
        names = _alias_columns(source, tuple(output.name for output in outputs))
        columns = tuple(Field(namer.name(n), _typed(o, source)) for n, o in zip(names, outputs, strict=True))
        unique = frozenset(column.name for column in columns[len(columns) - keys :])
        hole = self._add(Shape.ROWS, columns, block, unique)
        return RowsHole(hole.name, hole.columns, hole.domains, hole.most, hole.unique), names

    def grouped(
        self, select: exp.Select, is_inner: Callable[[exp.Column], bool]
    ) -> Grouped | None:
        known = self.state.grouped.get(id(select))
        if known is None:
            known = self.state.grouped[id(select)] = (select, self._decorrelated(select, is_inner))
        return known[1]

    def _decorrelated(
        self, select: exp.Select, is_inner: Callable[[exp.Column], bool]
    ) -> Grouped | None:
        try:
            found = decorrelate(select, is_inner)
        except Unsupported:  # by something else than equalities
            return None
        if found is None:
            return None
        source = exp.Subquery(this=found.select)
        source.parent = select.parent
        return None if self.is_owned(found.select) else (source, found.outer)

    def apart(self) -> Holes:
        return Holes(self.state, self.query, self.ownership, self.named)

    def _single(self, query: exp.Expr, shape: Shape) -> BoundHole:
        known = self._values.get((id(query), shape))
        if known is not None:
            return known
        block = self._block(query)
        outputs = _known(block, query)
        if len(outputs) != 1:
            raise Unsupported("this sub-select must give one column", span=span_of(query))
        columns = (Field("value", _typed(outputs[0], query)),)
        hole = self._values[id(query), shape] = self._add(shape, columns, block)
        return hole

    def _add(
        self, shape: Shape, columns: tuple[Field, ...], block: Block, unique: frozenset[str] = frozenset()
    ) -> BoundHole:
        domains = source_domains(tuple(hole_domain(column.type) for column in columns), block.post, self.state)
        most = 1 if shape is Shape.VALUE else MOST_ROWS
        hole = BoundHole(f"h{len(self.found) + 1}", shape, columns, domains, most, block.post, unique)
        self.found.append(hole)
        return hole

    def _block(self, query: exp.Expr) -> Block:
        """The sub-select as post-processing, with the CTEs and views that it reads; the same one whenever it is met."""
        known = self.state.inner.get(id(query))
        if known is not None:
            return known[1]
        env = self.state.environment_of(query)
        block = self.query(query, env)
        if block.ownership is Ownership.OWNED:
            raise must_aggregate(query, query)
        block = Block(block.ownership, with_ctes(block.post, self.state.views | env), (), block.outputs)
        self.state.inner[id(query)] = (query, block)
        return block


def hole_domain(type_: Type) -> Domain:
    return Domain(type_, True, length=MOST_LENGTH if type_ == TEXT else None)


def with_ctes(post: exp.Query, env: Environment) -> exp.Query:
    """A post-processing query that stands alone: the released CTEs that it reads are put before it."""
    needed = _needed(post, env)
    if not needed:
        return post
    query = post.copy()
    own = query.args.get("with_")
    ctes = [exp.CTE(this=env[name].post.copy(), alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
            for name in env if name in needed]  # fmt: skip
    query.set("with_", with_of(ctes + (own.expressions if own is not None else [])))
    return query


def _needed(query: exp.Query, env: Environment) -> set[str]:
    found: set[str] = set()
    waiting: list[exp.Expr] = [query]
    while waiting:
        for table in waiting.pop().find_all(exp.Table):
            name = table.name.lower()
            if not table.db and name in env and name not in found and env[name].ownership is not Ownership.OWNED:
                found.add(name)
                waiting.append(env[name].post)
    return found


def _known(block: Block, query: exp.Expr) -> tuple[Output, ...]:
    if block.outputs is not None:
        return block.outputs
    if not isinstance(query, exp.Subquery | exp.Query) and query.find(exp.Column):
        raise Unsupported(
            "a list or series in FROM cannot read private rows",
            hint="Write its values out.",
            span=span_of(query),
        )
    if not isinstance(query, exp.Subquery | exp.Query):
        raise Unsupported(
            "the type of these values is not known before they are read",
            hint="Write them out, or cast them in a sub-select: FROM (SELECT CAST(x AS INTEGER) AS x FROM …) AS t.",
            span=span_of(query),
        )
    raise Unsupported(
        "the columns of this sub-select are not known before it runs",
        hint="Name its columns instead of *.",
        span=span_of(query),
    )


def _typed(output: Output, query: exp.Expr) -> Type:
    if output.type is None:
        raise Unsupported(
            f'the type of "{output.name}" in this sub-select is not known before it runs',
            hint=f"Cast it within the sub-select, and name it: {_cast_hint(output.name)}.",
            span=span_of(query),
        )
    return output.type


def _cast_hint(name: str) -> str:
    return f"CAST(… AS DOUBLE PRECISION) AS {name if name.isidentifier() else 'x'}"


def _alias_columns(source: exp.Expr, names: tuple[str, ...]) -> tuple[str, ...]:
    alias = source.args.get("alias")
    columns = alias.args.get("columns") or () if isinstance(alias, exp.TableAlias) else ()
    given = tuple(column.name for column in columns)
    return given + names[len(given) :]
