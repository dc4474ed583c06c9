"""Functions of numbers. Where the true result is none, or no finite double, it is NULL."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpsql.functions.record import Domains, Fit, Form, Function, NotWorkedOut, Types, Value, literal_of, whole_of
from dpsql.functions.rules import MOST_DOUBLE, nullable, outward, through, type_bounded
from dpsql.plan.expr import Call, Expr
from dpsql.schema.domain import Domain
from dpsql.types import BIGINT, DOUBLE, INTEGER, integer_range

LARGEST = 1.7976931348623157e308
SMALLEST = 5e-324
MOST_EXPONENT = 709.78  # exp of more is no finite double
MOST_DIGITS = 15
MOST_BUCKETS = 9_000

Step = Callable[[Fraction], Fraction]


def _double(number: float) -> str:
    return f"CAST('{number!r}' AS DOUBLE)"


def _named(call: Call, args: list[str]) -> str:
    return f"{call.function}({', '.join(args)})"


# --- types -----------------------------------------------------------------------------------------------------------


def _kept(types: Types) -> Fit | None:
    """Whole numbers stay; everything else is a double."""
    if not types[0].is_number or not all(type_.is_integer for type_ in types[1:]):
        return None
    result = BIGINT if types[0].is_integer else DOUBLE
    return Fit((types[0] if types[0].is_integer else DOUBLE, *(INTEGER for _ in types[1:])), result)


def _doubles(types: Types) -> Fit | None:
    return Fit((DOUBLE,) * len(types), DOUBLE) if all(type_.is_number for type_ in types) else None


def _wholes(types: Types) -> Fit | None:
    return Fit((BIGINT,) * len(types), BIGINT) if all(type_.is_integer for type_ in types) else None


def _bucketed(types: Types) -> Fit | None:
    numbers = all(type_.is_number for type_ in types) and types[3].is_integer
    return Fit((DOUBLE, DOUBLE, DOUBLE, BIGINT), BIGINT) if numbers else None


# --- rounding --------------------------------------------------------------------------------------------------------


def _monotone(step: Step) -> Callable[[Call, Domains], Domain]:
    def domain(call: Call, args: Domains) -> Domain:
        arg = args[0]
        if not arg.bounded:
            return type_bounded(Domain(call.type, arg.nullable))
        lower, upper = arg.bounds
        return Domain(call.type, arg.nullable, step(lower), step(upper))

    return domain


def _absolute(call: Call, args: Domains) -> Domain:
    arg = args[0]
    if not arg.bounded:
        return type_bounded(Domain(call.type, arg.nullable, Fraction(0)))
    corners = [abs(bound) for bound in arg.bounds]
    if arg.bounds[0] <= 0 <= arg.bounds[1]:
        corners.append(Fraction(0))
    return Domain(call.type, arg.nullable, min(corners), max(corners))


def _absolute_form(call: Call, args: list[str]) -> str:
    if call.type.is_integer:  # abs(-2^63) raises in 64 bits
        return f"TRY_CAST(abs(CAST({args[0]} AS HUGEINT)) AS BIGINT)"
    return f"abs({args[0]})"


def _digits(call: Call) -> int:
    return whole_of(call, 1) if len(call.args) == 2 else 0


def _rounded(call: Call, args: Domains) -> Domain:
    """To a neighbor on the grid of the digits."""
    if not args[0].bounded:
        return type_bounded(Domain(call.type, args[0].nullable))
    digits = _digits(call)
    step = Fraction(1, 10**digits) if digits >= 0 else Fraction(10**-digits)
    lower, upper = args[0].bounds
    ends = (lower / step).__floor__() * step, (upper / step).__ceil__() * step
    return type_bounded(Domain(call.type, args[0].nullable, *ends))


def _rounded_form(call: Call, args: list[str]) -> str:
    if call.type.is_integer:  # rounding 2^63 - 1 up raises in 64 bits
        return f"TRY_CAST({call.function}(CAST({args[0]} AS HUGEINT), {args[1]}) AS BIGINT)"
    return _named(call, args)


def _check_digits(call: Call) -> str | None:
    digits = literal_of(call, 1)
    fits = len(call.args) == 1 or (isinstance(digits, int) and abs(digits) <= MOST_DIGITS)
    return None if fits else f"the digits of {call.function} must be between -{MOST_DIGITS} and {MOST_DIGITS}"


def _whole_already(call: Call) -> Expr:
    whole = call.args[0].type.is_integer and (len(call.args) == 1 or whole_of(call, 1) >= 0)
    return call.args[0] if whole else call


def _evaluate_abs(call: Call, values: list[Value]) -> Value:
    if values[0] is None:
        return None
    assert isinstance(values[0], int)
    return _within(abs(values[0]))


def _within(number: int) -> int | None:
    least, most = integer_range(BIGINT)
    return number if least <= number <= most else None


def _evaluate_whole(step: Callable[[float], int]) -> Callable[[Call, list[Value]], Value]:
    def evaluate(call: Call, values: list[Value]) -> Value:
        if values[0] is None:
            return None
        if not isinstance(values[0], float) or not math.isfinite(values[0]):
            raise NotWorkedOut
        return float(step(values[0]))

    return evaluate


def _evaluate_finite(call: Call, values: list[Value]) -> Value:
    if values[0] is None:
        return None
    if not isinstance(values[0], float) or not math.isfinite(values[0]):
        raise NotWorkedOut
    return values[0] + 0.0


def _sign(call: Call, args: Domains) -> Domain:
    arg = args[0]
    lower = -1 if arg.lower is None or arg.lower < 0 else 0 if arg.lower == 0 else 1
    upper = 1 if arg.upper is None or arg.upper > 0 else 0 if arg.upper == 0 else -1
    return Domain(call.type, arg.nullable, Fraction(lower), Fraction(upper))


def _sign_form(call: Call, args: list[str]) -> str:
    return f"CAST(sign({args[0]}) AS {'BIGINT' if call.type.is_integer else 'DOUBLE'})"


def _evaluate_sign(call: Call, values: list[Value]) -> Value:
    if values[0] is None:
        return None
    assert isinstance(values[0], int)
    return (values[0] > 0) - (values[0] < 0)


def _finite_domain(call: Call, args: Domains) -> Domain:
    arg = args[0]
    return Domain(call.type, arg.nullable or not arg.bounded, arg.lower, arg.upper, arg.values, arg.length)


def _finite_form(call: Call, args: list[str]) -> str:
    return f"CASE WHEN isfinite({args[0]}) THEN {args[0]} + CAST('0.0' AS DOUBLE) END"


# --- functions of one double -----------------------------------------------------------------------------------------


def _increasing(
    name: str, function: Callable[[float], float], least: float, most: float, example: str, engine: str = ""
) -> Function:
    """An increasing function, NULL outside of [least, most] (NaN and the infinities are outside of any)."""

    def domain(call: Call, args: Domains) -> Domain:
        return through(args[0], function, least, most, DOUBLE)

    return Function(name, example, _doubles, domain, _guarded(engine or name, least, most))


def _guarded(engine: str, least: float, most: float) -> Form:
    def form(call: Call, args: list[str]) -> str:
        return f"CASE WHEN {args[0]} BETWEEN {_double(least)} AND {_double(most)} THEN {engine}({args[0]}) END"

    return form


def _within_one(name: str, example: str) -> Function:
    """Sine and cosine."""

    def domain(call: Call, args: Domains) -> Domain:
        return Domain(DOUBLE, True, Fraction(-1), Fraction(1))

    return Function(name, example, _doubles, domain, _guarded(name, -LARGEST, LARGEST))


def _cube_root(number: float) -> float:
    return math.copysign(abs(number) ** (1 / 3), number)


def _arc_cosine(call: Call, args: Domains) -> Domain:
    return Domain(DOUBLE, True, Fraction(0), Fraction(22, 7))


def _tangent(call: Call, args: Domains) -> Domain:
    return Domain(DOUBLE, True)


def _angle(call: Call, args: Domains) -> Domain:
    return Domain(DOUBLE, True, -Fraction(22, 7), Fraction(22, 7))


def _finite_call(call: Call, args: list[str]) -> str:
    sql = _named(call, args)
    return f"CASE WHEN isfinite({sql}) THEN {sql} END"


def _log_form(call: Call, args: list[str]) -> str:
    base, number = args
    positive = f"BETWEEN {_double(SMALLEST)} AND {_double(LARGEST)}"
    return f"(ln(CASE WHEN {number} {positive} THEN {number} END) / ln({base}))"


def _log_domain(call: Call, args: Domains) -> Domain:
    base = literal_of(call, 0)
    assert isinstance(base, float)

    def log(number: float) -> float:
        return math.log(number, base)

    return through(args[1], log, SMALLEST, LARGEST, DOUBLE)


def _check_base(call: Call) -> str | None:
    base = literal_of(call, 0)
    return None if isinstance(base, float) and base > 1 else "the base of log must be above 1"


# --- powers ----------------------------------------------------------------------------------------------------------


def _power(call: Call, args: Domains) -> Domain:
    """Bounds for a literal exponent, or a base above 0; elsewhere powers turn round, or have poles."""
    unknown = Domain(DOUBLE, True)
    base, exponent = args
    if not (base.bounded and exponent.bounded) or max(abs(b) for d in args for b in d.bounds) > MOST_DOUBLE:
        return unknown
    (low, high), (least, most) = base.bounds, exponent.bounds
    whole = least == most and least.denominator == 1 and least >= 0
    if not whole and low <= 0:
        return unknown
    try:
        corners = [math.pow(b, e) for b in (float(low), float(high)) for e in (float(least), float(most))]
    except (OverflowError, ValueError):
        return unknown
    corners += [0.0, *([1.0] if least == 0 else [])] if low <= 0 <= high else []
    bounds = outward(min(corners), max(corners))
    return unknown if bounds is None else Domain(DOUBLE, True, *bounds)


# --- whole numbers ---------------------------------------------------------------------------------------------------


def _bits(operator: str) -> Form:
    def form(call: Call, args: list[str]) -> str:
        # Literals are of the column's type in some engines; 64 bits on both sides are the same everywhere.
        return f"{operator}(CAST({args[0]} AS BIGINT), CAST({args[1]} AS BIGINT))"

    def infix(call: Call, args: list[str]) -> str:
        return f"(CAST({args[0]} AS BIGINT) {operator} CAST({args[1]} AS BIGINT))"

    return form if operator == "xor" else infix


def _bits_domain(call: Call, args: Domains) -> Domain:
    sure = [arg.bounds for arg in args if arg.bounded and arg.bounds[0] >= 0]
    if call.function == "bitand" and sure:
        return Domain(BIGINT, nullable(args), Fraction(0), min(upper for _, upper in sure))
    if len(sure) < 2:
        return Domain(BIGINT, nullable(args))
    most = max(int(upper) for _, upper in sure)
    return Domain(BIGINT, nullable(args), Fraction(0), Fraction((1 << most.bit_length()) - 1))


def _evaluate_bits(call: Call, values: list[Value]) -> Value:
    left, right = values
    if left is None or right is None:
        return None
    assert isinstance(left, int) and isinstance(right, int)
    return {"bitand": left & right, "bitor": left | right, "bitxor": left ^ right}[call.function]


def _bucket_domain(call: Call, args: Domains) -> Domain:
    return Domain(BIGINT, args[0].nullable, Fraction(0), Fraction(whole_of(call, 3) + 1))


def _bucket_form(call: Call, args: list[str]) -> str:
    """As PostgreSQL counts: 0 below, n + 1 at and beyond the upper bound."""
    number, lower, upper, _ = args
    count = whole_of(call, 3)
    place = f"TRY_CAST(floor(({number} - {lower}) / ({upper} - {lower}) * {_double(float(count))}) AS BIGINT)"
    return (
        f"CASE WHEN {number} < {lower} THEN CAST(0 AS BIGINT) WHEN {number} >= {upper} "
        f"THEN CAST({count + 1} AS BIGINT) ELSE least({place} + 1, CAST({count} AS BIGINT)) END"
    )


def _check_buckets(call: Call) -> str | None:
    lower, upper, count = (literal_of(call, place) for place in (1, 2, 3))
    if not isinstance(lower, float) or not isinstance(upper, float) or not lower < upper < 1e300 or lower < -1e300:
        return "width_bucket takes a lower and a greater upper bound"
    fits = isinstance(count, int) and 1 <= count <= MOST_BUCKETS
    return None if fits else f"width_bucket takes between 1 and {MOST_BUCKETS} buckets"


def _grid(function: str, example: str, step: Callable[[float], int] | None = None) -> Function:
    """ROUND and its like: nothing to do for whole numbers. FLOOR and CEIL take no digits."""
    if step is not None:
        return Function(function, example, _kept, _monotone(lambda x: Fraction(step(x))), _named,  # type: ignore[arg-type]
                        evaluate=_evaluate_whole(step), doubles=True, shorter=_whole_already)  # fmt: skip
    domain = _rounded
    return Function(function, example, _kept, domain, _rounded_form, 1, 2, frozenset({1}), _check_digits,
                    shorter=_whole_already)  # fmt: skip


NUMBERS = (
    Function("abs", "abs(cost)", _kept, _absolute, _absolute_form, evaluate=_evaluate_abs),
    _grid("floor", "floor(cost)", math.floor),
    _grid("ceil", "ceil(cost)", math.ceil),
    _grid("round", "round(cost, 1)"),
    _grid("trunc", "trunc(cost, 1)"),
    Function("sign", "sign(cost)", _kept, _sign, _sign_form, evaluate=_evaluate_sign),
    Function("finite", "", _doubles, _finite_domain, _finite_form, evaluate=_evaluate_finite, doubles=True,
             written=False),
    _increasing("sqrt", math.sqrt, 0.0, LARGEST, "sqrt(cost)"),
    _increasing("cbrt", _cube_root, -LARGEST, LARGEST, "cbrt(cost)"),
    _increasing("exp", math.exp, -LARGEST, MOST_EXPONENT, "exp(cost / 1000)"),
    _increasing("ln", math.log, SMALLEST, LARGEST, "ln(cost)"),
    _increasing("log10", math.log10, SMALLEST, LARGEST, "log10(cost)"),
    _increasing("log2", math.log2, SMALLEST, LARGEST, "log2(cost)"),
    Function("log", "log(2, cost)", _doubles, _log_domain, _log_form, 2, 2, frozenset({0}), _check_base),
    Function("power", "power(cost, 2)", _doubles, _power, _finite_call, 2, 2),
    _within_one("sin", "sin(cost)"),
    _within_one("cos", "cos(cost)"),
    Function("tan", "tan(cost)", _doubles, _tangent, _guarded("tan", -LARGEST, LARGEST)),
    _increasing("asin", math.asin, -1.0, 1.0, "asin(cost / 5000)"),
    Function("acos", "acos(cost / 5000)", _doubles, _arc_cosine, _guarded("acos", -1.0, 1.0)),
    _increasing("atan", math.atan, -LARGEST, LARGEST, "atan(cost)"),
    Function("atan2", "atan2(cost, paid)", _doubles, _angle, _finite_call, 2, 2),
    _increasing("degrees", math.degrees, -3e306, 3e306, "degrees(cost)"),
    _increasing("radians", math.radians, -LARGEST, LARGEST, "radians(cost)"),
    Function("bitand", "score & 1", _wholes, _bits_domain, _bits("&"), 2, 2, evaluate=_evaluate_bits),
    Function("bitor", "score | 1", _wholes, _bits_domain, _bits("|"), 2, 2, evaluate=_evaluate_bits),
    Function("bitxor", "score # 1", _wholes, _bits_domain, _bits("xor"), 2, 2, evaluate=_evaluate_bits),
    Function("width_bucket", "width_bucket(cost, 0, 100, 10)", _bucketed, _bucket_domain, _bucket_form, 4, 4,
             frozenset({1, 2, 3}), _check_buckets),
)  # fmt: skip
