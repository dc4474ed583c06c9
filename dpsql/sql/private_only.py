"""Functions that there are over private rows alone: what to write over rows that are public or released."""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import Unsupported
from dpsql.sql.blockwise import BLOCKWISE_NAME as BLOCKWISE
from dpsql.sql.dialect import span_of, sql_name_of
from dpsql.sql.posteriors import POSTERIOR_FUNCTIONS
from dpsql.sql.scores import SCORED_FUNCTIONS

PRIVATE_ONLY_FUNCTIONS = SCORED_FUNCTIONS | POSTERIOR_FUNCTIONS | {BLOCKWISE, "randomized"}


def refuse_private_only(node: exp.Expr) -> None:
    """They are there for their noise, and what has none to hide is asked plainly."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name in PRIVATE_ONLY_FUNCTIONS:
        raise Unsupported(
            f"{sql_name_of(node)} is for private rows, and these are public or released",
            hint=f"Nothing of them is hidden: write {_plain_equivalent(name, [_node_text(part) for part in node.expressions])}.",
            span=span_of(node),
        )


def _plain_equivalent(name: str, arguments: list[str]) -> str:
    first = arguments[0] if arguments else "x"
    if name in ("private_argmax", "private_top_k"):
        score = arguments[1] if len(arguments) > 1 else "COUNT(*)"
        limit = arguments[2] if name == "private_top_k" and len(arguments) > 2 else "1"
        return f"SELECT {first} … GROUP BY {first} ORDER BY {_sum_if_plain(score)} DESC LIMIT {limit}"
    if name.startswith("dirichlet"):
        return f"SELECT {first}, COUNT(*) … GROUP BY {first}"
    if name.startswith("normal"):
        return f"AVG({first}) and STDDEV({first})"
    if name.startswith("beta") or name == "posterior_sample":
        return f"AVG(CAST({first} AS INTEGER))"
    return first


def _sum_if_plain(score: str) -> str:
    """A plain expression means its sum."""
    return score if score.endswith(")") else f"SUM({score})"


def _node_text(node: exp.Expr) -> str:
    return str(node.sql(dialect="postgres"))
