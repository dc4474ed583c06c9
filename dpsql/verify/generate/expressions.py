"""Random expressions over the columns that a source offers. The simplest comes first in every list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dpsql.schema.model import Domain
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.columns import kind_of
from dpsql.verify.generate.key_links import KeyLink, Origin, columns_along, find_key_links
from dpsql.verify.generate.schemas import GeneratedSchema, StoredTable

_UNQUOTED_NAME = re.compile(
    r"[a-z]\d+|uid|vid|ref|sale|line|code|level|word|kind|cost|people|visits|tests|events|calls|sales|returns|codes|prices"
)


def quote_name(name: str) -> str:
    """In quotes, unless it is one of the names that random schemas have: an owner's may be any word."""
    return name if _UNQUOTED_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class ScopedColumn:
    """A column in scope: how a statement writes it, what it is, and which column it is where it is one of a table."""

    sql: str
    domain: Domain
    origin: Origin | None = None

    @property
    def kind(self) -> str:
        return kind_of(self.domain.type)


def columns_in_scope(stored: StoredTable, alias: str) -> tuple[ScopedColumn, ...]:
    return tuple(
        ScopedColumn(f"{alias}.{quote_name(c.name)}", c.declared.domain, (stored.name, c.name)) for c in stored.columns
    )


def columns_of_link(link: KeyLink, names: Sequence[ScopedColumn]) -> list[tuple[str, ...]]:
    """The columns in scope that a key or what refers to it consists of, for each source that has all of them."""
    return columns_along(link, ((name.sql, name.origin) for name in names))


def choose_number_column(stored: StoredTable, choices: ChoiceStream, source: str = "") -> str:
    """A number with bounds, one that is stored as such if there is one; `source` is what stands before its name."""
    far = [column.name for column in stored.columns if column.far]
    candidates = far or [c.name for c in stored.columns if c.declared.type.is_number and c.declared.domain.is_bounded]
    return f"{source}{quote_name(choices.choice(candidates))}" if candidates else "1"


def choose_text_column(stored: StoredTable, choices: ChoiceStream, source: str = "") -> str:
    free = [column.name for column in stored.columns if column.own] or [stored.columns[-1].name]
    return f"{source}{quote_name(choices.choice(free))}"


def listed_key(stored: StoredTable, source: str = "") -> str:
    """A key of public groups."""
    text = next((column.name for column in stored.columns if column.own), None)
    return "1 = 1" if text is None else f"{source}{quote_name(text)} IN ('own0', 'own1')"


