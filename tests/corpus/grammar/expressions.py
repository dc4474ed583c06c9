"""Random expressions over the columns that a source offers: numbers, keys, aggregates and conditions."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.corpus.grammar.columns import FLAG, NUMBER, PATIENTS, VISITS, Column, prefixed


@dataclass(frozen=True)
class Source:
    """What stands after FROM, the columns that it offers, and the expression that is the unit."""

    sql: str
    columns: tuple[Column, ...]
    unit: str


class Expressions:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.fresh = 0

    def name(self, letter: str) -> str:
        self.fresh += 1
        return f"{letter}{self.fresh}"

    def often(self, share: float) -> bool:
        return self.rng.random() < share

    # --- values --------------------------------------------------------------------------------------------------

    def column(self, source: Source, kind: str) -> Column | None:
        found = [column for column in source.columns if column.kind == kind and (column.bounded or kind != NUMBER)]
        return self.rng.choice(found) if found else None

    def number(self, source: Source, depth: int = 1) -> str | None:
        column = self.column(source, NUMBER)
        if column is None:
            return None
        x = column.name
        flag = self.column(source, FLAG)
        forms = [x, x, f"{x} + 1", f"{x} * 0.5", f"ABS({x} - {self.rng.choice(column.values)})", f"COALESCE({x}, 0)",
                 f"LEAST({x}, 100)", f"GREATEST({x}, 3)", f"-{x}", f"ROUND({x})", f"NULLIF({x}, 0)", f"{x} * {x}",
                 f"{x} / 4.0", f"FLOOR({x})", f"CASE WHEN {self.test(column)} THEN {x} ELSE -1 END"]  # fmt: skip
        if flag is not None:
            forms += [f"CASE WHEN {flag.name} THEN {x} ELSE 0 END", f"CASE WHEN {flag.name} THEN {x} END"]
        if depth and (other := self.number(source, 0)) is not None:
            forms += [f"{x} + {other}", f"{x} - {other}", f"({x} + 1) * 2", f"COALESCE({x}, {other})"]
        return self.rng.choice(forms)

    def aggregate(self, source: Source) -> str:
        x = self.number(source)
        any_column = self.rng.choice(source.columns).name
        forms = ["COUNT(*)", f"COUNT({any_column})", f"COUNT(DISTINCT {source.unit})", f"COUNT({self.key(source)})",
                 f"SUM(CASE WHEN {self.condition(source, 0)} THEN 1 ELSE 0 END)",
                 f"COUNT(DISTINCT {self.key(source)})"]  # fmt: skip
        column = self.column(source, NUMBER)
        if x is not None and column is not None:
            forms += [f"SUM({x})", f"AVG({x})", f"SUM({x})", f"AVG({x})", f"COUNT({x})",
                      f"COALESCE(SUM({x}), 0) - COUNT(*)", f"SUM({x}) / NULLIF(COUNT(*), 0.0)"]  # fmt: skip
            # Of a column itself: where the bounds are far wider than the values, squares have no digits left.
            forms += [f"STDDEV_POP({column.name})", f"VAR_POP({column.name})"]
        picked = self.rng.choice(forms)
        plain = "/" in picked or " - COUNT" in picked or self.often(0.85)
        return picked if plain else f"{picked} FILTER (WHERE {self.condition(source, 0)})"

    # --- keys ----------------------------------------------------------------------------------------------------

    def keys(self, source: Source, count: int) -> list[str]:
        found = [self.key(source) for _ in range(count)]
        return [key for place, key in enumerate(found) if key not in found[:place] and key != "'none'"]

    def key(self, source: Source) -> str:
        dense = [column for column in source.columns if column.dense or column.kind in ("date", "moment")]
        if not dense:
            return "'none'"
        column = self.rng.choice(dense)
        x = column.name
        match column.kind:
            case "text":
                this = f"CASE WHEN {x} = '{column.values[0]}' THEN 'this' ELSE 'other' END"
                forms = (x, x, f"UPPER({x})", f"SUBSTRING({x}, 1, 1)", f"COALESCE({x}, 'none')", f"LENGTH({x})", this,
                         f"{x} || '!'", f"CASE {x} WHEN '{column.values[-1]}' THEN 1 ELSE 2 END")  # fmt: skip
            case "number":
                above = f"CASE WHEN {x} > {column.values[0]} THEN 'above' ELSE 'not' END"
                forms = (x, f"COALESCE({x}, 0) % 3", above, f"COALESCE({x}, 0) / 2", f"COALESCE({x}, 0) + 10")
            case "date" | "moment":
                forms = (f"EXTRACT(YEAR FROM {x})", f"DATE_TRUNC('year', {x})", f"EXTRACT(MONTH FROM {x})",
                         f"EXTRACT(QUARTER FROM {x})", f"EXTRACT(DOW FROM {x})",
                         f"{x} >= '{column.values[0]}'")  # fmt: skip
                forms = forms[2:] if "birth" in x else forms  # eighty years, few patients each
            case _:
                forms = (x, f"COALESCE({x}, FALSE)", f"NOT COALESCE({x}, TRUE)")
        return self.rng.choice(forms)

    # --- conditions ----------------------------------------------------------------------------------------------

    def condition(self, source: Source, depth: int) -> str:
        if depth and self.often(0.5):
            left, right = self.condition(source, depth - 1), self.condition(source, depth - 1)
            return f"{self.rng.choice(('', 'NOT '))}({left} {self.rng.choice(('AND', 'OR'))} {right})"
        if self.often(0.15):
            return self.semi_join(source)
        if self.often(0.06):
            return self.by_release(source)
        return self.test(self.rng.choice(source.columns))

    def test(self, column: Column) -> str:
        x, rng = column.name, self.rng
        if rng.random() < 0.1:
            return f"{x} IS {rng.choice(('', 'NOT '))}NULL"
        if column.kind == FLAG:
            return rng.choice((x, f"NOT {x}", f"{x} IS TRUE", f"{x} IS NOT TRUE", f"{x} = TRUE"))
        value, other = rng.choice(column.values), rng.choice(column.values)
        compare = rng.choice(("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"))
        match column.kind:
            case "number":
                forms = (f"{x} {compare} {value}", f"{x} BETWEEN {value} AND {value} + 50", f"{x} * 2 > {value}",
                         f"{x} IN ({value}, {other}, 4)", f"COALESCE({x}, 0) {compare} {value}")  # fmt: skip
            case "text":
                forms = (f"{x} {compare} '{value}'", f"{x} IN ('{value}', '{other}', 'm')", f"LENGTH({x}) > 4",
                         f"{x} NOT IN ('{value}', '{other}')", f"{x} LIKE '%{value[:1]}%'",
                         f"LOWER({x}) = '{value.lower()}'", f"{x} IN ('{value}', NULL)")  # fmt: skip
            case _:
                forms = (f"{x} {compare} '{value}'", f"EXTRACT(YEAR FROM {x}) = {value[:4]}",
                         f"EXTRACT(MONTH FROM {x}) {compare} 6", f"{x} BETWEEN '{value}' AND '2024-12-01'",
                         f"CAST({x} AS DATE) >= DATE '{value[:10]}'",
                         f"{x} > DATE '{value[:10]}' - INTERVAL '1 month'")  # fmt: skip
        return rng.choice(forms)

    def semi_join(self, source: Source) -> str:
        table, columns = self.rng.choice((("patients", PATIENTS), ("visits", VISITS)))
        x = self.name("x")
        test = self.test(self.rng.choice(prefixed(x, columns)))
        no = self.rng.choice(("", "", "NOT "))
        if "." not in source.unit or self.often(0.4):  # a bare name would mean the inner table's column
            return f"{source.unit} {no}IN (SELECT {x}.patient_id FROM {table} AS {x} WHERE {test})"
        same = f"FROM {table} AS {x} WHERE {x}.patient_id = {source.unit} AND {test}"
        if self.often(0.3):
            return f"(SELECT COUNT(*) {same}) {self.rng.choice(('>', '=', '<='))} {self.rng.choice((0, 1, 5))}"
        return f"{no}EXISTS (SELECT 1 {same})"

    def by_release(self, source: Source) -> str:
        """A condition that uses what another question about private rows gave."""
        columns = [column for column in source.columns if column.kind == NUMBER]
        if columns:
            x = self.rng.choice(columns).name
            figure = self.rng.choice(("AVG(nights)", "AVG(nights) * 2", "COUNT(*) / 1000"))
            return f"{x} > (SELECT {figure} FROM visits)"
        return "(SELECT COUNT(*) FROM visits) > 100"
