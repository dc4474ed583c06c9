"""One block over private rows that aggregates: its release, and the post-processing that takes its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations, product

from sqlglot import exp

from dpsql.compiler.analysis.canonical import canonical_expr_text, canonical_measure_text, canonical_order
from dpsql.compiler.analysis.unmatched_rows import find_unmatched_notices
from dpsql.compiler.bind.aggregates import (
    bind_measure,
    has_aggregate,
    is_aggregate,
    is_interval_aggregate,
    measure_type,
)
from dpsql.compiler.bind.binder import Binder
from dpsql.compiler.bind.calls import bind_clip
from dpsql.compiler.bind.datetime import seconds_to_interval
from dpsql.compiler.bind.expressions import bind_expr
from dpsql.compiler.bind.outputs import (
    NUMERIC_KEY,
    Output,
    fold_identifier,
    infer_type,
    is_numeric_sum,
    is_order_by_all,
    output_name,
    rewrite_integer_division,
)
from dpsql.compiler.bind.posteriors import ALL_PARTS_FUNCTIONS, expand_posteriors
from dpsql.compiler.bind.scope import BoundColumn, ColumnNamer, Scope, expand_plain_star
from dpsql.compiler.bind.unit_aggregates import bind_unit_measure
from dpsql.compiler.parse.dialect import find_calls, refuse_other_args, span_of, sql_name_of
from dpsql.compiler.parse.googlesql import PER_GROUP
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import Case, Cast, Column, Expr, IsNull, Literal, Not, is_bigint_value
from dpsql.compiler.plan.measures import CountDistinctUnits, MeanValues, Measure, SumValues
from dpsql.compiler.plan.relations import SET_COLUMN, Named, PerUnit, Project, Rows, UnitMeasure, has_uid
from dpsql.compiler.plan.steps import ReleaseColumn
from dpsql.compiler.plan.walk import has_joins
from dpsql.compiler.postprocess.allowed_functions import check_allowed_function
from dpsql.compiler.split.declared_range import DeclaredRanges
from dpsql.compiler.split.error_bars import (
    BlockColumns,
    ErrorBarExpressions,
    NoErrorBar,
    has_error_bar,
    no_error_bar_error,
    propagate_error,
)
from dpsql.compiler.split.integer_division import IntegerRatios
from dpsql.errors import Error, GroupingError, InvalidSyntax, LimitExceeded, Unsupported
from dpsql.types import BIGINT, DOUBLE, Type

RELEASE_CLAUSES = (
    "expressions", "from_", "joins", "where", "group", "having", "qualify", "order", "limit", "offset", "distinct",
    "windows", "with_",
)  # fmt: skip
MAX_INLINED_ALIASES = 1_000
MAX_MEASURES = 400
ERROR_BAR_FUNCTIONS = {
    "dp_stderr": "stderr", "dp_low": "low", "dp_high": "high",
    "dp_interval_low": "low", "dp_interval_high": "high", "dp_clipped": "clipped",
}  # fmt: skip


RewriteSubSelect = Callable[[exp.Expr, Callable[[exp.Expr], exp.Expr]], exp.Expr]
"""A sub-select as post-processing, given what makes post-processing of the columns that it reads of this block."""


# --- references to a release's columns -------------------------------------------------------------------------------
# They get their names once all keys and measures are known.

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
        """The column that holds its "stderr", "low", "high" or "clipped", or its "clip_half" or "clip_mid"."""
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


# --- the block -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ErrorBar:
    """The output columns, behind those asked for, that hold the error of one of them; and its measure, if it is one."""

    stderr: int
    low: int
    high: int
    clipped: int
    release: str
    measure: int | None


class ReleaseBlock:
    """Collects keys and measures while it rewrites the block; columns get their names once all are known."""

    def __init__(
        self,
        select: exp.Select,
        binder: Binder,
        name: str,
        sub_select: RewriteSubSelect,
        top: bool,
        ends: DeclaredRanges | None = None,
    ) -> None:
        refuse_other_args(select, *RELEASE_CLAUSES)
        self._select = select
        self._name = name
        self._sub_select = sub_select
        relation = binder.bind_rows(select)
        self._scope = relation.scope
        self._sets: list[list[Expr]] = []
        self._written_keys: dict[str, Expr] = {}  # keys with sub-selects or windows in them, by their text
        self._items = self._expand_items()
        declared = [] if ends is None else ends.replace_aggregates(self._items, select, relation)
        self._aliases = {item.alias.lower(): item.this for item in self._items if isinstance(item, exp.Alias)}
        self._keys = self._bind_keys()
        self._parts = UnitContributions(binder.namer) if has_group_bounds(select) else None
        if self._parts is not None and self._sets:
            raise grouping_sets_error(select)
        self._measures: dict[str, Measure] = {}  # by their canonical texts
        self._refer = ReleaseReferences(name)
        self._barred: list[Measure | bool] = []  # of each output: its measure, or whether it has bars at all
        self._inlining: set[str] = set()
        self._inlined = 0
        self._ratios = IntegerRatios()
        self.errors: tuple[ErrorBar | None, ...] = ()
        self.outputs: tuple[Output, ...] = ()
        self.post = self._rewrite_select(top)
        keys, measures = canonical_order(relation.node, self._keys, self._measures.values(), self._parts is None)
        self.columns = self._refer.assign_names(self.post, keys, measures)
        self.errors = self._locate_error_bars(measures)
        named = tuple(Named(f"k{number}", key) for number, key in enumerate(keys, 1))
        texts = {canonical_expr_text(key): f"k{number}" for number, key in enumerate(keys, 1)}
        sets = tuple(frozenset(texts[canonical_expr_text(key)] for key in chosen) for chosen in self._sets)
        # Read last: sub-selects and windows that were met on the way have been added to the rows.
        if self._parts is not None:
            self.aggregate = self._parts.build_aggregate(relation.node, named, tuple(measures))
        else:
            self.aggregate = Aggregate(relation.node, named, tuple(measures), sets)
        unmatched = find_unmatched_notices(self.aggregate) if has_joins(self.aggregate.input) else ()
        self.notices = (*relation.notices, *unmatched, *declared)
        self.warnings = self._ratios.warn() if self._ratios.ratios else ()

    def refuse_truncated_ratios(self, scanned: Callable[[Rows], Rows], statement: str) -> None:
        """Refuse quotients of whole numbers that can only be 0 or 1; `scanned` gives the rows their declared bounds."""
        if self._parts is None and self._ratios.ratios:
            rows = scanned(self.aggregate.input)
            self._ratios.refuse_parts(lambda node: bind_measure(node, self._scope), rows, statement)

    # --- keys --------------------------------------------------------------------------------------------------------

    def _expand_items(self) -> list[exp.Expr]:
        """SELECT items with * written out and every item named."""
        items: list[exp.Expr] = []
        written: Iterable[exp.Expr] = self._select.expressions
        if find_calls(self._select, *ALL_PARTS_FUNCTIONS):
            written = expand_posteriors(self._select.expressions)
        for item in written:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                for column in expand_plain_star(item, self._scope):
                    reference = exp.column(exp.to_identifier(column.name, quoted=True))
                    items.append(exp.alias_(reference, column.name, quoted=True))
            elif isinstance(item, exp.Alias):
                items.append(exp.Alias(this=item.this, alias=fold_identifier(item.args["alias"])))
            else:
                # Not `alias_`: of a sub-select it would make a table.
                items.append(exp.Alias(this=item, alias=exp.to_identifier(output_name(item), quoted=True)))
        for item in items:  # what a sub-select's names mean is asked of the block around it
            item.parent = self._select
        return items

    def _bind_keys(self) -> list[Expr]:
        group, distinct = self._select.args.get("group"), self._select.args.get("distinct")
        over_groups = group is not None or any(has_aggregate(item) for item in self._items)
        if distinct is not None:
            refuse_other_args(distinct, *(("on",) if over_groups else ()))
        if group is None:
            if distinct is None or over_groups:
                return []
            return _deduplicate_exprs([_check_key(bind_expr(item.this, self._scope), item) for item in self._items])
        refuse_other_args(group, "expressions", "all")
        if group.args.get("all") and group.expressions:
            raise InvalidSyntax("GROUP BY ALL takes no further keys", span=span_of(group.expressions[0]))
        if group.args.get("all"):
            return _deduplicate_exprs([self._bind_key(item.this) for item in self._items if not has_aggregate(item)])
        sets = expand_grouping_sets(group)
        if sets is None:
            return _deduplicate_exprs([self._bind_key(self._resolve_key_node(node)) for node in group.expressions])
        self._sets = [[self._bind_key(self._resolve_key_node(node)) for node in nodes] for nodes in sets]
        return _deduplicate_exprs([key for chosen in self._sets for key in chosen])

    def _bind_key(self, node: exp.Expr) -> Expr:
        if has_aggregate(node):
            raise GroupingError("aggregates cannot stand in GROUP BY", span=span_of(node))
        written = _subquery_text(node)
        if written is None:
            return _check_key(bind_expr(node, self._scope), node)
        if written not in self._written_keys:
            key = self._written_keys[written] = _check_key(bind_expr(node, self._scope), node)
            self._written_keys[_subquery_text(node) or written] = key  # binding puts other names into a sub-select
        return self._written_keys[written]

    def _resolve_key_node(self, node: exp.Expr) -> exp.Expr:
        """GROUP BY 2 and GROUP BY alias mean the SELECT item; an input column of that name goes first."""
        if isinstance(node, exp.Literal) and not node.args.get("is_string"):
            position = int(node.this) if str(node.this).isdigit() else 0
            if not 1 <= position <= len(self._items):
                raise InvalidSyntax(f"GROUP BY position {node.this} is not in the select list", span=span_of(node),
                                    sqlstate="42P10")  # fmt: skip
            item: exp.Expr = self._items[position - 1].this
            return item
        if isinstance(node, exp.Column) and not node.table and self._scope.find_column(node) is None:
            aliased: exp.Expr | None = self._aliases.get(node.name.lower())
            return aliased if aliased is not None else node
        return node

    # --- the block as post-processing --------------------------------------------------------------------------------

    def _rewrite_select(self, top: bool) -> exp.Select:
        items = [exp.Alias(this=self._rewrite_node(item.this), alias=item.args["alias"]) for item in self._items]
        self.outputs = tuple(Output(item.alias, infer_type(item.this), is_numeric_sum(item.this)) for item in items)
        select = exp.Select(expressions=items)
        released = exp.to_table(self._name)
        released.meta["read"] = True  # whose rows a block gives out may be asked again after it was made
        select.set("from_", exp.From(this=released))
        if self._select.args.get("having") is not None:
            refuse_other_args(self._select.args["having"], "this")
            select.set("where", exp.Where(this=self._rewrite_node(self._select.args["having"].this)))
        for clause in ("qualify", "windows", "distinct", "limit", "offset"):
            value = self._select.args.get(clause)
            if value is not None and value != []:
                select.set(
                    clause,
                    [self._rewrite_node(v) for v in value] if isinstance(value, list) else self._rewrite_node(value),
                )
        if self._select.args.get("order") is not None:
            select.set("order", self._rewrite_order_by(self._select.args["order"]))
        if top and select.args.get("distinct") is None:
            self._add_error_columns(select)
        return select

    def _rewrite_order_by(self, order: exp.Order) -> exp.Order:
        """ORDER BY: an output alias first, then what the block computes."""
        refuse_other_args(order, "expressions")
        result: list[exp.Expr] = []
        for ordered in order.expressions:
            inner = ordered.this
            is_alias = isinstance(inner, exp.Column) and not inner.table and self._is_output_name(inner.name)
            if is_order_by_all(inner) and not is_alias:
                places = (exp.Literal.number(place) for place in range(1, len(self._items) + 1))
                result += [_map_children(ordered, lambda n, place=place: place) for place in places]  # type: ignore[misc]
                continue
            is_position = isinstance(inner, exp.Literal) and not inner.args.get("is_string")
            if is_position and not (str(inner.this).isdigit() and 1 <= int(inner.this) <= len(self._items)):
                raise InvalidSyntax(f"ORDER BY position {inner.this} is not in the select list", span=span_of(inner),
                                    sqlstate="42P10")  # fmt: skip
            result.append(
                _map_children(ordered, lambda n: n) if is_alias or is_position else self._rewrite_node(ordered)
            )
        return exp.Order(expressions=result)

    def _is_output_name(self, name: str) -> bool:
        return any(item.alias.lower() == name.lower() for item in self._items)

    def _add_error_columns(self, select: exp.Select) -> None:
        """Columns of errors behind those asked for, so that they are ordered and cut along with them."""
        extra: list[exp.Expr] = []
        for item in self._items:
            bars, node = self._error_bars_of(item.this), _strip_parentheses(item.this)
            self._barred.append(
                isinstance(bars, ErrorBarExpressions) and (not is_aggregate(node) or self._register_measure(node))
            )
            for bar in bars.columns if isinstance(bars, ErrorBarExpressions) else ():
                extra.append(exp.Alias(this=bar, alias=exp.to_identifier(f"_error{len(extra)}", quoted=True)))
        select.set("expressions", select.expressions + extra)

    def _locate_error_bars(self, measures: list[Measure]) -> tuple[ErrorBar | None, ...]:
        """Where `_add_error_columns` put the errors of each output column."""
        bars: list[ErrorBar | None] = []
        index = len(self._items)
        for barred in self._barred:
            if barred is False:
                bars.append(None)
                continue
            measure = None if barred is True else measures.index(barred)
            bars.append(ErrorBar(index, index + 1, index + 2, index + 3, self._name, measure))
            index += 4
        return tuple(bars)

    def _rewrite_node(self, node: exp.Expr) -> exp.Expr:
        """The node over the release's columns; a private column that is left over is refused."""
        if isinstance(node, exp.Subquery | exp.Query):
            return self._sub_select(node, self._rewrite_node)
        if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
            raise Unsupported("IGNORE NULLS and RESPECT NULLS are for window functions", span=span_of(node))
        if isinstance(node, exp.Window):
            inner = _map_children(node.this, self._rewrite_node)
            return _map_children(node, lambda n: inner if n is node.this else self._rewrite_node(n))
        if isinstance(node, exp.Grouping):
            return self._rewrite_grouping(node)
        bar = self._rewrite_error_bar(node)
        if bar is not None:
            return bar
        if is_aggregate(node):
            measure = self._register_measure(node)
            value = self._refer.value_column(measure)
            value.meta[NUMERIC_KEY] = isinstance(measure, SumValues) and is_bigint_value(measure.arg)
            return seconds_to_interval(value) if self._is_interval(node) else value
        key = self._find_key(node)
        if key is not None:
            return self._refer.key_column(key)
        if isinstance(node, exp.Column):
            return self._inline_alias_or_refuse(node)
        check_allowed_function(node)
        rewritten = rewrite_integer_division(_map_children(node, self._rewrite_node))
        if isinstance(node, exp.Div) and isinstance(rewritten, exp.IntDiv):
            self._ratios.add(node, self._inline_aliases(node))
        return rewritten

    def _rewrite_grouping(self, node: exp.Grouping) -> exp.Expr:
        """GROUPING(a, b): a bit for each argument, set where the row's grouping set does not hold it."""
        arguments = [canonical_expr_text(self._bind_key(self._resolve_key_node(part))) for part in node.expressions]
        key_texts = {canonical_expr_text(key) for key in self._keys}
        if not arguments or not key_texts.issuperset(arguments):
            raise GroupingError("the arguments of GROUPING are keys of GROUP BY", span=span_of(node))
        if not self._sets:
            return exp.Literal.number(0)
        case = exp.Case(this=self._refer.key_column(SET_KEY))
        for number, chosen in enumerate(self._sets):
            inside = {canonical_expr_text(key) for key in chosen}
            bits = "".join("0" if text in inside else "1" for text in arguments)
            case = case.when(exp.Literal.number(number), exp.Literal.number(int(bits, 2)))
        return exp.cast(case, "bigint")

    def _inline_alias_or_refuse(self, node: exp.Column) -> exp.Expr:
        name = node.name.lower()
        if not node.table and name in self._aliases and name not in self._inlining and self._is_unknown_column(node):
            self._count_inlined(node)
            self._inlining.add(name)
            inlined = exp.Paren(this=self._rewrite_node(self._aliases[name]))
            self._inlining.discard(name)
            return inlined
        column = self._scope.resolve_column(node)
        raise GroupingError(
            f'column "{column.name}" must appear in GROUP BY or in an aggregate',
            hint=f"Add it to GROUP BY, or write {_suggest_aggregates(column)}.",
            span=span_of(node),
        )

    def _is_interval(self, node: exp.Expr) -> bool:
        return self._parts is None and is_interval_aggregate(
            node, self._scope
        )  # what a unit adds to a group is a number

    def _is_unknown_column(self, node: exp.Column) -> bool:
        return self._scope.find_column(node) is None

    def _find_key(self, node: exp.Expr) -> Expr | None:
        """The key that this sub-expression equals, if any."""
        if not self._keys or isinstance(node, exp.Literal | exp.Identifier | exp.Ordered | exp.Null | exp.Boolean):
            return None
        if has_aggregate(node):
            return None
        written = _subquery_text(node)
        if written is not None:  # binding it once more would add it to the rows once more
            return self._written_keys.get(written)
        try:
            bound = bind_expr(node, self._scope)
        except Error:
            return None  # not an expression over private rows: perhaps its parts are keys
        return next((key for key in self._keys if canonical_expr_text(key) == canonical_expr_text(bound)), None)

    # --- references to the release -----------------------------------------------------------------------------------

    def _rewrite_error_bar(self, node: exp.Expr) -> exp.Expr | None:
        """DP_STDERR(COUNT(*)) and its like read the error of an aggregate, or of arithmetic over aggregates."""
        if not isinstance(node, exp.Anonymous) or str(node.this).lower() not in ERROR_BAR_FUNCTIONS:
            return None
        if len(node.expressions) != 1:
            raise Unsupported(f"{node.this} takes one argument", hint=f"For example: {node.this}(COUNT(*)).",
                              span=span_of(node))  # fmt: skip
        bars = self._error_bars_of(node.expressions[0])
        if isinstance(bars, NoErrorBar):
            raise no_error_bar_error(bars, str(node.this))
        bar: exp.Expr = getattr(bars, ERROR_BAR_FUNCTIONS[str(node.this).lower()])
        return bar

    def _error_bars_of(self, node: exp.Expr) -> ErrorBarExpressions | NoErrorBar:
        """Standard error and 95 % interval of an expression over this block's aggregates."""
        node = _strip_parentheses(self._inline_aliases(node))
        if is_aggregate(node):
            measure = self._register_measure(node)
            if not has_error_bar(measure):
                return NoErrorBar(node)
            kinds = ("stderr", "low", "high", "clipped")
            return ErrorBarExpressions(*(self._refer.error_column(kind, measure) for kind in kinds))
        return propagate_error(
            node,
            BlockColumns(
                self._measures,
                self._register_measure,
                self._find_key,
                self._rewrite_node,
                self._refer,
                self._is_interval,
            ),
        )

    def _inline_aliases(self, node: exp.Expr, inside: frozenset[str] = frozenset()) -> exp.Expr:
        """The expression with the aliases of this SELECT written out."""
        if isinstance(node, exp.Query | exp.Subquery) or is_aggregate(node):
            return node
        name = node.name.lower() if isinstance(node, exp.Column) and not node.table else ""
        if name and name in self._aliases and name not in inside and self._is_unknown_column(node):  # type: ignore[arg-type]
            self._count_inlined(node)
            return exp.Paren(this=self._inline_aliases(self._aliases[name], inside | {name}))
        return _map_children(node, lambda part: self._inline_aliases(part, inside))

    def _count_inlined(self, node: exp.Expr) -> None:
        """An alias of an alias of an alias may double each time."""
        self._inlined += 1
        if self._inlined > MAX_INLINED_ALIASES:
            raise LimitExceeded(
                f"aliases are used more than {MAX_INLINED_ALIASES} times in one SELECT", span=span_of(node)
            )

    def _register_measure(self, node: exp.Expr) -> Measure:
        """The measure of an aggregate; equal ones, however they are spelled, are one."""
        bind = bind_measure if self._parts is None else self._parts.bind_contribution
        measure = bind(node, self._scope)
        text = canonical_measure_text(measure)
        if text not in self._measures and len(self._measures) >= MAX_MEASURES:
            raise LimitExceeded(f"one SELECT has more than {MAX_MEASURES} different aggregates", span=span_of(node),
                                hint="Ask in several statements.")  # fmt: skip
        return self._measures.setdefault(text, measure)