TINY_NUMBER = "0.0000000000000000000000000000001"
NUMBER_LITERALS = (
    "1",
    "0",
    "-1",
    "2",
    "0.5",
    "2.5",
    "10",
    "1e3",
    "-0.1",
    "1e-300",
    "1e300",
    TINY_NUMBER,
    "9223372036854775807",
)
DATE_PARTS = ("year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "hour", "minute")
TRUNC_PARTS = ("year", "quarter", "month", "week", "day", "hour")
DATE_LITERALS = ("2021-06-01", "2020-02-29", "1970-01-01")


class ExpressionGenerator:
    """Writes expressions over `names`; sub-selects may read any table of the world."""

    def __init__(
        self, choices: ChoiceStream, generated: GeneratedSchema, names: Sequence[ScopedColumn], unit: str | None = None
    ) -> None:
        self._choices, self._generated, self._names, self._unit = choices, generated, names, unit

    def _columns_of_kind(self, kind: str) -> list[ScopedColumn]:
        return [name for name in self._names if name.kind == kind]

    @property
    def _reads_owned_rows(self) -> bool:
        """Whether these are the columns of a block over private rows, and not of a sub-select in it."""
        by_row = self._generated.schema.privacy.unit == "row" and not self._names[0].sql.startswith("z.")
        return self._unit is not None or by_row

    # --- numbers -----------------------------------------------------------------------------------------------------

    def random_number(self, depth: int) -> str:
        choices, numbers = self._choices, self._columns_of_kind("number")
        if depth <= 0 or not choices.draw_bool(0.8):
            if not numbers or choices.draw_bool(0.1):
                return choices.choice(NUMBER_LITERALS)
            return choices.choice(numbers).sql
        operand = self.random_number(depth - 1)
        match choices.draw_below(17):
            case 0:
                return f"(-{operand})"
            case 1 | 2 | 3:
                return f"({operand} {choices.choice('+-*/')} {self.random_number(depth - 1)})"
            case 4:
                return (
                    f"CASE WHEN {self.random_condition(depth - 1)} THEN {operand} ELSE "
                    f"{self.random_number(depth - 1)} END"
                )
            case 5:
                return f"CASE WHEN {self.random_condition(depth - 1)} THEN {operand} END"
            case 6:
                return f"COALESCE({operand}, {self.random_number(depth - 1)})"
            case 7:
                return f"NULLIF({operand}, {self.random_number(depth - 1)})"
            case 8:
                return f"{choices.choice(('GREATEST', 'LEAST'))}({operand}, {self.random_number(depth - 1)})"
            case 9:
                return f"{choices.choice(('ABS', 'FLOOR', 'CEIL', 'ROUND', 'SIGN'))}({operand})"
            case 10:
                return f"ROUND({operand}, {choices.draw_between(0, 4)})"
            case 11:
                return f"CAST({operand} AS {choices.choice(('INTEGER', 'BIGINT', 'DOUBLE', 'REAL', 'DECIMAL(9,2)'))})"
            case 12:
                return f"{choices.choice(('SQRT', 'LN', 'EXP', 'LOG10'))}({operand})"
            case 13:
                return f"({operand} {choices.choice(('%', '//'))} {self.random_number(depth - 1)})"
            case 14:
                text = self.random_text(0)
                return choices.choice((f"LENGTH({text})", f"CAST({text} AS DOUBLE)", f"CAST({text} AS BIGINT)"))
            case 15 if self._generated.public_tables and self._reads_owned_rows:
                return self._random_lookup()
            case _:
                return f"EXTRACT({choices.choice(DATE_PARTS)} FROM {self.random_time()})"

    def random_clipped(self, depth: int) -> str:
        """A number that is certain to have bounds."""
        bounds = ((0, 1), (-5, 5), (10, 20), (-7, -3), (0, 1000), ("-0.1", "0.1"), (0, "1e-3"))
        lower, upper = self._choices.choice(bounds)
        return f"CLIP({self.random_number(depth)}, {lower}, {upper})"

    def random_bounded(self) -> str:
        """A column as it is, if it has bounds; else something clipped."""
        bounded = [name.sql for name in self._columns_of_kind("number") if name.domain.is_bounded]
        if bounded and self._choices.draw_bool(0.5):
            return self._choices.choice(bounded)
        return self.random_clipped(self._choices.draw_between(0, 2))

    # --- texts and times ---------------------------------------------------------------------------------------------

    def random_text(self, depth: int) -> str:
        choices, texts = self._choices, self._columns_of_kind("text")
        column = choices.choice(texts).sql if texts else "'7'"
        if depth <= 0:
            return column
        return choices.choice(
            (
                column,
                f"UPPER({column})",
                f"LOWER({column})",
                f"SUBSTRING({column}, 1, 2)",
                f"COALESCE({column}, '?')",
                f"({column} || '!')",
                f"NULLIF({column}, 'k1')",
                f"TRIM({column})",
                f"REPLACE({column}, '1', '2')",
                f"LEFT({column}, 1)",
                f"REGEXP_REPLACE({column}, '[0-9]+', '#')",
                f"SPLIT_PART({column}, '1', 1)",
            )
        )

    def random_time(self) -> str:
        choices, times = self._choices, self._columns_of_kind("time")
        if times and choices.draw_bool(0.85):
            column = choices.choice(times).sql
            return choices.choice(
                (
                    column,
                    column,
                    column,
                    f"CAST({column} AS DATE)",
                    f"CAST({column} AS TIMESTAMP)",
                    f"({column} + INTERVAL '1 month')",
                    f"({column} - INTERVAL '3 days')",
                )
            )
        return f"CAST({self.random_text(0)} AS {choices.choice(('DATE', 'TIMESTAMP'))})"

    # --- conditions --------------------------------------------------------------------------------------------------

    def random_condition(self, depth: int) -> str:
        choices = self._choices
        if depth > 0 and choices.draw_bool(0.4):
            first, second = self.random_condition(depth - 1), self.random_condition(depth - 1)
            return choices.choice((f"({first} AND {second})", f"({first} OR {second})", f"NOT ({first})"))
        if depth > 0 and choices.draw_bool(0.2):
            return self._random_subquery()
        name = choices.choice(self._names)
        if choices.draw_bool(0.15):
            return f"{name.sql} IS {choices.choice(('', 'NOT '))}NULL"
        match name.kind:
            case "number":
                return self._random_comparison()
            case "boolean":
                return choices.choice((name.sql, f"NOT {name.sql}", f"{name.sql} IS TRUE", f"{name.sql} = FALSE"))
            case "time":
                return f"{self.random_time()} {choices.choice(('<', '>=', '<>'))} '{choices.choice(DATE_LITERALS)}'"
            case "text":
                first = self.random_text(choices.choice((0, 0, 1)))
                return choices.choice((f"{first} = 'k1'", f"{first} IN ('k1', 'a', 'own1')", f"{first} LIKE '%1'",
                                     f"{first} <> 'k1'", f"{first} >= 'a'", f"{first} ILIKE 'K%'",
                                     f"{first} BETWEEN 'a' AND 'l'"))  # fmt: skip
            case _:
                return f"{name.sql} IS NOT NULL"

    def _random_comparison(self) -> str:
        choices = self._choices
        operand = self.random_number(choices.choice((0, 0, 1, 2)))
        match choices.draw_below(3):
            case 0:
                compared = choices.choice((*NUMBER_LITERALS, self.random_number(0)))
                return f"{operand} {choices.choice(('<', '<=', '=', '<>', '>', '>='))} {compared}"
            case 1:
                return f"{operand} BETWEEN {choices.choice(NUMBER_LITERALS)} AND {choices.choice(NUMBER_LITERALS)}"
            case _:
                return f"{operand} IN ({', '.join(choices.sample(NUMBER_LITERALS, 3))})"

    def _random_subquery(self) -> str:
        """Along the unit or a key of its rows; over public rows; or by what another release gave: a hole."""
        choices, generated = self._choices, self._generated
        stored = choices.choice(generated.private_tables)
        inner, column = (
            ExpressionGenerator(choices, generated, columns_in_scope(stored, "z")),
            generated.unit_column(stored),
        )
        number, text = inner.random_bounded(), inner.random_text(0)
        table = f"{quote_name(stored.name)} AS z"
        match choices.draw_below(10):
            case 0 | 1:
                return f"{self.random_number(0)} > (SELECT AVG({number}) FROM {table})"
            case 2:
                return (
                    f"(SELECT COUNT(*) FROM {table} WHERE {inner.random_condition(0)}) > {choices.draw_between(0, 3)}"
                )
            case 3:
                return f"{self.random_text(0)} IN (SELECT {text} FROM {table} GROUP BY {text})"
            case 4 if generated.public_tables:
                return self._random_public_condition()
            case 5 if self._unit is not None and column is not None:
                same = f"{self._unit} {choices.choice(('', 'NOT '))}IN (SELECT z.{quote_name(column)} FROM {table}"
                return f"{same} WHERE {inner.random_condition(0)})"
            case 6 if self._unit is not None and column is not None:
                # NULL is in neither list: what NOT IN makes of it must not depend on other units' rows.
                same = f"FROM {table} WHERE z.{quote_name(column)} = {self._unit} AND {inner.random_condition(0)}"
                return f"{self.random_text(0)} {choices.choice(('NOT ', ''))}IN (SELECT {text} {same})"
            case 7 | 8:
                return self.random_key_subquery() or f"{self.random_number(0)} > (SELECT AVG({number}) FROM {table})"
            case _ if self._unit is not None and column is not None:
                same = f"FROM {table} WHERE z.{quote_name(column)} = {self._unit} AND {inner.random_condition(0)}"
                counted = f"(SELECT COUNT(*) {same}) > {choices.draw_between(0, 3)}"
                return choices.choice((f"EXISTS (SELECT 1 {same})", f"NOT EXISTS (SELECT 1 {same})", counted))
            case _:
                return f"{self.random_number(0)} > (SELECT AVG({number}) FROM {table})"

    def random_key_subquery(self) -> str | None:
        """Rows of the same unit that a key finds: of all its columns, or of a part of them, which is to be refused."""
        choices, generated = self._choices, self._generated
        candidates = []
        for link in find_key_links(generated.schema):
            for ours in columns_of_link(link, self._names):
                for member in link.members:
                    candidates.append((ours, generated.table_named(member[0][0]), [column for _, column in member]))
        if not candidates:
            return None
        ours, stored, columns = choices.choice(sorted(candidates, key=lambda candidate: -len(candidate[0])))
        theirs = [f"z.{quote_name(column)}" for column in columns]
        inner = ExpressionGenerator(choices, generated, columns_in_scope(stored, "z"))
        if len(ours) > 1 and choices.draw_bool(0.05):
            ours, theirs = ours[1:], theirs[1:]
        table, condition = f"{quote_name(stored.name)} AS z", inner.random_condition(0)
        equal = " AND ".join(f"{mine} = {other}" for mine, other in zip(ours, theirs, strict=True))
        matched = f"FROM {table} WHERE {equal} AND {condition}"
        row = ours[0] if len(ours) == 1 else f"({', '.join(ours)})"
        found = f"IN (SELECT {', '.join(theirs)} FROM {table} WHERE {condition})"
        counted = choices.choice(("COUNT(*)", f"SUM({inner.random_bounded()})", f"MAX({inner.random_bounded()})"))
        return choices.choice(
            (
                f"EXISTS (SELECT 1 {matched})",
                f"NOT EXISTS (SELECT 1 {matched})",
                f"{row} {found}",
                f"{row} NOT {found}",
                f"(SELECT {counted} {matched}) > {choices.draw_between(0, 3)}",
            )
        )

    def _random_public_condition(self) -> str:
        choices, public_table = self._choices, self._choices.choice(self._generated.public_tables)
        if choices.draw_bool(0.5):  # of the group that a row names
            return f"{self.random_number(0)} {choices.choice(('>', '<=', '='))} {self._random_lookup()}"
        codes = ExpressionGenerator(choices, self._generated, columns_in_scope(public_table, "z"))
        listed = f"SELECT {codes.random_text(0)} FROM {quote_name(public_table.name)} AS z"
        return f"{self.random_text(0)} {choices.choice(('', 'NOT '))}IN ({listed})"

    def _random_lookup(self) -> str:
        """An aggregate of the public rows that a row names, by one column or by two; sometimes with a factor."""
        choices, stored = self._choices, self._choices.choice(self._generated.public_tables)
        codes = ExpressionGenerator(choices, self._generated, columns_in_scope(stored, "z"))
        number = choose_number_column(stored, choices, "z.")
        figure = choices.choice(("AVG({})", "COUNT(*)", "MAX({})", "MIN({})", "SUM({})", "COUNT(DISTINCT {})"))
        factor = choices.choice(("", "", "1.2 * ", "-2 * "))
        equal = f"{codes.random_text(0)} = {self.random_text(0)}"
        if choices.draw_bool(0.25):
            equal += f" AND {codes.random_number(0)} = {self.random_number(0)}"
        if choices.draw_bool(0.25):
            equal += f" AND {codes.random_condition(0)}"
        return f"(SELECT {factor}{figure.format(number)} FROM {quote_name(stored.name)} AS z WHERE {equal})"

    # --- keys --------------------------------------------------------------------------------------------------------

    def random_key(self) -> str:
        choices = self._choices
        name = choices.choice(self._names)
        if not choices.draw_bool(0.55):
            return name.sql
        column = name.sql
        match name.kind:
            case "number":
                return choices.choice(
                    (
                        f"({column} > 0)",
                        f"ROUND({column})",
                        f"FLOOR({column} / 3)",
                        f"CAST({column} AS INTEGER) % 3",
                        f"CASE WHEN {column} < 1 THEN 'low' WHEN {column} < 9 THEN 'mid' ELSE 'high' END",
                        f"CAST({column} AS TEXT)",
                        f"({column} * 0)",
                        f"(-{column})",
                        f"({self.random_number(2)})",
                    )
                )
            case "time":
                return choices.choice(
                    (
                        f"EXTRACT({choices.choice(DATE_PARTS)} FROM {self.random_time()})",
                        f"CAST({column} AS DATE)",
                        f"DATE_TRUNC('{choices.choice(TRUNC_PARTS)}', {self.random_time()})",
                    )
                )
            case "boolean":
                return choices.choice((f"NOT {column}", f"COALESCE({column}, FALSE)", f"({column} IS NULL)"))
            case "text":
                return choices.choice(
                    (
                        self.random_text(1),
                        f"({column} IN ('k1', 'a'))",
                        f"LENGTH({column})",
                        f"CAST({column} AS DATE)",
                        f"CAST({column} AS DOUBLE)",
                    )
                )
            case _:
                return column
