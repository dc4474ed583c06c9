"""Random FROM clauses: tables, joins along units, with public rows and with releases, sub-selects, per-unit blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsql.schema.domain import Domain
from dpsql.schema.model import ForeignUnit
from dpsql.types import BIGINT, DOUBLE
from dpsql.verify.draws import Draws
from dpsql.verify.expressions import Name, Writer, names_of, quoted
from dpsql.verify.worlds import Laid, World


@dataclass(frozen=True)
class Source:
    """A FROM clause, the columns in its scope, and the columns that are the unit."""

    sql: str
    names: tuple[Name, ...]
    units: tuple[str, ...]
    outer: tuple[Name, ...] = ()  # columns of the side of a LEFT JOIN that may be missing

    @property
    def unit(self) -> str | None:
        return self.units[0] if self.units else None


class Sources:
    def __init__(self, draws: Draws, world: World) -> None:
        self._draws, self._world, self._made = draws, world, 0

    def alias(self) -> str:
        self._made += 1
        return f"q{self._made}"

    def source(self, depth: int = 2) -> Source:
        draws = self._draws
        if depth <= 0 or not draws.chance(0.6):
            return self.table(draws.choice(self._world.private))
        makers = [self.derived, self.joined, self.joined, self.per_unit, self.window, self.with_release, self.united,
                  self.distinct]  # fmt: skip
        if self._world.public:
            makers += [self.with_public, self.with_public]
        return draws.choice(makers)(depth - 1)

    def writer(self, source: Source) -> Writer:
        return Writer(self._draws, self._world, source.names, source.unit)

    def table(self, laid: Laid) -> Source:
        alias, column = self.alias(), self._world.unit_column(laid)
        units = () if column is None else (f"{alias}.{quoted(column)}",)
        return Source(f"{quoted(laid.name)} AS {alias}", names_of(laid, alias), units)

    # --- sub-selects -------------------------------------------------------------------------------------------------

    def derived(self, depth: int) -> Source:
        """Columns passed on under other names, some computed, some rows filtered."""
        draws, inner = self._draws, self.source(depth)
        write, alias = self.writer(inner), self.alias()
        items = [(name.sql, name.domain) for name in inner.names]
        items += [(write.clipped(1), Domain(DOUBLE)) for _ in range(draws.between(0, 2))]
        where = f" WHERE {write.condition(1)}" if draws.chance(0.5) else ""
        return self._block(alias, items, inner, f"{inner.sql}{where}")

    def _block(self, alias: str, items: list[tuple[str, Domain]], inner: Source, rest: str, word: str = "") -> Source:
        """SELECT items FROM rest, as a table; its units are the items that are the inner one's."""
        listed = ", ".join(f"{sql} AS s{place}" for place, (sql, _) in enumerate(items))
        names = tuple(Name(f"{alias}.s{place}", domain) for place, (_, domain) in enumerate(items))
        units = tuple(name.sql for name, (sql, _) in zip(names, items, strict=True) if sql in inner.units)
        return Source(f"(SELECT {word}{listed} FROM {rest}) AS {alias}", names, units)

    def distinct(self, depth: int) -> Source:
        inner = self.source(depth)
        if inner.unit is None:
            return inner
        columns = self._draws.sample([name for name in inner.names if name.sql != inner.unit], 2)
        unit = next(name for name in inner.names if name.sql == inner.unit)
        items = [(name.sql, name.domain) for name in (unit, *columns)]
        return self._block(self.alias(), items, inner, inner.sql, "DISTINCT ")

    def per_unit(self, depth: int) -> Source:
        """GROUP BY the unit, and maybe something else: one row for each."""
        draws, inner = self._draws, self.source(depth)
        if inner.unit is None:
            return inner
        write = self.writer(inner)
        keys = [inner.unit, *(write.key() for _ in range(draws.choice((0, 0, 1))))]
        id_domain = next(name.domain for name in inner.names if name.sql == inner.unit)
        items = [(inner.unit, id_domain), ("COUNT(*)", Domain(BIGINT))]
        number, text = write.summed(), write.text(0)
        forms = (f"SUM({number})", f"AVG({number})", f"MAX({number})", f"MIN({number})", f"MEDIAN({number})",
                 f"STDDEV_POP({number})", f"COUNT(DISTINCT {text})", f"COUNT({number})")  # fmt: skip
        items += [(form, Domain(DOUBLE)) for form in draws.sample(forms, draws.between(1, 3))]
        picks = (f"MODE({text})", f"ARG_MAX({text}, {number})", f"ANY_VALUE({text})", f"MIN({text})")
        texts = [name for name in inner.names if name.kind == "text"]
        if texts and draws.chance(0.5):
            items.append((draws.choice(picks), replace(texts[0].domain, values=None)))
        return self._block(self.alias(), items, inner, f"{inner.sql} GROUP BY {', '.join(keys)}")

    def window(self, depth: int) -> Source:
        draws, inner = self._draws, self.source(depth)
        if inner.unit is None:
            return inner
        write = self.writer(inner)
        order = f"ORDER BY {write.key()}{draws.choice(('', ' DESC'))}"
        over = f"OVER (PARTITION BY {inner.unit} {order})"
        form = draws.choice((f"ROW_NUMBER() {over}", f"RANK() {over}", f"COUNT(*) {over}", f"NTILE(2) {over}",
                             f"SUM({write.summed()}) {over}", f"LAG({write.summed()}) {over}",
                             f"MAX({write.summed()}) OVER (PARTITION BY {inner.unit})"))  # fmt: skip
        items = [*((name.sql, name.domain) for name in inner.names), (form, Domain(DOUBLE))]
        return self._block(self.alias(), items, inner, inner.sql)

    def united(self, depth: int) -> Source:
        """Rows of two relations, one after the other; or as sets, where the unit is among the columns."""
        draws, left, right = self._draws, self.source(depth), self.source(0)
        word, shared = "UNION ALL", self._common(left, right)
        if shared and draws.chance(0.4):
            word = draws.choice(("UNION", "INTERSECT", "EXCEPT"))
        if not shared:
            return left
        sides = [", ".join(f"{pair[at].sql} AS s{place}" for place, pair in enumerate(shared)) for at in (0, 1)]
        alias = self.alias()
        sql = f"(SELECT {sides[0]} FROM {left.sql} {word} SELECT {sides[1]} FROM {right.sql}) AS {alias}"
        names = tuple(Name(f"{alias}.s{place}", Domain(pair[0].domain.type)) for place, pair in enumerate(shared))
        return Source(sql, names, (names[0].sql,))

    def _common(self, left: Source, right: Source) -> list[tuple[Name, Name]]:
        """The units, and pairs of columns of one type."""
        if left.unit is None or right.unit is None:
            return []
        free = [[name for name in side.names if name.sql not in side.units] for side in (left, right)]
        pairs = [(a, b) for a in free[0] for b in free[1] if a.domain.type == b.domain.type]
        ids = [next(n for n in side.names if n.sql == side.unit) for side in (left, right)]
        return [(ids[0], ids[1]), *self._draws.sample(pairs, 2)] if pairs else []

    # --- joins -------------------------------------------------------------------------------------------------------

    def joined(self, depth: int) -> Source:
        """Along the unit, or along a foreign key; sometimes neither, which is to be refused."""
        draws, left = self._draws, self.source(depth)
        target = draws.choice(self._world.private)
        right = self.table(target)
        ways = self._ways(left, right, target)
        if not ways or draws.chance(0.04):
            ways = ["TRUE"]
        kind = draws.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        on = draws.choice(ways)
        both = left.names + right.names
        if draws.chance(0.25 if kind == "JOIN" else 0.5):
            on = f"{on} AND {Writer(draws, self._world, both).condition(0)}"
        units = {"JOIN": left.units + right.units, "LEFT JOIN": left.units, "RIGHT JOIN": right.units}.get(kind, ())
        return Source(f"{left.sql} {kind} {right.sql} ON {on}", both, units, right.names if kind == "LEFT JOIN" else ())

    def _ways(self, left: Source, right: Source, target: Laid) -> list[str]:
        found = [f"{left.unit} = {right.unit}"] if left.unit is not None and right.unit is not None else []
        for laid in self._world.private:
            hop = laid.table.unit
            if isinstance(hop, ForeignUnit):
                one, other = quoted(hop.column), quoted(hop.key)
                if hop.table == target.name:  # from the far table to this one
                    found += _equated(left, one, right, other)
                elif laid.name == target.name:
                    found += _equated(left, other, right, one)
        return found

    def with_public(self, depth: int) -> Source:
        draws, left = self._draws, self.source(depth)
        right = self.table(draws.choice(self._world.public))
        pairs = [f"{a.sql} = {b.sql}" for a in left.names for b in right.names if a.domain.type == b.domain.type]
        on = draws.choice([*pairs[:4], "TRUE"])
        if draws.chance(0.2):
            on = f"{on} AND {Writer(draws, self._world, left.names + right.names).condition(0)}"
        match draws.below(6):
            case 0 | 1 | 2:
                return Source(f"{left.sql} JOIN {right.sql} ON {on}", left.names + right.names, left.units)
            case 3 | 4:
                sql = f"{left.sql} LEFT JOIN {right.sql} ON {on}"
                return Source(sql, left.names + right.names, left.units, right.names)
            case _:
                return Source(f"{right.sql} LEFT JOIN {left.sql} ON {on}", left.names + right.names, left.units)

    def with_release(self, depth: int) -> Source:
        """Joined with what another question gave: rows that a hole holds."""
        draws, left, laid = self._draws, self.source(depth), self._draws.choice(self._world.private)
        inner = self.table(laid)
        write, alias = self.writer(inner), self.alias()
        texts = [name for name in left.names if name.kind == "text"]
        if not texts:
            return left
        key = draws.choice([name for name in inner.names if name.kind == "text"] or [inner.names[0]])
        figures = f"COUNT(*) AS n, AVG({write.summed()}) AS a"
        sql = f"(SELECT {key.sql} AS k, {figures} FROM {inner.sql} GROUP BY {key.sql}) AS {alias}"
        names = (Name(f"{alias}.k", key.domain), Name(f"{alias}.n", Domain(BIGINT)), Name(f"{alias}.a", Domain(DOUBLE)))
        on = f"{draws.choice(texts).sql} = {alias}.k"
        kind = draws.choice(("JOIN", "LEFT JOIN"))
        return Source(f"{left.sql} {kind} {sql} ON {on}", left.names + names, left.units)


def _equated(left: Source, one: str, right: Source, other: str) -> list[str]:
    """Columns of these names, of either side, where both have one."""
    found = [next((n.sql for n in side.names if n.sql.endswith(f".{name}")), None)
             for side, name in ((left, one), (right, other))]  # fmt: skip
    return [] if None in found else [f"{found[0]} = {found[1]}"]
