"""Mark integer arithmetic that cannot overflow, and keep infinities out of keys.

    a + b  (both within 10^6)   →  64-bit addition
    a + b  (no bounds known)    →  128-bit addition, NULL past 64 bits
    GROUP BY x * 2 (a double)   →  GROUP BY x * 2 where finite, else NULL; 0.0 for -0.0, which are one group

Arithmetic is total without this rule too: it only finds where the cheap form is. What WHERE says proves nothing here,
since an engine may compute an expression for rows that a condition is about to drop. Text that could grow without
end is refused.
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.analysis.domains import derive_enforced_domains
from dpsql.analysis.narrow import EnforcedDomains, Environment
from dpsql.analysis.values import domain_of
from dpsql.errors import LimitExceeded
from dpsql.plan.expr import Arithmetic, Call, Expr
from dpsql.plan.nodes import Aggregate
from dpsql.plan.relations import Named, Rows
from dpsql.plan.walk import map_expr, map_measure, map_node_exprs, map_rows, row_inputs
from dpsql.types import BIGINT, DOUBLE, TEXT, integer_range

MAX_TEXT_LENGTH = 100_000
"""Of one text that an expression may make."""


def make_total(aggregate: Aggregate) -> Aggregate:
    rows = map_rows(aggregate.input, _make_node_total)
    env = derive_enforced_domains(rows)

    keys = tuple(Named(key.name, make_finite(_make_expr_total(key.expr, env))) for key in aggregate.keys)
    measures = tuple(map_measure(m, lambda arg: _make_expr_total(arg, env)) for m in aggregate.measures)
    return replace(aggregate, input=rows, keys=keys, measures=measures)


def _make_node_total(node: Rows) -> Rows:
    below = [derive_enforced_domains(rows) for rows in row_inputs(node)]
    env = EnforcedDomains({name: domain for domains in below for name, domain in domains.items()})
    return map_node_exprs(node, lambda expr: _make_expr_total(expr, env))


def _make_expr_total(expr: Expr, env: Environment) -> Expr:
    def change(part: Expr) -> Expr:
        if isinstance(part, Call) and part.type == TEXT:
            _check_text_length(part, env)
        if isinstance(part, Arithmetic) and part.type.is_integer and _fits_bigint(part, env):
            return replace(part, fits=True)
        return part

    return map_expr(expr, change)


def _check_text_length(part: Call, env: Environment) -> None:
    """Text that doubles in every sub-select would exhaust memory, for rows that have any: an error that tells."""
    length = domain_of(part, env).length
    if length is None or length > MAX_TEXT_LENGTH:
        raise LimitExceeded(f"{part.function} could make text of more than {MAX_TEXT_LENGTH} characters")


def _fits_bigint(part: Arithmetic, env: Environment) -> bool:
    """The result's bounds hold for every value that the operands can have, NULL aside.

    Only bounds of whole numbers that never were doubles prove it; and -2^63 // -1 and -2^63 % -1 overflow.
    """
    left, right = domain_of(part.left, env), domain_of(part.right, env)
    proven = all(operand.is_bounded and operand.exact for operand in (left, right)) and domain_of(part, env).is_bounded
    if proven and part.op in ("//", "%"):
        return left.bounds[0] > integer_range(BIGINT)[0]
    return proven


def make_finite(expr: Expr) -> Expr:
    """A float that is NULL where it is not finite, and 0.0 for -0.0: equal values look alike."""
    return Call("finite", (expr,), DOUBLE) if expr.type.is_float else expr
