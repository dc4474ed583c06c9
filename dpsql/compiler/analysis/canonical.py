"""The canonical form of a bound plan: the same question, however it is spelled, has the same text.

Only rewritings that hold for every row, NULL included: AND and OR flattened, sorted and without repeats;
comparisons turned to `<`, `<=`, `=`; `OR` of equalities to IN, `AND` of `<>` to NOT IN; NOT pushed down; whole numbers
`> n` to `>= n + 1`; operands of `=`, `<>`, `+`, `*` sorted, never reassociated. Literals keep their type.
Sources stand in one order, under one set of names, with their conditions in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import eq, ge, gt, le, lt, ne
from typing import assert_never

from dpsql.compiler.analysis.narrowing import NEGATED_OPERATORS
from dpsql.compiler.plan.aggregate import (
    Aggregate,
    CountBlocks,
    CountUnits,
    Distinct,
    Gather,
    Node,
    Sum,
    SumBlocks,
    Tally,
    Weigh,
)
from dpsql.compiler.plan.clipped_sums import ClippedSum, CountMeans, CountNorms
from dpsql.compiler.plan.expressions import (
    FALSE,
    TRUE,
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Clip,
    Column,
    Compare,
    Expr,
    HoleValue,
    InHole,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    Quantise,
    join_conjuncts,
    split_conjuncts,
)
from dpsql.compiler.plan.measures import (
    Best,
    Blockwise,
    ConjugatePosterior,
    CountDistinctUnits,
    CountRows,
    CountValues,
    DistinctValues,
    Extreme,
    Frequent,
    MeanValues,
    Measure,
    PairValues,
    Posterior,
    Quantile,
    Score,
    SharesPosterior,
    SumValues,
    Truth,
    VarianceValues,
)
from dpsql.compiler.plan.relations import (
    Expand,
    Field,
    Filter,
    Join,
    Mark,
    Named,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    SetOperation,
    Table,
    UnitWindow,
    is_public,
    row_fields,
)
from dpsql.compiler.plan.steps import counted_rows
from dpsql.compiler.plan.walk import (
    columns_of,
    map_expr,
    map_measure,
    map_node_exprs,
    map_rows,
    measure_args,
    walk_rows,
)
from dpsql.schema.model import Scalar
from dpsql.types import BIGINT, BOOLEAN, TEXT, Type, integer_range

CANONICAL_VERSION = 2
"""Part of every key: stored releases of another form are not mistaken for this one's."""


def canonicalize(aggregate: Aggregate) -> Aggregate:
    """The same question in its one spelling. This plan is rewritten, run and stored, so equal texts are equal plans."""

    aggregate = inline_projects(aggregate)
    rows = map_rows(aggregate.input, lambda node: _canonicalize_node(normalize_conditions(node)))
    aggregate = rename_columns(replace(aggregate, input=order_join_sides(rows, canonical_plan_text)))
    keys = tuple(Named(key.name, canonicalize_expr(key.expr)) for key in aggregate.keys)
    measures = tuple(map(_canonicalize_measure, aggregate.measures))
    return Aggregate(map_rows(aggregate.input, _canonicalize_node), keys, measures, aggregate.sets)


def _canonicalize_node(node: Rows) -> Rows:
    if isinstance(node, Filter):
        condition = canonicalize_condition(node.condition)
        return node.input if condition == TRUE else Filter(node.input, condition)
    if isinstance(node, Join):  # also of outer joins: a row meets those for which the condition is true
        return replace(node, condition=canonicalize_condition(node.condition))
    return map_node_exprs(node, canonicalize_expr)


def canonicalize_expr(expr: Expr) -> Expr:
    return map_expr(expr, _simplify_expr)


def canonicalize_condition(expr: Expr) -> Expr:
    """For the same rows true; false or NULL for the others."""
    return simplify_condition(canonicalize_expr(expr), _simplify_expr)


