"""Functions whose arguments stand in another order, or mean more than one thing, in sqlglot's trees."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dpsql.errors import TypeMismatch, Unsupported
from dpsql.functions.regex import Malformed, check
from dpsql.plan.expr import Call, Cast, Expr, Literal
from dpsql.sql.bind_call import checked_call
from dpsql.sql.coerce import convert_literal
from dpsql.sql.dialect import only, span_of
from dpsql.types import INTEGER, TEXT

Bind = Callable[[exp.Expr], Expr]

_TRIMS = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_SEPARATORS = " \t\n"  # what sqlglot's list of INITCAP's separators begins with, where none are written


def trim(node: exp.Expr, bind: Bind) -> Expr:
    only(node, "this", "expression", "position")
    nodes = [node.this, *([node.expression] if node.args.get("expression") is not None else [])]
    side = str(node.args.get("position") or "").upper()
    if side not in _TRIMS:
        raise Unsupported("TRIM takes LEADING, TRAILING or BOTH", span=span_of(node))
    return checked_call(_TRIMS[side], [bind(n) for n in nodes], node, nodes)


def pad(node: exp.Expr, bind: Bind) -> Expr:
    only(node, "this", "expression", "fill_pattern", "is_left")
    nodes = [node.args[f] for f in ("this", "expression", "fill_pattern") if node.args.get(f) is not None]
    return checked_call("lpad" if node.args.get("is_left") else "rpad", [bind(n) for n in nodes], node, nodes)


def initcap(node: exp.Expr, bind: Bind) -> Expr:
    only(node, "this", "expression")
    separators = node.args.get("expression")
    if separators is not None and not separators.name.startswith(_SEPARATORS):
        raise Unsupported("INITCAP takes one argument", span=span_of(node))
    return checked_call("initcap", [bind(node.this)], node)


def joined(node: exp.Expr, bind: Bind) -> Expr:
    """a || b: NULL where one of them is."""
    only(node, "this", "expression")
    return checked_call("concat", [_text(bind(part)) for part in (node.this, node.expression)], node)


def concat(node: exp.Expr, bind: Bind) -> Expr:
    """CONCAT(a, b): NULL counts as the empty text."""
    only(node, "expressions")
    parts = [_text(bind(part)) for part in node.expressions]
    known = [part if isinstance(part, Literal) and part.value is not None else
             Call("coalesce", (part, Literal("", TEXT)), TEXT) for part in parts]  # fmt: skip
    return known[0] if len(known) == 1 else checked_call("concat", list(known), node)


def _text(arg: Expr) -> Expr:
    if arg.type == TEXT:
        return arg
    if arg.type.is_span:
        raise TypeMismatch("an interval has no text here", hint="EXTRACT(epoch FROM to - from) is a number.")
    converted = convert_literal(arg, TEXT) if isinstance(arg, Literal) else None
    return converted or Cast(arg, TEXT)


def substring(node: exp.Expr, bind: Bind) -> Expr:
    """SUBSTRING(x FROM 'pattern') is a regular expression; otherwise the places are numbers."""
    only(node, "this", "start", "length")
    start = node.args.get("start")
    if isinstance(start, exp.Literal) and start.is_string and node.args.get("length") is None:
        try:
            groups = check(start.name).groups
        except Malformed as error:
            raise Unsupported(f"the pattern cannot be used: {error}", span=span_of(start)) from None
        first = Literal(1 if groups else 0, INTEGER)
        return checked_call("regexp_substr", [bind(node.this), bind(start), first], node)
    nodes = [node.args[field] for field in ("this", "start", "length") if node.args.get(field) is not None]
    return checked_call("substring", [bind(n) for n in nodes], node, nodes)


def log(node: exp.Expr, bind: Bind) -> Expr:
    """LOG(x) is the logarithm to base 10, LOG(b, x) to base b."""
    only(node, "this", "expression")
    if node.args.get("expression") is None:
        return checked_call("log10", [bind(node.this)], node)
    base = bind(node.this)
    if isinstance(base, Literal) and base.value in (2, 10):
        return checked_call(f"log{base.value}", [bind(node.expression)], node)
    return checked_call("log", [base, bind(node.expression)], node)

