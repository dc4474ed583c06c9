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
from dpsql.plan.stages import MAX_PARAMETER_LENGTH, MAX_PARAMETER_ROWS, Shape
from dpsql.schema.domain import Domain
from dpsql.sql.blocks import Block, BoundRuntimeParameter, Environment, GroupedSubSelect, Ownership, SplitState
from dpsql.sql.clauses import build_with
from dpsql.sql.correlated import decorrelate
from dpsql.sql.dialect import span_of
from dpsql.sql.hole_domains import derive_source_domains
from dpsql.sql.names import ColumnNamer
from dpsql.sql.outputs import Output
from dpsql.types import TEXT, Type


def must_aggregate_error(query: exp.Expr, node: exp.Expr) -> NotPrivate:
    """A sub-select that would give single rows to what is not private."""
    hint = "Aggregate in it, for example: SELECT AVG(cost) FROM visits."
    if isinstance(node.parent, exp.Exists):
        hint = "Compare a count with a number that the noise does not reach: (SELECT COUNT(*) FROM …) > 20."
    elif isinstance(node.parent, exp.In) or isinstance(query.parent, exp.In):
        hint = "Group in it, so that the values are released: SELECT ward FROM visits GROUP BY ward."
    return NotPrivate("a sub-select over private rows must aggregate them", hint=hint, span=span_of(query))


@dataclass
class SubqueryParameters:
    """The holes of one release. `query` makes a block of a sub-select, `ownership` tells whose rows it gives out."""

    state: SplitState
    query: Callable[[exp.Expr, Environment], Block]
    ownership: Callable[[exp.Expr, Environment], Ownership]
    named: Callable[[exp.Table, Environment], Block | None]
    found: list[BoundRuntimeParameter] = field(default_factory=list)
    _values: dict[tuple[int, Shape], BoundRuntimeParameter] = field(default_factory=dict)

    def is_owned(self, query: exp.Expr) -> bool:
        return self.ownership(query, self.state.environment_of(query)) is Ownership.OWNED

    def is_cte_or_view(self, source: exp.Table) -> bool:
        """Whether the name means a CTE or a view, and no table."""
        return self.named(source, self.state.environment_of(source)) is not None

    def add_value(self, query: exp.Expr) -> HoleValue:
        hole = self._bind_single_column(query, Shape.VALUE)
        return HoleValue(hole.name, hole.domains[0])

    def add_list(self, query: exp.Expr) -> tuple[str, Domain]:
        hole = self._bind_single_column(query, Shape.LIST)
        return hole.name, hole.domains[0]

    def add_table(self, source: exp.Expr, namer: ColumnNamer, keys: int = 0) -> tuple[RowsHole, tuple[str, ...]]:
        """The last `keys` columns, where there are some, are bound once each."""
        block = self._block_of(source)
        outputs = _require_outputs(block, source)
        names = _alias_output_names(source, tuple(output.name for output in outputs))
        columns = tuple(Field(namer.reserve_name(n), _require_type(o, source)) for n, o in zip(names, outputs, strict=True))
        unique = frozenset(column.name for column in columns[len(columns) - keys :])
        hole = self._add_parameter(Shape.ROWS, columns, block, unique)
        return RowsHole(hole.name, hole.columns, hole.domains, hole.most, hole.unique), names

    def add_grouped_release(
        self, select: exp.Select, is_inner: Callable[[exp.Column], bool]
    ) -> GroupedSubSelect | None:
        cached = self.state.grouped.get(id(select))
        if cached is None:
            cached = self.state.grouped[id(select)] = (select, self._decorrelate_select(select, is_inner))
        return cached[1]

    def _decorrelate_select(
        self, select: exp.Select, is_inner: Callable[[exp.Column], bool]
    ) -> GroupedSubSelect | None:
        try:
            correlated = decorrelate(select, is_inner)
        except Unsupported:  # by something else than equalities
            return None
        if correlated is None:
            return None
        source = exp.Subquery(this=correlated.select)
        source.parent = select.parent
        return None if self.is_owned(correlated.select) else (source, correlated.outer)

    def scratch_copy(self) -> SubqueryParameters:
        return SubqueryParameters(self.state, self.query, self.ownership, self.named)

    def _bind_single_column(self, query: exp.Expr, shape: Shape) -> BoundRuntimeParameter:
        cached = self._values.get((id(query), shape))
        if cached is not None:
            return cached
        block = self._block_of(query)
        outputs = _require_outputs(block, query)
        if len(outputs) != 1:
            raise Unsupported("this sub-select must give one column", span=span_of(query))
        columns = (Field("value", _require_type(outputs[0], query)),)
        hole = self._values[id(query), shape] = self._add_parameter(shape, columns, block)
        return hole

    def _add_parameter(
        self, shape: Shape, columns: tuple[Field, ...], block: Block, unique: frozenset[str] = frozenset()
    ) -> BoundRuntimeParameter:
        domains = derive_source_domains(tuple(parameter_domain(column.type) for column in columns), block.post, self.state)
        max_rows = 1 if shape is Shape.VALUE else MAX_PARAMETER_ROWS
        hole = BoundRuntimeParameter(f"h{len(self.found) + 1}", shape, columns, domains, max_rows, block.post, unique)
        self.found.append(hole)
        return hole

    def _block_of(self, query: exp.Expr) -> Block:
        """The sub-select as post-processing, with the CTEs and views that it reads; the same one whenever it is met."""
        cached = self.state.inner.get(id(query))
        if cached is not None:
            return cached[1]
        env = self.state.environment_of(query)
        block = self.query(query, env)
        if block.ownership is Ownership.OWNED:
            raise must_aggregate_error(query, query)
        block = Block(block.ownership, prepend_ctes(block.post, self.state.views | env), (), block.outputs)
        self.state.inner[id(query)] = (query, block)
        return block


