"""Statements that work something out within each unit before they aggregate, over the worlds of `worlds`."""

from __future__ import annotations

from random import Random

from support.worlds import World

PER_GROUP = "contribution_bounds_per_group"

BOUNDED = (
    "SELECT {a} FROM {table}",
    "SELECT {a}, {b} FROM {table}",
    "SELECT {key}, {a}, {b} FROM {table} GROUP BY {key}",
    "SELECT {key}, {a}, COUNT(*), SUM({n}) FILTER (WHERE {c}) FROM {table} GROUP BY {key}",
    "SELECT {key}, {a} FILTER (WHERE {c}) FROM {table} WHERE {c} OR {t} IS NULL GROUP BY {key}",
)
"""With bounds per group: `a` and `b` are aggregates with bounds."""


def bounded_statement(world: World, rng: Random) -> str:
    """A block with bounds per group, in one group, in listed groups or in selected ones."""
    table = rng.choice(world.tables)
    numbers = [column.name for column in table.columns if column.far] or ["1"]
    text = next(column.name for column in table.columns if column.own)
    number = rng.choice(numbers)

    def aggregate() -> str:
        low, high = rng.choice((("0", "1"), ("-2", "5"), ("-7", "-3"), ("3", "3"), ("0", "1000000")))
        what = rng.choice((f"SUM({rng.choice(numbers)}", f"AVG({number}", "COUNT(*", f"COUNT({number}"))
        return f"{what}, {PER_GROUP} => ({low}, {high}))"

    return rng.choice(BOUNDED).format(
        a=aggregate(), b=aggregate(), n=number, t=text, table=table.name, c=f"{number} > 0",
        key=rng.choice((text, f"{text} IN ('own0', 'own1')", f"{number} > 0")),
    )  # fmt: skip


PICKS = (
    "ARG_MAX({t}, {n})", "ARG_MIN({t}, {n})", "MAX_BY({n}, {t})", "MIN_BY({n}, {m}) FILTER (WHERE {c})", "MODE({t})",
    "MODE({n}) FILTER (WHERE {c})", "ANY_VALUE({t})", "ANY_VALUE({c})", "FIRST({t} ORDER BY {n} DESC)",
    "LAST({n} ORDER BY {t}, {m})", "MEDIAN({n})", "VAR_POP({n})", "VAR_SAMP({n})", "STDDEV({n})", "STDDEV_POP({n})",
)  # fmt: skip
"""Of each unit's rows, to be aggregated again."""


def picking_statement(world: World, rng: Random) -> str:
    """Picks and spreads of each unit's rows, as keys and as what is summed, counted and compared."""
    if world.uid is None:
        return bounded_statement(world, rng)
    table = world.tables[0] if world.shape == "two hops" else world.tables[-1]
    numbers = [column.name for column in table.columns if column.far] or ["1"]
    text = next(column.name for column in table.columns if column.own)
    number, other = rng.choice(numbers), rng.choice(numbers)
    pick = rng.choice(PICKS).format(t=text, n=number, m=other, c=f"{number} > 0")
    keys = rng.choice(("uid", f"uid, {text}", f"uid, {number} > 0"))
    inner = f"SELECT {pick} AS x, COUNT(*) AS n FROM {table.name} GROUP BY {keys}"
    asked = rng.choice(("COUNT(x)", "SUM(n)", "COUNT(*) FILTER (WHERE x IS NOT NULL)", "COUNT(DISTINCT x)", "AVG(n)"))
    group = rng.choice(("", " GROUP BY x", " GROUP BY x IS NULL"))
    return f"SELECT {asked} FROM ({inner}) AS t{group}"
