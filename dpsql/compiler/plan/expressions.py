"""Scalar expressions over one row. A closed union of frozen values; every pass matches every one (law 9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from dpsql.errors import DataError
from dpsql.schema.model import Domain, Scalar
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, HUGEINT, INTEGER, Kind, Type, integer_range

UID = "_uid"
"""The column that carries the privacy unit's id through every owned relation."""

WEIGHT = "_weight"
"""The column that `Weigh` adds; 2^16 is a whole row."""

ROW = "_row"
"""Where each row is its own unit and blocks are made: a hash of the row as its table holds it."""

ROW_WEIGHT = 1 << 16


@dataclass(frozen=True)
class Column:
    name: str
    type: Type
    origin: str | None = field(default=None, compare=False)  # table.column, for messages


@dataclass(frozen=True)
class Literal:
    """Privacy: its type holds the value: an engine casts it in the rows that reach it, and would raise there alone."""

    value: Scalar | None
    type: Type

    def __post_init__(self) -> None:
        if not _fits_type(self.type, self.value):
            raise DataError(f"a number is beyond what {self.type} holds", sqlstate="22003")
        # 1 == True == 1.0 in Python; a literal of another type must never pass for this one.
        if isinstance(self.value, bool) != (self.type.kind is Kind.BOOLEAN) and self.value is not None:
            raise TypeError(f"{self.value!r} is not a literal of type {self.type}")


def _fits_type(type_: Type, value: Scalar | None) -> bool:
    if isinstance(value, Decimal) and type_.kind is Kind.DECIMAL:
        return bool(abs(value) < Decimal(10) ** ((type_.precision or 0) - (type_.scale or 0)))
    if not isinstance(value, int) or not (type_.is_integer or type_.is_microsecond_interval):
        return True
    lowest, highest = integer_range(BIGINT if type_.is_microsecond_interval else type_)
    return lowest <= value <= highest


def _require_same_types(left: Type, right: Type) -> None:
    """An engine's implicit cast raises on some values, so both sides have one type; whole numbers widen safely."""
    if left != right and not (left.is_integer and right.is_integer and Kind.HUGEINT not in (left.kind, right.kind)):
        raise TypeError(f"{left} is compared with {right}")


@dataclass(frozen=True)
class Compare:
    op: str  # = <> < <= > >=
    left: Expr
    right: Expr

    def __post_init__(self) -> None:
        _require_same_types(self.left.type, self.right.type)

    @property
    def type(self) -> Type:
        return BOOLEAN


@dataclass(frozen=True)
class And:
    args: tuple[Expr, ...]

    @property
    def type(self) -> Type:
        return BOOLEAN


@dataclass(frozen=True)
class Or:
    args: tuple[Expr, ...]

    @property
    def type(self) -> Type:
        return BOOLEAN


@dataclass(frozen=True)
class Not:
    arg: Expr

    @property
    def type(self) -> Type:
        return BOOLEAN


@dataclass(frozen=True)
class IsNull:
    arg: Expr

    @property
    def type(self) -> Type:
        return BOOLEAN


@dataclass(frozen=True)
class InList:
    arg: Expr
    values: tuple[Literal, ...]  # without NULL; a NULL in the SQL list is kept as `Or(…, Literal NULL)`

    def __post_init__(self) -> None:
        for value in self.values:
            _require_same_types(self.arg.type, value.type)

    @property
    def type(self) -> Type:
        return BOOLEAN


@dataclass(frozen=True)
class Arithmetic:
    """`//` divides integers toward zero; `/` divides doubles; a zero divisor gives NULL, and so does overflow.

    `fits` is set where domains prove that 64 bits hold every result; otherwise 128 bits are used and checked.
    """

    op: str  # + - * / // %
    left: Expr
    right: Expr
    type: Type
    fits: bool = False

    def __post_init__(self) -> None:
        if HUGEINT in (self.left.type, self.right.type):
            raise TypeError("128 bits do not hold arithmetic of what has 128 bits")


@dataclass(frozen=True)
class Case:
    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr
    type: Type


@dataclass(frozen=True)
class Cast:
    """A total cast: what does not fit becomes NULL."""

    arg: Expr
    type: Type


@dataclass(frozen=True)
class Call:
    function: str
    args: tuple[Expr, ...]
    type: Type


