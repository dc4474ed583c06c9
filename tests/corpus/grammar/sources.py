"""Random sources: tables, joins along keys and with public tables, sub-selects, per-unit aggregates and windows."""

from __future__ import annotations

from dataclasses import replace

from tests.corpus.grammar.columns import (
    DIAGNOSES,
    FLAG,
    NUMBER,
    PATIENTS,
    PER_PATIENT,
    PER_PATIENT_SQL,
    PRESCRIPTIONS,
    VISITS,
    WARDS,
    Column,
    prefixed,
)
from tests.corpus.grammar.expressions import Expressions, Source

PART = ("ward", "kind", "nights", "paid", "urgent", "day")
BARE = Source("", VISITS, "patient_id")


class Sources(Expressions):
    def source(self, depth: int) -> Source:
        plain = (self.table, self.table, self.visits_of_patients, self.prescriptions_of_visits, self.with_wards,
                 self.with_diagnoses, self.three_tables)  # fmt: skip
        nested = (self.filtered, self.projected, self.per_patient, self.per_patient_and_key, self.nth_visit, self.steps,
                  self.united, self.twice, self.distinct, self.combined, self.full)  # fmt: skip
        return self.rng.choice(plain if depth == 0 or self.often(0.4) else nested)(depth)

    def table(self, depth: int) -> Source:
        kind = self.rng.choice(("patients", "visits", "visits"))
        alias = self.name(kind[0])
        columns = {"patients": PATIENTS, "visits": VISITS}[kind]
        return Source(f"{kind} AS {alias}", prefixed(alias, columns), f"{alias}.patient_id")

    # --- joins ---------------------------------------------------------------------------------------------------

    def visits_of_patients(self, depth: int) -> Source:
        p, v = self.name("p"), self.name("v")
        columns = prefixed(p, PATIENTS) + prefixed(v, VISITS)
        on = f"ON {v}.patient_id = {p}.patient_id"
        match self.rng.randrange(4):
            case 0:
                return Source(f"visits {v} JOIN patients {p} {on}", columns, f"{v}.patient_id")
            case 1:
                return Source(f"patients {p} LEFT JOIN visits {v} {on}", columns, f"{p}.patient_id")
            case 2:
                extra = f"AND {self.test(self.rng.choice(prefixed(v, VISITS)))}"
                return Source(f"visits {v} RIGHT JOIN patients {p} {on} {extra}", columns, f"{p}.patient_id")
            case _:
                inner = f"(SELECT * FROM visits WHERE {self.condition(BARE, 1)}) AS {v}"
                return Source(f"patients {p} JOIN {inner} {on}", columns, f"{p}.patient_id")

    def prescriptions_of_visits(self, depth: int) -> Source:
        r, v = self.name("r"), self.name("v")
        way = self.rng.choice(("JOIN", "LEFT JOIN"))
        sql = f"visits {v} {way} prescriptions {r} ON {r}.visit_id = {v}.visit_id"
        return Source(sql, prefixed(r, PRESCRIPTIONS) + prefixed(v, VISITS), f"{v}.patient_id")

    def three_tables(self, depth: int) -> Source:
        p, v, r = self.name("p"), self.name("v"), self.name("r")
        sql = (f"prescriptions {r} JOIN visits {v} ON {v}.visit_id = {r}.visit_id "
               f"JOIN patients {p} ON {p}.patient_id = {v}.patient_id")  # fmt: skip
        columns = prefixed(p, PATIENTS) + prefixed(v, VISITS) + prefixed(r, PRESCRIPTIONS)
        return Source(sql, columns, f"{p}.patient_id")

    def with_wards(self, depth: int) -> Source:
        v, w = self.name("v"), self.name("w")
        sql = f"visits {v} {self.rng.choice(('JOIN', 'INNER JOIN', 'LEFT JOIN'))} wards {w} ON {w}.ward = {v}.ward"
        return Source(sql, prefixed(v, VISITS) + prefixed(w, WARDS), f"{v}.patient_id")

    def with_diagnoses(self, depth: int) -> Source:
        v, d = self.name("v"), self.name("d")
        sql = f"visits {v} JOIN diagnoses {d} ON {v}.diagnosis = {d}.code"
        return Source(sql, prefixed(v, VISITS) + prefixed(d, DIAGNOSES), f"{v}.patient_id")

    def twice(self, depth: int) -> Source:
        a, b = self.name("a"), self.name("b")
        sql = f"visits {a} JOIN visits {b} ON {a}.patient_id = {b}.patient_id AND {a}.visit_id < {b}.visit_id"
        return Source(sql, prefixed(a, VISITS) + prefixed(b, VISITS), f"{a}.patient_id")

    def full(self, depth: int) -> Source:
        a, b = self.name("a"), self.name("b")
        left, right = self.condition(BARE, 0), self.condition(BARE, 0)
        sql = (f"(SELECT * FROM visits WHERE {left}) {a} FULL JOIN (SELECT * FROM visits WHERE {right}) {b} "
               f"ON {a}.patient_id = {b}.patient_id AND {a}.visit_id = {b}.visit_id")  # fmt: skip
        unit = f"COALESCE({a}.patient_id, {b}.patient_id)"
        return Source(sql, prefixed(a, VISITS) + prefixed(b, VISITS), unit)

    # --- sub-selects ---------------------------------------------------------------------------------------------

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

    def united(self, depth: int) -> Source:
        alias = self.name("u")
        a, b = self.condition(BARE, 1), self.condition(BARE, 1)
        part = f"SELECT patient_id, {', '.join(PART)} FROM visits WHERE"
        columns = tuple(column for column in VISITS if column.name in PART)
        return Source(f"({part} {a} UNION ALL {part} {b}) AS {alias}", prefixed(alias, columns), f"{alias}.patient_id")

    def combined(self, depth: int) -> Source:
        """Rows without twins: the unit is among the columns."""
        alias, how = self.name("i"), self.rng.choice(("UNION", "INTERSECT", "EXCEPT"))
        part = "SELECT patient_id, ward, kind, urgent FROM visits WHERE"
        columns = tuple(column for column in VISITS if column.name in ("ward", "kind", "urgent"))
        sql = f"({part} {self.condition(BARE, 1)} {how} {part} {self.condition(BARE, 1)}) AS {alias}"
        return Source(sql, prefixed(alias, columns), f"{alias}.patient_id")

    def distinct(self, depth: int) -> Source:
        alias = self.name("d")
        columns = tuple(column for column in VISITS if column.name in ("ward", "diagnosis", "urgent"))
        sql = f"(SELECT DISTINCT patient_id, ward, diagnosis, urgent FROM visits) AS {alias}"
        return Source(sql, prefixed(alias, columns), f"{alias}.patient_id")

    # --- per unit ------------------------------------------------------------------------------------------------

    def per_patient(self, depth: int) -> Source:
        alias = self.name("g")
        where = f" WHERE {self.condition(BARE, 1)}" if self.often(0.4) else ""
        having = f" HAVING {self.rng.choice(('COUNT(*) > 8', 'SUM(nights) < 70'))}" if self.often(0.3) else ""
        inner = f"SELECT patient_id, {PER_PATIENT_SQL} FROM visits{where} GROUP BY patient_id{having}"
        columns = prefixed(alias, PER_PATIENT)
        if self.often(0.5):
            return Source(f"({inner}) AS {alias}", columns, f"{alias}.patient_id")
        p, way = self.name("p"), self.rng.choice(("JOIN", "LEFT JOIN"))
        sql = f"patients {p} {way} ({inner}) AS {alias} ON {alias}.patient_id = {p}.patient_id"
        return Source(sql, columns + prefixed(p, PATIENTS), f"{p}.patient_id")

    def per_patient_and_key(self, depth: int) -> Source:
        alias = self.name("g")
        key = self.rng.choice([column for column in VISITS if column.dense])
        inner = f"SELECT patient_id, {key.name}, COUNT(*) AS n, AVG(nights) AS mean FROM visits GROUP BY 1, 2"
        columns = (key, Column("n", NUMBER, bounded=True, values=("2",)), Column("mean", NUMBER, True, values=("5",)))
        return Source(f"({inner}) AS {alias}", prefixed(alias, columns), f"{alias}.patient_id")

    def nth_visit(self, depth: int) -> Source:
        alias, way = self.name("o"), self.rng.choice(("", " DESC"))
        window = f"ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY admitted{way}, visit_id)"
        numbered = f"(SELECT *, {window} AS nth FROM visits) AS numbered"
        sql = f"(SELECT * FROM {numbered} WHERE nth <= {self.rng.randint(1, 4)}) AS {alias}"
        return Source(sql, prefixed(alias, VISITS), f"{alias}.patient_id")

    def steps(self, depth: int) -> Source:
        """What came before and what came so far, by windows over one patient's rows."""
        alias = self.name("w")
        over = "OVER (PARTITION BY patient_id ORDER BY admitted, visit_id)"
        items = (f"LAG(nights) {over} AS before", f"SUM(nights) {over} AS so_far", f"LEAD(urgent) {over} AS next",
                 "MAX(rating) OVER (PARTITION BY patient_id) AS best")  # fmt: skip
        columns = (
            Column("before", NUMBER, bounded=True, values=("3",)),
            Column("so_far", NUMBER, bounded=True, values=("40",)),
            Column("best", NUMBER, bounded=True, values=("5",)),
            Column("next", FLAG, dense=True),
        )
        sql = f"(SELECT *, {', '.join(items)} FROM visits) AS {alias}"
        return Source(sql, prefixed(alias, VISITS + columns), f"{alias}.patient_id")