def _canonicalize_measure(measure: Measure) -> Measure:
    if isinstance(measure, CountDistinctUnits):
        return map_measure(measure, canonicalize_condition)
    if isinstance(measure, Best):
        score = _canonicalize_measure(measure.score)
        assert isinstance(score, Score)
        return replace(measure, arg=canonicalize_expr(measure.arg), score=score)
    measure = map_measure(measure, canonicalize_expr)
    if isinstance(measure, Blockwise):
        return replace(
            measure, statistic=replace(measure.statistic, result=canonicalize_expr(measure.statistic.result))
        )
    if isinstance(measure, CountValues) and isinstance(measure.arg, Case) and len(measure.arg.branches) == 1:
        ((when, then),) = measure.arg.branches
        null_value = Literal(None, measure.arg.type)
        if isinstance(then, Literal) and then.value is not None and measure.arg.otherwise == null_value:
            # Only whether it is NULL is counted.
            return replace(measure, arg=Case(((when, Literal(1, BIGINT)),), Literal(None, BIGINT), BIGINT))
    return measure


def canonical_expr_text(expr: Expr) -> str:
    return _expr_text(canonicalize_expr(expr))


def canonical_measure_text(measure: Measure) -> str:
    args = ",".join(_expr_text(arg) for arg in measure_args(_canonicalize_measure(measure)))
    return f"{measure_function_text(measure, canonical_expr_text)}({args})"


def canonical_plan_text(node: Node) -> str:
    """The text of a bound plan."""
    match node:
        case Table():
            columns = ",".join(f"{name!r}:{field.name!r}" for name, field in node.columns)
            return f"table({node.table!r};{columns})"
        case Filter():
            rows, conditions = _merge_filters(node)
            return f"filter({rows};{canonical_expr_text(And(conditions) if len(conditions) > 1 else conditions[0])})"
        case Project():
            columns = ",".join(f"{c.name!r}={canonical_expr_text(c.expr)}" for c in node.columns)
            return f"project({canonical_plan_text(node.input)};{columns})"
        case Join():
            return f"join({node.kind.value};{_inputs_text(node)};{canonical_expr_text(node.condition)})"
        case PublicTable():
            columns = ",".join(f"{name!r}:{field.name!r}" for name, field in node.columns)
            return f"public({node.table!r};{columns})"
        case RowsHole():
            columns = ",".join(f"{f.name!r}:{f.type}" for f in node.columns)
            max_rows = counted_rows(node.most)
            return f"hole({node.hole};{columns};{node.domains!r};{max_rows};{sorted(node.unique)})"
        case Mark():
            test = "" if node.test is None else ",".join(map(canonical_expr_text, node.test))
            return f"mark({_inputs_text(node)};{node.name!r};{canonical_expr_text(node.condition)};{test})"
        case PerUnit():
            keys = ",".join(f"{key.name!r}={canonical_expr_text(key.expr)}" for key in node.keys)
            measures = ",".join(
                f"{m.name!r}={m.function}:{m.type}({_optional_expr_text(m.arg)})" for m in node.measures
            )
            return f"per_unit({canonical_plan_text(node.input)};{keys};{measures})"
        case UnitWindow():
            return f"window({canonical_plan_text(node.input)};{node.name!r}={_window_text(node)})"
        case SetOperation():
            return f"{node.kind.value}({_inputs_text(node)})"
        case Aggregate():
            return f"v{CANONICAL_VERSION}:aggregate({canonical_plan_text(node.input)};{_aggregate_text(node)})"
        case Scan() | PublicScan() | Expand() | Weigh() | Distinct() | Sum() | CountUnits() | Gather() | Tally():
            raise TypeError("the canonical form is that of the bound plan")
        case SumBlocks() | CountBlocks() | ClippedSum() | CountNorms() | CountMeans():
            raise TypeError("the canonical form is that of the bound plan")
        case _:
            assert_never(node)


def _inputs_text(node: Join | Mark | SetOperation) -> str:
    return f"{canonical_plan_text(node.left)};{canonical_plan_text(node.right)}"


def _optional_expr_text(expr: Expr | None) -> str:
    return "" if expr is None else canonical_expr_text(expr)


