"""Conditions: comparisons of values and rows, IN, BETWEEN, IS, LIKE and regular expressions."""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.compiler.bind.calls import BindChild, build_call
from dpsql.compiler.bind.coercion import unify_types
from dpsql.compiler.bind.datetime import bind_comparison_sides
from dpsql.compiler.parse.dialect import refuse_other_args, span_of
from dpsql.compiler.plan.expressions import FALSE, TRUE, And, Call, Compare, Expr, InList, IsNull, Literal, Not, Or
from dpsql.errors import TypeMismatch, Unsupported
from dpsql.types import BOOLEAN, TEXT

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip


def bind_boolean(node: exp.Expr, bind: BindChild) -> Expr:
    bound = bind(node)
    if bound.type != BOOLEAN:
        raise TypeMismatch(f"a condition must be boolean, not {bound.type}", span=span_of(node))
    return bound


def bind_comparison(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expression")
    op, left, right = COMPARISONS[type(node)], node.this, node.expression
    rows = _row_items(left), _row_items(right)
    if rows[0] is not None or rows[1] is not None:
        return _compare_rows(op, rows[0], rows[1], node, bind)
    if isinstance(right, exp.Any):
        return _bind_quantified(op, left, right.this, False, bind)
    if isinstance(right, exp.Anonymous) and right.name.lower() == "all" and len(right.expressions) == 1:
        return _bind_quantified(op, left, right.expressions[0], True, bind)
    return compare_values(op, left, right, bind)


def compare_values(op: str, left: exp.Expr, right: exp.Expr, bind: BindChild) -> Expr:
    nodes = [left, right]
    (bound_left, bound_right), _ = unify_types(bind_comparison_sides(nodes, bind), nodes, "comparison")
    return Compare(op, bound_left, bound_right)


def _row_items(node: exp.Expr) -> list[exp.Expr] | None:
    inner = node.unnest()
    if isinstance(inner, exp.Tuple) or (isinstance(inner, exp.Anonymous) and inner.name.lower() == "row"):
        return list(inner.expressions)
    return None


def _compare_rows(
    op: str, left: list[exp.Expr] | None, right: list[exp.Expr] | None, node: exp.Expr, bind: BindChild
) -> Expr:
    if op not in ("=", "<>") or left is None or right is None or len(left) != len(right):
        raise Unsupported("rows are compared with = and <>, and have as many values", span=span_of(node))
    equal = And(tuple(compare_values("=", a, b, bind) for a, b in zip(left, right, strict=True)))
    return equal if op == "=" else Not(equal)


def _bind_quantified(op: str, left: exp.Expr, right: exp.Expr, every: bool, bind: BindChild) -> Expr:
    """= ANY (ARRAY[…]) is IN, and <> ALL (ARRAY[…]) is NOT IN."""
    array = _read_array(right.unnest())
    if array is None:
        raise Unsupported("ANY and ALL take an array of values here", hint="For example: ward = ANY (ARRAY['a', 'b']).",
                          span=span_of(right))  # fmt: skip
    refuse_other_args(array, "expressions")
    if not array.expressions:
        bind(left)
        return TRUE if every else FALSE  # of no values: no row, or every one
    if (op, every) in (("=", False), ("<>", True)):
        membership = _bind_in_values(left, list(array.expressions), bind)
        return Not(membership) if every else membership
    parts = tuple(compare_values(op, left, value, bind) for value in array.expressions)
    return And(parts) if every else Or(parts)


_QUOTED_ELEMENT, _BARE_ELEMENT = r'"((?:[^"\\]|\\.)*+)"', r'([^\s{}",\\](?:[^{}",\\]*+))'
_ARRAY_ELEMENT = re.compile(rf"\s*(?:{_QUOTED_ELEMENT}|{_BARE_ELEMENT})\s*(?:,|$)", re.DOTALL)
_ARRAY_TEXT = re.compile(
    rf"\{{(?:\s*(?:{_QUOTED_ELEMENT}|{_BARE_ELEMENT})\s*(?:,(?!\s*\}})|(?=\}})))*+\s*\}}", re.DOTALL
)


def _read_array(node: exp.Expr) -> exp.Array | None:
    """ARRAY['a', 'b'], also cast to text[]; or as PostgreSQL prints it: '{a,"b c"}'."""
    if isinstance(node, exp.Cast) and node.to.is_type(exp.DType.ARRAY):
        refuse_other_args(node, "this", "to")
        return _read_array(node.this.unnest())
    if isinstance(node, exp.Literal) and node.is_string and _ARRAY_TEXT.fullmatch(node.name):
        parts = [(quoted, plain.strip()) for quoted, plain in _ARRAY_ELEMENT.findall(node.name[1:-1])]
        return exp.Array(expressions=[_read_array_element(quoted, plain) for quoted, plain in parts])
    return node if isinstance(node, exp.Array) else None


def _read_array_element(quoted: str, plain: str) -> exp.Expr:
    if plain.upper() == "NULL":
        return exp.Null()
    return exp.Literal.string(plain or re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))


