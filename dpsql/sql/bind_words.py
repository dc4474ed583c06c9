"""Functions whose arguments stand in another order, or mean more than one thing, in sqlglot's trees."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dpsql.errors import TypeMismatch, Unsupported
from dpsql.functions.regex import MalformedRegex, check_regex
from dpsql.plan.expr import Call, Cast, Expr, Literal
from dpsql.sql.bind_call import build_call
from dpsql.sql.coerce import convert_literal
from dpsql.sql.dialect import refuse_other_args, span_of
from dpsql.types import INTEGER, TEXT

BindChild = Callable[[exp.Expr], Expr]

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
    return build_call("concat", [_to_text(bind(part)) for part in (node.this, node.expression)], node)


def bind_concat(node: exp.Expr, bind: BindChild) -> Expr:
    """CONCAT(a, b): NULL counts as the empty text."""
    refuse_other_args(node, "expressions")
    parts = [_to_text(bind(part)) for part in node.expressions]
    non_null = [part if isinstance(part, Literal) and part.value is not None else
             Call("coalesce", (part, Literal("", TEXT)), TEXT) for part in parts]  # fmt: skip
    return non_null[0] if len(non_null) == 1 else build_call("concat", list(non_null), node)


def _to_text(arg: Expr) -> Expr:
    if arg.type == TEXT:
        return arg
    if arg.type.is_microsecond_interval:
        raise TypeMismatch("an interval has no text here", hint="EXTRACT(epoch FROM to - from) is a number.")
    converted = convert_literal(arg, TEXT) if isinstance(arg, Literal) else None
    return converted or Cast(arg, TEXT)


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

