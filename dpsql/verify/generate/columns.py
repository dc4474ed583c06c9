"""How a declared column may lie in the engine, and the worst values that it can hold there.

A value is the text of a DuckDB literal, so that a failing case can be pasted and replayed. Soundness never rests on the
data being as declared: a column may be stored as another type, beyond its bounds, outside of its list.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from dpsql.schema.model import Column
from dpsql.types import BOOLEAN, DATE, DOUBLE, HUGEINT, REAL, TEXT, TIMESTAMP, Kind, Type, integer_range
from dpsql.verify.generate.choices import ChoiceStream

NULL = "NULL"


@dataclass(frozen=True)
class StoredColumn:
    """A column: what the owner declares, what the engine holds, and values to put into it.

    `own` are keys that only one unit has; `far` is as low and as high as can be.
    """

    declared: Column
    physical: Type
    pool: tuple[str, ...]
    own: tuple[str, ...] = ()
    far: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def engine_type(self) -> str:
        """The engine's name of the physical type."""
        return engine_type_name(self.physical)


def engine_type_name(type_: Type) -> str:
    return "VARCHAR" if type_ == TEXT else str(type_).upper()


def quote_literal(text: str, type_: Type) -> str:
    quoted = "'" + text.replace("'", "''") + "'"
    return quoted if type_ == TEXT else f"CAST({quoted} AS {engine_type_name(type_)})"


def store_column(column: Column, choices: ChoiceStream, is_id: bool = False) -> StoredColumn:
    """Mostly as declared; an id always so, since ids are never cast (and checked when data is registered)."""
    physical = column.type if is_id else choices.choice(_candidate_types(column.type))
    texts = [*_declared_values(column), *_extreme_values(physical)]
    if column.type != physical:
        texts += _extreme_values(column.type)
    literals = [quote_literal(text, physical) for text in dict.fromkeys(texts) if _can_hold(physical, text)]
    own_keys = tuple(quote_literal(f"own{n}", TEXT) for n in range(12)) if _is_free_text(column, physical) else ()
    return StoredColumn(column, physical, (*literals, NULL), own_keys, _extreme_literals(column, physical, choices))


def _is_free_text(column: Column, physical: Type) -> bool:
    return column.type == TEXT and physical == TEXT and column.domain.values is None


def _candidate_types(type_: Type) -> tuple[Type, ...]:
    """The declared type first and most often; then those whose total cast to it is worth trying."""
    declared = (type_,) * 4
    match type_.kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return (*declared, HUGEINT, DOUBLE, TEXT)
        case Kind.HUGEINT | Kind.DECIMAL:
            return (*declared, DOUBLE, TEXT)
        case Kind.REAL | Kind.DOUBLE:
            return (*declared, REAL, TEXT)
        case Kind.BOOLEAN:
            return (*declared, TEXT)
        case Kind.DATE:
            return (*declared, TIMESTAMP, TEXT)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return (*declared, DATE, TEXT)
        case Kind.TEXT | Kind.TIME | Kind.INTERVAL | Kind.UUID:
            return declared


# --- values ----------------------------------------------------------------------------------------------------------

TEXTS = ("k1", "k2", "K1", "", "a", "b", "éé", "it's", "2020-01-01", "12", "20000-01-01", "nan", "-0.0", "x" * 8)
WILD_TEXTS = ("5877642-06-25 (BC)", "290309-12-22 (BC) 00:00:00", "infinity", "x" * 9, "long" * 600, "a\\b%_")
DATES = ("2020-02-29", "2021-12-31", "2022-01-01", "2019-12-30", "1970-01-01", "0001-01-01", "9999-12-31")
WILD_DATES = ("infinity", "-infinity", "5877642-06-25 (BC)", "5881580-07-10", "20000-01-01", "0044-03-15 (BC)")
WILD_TIMESTAMPS = ("infinity", "-infinity", "290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806",
                "9999-12-31 23:59:59.999999", "2020-06-15 23:59:59.999999")  # fmt: skip