def bind_is(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expression", "negate")
    arg, what = bind(node.this), node.expression
    test: Expr | None = None
    if isinstance(what, exp.Null):
        test = IsNull(arg)
    if isinstance(what, exp.Boolean):
        truth = bind_boolean(node.this, bind)
        wanted = truth if what.this else Not(truth)
        test = Call("coalesce", (wanted, FALSE), BOOLEAN)
    if test is not None:
        return Not(test) if node.args.get("negate") else test
    raise Unsupported("IS takes NULL, TRUE or FALSE", span=span_of(node))


def bind_is_distinct(node: exp.Expr, bind: BindChild) -> Expr:
    """Equal, or both NULL: never NULL itself."""
    refuse_other_args(node, "this", "expression")
    equal = compare_values("=", node.this, node.expression, bind)
    assert isinstance(equal, Compare)
    both = And((IsNull(equal.left), IsNull(equal.right)))
    same = Call("coalesce", (equal, both), BOOLEAN)
    return same if isinstance(node, exp.NullSafeEQ) else Not(same)


def bind_in(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expressions")
    row, items = _row_items(node.this), _unwrap_values_list(node.expressions)
    if row is None:
        return _bind_in_values(node.this, items, bind)
    return Or(tuple(_compare_rows("=", row, _row_items(other), node, bind) for other in items))


def _unwrap_values_list(items: list[exp.Expr]) -> list[exp.Expr]:
    """IN (VALUES ('a'), ('b')) is IN ('a', 'b')."""
    if len(items) != 1 or not isinstance(items[0], exp.Values):
        return items
    refuse_other_args(items[0], "expressions")
    return [row.expressions[0] if len(row.expressions) == 1 else row for row in items[0].expressions]


def _bind_in_values(left: exp.Expr, right: list[exp.Expr], bind: BindChild) -> Expr:
    nodes = [left, *right]
    (arg, *values), _ = unify_types(bind_comparison_sides(nodes, bind), nodes, "comparison")
    literals = tuple(dict.fromkeys(v for v in values if isinstance(v, Literal)))
    non_null = tuple(value for value in literals if value.value is not None)
    parts: list[Expr] = [InList(arg, non_null)] if non_null else []
    parts += [Compare("=", arg, value) for value in dict.fromkeys(values) if not isinstance(value, Literal)]
    if len(non_null) < len(literals):
        parts = [*(parts or [FALSE]), Literal(None, BOOLEAN)]  # x IN (1, NULL) is never false
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def bind_between(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "low", "high", "symmetric")
    nodes = [node.this, node.args["low"], node.args["high"]]
    (arg, low, high), _ = unify_types(bind_comparison_sides(nodes, bind), nodes, "comparison")
    forward = And((Compare(">=", arg, low), Compare("<=", arg, high)))
    if not node.args.get("symmetric"):
        return forward
    return Or((forward, And((Compare(">=", arg, high), Compare("<=", arg, low)))))


def bind_connector(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expression")
    args = tuple(bind_boolean(part, bind) for part in node.flatten())
    return And(args) if isinstance(node, exp.And) else Or(args)


# --- patterns --------------------------------------------------------------------------------------------------------


def bind_escape(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expression")
    inner, escape = node.this, bind(node.expression)
    if not isinstance(escape, Literal) or not isinstance(escape.value, str):
        raise Unsupported("ESCAPE takes one ASCII character", span=span_of(node.expression))
    if isinstance(inner, exp.SimilarTo):
        return bind_similar_to(inner, bind, escape)
    if not isinstance(inner, exp.Like | exp.ILike):
        raise Unsupported("ESCAPE stands behind LIKE, ILIKE or SIMILAR TO", span=span_of(node))
    return bind_like(inner, bind, escape)


def bind_like(node: exp.Expr, bind: BindChild, escape: Literal | None = None) -> Expr:
    refuse_other_args(node, "this", "expression", "negate")
    pattern = node.expression
    if isinstance(pattern, exp.Any | exp.All) and isinstance(pattern.this.unnest(), exp.Array | exp.Tuple):
        each = [_bind_like_pattern(node, part, bind, escape) for part in pattern.this.unnest().expressions]
        if not each:
            raise Unsupported("ANY and ALL take an array of values here", span=span_of(node))
        matches: Expr = each[0] if len(each) == 1 else (Or if isinstance(pattern, exp.Any) else And)(tuple(each))
    else:
        matches = _bind_like_pattern(node, pattern, bind, escape)
    return Not(matches) if node.args.get("negate") else matches


def _bind_like_pattern(node: exp.Expr, pattern: exp.Expr, bind: BindChild, escape: Literal | None) -> Expr:
    """The escape character is passed on only where the pattern has it: `\\` unless ESCAPE says otherwise."""
    name = "ilike" if isinstance(node, exp.ILike) else "like"
    args = [bind(node.this), bind(pattern)]
    if not isinstance(args[1], Literal) or not isinstance(args[1].value, str):
        hint = "Look for one column in another by CONTAINS(a, b), STARTS_WITH(a, b) or ENDS_WITH(a, b)."
        raise Unsupported("a pattern must be a literal text", hint=hint, span=span_of(pattern))
    character = "\\" if escape is None else str(escape.value)
    if len(character) > 1:
        raise Unsupported("ESCAPE takes one ASCII character", span=span_of(node))
    if character and character in args[1].value:
        args.append(Literal(character, TEXT))
    return build_call(name, args, node)


def bind_similar_to(node: exp.Expr, bind: BindChild, escape: Literal | None = None) -> Expr:
    refuse_other_args(node, "this", "expression")
    args = [bind(node.this), bind(node.expression), *([escape] if escape is not None else [])]
    return build_call("similar", args, node)


def bind_regexp_like(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expression", "flag")
    flags = [node.args["flag"]] if node.args.get("flag") is not None else []
    args = [bind(part) for part in (node.this, node.expression, *flags)]
    if isinstance(node, exp.RegexpILike):
        args.append(Literal("i", TEXT))
    return build_call("regexp_like", args, node)


def bind_regexp_replace(node: exp.Expr, bind: BindChild) -> Expr:
    refuse_other_args(node, "this", "expression", "replacement", "modifiers", "single_replace")
    fields = ("this", "expression", "replacement", "modifiers")
    parts = [node.args[field] for field in fields if node.args.get(field) is not None]
    return build_call("regexp_replace", [bind(part) for part in parts], node)
