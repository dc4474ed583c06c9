"""Random expressions over the columns that a source offers. The simplest comes first in every list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dpsql.schema.domain import Domain
from dpsql.verify.columns import kind_of
from dpsql.verify.draws import Draws
from dpsql.verify.worlds import Laid, World

_PLAIN = re.compile(r"[a-z]\d+|uid|vid|code|level|word|people|visits|tests|events|calls|codes")


def quoted(name: str) -> str:
    """In quotes, unless it is one of the names that random schemas have: an owner's may be any word."""
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Name:
    """A column in scope: how a statement writes it, and what it is."""

    sql: str
    domain: Domain

    @property
    def kind(self) -> str:
        return kind_of(self.domain.type)


def names_of(laid: Laid, alias: str) -> tuple[Name, ...]:
    return tuple(Name(f"{alias}.{quoted(c.name)}", c.declared.domain) for c in laid.columns)


TINY = "0.0000000000000000000000000000001"
NUMBERS = ("1", "0", "-1", "2", "0.5", "2.5", "10", "1e3", "-0.1", "1e-300", "1e300", TINY, "9223372036854775807")
PARTS = ("year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "hour", "minute")
TRUNCATED = ("year", "quarter", "month", "week", "day", "hour")
DAYS = ("2021-06-01", "2020-02-29", "1970-01-01")


class Writer:
    """Writes expressions over `names`; sub-selects may read any table of the world."""

    def __init__(self, draws: Draws, world: World, names: Sequence[Name], unit: str | None = None) -> None:
        self._draws, self._world, self._names, self._unit = draws, world, names, unit

    def _of(self, kind: str) -> list[Name]:
        return [name for name in self._names if name.kind == kind]

    # --- numbers -----------------------------------------------------------------------------------------------------

    def number(self, depth: int) -> str:
        draws, numbers = self._draws, self._of("number")
        if depth <= 0 or not draws.chance(0.8):
            if not numbers or draws.chance(0.1):
                return draws.choice(NUMBERS)
            return draws.choice(numbers).sql
        one = self.number(depth - 1)
        match draws.below(16):
            case 0:
                return f"(-{one})"
            case 1 | 2 | 3:
                return f"({one} {draws.choice('+-*/')} {self.number(depth - 1)})"
            case 4:
                return f"CASE WHEN {self.condition(depth - 1)} THEN {one} ELSE {self.number(depth - 1)} END"
            case 5:
                return f"CASE WHEN {self.condition(depth - 1)} THEN {one} END"
            case 6:
                return f"COALESCE({one}, {self.number(depth - 1)})"
            case 7:
                return f"NULLIF({one}, {self.number(depth - 1)})"
            case 8:
                return f"{draws.choice(('GREATEST', 'LEAST'))}({one}, {self.number(depth - 1)})"
            case 9:
                return f"{draws.choice(('ABS', 'FLOOR', 'CEIL', 'ROUND', 'SIGN'))}({one})"
            case 10:
                return f"ROUND({one}, {draws.between(0, 4)})"
            case 11:
                return f"CAST({one} AS {draws.choice(('INTEGER', 'BIGINT', 'DOUBLE', 'REAL', 'DECIMAL(9,2)'))})"
            case 12:
                return f"{draws.choice(('SQRT', 'LN', 'EXP', 'LOG10'))}({one})"
            case 13:
                return f"({one} {draws.choice(('%', '//'))} {self.number(depth - 1)})"
            case 14:
                text = self.text(0)
                return draws.choice((f"LENGTH({text})", f"CAST({text} AS DOUBLE)", f"CAST({text} AS BIGINT)"))
            case _:
                return f"EXTRACT({draws.choice(PARTS)} FROM {self.time()})"

    def clipped(self, depth: int) -> str:
        """A number that is certain to have bounds."""
        bounds = ((0, 1), (-5, 5), (10, 20), (-7, -3), (0, 1000), ("-0.1", "0.1"), (0, "1e-3"))
        lower, upper = self._draws.choice(bounds)
        return f"CLIP({self.number(depth)}, {lower}, {upper})"

    def summed(self) -> str:
        """A column as it is, if it has bounds; else something clipped."""
        bounded = [name.sql for name in self._of("number") if name.domain.bounded]
        if bounded and self._draws.chance(0.5):
            return self._draws.choice(bounded)
        return self.clipped(self._draws.between(0, 2))

    # --- texts and times ---------------------------------------------------------------------------------------------

    def text(self, depth: int) -> str:
        draws, texts = self._draws, self._of("text")
        one = draws.choice(texts).sql if texts else "'7'"
        if depth <= 0:
            return one
        return draws.choice((
            one, f"UPPER({one})", f"LOWER({one})", f"SUBSTRING({one}, 1, 2)", f"COALESCE({one}, '?')",
            f"({one} || '!')", f"NULLIF({one}, 'k1')", f"TRIM({one})", f"REPLACE({one}, '1', '2')", f"LEFT({one}, 1)",
            f"REGEXP_REPLACE({one}, '[0-9]+', '#')", f"SPLIT_PART({one}, '1', 1)",
        ))  # fmt: skip

    def time(self) -> str:
        draws, times = self._draws, self._of("time")
        if times and draws.chance(0.85):
            one = draws.choice(times).sql
            return draws.choice((one, one, one, f"CAST({one} AS DATE)", f"CAST({one} AS TIMESTAMP)",
                                 f"({one} + INTERVAL '1 month')", f"({one} - INTERVAL '3 days')"))  # fmt: skip
        return f"CAST({self.text(0)} AS {draws.choice(('DATE', 'TIMESTAMP'))})"

    # --- conditions --------------------------------------------------------------------------------------------------

    def condition(self, depth: int) -> str:
        draws = self._draws
        if depth > 0 and draws.chance(0.4):
            one, other = self.condition(depth - 1), self.condition(depth - 1)
            return draws.choice((f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"))
        if depth > 0 and draws.chance(0.2):
            return self._sub_select()
        name = draws.choice(self._names)
        if draws.chance(0.15):
            return f"{name.sql} IS {draws.choice(('', 'NOT '))}NULL"
        match name.kind:
            case "number":
                return self._about_number()
            case "boolean":
                return draws.choice((name.sql, f"NOT {name.sql}", f"{name.sql} IS TRUE", f"{name.sql} = FALSE"))
            case "time":
                return f"{self.time()} {draws.choice(('<', '>=', '<>'))} '{draws.choice(DAYS)}'"
            case "text":
                one = self.text(draws.choice((0, 0, 1)))
                return draws.choice((f"{one} = 'k1'", f"{one} IN ('k1', 'a', 'own1')", f"{one} LIKE '%1'",
                                     f"{one} <> 'k1'", f"{one} >= 'a'", f"{one} ILIKE 'K%'",
                                     f"{one} BETWEEN 'a' AND 'l'"))  # fmt: skip
            case _:
                return f"{name.sql} IS NOT NULL"

    def _about_number(self) -> str:
        draws = self._draws
        one = self.number(draws.choice((0, 0, 1, 2)))
        match draws.below(3):
            case 0:
                compared = draws.choice((*NUMBERS, self.number(0)))
                return f"{one} {draws.choice(('<', '<=', '=', '<>', '>', '>='))} {compared}"
            case 1:
                return f"{one} BETWEEN {draws.choice(NUMBERS)} AND {draws.choice(NUMBERS)}"
            case _:
                return f"{one} IN ({', '.join(draws.sample(NUMBERS, 3))})"

    def _sub_select(self) -> str:
        """Along the unit; over public rows; or by what another release gave: a hole."""
        draws, world = self._draws, self._world
        laid = draws.choice(world.private)
        inner, column = Writer(draws, world, names_of(laid, "z")), world.unit_column(laid)
        number, text = inner.summed(), inner.text(0)
        table = f"{quoted(laid.name)} AS z"
        match draws.below(8):
            case 0 | 1:
                return f"{self.number(0)} > (SELECT AVG({number}) FROM {table})"
            case 2:
                return f"(SELECT COUNT(*) FROM {table} WHERE {inner.condition(0)}) > {draws.between(0, 3)}"
            case 3:
                return f"{self.text(0)} IN (SELECT {text} FROM {table} GROUP BY {text})"
            case 4 if world.public:
                known = draws.choice(world.public)
                codes = Writer(draws, world, names_of(known, "z"))
                listed = f"SELECT {codes.text(0)} FROM {quoted(known.name)} AS z"
                return f"{self.text(0)} {draws.choice(('', 'NOT '))}IN ({listed})"
            case 5 if self._unit is not None and column is not None:
                same = f"{self._unit} {draws.choice(('', 'NOT '))}IN (SELECT z.{quoted(column)} FROM {table}"
                return f"{same} WHERE {inner.condition(0)})"
            case _ if self._unit is not None and column is not None:
                same = f"FROM {table} WHERE z.{quoted(column)} = {self._unit} AND {inner.condition(0)}"
                counted = f"(SELECT COUNT(*) {same}) > {draws.between(0, 3)}"
                return draws.choice((f"EXISTS (SELECT 1 {same})", f"NOT EXISTS (SELECT 1 {same})", counted))
            case _:
                return f"{self.number(0)} > (SELECT AVG({number}) FROM {table})"

    # --- keys --------------------------------------------------------------------------------------------------------

    def key(self) -> str:
        draws = self._draws
        name = draws.choice(self._names)
        if not draws.chance(0.55):
            return name.sql
        one = name.sql
        match name.kind:
            case "number":
                return draws.choice((
                    f"({one} > 0)", f"ROUND({one})", f"FLOOR({one} / 3)", f"CAST({one} AS INTEGER) % 3",
                    f"CASE WHEN {one} < 1 THEN 'low' WHEN {one} < 9 THEN 'mid' ELSE 'high' END", f"CAST({one} AS TEXT)",
                    f"({one} * 0)", f"(-{one})", f"({self.number(2)})",
                ))  # fmt: skip
            case "time":
                return draws.choice((f"EXTRACT({draws.choice(PARTS)} FROM {self.time()})", f"CAST({one} AS DATE)",
                                     f"DATE_TRUNC('{draws.choice(TRUNCATED)}', {self.time()})"))  # fmt: skip
            case "boolean":
                return draws.choice((f"NOT {one}", f"COALESCE({one}, FALSE)", f"({one} IS NULL)"))
            case "text":
                return draws.choice((self.text(1), f"({one} IN ('k1', 'a'))", f"LENGTH({one})", f"CAST({one} AS DATE)",
                                     f"CAST({one} AS DOUBLE)"))  # fmt: skip
            case _:
                return one
