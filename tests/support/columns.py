"""Declared columns with the worst values that their physical type can hold.

A value is the text of a DuckDB literal, so that a failing case can be pasted and replayed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from random import Random

from dpsql.schema.domain import Domain, boolean_domain
from dpsql.schema.model import Column
from dpsql.types import BIGINT, BOOLEAN, DATE, DOUBLE, HUGEINT, INTEGER, REAL, TEXT, TIMESTAMP, Type, decimal

NULL = "NULL"


@dataclass(frozen=True)
class Spec:
    """A column: what the owner declares, what the engine stores, and values to store in it."""

    declared: Column
    physical: Type | None
    stored: str  # DuckDB's name of the physical type
    pool: tuple[str, ...]
    own: tuple[str, ...] = ()  # for text without declared values: keys that only one unit has
    far: tuple[str, ...] = ()  # far below and far above the bounds

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def kind(self) -> str:
        """How a query may use it: number, text, boolean or time."""
        type_ = self.declared.type
        if type_.is_number:
            return "number"
        return "time" if type_.is_time else "boolean" if type_ == BOOLEAN else "text"


def double(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE)"


def quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def bounded(type_: Type, lower: object, upper: object) -> Domain:
    return Domain(type_, True, Fraction(str(lower)), Fraction(str(upper)))


DOUBLE_BOUNDS = ((-1, 1), (0, 100), (-5000, -1000), (0.001, 1000), (0, 1e12), (-0.1, 0.3), (7, 7), (0, 1e-3))
INTEGER_BOUNDS = ((0, 10), (-20, -5), (1000, 1010), (-3, 4), (5, 5), (0, 100000), (-(2**31), 2**31 - 1))
DECIMAL_BOUNDS = (("0", "100.5"), ("-3.25", "7.75"), ("1000.01", "1000.99"))


def doubles_around(lower: float, upper: float) -> tuple[float, ...]:
    """At the bounds, a step beyond them, half-way between grid steps, and what no bound has heard of."""
    edges = [f(edge, math.copysign(math.inf, s)) for edge in (lower, upper) for s in (1, -1) for f in (math.nextafter,)]
    middle = (lower + upper) / 2
    wild = (math.nan, math.inf, -math.inf, 1e308, -1e308, 1.7976931348623157e308, -0.0, 0.0, 5e-324, -5e-324, 2.0**62)
    inside = (lower, upper, middle, lower + 0.005, upper - 0.005, lower + (upper - lower) * 0.3)
    return (*inside, *edges, *wild, -lower, -upper, lower - 1, upper + 1)


def a_double(name: str, rng: Random) -> Spec:
    lower, upper = rng.choice(DOUBLE_BOUNDS)
    grid = rng.choice((None, None, None, Fraction(1, 100), Fraction(1, 4), Fraction(1, 3), Fraction(5, 2)))
    column = Column(name, bounded(DOUBLE, lower, upper), grid)
    values = doubles_around(float(lower), float(upper))
    match rng.randrange(5):
        case 0:
            texts = [quoted(repr(value)) for value in values]
            odd = tuple(quoted(t) for t in ("", "abc", " 0.5 ", "1e400", "1_0", "0x10", "Infinity", "-nan"))
            return Spec(column, TEXT, "VARCHAR", (*texts, *odd, NULL))
        case 1:
            small = tuple(f"CAST({double(v)} AS REAL)" for v in values if not abs(v) > 3e38 or math.isinf(v))
            return Spec(column, REAL, "REAL", (*small, NULL))
        case _:
            return Spec(column, DOUBLE, "DOUBLE", (*map(double, values), NULL), far=(double(-1e308), double(1e308)))


def a_fine_double(name: str, rng: Random) -> Spec:
    """Bounds that are no round number of any grid, stored as they are: every division leaves something over."""
    lower = rng.choice((0.0, -1.0, 1.0)) * rng.random() * 10 ** rng.randint(-3, 3)
    upper = lower + rng.random() * 10 ** rng.randint(-3, 3)
    pool = tuple(double(lower + (upper - lower) * rng.random()) for _ in range(12))
    far = (double(-1e308), double(1e308))
    return Spec(Column(name, Domain(DOUBLE, True, Fraction(lower), Fraction(upper))), DOUBLE, "DOUBLE", pool, far=far)


def an_integer(name: str, rng: Random) -> Spec:
    lower, upper = rng.choice(INTEGER_BOUNDS)
    column = Column(name, bounded(INTEGER, lower, upper))
    near = {lower - 1, lower, lower + 1, (lower + upper) // 2, upper - 1, upper, upper + 1, 0, -1, 1}
    narrow = sorted(v for v in near if -(2**31) <= v < 2**31)
    match rng.randrange(6):
        case 0:
            wide = [*near, 2**63 - 1, -(2**63), 2**100, -(2**127), 2**127 - 1]
            return Spec(column, HUGEINT, "HUGEINT", (*(f"CAST('{v}' AS HUGEINT)" for v in wide), NULL))
        case 1:
            values = [*map(float, near), math.nan, math.inf, -math.inf, 1e308, 2.5, -2.5, 2.0**31, -(2.0**63), 2.0**63]
            return Spec(column, DOUBLE, "DOUBLE", (*map(double, values), NULL))
        case 2:
            texts = [*map(str, near), "", "7.4", "007", " 7", "x", "99999999999999999999999", "-0"]
            return Spec(column, TEXT, "VARCHAR", (*map(quoted, texts), NULL))
        case _:
            extremes = (-(2**31), 2**31 - 1)
            far = (f"CAST({extremes[0]} AS INTEGER)", f"CAST({extremes[1]} AS INTEGER)")
            beyond = (max(lower - 1, extremes[0]), min(upper + 1, extremes[1]))
            near_bounds = tuple(f"CAST({v} AS INTEGER)" for v in beyond)
            pool = (*(f"CAST({v} AS INTEGER)" for v in narrow), *far, NULL)
            return Spec(column, INTEGER, "INTEGER", pool, far=rng.choice((far, near_bounds)))


def a_bigint(name: str, rng: Random) -> Spec:
    """A whole number without bounds: sums of it need CLIP."""
    values = (0, 1, -1, 7, 100, 10**9, 2**53 + 1, 2**63 - 1, -(2**63), 2**62)
    if rng.random() < 0.3:
        wild = (*values, 2**63, 2**127 - 1, -(2**127), 2**64)
        pool = (*(f"CAST('{v}' AS HUGEINT)" for v in wild), NULL)
        return Spec(Column(name, Domain(HUGEINT)), HUGEINT, "HUGEINT", pool)
    return Spec(Column(name, Domain(BIGINT)), BIGINT, "BIGINT", (*(f"CAST('{v}' AS BIGINT)" for v in values), NULL))


def a_decimal(name: str, rng: Random) -> Spec:
    if rng.random() < 0.3:
        wide = decimal(38, 10)
        values = ("0", "1", "-1", "0.0000000001", "9999999999999999999999999999.9999999999", "123456789.5")
        pool = (*(f"CAST('{v}' AS DECIMAL(38,10))" for v in values), NULL)
        return Spec(Column(name, Domain(wide)), wide, "DECIMAL(38,10)", pool)
    lower, upper = rng.choice(DECIMAL_BOUNDS)
    column = Column(name, bounded(decimal(10, 2), lower, upper))
    step = Decimal("0.01")
    near = [Decimal(b) + n * step for b in (lower, upper) for n in (-1, 0, 1)] + [Decimal(0), Decimal("99999999.99")]
    match rng.randrange(3):
        case 0:
            values = [*map(float, near), math.nan, math.inf, 1e308, 0.285, -0.0]
            return Spec(column, DOUBLE, "DOUBLE", (*map(double, values), NULL))
        case _:
            far = tuple(f"CAST('{v}' AS DECIMAL(10,2))" for v in ("-99999999.99", "99999999.99"))
            pool = (*(f"CAST('{v}' AS DECIMAL(10,2))" for v in near), *far, NULL)
            return Spec(column, decimal(10, 2), "DECIMAL(10,2)", pool, far=far)


def a_boolean(name: str, rng: Random) -> Spec:
    column = Column(name, boolean_domain(True), null_group=rng.random() < 0.5)
    if rng.random() < 0.3:
        return Spec(column, TEXT, "VARCHAR", (*map(quoted, ("true", "f", "maybe", "", "1")), NULL))
    return Spec(column, BOOLEAN, "BOOLEAN", ("TRUE", "FALSE", NULL))


LISTED = ("a", "b", "it's", "Ü\\n", "")


def a_listed_text(name: str, rng: Random) -> Spec:
    listed = tuple(rng.sample(LISTED, rng.randint(1, 4)))
    column = Column(name, Domain(TEXT, True, values=listed), null_group=rng.random() < 0.5)
    return Spec(column, TEXT, "VARCHAR", (*map(quoted, (*LISTED, "A", "a ", "zzz")), NULL))


def a_text(name: str, rng: Random) -> Spec:
    column = Column(name, Domain(TEXT), max_length=8)
    shared = ("k1", "k2", "K1", "", "éé", "2020-01-01", "20000-01-01", "5877642-06-25 (BC)", "12", "nan", "-0.0",
              "290309-12-22 (BC) 00:00:00", "infinity", "x" * 8, "x" * 9, "long" * 50)  # fmt: skip
    own = tuple(f"own{number}" for number in range(12))
    return Spec(column, TEXT, "VARCHAR", (*map(quoted, shared), NULL), tuple(map(quoted, own)))


DATES = ("2020-02-29", "2021-12-31", "2022-01-01", "2019-12-30", "1970-01-01", "0001-01-01", "9999-12-31")
WILD_DATES = ("infinity", "-infinity", "5877642-06-25 (BC)", "5881580-07-10", "20000-01-01", "0044-03-15 (BC)")
WILD_MOMENTS = ("infinity", "-infinity", "290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806",
                "9999-12-31 23:59:59.999999")  # fmt: skip


def a_date(name: str, rng: Random) -> Spec:
    domain = Domain(DATE) if rng.random() < 0.4 else Domain(DATE, True, Fraction(18262), Fraction(18262 + 800))
    column = Column(name, domain)
    match rng.randrange(4):
        case 0:
            return Spec(column, TEXT, "VARCHAR", (*map(quoted, (*DATES, *WILD_DATES, "soon", "2021-02-30")), NULL))
        case 1:
            moments = [f"CAST('{d}' AS TIMESTAMP)" for d in (*DATES, *WILD_MOMENTS)]
            return Spec(column, TIMESTAMP, "TIMESTAMP", (*moments, NULL))
        case _:
            return Spec(column, DATE, "DATE", (*(f"CAST('{d}' AS DATE)" for d in (*DATES, *WILD_DATES)), NULL))


def a_timestamp(name: str, rng: Random) -> Spec:
    day = 86_400_000_000
    domain = Domain(TIMESTAMP)
    if rng.random() < 0.6:
        domain = Domain(TIMESTAMP, True, Fraction(18262 * day), Fraction((18262 + 800) * day))
    column = Column(name, domain)
    if rng.random() < 0.25:
        return Spec(column, DATE, "DATE", (*(f"CAST('{d}' AS DATE)" for d in (*DATES, *WILD_DATES)), NULL))
    times = [f"{d} 23:59:59.999999" for d in DATES] + [*DATES, *WILD_MOMENTS]
    return Spec(column, TIMESTAMP, "TIMESTAMP", (*(f"CAST('{t}' AS TIMESTAMP)" for t in times), NULL))


NUMBERS = (a_double, a_double, an_integer, a_decimal)
KINDS = (a_double, an_integer, a_bigint, a_decimal, a_boolean, a_listed_text, a_text, a_date, a_timestamp)


def random_columns(rng: Random, prefix: str, fine: bool = False) -> tuple[Spec, ...]:
    """A number, a text that is not listed, and a few others."""
    numbers = (a_fine_double, a_fine_double, *NUMBERS) if fine else NUMBERS
    makers = [rng.choice(numbers), a_text, *rng.sample(KINDS, rng.randint(1, 4))]
    return tuple(make(f"{prefix}{place}", rng) for place, make in enumerate(makers))