def _window_text(node: UnitWindow) -> str:
    args, partition = (",".join(map(canonical_expr_text, exprs)) for exprs in (node.args, node.partition))
    order = ",".join(f"{canonical_expr_text(o.expr)}:{o.descending}:{o.nulls_first}" for o in node.order)
    return f"{node.function}:{node.type}({args};{partition};{order};{node.frame})"


def _aggregate_text(node: Aggregate) -> str:
    """In the plan's own order: a stored release is read by the names of its keys and the places of its cells."""
    keys = ",".join(f"{key.name}={canonical_expr_text(key.expr)}" for key in node.keys)
    measures = ",".join(canonical_measure_text(measure) for measure in node.measures)
    if not node.sets:
        return f"{keys};{measures}"
    sets = "|".join(",".join(sorted(names)) for names in node.sets)
    return f"{keys};{measures};{sets}"


def _merge_filters(node: Filter) -> tuple[str, tuple[Expr, ...]]:
    conditions: list[Expr] = []
    rows: Node = node
    while isinstance(rows, Filter):
        conditions.append(rows.condition)
        rows = rows.input
    return canonical_plan_text(rows), tuple(conditions)


# --- rewriting -------------------------------------------------------------------------------------------------------


def _simplify_expr(expr: Expr) -> Expr:
    """One step at the top of an expression whose parts are canonical; what has no rule stays as it is."""
    if isinstance(expr, Compare | InList) and (shorter := fold_constants(expr)) is not None:
        return _simplify_expr(shorter)
    if isinstance(expr, Compare):
        return _orient_comparison(expr)
    if isinstance(expr, Case):
        return replace(
            expr, branches=tuple((simplify_condition(when, _simplify_expr), then) for when, then in expr.branches)
        )
    if isinstance(expr, And):
        return _merge_not_in_lists(_flatten_connective(And, expr.args))
    if isinstance(expr, Or):
        return _merge_in_lists(_flatten_connective(Or, expr.args))
    if isinstance(expr, Not):
        return _negate_expr(expr.arg)
    if isinstance(expr, InList):
        return InList(expr.arg, tuple(sorted(set(expr.values), key=_expr_text)))
    if isinstance(expr, Arithmetic) and expr.op in ("+", "*") and _expr_text(expr.left) > _expr_text(expr.right):
        return replace(expr, left=expr.right, right=expr.left)
    return expr


def _orient_comparison(expr: Compare) -> Expr:
    op, left, right = expr.op, expr.left, expr.right
    if op in ("=", "<>"):
        return expr if _expr_text(left) <= _expr_text(right) else Compare(op, right, left)
    if op in (">", ">="):
        op, left, right = ("<" if op == ">" else "<="), right, left
    if op == "<" and left.type.is_integer and right.type.is_integer:
        if isinstance(left, Literal) and isinstance(left.value, int) and left.value < integer_range(left.type)[1]:
            return Compare("<=", Literal(left.value + 1, left.type), right)
        if isinstance(right, Literal) and isinstance(right.value, int) and right.value > integer_range(right.type)[0]:
            return Compare("<=", left, Literal(right.value - 1, right.type))
    return Compare(op, left, right)


def _flatten_connective(kind: Callable[[tuple[Expr, ...]], And | Or], args: tuple[Expr, ...]) -> Expr:
    flat: list[Expr] = []
    for arg in args:
        nested = isinstance(arg, And | Or) and type(arg) is kind
        flat += arg.args if nested and isinstance(arg, And | Or) else [arg]
    if kind is Or and TRUE in flat:  # x AND FALSE stays: what x says of its columns is still of use
        return TRUE
    neutral = TRUE if kind is And else FALSE
    parts = {_expr_text(part): part for part in flat if part != neutral}
    sorted_parts = tuple(parts[text] for text in sorted(parts))
    if not sorted_parts:
        return neutral
    return sorted_parts[0] if len(sorted_parts) == 1 else kind(sorted_parts)


