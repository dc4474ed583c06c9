"""Random statements over the hospital, from a grammar of joins, filters, expressions, groups and sub-selects.

What is generated is SQL that means the same in PostgreSQL and in DuckDB. Every statement comes with a second form for
DuckDB that also counts the units of each group: a key that few units share may be left out by partition selection.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

NUMBER, TEXT, FLAG, DATE, MOMENT = "number", "text", "flag", "date", "moment"


@dataclass(frozen=True)
class Column:
    """`bounded` may be summed; `dense` is a good key: few values, many units each, NULL only if the schema lists it."""

    name: str
    kind: str
    bounded: bool = False
    dense: bool = False
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """What stands after FROM, the columns that it offers, and the expression that is the unit."""

    sql: str
    columns: tuple[Column, ...]
    unit: str


@dataclass(frozen=True)
class Statement:
    """`keys` columns lead the answer; `reference` has the units of each group as one more column, if there are keys."""

    sql: str
    reference: str
    keys: int
    loose: bool = False


PATIENTS = (
    Column("sex", TEXT, dense=True, values=("f", "m", "x", "q")),
    Column("language", TEXT, dense=True, values=("en", "de", "xx")),
    Column("city", TEXT, dense=True, values=("Leeds", "Gdańsk", "O''Fallon")),
    Column("insured", FLAG, dense=True),
    Column("smoker", FLAG, dense=True),
    Column("weight", NUMBER, bounded=True, values=("40", "61.5", "99.9")),
    Column("height", NUMBER, bounded=True, values=("120", "150.5")),
    Column("risk", NUMBER, bounded=True, dense=True, values=("0", "3", "8")),
    Column("registered", DATE, values=("2022-03-01", "2022-10-15")),
    Column("birth_date", DATE, values=("1950-06-30", "1990-01-01")),
)
VISITS = (
    Column("ward", TEXT, dense=True, values=("surgery", "urology", "nowhere")),
    Column("kind", TEXT, dense=True, values=("emergency", "follow-up")),
    Column("diagnosis", TEXT, dense=True, values=("I10", "E11")),
    Column("note", TEXT, values=("", "ok", "fell at home")),
    Column("urgent", FLAG, dense=True),
    Column("cost", NUMBER, bounded=True, values=("100", "2500.5", "-3")),
    Column("paid", NUMBER, bounded=True, values=("99.99", "1200", "4000")),
    Column("nights", NUMBER, bounded=True, dense=True, values=("0", "2", "7")),
    Column("rating", NUMBER, bounded=True, dense=True, values=("1", "4")),
    Column("admitted", MOMENT, values=("2023-05-01", "2024-02-29 12:00:00")),
    Column("day", DATE, values=("2023-07-14", "2024-11-11")),
)
PRESCRIPTIONS = (
    Column("drug", TEXT, dense=True, values=("insulin", "statin")),
    Column("dose", NUMBER, bounded=True, values=("50", "700.5")),
    Column("days", NUMBER, bounded=True, values=("10", "60")),
    Column("refills", NUMBER, bounded=True, dense=True, values=("1", "5")),
    Column("price", NUMBER, bounded=True, values=("20", "333.33")),
    Column("generic", FLAG, dense=True),
    Column("started", DATE, values=("2023-09-09", "2024-06-01")),
)
WARDS = (
    Column("floor", NUMBER, bounded=True, dense=True, values=("1", "2")),
    Column("beds", NUMBER, bounded=True, values=("20", "30")),
    Column("building", TEXT, dense=True, values=("main", "east")),
)
PER_PATIENT = (
    Column("n", NUMBER, bounded=True, values=("5", "12")),
    Column("nights", NUMBER, bounded=True, values=("50",)),
    Column("paid", NUMBER, bounded=True, values=("20000",)),
    Column("wards", NUMBER, bounded=True, values=("4",)),
    Column("longest", NUMBER, bounded=True, values=("9",)),
    Column("ever_urgent", FLAG, dense=True),
)
PER_PATIENT_SQL = (
    "COUNT(*) AS n, SUM(nights) AS nights, SUM(paid) AS paid, COUNT(DISTINCT ward) AS wards, MAX(nights) AS longest, "
    "BOOL_OR(urgent) AS ever_urgent"
)
DIAGNOSES = (Column("chapter", TEXT, dense=True, values=("nervous",)), Column("chronic", FLAG, dense=True))


def generate(rng: Random) -> Statement:
    return _Generator(rng).statement()


class _Generator:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.fresh = 0

    def name(self, letter: str) -> str:
        self.fresh += 1
        return f"{letter}{self.fresh}"

    def often(self, share: float) -> bool:
        return self.rng.random() < share

    # --- statements ----------------------------------------------------------------------------------------------

    def statement(self) -> Statement:
        source = self.source(2)
        keys = self.keys(source, self.rng.choice((0, 1, 1, 1, 2, 2)))
        aggregates = [self.aggregate(source) for _ in range(self.rng.randint(1, 3))]
        loose = any("STDDEV" in item or "VAR_" in item for item in aggregates)
        where = f" WHERE {self.condition(source, 2)}" if self.often(0.6) else ""
        group = f" GROUP BY {', '.join(self.spelled_keys(keys))}" if keys else ""
        items = [f"{key} AS k{place}" for place, key in enumerate(keys)]
        items += [f"{item} AS a{place}" for place, item in enumerate(aggregates)]
        having = f" HAVING {self.rng.choice(('COUNT(*) > 40', 'COUNT(*) >= 0'))}" if keys and self.often(0.2) else ""
        body = f"FROM {source.sql}{where}{group}{having}"
        units = [f"COUNT(DISTINCT {source.unit}) AS units"] if keys else []
        shown, counted = f"SELECT {', '.join(items)} {body}", f"SELECT {', '.join(items + units)} {body}"
        plain = Statement(shown, counted, len(keys), loose)
        return self.wrapped(plain) if self.often(0.25) else plain

    def wrapped(self, inner: Statement) -> Statement:
        """The statement as a sub-select or a CTE, with arithmetic over it that keeps its rows."""
        shown = ", ".join([f"k{place}" for place in range(inner.keys)] + ["COALESCE(a0, 0) + 1 AS b0"])
        counted = f"SELECT {shown}{', units' if inner.keys else ''} FROM ({inner.reference}) AS t"
        if self.often(0.5):
            return replace(inner, sql=f"WITH t AS ({inner.sql}) SELECT {shown} FROM t", reference=counted)
        alias = self.rng.choice(('"source"', "anon_1", '"_"'))
        return replace(inner, sql=f"SELECT {shown} FROM ({inner.sql}) AS {alias}", reference=counted)

    def spelled_keys(self, keys: list[str]) -> list[str]:
        return [self.rng.choice((key, str(place + 1))) for place, key in enumerate(keys)]

    # --- sources -------------------------------------------------------------------------------------------------

    def source(self, depth: int) -> Source:
        plain = (self.table, self.table, self.visits_of_patients, self.prescriptions_of_visits, self.with_wards,
                 self.with_diagnoses)  # fmt: skip
        nested = (self.filtered, self.projected, self.per_patient, self.nth_visit, self.united, self.twice)
        return self.rng.choice(plain if depth == 0 or self.often(0.5) else nested)(depth)

    def table(self, depth: int) -> Source:
        kind = self.rng.choice(("patients", "visits", "visits"))
        alias = self.name(kind[0])
        columns = {"patients": PATIENTS, "visits": VISITS}[kind]
        return Source(f"{kind} AS {alias}", prefixed(alias, columns), f"{alias}.patient_id")

    def visits_of_patients(self, depth: int) -> Source:
        p, v = self.name("p"), self.name("v")
        columns = prefixed(p, PATIENTS) + prefixed(v, VISITS)
        on = f"ON {v}.patient_id = {p}.patient_id"
        match self.rng.randrange(3):
            case 0:
                return Source(f"visits {v} JOIN patients {p} {on}", columns, f"{v}.patient_id")
            case 1:  # the optional side offers no keys: its missing rows would be one more group
                loose = prefixed(p, PATIENTS) + tuple(replace(c, dense=False) for c in prefixed(v, VISITS))
                return Source(f"patients {p} LEFT JOIN visits {v} {on}", loose, f"{p}.patient_id")
            case _:
                inner = f"(SELECT * FROM visits WHERE {self.condition(Source('', VISITS, 'patient_id'), 1)}) AS {v}"
                return Source(f"patients {p} JOIN {inner} {on}", columns, f"{p}.patient_id")

    def prescriptions_of_visits(self, depth: int) -> Source:
        r, v = self.name("r"), self.name("v")
        sql = f"prescriptions {r} JOIN visits {v} ON {r}.visit_id = {v}.visit_id"
        return Source(sql, prefixed(r, PRESCRIPTIONS) + prefixed(v, VISITS), f"{v}.patient_id")

    def with_wards(self, depth: int) -> Source:
        v, w = self.name("v"), self.name("w")
        sql = f"visits {v} {self.rng.choice(('JOIN', 'INNER JOIN', 'LEFT JOIN'))} wards {w} ON {w}.ward = {v}.ward"
        public = tuple(replace(c, dense=c.dense and "LEFT" not in sql) for c in prefixed(w, WARDS))
        return Source(sql, prefixed(v, VISITS) + public, f"{v}.patient_id")

    def with_diagnoses(self, depth: int) -> Source:
        v, d = self.name("v"), self.name("d")
        sql = f"visits {v} JOIN diagnoses {d} ON {v}.diagnosis = {d}.code"
        return Source(sql, prefixed(v, VISITS) + prefixed(d, DIAGNOSES), f"{v}.patient_id")

    def filtered(self, depth: int) -> Source:
        table, columns = self.rng.choice((("patients", PATIENTS), ("visits", VISITS)))
        alias = self.name("f")
        where = self.condition(Source("", columns, "patient_id"), 1)
        sql = f"(SELECT * FROM {table} WHERE {where}) AS {alias}"
        return Source(sql, prefixed(alias, columns), f"{alias}.patient_id")

    def projected(self, depth: int) -> Source:
        """Columns renamed and computed."""
        inner = self.source(depth - 1)
        alias = self.name("s")
        kept = self.rng.sample(inner.columns, min(len(inner.columns), 6))
        items, columns = [f"{inner.unit} AS who"], []
        for place, column in enumerate(kept):
            items.append(f"{column.name} AS c{place}")
            columns.append(replace(column, name=f"{alias}.c{place}"))
        for column in kept[:2]:
            if column.kind == NUMBER and column.bounded:
                items.append(f"{column.name} * 2 + 1 AS twice_{len(columns)}")
                columns.append(Column(f"{alias}.twice_{len(columns)}", NUMBER, bounded=True, values=("10",)))
        return Source(f"(SELECT {', '.join(items)} FROM {inner.sql}) AS {alias}", tuple(columns), f"{alias}.who")

    def per_patient(self, depth: int) -> Source:
        alias = self.name("g")
        where = f" WHERE {self.condition(Source('', VISITS, 'patient_id'), 1)}" if self.often(0.4) else ""
        inner = f"SELECT patient_id, {PER_PATIENT_SQL} FROM visits{where} GROUP BY patient_id"
        columns = prefixed(alias, PER_PATIENT)
        if self.often(0.5):
            return Source(f"({inner}) AS {alias}", columns, f"{alias}.patient_id")
        p = self.name("p")
        sql = f"patients {p} JOIN ({inner}) AS {alias} ON {alias}.patient_id = {p}.patient_id"
        return Source(sql, columns + prefixed(p, PATIENTS), f"{p}.patient_id")

    def nth_visit(self, depth: int) -> Source:
        alias, way = self.name("o"), self.rng.choice(("", " DESC"))
        window = f"ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY admitted{way}, visit_id)"
        numbered = f"(SELECT *, {window} AS nth FROM visits) AS numbered"
        sql = f"(SELECT * FROM {numbered} WHERE nth <= {self.rng.randint(1, 4)}) AS {alias}"
        return Source(sql, prefixed(alias, VISITS), f"{alias}.patient_id")

    def united(self, depth: int) -> Source:
        alias = self.name("u")
        a, b = (self.condition(Source("", VISITS, "patient_id"), 1) for _ in range(2))
        part = "SELECT patient_id, ward, kind, nights, paid, urgent, day FROM visits WHERE"
        columns = tuple(c for c in VISITS if c.name in ("ward", "kind", "nights", "paid", "urgent", "day"))
        return Source(f"({part} {a} UNION ALL {part} {b}) AS {alias}", prefixed(alias, columns), f"{alias}.patient_id")

    def twice(self, depth: int) -> Source:
        a, b = self.name("a"), self.name("b")
        sql = f"visits {a} JOIN visits {b} ON {a}.patient_id = {b}.patient_id AND {a}.visit_id < {b}.visit_id"
        return Source(sql, prefixed(a, VISITS) + prefixed(b, VISITS), f"{a}.patient_id")

    # --- expressions ---------------------------------------------------------------------------------------------

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
                 f"LEAST({x}, 100)", f"GREATEST({x}, 3)", f"-{x}", f"ROUND({x})", f"NULLIF({x}, 0)"]  # fmt: skip
        if flag is not None:
            forms += [f"CASE WHEN {flag.name} THEN {x} ELSE 0 END", f"CASE WHEN {flag.name} THEN {x} END"]
        if depth and (other := self.number(source, 0)) is not None:
            forms += [f"{x} + {other}", f"{x} - {other}", f"({x} + 1) * 2"]
        return self.rng.choice(forms)

    def aggregate(self, source: Source) -> str:
        x = self.number(source)
        any_column = self.rng.choice(source.columns).name
        forms = ["COUNT(*)", f"COUNT({any_column})", f"COUNT(DISTINCT {source.unit})",
                 f"SUM(CASE WHEN {self.condition(source, 0)} THEN 1 ELSE 0 END)"]  # fmt: skip
        dense = [column.name for column in source.columns if column.dense]
        if dense:
            forms.append(f"COUNT(DISTINCT {self.rng.choice(dense)})")
        if x is not None:
            forms += [f"SUM({x})", f"AVG({x})", f"SUM({x})", f"AVG({x})", f"COUNT({x})", f"STDDEV_POP({x})"]
            forms.append(f"VAR_POP({x})")
        picked = self.rng.choice(forms)
        return f"{picked} FILTER (WHERE {self.condition(source, 0)})" if self.often(0.15) else picked

    def keys(self, source: Source, count: int) -> list[str]:
        found: list[str] = []
        for _ in range(count):
            key = self.key(source)
            if key is not None and key not in found:
                found.append(key)
        return found

    def key(self, source: Source) -> str | None:
        dense = [column for column in source.columns if column.dense]
        if not dense:
            return None
        column = self.rng.choice(dense)
        x = column.name
        match column.kind:
            case "text":
                this = f"CASE WHEN {x} = '{column.values[0]}' THEN 'this' ELSE 'other' END"
                forms = (x, x, f"UPPER({x})", f"SUBSTRING({x}, 1, 1)", f"COALESCE({x}, 'none')", f"LENGTH({x})", this)
            case "number":
                above = f"CASE WHEN {x} > {column.values[0]} THEN 'above' ELSE 'not' END"
                forms = (x, f"COALESCE({x}, 0) % 3", above)
            case _:
                forms = (x, f"COALESCE({x}, FALSE)")
        return self.rng.choice(forms)

    def condition(self, source: Source, depth: int) -> str:
        if depth and self.often(0.5):
            left, right = self.condition(source, depth - 1), self.condition(source, depth - 1)
            return f"{self.rng.choice(('', 'NOT '))}({left} {self.rng.choice(('AND', 'OR'))} {right})"
        if self.often(0.15) and source.unit:
            return self.semi_join(source)
        column = self.rng.choice(source.columns)
        return self.test(column)

    def test(self, column: Column) -> str:
        x, rng = column.name, self.rng
        if rng.random() < 0.1:
            return f"{x} IS {rng.choice(('', 'NOT '))}NULL"
        if column.kind == FLAG:
            return rng.choice((x, f"NOT {x}", f"{x} IS TRUE", f"{x} IS NOT TRUE", f"{x} = TRUE"))
        value, other = rng.choice(column.values), rng.choice(column.values)
        compare = rng.choice(("=", "<>", "<", "<=", ">", ">="))
        match column.kind:
            case "number":
                forms = (f"{x} {compare} {value}", f"{x} BETWEEN {value} AND {value} + 50", f"{x} * 2 > {value}",
                         f"{x} IN ({value}, {other}, 4)", f"COALESCE({x}, 0) {compare} {value}")  # fmt: skip
            case "text":
                forms = (f"{x} {compare} '{value}'", f"{x} IN ('{value}', '{other}', 'm')", f"LENGTH({x}) > 4",
                         f"{x} NOT IN ('{value}', '{other}')", f"{x} LIKE '%{value[:1]}%'",
                         f"LOWER({x}) = '{value.lower()}'")  # fmt: skip
            case _:
                forms = (f"{x} {compare} '{value}'", f"EXTRACT(YEAR FROM {x}) = {value[:4]}",
                         f"EXTRACT(MONTH FROM {x}) {compare} 6", f"{x} BETWEEN '{value}' AND '2024-12-01'",
                         f"CAST({x} AS DATE) >= DATE '{value[:10]}'")  # fmt: skip
        return rng.choice(forms)

    def semi_join(self, source: Source) -> str:
        table, columns = self.rng.choice((("patients", PATIENTS), ("visits", VISITS)))
        test = self.test(self.rng.choice(prefixed("x", columns)))
        no = self.rng.choice(("", "", "NOT "))
        if "." not in source.unit or self.often(0.5):  # a bare name would mean the inner table's column
            return f"{source.unit} {no}IN (SELECT x.patient_id FROM {table} AS x WHERE {test})"
        return f"{no}EXISTS (SELECT 1 FROM {table} AS x WHERE x.patient_id = {source.unit} AND {test})"


def prefixed(alias: str, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(replace(column, name=f"{alias}.{column.name}") for column in columns)
