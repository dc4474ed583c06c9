"""Limits on functions of post-processing that make a long text or list from a small number.

DuckDB works out what is made of literals while it binds a statement, also for DESCRIBE, and neither its timer nor its
memory limit sees that. So the number becomes NULL where the result would be too long:

    repeat(s, n)  is written  REPEAT(s, CASE WHEN n <= 1000000 // GREATEST(LENGTH(s), 1) THEN n END)
"""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.compiler.parse.dialect import span_of, sql_name_of
from dpsql.errors import LimitExceeded

MAX_LENGTH = 1_000_000
MAX_CALLS = 100  # each may make a text of a megabyte
MAX_NESTED_CALLS = 3  # what is repeated is written twice, and so on

MAX_EXPANDED_NODES = 20_000
"""Parts of a statement when what DuckDB writes several times is written out: it binds each of them."""

_DUPLICATING_FUNCTIONS = ("nullif", "fmod", "split_part", "array_to_string", "array_pop_back", "date_trunc", "decode")
_DUPLICATING_NODES = (
    exp.MonthsBetween, exp.AddMonths, exp.ArrayDistinct, exp.ArrayContains, exp.Ceil, exp.Floor, exp.Length, exp.Hex,
    exp.StrPosition, exp.Substring, exp.Left, exp.Right, exp.DateTrunc, exp.Decode, exp.SplitPart, exp.ArrayToString,
    exp.SafeDivide, exp.Corr,
)  # fmt: skip
"""What sqlglot may write up to four times, for engines that have another function."""

_SIZED_BY_SECOND_ARGUMENT = ("list_resize", "array_resize", "bitstring")
_SERIES_FUNCTIONS = ("range", "generate_series")
_LONG_WIDTH = re.compile(r"%[^a-zA-Z%]*(?:\d{4,}|\*)|\{[^}]*(?:\d{4,}|\{)")
_GUARDED = "guarded"


def limit_result_sizes(post: exp.Query) -> None:
    """The statement, changed in place: every call has a limit, and there are not many."""
    check_expansion(post)
    calls = [node for node in post.find_all(exp.Func) if _can_grow(node) and _GUARDED not in node.meta]
    if len(calls) > MAX_CALLS:
        raise LimitExceeded(f"more than {MAX_CALLS} calls make long texts or lists", span=span_of(calls[MAX_CALLS]))
    for call in calls:
        _check_nesting(call)
        if _is_format(call):
            _check_format(call)
    for call in reversed(calls):  # inner ones first: what is repeated is copied with its own limits
        size = _size_argument(call)
        if size is not None:
            call.meta[_GUARDED] = True
            repeated = call.this if isinstance(call, exp.Repeat) else None
            size.replace(_limit_size(size.copy(), repeated))
    for node in post.find_all(exp.Anonymous, exp.GenerateSeries, exp.ExplodingGenerateSeries):
        _check_series(node)


def check_expansion(tree: exp.Expr) -> None:
    """Refuse what is small as it is written, and doubles with each level: NULLIF(NULLIF(…, 2), 2)."""
    written, stack = 0, [(tree, 1)]
    while stack:
        node, times = stack.pop()
        written += times if times > 1 else 0
        if written > MAX_EXPANDED_NODES:
            raise LimitExceeded("functions that repeat their arguments are nested too deeply", span=span_of(node),
                                hint="Name what is inside in a sub-select, or a WITH.")  # fmt: skip
        for name, value in node.args.items():
            below = times * _count_copies(node, name)
            stack.extend((child, below) for child in (value if isinstance(value, list) else [value])
                         if isinstance(child, exp.Expr))  # fmt: skip


def _count_copies(node: exp.Expr, name: str) -> int:
    """How often an argument is written."""
    match node:
        case exp.Case():
            return max(1, len(node.args["ifs"])) if name == "this" else 1
        case exp.Nullif() | exp.Between():
            return 2 if name == "this" else 1
        case exp.Anonymous():
            return 2 if node.name.lower() in _DUPLICATING_FUNCTIONS else 1
    return 4 if isinstance(node, _DUPLICATING_NODES) else 1


def _can_grow(node: exp.Expr) -> bool:
    return _size_argument(node) is not None or _is_format(node)


def _size_argument(call: exp.Expr) -> exp.Expr | None:
    """The argument that says how long the result is."""
    match call:
        case exp.Repeat():
            return call.args.get("times")
        case exp.Pad():
            return call.expression  # type: ignore[no-any-return]
        case exp.Anonymous() if call.name.lower() in _SIZED_BY_SECOND_ARGUMENT and len(call.expressions) > 1:
            return call.expressions[1]  # type: ignore[no-any-return]
    return None


def _limit_size(number: exp.Expr, repeated: exp.Expr | None) -> exp.Expr:
    limit: exp.Expr = exp.Literal.number(MAX_LENGTH)
    if repeated is not None:
        # By its name: sqlglot would write the class with its arguments twice, for engines that do not skip NULL.
        length = exp.Anonymous(this="greatest", expressions=[exp.Length(this=repeated.copy()), exp.Literal.number(1)])
        limit = exp.IntDiv(this=limit, expression=length)
    fits = exp.LTE(this=exp.paren(number.copy()), expression=limit)
    return exp.Case(ifs=[exp.If(this=fits, true=number)])


def _check_nesting(call: exp.Expr) -> None:
    depth, parent = 1, call.parent
    while parent is not None:
        depth += isinstance(parent, exp.Func) and _size_argument(parent) is not None
        parent = parent.parent
    if depth > MAX_NESTED_CALLS:
        raise LimitExceeded(f"{sql_name_of(call)} stands in more than {MAX_NESTED_CALLS - 1} others of its kind",
                            span=span_of(call))  # fmt: skip


def _is_format(call: exp.Expr) -> bool:
    return isinstance(call, exp.Format) or (isinstance(call, exp.Anonymous) and call.name.lower() == "printf")


def _check_format(call: exp.Expr) -> None:
    template = call.this if isinstance(call, exp.Format) else next(iter(call.expressions), None)
    if not isinstance(template, exp.Literal) or not template.is_string or _LONG_WIDTH.search(template.name):
        raise LimitExceeded(f"the format of {sql_name_of(call)} must be a literal, and its widths below 1000",
                            span=span_of(call))  # fmt: skip


def _check_series(node: exp.Expr) -> None:
    """As a list; in FROM it is read row by row."""
    if isinstance(node.parent, exp.Table | exp.Lateral):
        return
    if isinstance(node, exp.Anonymous):
        numbers = [_literal_integer(arg) for arg in node.expressions] if node.name.lower() in _SERIES_FUNCTIONS else []
    else:
        numbers = [
            _literal_integer(node.args[name]) for name in ("start", "end", "step") if node.args.get(name) is not None
        ]
    integers = [number for number in numbers if number is not None]
    if not integers or len(integers) < len(numbers):
        return
    start, end, step = (0, integers[0], 1) if len(integers) == 1 else (*integers, 1)[:3]
    if step and (end - start) // step > MAX_LENGTH:
        raise LimitExceeded(f"a list has more than {MAX_LENGTH:,} values", span=span_of(node),
                            hint="In FROM a series may be longer.")  # fmt: skip


def _literal_integer(node: exp.Expr) -> int | None:
    inner = node.unnest()
    if isinstance(inner, exp.Neg):
        below = _literal_integer(inner.this)
        return None if below is None else -below
    is_number = isinstance(inner, exp.Literal) and not inner.is_string and inner.name.isdigit()
    return int(inner.name) if is_number else None
