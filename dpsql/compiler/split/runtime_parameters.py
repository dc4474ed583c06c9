"""Sub-selects over public or released rows within a block over private rows: they become runtime parameters.

A released or public sub-select in WHERE, ON, FROM or an aggregate's argument is worked out first; its values are bound
when the release runs. A hole has a type and a domain at compile time, whatever the values (SOUNDNESS 8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from dpsql.compiler.analysis.domains import derive_domains, domain_of
from dpsql.compiler.bind.coercion import bind_literal
from dpsql.compiler.bind.correlation import (
    DecorrelatedSelect,
    PublicKey,
    decorrelate,
    has_own_list,
    inner_column_test,
    iter_sources,
)
from dpsql.compiler.bind.outputs import Output
from dpsql.compiler.bind.scope import ColumnNamer, Scope
from dpsql.compiler.bind.sources import lookup_table
from dpsql.compiler.parse.dialect import span_of
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import UID, HoleValue
from dpsql.compiler.plan.measures import Blockwise, Extreme, MeanValues, Measure, Quantile
from dpsql.compiler.plan.relations import (
    Field,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    ScanColumn,
    Table,
    UnitId,
)
from dpsql.compiler.plan.steps import MAX_KEYED_PARAMETER_ROWS, MAX_PARAMETER_LENGTH, MAX_PARAMETER_ROWS, Shape
from dpsql.compiler.plan.walk import map_rows
from dpsql.compiler.split.blocks import (
    Block,
    BoundRuntimeParameter,
    Environment,
    GroupedSubSelect,
    Ownership,
    SplitState,
    prepend_ctes,
)
from dpsql.errors import NotPrivate, Unsupported
from dpsql.schema.model import CREATED_SCHEMA, Domain, EngineTable, MadeTable, Schema
from dpsql.schema.model import Table as DeclaredTable
from dpsql.types import REAL, TEXT, Type


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
        group_keys = _places_of_group_keys(source)  # of the text as it was written
        block = self._block_of(source)
        outputs = _require_outputs(block, source)
        names = _alias_output_names(source, tuple(output.name for output in outputs))
        columns = tuple(
            Field(namer.reserve_name(n), _require_type(o, source)) for n, o in zip(names, outputs, strict=True)
        )
        unique = frozenset(column.name for column in columns[len(columns) - keys :])
        if not keys:
            unique = _exact_keys(tuple(columns[place] for place in group_keys))
        hole = self._add_parameter(Shape.ROWS, columns, block, unique, _count_written_rows(source))
        return RowsHole(hole.name, hole.columns, hole.domains, hole.most, hole.unique), names

    def allow_keyed_rows(self, hole: RowsHole) -> RowsHole:
        """The hole with more rows: of a join in which its unique key finds one of them."""
        index = next(index for index, parameter in enumerate(self.found) if parameter.name == hole.hole)
        self.found[index] = replace(self.found[index], most=MAX_KEYED_PARAMETER_ROWS)
        return replace(hole, most=MAX_KEYED_PARAMETER_ROWS)

    def add_grouped_release(self, select: exp.Select, scope: Scope) -> GroupedSubSelect | None:
        """`scope` is that of the sub-select's own rows."""
        cached = self.state.grouped.get(id(select))
        if cached is None:
            cached = self.state.grouped[id(select)] = (select, self._decorrelate_select(select, scope))
        return cached[1]

    def _decorrelate_select(self, select: exp.Select, scope: Scope) -> GroupedSubSelect | None:
        try:
            correlated = self.group_by_correlation(select, scope)
        except Unsupported:  # by something else than equalities
            return None
        if correlated is None:
            return None
        source = exp.Subquery(this=correlated.select)
        source.parent = select.parent
        return None if self.is_owned(correlated.select) else (source, correlated.outer)

    def group_by_correlation(self, select: exp.Select, scope: Scope) -> DecorrelatedSelect | None:
        around, is_inner = select.parent_select, inner_column_test(scope)

        def find_key(inner: exp.Expr, outer: exp.Expr) -> PublicKey | None:
            if has_own_list(inner, scope, self.state.schema) or not isinstance(outer, exp.Column):
                return None
            key = None if around is None else self._find_public_key(outer, around)
            return None if key is None or self._would_capture(select, is_inner, key[0]) else key

        return decorrelate(select, is_inner, find_key)

    def _would_capture(self, select: exp.Select, is_inner: Callable[[exp.Column], bool], table: str) -> bool:
        """Whether names of a sub-select would mean something else beside that table, which is joined as `_l1`."""
        declared = self.state.schema.table(table)
        theirs = {column.name.lower() for column in declared.columns} if declared is not None else set()
        bare = {column.name.lower() for column in select.find_all(exp.Column) if not column.table and is_inner(column)}
        return bool(bare & theirs) or any(source.alias_or_name.startswith("_l") for source in iter_sources(select))

    def _find_public_key(self, column: exp.Column, block: exp.Select) -> PublicKey | None:
        """The public table that a column of a block is of, where it is unique; None unless names alone tell."""
        tables = {source.alias_or_name.lower(): self._find_read_table(source) for source in iter_sources(block)}
        if column.table:
            tables = {alias: table for alias, table in tables.items() if alias == column.table.lower()}
        if None in tables.values() or column.db:
            return None
        name = column.name.lower()
        owners = [
            (table, c.name) for table in tables.values() if table for c in table.columns if c.name.lower() == name
        ]
        unique = len(owners) == 1 and owners[0][0].public and owners[0][0].is_unique(owners[0][1])
        return (owners[0][0].name, owners[0][1]) if unique else None

    def _find_read_table(self, source: exp.Expr) -> DeclaredTable | None:
        """The declared table that a source of FROM is, also where it is read under a name of ours already."""
        if not isinstance(source, exp.Table) or isinstance(source.this, exp.Func) or source.alias_column_names:
            return None
        if source.meta.get("read"):
            reads = (read.table for read in self.state.reads.values() if read.name == source.name and not read.place)
            return next((self.state.schema.table(name) for name in reads), None)
        return None if self.is_cte_or_view(source) else lookup_table(self.state.schema, source)

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
        hole = self._values[self.state.keep(query), shape] = self._add_parameter(shape, columns, block)
        return hole

    def _add_parameter(
        self,
        shape: Shape,
        columns: tuple[Field, ...],
        block: Block,
        unique: frozenset[str] = frozenset(),
        written: int | None = None,
    ) -> BoundRuntimeParameter:
        domains = derive_source_domains(
            tuple(parameter_domain(column.type) for column in columns), block.post, self.state
        )
        max_rows = 1 if shape is Shape.VALUE else min(written or MAX_PARAMETER_ROWS, MAX_PARAMETER_ROWS)
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
        block = Block(block.ownership, with_released_ctes(block.post, self.state.views | env), (), block.outputs)
        self.state.inner[id(query)] = (query, block)
        return block