def _suggest_aggregates(column: BoundColumn) -> str:
    if column.column.type.is_number:
        return f"SUM({column.name}), AVG({column.name}) or COUNT({column.name})"
    return f"COUNT({column.name})"


def _check_key(key: Expr, node: exp.Expr) -> Expr:
    if key.type.is_microsecond_interval:
        raise Unsupported("an interval cannot be a key of GROUP BY",
                          hint="Group by whole days: EXTRACT(day FROM to - from).", span=span_of(node))  # fmt: skip
    return key


def _deduplicate_exprs(exprs: list[Expr]) -> list[Expr]:
    return list({canonical_expr_text(expr): expr for expr in exprs}.values())


def _strip_parentheses(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _map_children(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The same node with every child changed."""

    def part(value: object) -> object:
        if isinstance(value, exp.Expr):
            return change(value)
        return [part(item) for item in value] if isinstance(value, list) else value

    rebuilt = type(node)(**{key: part(value) for key, value in node.args.items()})
    rebuilt.meta.update(node.meta)
    return rebuilt


def _subquery_text(node: exp.Expr) -> str | None:
    """The text of an expression that holds a sub-select or window function; None of any other."""
    holds = any(isinstance(inner, exp.Query | exp.Window) for inner in node.walk())
    return node.sql(dialect="postgres") if holds else None


# GROUP BY with several grouping sets: ROLLUP, CUBE, GROUPING SETS, and their products.

MAX_GROUPING_SETS = 64
"""Every row counts once in each set, so more of them would drown every answer."""

GroupingSet = tuple[exp.Expr, ...]


def expand_grouping_sets(group: exp.Group) -> list[GroupingSet] | None:
    """The sets of keys that are grouped by, each in order; None for a plain list of keys."""
    parts = group.expressions
    if not any(isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets) for part in parts):
        return None
    choices: list[list[GroupingSet]] = []
    count = 1
    for part in parts:
        choices.append(_expand_grouping_part(part))
        count *= len(choices[-1])
        if count > MAX_GROUPING_SETS:
            raise LimitExceeded(f"there are more than {MAX_GROUPING_SETS} grouping sets", span=span_of(part))
    return [tuple(node for keys in chosen for node in keys) for chosen in product(*choices)]


def _expand_grouping_part(part: exp.Expr) -> list[GroupingSet]:
    match part:
        case exp.Rollup():
            refuse_other_args(part, "expressions")
            keys = [_grouping_keys(node) for node in part.expressions]
            return [_concatenate_keys(keys[:length]) for length in range(len(keys), -1, -1)]
        case exp.Cube():
            refuse_other_args(part, "expressions")
            keys = [_grouping_keys(node) for node in part.expressions]
            if len(keys) > MAX_GROUPING_SETS.bit_length():
                raise LimitExceeded(f"there are more than {MAX_GROUPING_SETS} grouping sets", span=span_of(part))
            lengths = range(len(keys), -1, -1)
            return [_concatenate_keys(list(chosen)) for length in lengths for chosen in combinations(keys, length)]
        case exp.GroupingSets():
            refuse_other_args(part, "expressions")
            return [grouping_set for node in part.expressions for grouping_set in _expand_grouping_part(node)]
        case _:
            return [_grouping_keys(part)]


def _grouping_keys(node: exp.Expr) -> GroupingSet:
    """(a, b) is two keys that come and go together."""
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    return (node.this,) if isinstance(node, exp.Paren) else (node,)


def _concatenate_keys(keys: list[GroupingSet]) -> GroupingSet:
    return tuple(node for part in keys for node in part)


# GoogleSQL's bounds per group: what a unit adds to a group is worked out first, then clipped, then aggregated.
#
#     SUM(cost, contribution_bounds_per_group => (0, 1000)) … GROUP BY ward
#     →  Aggregate by ward: sum of clip(part, 0, 1000) · PerUnit by ward: part = sum of cost
#
# All aggregates of such a block are over the units' parts: those without bounds of their own are sums of parts too.
#
# Stability: a part is a function of one unit's rows in one group (SOUNDNESS 2), so the rows stay owned. A unit has one
# row for each of its groups; `weigh_units` lets it count like at most `contributions.rows` of these, each within
# bounds.

AGGREGATE_CLAUSES = ("expressions", "having", "qualify", "order", "windows")


def has_group_bounds(select: exp.Select) -> bool:
    """Whether an aggregate of this block has bounds per group; sub-selects are blocks of their own."""
    for clause in AGGREGATE_CLAUSES:
        value = select.args.get(clause)
        for node in value if isinstance(value, list) else [value]:
            if node is not None and any(_is_group_bounds(part) for part in node.walk(prune=_is_query)):
                return True
    return False


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _is_group_bounds(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == PER_GROUP


@dataclass
class UnitContributions:
    """Collects what each unit adds to a group while the aggregates of a block are bound."""

    namer: ColumnNamer
    parts: list[UnitMeasure] = field(default_factory=list)

    def bind_contribution(self, node: exp.Expr, scope: Scope) -> Measure:
        """An aggregate of the block, over the units' parts."""
        plain, bounds = _split_bounds(node)
        if bounds is not None:
            return self._bind_bounded(node, plain, bounds, scope)
        inner = node.this if isinstance(node, exp.Filter) else node
        if isinstance(inner, exp.Count) and isinstance(inner.this, exp.Distinct):
            return self._count_units(bind_measure(node, scope), node)
        if not isinstance(inner, exp.Count | exp.CountIf | exp.Sum):
            raise _incompatible_aggregate_error(node)
        return SumValues(self._add_contribution(node, scope), span_of(node), _argument_text(inner))

    def _bind_bounded(self, node: exp.Expr, plain: exp.Expr, bounds: exp.Anonymous, scope: Scope) -> Measure:
        inner = plain.this if isinstance(plain, exp.Filter) else plain
        if not isinstance(inner, exp.Count | exp.CountIf | exp.Sum | exp.Avg) or isinstance(inner.this, exp.Distinct):
            raise Unsupported(
                f"{PER_GROUP} goes with COUNT, SUM and AVG",
                hint="contribution_bounds_per_row => (lower, upper) bounds each row.",
                span=span_of(node),
            )
        limits = [bind_expr(limit, scope) for limit in bounds.expressions[1:]]
        clipped = bind_clip([self._add_contribution(plain, scope), *limits], bounds)
        measure = MeanValues if isinstance(inner, exp.Avg) else SumValues
        return measure(clipped, span_of(node), _argument_text(inner))

    def _count_units(self, measure: Measure, node: exp.Expr) -> Measure:
        """COUNT(DISTINCT unit) counts the units that have a part; with FILTER, one of whose rows is kept."""
        if not isinstance(measure, CountDistinctUnits):
            raise _incompatible_aggregate_error(node)
        if measure.where is None:
            return measure
        part = UnitMeasure(self.namer.reserve_name("part"), "any", measure.where, measure.where.type)
        return CountDistinctUnits(self._contribution_column(part), measure.span)

    def _add_contribution(self, node: exp.Expr, scope: Scope) -> Column:
        return self._contribution_column(bind_unit_measure(node, self.namer.reserve_name("part"), scope))

    def _contribution_column(self, part: UnitMeasure) -> Column:
        """The part's column; equal parts are one."""
        existing = next((p for p in self.parts if (p.function, p.arg) == (part.function, part.arg)), None)
        if existing is None:
            self.parts.append(part)
        return Column((existing or part).name, part.type)

    def build_aggregate(self, rows: Rows, keys: tuple[Named, ...], measures: tuple[Measure, ...]) -> Aggregate:
        """The release over one row for each unit and group."""
        groups = tuple(Named(self.namer.reserve_name(key.name), key.expr) for key in keys)
        above = tuple(Named(key.name, _key_column(group)) for key, group in zip(keys, groups, strict=True))
        if has_uid(rows):
            return Aggregate(PerUnit(rows, groups, tuple(self.parts)), above, measures)
        single = tuple(Named(part.name, _contribution_of_row(part)) for part in self.parts)
        return Aggregate(Project(rows, groups + single), above, measures)


def grouping_sets_error(select: exp.Select) -> Unsupported:
    return Unsupported(
        f"{PER_GROUP} does not go with ROLLUP, CUBE and GROUPING SETS",
        hint="Ask for each grouping set in a SELECT of its own.",
        span=span_of(select.args["group"]),
    )


def _key_column(key: Named) -> Column:
    return Column(key.name, key.expr.type, key.expr.origin if isinstance(key.expr, Column) else None)


def _contribution_of_row(part: UnitMeasure) -> Expr:
    """The part of a unit that is one row."""
    if part.arg is None:
        return Literal(1, BIGINT)
    if part.function == "count":
        return Case(((Not(IsNull(part.arg)), Literal(1, BIGINT)),), Literal(0, BIGINT), BIGINT)
    return part.arg if part.arg.type == part.type else Cast(part.arg, part.type)


def _split_bounds(node: exp.Expr) -> tuple[exp.Expr, exp.Anonymous | None]:
    """The aggregate as it would stand without bounds, and what holds them: its argument, lower and upper."""
    if isinstance(node, exp.Filter):
        plain, bounds = _split_bounds(node.this)
        return _replace_argument(node, plain), bounds
    argument = node.args.get("this")
    distinct = argument.expressions if isinstance(argument, exp.Distinct) else []
    if any(_is_group_bounds(part) for part in distinct):
        return node, distinct[0]
    if not isinstance(argument, exp.Anonymous) or not _is_group_bounds(argument):
        return node, None
    return _replace_argument(node, argument.expressions[0]), argument


def _replace_argument(node: exp.Expr, this: exp.Expr) -> exp.Expr:
    """The node over another argument; the tree that was parsed stays as it is."""
    parent = this.parent
    new = type(node)(**{**node.args, "this": this})
    this.parent = parent
    new.meta.update(node.meta)
    return new


def _incompatible_aggregate_error(node: exp.Expr) -> Unsupported:
    return Unsupported(
        f"{sql_name_of(node)} does not go with {PER_GROUP} in one SELECT",
        hint="COUNT and SUM do, and AVG with bounds of its own; without bounds write SUM(x) / COUNT(x). "
        "Ask for others in a SELECT of their own.",
        span=span_of(node),
    )


def _argument_text(node: exp.Expr) -> str:
    return str(node.this.sql(dialect="postgres")) if isinstance(node.this, exp.Expr) else "*"
