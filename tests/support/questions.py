"""Random aggregate queries over a world, of everything that is answered: joins, filters, keys, sums of expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from support.columns import Spec
from support.worlds import World

from dpsql.schema.domain import Domain
from dpsql.types import BIGINT


@dataclass(frozen=True)
class Name:
    """A column in scope: how a query writes it, and what it is."""

    sql: str
    kind: str  # number, text, boolean, time
    domain: Domain


@dataclass(frozen=True)
class Source:
    """A FROM clause, the columns in its scope, and the columns that are the unit."""

    sql: str
    names: tuple[Name, ...]
    units: tuple[str, ...]
    outer: tuple[Name, ...] = ()  # columns of the side of a LEFT JOIN that may be missing


PLAIN = (
    "SUM({0})", "SUM({0})", "AVG({0})", "COUNT({0})", "COUNT(*), SUM({0})", "COUNT(*), AVG({0})", "VAR_POP({0})",
    "STDDEV({0}), COUNT(*)", "CORR({0}, {0})", "SUM(DISTINCT {0})", "COUNT(DISTINCT {1})", "BOOL_OR({0} > 0)",
)  # fmt: skip


def plain_question(world: World, rng: Random) -> str:
    """A column summed as it is, alone or with its count, in one group or by a key."""
    table = rng.choice(world.tables)
    number = next((c.name for c in table.columns if c.far), None)
    text = next(c.name for c in table.columns if c.own)
    if number is None:
        return f"SELECT COUNT(*) FROM {table.name}"
    asked = rng.choice(PLAIN)
    group = rng.choice(("", "", f" GROUP BY {text}", f" GROUP BY {text} IN ('own0', 'own1')"))
    return f"SELECT {asked.format(number, text)} FROM {table.name}{group}"


def random_question(world: World, rng: Random) -> str:
    return Question(world, rng).text()


class Question:
    def __init__(self, world: World, rng: Random) -> None:
        self._world, self._rng = world, rng
        self._source = random_source(world, rng)
        self._write = Writer(rng, self._source.names)

    def text(self) -> str:
        rng = self._rng
        keys = [self._write.key() for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 3)))]
        if self._source.outer and self._source.units and rng.random() < 0.5:
            # A unit's rows of one side lie in several groups of the other's columns: some have no match.
            key = rng.choice(self._source.outer).sql
            return f"SELECT COUNT(DISTINCT {self._source.units[0]}) FROM {self._source.sql} GROUP BY {key} IS NULL"
        aggregates = [self._aggregate() for _ in range(rng.choice((1, 1, 2, 3)))]
        items = ", ".join([*keys, *aggregates])
        where = f" WHERE {self._write.condition(2)}" if rng.random() < 0.4 else ""
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        having = " HAVING COUNT(*) > 0" if rng.random() < 0.05 else ""
        return f"SELECT {items} FROM {self._source.sql}{where}{group}{having}"

    def _aggregate(self) -> str:
        rng = self._rng
        written = self._plain_aggregate()
        if rng.random() < 0.2:
            return f"{written} FILTER (WHERE {self._write.condition(1)})"
        return written

    def _plain_aggregate(self) -> str:
        rng, write = self._rng, self._write
        chosen = rng.random()
        if chosen < 0.2:
            return "COUNT(*)"
        if chosen < 0.3:
            return f"COUNT({rng.choice(self._source.names).sql})"
        if chosen < 0.4 and self._source.units:
            return f"COUNT(DISTINCT {rng.choice(self._source.units)})"
        if chosen < 0.5:
            return f"COUNT(DISTINCT {self._distinct()})"
        if chosen < 0.55:
            return f"{rng.choice(('BOOL_AND', 'BOOL_OR'))}({write.condition(1)})"
        if chosen < 0.65:
            return f"{rng.choice(PAIRED)}({self._summed()}, {self._summed()})"
        return f"{rng.choice(SUMMED)}({rng.choice(('', '', '', 'DISTINCT '))}{self._summed()})"

    def _summed(self) -> str:
        return self._write.number(0) if self._rng.random() < 0.3 else self._write.clipped(self._rng.randint(0, 2))

    def _distinct(self) -> str:
        rng, names = self._rng, self._source.names
        columns = [rng.choice(names).sql for _ in range(rng.choice((1, 1, 1, 2)))]
        if rng.random() < 0.3:
            columns = [self._write.number(2)]
        return ", ".join(columns) if rng.random() < 0.5 or len(columns) == 1 else f"({', '.join(columns)})"


# --- FROM ------------------------------------------------------------------------------------------------------------


def random_source(world: World, rng: Random) -> Source:
    table = rng.choice(world.tables)
    chosen = rng.random()
    if world.uid is not None and chosen < 0.35:
        return _joined(world, rng)
    if chosen < 0.55:
        return _derived(_single(world, table.name, table.name), rng)
    return _single(world, table.name, table.name)


def _names(specs: Sequence[Spec], alias: str) -> tuple[Name, ...]:
    return tuple(Name(f"{alias}.{spec.name}", spec.kind, spec.declared.domain) for spec in specs)


def _single(world: World, table: str, alias: str) -> Source:
    spec = world.table(table)
    has_uid = any(column.name == "uid" for column in spec.ids)
    sql = table if table == alias else f"{table} AS {alias}"
    return Source(sql, _names(spec.all_columns, alias), (f"{alias}.uid",) if has_uid else ())


def _derived(inner: Source, rng: Random) -> Source:
    """A sub-select: columns passed on under other names, some computed, some rows filtered."""
    write = Writer(rng, inner.names)
    names: list[Name] = []
    items: list[str] = []
    for place, name in enumerate(inner.names):
        items.append(f"{name.sql} AS s{place}")
        names.append(Name(f"s{place}", name.kind, name.domain))
    for place in range(rng.randint(0, 2)):
        items.append(f"{write.clipped(1)} AS c{place}")
        names.append(Name(f"c{place}", "number", Domain(BIGINT)))
    units = tuple(f"s{p}" for p, name in enumerate(inner.names) if name.sql in inner.units)
    where = f" WHERE {write.condition(1)}" if rng.random() < 0.5 else ""
    return Source(f"(SELECT {', '.join(items)} FROM {inner.sql}{where}) AS q", tuple(names), units)


def _joined(world: World, rng: Random) -> Source:
    kind = rng.choice(("JOIN", "JOIN", "LEFT JOIN"))
    names = [table.name for table in world.tables]
    if rng.random() < 0.1:
        # Rows of two units would meet: to be refused.
        return _join(world, (rng.choice(names), "a"), (rng.choice(names), "b"), kind, "TRUE", rng)
    if len(names) == 1:
        return _join(world, (names[0], "a"), (names[0], "b"), kind, "a.uid = b.uid", rng)
    if "tests" in names and rng.random() < 0.6:
        if rng.random() < 0.5:
            return _join(world, ("tests", "a"), ("visits", "b"), kind, "a.vid = b.vid", rng)
        if rng.random() < 0.4:
            return _join(world, ("visits", "a"), ("tests", "b"), kind, "b.vid = a.vid", rng)
        inner = _join(world, ("tests", "a"), ("visits", "b"), "JOIN", "a.vid = b.vid", rng)
        people = _single(world, "people", "c")
        both = (*inner.names, *people.names)
        return Source(f"{inner.sql} {kind} people AS c ON b.uid = c.uid", both, ("b.uid",))
    pairs = [("visits", "people"), ("people", "visits"), ("visits", "visits")]
    left, right = rng.choice(pairs)
    return _join(world, (left, "a"), (right, "b"), kind, "a.uid = b.uid", rng)


def _join(world: World, left: tuple[str, str], right: tuple[str, str], kind: str, on: str, rng: Random) -> Source:
    first, second = _single(world, *left), _single(world, *right)
    names = first.names + second.names
    if rng.random() < (0.25 if kind == "JOIN" else 0.6):
        on = f"{on} AND {Writer(rng, names).condition(0)}"
    units = first.units + (second.units if kind == "JOIN" else ())
    outer = second.names if kind == "LEFT JOIN" else ()
    return Source(f"{first.sql} {kind} {second.sql} ON {on}", names, units, outer)


# --- expressions -----------------------------------------------------------------------------------------------------

TINY = "0.0000000000000000000000000000001"
NUMBERS = ("0", "1", "-1", "2", "0.5", "2.5", "10", "1e3", "-0.1", "1e-300", "1e300", TINY, "9223372036854775807")
SUMMED = ("SUM", "SUM", "AVG", "VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV")
PAIRED = ("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_COUNT", "REGR_AVGX")
PARTS = ("year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "hour", "minute")
TRUNCATED = ("year", "quarter", "month", "week", "day", "hour")


class Writer:
    """Writes expressions over some columns."""

    def __init__(self, rng: Random, names: Sequence[Name]) -> None:
        self._rng, self._names = rng, names

    def _of(self, kind: str) -> list[Name]:
        return [name for name in self._names if name.kind == kind]

    def number(self, depth: int) -> str:
        rng, numbers = self._rng, self._of("number")
        if depth <= 0 or rng.random() < 0.2:
            if not numbers or rng.random() < 0.1:
                return rng.choice(NUMBERS)
            return rng.choice(numbers).sql
        one = self.number(depth - 1)
        match rng.randrange(14):
            case 0 | 1 | 2:
                return f"({one} {rng.choice('+-*/')} {self.number(depth - 1)})"
            case 3:
                return f"CASE WHEN {self.condition(depth - 1)} THEN {one} ELSE {self.number(depth - 1)} END"
            case 4:
                return f"CASE WHEN {self.condition(depth - 1)} THEN {one} END"
            case 5:
                return f"COALESCE({one}, {self.number(depth - 1)})"
            case 6:
                return f"NULLIF({one}, {self.number(depth - 1)})"
            case 7:
                return f"{rng.choice(('GREATEST', 'LEAST'))}({one}, {self.number(depth - 1)})"
            case 8:
                return f"{rng.choice(('ABS', 'FLOOR', 'CEIL', 'ROUND'))}({one})"
            case 9:
                return f"ROUND({one}, {rng.randint(0, 4)})"
            case 10:
                return f"CAST({one} AS {rng.choice(('INTEGER', 'BIGINT', 'DOUBLE', 'REAL', 'DECIMAL(9,2)'))})"
            case 11:
                texts = self._of("text")
                text = rng.choice(texts).sql if texts else "'7'"
                return rng.choice((f"LENGTH({text})", f"CAST({text} AS {rng.choice(('DOUBLE', 'BIGINT'))})"))
            case 12:
                return self._extract()
            case _:
                return f"(-{one})"

    def _time(self) -> str:
        rng, times, texts = self._rng, self._of("time"), self._of("text")
        if times and rng.random() < 0.8:
            name = rng.choice(times).sql
            return name if rng.random() < 0.8 else f"CAST({name} AS {rng.choice(('DATE', 'TIMESTAMP'))})"
        text = rng.choice(texts).sql if texts else "'2020-01-01'"
        return f"CAST({text} AS {rng.choice(('DATE', 'TIMESTAMP'))})"

    def _extract(self) -> str:
        return f"EXTRACT({self._rng.choice(PARTS)} FROM {self._time()})"

    def clipped(self, depth: int) -> str:
        """A number that is certain to have bounds."""
        lower, upper = self._rng.choice(((0, 1), (-5, 5), (10, 20), (-7, -3), (0, 1000), ("-0.1", "0.1"), (0, "1e-3")))
        return f"CLIP({self.number(depth)}, {lower}, {upper})"

    def condition(self, depth: int) -> str:
        rng = self._rng
        if depth > 0 and rng.random() < 0.4:
            one, other = self.condition(depth - 1), self.condition(depth - 1)
            return rng.choice((f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"))
        name = rng.choice(self._names)
        if rng.random() < 0.15:
            return f"{name.sql} IS {rng.choice(('', 'NOT '))}NULL"
        match name.kind:
            case "number":
                return self._about_number()
            case "boolean":
                return rng.choice((name.sql, f"NOT {name.sql}", f"{name.sql} IS TRUE", f"{name.sql} = FALSE"))
            case "time":
                day = rng.choice(("2020-02-29", "2021-06-01", "1970-01-01"))
                return f"{name.sql} {rng.choice(('<', '>=', '<>'))} '{day}'"
            case _:
                return rng.choice(
                    (f"{name.sql} IN ('k1', 'a', 'own1')", f"{name.sql} LIKE '%1'", f"{name.sql} <> 'k1'",
                     f"LOWER({name.sql}) = 'k1'", f"{name.sql} >= 'a'")
                )

    def _about_number(self) -> str:
        rng, one = self._rng, self.number(rng_depth(self._rng))
        match rng.randrange(3):
            case 0:
                return f"{one} BETWEEN {rng.choice(NUMBERS)} AND {rng.choice(NUMBERS)}"
            case 1:
                return f"{one} IN ({', '.join(rng.sample(NUMBERS, 3))})"
            case _:
                return f"{one} {rng.choice(('<', '<=', '=', '<>', '>', '>='))} {rng.choice((*NUMBERS, self.number(0)))}"

    def key(self) -> str:
        rng = self._rng
        name = rng.choice(self._names)
        if rng.random() < 0.45:
            return name.sql
        match name.kind:
            case "number":
                return rng.choice(
                    (f"ROUND({name.sql})", f"FLOOR({name.sql} / 3)", f"({name.sql} > 0)", f"({name.sql} * 0)",
                     f"CAST({name.sql} AS INTEGER) % 3", f"CAST({name.sql} AS TEXT)",
                     f"CASE WHEN {name.sql} < 1 THEN 'low' WHEN {name.sql} < 9 THEN 'mid' ELSE 'high' END",
                     f"(-{name.sql})", f"({self.number(2)})")
                )
            case "time":
                part, cut = rng.choice(PARTS), rng.choice(TRUNCATED)
                return rng.choice((f"EXTRACT({part} FROM {self._time()})", f"DATE_TRUNC('{cut}', {self._time()})",
                                   f"CAST({name.sql} AS DATE)"))  # fmt: skip
            case "boolean":
                return rng.choice((f"NOT {name.sql}", f"COALESCE({name.sql}, FALSE)", f"{name.sql} IS NULL"))
            case _:
                return rng.choice(
                    (f"SUBSTRING({name.sql}, 1, 2)", f"UPPER({name.sql})", f"COALESCE({name.sql}, '?')",
                     f"({name.sql} || '!')", f"CAST({name.sql} AS DATE)", f"CAST({name.sql} AS DOUBLE)",
                     f"NULLIF({name.sql}, 'k1')", f"({name.sql} IN ('k1', 'a'))", f"LENGTH({name.sql})")
                )


def rng_depth(rng: Random) -> int:
    return rng.choice((0, 0, 1, 2))