def _merge_in_lists(expr: Expr) -> Expr:
    """x = 1 OR x IN (2, 3) is x IN (1, 2, 3)."""
    if not isinstance(expr, Or):
        return _equality_to_in_list(expr)
    lists: dict[str, tuple[Expr, set[Literal]]] = {}
    others: list[Expr] = []
    for arg in map(_equality_to_in_list, expr.args):
        if isinstance(arg, InList):
            lists.setdefault(_expr_text(arg.arg), (arg.arg, set()))[1].update(arg.values)
        else:
            others.append(arg)
    merged = (InList(arg, tuple(sorted(values, key=_expr_text))) for arg, values in lists.values())
    return _flatten_connective(Or, (*others, *merged))


def _merge_not_in_lists(expr: Expr) -> Expr:
    """x <> 1 AND x NOT IN (2, 3) is x NOT IN (1, 2, 3), also where x is NULL. Engines are quadratic in such a chain."""
    if not isinstance(expr, And):
        return expr
    lists: dict[str, tuple[Expr, set[Literal]]] = {}
    others: list[Expr] = []
    for arg in expr.args:
        list_ = _inequality_to_in_list(arg)
        if list_ is None:
            others.append(arg)
        else:
            lists.setdefault(_expr_text(list_.arg), (list_.arg, set()))[1].update(list_.values)
    merged = (_negate_expr(InList(arg, tuple(sorted(values, key=_expr_text)))) for arg, values in lists.values())
    return _flatten_connective(And, (*others, *merged))


def _inequality_to_in_list(expr: Expr) -> InList | None:
    if isinstance(expr, Not) and isinstance(expr.arg, InList):
        return expr.arg
    if not isinstance(expr, Compare) or expr.op != "<>":
        return None
    list_ = _equality_to_in_list(Compare("=", expr.left, expr.right))
    return list_ if isinstance(list_, InList) else None


def _equality_to_in_list(expr: Expr) -> Expr:
    if not isinstance(expr, Compare) or expr.op != "=":
        return expr
    for literal, arg in ((expr.left, expr.right), (expr.right, expr.left)):
        if isinstance(literal, Literal) and literal.value is not None and not isinstance(arg, Literal):
            return InList(arg, (literal,))
    return expr


def _negate_expr(arg: Expr) -> Expr:
    if isinstance(arg, Not):
        return arg.arg
    if isinstance(arg, Compare):
        return _orient_comparison(Compare(NEGATED_OPERATORS[arg.op], arg.left, arg.right))
    if isinstance(arg, InList) and len(arg.values) == 1:
        return _orient_comparison(Compare("<>", arg.arg, arg.values[0]))
    if isinstance(arg, And):
        return _merge_in_lists(_flatten_connective(Or, tuple(_negate_expr(part) for part in arg.args)))
    if isinstance(arg, Or):
        return _merge_not_in_lists(_flatten_connective(And, tuple(_negate_expr(part) for part in arg.args)))
    if isinstance(arg, Literal):
        return arg if arg.value is None else Literal(not arg.value, arg.type)
    return Not(arg)


# --- text ------------------------------------------------------------------------------------------------------------