def _count_written_rows(source: exp.Expr) -> int | None:
    """How many rows VALUES, or a list in unnest, has: they are written out."""
    if isinstance(source, exp.Values):
        return len(source.expressions)
    lists = source.expressions if isinstance(source, exp.Unnest) else ()
    return len(lists[0].expressions) if len(lists) == 1 and isinstance(lists[0], exp.Array) else None


def _places_of_group_keys(source: exp.Expr) -> tuple[int, ...]:
    """Which columns of a grouped sub-select tell its rows apart: all keys of GROUP BY, where each is given out."""
    query = source.this if isinstance(source, exp.Subquery) else source
    group = query.args.get("group") if isinstance(query, exp.Select) else None
    if group is None or any(value for name, value in group.args.items() if name != "expressions"):
        return ()
    items = query.expressions
    places = [_place_of_key(key, items) for key in group.expressions]
    if None in places or any(item.is_star or _gives_rows(item) for item in items):
        return ()
    return tuple(place for place in places if place is not None)


_ROW_FUNCTIONS = frozenset({"generate_subscripts", "regexp_split_to_table"})


def _gives_rows(item: exp.Expr) -> bool:
    """Whether an item of SELECT may repeat its row, as unnest does."""
    calls = item.find_all(exp.Anonymous)
    series = exp.Explode, exp.Unnest, exp.GenerateSeries, exp.ExplodingGenerateSeries
    return item.find(*series) is not None or any(call.name.lower() in _ROW_FUNCTIONS for call in calls)


def _exact_keys(columns: tuple[Field, ...]) -> frozenset[str]:
    """None where one is real: two doubles, told apart when one row of a key is bound, may be one in the engine."""
    return frozenset() if any(c.type == REAL for c in columns) else frozenset(column.name for column in columns)


def _place_of_key(key: exp.Expr, items: list[exp.Expr]) -> int | None:
    """The item that is a key of GROUP BY: by its number, or a column that is given out as it is."""
    if isinstance(key, exp.Literal):
        number = int(key.this) if not key.is_string and str(key.this).isdigit() else 0
        return number - 1 if 1 <= number <= len(items) else None
    if not isinstance(key, exp.Column):
        return None
    return next((place for place, item in enumerate(items) if item.unalias() == key), None)


def parameter_domain(type_: Type) -> Domain:
    return Domain(type_, True, length=MAX_PARAMETER_LENGTH if type_ == TEXT else None)


