"""MIN and MAX of a whole table's column, as dashboards ask for the range of a date picker: the declared bounds.

    SELECT MIN(admitted), MAX(admitted) FROM visits   (bounds: [2023-01-01, 2027-01-01])   →  2023-01-01, 2027-01-01

Only what the statement gives out is answered so, and only without WHERE, GROUP BY or join: bounds that stand in a
condition would decide which rows are counted, and no row needs to lie at them.

Privacy: bounds are the owner's declaration; no row is read for them.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction

from sqlglot import exp

from dpsql.compiler.analysis.key_values import evaluate_for_values
from dpsql.compiler.bind.aggregates import has_aggregate, is_aggregate
from dpsql.compiler.bind.expressions import bind_expr
from dpsql.compiler.bind.relation import BoundRelation
from dpsql.compiler.functions.calendar import convert_time, datetime_bounds
from dpsql.compiler.plan.expressions import Call, Cast, Column, Expr, IsNull, Not, split_conjuncts
from dpsql.compiler.plan.relations import Filter, Project, Rows, Table
from dpsql.compiler.plan.walk import columns_of
from dpsql.schema.model import Domain, Schema


class RangeSource(Enum):
    """Which columns' MIN and MAX are their declared bounds: dates and timestamps, those and numbers, or none."""

    DECLARED = "declared"
    ALL = "all"
    RELEASE = "release"


DECLARED_RANGE_NOTICE = (
    "bounds that the schema declares, and no row was read for them; SET ranges = release asks the rows"
)


def find_output_blocks(tree: exp.Expr) -> frozenset[int]:
    """By `id`, the blocks whose rows the statement gives out as they are: the outermost, and what it only wraps."""
    if isinstance(tree, exp.Subquery):
        return find_output_blocks(tree.this)
    if isinstance(tree, exp.SetOperation):
        return find_output_blocks(tree.left) | find_output_blocks(tree.right)
    if not isinstance(tree, exp.Select):
        return frozenset()
    from_ = tree.args.get("from_")
    inner = from_.this if from_ is not None and not tree.args.get("joins") else None
    plain = not any(tree.args.get(clause) for clause in ("where", "group", "having", "qualify"))
    wraps = plain and isinstance(inner, exp.Subquery) and not any(map(has_aggregate, tree.expressions))
    return frozenset({id(tree)}) | (find_output_blocks(inner) if wraps and inner is not None else frozenset())


@dataclass(frozen=True)
class DeclaredRanges:
    """Puts bounds in the place of MIN and MAX in the outputs of a block that gives out one row."""

    schema: Schema
    ranges: RangeSource

    def replace_aggregates(self, items: list[exp.Expr], select: exp.Select, relation: BoundRelation) -> list[str]:
        """Changes the items, which are aliased, and tells so in a notice."""
        if self.ranges is RangeSource.RELEASE or select.args.get("group") or select.args.get("distinct"):
            return []
        replaced = [
            node.sql(dialect="postgres")
            for item in items
            if (node := self._replace_aggregate(item, relation)) is not None
        ]
        return [f"{', '.join(dict.fromkeys(replaced))}: {DECLARED_RANGE_NOTICE}"] if replaced else []

    def _replace_aggregate(self, item: exp.Expr, relation: BoundRelation) -> exp.Expr | None:
        """The aggregate that was replaced. MAX(x) - MIN(x) in one column, and error bars, are asked of the rows."""
        aggregates = [node for node in item.walk() if is_aggregate(node)]
        if len(aggregates) != 1 or any(
            isinstance(node, exp.Query | exp.Window) or _is_error_bar(node) for node in item.walk()
        ):
            return None
        node = aggregates[0]
        bound = (
            self._declared_bound(node, relation)
            if isinstance(node, exp.Min | exp.Max) and not node.expressions
            else None
        )
        if bound is None:
            return None
        node.replace(bound)
        return node

    def _declared_bound(self, node: exp.Min | exp.Max, relation: BoundRelation) -> exp.Expr | None:
        argument = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
        arg = bind_expr(argument, relation.scope)
        base = _monotone_column(arg)
        domain = None if base is None else self._declared_domain(base, relation.node)
        if base is None or domain is None or not self._can_answer(domain):
            return None
        value = _bound_text(arg, base, domain, isinstance(node, exp.Max))
        return None if value is None else exp.cast(exp.Literal.string(value), str(arg.type))

    def _can_answer(self, domain: Domain) -> bool:
        is_included = domain.type.is_time or (self.ranges is RangeSource.ALL and domain.type.is_number)
        return is_included and domain.is_bounded

    def _declared_domain(self, column: Column, node: Rows) -> Domain | None:
        """The declared domain of a column that is read from all rows of one table."""
        if isinstance(node, Table):
            name = next((name for name, as_ in node.columns if as_.name == column.name), None)
            table = self.schema.table(node.table)
            declared = table.column(name) if table is not None and name is not None else None
            return None if declared is None else declared.domain
        if isinstance(node, Project):
            below = next((named.expr for named in node.columns if named.name == column.name), None)
            return self._declared_domain(below, node.input) if isinstance(below, Column) else None
        if isinstance(node, Filter) and all(_is_not_null(part, column) for part in split_conjuncts(node.condition)):
            return self._declared_domain(column, node.input)  # MIN and MAX pass over NULL anyway
        return None


def _is_error_bar(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower().startswith("dp_")


def _is_not_null(part: Expr, column: Column) -> bool:
    return isinstance(part, Not) and isinstance(part.arg, IsNull) and part.arg.arg == column


def _monotone_column(arg: Expr) -> Column | None:
    """The column below functions that never decrease: a truncation, or another type of time."""
    if isinstance(arg, Cast) and arg.type.is_time and arg.arg.type.is_time:
        return _monotone_column(arg.arg)
    if isinstance(arg, Call) and arg.function == "date_trunc":
        return _monotone_column(arg.args[1])
    return arg if isinstance(arg, Column) else None


def _bound_text(arg: Expr, base: Column, domain: Domain, high: bool) -> str | None:
    """The bound as text of the argument's type."""
    if domain.type.is_number:
        return _number_text(domain.bounds[high], domain) if arg == base else None
    endpoints = datetime_bounds(domain)
    assert columns_of(arg) == {base.name}
    values = (
        None
        if endpoints is None
        else evaluate_for_values(arg, base.name, (convert_time(endpoints[high], domain.type),))
    )
    return (
        values[0].isoformat(" ")
        if values and isinstance(values[0], dt.datetime)
        else str(values[0])
        if values
        else None
    )


def _number_text(bound: Fraction, domain: Domain) -> str:
    if domain.type.is_float:
        return repr(float(bound))
    scale = domain.type.scale or 0
    return str(Decimal(round(bound * 10**scale)).scaleb(-scale))
