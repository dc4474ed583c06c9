"""Syntax trees of scalar expressions to plan expressions. Only what is listed passes (law 3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from dpsql.analysis.image import fold_constant_expr
from dpsql.errors import GroupingError, InvalidSyntax, LimitExceeded, TypeMismatch, Unsupported
from dpsql.plan.expr import Arithmetic, Case, Cast, Expr, IsNull, Literal, Not
from dpsql.pulse import checkpoint
from dpsql.sql import bind_time, bind_truth, bind_words
from dpsql.sql.bind_call import build_call, bind_clip, unknown_function_error
from dpsql.sql.bind_span import bind_interval_literal
from dpsql.sql.bind_truth import COMPARISONS, BindChild
from dpsql.sql.casts import bind_cast, cast_to
from dpsql.sql.coerce import bind_literal, coerce, unify_types, coerce_number_literal
from dpsql.sql.dialect import refuse_other_args, span_of, sql_name_of
from dpsql.sql.intervals import is_interval
from dpsql.sql.names import Scope
from dpsql.sql.spellings import BARE_FUNCTIONS, BARE_DATE_PARTS, NODE_FUNCTIONS, DATE_PART_NODES
from dpsql.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTERVAL, TEXT, TIMESTAMP, Kind, integer_range

ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%",
}  # fmt: skip

MAX_CASE_BRANCHES = 1_000
"""Of one CASE: engines try them one by one on every row."""


def bind_expr(node: exp.Expr | None, scope: Scope) -> Expr:
    """The plan expression of a tree over the columns in scope. None stands where sqlglot knows a form without one."""
    checkpoint()
    if node is None:
        raise InvalidSyntax("an argument of a function is missing", sqlstate="42883")
    node = unwrap_trivial_select(node)
    if scope.inner is not None and is_subquery_or_window(node):
        return scope.inner(node)
    if isinstance(node, exp.Column):
        return _bind_column(node, scope)

    def bind(part: exp.Expr) -> Expr:
        return bind_expr(part, scope)

    if is_interval(node):
        return bind_interval_literal(node)
    for kind, binder in _BINDERS.items():
        if isinstance(node, kind):
            return binder(node, bind)
    if type(node) in NODE_FUNCTIONS:
        return _bind_named_function(node, bind)
    raise _unsupported_expression_error(node)


def bind_condition(node: exp.Expr, scope: Scope) -> Expr:
    return bind_truth.bind_boolean(node, lambda part: bind_expr(part, scope))


def unwrap_trivial_select(node: exp.Expr) -> exp.Expr:
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
    return unwrap_trivial_select(item)


def is_subquery_or_window(node: exp.Expr) -> bool:
    """Whether a node is, or compares with, a sub-select or a window: what more than one row decides."""
    if isinstance(node, exp.Subquery | exp.Select | exp.SetOperation | exp.Exists | exp.Window):
        return True
    if isinstance(node, exp.In):
        return node.args.get("query") is not None or node.args.get("unnest") is not None
    if type(node) in COMPARISONS and isinstance(node.expression, exp.Any | exp.All):
        return isinstance(node.expression.this.unnest(), exp.Query)
    return False


def _unsupported_expression_error(node: exp.Expr) -> Exception:
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
    if is_subquery_or_window(node) or isinstance(node, exp.Any | exp.All):
        return Unsupported("a sub-select cannot stand here yet", span=span_of(node))
    if not isinstance(node, exp.Func) or isinstance(node, exp.Collate):
        return Unsupported(f"{sql_name_of(node)} is not supported over private rows", span=span_of(node))
    return unknown_function_error(node)


# --- leaves ----------------------------------------------------------------------------------------------------------


def _bind_column(node: exp.Column, scope: Scope) -> Expr:
    refuse_other_args(node, "this", "table", "db", "catalog")
    if isinstance(node.this, exp.Star):
        raise Unsupported("* cannot stand here", span=span_of(node))
    column = scope.resolve_column(node).column
    if column.type == INTERVAL:
        raise Unsupported("columns of type interval are not supported yet", span=span_of(node))
    # 128-bit arithmetic could overflow: such columns are read as 64-bit ones, NULL where they do not fit.
    return Cast(column, BIGINT) if column.type.kind is Kind.HUGEINT else column


# --- operators -------------------------------------------------------------------------------------------------------


def _bind_arithmetic(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expression")
    op = ARITHMETIC[type(node)]
    nodes = [node.this, node.expression]
    if op in "+-" and any(map(is_interval, nodes)):
        return bind_time.bind_interval_arithmetic(node, bind)
    args = [bind(n) for n in nodes]
    if any(arg.type.is_time for arg in args):
        return bind_time.build_date_arithmetic(op, *bind_time.coerce_time_operands(args, nodes), node)
    args = [coerce_number_literal(arg, n) for arg, n in zip(args, nodes, strict=True)]
    for arg, part in zip(args, nodes, strict=True):
        if not arg.type.is_number:
            raise TypeMismatch(f"arithmetic needs numbers, not {arg.type}", span=span_of(part))
    left, right = args
    if left.type.is_integer and right.type.is_integer:
        return fold_constant_expr(fold_arithmetic(Arithmetic("//" if op == "/" else op, left, right, BIGINT)))
    if op in ("//", "%"):
        raise TypeMismatch(f"{op} needs whole numbers", span=span_of(node))
    return fold_arithmetic(Arithmetic(op, left, right, DOUBLE))


def fold_arithmetic(expr: Arithmetic) -> Expr:
    """Arithmetic of two literals is a literal, so that 10 * 60 can bound a clip."""
    if not (isinstance(expr.left, Literal) and isinstance(expr.right, Literal)) or expr.op not in "+-*":
        return expr
    if expr.left.value is None or expr.right.value is None:
        return Literal(None, expr.type)
    left, right = Fraction(expr.left.value), Fraction(expr.right.value)  # type: ignore[arg-type]
    result = {"+": left + right, "-": left - right, "*": left * right}[expr.op]
    bigint_min, bigint_max = integer_range(BIGINT)
    if expr.type.is_integer:
        return Literal(int(result), BIGINT) if bigint_min <= result <= bigint_max else expr
    return Literal(float(result), DOUBLE) if abs(result) < 2**1000 else expr


def _bind_negation(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this")
    arg = coerce_number_literal(bind(node.this), node.this)
    if isinstance(arg, Literal) and isinstance(arg.value, int | float | Decimal) and arg.type.is_number:
        return Literal(-arg.value, arg.type)
    if not arg.type.is_number:
        raise TypeMismatch(f"arithmetic needs numbers, not {arg.type}", span=span_of(node))
    return Arithmetic("-", Literal(0, BIGINT), arg, BIGINT if arg.type.is_integer else DOUBLE)


def _bind_not(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this")
    return Not(bind_truth.bind_boolean(node.this, bind))


# --- which of several ------------------------------------------------------------------------------------------------


def _bind_case(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "ifs", "default")
    if len(node.args["ifs"]) > MAX_CASE_BRANCHES:
        raise LimitExceeded(f"a CASE over private rows has more than {MAX_CASE_BRANCHES} branches", span=span_of(node),
                            hint="Branches of one value may be one: WHEN x IN (1, 2, 3) THEN 4.")  # fmt: skip
    subject = node.args.get("this")
    tests: list[exp.Expr] = []
    for branch in node.args["ifs"]:
        refuse_other_args(branch, "this", "true")
        tests.append(exp.EQ(this=subject, expression=branch.this) if subject is not None else branch.this)
    conditions = [bind_truth.bind_boolean(test, bind) for test in tests]
    values = [branch.args["true"] for branch in node.args["ifs"]]
    return _build_case(conditions, [*values, node.args.get("default") or exp.Null()], bind)


def _bind_if(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "true", "false")
    values = [node.args["true"], node.args.get("false") or exp.Null()]
    return _build_case([bind_truth.bind_boolean(node.this, bind)], values, bind)


def _bind_nvl2(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "true", "false")
    return _build_case([Not(IsNull(bind(node.this)))], [node.args["true"], node.args.get("false") or exp.Null()], bind)


def _build_case(conditions: list[Expr], nodes: list[exp.Expr], bind: BindChild) -> Expr:
    unified, type_ = unify_types([bind(node) for node in nodes], nodes, "CASE")
    *then, otherwise = [coerce(value, type_, n) for value, n in zip(unified, nodes, strict=True)]
    return Case(tuple(zip(conditions, then, strict=True)), otherwise, type_)


# --- functions -------------------------------------------------------------------------------------------------------


def _bind_named_function(node: exp.Expr, bind: BindChild) -> Expr:
    name, arg_names = NODE_FUNCTIONS[type(node)]
    refuse_other_args(node, *arg_names)
    nodes: list[exp.Expr] = []
    for arg_name in arg_names:
        value = node.args.get(arg_name)
        nodes += value if isinstance(value, list) else [] if value is None else [value]
    return build_call(name, [bind(n) for n in nodes], node, nodes)


def _bind_anonymous(node: exp.Expr, bind: BindChild) -> Expr:
    assert isinstance(node, exp.Anonymous)
    name, args = node.name.lower(), node.expressions
    if name in ("clip", "clamp"):
        return bind_clip([bind(part) for part in args], node)
    if name in BARE_FUNCTIONS:
        return build_call(BARE_FUNCTIONS[name], [bind(part) for part in args], node, args)
    if name in BARE_DATE_PARTS and len(args) == 1:
        part = exp.Extract(this=exp.var(name), expression=args[0])
        return bind_time.bind_extract(part, bind)
    if name == "iff" and 2 <= len(args) <= 3:
        return _build_case([bind_truth.bind_boolean(args[0], bind)], [args[1], *(args[2:] or [exp.Null()])], bind)
    if name == "timezone" and len(args) == 2:
        return bind_time.convert_time_zone(bind(args[1]), args[0], node)
    if name in _DATETIME_BINDERS:
        return _DATETIME_BINDERS[name](node, bind)
    if name == "age":
        hint = "For example: EXTRACT(year FROM AGE(CURRENT_DATE, at))."
        raise Unsupported("an age is an interval, which is not supported", hint=hint, span=span_of(node))
    raise unknown_function_error(node)


_DATETIME_BINDERS: dict[str, Callable[[exp.Anonymous, BindChild], Expr]] = {
    "strftime": bind_time.bind_strftime,
    "time_bucket": bind_time.bind_time_bucket,
    "dateadd": bind_time.bind_sqlserver_dateadd,
    "date_sub": bind_time.bind_date_sub,
    "datesub": bind_time.bind_date_sub,
}


def _bind_paren(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this")
    return bind(node.this)


def _bind_date_cast(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this")
    return cast_to(bind(node.this), DATE if isinstance(node, exp.Date) else TIMESTAMP, node)


def _bind_pi(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node)
    return Literal(math.pi, DOUBLE)


_BINDERS: dict[type[exp.Expr], Callable[[exp.Expr, BindChild], Expr]] = {
    exp.Literal: lambda node, bind: bind_literal(node),
    exp.Null: lambda node, bind: Literal(None, TEXT),
    exp.Boolean: lambda node, bind: Literal(bool(node.this), BOOLEAN),
    exp.Paren: _bind_paren,
    exp.Connector: bind_truth.bind_connector,
    exp.Not: _bind_not,
    exp.Is: bind_truth.bind_is,
    exp.In: bind_truth.bind_in,
    exp.Between: bind_truth.bind_between,
    exp.NullSafeEQ: bind_truth.bind_is_distinct,
    exp.NullSafeNEQ: bind_truth.bind_is_distinct,
    exp.Escape: bind_truth.bind_escape,
    exp.Like: bind_truth.bind_like,
    exp.ILike: bind_truth.bind_like,
    exp.SimilarTo: bind_truth.bind_similar_to,
    exp.RegexpLike: bind_truth.bind_regexp_like,
    exp.RegexpILike: bind_truth.bind_regexp_like,
    exp.RegexpReplace: bind_truth.bind_regexp_replace,
    **dict.fromkeys(COMPARISONS, bind_truth.bind_comparison),
    **dict.fromkeys(ARITHMETIC, _bind_arithmetic),
    exp.Case: _bind_case,
    exp.If: _bind_if,
    exp.Nvl2: _bind_nvl2,
    exp.Cast: bind_cast,
    exp.Neg: _bind_negation,
    exp.Pi: _bind_pi,
    exp.Log: bind_words.bind_log,
    exp.DPipe: bind_words.bind_concat_operator,
    exp.ConcatWs: _bind_named_function,
    exp.Concat: bind_words.bind_concat,
    exp.Trim: bind_words.bind_trim,
    exp.Pad: bind_words.bind_pad,
    exp.Initcap: bind_words.bind_initcap,
    exp.Substring: bind_words.bind_substring,
    exp.Extract: bind_time.bind_extract,
    exp.TimestampTrunc: bind_time.bind_date_trunc,
    exp.DateTrunc: bind_time.bind_date_trunc,
    exp.DateDiff: bind_time.bind_date_diff,
    exp.DateAdd: bind_time.bind_date_add,
    exp.DateSub: bind_time.bind_date_add,
    exp.DateBin: bind_time.bind_date_bin,
    exp.TimeToStr: bind_time.bind_to_char,
    exp.StrToDate: bind_time.bind_to_date,
    exp.StrToTime: bind_time.bind_to_date,
    exp.AtTimeZone: bind_time.bind_at_time_zone,
    exp.Date: _bind_date_cast,
    exp.Timestamp: _bind_date_cast,
    **dict.fromkeys(DATE_PART_NODES, bind_time.bind_part_function),
    exp.Anonymous: _bind_anonymous,
}
