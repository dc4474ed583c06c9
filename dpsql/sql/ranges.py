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

from dpsql.analysis.image import image
from dpsql.functions.calendar import ends, time_as
from dpsql.plan.expr import Call, Cast, Column, Expr, IsNull, Not, conjuncts
from dpsql.plan.relations import Filter, Project, Rows, Table
from dpsql.plan.walk import columns_of
from dpsql.schema.domain import Domain
from dpsql.schema.model import Schema
from dpsql.sql.aggregates import holds_aggregate, is_aggregate
from dpsql.sql.bind_expr import bind_expr
from dpsql.sql.relation import Relation


class Ranges(Enum):
    """Which columns' MIN and MAX are their declared bounds: dates and timestamps, those and numbers, or none."""

    DECLARED = "declared"
    ALL = "all"
    RELEASE = "release"


NOTICE = "bounds that the schema declares, and no row was read for them; SET ranges = release asks the rows"


def shown_blocks(tree: exp.Expr) -> frozenset[int]:
    """By `id`, the blocks whose rows the statement gives out as they are: the outermost, and what it only wraps."""
    if isinstance(tree, exp.Subquery):
        return shown_blocks(tree.this)
    if isinstance(tree, exp.SetOperation):
        return shown_blocks(tree.left) | shown_blocks(tree.right)
    if not isinstance(tree, exp.Select):
        return frozenset()
    from_ = tree.args.get("from_")
    inner = from_.this if from_ is not None and not tree.args.get("joins") else None
    plain = not any(tree.args.get(clause) for clause in ("where", "group", "having", "qualify"))
    wraps = plain and isinstance(inner, exp.Subquery) and not any(map(holds_aggregate, tree.expressions))
    return frozenset({id(tree)}) | (shown_blocks(inner) if wraps and inner is not None else frozenset())


@dataclass(frozen=True)
class DeclaredEnds:
    """Puts bounds in the place of MIN and MAX in the outputs of a block that gives out one row."""

    schema: Schema
    ranges: Ranges

    def put_into(self, items: list[exp.Expr], select: exp.Select, relation: Relation) -> list[str]:
        """Changes the items, which are aliased, and tells so in a notice."""
        if self.ranges is Ranges.RELEASE or select.args.get("group") or select.args.get("distinct"):
            return []
        found = [node.sql(dialect="postgres") for item in items if (node := self._put_into(item, relation)) is not None]
        return [f"{', '.join(dict.fromkeys(found))}: {NOTICE}"] if found else []

    def _put_into(self, item: exp.Expr, relation: Relation) -> exp.Expr | None:
        """The aggregate that was replaced. MAX(x) - MIN(x) in one column, and error bars, are asked of the rows."""
        asked = [node for node in item.walk() if is_aggregate(node)]
        if len(asked) != 1 or any(isinstance(node, exp.Query | exp.Window) or _is_bar(node) for node in item.walk()):
            return None
        node = asked[0]
        bound = self._bound(node, relation) if isinstance(node, exp.Min | exp.Max) and not node.expressions else None
        if bound is None:
            return None
        node.replace(bound)
        return node

    def _bound(self, node: exp.Min | exp.Max, relation: Relation) -> exp.Expr | None:
        argument = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
        arg = bind_expr(argument, relation.scope)
        base = _column(arg)
        domain = None if base is None else self._declared(base, relation.node)
        if base is None or domain is None or not self._answers(domain):
            return None
        value = _end(arg, base, domain, isinstance(node, exp.Max))
        return None if value is None else exp.cast(exp.Literal.string(value), str(arg.type))

    def _answers(self, domain: Domain) -> bool:
        asked = domain.type.is_time or (self.ranges is Ranges.ALL and domain.type.is_number)
        return asked and domain.bounded

    def _declared(self, column: Column, node: Rows) -> Domain | None:
        """The declared domain of a column that is read from all rows of one table."""
        if isinstance(node, Table):
            name = next((name for name, as_ in node.columns if as_.name == column.name), None)
            table = self.schema.table(node.table)
            found = table.column(name) if table is not None and name is not None else None
            return None if found is None else found.domain
        if isinstance(node, Project):
            below = next((named.expr for named in node.columns if named.name == column.name), None)
            return self._declared(below, node.input) if isinstance(below, Column) else None
        if isinstance(node, Filter) and all(_is_present(part, column) for part in conjuncts(node.condition)):
            return self._declared(column, node.input)  # MIN and MAX pass over NULL anyway
        return None


def _is_bar(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower().startswith("dp_")


def _is_present(part: Expr, column: Column) -> bool:
    return isinstance(part, Not) and isinstance(part.arg, IsNull) and part.arg.arg == column


def _column(arg: Expr) -> Column | None:
    """The column below functions that never decrease: a truncation, or another type of time."""
    if isinstance(arg, Cast) and arg.type.is_time and arg.arg.type.is_time:
        return _column(arg.arg)
    if isinstance(arg, Call) and arg.function == "date_trunc":
        return _column(arg.args[1])
    return arg if isinstance(arg, Column) else None


def _end(arg: Expr, base: Column, domain: Domain, high: bool) -> str | None:
    """The bound as text of the argument's type."""
    if domain.type.is_number:
        return _number(domain.bounds[high], domain) if arg == base else None
    moments = ends(domain)
    assert columns_of(arg) == {base.name}
    found = None if moments is None else image(arg, base.name, (time_as(moments[high], domain.type),))
    return found[0].isoformat(" ") if found and isinstance(found[0], dt.datetime) else str(found[0]) if found else None


def _number(bound: Fraction, domain: Domain) -> str:
    if domain.type.is_float:
        return repr(float(bound))
    scale = domain.type.scale or 0
    return str(Decimal(round(bound * 10**scale)).scaleb(-scale))
