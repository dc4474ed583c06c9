"""Syntax trees of scalar expressions to plan expressions. Only what is listed passes (law 3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from dpsql.analysis.image import constant
from dpsql.errors import GroupingError, InvalidSyntax, LimitExceeded, TypeMismatch, Unsupported
from dpsql.plan.expr import Arithmetic, Case, Cast, Expr, IsNull, Literal, Not
from dpsql.pulse import beat
from dpsql.sql import bind_time, bind_truth, bind_words
from dpsql.sql.bind_call import checked_call, clip, unknown_function
from dpsql.sql.bind_span import interval_literal
from dpsql.sql.bind_truth import COMPARISONS, Bind
from dpsql.sql.casts import bind_cast, cast_to
from dpsql.sql.coerce import bind_literal, coerce, meet, number_literal
from dpsql.sql.dialect import only, span_of, spelled
from dpsql.sql.intervals import is_interval
from dpsql.sql.names import Scope
from dpsql.sql.spellings import BARE, BARE_PARTS, NAMED, PARTS
from dpsql.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTERVAL, TEXT, TIMESTAMP, Kind, integer_range

ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%",
}  # fmt: skip

MOST_BRANCHES = 1_000
"""Of one CASE: engines try them one by one on every row."""


def bind_expr(node: exp.Expr | None, scope: Scope) -> Expr:
    """The plan expression of a tree over the columns in scope. None stands where sqlglot knows a form without one."""
    beat()
    if node is None:
        raise InvalidSyntax("an argument of a function is missing", sqlstate="42883")
    node = without_select(node)
    if scope.inner is not None and is_inner(node):
        return scope.inner(node)
    if isinstance(node, exp.Column):
        return _column(node, scope)

    def bind(part: exp.Expr) -> Expr:
        return bind_expr(part, scope)

    if is_interval(node):
        return interval_literal(node)
    for kind, binder in _BINDERS.items():
        if isinstance(node, kind):
            return binder(node, bind)
    if type(node) in NAMED:
        return _named(node, bind)
    raise _refused(node)


def bind_condition(node: exp.Expr, scope: Scope) -> Expr:
    return bind_truth.condition(node, lambda part: bind_expr(part, scope))


def without_select(node: exp.Expr) -> exp.Expr:
    """(SELECT x) without any rows to choose from is x; BI tools write their relative filters so."""
    inner = node
    while isinstance(inner, exp.Subquery) and not any(value for field, value in inner.args.items() if field != "this"):
        inner = inner.this
    if inner is node or not isinstance(inner, exp.Select) or len(inner.expressions) != 1:
        return node
    item = inner.expressions[0].unalias()
    rows = any(value for field, value in inner.args.items() if field != "expressions")
    if rows or item.is_star or item.find(exp.AggFunc, exp.Window) is not None:
        return node
    return without_select(item)


def is_inner(node: exp.Expr) -> bool:
    """Whether a node is, or compares with, a sub-select or a window: what more than one row decides."""
    if isinstance(node, exp.Subquery | exp.Select | exp.SetOperation | exp.Exists | exp.Window):
        return True
    if isinstance(node, exp.In):
        return node.args.get("query") is not None or node.args.get("unnest") is not None
    if type(node) in COMPARISONS and isinstance(node.expression, exp.Any | exp.All):
        return isinstance(node.expression.this.unnest(), exp.Query)
    return False


def _refused(node: exp.Expr) -> Exception:
    if isinstance(node, exp.AggFunc):
        hint = "A condition on aggregates stands in HAVING; an aggregate of aggregates is taken over a sub-select."
        return GroupingError("aggregates cannot be nested or stand in WHERE, ON or GROUP BY", hint=hint,
                             span=span_of(node))  # fmt: skip
    if isinstance(node, exp.Window):
        return Unsupported(
            "window functions over private rows are not supported",
            hint="Aggregate first: window functions over the aggregated rows are fine.",
            span=span_of(node),
        )
    if is_inner(node) or isinstance(node, exp.Any | exp.All):
        return Unsupported("a sub-select cannot stand here yet", span=span_of(node))
    if not isinstance(node, exp.Func) or isinstance(node, exp.Collate):
        return Unsupported(f"{spelled(node)} is not supported over private rows", span=span_of(node))
    return unknown_function(node)


# --- leaves ----------------------------------------------------------------------------------------------------------


def _column(node: exp.Column, scope: Scope) -> Expr:
    only(node, "this", "table", "db", "catalog")
    if isinstance(node.this, exp.Star):
        raise Unsupported("* cannot stand here", span=span_of(node))
    column = scope.resolve(node).column
    if column.type == INTERVAL:
        raise Unsupported("columns of type interval are not supported yet", span=span_of(node))
    # 128-bit arithmetic could overflow: such columns are read as 64-bit ones, NULL where they do not fit.
    return Cast(column, BIGINT) if column.type.kind is Kind.HUGEINT else column


# --- operators -------------------------------------------------------------------------------------------------------


def _arithmetic(node: exp.Expr, bind: Bind) -> Expr:
    only(node, "this", "expression")
    op = ARITHMETIC[type(node)]
    nodes = [node.this, node.expression]
    if op in "+-" and any(map(is_interval, nodes)):
        return bind_time.interval_sum(node, bind)
    args = [bind(n) for n in nodes]
    if any(arg.type.is_time for arg in args):
        return bind_time.date_sum(op, *bind_time.both_times(args, nodes), node)
    args = [number_literal(arg, n) for arg, n in zip(args, nodes, strict=True)]
    for arg, part in zip(args, nodes, strict=True):
        if not arg.type.is_number:
            raise TypeMismatch(f"arithmetic needs numbers, not {arg.type}", span=span_of(part))
    left, right = args
    if left.type.is_integer and right.type.is_integer:
        return constant(fold(Arithmetic("//" if op == "/" else op, left, right, BIGINT)))
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


def _neg(node: exp.Expr, bind: Bind) -> Expr:
    only(node, "this")
    arg = number_literal(bind(node.this), node.this)
    if isinstance(arg, Literal) and isinstance(arg.value, int | float | Decimal) and arg.type.is_number:
        return Literal(-arg.value, arg.type)
    if not arg.type.is_number:
        raise TypeMismatch(f"arithmetic needs numbers, not {arg.type}", span=span_of(node))
    return Arithmetic("-", Literal(0, BIGINT), arg, BIGINT if arg.type.is_integer else DOUBLE)


def _not(node: exp.Expr, bind: Bind) -> Expr:
    only(node, "this")
    return Not(bind_truth.condition(node.this, bind))


# --- which of several ------------------------------------------------------------------------------------------------


def _case(node: exp.Expr, bind: Bind) -> Expr:
    only(node, "this", "ifs", "default")
    if len(node.args["ifs"]) > MOST_BRANCHES:
        raise LimitExceeded(f"a CASE over private rows has more than {MOST_BRANCHES} branches", span=span_of(node),
                            hint="Branches of one value may be one: WHEN x IN (1, 2, 3) THEN 4.")  # fmt: skip
    subject = node.args.get("this")
    tests: list[exp.Expr] = []
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
        tests.append(exp.EQ(this=subject, expression=branch.this) if subject is not None else branch.this)
    conditions = [bind_truth.condition(test, bind) for test in tests]
    values = [branch.args["true"] for branch in node.args["ifs"]]
    return _chosen(conditions, [*values, node.args.get("default") or exp.Null()], bind)


def _if(node: exp.Expr, bind: Bind) -> Expr:
    only(node, "this", "true", "false")
    values = [node.args["true"], node.args.get("false") or exp.Null()]
    return _chosen([bind_truth.condition(node.this, bind)], values, bind)


def _nvl2(node: exp.Expr, bind: Bind) -> Expr:
    only(node, "this", "true", "false")
    return _chosen([Not(IsNull(bind(node.this)))], [node.args["true"], node.args.get("false") or exp.Null()], bind)


def _chosen(conditions: list[Expr], nodes: list[exp.Expr], bind: Bind) -> Expr:
    met, type_ = meet([bind(node) for node in nodes], nodes, "CASE")
    *then, otherwise = [coerce(value, type_, n) for value, n in zip(met, nodes, strict=True)]
    return Case(tuple(zip(conditions, then, strict=True)), otherwise, type_)


# --- functions -------------------------------------------------------------------------------------------------------


def _named(node: exp.Expr, bind: Bind) -> Expr:
    name, places = NAMED[type(node)]
    only(node, *places)
    nodes: list[exp.Expr] = []
    for place in places:
        value = node.args.get(place)
        nodes += value if isinstance(value, list) else [] if value is None else [value]
    return checked_call(name, [bind(n) for n in nodes], node, nodes)


def _anonymous(node: exp.Expr, bind: Bind) -> Expr:
    assert isinstance(node, exp.Anonymous)
    name, args = node.name.lower(), node.expressions
    if name in ("clip", "clamp"):
        return clip([bind(part) for part in args], node)
    if name in BARE:
        return checked_call(BARE[name], [bind(part) for part in args], node, args)
    if name in BARE_PARTS and len(args) == 1:
        part = exp.Extract(this=exp.var(name), expression=args[0])
        return bind_time.extract(part, bind)
    if name == "iff" and 2 <= len(args) <= 3:
        return _chosen([bind_truth.condition(args[0], bind)], [args[1], *(args[2:] or [exp.Null()])], bind)
    if name == "timezone" and len(args) == 2:
        return bind_time.in_zone(bind(args[1]), args[0], node)
    if name in _BARE_TIMES:
        return _BARE_TIMES[name](node, bind)
    if name == "age":
        hint = "For example: EXTRACT(year FROM AGE(CURRENT_DATE, at))."
        raise Unsupported("an age is an interval, which is not supported", hint=hint, span=span_of(node))
    raise unknown_function(node)


_BARE_TIMES: dict[str, Callable[[exp.Anonymous, Bind], Expr]] = {
    "strftime": bind_time.strftime,
    "time_bucket": bind_time.time_bucket,
    "dateadd": bind_time.dateadd,
    "date_sub": bind_time.date_sub_units,
    "datesub": bind_time.date_sub_units,
}


def _paren(node: exp.Expr, bind: Bind) -> Expr:
    only(node, "this")
    return bind(node.this)


def _as_date(node: exp.Expr, bind: Bind) -> Expr:
    only(node, "this")
    return cast_to(bind(node.this), DATE if isinstance(node, exp.Date) else TIMESTAMP, node)


def _pi(node: exp.Expr, bind: Bind) -> Expr:
    only(node)
    return Literal(math.pi, DOUBLE)


_BINDERS: dict[type[exp.Expr], Callable[[exp.Expr, Bind], Expr]] = {
    exp.Literal: lambda node, bind: bind_literal(node),
    exp.Null: lambda node, bind: Literal(None, TEXT),
    exp.Boolean: lambda node, bind: Literal(bool(node.this), BOOLEAN),
    exp.Paren: _paren,
    exp.Connector: bind_truth.connector,
    exp.Not: _not,
    exp.Is: bind_truth.is_,
    exp.In: bind_truth.in_,
    exp.Between: bind_truth.between,
    exp.NullSafeEQ: bind_truth.distinct,
    exp.NullSafeNEQ: bind_truth.distinct,
    exp.Escape: bind_truth.escaped,
    exp.Like: bind_truth.like,
    exp.ILike: bind_truth.like,
    exp.SimilarTo: bind_truth.similar,
    exp.RegexpLike: bind_truth.regexp_like,
    exp.RegexpILike: bind_truth.regexp_like,
    exp.RegexpReplace: bind_truth.regexp_replace,
    **dict.fromkeys(COMPARISONS, bind_truth.compare),
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    exp.Case: _case,
    exp.If: _if,
    exp.Nvl2: _nvl2,
    exp.Cast: bind_cast,
    exp.Neg: _neg,
    exp.Pi: _pi,
    exp.Log: bind_words.log,
    exp.DPipe: bind_words.joined,
    exp.ConcatWs: _named,
    exp.Concat: bind_words.concat,
    exp.Trim: bind_words.trim,
    exp.Pad: bind_words.pad,
    exp.Initcap: bind_words.initcap,
    exp.Substring: bind_words.substring,
    exp.Extract: bind_time.extract,
    exp.TimestampTrunc: bind_time.date_trunc,
    exp.DateTrunc: bind_time.date_trunc,
    exp.DateDiff: bind_time.date_diff,
    exp.DateAdd: bind_time.date_add,
    exp.DateSub: bind_time.date_add,
    exp.DateBin: bind_time.date_bin,
    exp.TimeToStr: bind_time.to_char,
    exp.StrToDate: bind_time.to_date,
    exp.StrToTime: bind_time.to_date,
    exp.AtTimeZone: bind_time.at_time_zone,
    exp.Date: _as_date,
    exp.Timestamp: _as_date,
    **dict.fromkeys(PARTS, bind_time.part_call),
    exp.Anonymous: _anonymous,
}
