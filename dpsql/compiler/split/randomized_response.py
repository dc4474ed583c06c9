"""RANDOMIZED(column, epsilon): what each unit says of itself, randomized. A release of its own, with a row per unit.

Privacy: the number of rows is exact, so it must be public whatever one unit's rows are (SOUNDNESS 1): every unit has
one row in the table, no condition or join decides which, NULL is an answer too, and neighbors change a unit and never
remove it. Where units may also be in other tables alone, this one's number of rows is not that of the units.
"""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from dpsql.compiler.bind.binder import Binder
from dpsql.compiler.bind.expressions import bind_expr
from dpsql.compiler.bind.outputs import Output, fold_identifier, output_name
from dpsql.compiler.parse.dialect import span_of
from dpsql.compiler.parse.literals import parse_exact_number
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.expressions import Column
from dpsql.compiler.plan.measures import CountRows
from dpsql.compiler.plan.relations import Named, Table
from dpsql.compiler.plan.steps import ReleaseColumn
from dpsql.compiler.split.blocks import Block, BoundRelease, Ownership, SplitState, is_randomized
from dpsql.errors import InvalidParameter, Unsupported
from dpsql.schema import model
from dpsql.schema.keys import MAX_EPSILON
from dpsql.schema.model import Neighbors, OwnUnit, RowUnit, Schema
from dpsql.types import BIGINT

ALLOWED_CLAUSES = ("expressions", "from_")
"""The parts of its block: whatever else a block can have is refused."""

CLAUSE_NAMES = {
    "joins": "a join",
    "group": "GROUP BY",
    "order": "ORDER BY",
    "windows": "WINDOW",
    "cluster": "CLUSTER BY",
}
"""How parts are called whose name is another."""


def bind_randomized_block(select: exp.Select, binder: Binder, name: str, state: SplitState) -> Block:
    call, alias = _require_single_item(select)
    _check_no_clauses(select, call)
    relation = binder.bind_rows(select)
    if len(call.expressions) != 2:
        raise Unsupported("RANDOMIZED takes a column and an epsilon", hint="For example: RANDOMIZED(answer, 1).",
                          span=span_of(call))  # fmt: skip
    column = bind_expr(call.expressions[0], relation.scope)
    if not isinstance(column, Column) or not isinstance(relation.node, Table):
        raise Unsupported(
            "RANDOMIZED takes a column of a table as it is, of all its rows",
            hint="Name a table in FROM, and compute from the randomized answers in a SELECT around it.",
            span=span_of(call),
        )
    _check_one_row_per_unit(relation.node.table, str(call.expressions[0].sql(dialect="postgres")), call, state.schema)
    epsilon = _read_epsilon(call.expressions[1])
    columns = (ReleaseColumn("m1", column.type, "value", 0), ReleaseColumn("m2", BIGINT, "value", 1))
    aggregate = Aggregate(relation.node, (Named("k1", column),), (CountRows(span_of(call)),))
    state.releases[name] = BoundRelease(name, aggregate, columns, (), relation.notices, epsilon=epsilon)
    return Block(Ownership.RELEASED, _select_answers(name, alias), (), (Output(alias.name, column.type),))


def _require_single_item(select: exp.Select) -> tuple[exp.Anonymous, exp.Identifier]:
    item = select.expressions[0]
    call = item.this if isinstance(item, exp.Alias) else item
    if len(select.expressions) != 1 or not isinstance(call, exp.Anonymous) or not is_randomized(call):
        raise Unsupported(
            "RANDOMIZED stands alone in its SELECT",
            detail="What two columns of one row say belongs together, and would be told together.",
            hint="Write SELECT … FROM (SELECT RANDOMIZED(answer, 1) AS a FROM people) AS t.",
            span=span_of(call),
        )
    named = fold_identifier(item.args["alias"]) if isinstance(item, exp.Alias) else None
    return call, named or exp.to_identifier(output_name(call), quoted=True)


def _check_no_clauses(select: exp.Select, call: exp.Expr) -> None:
    beside = next((key for key, part in select.args.items() if part and key not in ALLOWED_CLAUSES), None)
    if beside is not None:
        clause = CLAUSE_NAMES.get(beside, beside.upper())
        raise Unsupported(
            f"RANDOMIZED is for all rows of a table, and {clause} cannot stand beside it",
            detail="Which rows there are would tell something of a unit that is not randomized.",
            hint="Use the randomized answers in a SELECT around it, or ask COUNT(*) with GROUP BY.",
            span=span_of(call),
        )


def _check_one_row_per_unit(name: str, column: str, call: exp.Expr, schema: Schema) -> None:
    """Privacy: on all neighboring databases the table has as many rows, one for each unit."""
    declared = schema.table(name)
    assert declared is not None
    what, detail = None, None
    if schema.privacy.neighbors is not Neighbors.CHANGE_ONE:
        what = "RANDOMIZED needs neighbors: change_one, where the number of units is public"
        detail = "It gives a row for each unit, and how many there are tells whether someone is among them."
    elif not _has_one_row_per_unit(declared):
        what = f'a unit may have several rows in "{name}", or none'
        detail = "RANDOMIZED gives one row for each unit: it is for the table whose unique key is the unit."
    elif sum(not table.public for table in schema.tables) > 1:
        what = f'a unit may be in another table and not in "{name}"'
        detail = "The number of its rows is then not that of the units, and not public."
    if what is not None:
        hint = f"SELECT {column}, COUNT(*) FROM {name} GROUP BY {column} counts the answers, with noise."
        raise Unsupported(what, detail=detail, hint=hint, span=span_of(call))


def _has_one_row_per_unit(table: model.Table) -> bool:
    unit = table.unit
    return isinstance(unit, RowUnit) or (isinstance(unit, OwnUnit) and table.is_unique(unit.column))


def _read_epsilon(node: exp.Expr) -> Fraction:
    number = None
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        number = parse_exact_number(str(node.this), span_of(node))
    if number is None or not 0 < number <= MAX_EPSILON:
        raise InvalidParameter("the epsilon of RANDOMIZED must be a literal above 0",
                               hint="For example: RANDOMIZED(answer, 1).", span=span_of(node))  # fmt: skip
    return number


def _select_answers(name: str, alias: exp.Identifier) -> exp.Select:
    """Each answer as often as it was told, in an order that has nothing to do with the rows'."""
    answer, rows, position = (exp.column(exp.to_identifier(column_name)) for column_name in ("m1", "m2", "_place"))
    series = exp.Anonymous(this="unnest", expressions=[exp.Anonymous(this="range", expressions=[rows])])
    each = exp.select(answer, exp.alias_(series, "_place")).from_(exp.to_table(name))
    order = exp.Anonymous(this="hash", expressions=[position, answer.copy()])
    shuffled = exp.select(answer.copy()).from_(each.subquery("_each")).order_by(order)
    # In a sub-select, since a block may become one side of a UNION.
    return exp.select(exp.Alias(this=answer.copy(), alias=alias)).from_(shuffled.subquery("_told"))