@dataclass(frozen=True)
class Clip:
    """Numbers moved into [lower, upper]; NULL, NaN and infinities become NULL."""

    arg: Expr
    lower: Fraction
    upper: Fraction

    @property
    def type(self) -> Type:
        inner = self.arg.type  # asked once: twice would be 2^n times where n are nested
        return inner if inner.is_integer else DOUBLE


@dataclass(frozen=True)
class Quantise:
    """A number as a whole count of grid steps, clipped *in integers* to [lower, upper]; NULL stays NULL.

    Stability: whatever `arg` is, the result is NULL or an integer of [lower, upper]; sensitivities
    rest on this clip alone (Casacuberta et al. 2022 on why not on float sums).
    """

    arg: Expr
    grid: Fraction
    lower: int
    upper: int

    def __post_init__(self) -> None:
        if self.grid <= 0 or self.lower > self.upper or max(abs(self.lower), abs(self.upper)) > 1 << 45:
            raise ValueError("a grid is positive and its bounds are ordered and below 2^45 steps")

    @property
    def type(self) -> Type:
        return BIGINT


@dataclass(frozen=True)
class HoleValue:
    """One value that an earlier step released; always nullable. `domain` is fixed at compile time (SOUNDNESS 8)."""

    hole: str
    domain: Domain

    @property
    def type(self) -> Type:
        return self.domain.type


@dataclass(frozen=True)
class InHole:
    """Whether a value is in the list that an earlier step released, with SQL's NULL."""

    arg: Expr
    hole: str
    domain: Domain  # of the list's values

    def __post_init__(self) -> None:
        _require_same_types(self.arg.type, self.domain.type)

    @property
    def type(self) -> Type:
        return BOOLEAN


Expr = (
    Column
    | Literal
    | Compare
    | And
    | Or
    | Not
    | IsNull
    | InList
    | Arithmetic
    | Case
    | Cast
    | Call
    | Clip
    | Quantise
    | HoleValue
    | InHole
)

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


def split_conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The parts of a condition that must all hold, nested ANDs flattened."""
    if isinstance(condition, And):
        return tuple(part for arg in condition.args for part in split_conjuncts(arg))
    return (condition,)


def join_conjuncts(parts: tuple[Expr, ...]) -> Expr:
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else And(parts)


def split_shared_equalities(condition: Expr) -> tuple[Expr, ...]:
    """The parts of a condition that must all hold, with equalities of columns that each branch of an OR has before it.

    (a = b AND x) OR (b = a AND y)  →  a = b, x OR y: the same with SQL's NULL, too. Joins are found by such equalities.
    """
    parts = _split_all(condition)
    return (condition,) if parts == split_conjuncts(condition) else parts


def _split_all(condition: Expr) -> tuple[Expr, ...]:
    return tuple(part for conjunct in split_conjuncts(condition) for part in _split_or(conjunct))


def _split_or(condition: Expr) -> tuple[Expr, ...]:
    if not isinstance(condition, Or):
        return (condition,)
    branches = [_split_all(branch) for branch in condition.args]
    shared = tuple(part for part in branches[0] if all(_has_equality(part, branch) for branch in branches[1:]))
    if not shared:
        return (condition,)
    rest = [tuple(part for part in branch if not _has_equality(part, shared)) for branch in branches]
    return shared if () in rest else (*shared, Or(tuple(map(join_conjuncts, rest))))


def _has_equality(part: Expr, parts: tuple[Expr, ...]) -> bool:
    """Whether an equality of two columns is among the parts, either way round."""
    if not isinstance(part, Compare) or part.op != "=":
        return False
    if not isinstance(part.left, Column) or not isinstance(part.right, Column):
        return False
    return part in parts or Compare("=", part.right, part.left) in parts


def is_bigint_value(expr: Expr) -> bool:
    """Whether PostgreSQL has a bigint for a whole number over private rows; its plain literals are integers."""
    if isinstance(expr, Column | Cast):
        return expr.type == BIGINT
    if isinstance(expr, Literal):
        return isinstance(expr.value, int) and abs(expr.value) > integer_range(INTEGER)[1]
    if isinstance(expr, Case):
        return any(is_bigint_value(value) for value in (*(value for _, value in expr.branches), expr.otherwise))
    parts: tuple[Expr, ...] = ()
    if isinstance(expr, Arithmetic):
        parts = (expr.left, expr.right)
    elif isinstance(expr, Call):
        parts = expr.args
    elif isinstance(expr, Clip):
        parts = (expr.arg,)
    return any(map(is_bigint_value, parts))
