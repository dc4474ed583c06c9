"""Functions that are written with others: what they mean stands below in SQL, over arguments that are already bound.

They bring no form of their own to an engine, so each is as total as what it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import isfinite

from sqlglot import exp

from dpsql.compiler.bind.calls import BindChild, build_call
from dpsql.compiler.functions.regex import MalformedRegex, check_regex
from dpsql.compiler.parse.dialect import AnalystDialect, refuse_other_args, span_of
from dpsql.compiler.plan.expressions import Expr, Literal
from dpsql.compiler.plan.walk import walk_exprs
from dpsql.errors import LimitExceeded, UnknownFunction, Unsupported
from dpsql.types import BIGINT, INTEGER

BindTree = Callable[[exp.Expr, BindChild], Expr]
"""Binds a tree whose parts the other function binds."""

MAX_PARTS = 1_000
"""Of an argument that may be repeated: what is made of it stays small, however such calls are nested."""

TEMPLATES = {
    "bit_length": "8 * octet_length(a)",
    "ord": "CASE WHEN a = '' THEN -1 ELSE ascii(a) END",
    "unicode": "CASE WHEN a = '' THEN -1 ELSE ascii(a) END",
    "cosh": "(exp(a) + exp(-a)) / 2",
    "cot": "1.0 / tan(a)",
    "isfinite": "0 * a = 0",
    "isinf": "0 * a <> 0",
    "isnan": "0 * a <> 0",
    "epoch_ms": "date_diff('millisecond', TIMESTAMP '1970-01-01', a)",
    "epoch_us": "date_diff('microsecond', TIMESTAMP '1970-01-01', a)",
}
"""By name, the SQL over its argument a. NaN and infinities are NULL over private rows, so no number is one."""

_BIT_TEMPLATES: dict[type[exp.Expr], str] = {
    exp.BitwiseNot: "-1 - a",
    exp.BitwiseLeftShift: "a * b",
    exp.BitwiseRightShift: "(a - (a % b + b) % b) / b",
}
"""Of shifts, b is a power of two: the quotient is rounded down, as shifting negative numbers does."""

_PART_COUNT = "(length(a) - length(replace(a, b, ''))) / length(b) + 1"
_PART = f"CASE WHEN c BETWEEN 1 AND {_PART_COUNT} THEN split_part(a, b, c) END"
_SPLIT_NAMES = frozenset({"string_split", "str_split", "split", "string_to_array"})
_ELEMENT_NAMES = frozenset({"list_extract", "list_element", "array_extract"})
_MEMBER_NAMES = frozenset({"list_contains", "list_has", "array_contains", "array_has"})
MAX_SHIFT = 62
_SHIFT_HINT = "For example: flags >> 4."


def bind_composed(name: str, nodes: list[exp.Expr], node: exp.Expr, bind: BindChild, bind_tree: BindTree) -> Expr:
    """A function of TEMPLATES."""
    if len(nodes) != 1:
        raise UnknownFunction(f"{name} does not take {len(nodes)} arguments", span=span_of(node))
    return _bind_template(TEMPLATES[name], {"a": bind(nodes[0])}, node, bind_tree)


def bind_bits(node: exp.Expr, bind: BindChild, bind_tree: BindTree) -> Expr:
    refuse_other_args(node, "this", "expression")
    args = {"a": bind(node.this)}
    if not isinstance(node, exp.BitwiseNot):
        shift = bind(node.expression)
        if not isinstance(shift, Literal) or not isinstance(shift.value, int) or not 0 <= shift.value <= MAX_SHIFT:
            raise Unsupported(f"a shift over private rows is a literal between 0 and {MAX_SHIFT}",
                              hint=_SHIFT_HINT, span=span_of(node.expression) or span_of(node))  # fmt: skip
        args["b"] = Literal(1 << shift.value, BIGINT)
    if not args["a"].type.is_integer:
        raise Unsupported("bits are those of whole numbers", hint=_SHIFT_HINT, span=span_of(node))
    return _bind_template(_BIT_TEMPLATES[type(node)], args, node, bind_tree)


def bind_array_call(node: exp.Expr, bind: BindChild, bind_tree: BindTree) -> Expr | None:
    """What is asked of a list that is not kept: a part of a text, how many there are, whether a list has a value."""
    if isinstance(node, exp.Bracket):
        refuse_other_args(node, "this", "expressions")
        index = _read_index(node.expressions, 1)
        return None if index is None else _bind_element(node.this.unnest(), index, node, bind, bind_tree)
    if isinstance(node, exp.ArrayContains):
        refuse_other_args(node, "this", "expression")
        return _bind_membership(node.this, node.expression, bind)
    if isinstance(node, exp.ArraySize):
        one = node.args.get("expression")
        return None if one is not None and one.name != "1" else _bind_part_count(node.this, node, bind, bind_tree)
    if isinstance(node, exp.Length):
        return None if node.args.get("encoding") else _bind_part_count(node.this, node, bind, bind_tree)
    name, args = node.name.lower(), node.expressions
    if name in _ELEMENT_NAMES and len(args) == 2:
        index = _read_index(args[1:], 0)
        return None if index is None else _bind_element(args[0].unnest(), index, node, bind, bind_tree)
    if name in _MEMBER_NAMES and len(args) == 2:
        return _bind_membership(args[0], args[1], bind)
    if name == "cardinality" and len(args) == 1:
        return _bind_part_count(args[0], node, bind, bind_tree)
    return None


def _read_index(nodes: list[exp.Expr], first: int) -> int | None:
    """The place, counted from 1; the parser counts those in brackets from 0."""
    if len(nodes) != 1 or not isinstance(nodes[0], exp.Literal) or nodes[0].is_string or not nodes[0].name.isdigit():
        return None
    return int(nodes[0].name) + first


def _split_arguments(node: exp.Expr) -> list[exp.Expr] | None:
    inner = node.unnest()
    if isinstance(inner, exp.Split | exp.StringToArray):
        refuse_other_args(inner, "this", "expression")
        return [inner.this, inner.expression]
    if isinstance(inner, exp.Anonymous) and inner.name.lower() in _SPLIT_NAMES and len(inner.expressions) == 2:
        return list(inner.expressions)
    return None


def _bind_element(split: exp.Expr, index: int, node: exp.Expr, bind: BindChild, bind_tree: BindTree) -> Expr | None:
    """A part of a text that is split, NULL beyond the last one; or what a group of a pattern matched."""
    if isinstance(split, exp.Anonymous) and split.name.lower() == "regexp_match" and len(split.expressions) == 2:
        return _bind_match(split, index, node, bind)
    parts = _split_arguments(split)
    if parts is None:
        return None
    args = {"a": bind(parts[0]), "b": bind(parts[1]), "c": Literal(index, INTEGER)}
    return _bind_template(_PART, args, node, bind_tree)


def _bind_match(match: exp.Anonymous, index: int, node: exp.Expr, bind: BindChild) -> Expr:
    text, pattern = (bind(part) for part in match.expressions)
    try:
        groups = check_regex(str(pattern.value)).groups if isinstance(pattern, Literal) else 0
    except MalformedRegex as error:
        raise Unsupported(f"the pattern cannot be used: {error}", span=span_of(node)) from None
    if not 1 <= index <= max(groups, 1):
        return Literal(None, text.type)
    return build_call("regexp_substr", [text, pattern, Literal(index if groups else 0, INTEGER)], node)


def _bind_part_count(node: exp.Expr, call: exp.Expr, bind: BindChild, bind_tree: BindTree) -> Expr | None:
    parts = _split_arguments(node)
    if parts is None:
        return None
    return _bind_template(_PART_COUNT, {"a": bind(parts[0]), "b": bind(parts[1])}, call, bind_tree)


def _bind_membership(array: exp.Expr, value: exp.Expr, bind: BindChild) -> Expr | None:
    """list_contains(['a', 'b'], x) is x IN ('a', 'b'); NULL in the list is no value."""
    values = array.unnest()
    if not isinstance(values, exp.Array):
        return None
    refuse_other_args(values, "expressions")
    known = [one for one in values.expressions if not isinstance(one, exp.Null)]
    return bind(exp.In(this=value, expressions=known)) if known else None


def bind_threshold_bucket(node: exp.Expr, bind: BindChild, bind_tree: BindTree) -> Expr:
    """width_bucket(x, array[10, 20]): 0 below the first, n at and beyond the last of n thresholds."""
    refuse_other_args(node, "this", "threshold")
    array = node.args["threshold"].unnest()
    thresholds = [bind(one) for one in array.expressions] if isinstance(array, exp.Array) else []
    values = [one.value for one in thresholds if isinstance(one, Literal) and one.type.is_number]
    numbers = [Fraction(value) for value in values if isinstance(value, int | float | Decimal) and isfinite(value)]
    if not numbers or len(numbers) < len(thresholds) or numbers != sorted(numbers):
        raise Unsupported("the thresholds of width_bucket must be literal numbers, the least first",
                          hint="For example: width_bucket(cost, array[100, 500]).", span=span_of(node))  # fmt: skip
    branches = [f"WHEN a < t{index} THEN {index}" for index in range(len(numbers))]
    last = len(numbers) - 1
    template = f"CASE {' '.join(branches)} WHEN a >= t{last} THEN {last + 1} END"
    args = {f"t{index}": threshold for index, threshold in enumerate(thresholds)}
    return _bind_template(template, {"a": bind(node.this), **args}, node, bind_tree)


# --- templates -------------------------------------------------------------------------------------------------------


def _bind_template(template: str, args: dict[str, Expr], node: exp.Expr, bind_tree: BindTree) -> Expr:
    for arg in args.values():
        if len(list(islice(walk_exprs(arg), MAX_PARTS))) == MAX_PARTS:
            raise LimitExceeded("functions that repeat their arguments are nested too deeply", span=span_of(node),
                                hint="Name what is inside in a sub-select, or a WITH.")  # fmt: skip

    def bind_part(part: exp.Expr) -> Expr:
        return args[part.name] if isinstance(part, exp.Column) else bind_tree(part, bind_part)

    return bind_part(_parse_template(template))


@lru_cache(maxsize=64)
def _parse_template(template: str) -> exp.Expr:
    select = AnalystDialect().parse(f"SELECT {template}")[0]
    assert isinstance(select, exp.Select)
    template_tree: exp.Expr = select.expressions[0]
    return template_tree
