"""Casts over private rows: every one is total, so what does not fit becomes NULL."""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import TypeMismatch, Unsupported
from dpsql.plan.expr import Cast, Expr, Literal
from dpsql.sql.bind_call import build_call
from dpsql.sql.bind_truth import BindChild
from dpsql.sql.coerce import convert_literal
from dpsql.sql.dialect import refuse_other_args, span_of
from dpsql.types import BIGINT, DOUBLE, TEXT, TIMESTAMP, Kind, Type, parse_type

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
    type_ = parse_type(to.sql())
    if type_ is None or type_.kind is Kind.INTERVAL:
        raise Unsupported(f"no cast to {to.sql()} over private rows", span=span_of(node))
    return cast_to(arg, type_, node)


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
    if arg.type.kind is Kind.TIMESTAMPTZ and type_.kind is Kind.TIME:
        arg = Cast(arg, TIMESTAMP)  # engines have no direct cast
    return Cast(arg, type_)


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
