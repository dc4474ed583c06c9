"""WITH RECURSIVE over public rows and releases, such as a spine of dates: it runs after the noise, in the sandbox.

Each round reads what the last one gave, so no round may read private rows: that would be a release for each of them.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dpsql.errors import Unsupported
from dpsql.sql.block_outputs import unify_outputs
from dpsql.sql.blocks import RECURSIVE_KEY, Block, Environment, Ownership, SplitState
from dpsql.sql.dialect import span_of


def reads_itself(cte: exp.CTE) -> bool:
    return any(not table.db and table.name.lower() == cte.alias.lower() for table in cte.this.find_all(exp.Table))


def make_recursive_block(
    cte: exp.CTE, env: Environment, query: Callable[[exp.Expr, Environment], Block], state: SplitState
) -> Block:
    union = cte.this
    if not isinstance(union, exp.Union) or union.args.get("with_") is not None:
        raise Unsupported(
            "WITH RECURSIVE takes a first SELECT, UNION [ALL], and a SELECT that reads the name",
            hint=_SERIES_HINT,
            span=span_of(cte.args["alias"]),
        )
    first = query(union.left, env)
    releases = state.names
    if first.ownership is Ownership.OWNED:
        raise _private_recursion_error(cte)
    inside = {**env, cte.alias.lower(): Block(first.ownership, union.left, (), first.outputs)}
    step = query(union.right, inside)
    if step.ownership is Ownership.OWNED or state.names != releases:
        raise _private_recursion_error(cte)
    union.set("this", first.post)
    union.set("expression", step.post)
    union.meta[RECURSIVE_KEY] = True
    return Block(first.ownership, union, (), unify_outputs(first.outputs, step.outputs))


_SERIES_HINT = "Numbers and dates in a row come from generate_series, for example: FROM generate_series(1, 12) AS t(i)."


def _private_recursion_error(cte: exp.CTE) -> Unsupported:
    return Unsupported(
        "WITH RECURSIVE over private rows is not supported", hint=_SERIES_HINT, span=span_of(cte.args["alias"])
    )