def _expr_text(expr: Expr) -> str:
    match expr:
        case Column():
            return f"[{expr.name!r}]"  # an alias may hold any character; quoted, it ends where it ends
        case Literal():
            return f"{type(expr.value).__name__}:{expr.type}:{expr.value!r}"
        case Compare():
            # One equality and a list of one are the same question.
            as_list = _equality_to_in_list(expr)
            return _expr_text(as_list) if isinstance(as_list, InList) else _call_text(expr.op, (expr.left, expr.right))
        case And():
            return _call_text("and", expr.args)
        case Or():
            return _call_text("or", expr.args)
        case Not():
            return _call_text("not", (expr.arg,))
        case IsNull():
            return _call_text("is_null", (expr.arg,))
        case InList():
            return _call_text("in", (expr.arg, *expr.values))
        case Arithmetic():
            return _call_text(f"{expr.op}:{expr.type}", (expr.left, expr.right))
        case Case():
            parts = tuple(part for branch in expr.branches for part in branch)
            return _call_text(f"case:{expr.type}", (*parts, expr.otherwise))
        case Cast():
            return _call_text(f"cast:{expr.type}", (expr.arg,))
        case Call():
            return _call_text(f"{expr.function}:{expr.type}", expr.args)
        case Clip():
            return _call_text(f"clip:{expr.lower}:{expr.upper}", (expr.arg,))
        case HoleValue():
            return f"(hole {expr.hole} {expr.domain!r})"
        case InHole():
            return _call_text(f"in_hole:{expr.hole}:{expr.domain!r}", (expr.arg,))
        case Quantise():
            return _call_text(f"quantise:{expr.grid}:{expr.lower}:{expr.upper}", (expr.arg,))
        case _:
            assert_never(expr)


def _call_text(head: str, args: tuple[Expr, ...]) -> str:
    return f"({head} {' '.join(_expr_text(arg) for arg in args)})"


# Sub-selects, CTEs and views that only name and filter rows, read as if their text stood in the block around them.
#
#     SELECT COUNT(*) FROM (SELECT qty AS q FROM orders WHERE paid) AS t WHERE q > 3
#         →  SELECT COUNT(*) FROM orders WHERE paid AND qty > 3
#
# Only columns that are passed on as they are: an expression that is read twice would be written twice, and so on
# upward.


def inline_projects(aggregate: Aggregate) -> Aggregate:
    aggregate = replace(aggregate, input=map_rows(aggregate.input, _lift_projection))
    if not isinstance(aggregate.input, Project):
        return aggregate
    read = [key.expr for key in aggregate.keys]
    read += [arg for measure in aggregate.measures for arg in measure_args(measure)]
    names = _column_renames(aggregate.input, read)
    if names is None:
        return aggregate
    keys = tuple(Named(key.name, _substitute_columns(key.expr, names)) for key in aggregate.keys)
    measures = tuple(
        map_measure(measure, lambda arg: _substitute_columns(arg, names)) for measure in aggregate.measures
    )
    return replace(aggregate, input=aggregate.input.input, keys=keys, measures=measures)


def _lift_projection(node: Rows) -> Rows:
    """A projection above the filters and projections that read through it."""
    if isinstance(node, Filter) and isinstance(node.input, Project):
        names = _column_renames(node.input, [node.condition])
        if names is not None:
            return replace(node.input, input=Filter(node.input.input, _substitute_columns(node.condition, names)))
    if isinstance(node, Project) and isinstance(node.input, Project):
        names = _column_renames(node.input, [column.expr for column in node.columns])
        if names is not None:
            columns = tuple(Named(column.name, _substitute_columns(column.expr, names)) for column in node.columns)
            return Project(node.input.input, columns)
    return node


def _column_renames(project: Project, exprs: Iterable[Expr]) -> dict[str, Column] | None:
    """What the columns that are read are below; None where one of them is computed."""
    renames = {column.name: column.expr for column in project.columns if isinstance(column.expr, Column)}
    return renames if all(columns_of(expr) <= renames.keys() for expr in exprs) else None


def _substitute_columns(expr: Expr, names: dict[str, Column]) -> Expr:
    return map_expr(expr, lambda part: names[part.name] if isinstance(part, Column) else part)


# Conditions said shortly: literals compared with each other, and truth compared with TRUE and FALSE.
#
#     1 = 1  →  TRUE        paid = TRUE, paid <> FALSE  →  paid        paid = FALSE  →  NOT paid
#
# These hold for NULL too. Where rows are kept for which a condition is true, NULL and FALSE are the same, and there
# alone `paid IS TRUE` is `paid`; `paid IS NOT TRUE` is never `NOT paid`.

