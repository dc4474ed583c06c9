"""Random FROM clauses: tables, joins along units, with public rows and with releases, sub-selects, per-unit blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsql.schema.model import Domain
from dpsql.types import BIGINT, DOUBLE
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.expressions import (
    ExpressionGenerator,
    ScopedColumn,
    columns_in_scope,
    columns_of_link,
    quote_name,
)
from dpsql.verify.generate.key_links import find_key_links
from dpsql.verify.generate.schemas import GeneratedSchema, StoredTable


@dataclass(frozen=True)
class FromClause:
    """A FROM clause, the columns in its scope, and the columns that are the unit."""

    sql: str
    names: tuple[ScopedColumn, ...]
    units: tuple[str, ...]
    outer: tuple[ScopedColumn, ...] = ()  # columns of the side of an outer join that may be missing

    @property
    def unit(self) -> str | None:
        return self.units[0] if self.units else None


class FromClauseGenerator:
    def __init__(self, choices: ChoiceStream, generated: GeneratedSchema) -> None:
        self._choices, self._generated, self._alias_count = choices, generated, 0

    def next_alias(self) -> str:
        self._alias_count += 1
        return f"q{self._alias_count}"

    def random_from(self, depth: int = 2) -> FromClause:
        choices = self._choices
        if depth <= 0 or not choices.draw_bool(0.6):
            return self.from_table(choices.choice(self._generated.private_tables))
        makers = [
            self.random_derived_table,
            self.random_join,
            self.random_join,
            self.random_per_unit,
            self.random_window,
            self.random_release_join,
            self.random_set_operation,
            self.random_distinct,
            self.random_anti_join,
        ]
        if self._generated.public_tables:
            makers += [self.random_public_join, self.random_public_join, self.random_counted_join]
        return choices.choice(makers)(depth - 1)

    def expressions_over(self, source: FromClause) -> ExpressionGenerator:
        return ExpressionGenerator(self._choices, self._generated, source.names, source.unit)

    def from_table(self, stored: StoredTable) -> FromClause:
        alias, column = self.next_alias(), self._generated.unit_column(stored)
        units = () if column is None else (f"{alias}.{quote_name(column)}",)
        return FromClause(f"{quote_name(stored.name)} AS {alias}", columns_in_scope(stored, alias), units)

    # --- sub-selects -------------------------------------------------------------------------------------------------

    def random_derived_table(self, depth: int) -> FromClause:
        """Columns passed on under other names, some computed, some rows filtered."""
        choices, inner = self._choices, self.random_from(depth)
        write, alias = self.expressions_over(inner), self.next_alias()
        items = [(name.sql, name.domain) for name in inner.names]
        items += [(write.random_clipped(1), Domain(DOUBLE)) for _ in range(choices.draw_between(0, 2))]
        where = f" WHERE {write.random_condition(1)}" if choices.draw_bool(0.5) else ""
        return self._derived_table(alias, items, inner, f"{inner.sql}{where}")

    def _derived_table(
        self, alias: str, items: list[tuple[str, Domain]], inner: FromClause, rest: str, word: str = ""
    ) -> FromClause:
        """SELECT items FROM rest, as a table; its units are the items that are the inner one's."""
        listed = ", ".join(f"{sql} AS s{index}" for index, (sql, _) in enumerate(items))
        origins = {name.sql: name.origin for name in inner.names}
        names = tuple(
            ScopedColumn(f"{alias}.s{index}", domain, origins.get(sql)) for index, (sql, domain) in enumerate(items)
        )
        units = tuple(name.sql for name, (sql, _) in zip(names, items, strict=True) if sql in inner.units)
        return FromClause(f"(SELECT {word}{listed} FROM {rest}) AS {alias}", names, units)

    def random_distinct(self, depth: int) -> FromClause:
        inner = self.random_from(depth)
        if inner.unit is None:
            return inner
        columns = self._choices.sample([name for name in inner.names if name.sql != inner.unit], 2)
        unit = next(name for name in inner.names if name.sql == inner.unit)
        items = [(name.sql, name.domain) for name in (unit, *columns)]
        return self._derived_table(self.next_alias(), items, inner, inner.sql, "DISTINCT ")

    def random_per_unit(self, depth: int) -> FromClause:
        """GROUP BY the unit, and maybe something else: one row for each."""
        choices, inner = self._choices, self.random_from(depth)
        if inner.unit is None:
            return inner
        write = self.expressions_over(inner)
        keys = [inner.unit, *(write.random_key() for _ in range(choices.choice((0, 0, 1))))]
        id_domain = next(name.domain for name in inner.names if name.sql == inner.unit)
        items = [(inner.unit, id_domain), ("COUNT(*)", Domain(BIGINT))]
        number, text = write.random_bounded(), write.random_text(0)
        forms = (f"SUM({number})", f"AVG({number})", f"MAX({number})", f"MIN({number})", f"MEDIAN({number})",
                 f"STDDEV_POP({number})", f"COUNT(DISTINCT {text})", f"COUNT({number})")  # fmt: skip
        items += [(form, Domain(DOUBLE)) for form in choices.sample(forms, choices.draw_between(1, 3))]
        picks = (f"MODE({text})", f"ARG_MAX({text}, {number})", f"ANY_VALUE({text})", f"MIN({text})")
        texts = [name for name in inner.names if name.kind == "text"]
        if texts and choices.draw_bool(0.5):
            items.append((choices.choice(picks), replace(texts[0].domain, values=None)))
        return self._derived_table(self.next_alias(), items, inner, f"{inner.sql} GROUP BY {', '.join(keys)}")

    def random_window(self, depth: int) -> FromClause:
        choices, inner = self._choices, self.random_from(depth)
        if inner.unit is None:
            return inner
        write = self.expressions_over(inner)
        order = f"ORDER BY {write.random_key()}{choices.choice(('', ' DESC'))}"
        over = f"OVER (PARTITION BY {inner.unit} {order})"
        form = choices.choice((f"ROW_NUMBER() {over}", f"RANK() {over}", f"COUNT(*) {over}", f"NTILE(2) {over}",
                             f"SUM({write.random_bounded()}) {over}", f"LAG({write.random_bounded()}) {over}",
                             f"MAX({write.random_bounded()}) OVER (PARTITION BY {inner.unit})"))  # fmt: skip
        items = [*((name.sql, name.domain) for name in inner.names), (form, Domain(DOUBLE))]
        return self._derived_table(self.next_alias(), items, inner, inner.sql)

    def random_set_operation(self, depth: int) -> FromClause:
        """Rows of two relations, one after the other; or as sets, where the unit is among the columns."""
        choices, left, right = self._choices, self.random_from(depth), self.random_from(0)
        word, shared = "UNION ALL", self._common_columns(left, right)
        if shared and choices.draw_bool(0.4):
            word = choices.choice(("UNION", "INTERSECT", "EXCEPT"))
        if not shared:
            return left
        sides = [", ".join(f"{pair[side].sql} AS s{index}" for index, pair in enumerate(shared)) for side in (0, 1)]
        alias = self.next_alias()
        sql = f"(SELECT {sides[0]} FROM {left.sql} {word} SELECT {sides[1]} FROM {right.sql}) AS {alias}"
        names = tuple(
            ScopedColumn(f"{alias}.s{index}", Domain(pair[0].domain.type)) for index, pair in enumerate(shared)
        )
        return FromClause(sql, names, (names[0].sql,))

    def _common_columns(self, left: FromClause, right: FromClause) -> list[tuple[ScopedColumn, ScopedColumn]]:
        """The units, and pairs of columns of one type."""
        if left.unit is None or right.unit is None:
            return []
        free = [[name for name in side.names if name.sql not in side.units] for side in (left, right)]
        pairs = [(a, b) for a in free[0] for b in free[1] if a.domain.type == b.domain.type]
        ids = [next(n for n in side.names if n.sql == side.unit) for side in (left, right)]
        return [(ids[0], ids[1]), *self._choices.sample(pairs, 2)] if pairs else []

    # --- joins -------------------------------------------------------------------------------------------------------

    def random_join(self, depth: int) -> FromClause:
        """Along the unit, or along a key; sometimes neither, which is to be refused."""
        return self._random_join(depth, self._choices.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")))

    def _random_join(self, depth: int, kind: str) -> FromClause:
        choices, left = self._choices, self.random_from(depth)
        right = self.from_table(choices.choice(self._generated.private_tables))
        conditions = self._join_conditions(left, right)
        if not conditions or choices.draw_bool(0.04):
            conditions = ["TRUE"]
        on = choices.choice(conditions)
        both = left.names + right.names
        if choices.draw_bool(0.25 if kind == "JOIN" else 0.5):
            on = f"{on} AND {ExpressionGenerator(choices, self._generated, both).random_condition(0)}"
        units = {"JOIN": left.units + right.units, "LEFT JOIN": left.units, "RIGHT JOIN": right.units}.get(kind, ())
        return FromClause(
            f"{left.sql} {kind} {right.sql} ON {on}", both, units, right.names if kind == "LEFT JOIN" else ()
        )

    def _join_conditions(self, left: FromClause, right: FromClause) -> list[str]:
        """The unit, and keys of either side: of all columns, or now and then of a part, which is to be refused."""
        conditions = [f"{left.unit} = {right.unit}"] if left.unit is not None and right.unit is not None else []
        for link in find_key_links(self._generated.schema):
            for ours in columns_of_link(link, left.names)[:2]:
                for theirs in columns_of_link(link, right.names):
                    pairs = [f"{mine} = {other}" for mine, other in zip(ours, theirs, strict=True)]
                    if link.width > 1 and self._choices.draw_bool(0.05):
                        pairs = pairs[1:]
                    conditions.append(" AND ".join(pairs))
        return conditions

    def random_anti_join(self, depth: int) -> FromClause:
        """Rows that meet none of another table, of the same unit or public."""
        choices = self._choices
        public = bool(self._generated.public_tables) and choices.draw_bool(0.3)
        joined = self._random_public_join(depth, 3) if public else self._random_join(depth, "LEFT JOIN")
        items = [(name.sql, name.domain) for name in joined.names if name not in joined.outer]
        missing = choices.choice(joined.outer).sql
        return self._derived_table(self.next_alias(), items, joined, f"{joined.sql} WHERE {missing} IS NULL")

    def random_public_join(self, depth: int) -> FromClause:
        return self._random_public_join(depth, self._choices.draw_below(6))

    def _random_public_join(self, depth: int, form: int) -> FromClause:
        choices, left = self._choices, self.random_from(depth)
        right = self.from_table(choices.choice(self._generated.public_tables))
        on = choices.choice([*self._equalities(left, right)[:4], "TRUE"])
        if choices.draw_bool(0.2):
            write = ExpressionGenerator(choices, self._generated, left.names + right.names)
            on = f"{on} AND {write.random_condition(0)}"
        both = left.names + right.names
        match form:
            case 0 | 1 | 2:
                return FromClause(f"{left.sql} JOIN {right.sql} ON {on}", both, left.units)
            case 3 | 4:
                return FromClause(f"{left.sql} LEFT JOIN {right.sql} ON {on}", both, left.units, right.names)
            case _:
                return FromClause(f"{right.sql} LEFT JOIN {left.sql} ON {on}", both, left.units, left.names)

    def _equalities(self, left: FromClause, right: FromClause) -> list[str]:
        return [f"{a.sql} = {b.sql}" for a in left.names for b in right.names if a.domain.type == b.domain.type]

    def random_counted_join(self, depth: int) -> FromClause:
        """Public rows that no key finds, joined to what is there by equalities, and some of them left out.

        Where there are many, they are counted before the statement is compiled.
        """
        choices, joined = self._choices, self.random_from(depth)
        repeating = [stored for stored in self._generated.public_tables if not stored.serials]
        for _ in range(choices.choice((2, 1, 3))):
            right = self.from_table(choices.choice(repeating or self._generated.public_tables))
            equalities = self._equalities(joined, right)
            if not equalities:
                break
            parts = choices.sample(equalities, choices.choice((1, 1, 2)))
            if choices.draw_bool(0.4):  # said of public rows alone, so only those are counted
                parts.append(ExpressionGenerator(choices, self._generated, right.names).random_condition(0))
            kind = choices.choice(("JOIN", "JOIN", "LEFT JOIN"))
            sql, both = f"{joined.sql} {kind} {right.sql} ON {' AND '.join(parts)}", joined.names + right.names
            joined = FromClause(sql, both, joined.units, right.names if kind == "LEFT JOIN" else ())
        return joined

    def random_release_join(self, depth: int) -> FromClause:
        """Joined with what another question gave: rows that a hole holds."""
        choices, left, stored = (
            self._choices,
            self.random_from(depth),
            self._choices.choice(self._generated.private_tables),
        )
        inner = self.from_table(stored)
        write, alias = self.expressions_over(inner), self.next_alias()
        texts = [name for name in left.names if name.kind == "text"]
        if not texts:
            return left
        key = choices.choice([name for name in inner.names if name.kind == "text"] or [inner.names[0]])
        figures = f"COUNT(*) AS n, AVG({write.random_bounded()}) AS a"
        sql = f"(SELECT {key.sql} AS k, {figures} FROM {inner.sql} GROUP BY {key.sql}) AS {alias}"
        names = (
            ScopedColumn(f"{alias}.k", key.domain),
            ScopedColumn(f"{alias}.n", Domain(BIGINT)),
            ScopedColumn(f"{alias}.a", Domain(DOUBLE)),
        )
        on = f"{choices.choice(texts).sql} = {alias}.k"
        kind = choices.choice(("JOIN", "LEFT JOIN"))
        return FromClause(f"{left.sql} {kind} {sql} ON {on}", left.names + names, left.units)