def _declared_values(column: Column) -> list[str]:
    """What the owner thinks of: listed values; the bounds, just inside and just outside of them."""
    domain, values = column.domain, [] if column.domain.values is None else [str(v) for v in column.domain.values]
    if domain.is_bounded and column.type.is_number:
        values += _numbers_near_bounds(*domain.bounds, column.type)
    elif domain.is_bounded and column.type.is_time:
        values += [format_timestamp(bound + step, column.type) for bound in domain.bounds for step in (-1, 0, 1)]
        values.append(format_timestamp((domain.bounds[0] + domain.bounds[1]) // 2 * Fraction(1), column.type))
    return values


def _numbers_near_bounds(lower: Fraction, upper: Fraction, type_: Type) -> list[str]:
    middle = (lower + upper) / 2
    if type_.is_integer:
        around = (lower, upper, middle, lower - 1, lower + 1, upper - 1, upper + 1, -lower, -upper, 0, 1, -1)
        return [str(int(number)) for number in around]
    if type_.kind is Kind.DECIMAL:
        step = Fraction(1, 10 ** (type_.scale or 0))
        near = (lower, upper, middle, lower - step, lower + step, upper - step, upper + step, Fraction(0))
        return [_format_decimal(number, type_) for number in near]
    ends = float(lower), float(upper)
    next_floats = [math.nextafter(end, direction) for end in ends for direction in (math.inf, -math.inf)]
    inside = [ends[0] + (ends[1] - ends[0]) * share for share in (0.3, 0.5, 0.999)]
    return [
        repr(x) for x in (*ends, *inside, *next_floats, ends[0] + 0.005, ends[0] - 1, ends[1] + 1, -ends[0], -ends[1])
    ]


def _format_decimal(number: Fraction, type_: Type) -> str:
    scaled = round(number * 10 ** (type_.scale or 0))
    return str(Decimal(scaled).scaleb(-(type_.scale or 0)))


def format_timestamp(number: Fraction, type_: Type) -> str:
    integer = int(number)
    try:
        if type_ == DATE:
            return str(dt.date(1970, 1, 1) + dt.timedelta(days=integer))
        return str(dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=integer))
    except OverflowError:
        return "1970-01-01"


def _extreme_values(type_: Type) -> Sequence[str]:
    """Values that no declaration has heard of: the ends of the type, and what casts stumble over."""
    match type_.kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT | Kind.HUGEINT:
            lower, upper = integer_range(type_)
            return ("0", "1", "-1", "7", str(lower), str(upper), str(2**53 + 1), str(2**62), str(10**9))
        case Kind.DECIMAL:
            nines = "9" * ((type_.precision or 1) - (type_.scale or 0)) or "0"
            return ("0", "1", "-1", nines, f"-{nines}", "0.01")
        case Kind.REAL | Kind.DOUBLE:
            return ("0.0", "-0.0", "1.0", "nan", "inf", "-inf", "1e308", "-1e308", "5e-324", "-5e-324", "4.6e18", "2.5")
        case Kind.BOOLEAN:
            return ("true", "false")
        case Kind.DATE:
            return (*DATES, *WILD_DATES)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return (*DATES, *WILD_TIMESTAMPS)
        case Kind.TEXT:
            return (*TEXTS, *WILD_TEXTS)
        case Kind.TIME:
            return ("00:00:00", "10:30:00", "23:59:59.999999", "24:00:00")
        case Kind.INTERVAL:
            return ("1 day", "-1 month", "30 days", "2147483647 months", "00:00:00.000001")
        case Kind.UUID:
            return tuple(f"00000000-0000-0000-0000-{n:012d}" for n in range(4))


def _can_hold(type_: Type, text: str) -> bool:
    """Whether a literal of this type can be written so; what cannot is left out."""
    match type_.kind:
        case Kind.TEXT:
            return True
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT | Kind.HUGEINT:
            lower, upper = integer_range(type_)
            return _is_integer_text(text) and lower <= int(text) <= upper
        case Kind.DECIMAL:
            max_scaled = 10 ** (type_.precision or 0)
            number = _parse_finite(text)
            return number is not None and abs(number * 10 ** (type_.scale or 0)) < max_scaled
        case Kind.DOUBLE:
            return _parse_finite(text) is not None or text in ("nan", "inf", "-inf")
        case Kind.REAL:
            number = _parse_finite(text)
            return text in ("nan", "inf", "-inf") or (number is not None and abs(number) < 10**38)
        case Kind.BOOLEAN:
            return text.lower() in ("true", "false")
        case Kind.DATE:
            return text in (*DATES, *WILD_DATES) or _is_iso_date(text, dt.date)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return text in (*DATES, *WILD_TIMESTAMPS) or _is_iso_date(text, dt.datetime)
        case Kind.TIME | Kind.INTERVAL | Kind.UUID:
            return text in _extreme_values(type_)


def _is_integer_text(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()


def _parse_finite(text: str) -> Fraction | None:
    try:
        return Fraction(text)
    except ValueError:
        return None


def _is_iso_date(text: str, kind: type[dt.date]) -> bool:
    try:
        kind.fromisoformat(text)
    except ValueError:
        return False
    return True


def _extreme_literals(column: Column, physical: Type, choices: ChoiceStream) -> tuple[str, ...]:
    """Below and above all bounds, where a number is stored as one: it moves a sum furthest.

    A step beyond them as often as at the ends of the type: a clip that is off by one shows only there.
    """
    if not column.type.is_number or not physical.is_number or not column.domain.is_bounded:
        return ()
    ends = _type_range(physical)
    if column.type.is_integer and choices.draw_bool(0.5):
        lower, upper = column.domain.bounds
        beyond = str(math.floor(lower) - 1), str(math.ceil(upper) + 1)
        ends = tuple(near if _can_hold(physical, near) else end for near, end in zip(beyond, ends, strict=True))
    return tuple(quote_literal(end, physical) for end in ends)


def _type_range(type_: Type) -> tuple[str, ...]:
    if type_.is_float:
        largest = "3e38" if type_ == REAL else "1e308"
        return f"-{largest}", largest
    if type_.kind is Kind.DECIMAL:
        nines = "9" * ((type_.precision or 1) - (type_.scale or 0)) or "0"
        return f"-{nines}", nines
    return tuple(str(end) for end in integer_range(type_))


# --- ids and unique keys ---------------------------------------------------------------------------------------------


def serial_literal(column: Column, physical: Type, number: int) -> str:
    """A value that no other number gives, after sanitising too; NULL, which is no key, where there is none left."""
    domain = column.domain
    if domain.values is not None:
        values = domain.values
        return quote_literal(str(values[number]), physical) if number < len(values) else NULL
    match column.type.kind:
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT | Kind.HUGEINT | Kind.DECIMAL | Kind.REAL | Kind.DOUBLE:
            value = number + (math.ceil(domain.lower) if domain.lower is not None else 0)
            fits = domain.upper is None or value <= domain.upper
            return quote_literal(str(value), physical) if fits and _can_hold(physical, str(value)) else NULL
        case Kind.TEXT:
            text = f"u{number}"
            return quote_literal(text, physical) if len(text) <= column.max_length else NULL
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            low = int(domain.lower) if domain.lower is not None else 0
            step = 1 if column.type == DATE else 1_000_000
            if physical == DATE and column.type != DATE:
                step = 86_400_000_000
            value = low + number * step
            fits = domain.upper is None or value <= domain.upper
            return quote_literal(format_timestamp(Fraction(value), column.type), physical) if fits else NULL
        case Kind.UUID:
            return quote_literal(f"00000000-0000-0000-0000-{number:012d}", physical)
        case Kind.BOOLEAN | Kind.TIME | Kind.INTERVAL:
            return NULL


def kind_of(type_: Type) -> str:
    """How a statement may use it: number, text, boolean, time or other."""
    if type_.is_number:
        return "number"
    if type_.is_time:
        return "time"
    return "boolean" if type_ == BOOLEAN else "text" if type_ == TEXT else "other"