_NULL_BOOLEAN = Literal(None, BOOLEAN)
_EQUALITY_OPERATORS: dict[str, Callable[[Scalar, Scalar], bool]] = {"=": eq, "<>": ne}
_ORDERING_OPERATORS: dict[str, Callable[[int, int], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def fold_constants(expr: Compare | InList) -> Expr | None:
    """What a comparison is in every row, or the truth that it compares; None where there is nothing shorter."""
    if isinstance(expr, InList):
        return _fold_in_list(expr)
    left, right = expr.left, expr.right
    if isinstance(left, Literal) and isinstance(right, Literal):
        return _compare_literals(expr.op, left, right)
    for truth, literal in ((left, right), (right, left)):
        if isinstance(literal, Literal) and isinstance(literal.value, bool) and expr.op in _EQUALITY_OPERATORS:
            return truth if literal.value == (expr.op == "=") else Not(truth)
    return None


def _fold_in_list(expr: InList) -> Expr | None:
    if len(expr.values) == 1:
        return fold_constants(Compare("=", expr.arg, expr.values[0]))
    arg = expr.arg
    if not isinstance(arg, Literal) or not _is_exact(arg.type):
        return None
    if arg.value is None:
        return _NULL_BOOLEAN
    return Literal(any(arg.value == value.value for value in expr.values), BOOLEAN)


def _compare_literals(op: str, left: Literal, right: Literal) -> Literal | None:
    """Whole numbers, texts and truth; other values are compared by the engine, which rounds them as it does."""
    if left.value is None or right.value is None:
        return _NULL_BOOLEAN
    if not _is_exact(left.type):
        return None
    if op in _EQUALITY_OPERATORS:
        return Literal(_EQUALITY_OPERATORS[op](left.value, right.value), BOOLEAN)
    if left.type.is_integer and isinstance(left.value, int) and isinstance(right.value, int):
        return Literal(_ORDERING_OPERATORS[op](left.value, right.value), BOOLEAN)
    return None  # the order of texts is the engine's


def _is_exact(type_: Type) -> bool:
    return type_.is_integer or type_ in (TEXT, BOOLEAN)


def simplify_condition(expr: Expr, simplify: Callable[[Expr], Expr]) -> Expr:
    """A condition that is true for the same rows, and perhaps NULL for others for which this one is false.

    `simplify` gives the canonical form of a connective whose parts are canonical.
    """
    if isinstance(expr, Call) and expr.function == "coalesce" and expr.args[1:] == (FALSE,):
        return simplify_condition(expr.args[0], simplify)
    if isinstance(expr, And | Or):
        parts = tuple(simplify_condition(arg, simplify) for arg in expr.args)
        return expr if parts == expr.args else simplify(replace(expr, args=parts))
    return expr


# The text of what a measure does, for the canonical form of a plan.


def measure_function_text(measure: Measure, text: Callable[[Expr], str]) -> str:
    """Everything about a measure but its arguments."""
    match measure:
        case CountRows():
            return "count_rows"
        case CountDistinctUnits():
            return "count_units"
        case CountValues():
            return "count"
        case SumValues():
            return "sum"
        case MeanValues():
            return "mean"
        case DistinctValues():
            return f"distinct_{measure.function}"
        case VarianceValues():
            return f"variance:{measure.sample}:{measure.root}"
        case PairValues():
            return measure.function.value
        case Truth():
            return f"truth:{measure.every}"
        case Quantile():
            fractions = " ".join(map(str, measure.fractions))
            local = "" if measure.local is None else f":{measure.local.by.value}:{measure.local.proposal}"
            return f"quantile:{fractions}:{measure.discrete}:{measure.is_list}{local}"
        case Extreme():
            return f"extreme:{measure.high}" + ("" if measure.overshoot is None else f":{measure.overshoot}")
        case Frequent():
            return f"frequent:{measure.shape}:{measure.most}"
        case Blockwise():
            statistic = measure.statistic
            named = " ".join(
                f"{aggregate.name}={aggregate.function}:{aggregate.fraction}" for aggregate in statistic.aggregates
            )
            combined = f"{measure.combine}:{measure.blocks}:{measure.lower}:{measure.upper}"
            return f"blockwise:{combined}:{named}:{text(statistic.result)}"
        case Best():
            return f"best:{measure_function_text(measure.score, text)}:{measure.most}:{measure.is_list}"
        case Posterior():
            prior = f"{measure.alpha}:{measure.beta}:{measure.first}"
            return f"posterior:{measure.draws}:{measure.is_list}:{prior}"
        case ConjugatePosterior() | SharesPosterior():
            return measure.signature
        case _:
            assert_never(measure)


# Keys and measures in the order of their texts in the canonical plan, where aliases and the order of sources are gone.
#
#     SELECT a, b … FROM (SELECT region AS a, kind AS b …)  →  kind, region: as for  SELECT region, kind …
#
# A stored release is read by the names of its keys (k1, k2, …) and the places of its measures, so spellings of one
# question must agree on them; where they do not, the text of the plan tells them apart.


def canonical_order(
    rows: Rows, keys: list[Expr], measures: Iterable[Measure], of_rows: bool
) -> tuple[list[Expr], list[Measure]]:
    """`of_rows`: the measures read these rows, and not what is still to be made of them."""
    sorted_measures = sorted(measures, key=canonical_measure_text)
    named = tuple(Named(f"k{number}", key) for number, key in enumerate(keys, 1))
    plan = canonicalize(Aggregate(rows, named, tuple(sorted_measures) if of_rows else ()))
    key_order = sorted(range(len(keys)), key=lambda index: canonical_expr_text(plan.keys[index].expr))
    if of_rows:
        order = sorted(range(len(sorted_measures)), key=lambda index: canonical_measure_text(plan.measures[index]))
        sorted_measures = [sorted_measures[index] for index in order]
    return [keys[index] for index in key_order], sorted_measures


# --- sources ---------------------------------------------------------------------------------------------------------
# FROM people p JOIN orders o ON o.uid = p.uid AND p.vip
#         →  FROM orders JOIN people ON orders.uid = people.uid WHERE people.vip
#
# Inner joins only. They give the same rows in either order, and a condition of theirs keeps the rows that WHERE would
# keep. Equalities that span a join stay its condition, as the binder has it: they tell how many rows may meet.


# --- conditions ------------------------------------------------------------------------------------------------------


def normalize_conditions(node: Rows) -> Rows:
    """One node whose inputs are settled: filters stand above inner joins, and equalities across one within it."""
    if isinstance(node, Join) and node.is_inner:
        (left, ours), (right, theirs) = _strip_filters(node.left), _strip_filters(node.right)
        bare = replace(node, left=left, right=right, condition=TRUE)
        return _attach_conditions(bare, (*ours, *theirs, *split_conjuncts(node.condition)))
    if isinstance(node, Filter):
        rows, below = _strip_filters(node.input)
        return _attach_conditions(rows, (*below, *split_conjuncts(node.condition)))
    return node


def _strip_filters(node: Rows) -> tuple[Rows, tuple[Expr, ...]]:
    parts: tuple[Expr, ...] = ()
    while isinstance(node, Filter):
        parts = (*split_conjuncts(node.condition), *parts)
        node = node.input
    return node, parts


def _attach_conditions(rows: Rows, parts: Iterable[Expr]) -> Rows:
    remaining: list[Expr] = []
    for part in parts:
        spanned = _add_to_join(rows, part) if isinstance(part, Compare) and part.op == "=" else None
        if spanned is not None:
            rows = spanned
        elif part != TRUE:
            remaining.append(part)
    return Filter(rows, join_conjuncts(tuple(remaining))) if remaining else rows


def _add_to_join(node: Rows, part: Expr) -> Rows | None:
    """The rows with the condition in the inner join that it spans; None where it spans none."""
    if not isinstance(node, Join) or not node.is_inner:
        return None
    read = columns_of(part)
    left, right = ({f.name for f in row_fields(side)} for side in (node.left, node.right))
    if read <= left:
        inner = _add_to_join(node.left, part)
        return None if inner is None else replace(node, left=inner)
    if read <= right:
        inner = _add_to_join(node.right, part)
        return None if inner is None else replace(node, right=inner)
    condition = tuple(condition for condition in split_conjuncts(node.condition) if condition != TRUE)
    return replace(node, condition=join_conjuncts((*condition, part)))


# --- order -----------------------------------------------------------------------------------------------------------


def order_join_sides(node: Rows, text: Callable[[Rows], str]) -> Rows:
    """The two private sides of an inner join in the order of their texts, below joins with public rows and filters.

    Stability: the ids of both sides are equated in the SQL that runs, so either side's is the result's. Three sides and
    more stay as they are: how many rows of a unit meet is worked out from left to right.
    """
    if isinstance(node, Filter):
        return replace(node, input=order_join_sides(node.input, text))
    if not isinstance(node, Join) or not node.is_inner or is_public(node.left):
        return node
    if is_public(node.right):
        return replace(node, left=order_join_sides(node.left, text))
    if any(isinstance(side, Join) and side.is_inner for side in (node.left, node.right)):
        return node
    if text(rename_row_columns(node.right)) < text(rename_row_columns(node.left)):
        return replace(node, left=node.right, right=node.left)
    return node


# --- names -----------------------------------------------------------------------------------------------------------


def rename_columns(aggregate: Aggregate) -> Aggregate:
    """The columns of tables by their own names, numbered in the order of the plan where several have one name."""
    names = _assign_names(aggregate.input)

    def rename_expr(expr: Expr) -> Expr:
        return _rename_in_expr(expr, names)

    keys = tuple(Named(key.name, rename_expr(key.expr)) for key in aggregate.keys)
    measures = tuple(map_measure(measure, rename_expr) for measure in aggregate.measures)
    return replace(aggregate, input=_rename_in_rows(aggregate.input, names), keys=keys, measures=measures)


def rename_row_columns(node: Rows) -> Rows:
    return _rename_in_rows(node, _assign_names(node))


def _assign_names(rows: Rows) -> dict[str, str]:
    """New names of the columns of tables; all other names, those of holes among them, stay and are not given twice."""
    nodes = list(walk_rows(rows))
    tables = [node for node in nodes if isinstance(node, Table | PublicTable)]
    columns = [(declared, field.name) for table in tables for declared, field in table.columns]
    old = {name for _, name in columns}
    taken = {f.name.lower() for node in nodes for f in row_fields(node) if f.name not in old}
    names: dict[str, str] = {}
    for declared, name in columns:
        base = "column" + declared if declared.startswith("_") else declared
        new_name, number = base, 1
        while new_name.lower() in taken:
            number += 1
            new_name = f"{base}_{number}"
        taken.add(new_name.lower())
        names[name] = new_name
    return names


def _rename_in_expr(expr: Expr, names: dict[str, str]) -> Expr:
    def change(part: Expr) -> Expr:
        return replace(part, name=names.get(part.name, part.name)) if isinstance(part, Column) else part

    return map_expr(expr, change)


def _rename_in_rows(rows: Rows, names: dict[str, str]) -> Rows:
    def name(old: str) -> str:
        return names.get(old, old)

    def change(node: Rows) -> Rows:
        node = map_node_exprs(node, lambda expr: _rename_in_expr(expr, names))
        match node:
            case Table() | PublicTable():
                fields = tuple((declared, Field(name(f.name), f.type)) for declared, f in node.columns)
                return replace(node, columns=fields)
            case Project():
                return replace(node, columns=tuple(Named(name(c.name), c.expr) for c in node.columns))
            case PerUnit():
                keys = tuple(Named(name(key.name), key.expr) for key in node.keys)
                return replace(node, keys=keys, measures=tuple(replace(m, name=name(m.name)) for m in node.measures))
            case Mark() | UnitWindow():
                return replace(node, name=name(node.name))
            case Filter() | Join() | SetOperation() | Expand() | RowsHole() | Scan() | PublicScan():
                return node
            case _:
                assert_never(node)

    return map_rows(rows, change)