def parameter_domain(type_: Type) -> Domain:
    return Domain(type_, True, length=MAX_PARAMETER_LENGTH if type_ == TEXT else None)


def prepend_ctes(post: exp.Query, env: Environment) -> exp.Query:
    """A post-processing query that stands alone: the released CTEs that it reads are put before it."""
    needed = _needed_ctes(post, env)
    if not needed:
        return post
    query = post.copy()
    own = query.args.get("with_")
    ctes = [exp.CTE(this=env[name].post.copy(), alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
            for name in env if name in needed]  # fmt: skip
    query.set("with_", build_with(ctes + (own.expressions if own is not None else [])))
    return query


def _needed_ctes(query: exp.Query, env: Environment) -> set[str]:
    names: set[str] = set()
    waiting: list[exp.Expr] = [query]
    while waiting:
        for table in waiting.pop().find_all(exp.Table):
            name = table.name.lower()
            if not table.db and name in env and name not in names and env[name].ownership is not Ownership.OWNED:
                names.add(name)
                waiting.append(env[name].post)
    return names


def _require_outputs(block: Block, query: exp.Expr) -> tuple[Output, ...]:
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


def _require_type(output: Output, query: exp.Expr) -> Type:
    if output.type is None:
        raise Unsupported(
            f'the type of "{output.name}" in this sub-select is not known before it runs',
            hint=f"Cast it within the sub-select, and name it: {_cast_hint(output.name)}.",
            span=span_of(query),
        )
    return output.type


def _cast_hint(name: str) -> str:
    return f"CAST(… AS DOUBLE PRECISION) AS {name if name.isidentifier() else 'x'}"


def _alias_output_names(source: exp.Expr, names: tuple[str, ...]) -> tuple[str, ...]:
    alias = source.args.get("alias")
    columns = alias.args.get("columns") or () if isinstance(alias, exp.TableAlias) else ()
    aliases = tuple(column.name for column in columns)
    return aliases + names[len(aliases) :]
