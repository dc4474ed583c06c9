"""Random relations over the rows of units, built from the plan's own nodes, and adversarial rows for them.

Two tables with many rows per unit, one with at most one, one where each row is a unit; a public table with a unique
key and repeats in its other columns; a hole. Every leaf gives its columns names of its own, as the binder does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

from dpsql.compiler.plan.expressions import (
    UID,
    And,
    Arithmetic,
    Case,
    Cast,
    Column,
    Compare,
    Expr,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
)
from dpsql.compiler.plan.relations import (
    SET_COLUMN,
    Expand,
    Field,
    Filter,
    Join,
    JoinKind,
    Mark,
    Named,
    Ordering,
    PerUnit,
    Project,
    PublicScan,
    Rows,
    RowsHole,
    Scan,
    ScanColumn,
    SetKind,
    SetOperation,
    UnitId,
    UnitMeasure,
    UnitWindow,
    has_uid,
    row_fields,
)
from dpsql.schema.model import Domain, EngineTable
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT, Type, decimal_type, sum_type

MONEY = decimal_type(10, 2)
COLUMNS: dict[str, Domain] = {
    "i": Domain(INTEGER, True, Fraction(-3), Fraction(4)),
    "n": Domain(BIGINT),
    "d": Domain(DOUBLE, True, Fraction(-1), Fraction(3)),
    "m": Domain(MONEY, True, Fraction(-5), Fraction(100)),
    "t": Domain(TEXT, length=20),
}
POOLS = {
    "i": ("0", "1", "2", "-3", "4", "-2147483648", "2147483647", "NULL"),
    "n": ("0", "1", "2", "-1", "9223372036854775807", "-9223372036854775808", "4611686018427387904", "NULL"),
    "d": ("0.1", "0.2", "0.3", "'-0.0'", "0.0", "-1", "3", "1e308", "'nan'", "'inf'", "'-inf'", "5e-324", "NULL"),
    "m": ("0", "0.01", "0.1", "-5", "100", "99999999.99", "-99999999.99", "NULL"),
    "t": ("'a'", "'b'", "'A'", "''", "'k1'", "repeat('x', 30)", "NULL"),
}
STORED = {"i": "INTEGER", "n": "BIGINT", "d": "DOUBLE", "m": "DECIMAL(10,2)", "t": "VARCHAR"}
PRIVATE = ("many", "more", "one", "rows")
PUBLIC_ROWS = tuple(
    f"({key}, {POOLS['i'][place % 6]}, {POOLS['n'][place % 4]}, {POOLS['d'][place % 5]}, {POOLS['m'][place % 4]})"
    for place, key in enumerate(("'a'", "'b'", "'k1'", "NULL", "NULL"))
)
HOLE = [{"i": 1, "t": "a"}, {"i": 1, "t": None}, {"i": None, "t": "b"}, {"i": 2, "t": "a"}, {"i": 1, "t": "a"}]


def scan_column(source: str, name: str) -> ScanColumn:
    domain = COLUMNS[source]
    return ScanColumn(source, name, domain.type, domain, domain.length or 100, False)


@dataclass
class Builder:
    """Relations with names that never repeat; `holes` are the values of those that were made."""

    rng: Random
    row_units: bool = False
    holes: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    _made: int = 0

    def name(self) -> str:
        self._made += 1
        return f"c{self._made}"

    # --- leaves ------------------------------------------------------------------------------------------------------

    def private(self) -> Scan:
        table = "rows" if self.row_units else self.rng.choice(PRIVATE[:3])
        columns = tuple(scan_column(source, self.name()) for source in COLUMNS)
        uid = ScanColumn("uid", UID, BIGINT, Domain(BIGINT), 100, True)
        unit = None if self.row_units else UnitId(uid)
        own = self.name()
        ids = () if self.row_units else (ScanColumn("uid", own, BIGINT, Domain(BIGINT), 100, True),)
        direct = frozenset() if self.row_units else frozenset({own})
        return Scan(table, EngineTable((table,)), ids + columns, unit, table == "one", direct)

    def public(self) -> Rows:
        if self.rng.random() < 0.25:
            return self.hole()
        columns = tuple(scan_column(source, self.name()) for source in ("t", "i", "n", "d", "m"))
        unique = (frozenset({columns[0].name}),)
        scan = PublicScan("public", EngineTable(("public",)), columns, len(PUBLIC_ROWS), unique)
        if self.rng.random() < 0.3:
            return Filter(scan, self.condition(row_fields(scan), 1))
        if self.rng.random() < 0.2:
            other = self.hole()
            return Join(scan, other, JoinKind.INNER, self.condition((*row_fields(scan), *row_fields(other)), 1))
        return scan

    def hole(self) -> RowsHole:
        number, text, name = self.name(), self.name(), f"h{self.name()}"
        self.holes[name] = [{number: row["i"], text: row["t"]} for row in HOLE]
        domains = (Domain(INTEGER, True, Fraction(0), Fraction(9)), Domain(TEXT, length=20))
        return RowsHole(name, (Field(number, INTEGER), Field(text, TEXT)), domains, 1000)

    # --- expressions -------------------------------------------------------------------------------------------------

    def columns(self, fields: tuple[Field, ...], *types: Type) -> list[Column]:
        return [
            Column(f.name, f.type) for f in fields if f.name not in (UID, SET_COLUMN) and (not types or f.type in types)
        ]

    def number(self, fields: tuple[Field, ...], depth: int) -> Expr:
        """A whole number or a double."""
        rng = self.rng
        known = self.columns(fields, INTEGER, BIGINT)
        if depth == 0 or rng.random() < 0.3:
            literal = Literal(rng.choice((0, 1, 2, -1, 2**40, 2**63 - 1)), BIGINT)
            return rng.choice([*known, literal])
        if rng.random() < 0.3:
            return self.double(fields, depth - 1)
        left, right = self.whole(fields, depth - 1), self.whole(fields, depth - 1)
        return Arithmetic(rng.choice(("+", "-", "*", "//", "%")), left, right, BIGINT)

    def whole(self, fields: tuple[Field, ...], depth: int) -> Expr:
        found = self.number(fields, depth)
        return found if found.type.is_integer else Cast(found, BIGINT)

    def double(self, fields: tuple[Field, ...], depth: int) -> Expr:
        rng = self.rng
        known = self.columns(fields, DOUBLE)
        if depth == 0 or rng.random() < 0.4:
            return rng.choice([*known, Literal(0.5, DOUBLE), Literal(-2.0, DOUBLE)])
        left = self.double(fields, depth - 1)
        right = rng.choice((self.double(fields, depth - 1), Cast(self.whole(fields, depth - 1), DOUBLE)))
        return Arithmetic(rng.choice(("+", "-", "*", "/")), left, right, DOUBLE)

    def value(self, fields: tuple[Field, ...], depth: int = 2) -> Expr:
        rng = self.rng
        known: list[Expr] = list(self.columns(fields))
        if rng.random() < 0.2:
            then, otherwise = (Cast(self.whole(fields, 1), BIGINT) for _ in range(2))
            return Case(((self.condition(fields, 1), then),), otherwise, BIGINT)
        return rng.choice([*known, self.number(fields, depth), self.double(fields, depth)])

    def condition(self, fields: tuple[Field, ...], depth: int) -> Expr:
        rng = self.rng
        if depth > 0 and rng.random() < 0.4:
            parts = (self.condition(fields, depth - 1), self.condition(fields, depth - 1))
            return rng.choice((And(parts), Or(parts), Not(parts[0])))
        known = self.columns(fields)
        truths = self.columns(fields, BOOLEAN)
        if truths and rng.random() < 0.4:
            return rng.choice((rng.choice(truths), Not(rng.choice(truths))))
        if known and rng.random() < 0.2:
            return rng.choice((IsNull(rng.choice(known)), Not(IsNull(rng.choice(known)))))
        if rng.random() < 0.2:
            return InList(self.whole(fields, 1), (Literal(0, BIGINT), Literal(2, BIGINT)))
        one = self.value(fields, 1)
        others: list[Expr] = [c for c in self.columns(fields, one.type) if c != one]
        if one.type == DOUBLE:
            others.append(Literal(0.6, DOUBLE))
        if one.type.is_integer:
            others.append(Literal(1, BIGINT))
        if not others:
            return Not(IsNull(one))
        return Compare(rng.choice(("=", "=", "<>", "<", "<=", ">")), one, rng.choice(others))

    def meeting(self, left: Rows, right: Rows) -> Expr:
        """A condition of a join: mostly with an equality, mostly with something left over."""
        rng = self.rng
        both = (*row_fields(left), *row_fields(right))
        pairs = [
            Compare("=", Column(a.name, a.type), Column(b.name, b.type))
            for a in row_fields(left)
            for b in row_fields(right)
            if UID not in (a.name, b.name) and a.type == b.type and SET_COLUMN not in (a.name, b.name)
        ]
        parts: list[Expr] = [rng.choice(pairs)] if pairs and rng.random() < 0.7 else []
        if not parts or rng.random() < 0.5:
            parts.append(self.condition(both, 1))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    # --- operators ---------------------------------------------------------------------------------------------------

    def relation(self, depth: int) -> Rows:
        if depth == 0:
            return self.private()
        makers: list[Callable[[int], Rows]] = [
            self.filter,
            self.project,
            self.public_join,
            self.public_join,
            self.public_mark,
        ]
        if self.row_units:
            makers.append(self.union_all)
        else:
            makers += [self.join, self.join, self.mark, self.per_unit, self.per_unit, self.window, self.window,
                       self.set_operation]  # fmt: skip
        return self.rng.choice(makers)(depth - 1)

    def filter(self, depth: int) -> Rows:
        rows = self.relation(depth)
        return Filter(rows, self.condition(row_fields(rows), 2))

    def project(self, depth: int) -> Rows:
        rows = self.relation(depth)
        fields = row_fields(rows)
        return Project(rows, tuple(Named(self.name(), self.value(fields)) for _ in range(self.rng.randint(1, 4))))

    def join(self, depth: int) -> Rows:
        left, right = self.relation(depth), self.relation(depth - 1 if depth else 0)
        return Join(left, right, self.rng.choice(tuple(JoinKind)), self.meeting(left, right), by_unit=True)

    def public_join(self, depth: int) -> Rows:
        left, right = self.relation(depth), self.public()
        kind = self.rng.choice((JoinKind.INNER, JoinKind.LEFT))
        return Join(left, right, kind, self.meeting(left, right))

    def mark(self, depth: int) -> Rows:
        left, right = self.relation(depth), self.relation(0)
        return self._marked(left, right, by_unit=True)

    def public_mark(self, depth: int) -> Rows:
        return self._marked(self.relation(depth), self.public(), by_unit=False)

    def _marked(self, left: Rows, right: Rows, by_unit: bool) -> Rows:
        test = None
        if self.rng.random() < 0.5:
            test = (self.whole(row_fields(left), 1), self.whole(row_fields(right), 1))
        marked = Mark(left, right, self.name(), self.meeting(left, right), test, by_unit)
        return Filter(marked, Not(Column(marked.name, BOOLEAN))) if self.rng.random() < 0.4 else marked

    def per_unit(self, depth: int) -> Rows:
        rows = self.relation(depth)
        fields = row_fields(rows)
        keys = tuple(Named(self.name(), self.value(fields)) for _ in range(self.rng.randint(0, 2)))
        return PerUnit(rows, keys, tuple(self._measure(fields) for _ in range(self.rng.randint(0, 3))))

    def _measure(self, fields: tuple[Field, ...]) -> UnitMeasure:
        function = self.rng.choice(("count_rows", "count", "count_distinct", "min", "max", "sum", "mean", "any",
                                    "median", "var_pop", "stddev_samp"))  # fmt: skip
        if function == "count_rows":
            return UnitMeasure(self.name(), function, None, BIGINT)
        arg = self.summed(fields) if function in ("sum", "mean", "var_pop", "stddev_samp") else self.value(fields)
        if function == "median":
            arg = self.double(fields, 2)
        if function == "any":
            arg = self.condition(fields, 1)
        return UnitMeasure(self.name(), function, arg, self._type(function, arg))

    def summed(self, fields: tuple[Field, ...]) -> Expr:
        """Something with bounds: sums of other doubles are refused."""
        bounded: list[Expr] = [*self.columns(fields, DOUBLE, MONEY), *self.columns(fields, INTEGER, BIGINT)]
        return self.rng.choice(bounded) if bounded else Literal(1, BIGINT)

    def _type(self, function: str, arg: Expr) -> Type:
        match function:
            case "count" | "count_distinct":
                return BIGINT
            case "sum":
                return sum_type(arg.type)
            case "mean" | "median" | "var_pop" | "stddev_samp":
                return DOUBLE
            case _:
                return arg.type

    def window(self, depth: int) -> Rows:
        rows = self.relation(depth)
        fields = row_fields(rows)
        function = self.rng.choice(("row_number", "rank", "dense_rank", "ntile", "lag", "lead", "first_value",
                                    "last_value", "count", "count_rows", "sum", "mean", "min", "max"))  # fmt: skip
        args: tuple[Expr, ...] = ()
        type_ = BIGINT
        if function == "ntile":
            args = (Literal(2, BIGINT),)
        elif function in ("sum", "mean"):
            args = (self.summed(fields),)
            type_ = self._type(function, args[0])
        elif function not in ("row_number", "rank", "dense_rank", "count_rows"):
            args = (self.value(fields),)
            type_ = self._type(function, args[0])
        partition = (self.value(fields),) if self.rng.random() < 0.3 else ()
        order = tuple(
            Ordering(self.value(fields), self.rng.random() < 0.5, self.rng.random() < 0.5)
            for _ in range(self.rng.randint(0, 2))
        )
        frame = None
        if function in ("count", "count_rows", "sum", "mean", "min", "max", "first_value", "last_value"):
            frame = self.rng.choice((None, "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
                                     "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                                     "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"))  # fmt: skip
        return UnitWindow(rows, self.name(), function, args, partition, order, frame, type_)

    def set_operation(self, depth: int) -> Rows:
        left, right = self._like(self.relation(depth)), self._like(self.relation(0))
        return SetOperation(self.rng.choice(tuple(SetKind)), left, right)

    def union_all(self, depth: int) -> Rows:
        return SetOperation(SetKind.UNION_ALL, self._like(self.relation(depth)), self._like(self.relation(0)))

    def _like(self, rows: Rows) -> Rows:
        """Two columns of fixed types, so that two relations fit each other."""
        fields = row_fields(rows)
        number = Cast(self.whole(fields, 1), BIGINT)
        return Project(rows, (Named(self.name(), number), Named(self.name(), self.double(fields, 1))))

    def expanded(self, rows: Rows) -> Rows:
        names = [f.name for f in row_fields(rows) if f.name != UID]
        keys = tuple(self.rng.sample(names, min(2, len(names))))
        sets = (frozenset(keys), frozenset(keys[:1]), frozenset[str]())
        return Expand(rows, keys, self.rng.choice((sets, sets[:2], (sets[2], sets[2]))))


def random_relation(rng: Random, row_units: bool) -> tuple[Rows, dict[str, list[dict[str, object]]]]:
    builder = Builder(rng, row_units)
    rows = builder.relation(rng.randint(1, 4))
    assert has_uid(rows) != row_units
    return (builder.expanded(rows) if rng.random() < 0.2 else rows), builder.holes


# --- rows ------------------------------------------------------------------------------------------------------------


def random_rows(rng: Random, uid: int, heavy: bool) -> dict[str, list[str]]:
    """One unit's rows in every table: few values, so that ties are everywhere."""
    count = rng.choice((6, 12)) if heavy else rng.randint(0, 3)

    def row() -> str:
        return ", ".join(rng.choice(pool[: rng.choice((3, len(pool)))] + pool[-1:]) for pool in POOLS.values())

    private = {name: [f"({uid}, {row()})" for _ in range(count)] for name in ("many", "more")}
    return private | {"one": [f"({uid}, {row()})"][: rng.randint(0, 1)], "rows": [f"({row()})"]}
