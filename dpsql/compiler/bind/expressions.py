"""Syntax trees of scalar expressions to plan expressions. Only what is listed passes (law 3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from dpsql.base.cancellation import checkpoint
from dpsql.compiler.analysis.key_values import fold_constant_expr
from dpsql.compiler.bind import conditions, datetime
from dpsql.compiler.bind.calls import BindChild, bind_clip, build_call, unknown_function_error
from dpsql.compiler.bind.coercion import (
    bind_literal,
    cast_by_clock,
    coerce,
    coerce_number_literal,
    convert_literal,
    narrow_integer,
    unify_types,
    whole_number_literal,
)
from dpsql.compiler.bind.composed_calls import (
    TEMPLATES,
    bind_array_call,
    bind_bits,
    bind_composed,
    bind_threshold_bucket,
)
from dpsql.compiler.bind.conditions import COMPARISONS
from dpsql.compiler.bind.datetime import bind_interval_literal
from dpsql.compiler.bind.scope import Scope
from dpsql.compiler.functions.regex import MalformedRegex, check_regex
from dpsql.compiler.functions.time_zones import session_zone
from dpsql.compiler.parse.dialect import refuse_other_args, span_of, sql_name_of
from dpsql.compiler.parse.function_names import (
    BARE_DATE_PARTS,
    BARE_FUNCTIONS,
    COMPOSED_NODES,
    DATE_PART_NODES,
    NODE_FUNCTIONS,
)
from dpsql.compiler.parse.literals import is_interval
from dpsql.compiler.plan.expressions import Arithmetic, Call, Case, Cast, Expr, IsNull, Literal, Not
from dpsql.errors import GroupingError, InvalidSyntax, LimitExceeded, TypeMismatch, Unsupported
from dpsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    INTERVAL,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    Type,
    integer_range,
    parse_type,
)

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
    return _bind_tree(node, bind)


def _bind_tree(node: exp.Expr, bind: BindChild) -> Expr:
    """A node whose parts are bound by `bind`."""
    for kind, binder in _BINDERS.items():
        if isinstance(node, kind):
            return binder(node, bind)
    if type(node) in NODE_FUNCTIONS:
        return _bind_named_function(node, bind)
    raise _unsupported_expression_error(node)


def bind_condition(node: exp.Expr, scope: Scope) -> Expr:
    return conditions.bind_boolean(node, lambda part: bind_expr(part, scope))


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
    return column


# --- operators -------------------------------------------------------------------------------------------------------


def _bind_arithmetic(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expression")
    op = ARITHMETIC[type(node)]
    nodes = [node.this, node.expression]
    if op in "+-" and any(map(is_interval, nodes)):
        return datetime.bind_interval_arithmetic(node, bind)
    args = [bind(n) for n in nodes]
    if any(arg.type.is_time for arg in args):
        return datetime.build_date_arithmetic(op, *datetime.coerce_time_operands(args, nodes), node)
    args = [narrow_integer(coerce_number_literal(arg, n)) for arg, n in zip(args, nodes, strict=True)]
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
    arg = bind(node.this)
    if isinstance(arg, Literal) and arg.type == HUGEINT and isinstance(arg.value, int):
        return whole_number_literal(-arg.value) or Literal(-float(arg.value), DOUBLE)
    arg = narrow_integer(coerce_number_literal(arg, node.this))
    if isinstance(arg, Literal) and isinstance(arg.value, int | float | Decimal) and arg.type.is_number:
        return Literal(-arg.value, arg.type)
    if not arg.type.is_number:
        raise TypeMismatch(f"arithmetic needs numbers, not {arg.type}", span=span_of(node))
    return Arithmetic("-", Literal(0, BIGINT), arg, BIGINT if arg.type.is_integer else DOUBLE)


def _bind_not(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this")
    return Not(conditions.bind_boolean(node.this, bind))


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
    bound_tests = [conditions.bind_boolean(test, bind) for test in tests]
    values = [branch.args["true"] for branch in node.args["ifs"]]
    return _build_case(bound_tests, [*values, node.args.get("default") or exp.Null()], bind)


def _bind_if(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "true", "false")
    values = [node.args["true"], node.args.get("false") or exp.Null()]
    return _build_case([conditions.bind_boolean(node.this, bind)], values, bind)


def _bind_nvl2(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "true", "false")
    return _build_case([Not(IsNull(bind(node.this)))], [node.args["true"], node.args.get("false") or exp.Null()], bind)


def _build_case(tests: list[Expr], nodes: list[exp.Expr], bind: BindChild) -> Expr:
    unified, type_ = unify_types([bind(node) for node in nodes], nodes, "CASE")
    *then, otherwise = [coerce(value, type_, n) for value, n in zip(unified, nodes, strict=True)]
    return Case(tuple(zip(tests, then, strict=True)), otherwise, type_)


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
    if name in TEMPLATES:
        return bind_composed(name, args, node, bind, _bind_tree)
    array_call = bind_array_call(node, bind, _bind_tree)
    if array_call is not None:
        return array_call
    if name in BARE_FUNCTIONS:
        return build_call(BARE_FUNCTIONS[name], [bind(part) for part in args], node, args)
    if name in BARE_DATE_PARTS and len(args) == 1:
        part = exp.Extract(this=exp.var(name), expression=args[0])
        return datetime.bind_extract(part, bind)
    if name == "iff" and 2 <= len(args) <= 3:
        return _build_case([conditions.bind_boolean(args[0], bind)], [args[1], *(args[2:] or [exp.Null()])], bind)
    if name == "timezone" and len(args) == 2:
        return datetime.convert_time_zone(bind(args[1]), args[0], node)
    if name in _DATETIME_BINDERS:
        return _DATETIME_BINDERS[name](node, bind)
    if name == "age":
        hint = "For example: EXTRACT(year FROM AGE(CURRENT_DATE, at))."
        raise Unsupported("an age is an interval, which is not supported", hint=hint, span=span_of(node))
    raise unknown_function_error(node)


def _bind_composed_node(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this")
    return bind_composed(COMPOSED_NODES[type(node)], [node.this], node, bind, _bind_tree)


def _bind_bits(node: exp.Expr, bind: BindChild) -> Expr:
    return bind_bits(node, bind, _bind_tree)


def _bind_width_bucket(node: exp.Expr, bind: BindChild) -> Expr:
    thresholds = node.args.get("threshold") is not None
    return bind_threshold_bucket(node, bind, _bind_tree) if thresholds else _bind_named_function(node, bind)


def _bind_of_array(node: exp.Expr, bind: BindChild) -> Expr:
    bound = bind_array_call(node, bind, _bind_tree)
    if bound is not None:
        return bound
    if type(node) in NODE_FUNCTIONS:
        return _bind_named_function(node, bind)
    raise _unsupported_expression_error(node)


_DATETIME_BINDERS: dict[str, Callable[[exp.Anonymous, BindChild], Expr]] = {
    "strftime": datetime.bind_strftime,
    "time_bucket": datetime.bind_time_bucket,
    "dateadd": datetime.bind_sqlserver_dateadd,
    "date_sub": datetime.bind_date_sub,
    "datesub": datetime.bind_date_sub,
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


# Functions whose arguments stand in another order, or mean more than one thing, in sqlglot's trees.

_TRIM_FUNCTIONS = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_INITCAP_SEPARATORS = " \t\n"  # what sqlglot's list of INITCAP's separators begins with, where none are written


def bind_trim(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expression", "position")
    nodes = [node.this, *([node.expression] if node.args.get("expression") is not None else [])]
    side = str(node.args.get("position") or "").upper()
    if side not in _TRIM_FUNCTIONS:
        raise Unsupported("TRIM takes LEADING, TRAILING or BOTH", span=span_of(node))
    return build_call(_TRIM_FUNCTIONS[side], [bind(n) for n in nodes], node, nodes)


def bind_pad(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expression", "fill_pattern", "is_left")
    nodes = [node.args[f] for f in ("this", "expression", "fill_pattern") if node.args.get(f) is not None]
    return build_call("lpad" if node.args.get("is_left") else "rpad", [bind(n) for n in nodes], node, nodes)


def bind_initcap(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expression")
    separators = node.args.get("expression")
    if separators is not None and not separators.name.startswith(_INITCAP_SEPARATORS):
        raise Unsupported("INITCAP takes one argument", span=span_of(node))
    return build_call("initcap", [bind(node.this)], node)


def bind_concat_operator(node: exp.Expr, bind: BindChild) -> Expr:
    """a || b: NULL where one of them is."""
    refuse_other_args(node, "this", "expression")
    return build_call("concat", [_to_text(bind(part), part) for part in (node.this, node.expression)], node)


def bind_concat(node: exp.Expr, bind: BindChild) -> Expr:
    """CONCAT(a, b): NULL counts as the empty text."""
    refuse_other_args(node, "expressions")
    parts = [_to_text(bind(part), part) for part in node.expressions]
    non_null = [part if isinstance(part, Literal) and part.value is not None else
             Call("coalesce", (part, Literal("", TEXT)), TEXT) for part in parts]  # fmt: skip
    return non_null[0] if len(non_null) == 1 else build_call("concat", list(non_null), node)


def _to_text(arg: Expr, node: exp.Expr) -> Expr:
    if arg.type == TEXT:
        return arg
    if arg.type.is_microsecond_interval:
        raise TypeMismatch("an interval has no text here", hint="EXTRACT(epoch FROM to - from) is a number.")
    converted = convert_literal(arg, TEXT) if isinstance(arg, Literal) else None
    return converted or cast_to(arg, TEXT, node)


def bind_substring(node: exp.Expr, bind: BindChild) -> Expr:
    """SUBSTRING(x FROM 'pattern') is a regular expression; otherwise the places are numbers."""
    refuse_other_args(node, "this", "start", "length")
    start = node.args.get("start")
    if isinstance(start, exp.Literal) and start.is_string and node.args.get("length") is None:
        try:
            groups = check_regex(start.name).groups
        except MalformedRegex as error:
            raise Unsupported(f"the pattern cannot be used: {error}", span=span_of(start)) from None
        first = Literal(1 if groups else 0, INTEGER)
        return build_call("regexp_substr", [bind(node.this), bind(start), first], node)
    nodes = [node.args[field] for field in ("this", "start", "length") if node.args.get(field) is not None]
    return build_call("substring", [bind(n) for n in nodes], node, nodes)


def bind_log(node: exp.Expr, bind: BindChild) -> Expr:
    """LOG(x) is the logarithm to base 10, LOG(b, x) to base b."""
    refuse_other_args(node, "this", "expression")
    if node.args.get("expression") is None:
        return build_call("log10", [bind(node.this)], node)
    base = bind(node.this)
    if isinstance(base, Literal) and base.value in (2, 10):
        return build_call(f"log{base.value}", [bind(node.expression)], node)
    return build_call("log", [base, bind(node.expression)], node)


# Casts over private rows: every one is total, so what does not fit becomes NULL.

_VARCHAR_TYPES = (exp.DType.VARCHAR, exp.DType.NVARCHAR)
_CHAR_TYPES = (exp.DType.CHAR, exp.DType.NCHAR, exp.DType.BPCHAR)


def bind_cast(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "to")
    to: exp.DataType = node.args["to"]
    arg = bind(node.this)
    if to.is_type(*_VARCHAR_TYPES, *_CHAR_TYPES) and to.expressions:
        return _bind_varchar_cast(arg, to, node)
    if to.is_type(exp.DType.DECIMAL) and not to.expressions:
        # NUMERIC without digits has as many as needed; a double is nearer to that than any fixed number of them.
        return arg if arg.type.kind is Kind.DECIMAL else cast_to(arg, DOUBLE, node)
    if to.is_type(exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ) and len(to.expressions) == 1:
        return _bind_rounded_cast(arg, to, node)
    if to.is_type(exp.DType.VARBINARY):
        raise Unsupported("no cast to bytea over private rows", span=span_of(node),
                          hint='No column holds bytes. For text, give text: value.decode("utf-8").')  # fmt: skip
    type_ = parse_type(to.sql())
    if type_ is None or type_.kind is Kind.INTERVAL:
        raise Unsupported(f"no cast to {to.sql()} over private rows", span=span_of(node))
    return cast_to(arg, type_, node)


_ROUNDED_TIMES = {"0": ("second", 500_000), "3": ("millisecond", 500)}
"""By the digits that are kept of a second: what they count, and half of one in microseconds."""


def _bind_rounded_cast(arg: Expr, to: exp.DataType, node: exp.Expr) -> Expr:
    """TIMESTAMP(0) is rounded to the second, as in PostgreSQL."""
    digits = to.expressions[0].name
    if digits not in _ROUNDED_TIMES:
        raise Unsupported(f"no cast to {to.sql()} over private rows", hint="Digits of a second can be 0, 3 or 6.",
                          span=span_of(node))  # fmt: skip
    part, half = _ROUNDED_TIMES[digits]
    timestamp = cast_to(arg, TIMESTAMP if to.is_type(exp.DType.TIMESTAMP) else TIMESTAMPTZ, node)
    parts: list[Expr] = [Literal(0, INTEGER), Literal(0, INTEGER), Literal(half, BIGINT)]
    return build_call("date_trunc", [Literal(part, TEXT), build_call("add_interval", [timestamp, *parts], node)], node)


def _bind_varchar_cast(arg: Expr, to: exp.DataType, node: exp.Expr) -> Expr:
    """VARCHAR(n) keeps the first n characters, as PostgreSQL does."""
    if to.is_type(*_CHAR_TYPES):
        raise Unsupported("a cast to text that is filled up with spaces is not supported",
                          hint="CAST(x AS varchar(3)) cuts text to 3 characters.", span=span_of(node))  # fmt: skip
    length = Literal(int(to.expressions[0].name), BIGINT)
    return build_call("left", [cast_to(arg, TEXT, node), length], node)


def cast_to(arg: Expr, type_: Type, node: exp.Expr) -> Expr:
    if isinstance(arg, Literal):
        converted = convert_literal(arg, type_)
        if converted is not None:
            return converted
        if isinstance(arg.value, str):
            raise TypeMismatch(f"this text cannot be read as {type_}", span=span_of(node))
    if arg.type == type_:
        return arg
    if not is_castable(arg.type, type_):
        raise TypeMismatch(f"no cast from {arg.type} to {type_}", span=span_of(node))
    if arg.type == TIMESTAMPTZ and type_.kind is Kind.TIME:
        return Cast(cast_by_clock(arg, TIMESTAMP, node), type_)  # engines have no direct cast
    if arg.type == TIMESTAMPTZ and type_ == TEXT and not session_zone().is_utc:
        raise Unsupported(f"a moment has no text by the clocks of {session_zone().name}",
                          hint="to_char(at, 'YYYY-MM-DD HH24:MI:SS') writes it without its zone.",
                          span=span_of(node))  # fmt: skip
    return cast_by_clock(arg, type_, node)


def is_castable(source: Type, target: Type) -> bool:
    if Kind.INTERVAL in (source.kind, target.kind):
        return False
    if Kind.TEXT in (source.kind, target.kind):
        return True
    if source.is_number and target.is_number:
        return True
    if source.kind is Kind.BOOLEAN:
        return target.is_integer
    if target.kind is Kind.BOOLEAN:
        return source.is_integer
    if target.kind is Kind.TIME:
        return source.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
    return source.is_time and target.is_time


_BINDERS: dict[type[exp.Expr], Callable[[exp.Expr, BindChild], Expr]] = {
    exp.Literal: lambda node, bind: bind_literal(node),
    exp.Null: lambda node, bind: Literal(None, TEXT),
    exp.Boolean: lambda node, bind: Literal(bool(node.this), BOOLEAN),
    exp.Paren: _bind_paren,
    exp.Connector: conditions.bind_connector,
    exp.Not: _bind_not,
    exp.Is: conditions.bind_is,
    exp.In: conditions.bind_in,
    exp.Between: conditions.bind_between,
    exp.NullSafeEQ: conditions.bind_is_distinct,
    exp.NullSafeNEQ: conditions.bind_is_distinct,
    exp.Escape: conditions.bind_escape,
    exp.Like: conditions.bind_like,
    exp.ILike: conditions.bind_like,
    exp.SimilarTo: conditions.bind_similar_to,
    exp.RegexpLike: conditions.bind_regexp_like,
    exp.RegexpILike: conditions.bind_regexp_like,
    exp.RegexpReplace: conditions.bind_regexp_replace,
    **dict.fromkeys(COMPARISONS, conditions.bind_comparison),
    **dict.fromkeys(ARITHMETIC, _bind_arithmetic),
    exp.Case: _bind_case,
    exp.If: _bind_if,
    exp.Nvl2: _bind_nvl2,
    exp.Cast: bind_cast,
    exp.Neg: _bind_negation,
    exp.Pi: _bind_pi,
    exp.Log: bind_log,
    exp.DPipe: bind_concat_operator,
    exp.ConcatWs: _bind_named_function,
    exp.Concat: bind_concat,
    exp.Trim: bind_trim,
    exp.Pad: bind_pad,
    exp.Initcap: bind_initcap,
    exp.Substring: bind_substring,
    exp.Extract: datetime.bind_extract,
    exp.TimestampTrunc: datetime.bind_date_trunc,
    exp.DateTrunc: datetime.bind_date_trunc,
    exp.DateDiff: datetime.bind_date_diff,
    exp.DateAdd: datetime.bind_date_add,
    exp.DateSub: datetime.bind_date_add,
    exp.DateBin: datetime.bind_date_bin,
    exp.TimeToStr: datetime.bind_to_char,
    exp.StrToDate: datetime.bind_to_date,
    exp.StrToTime: datetime.bind_to_date,
    exp.AtTimeZone: datetime.bind_at_time_zone,
    **dict.fromkeys((exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift), _bind_bits),
    **dict.fromkeys((exp.Bracket, exp.ArrayContains, exp.ArraySize, exp.Length), _bind_of_array),
    exp.WidthBucket: _bind_width_bucket,
    **dict.fromkeys(COMPOSED_NODES, _bind_composed_node),
    exp.Date: _bind_date_cast,
    exp.Timestamp: _bind_date_cast,
    **dict.fromkeys(DATE_PART_NODES, datetime.bind_part_function),
    exp.Anonymous: _bind_anonymous,
}