def with_released_ctes(post: exp.Query, env: Environment) -> exp.Query:
    """A post-processing query that stands alone: the released CTEs that it reads are put before it."""
    needed = _needed_ctes(post, env)
    if not needed:
        return post
    query = post.copy()
    ctes = [exp.CTE(this=env[name].post.copy(), alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
            for name in env if name in needed]  # fmt: skip
    prepend_ctes(query, ctes)
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


# The bounds of a hole's numbers: those of its source expression, by interval arithmetic (SOUNDNESS 8).
#
#     JOIN (SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward) AS t0   →  t0.m lies within the bounds of cost
#
# Averages, quantiles and extremes lie within the bounds of what they are of; counts and sums with noise have none.
#
# Privacy: nothing here depends on values, and values are moved into these bounds before they are bound.
# So what noise and whole-number arithmetic are computed from holds, whatever was released.

NumberRange = tuple[Fraction, Fraction]

MAX_MAGNITUDE = 10**300
"""Beyond this a double has no room for what is added to it."""

_RANGE_PRESERVING = (exp.Paren, exp.Alias, exp.Nullif, exp.Min, exp.Max, exp.Avg, exp.Median)
"""What gives no number beyond those that it is given."""


def derive_source_domains(domains: tuple[Domain, ...], post: exp.Query, state: SplitState) -> tuple[Domain, ...]:
    """The domains of a hole's columns, with bounds where the post-processing that fills it shows some."""
    synthetic = _fully_selected_table(post, post, state)
    if synthetic is not None and len(synthetic.columns) == len(domains):
        return tuple(
            _narrow_bounds(domain, column.domain) for domain, column in zip(domains, synthetic.columns, strict=True)
        )
    if not isinstance(post, exp.Select) or len(post.selects) != len(domains):
        return domains
    ranges = (_expression_range(item, post, state) if domain.type.is_number else None
             for item, domain in zip(post.selects, domains, strict=True))  # fmt: skip
    pairs = zip(domains, ranges, strict=True)
    return tuple(domain if bounds is None else domain.with_bounds(*bounds) for domain, bounds in pairs)


def _narrow_bounds(domain: Domain, source: Domain) -> Domain:
    return domain.with_bounds(*source.bounds) if domain.type.is_number and source.is_bounded else domain


def _expression_range(node: exp.Expr, select: exp.Select, state: SplitState) -> NumberRange | None:
    if isinstance(node, exp.Column):
        return _column_range(node, select, state)
    if isinstance(node, exp.Literal):
        return _literal_range(node)
    if isinstance(node, _RANGE_PRESERVING):
        return _expression_range(node.this, select, state)
    inner = [_expression_range(part, select, state) for part in _operands_of(node)]
    ranges = [bounds for bounds in inner if bounds is not None]
    if not ranges or len(ranges) != len(inner):
        return None
    combined = _combine_ranges(node, ranges)
    return None if combined is None or max(map(abs, combined)) > MAX_MAGNITUDE else combined


def _literal_range(node: exp.Literal) -> NumberRange | None:
    """As everywhere: a literal past a double's range is refused before anything is worked out from it."""
    value = bind_literal(node).value
    return (Fraction(value), Fraction(value)) if isinstance(value, int | float | Decimal) else None


def _operands_of(node: exp.Expr) -> list[exp.Expr]:
    match node:
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return [node.this, node.expression]
        case exp.Neg():
            return [node.this]
        case exp.Round() if not isinstance(node.args.get("decimals"), exp.Neg):  # tens and hundreds move further
            return [node.this] if isinstance(node.args.get("decimals"), exp.Literal | None) else []
        case exp.Cast() if node.to.this in (exp.DataType.Type.DOUBLE, exp.DataType.Type.DECIMAL):
            return [node.this]
        case exp.Coalesce():
            return [node.this, *node.expressions]
        case _:
            return []


def _combine_ranges(node: exp.Expr, ranges: list[NumberRange]) -> NumberRange | None:
    (low, high), (other_low, other_high) = ranges[0], ranges[-1]
    match node:
        case exp.Add():
            return low + other_low, high + other_high
        case exp.Sub():
            return low - other_high, high - other_low
        case exp.Mul():
            return _range_hull([a * b for a in ranges[0] for b in ranges[1]])
        case exp.Div():
            return None if other_low <= 0 <= other_high else _range_hull([a / b for a in ranges[0] for b in ranges[1]])
        case exp.Neg():
            return -high, -low
        case exp.Coalesce():
            return _range_hull([end for bounds in ranges for end in bounds])
        case _:  # rounded: to a neighbor
            return Fraction(low.__floor__()), Fraction(high.__ceil__())


def _range_hull(ends: list[Fraction]) -> NumberRange:
    return min(ends), max(ends)


# --- columns ---------------------------------------------------------------------------------------------------------


def _column_range(node: exp.Column, select: exp.Select, state: SplitState) -> NumberRange | None:
    release = state.releases.get(node.table)
    if release is None:
        return _synthetic_column_range(node, select, state) or _subquery_column_range(node, select, state)
    column = next((c for c in release.columns if c.name == node.name and c.kind == "value"), None)
    if column is None:
        return None
    return _measure_range(release.aggregate.measures[column.place], release.aggregate, state.schema)


def _synthetic_column_range(node: exp.Column, select: exp.Select, state: SplitState) -> NumberRange | None:
    """A column of the only source, where that is a synthetic table: its bounds are those of what it was made of."""
    start = select.args.get("from_")
    if start is None or select.args.get("joins") or node.table.lower() not in ("", start.this.alias_or_name.lower()):
        return None
    synthetic = _find_synthetic_table(start.this, select, state)
    column = (
        None if synthetic is None else next((c for c in synthetic.columns if c.name.lower() == node.name.lower()), None)
    )
    return column.domain.bounds if column is not None and column.domain.is_bounded else None


def _fully_selected_table(query: exp.Expr, outer: exp.Expr, state: SplitState) -> MadeTable | None:
    """The synthetic table that a query is all columns of."""
    if not isinstance(query, exp.Select) or [type(item) for item in query.expressions] != [exp.Star]:
        return None
    if any(query.expressions[0].args.values()) or query.args.get("joins") or query.args.get("from_") is None:
        return None
    return _find_synthetic_table(query.args["from_"].this, outer, state)


def _find_synthetic_table(source: exp.Expr, outer: exp.Expr, state: SplitState) -> MadeTable | None:
    """By its own name, or by that of a WITH of the query that reads all of it."""
    if not isinstance(source, exp.Table) or source.alias_column_names:
        return None
    if source.args.get("joins") or source.args.get("pivots") or source.args.get("laterals"):
        return None
    with_ = outer.args.get("with_")
    for part in with_.expressions if isinstance(with_, exp.With) else ():
        if part.alias.lower() == source.name.lower():
            return None if part.alias_column_names else _fully_selected_table(part.this, part.this, state)
    read = next(
        (
            candidate
            for candidate in state.reads.values()
            if candidate.name == source.name and candidate.place == CREATED_SCHEMA
        ),
        None,
    )
    return (
        None
        if read is None
        else next((candidate for candidate in state.schema.made if candidate.key == read.table), None)
    )


def _subquery_column_range(node: exp.Column, select: exp.Select, state: SplitState) -> NumberRange | None:
    """A column of the only source, where that is a SELECT with such an item."""
    source = select.args["from_"].this if select.args.get("from_") is not None else None
    if select.args.get("joins") or not isinstance(source, exp.Subquery) or not isinstance(source.this, exp.Select):
        return None
    if source.args.get("pivots") or source.alias_column_names:
        return None
    items = [item for item in source.this.selects if item.alias_or_name.lower() == node.name.lower()]
    return _expression_range(items[0], source.this, state) if len(items) == 1 else None


def _measure_range(measure: Measure, aggregate: Aggregate, schema: Schema) -> NumberRange | None:
    if isinstance(measure, Blockwise):
        return measure.lower, measure.upper
    if not isinstance(measure, MeanValues | Quantile | Extreme) or not measure.arg.type.is_number:
        return None
    if isinstance(measure, Quantile) and measure.is_list:
        return None
    domain = domain_of(measure.arg, derive_domains(scan_declared_tables(aggregate.input, schema)))
    return domain.bounds if domain.is_bounded else None


def scan_declared_tables(rows: Rows, schema: Schema) -> Rows:
    """The relation over what the schema says of its tables: enough to know bounds, nothing that could run."""

    def change(node: Rows) -> Rows:
        if isinstance(node, Table):
            unit = None if node.unit is None else UnitId(_scan_column(UID, UID, Domain(node.unit)))
            columns = _scan_columns(node.table, node.columns, schema)
            return Scan(node.table, EngineTable((node.table,)), columns, unit, False, frozenset())
        if isinstance(node, PublicTable):
            columns = _scan_columns(node.table, node.columns, schema)
            return PublicScan(node.table, EngineTable((node.table,)), columns, 0, ())
        return node

    return map_rows(rows, change)


def _scan_columns(table: str, columns: tuple[tuple[str, Field], ...], schema: Schema) -> tuple[ScanColumn, ...]:
    return tuple(
        _scan_column(name, field.name, _declared_domain(table, name, field.type, schema)) for name, field in columns
    )


def _scan_column(source: str, name: str, domain: Domain) -> ScanColumn:
    return ScanColumn(source, name, None, domain, domain.length or 0, False)


def _declared_domain(table: str, name: str, type_: Type, schema: Schema) -> Domain:
    declared = schema.table(table)
    column = None if declared is None else declared.column(name)
    return Domain(type_) if column is None else column.domain
