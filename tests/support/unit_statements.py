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
