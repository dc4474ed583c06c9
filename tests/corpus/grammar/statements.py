"""Random statements over the hospital: what a source offers, filtered, grouped, aggregated, and what comes after.

What is generated is SQL that means the same in PostgreSQL and in DuckDB. Every statement comes with a second form for
DuckDB that also counts the units of each group: a key that few units share may be left out by partition selection.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random

from tests.corpus.grammar.sources import Sources


@dataclass(frozen=True)
class Statement:
    """`keys` columns lead the answer; `reference` has the units of each group as one more column, if there are keys.

    `loose` is for moments, whose values are rounded to a coarser grid.
    """

    sql: str
    reference: str
    keys: int
    loose: bool = False


def generate(rng: Random) -> Statement:
    return Generator(rng).statement()


class Generator(Sources):
    def statement(self) -> Statement:
        source = self.source(2)
        keys = self.keys(source, self.rng.choice((0, 1, 1, 1, 2, 2)))
        aggregates = [self.aggregate(source) for _ in range(self.rng.randint(1, 3))]
        loose = any("STDDEV" in item or "VAR_" in item for item in aggregates)
        where = f" WHERE {self.condition(source, 2)}" if self.often(0.6) else ""
        group, levels = self.grouping(keys)
        items = [f"{key} AS k{place}" for place, key in enumerate(keys)] + levels
        items += [f"{item} AS a{place}" for place, item in enumerate(aggregates)]
        having = f" HAVING {self.rng.choice(('COUNT(*) > 40', 'COUNT(*) >= 0'))}" if keys and self.often(0.2) else ""
        body = f"FROM {source.sql}{where}{group}{having}"
        units = [f"COUNT(DISTINCT {source.unit}) AS units"] if keys else []
        shown, counted = f"SELECT {', '.join(items)} {body}", f"SELECT {', '.join(items + units)} {body}"
        plain = Statement(shown, counted, len(keys) + len(levels), loose)
        return self.wrapped(plain) if not levels and self.often(0.25) else plain

    def grouping(self, keys: list[str]) -> tuple[str, list[str]]:
        """GROUP BY, and columns that tell rolled-up keys from missing ones."""
        if not keys:
            return "", []
        if self.often(0.12):
            how = self.rng.choice(("ROLLUP", "CUBE"))
            return f" GROUP BY {how} ({', '.join(keys)})", [f"GROUPING({', '.join(keys)}) AS level"]
        return f" GROUP BY {', '.join(self.spelled_keys(keys))}", []

    def spelled_keys(self, keys: list[str]) -> list[str]:
        return [self.rng.choice((key, str(place + 1))) for place, key in enumerate(keys)]

    def wrapped(self, inner: Statement) -> Statement:
        """The statement as a sub-select or a CTE, with arithmetic over it that keeps its rows."""
        shown = ", ".join([f"k{place}" for place in range(inner.keys)] + ["COALESCE(a0, 0) + 1 AS b0"])
        counted = f"SELECT {shown}{', units' if inner.keys else ''} FROM ({inner.reference}) AS t"
        if self.often(0.5):
            return replace(inner, sql=f"WITH t AS ({inner.sql}) SELECT {shown} FROM t", reference=counted)
        alias = self.rng.choice(('"source"', "anon_1", '"_"'))
        return replace(inner, sql=f"SELECT {shown} FROM ({inner.sql}) AS {alias}", reference=counted)


def broken(rng: Random, sql: str) -> str:
    """The statement with a few words lost, doubled, swapped or taken from elsewhere: mostly nonsense."""
    words = re.findall(r"'[^']*'|\w+|\s+|[^\w\s]", sql)
    for _ in range(rng.randint(1, 3)):
        place, other = rng.randrange(len(words)), rng.randrange(len(words))
        match rng.randrange(4):
            case 0:
                words[place] = " "
            case 1:
                words[place] = f"{words[place]} {words[place]}"
            case 2:
                words[place], words[other] = words[other], words[place]
            case _:
                words[place] = rng.choice(("NULL", "0", "*", "''", "DISTINCT", "COUNT(*)", "patient_id", "ORDER BY 1",
                                           "LIMIT 1", "OVER ()", "1.5", "DATE '2024-01-01'", "(SELECT 1)"))  # fmt: skip
    return "".join(words)
