"""Syntax trees of scalar expressions to plan expressions. Only what is listed passes (law 3)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from dpsql.analysis.calendar import EXTRACTIONS, TRUNCATIONS
from dpsql.errors import GroupingError, TypeMismatch, Unsupported
from dpsql.plan.expr import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Compare,
    Expr,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
)
from dpsql.sql.bind_call import castable, checked_call, clip, part_of, unknown_function
from dpsql.sql.coerce import bind_literal, coerce, convert_literal, meet, number_literal
from dpsql.sql.dialect import only, span_of, spelled
from dpsql.sql.names import Scope
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, TEXT, Kind, integer_range, parse_type

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%",
}  # fmt: skip

# sqlglot's own classes for functions of our table: (name, the arguments in order)
_NAMED: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Lower: ("lower", ("this",)),
    exp.Upper: ("upper", ("this",)),
    exp.Trim: ("trim", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.DPipe: ("concat", ("this", "expression")),
    exp.Abs: ("abs", ("this",)),
    exp.Floor: ("floor", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Round: ("round", ("this", "decimals")),
    exp.Coalesce: ("coalesce", ("this", "expressions")),
    exp.Nullif: ("nullif", ("this", "expression")),
    exp.Greatest: ("greatest", ("this", "expressions")),
    exp.Least: ("least", ("this", "expressions")),
}


def bind_expr(node: exp.Expr, scope: Scope) -> Expr:
    """The plan expression of a tree over the columns in scope."""
    for kind, bind in _BINDERS.items():
        if isinstance(node, kind):
            return bind(node, scope)
    if type(node) in COMPARISONS:
        only(node, "this", "expression")
        return _compare(COMPARISONS[type(node)], node, scope)
    if type(node) in ARITHMETIC:
        only(node, "this", "expression")
        return _arithmetic(ARITHMETIC[type(node)], node, scope)
    if type(node) in _NAMED:
        return _named(node, scope)
    if isinstance(node, exp.AggFunc):
        raise GroupingError("aggregates cannot be nested or stand in WHERE, ON or GROUP BY", span=span_of(node))
    if isinstance(node, exp.Subquery | exp.Select | exp.Exists):
        raise Unsupported("a sub-select cannot stand here yet", span=span_of(node))
    if isinstance(node, exp.Window):
        raise Unsupported(
            "window functions over private rows are not supported",
            hint="Aggregate first: window functions over the aggregated rows are fine.",
            span=span_of(node),
        )
    if not isinstance(node, exp.Func):
        raise Unsupported(f"{spelled(node)} is not supported over private rows", span=span_of(node))
    raise unknown_function(node)


def bind_condition(node: exp.Expr, scope: Scope) -> Expr:
    condition = bind_expr(node, scope)
    if condition.type != BOOLEAN:
        raise TypeMismatch(f"a condition must be boolean, not {condition.type}", span=span_of(node))
    return condition


# --- leaves ----------------------------------------------------------------------------------------------------------


def _column(node: exp.Expr, scope: Scope) -> Expr:
    assert isinstance(node, exp.Column)
    only(node, "this", "table", "db", "catalog")
    if isinstance(node.this, exp.Star):
        raise Unsupported("* cannot stand here", span=span_of(node))
    column = scope.resolve(node).column
    if column.type.kind is Kind.INTERVAL:
        raise Unsupported("columns of type interval are not supported yet", span=span_of(node))
    # 128-bit arithmetic could overflow: such columns are read as 64-bit ones, NULL where they do not fit.
    return Cast(column, BIGINT) if column.type.kind is Kind.HUGEINT else column


def _null(node: exp.Expr, scope: Scope) -> Expr:
    return Literal(None, TEXT)


def _boolean(node: exp.Expr, scope: Scope) -> Expr:
    return Literal(bool(node.this), BOOLEAN)


# --- operators -------------------------------------------------------------------------------------------------------


def _compare(op: str, node: exp.Expr, scope: Scope) -> Expr:
    nodes = [node.this, node.expression]
    (left, right), _ = meet([bind_expr(n, scope) for n in nodes], nodes, "comparison")
    return Compare(op, left, right)


def _arithmetic(op: str, node: exp.Expr, scope: Scope) -> Expr:
    nodes = [node.this, node.expression]
    args = [number_literal(bind_expr(n, scope), n) for n in nodes]
    for arg, part in zip(args, nodes, strict=True):
        if not arg.type.is_number:
            raise TypeMismatch(f"arithmetic needs numbers, not {arg.type}", span=span_of(part))
    left, right = args
    if left.type.is_integer and right.type.is_integer:
        return fold(Arithmetic("//" if op == "/" else op, left, right, BIGINT))
    if op in ("//", "%"):
        raise TypeMismatch(f"{op} needs whole numbers", span=span_of(node))
    return fold(Arithmetic(op, left, right, DOUBLE))


def fold(expr: Arithmetic) -> Expr:
    """Arithmetic of two literals is a literal, so that 10 * 60 can bound a clip."""
    if not (isinstance(expr.left, Literal) and isinstance(expr.right, Literal)) or expr.op not in "+-*":
        return expr
    if expr.left.value is None or expr.right.value is None:
        return Literal(None, expr.type)
    left, right = Fraction(expr.left.value), Fraction(expr.right.value)  # type: ignore[arg-type]
    result = {"+": left + right, "-": left - right, "*": left * right}[expr.op]
    least, most = integer_range(BIGINT)
    if expr.type.is_integer:
        return Literal(int(result), BIGINT) if least <= result <= most else expr
    return Literal(float(result), DOUBLE) if abs(result) < 2**1000 else expr


def _neg(node: exp.Expr, scope: Scope) -> Expr:
    only(node, "this")
    arg = number_literal(bind_expr(node.this, scope), node.this)
    if isinstance(arg, Literal) and isinstance(arg.value, int | float | Decimal) and arg.type.is_number:
        return Literal(-arg.value, arg.type)
    if not arg.type.is_number:
        raise TypeMismatch(f"arithmetic needs numbers, not {arg.type}", span=span_of(node))
    return Arithmetic("-", Literal(0, BIGINT), arg, BIGINT if arg.type.is_integer else DOUBLE)


def _connector(node: exp.Expr, scope: Scope) -> Expr:
    only(node, "this", "expression")
    args = tuple(bind_condition(part, scope) for part in node.flatten())
    return And(args) if isinstance(node, exp.And) else Or(args)


def _not(node: exp.Expr, scope: Scope) -> Expr:
    only(node, "this")
    return Not(bind_condition(node.this, scope))


def _is(node: exp.Expr, scope: Scope) -> Expr:
    only(node, "this", "expression", "negate")
    arg, what = bind_expr(node.this, scope), node.expression
    found: Expr | None = None
    if isinstance(what, exp.Null):
        found = IsNull(arg)
    if isinstance(what, exp.Boolean):
        truth = bind_condition(node.this, scope)
        wanted = truth if what.this else Not(truth)
        found = Call("coalesce", (wanted, Literal(False, BOOLEAN)), BOOLEAN)
    if found is not None:
        return Not(found) if node.args.get("negate") else found
    raise Unsupported("IS takes NULL, TRUE or FALSE", span=span_of(node))


def _in(node: exp.Expr, scope: Scope) -> Expr:
    only(node, "this", "expressions")
    nodes = [node.this, *node.expressions]
    (arg, *values), _ = meet([bind_expr(n, scope) for n in nodes], nodes, "comparison")
    literals = [value for value in values if isinstance(value, Literal)]
    if len(literals) != len(values):
        raise Unsupported("IN takes literals here", span=span_of(node))
    known = tuple(dict.fromkeys(value for value in literals if value.value is not None))
    found: Expr = InList(arg, known) if known else Literal(False, BOOLEAN)
    if len(known) < len(set(literals)) or any(value.value is None for value in literals):
        return Or((found, Literal(None, BOOLEAN)))  # x IN (1, NULL) is never false
    return found


def _between(node: exp.Expr, scope: Scope) -> Expr:
    only(node, "this", "low", "high")
    nodes = [node.this, node.args["low"], node.args["high"]]
    (arg, low, high), _ = meet([bind_expr(n, scope) for n in nodes], nodes, "comparison")
    return And((Compare(">=", arg, low), Compare("<=", arg, high)))


def _like(node: exp.Expr, scope: Scope) -> Expr:
    only(node, "this", "expression", "negate")
    name = "ilike" if isinstance(node, exp.ILike) else "like"
    pattern = bind_expr(node.expression, scope)
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str) or "\\" in pattern.value:
        raise Unsupported("a pattern must be a literal without a backslash", span=span_of(node.expression))
    found = checked_call(name, [bind_expr(node.this, scope), pattern], node)
    return Not(found) if node.args.get("negate") else found


def _case(node: exp.Expr, scope: Scope) -> Expr:
    only(node, "this", "ifs", "default")
    subject = node.args.get("this")
    conditions: list[Expr] = []
    values: list[Expr] = []
    nodes: list[exp.Expr] = []
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
        test = exp.EQ(this=subject, expression=branch.this) if subject is not None else branch.this
        conditions.append(bind_condition(test, scope))
        nodes.append(branch.args["true"])
        values.append(bind_expr(nodes[-1], scope))
    default = node.args.get("default") or exp.Null()
    nodes.append(default)
    values.append(bind_expr(default, scope))
    met, type_ = meet(values, nodes, "CASE")
    *then, otherwise = [coerce(value, type_, n) for value, n in zip(met, nodes, strict=True)]
    return Case(tuple(zip(conditions, then, strict=True)), otherwise, type_)


def _cast(node: exp.Expr, scope: Scope) -> Expr:
    only(node, "this", "to")
    if node.args["to"].expressions and "char" in node.args["to"].sql().lower():
        raise Unsupported("a cast to text with a length is not supported",
                          hint="substring(x, 1, 3) cuts text to 3 characters.", span=span_of(node))  # fmt: skip
    type_ = parse_type(node.args["to"].sql())
    if type_ is None or type_.kind in (Kind.INTERVAL, Kind.TIME):
        raise Unsupported(f"no cast to {node.args['to'].sql()} over private rows", span=span_of(node))
    arg = bind_expr(node.this, scope)
    if isinstance(arg, Literal):
        converted = convert_literal(arg, type_)
        if converted is not None:
            return converted
        if isinstance(arg.value, str):
            raise TypeMismatch(f"this text cannot be read as {type_}", span=span_of(node))
    if arg.type == type_:
        return arg
    if not castable(arg.type, type_):
        raise TypeMismatch(f"no cast from {arg.type} to {type_}", span=span_of(node))
    return Cast(arg, type_)


# --- functions -------------------------------------------------------------------------------------------------------


def _named(node: exp.Expr, scope: Scope) -> Expr:
    name, places = _NAMED[type(node)]
    only(node, *places)
    nodes: list[exp.Expr] = []
    for place in places:
        value = node.args.get(place)
        nodes += value if isinstance(value, list) else [] if value is None else [value]
    return checked_call(name, [bind_expr(n, scope) for n in nodes], node, nodes)


def _anonymous(node: exp.Expr, scope: Scope) -> Expr:
    assert isinstance(node, exp.Anonymous)
    if node.name.lower() not in ("clip", "clamp"):
        raise unknown_function(node)
    return clip([bind_expr(part, scope) for part in node.expressions], node)


def _extract(node: exp.Expr, scope: Scope) -> Expr:
    only(node, "this", "expression")
    arg = bind_expr(node.expression, scope)
    return checked_call("extract", [part_of(node.this, EXTRACTIONS, "EXTRACT"), arg], node)


def _date_trunc(node: exp.Expr, scope: Scope) -> Expr:
    only(node, "this", "unit")
    arg = bind_expr(node.this, scope)
    return checked_call("date_trunc", [part_of(node.args["unit"], TRUNCATIONS, "DATE_TRUNC"), arg], node)


def _paren(node: exp.Expr, scope: Scope) -> Expr:
    only(node, "this")
    return bind_expr(node.this, scope)


_BINDERS: dict[type[exp.Expr], Callable[[exp.Expr, Scope], Expr]] = {
    exp.Column: _column,
    exp.Literal: lambda node, scope: bind_literal(node),
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Paren: _paren,
    exp.Connector: _connector,
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Neg: _neg,
    exp.Extract: _extract,
    exp.TimestampTrunc: _date_trunc,
    exp.DateTrunc: _date_trunc,
    exp.Anonymous: _anonymous,
}
