"""Functions that there are over private rows alone: what to write over rows that are public or released."""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import Unsupported
from dpsql.sql.blockwise import NAME as BLOCKWISE
from dpsql.sql.dialect import span_of, spelled
from dpsql.sql.posteriors import POSTERIORS
from dpsql.sql.scores import SCORED

NAMES = SCORED | POSTERIORS | {BLOCKWISE, "randomized"}


def refuse_private_only(node: exp.Expr) -> None:
    """They are there for their noise, and what has none to hide is asked plainly."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name in NAMES:
        raise Unsupported(
            f"{spelled(node)} is for private rows, and these are public or released",
            hint=f"Nothing of them is hidden: write {_plainly(name, [_text(part) for part in node.expressions])}.",
            span=span_of(node),
        )


def _plainly(name: str, given: list[str]) -> str:
    first = given[0] if given else "x"
    if name in ("private_argmax", "private_top_k"):
        score = given[1] if len(given) > 1 else "COUNT(*)"
        most = given[2] if name == "private_top_k" and len(given) > 2 else "1"
        return f"SELECT {first} … GROUP BY {first} ORDER BY {_summed(score)} DESC LIMIT {most}"
    if name.startswith("dirichlet"):
        return f"SELECT {first}, COUNT(*) … GROUP BY {first}"
    if name.startswith("normal"):
        return f"AVG({first}) and STDDEV({first})"
    if name.startswith("beta") or name == "posterior_sample":
        return f"AVG(CAST({first} AS INTEGER))"
    return first


def _summed(score: str) -> str:
    """A plain expression means its sum."""
    return score if score.endswith(")") else f"SUM({score})"


def _text(node: exp.Expr) -> str:
    return str(node.sql(dialect="postgres"))
