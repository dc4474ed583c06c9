"""Functions of numbers. Where the true result is none, or no finite double, it is NULL."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpsql.compiler.functions.function import (
    MAX_DOUBLE,
    Domains,
    NotEvaluable,
    ScalarFunction,
    Signature,
    SqlRenderer,
    Types,
    Value,
    has_nullable,
    integer_argument,
    limit_to_type,
    literal_argument,
    map_increasing,
    widen_bounds,
)
from dpsql.compiler.plan.expressions import Call, Expr
from dpsql.schema.model import Domain
from dpsql.types import BIGINT, DOUBLE, INTEGER, integer_range

LARGEST_DOUBLE = 1.7976931348623157e308
SMALLEST_DOUBLE = 5e-324
MAX_EXPONENT = 709.78  # exp of more is no finite double
BELOW_ONE = 1 - 2.0**-53
MAX_DIGITS = 15
MAX_BUCKETS = 9_000

MonotoneStep = Callable[[Fraction], Fraction]


def _double_literal(number: float) -> str:
    return f"CAST('{number!r}' AS DOUBLE)"


def _render_call(call: Call, args: list[str]) -> str:
    return f"{call.function}({', '.join(args)})"


# --- types -----------------------------------------------------------------------------------------------------------


def _rounding_signature(types: Types) -> Signature | None:
    """Whole numbers stay; everything else is a double."""
    if not types[0].is_number or not all(type_.is_integer for type_ in types[1:]):
        return None
    result = BIGINT if types[0].is_integer else DOUBLE
    return Signature((types[0] if types[0].is_integer else DOUBLE, *(INTEGER for _ in types[1:])), result)


def _doubles_signature(types: Types) -> Signature | None:
    return Signature((DOUBLE,) * len(types), DOUBLE) if all(type_.is_number for type_ in types) else None


def _integers_signature(types: Types) -> Signature | None:
    return Signature((BIGINT,) * len(types), BIGINT) if all(type_.is_integer for type_ in types) else None


def _bucket_signature(types: Types) -> Signature | None:
    numbers = all(type_.is_number for type_ in types) and types[3].is_integer
    return Signature((DOUBLE, DOUBLE, DOUBLE, BIGINT), BIGINT) if numbers else None


# --- rounding --------------------------------------------------------------------------------------------------------


def _monotone_domain(step: MonotoneStep) -> Callable[[Call, Domains], Domain]:
    def domain(call: Call, args: Domains) -> Domain:
        arg = args[0]
        if not arg.is_bounded:
            return limit_to_type(Domain(call.type, arg.nullable))
        lower, upper = arg.bounds
        return Domain(call.type, arg.nullable, step(lower), step(upper))

    return domain


def _abs_domain(call: Call, args: Domains) -> Domain:
    arg = args[0]
    if not arg.is_bounded:
        return limit_to_type(Domain(call.type, arg.nullable, Fraction(0)))
    corners = [abs(bound) for bound in arg.bounds]
    if arg.bounds[0] <= 0 <= arg.bounds[1]:
        corners.append(Fraction(0))
    return Domain(call.type, arg.nullable, min(corners), max(corners))


def _render_abs(call: Call, args: list[str]) -> str:
    if call.type.is_integer:  # abs(-2^63) raises in 64 bits
        return f"TRY_CAST(abs(CAST({args[0]} AS HUGEINT)) AS BIGINT)"
    return f"abs({args[0]})"


def _digits_argument(call: Call) -> int:
    return integer_argument(call, 1) if len(call.args) == 2 else 0


def _round_domain(call: Call, args: Domains) -> Domain:
    """To a neighbor on the grid of the digits."""
    if not args[0].is_bounded:
        return limit_to_type(Domain(call.type, args[0].nullable))
    digits = _digits_argument(call)
    step = Fraction(1, 10**digits) if digits >= 0 else Fraction(10**-digits)
    lower, upper = args[0].bounds
    ends = (lower / step).__floor__() * step, (upper / step).__ceil__() * step
    return limit_to_type(Domain(call.type, args[0].nullable, *ends))


def _render_round(call: Call, args: list[str]) -> str:
    if call.type.is_integer:  # rounding 2^63 - 1 up raises in 64 bits
        return f"TRY_CAST({call.function}(CAST({args[0]} AS HUGEINT), {args[1]}) AS BIGINT)"
    return _render_call(call, args)


def _check_digits(call: Call) -> str | None:
    digits = literal_argument(call, 1)
    fits = len(call.args) == 1 or (isinstance(digits, int) and abs(digits) <= MAX_DIGITS)
    return None if fits else f"the digits of {call.function} must be between -{MAX_DIGITS} and {MAX_DIGITS}"


def _drop_integer_rounding(call: Call) -> Expr:
    is_integer = call.args[0].type.is_integer and (len(call.args) == 1 or integer_argument(call, 1) >= 0)
    return call.args[0] if is_integer else call


def _evaluate_abs(call: Call, values: list[Value]) -> Value:
    if values[0] is None:
        return None
    assert isinstance(values[0], int)
    return _null_beyond_bigint(abs(values[0]))


def _null_beyond_bigint(number: int) -> int | None:
    lowest, highest = integer_range(BIGINT)
    return number if lowest <= number <= highest else None


def _evaluate_rounding(step: Callable[[float], int]) -> Callable[[Call, list[Value]], Value]:
    def evaluate(call: Call, values: list[Value]) -> Value:
        if values[0] is None:
            return None
        if not isinstance(values[0], float) or not math.isfinite(values[0]):
            raise NotEvaluable
        return float(step(values[0]))

    return evaluate


def _evaluate_finite(call: Call, values: list[Value]) -> Value:
    if values[0] is None:
        return None
    if not isinstance(values[0], float) or not math.isfinite(values[0]):
        raise NotEvaluable
    return values[0] + 0.0


def _sign_domain(call: Call, args: Domains) -> Domain:
    arg = args[0]
    lower = -1 if arg.lower is None or arg.lower < 0 else 0 if arg.lower == 0 else 1
    upper = 1 if arg.upper is None or arg.upper > 0 else 0 if arg.upper == 0 else -1
    return Domain(call.type, arg.nullable, Fraction(lower), Fraction(upper))


def _render_sign(call: Call, args: list[str]) -> str:
    return f"CAST(sign({args[0]}) AS {'BIGINT' if call.type.is_integer else 'DOUBLE'})"


def _evaluate_sign(call: Call, values: list[Value]) -> Value:
    if values[0] is None:
        return None
    assert isinstance(values[0], int)
    return (values[0] > 0) - (values[0] < 0)


def _finite_domain(call: Call, args: Domains) -> Domain:
    arg = args[0]
    return Domain(call.type, arg.nullable or not arg.is_bounded, arg.lower, arg.upper, arg.values, arg.length)


def _render_finite(call: Call, args: list[str]) -> str:
    return f"CASE WHEN isfinite({args[0]}) THEN {args[0]} + CAST('0.0' AS DOUBLE) END"


# --- functions of one double -----------------------------------------------------------------------------------------


def _increasing_function(
    name: str, function: Callable[[float], float], lowest: float, highest: float, example: str, engine: str = ""
) -> ScalarFunction:
    """An increasing function, NULL outside of [least, most] (NaN and the infinities are outside of any)."""

    def domain(call: Call, args: Domains) -> Domain:
        return map_increasing(args[0], function, lowest, highest, DOUBLE)

    return ScalarFunction(name, example, _doubles_signature, domain, _render_guarded(engine or name, lowest, highest))


def _render_guarded(engine: str, lowest: float, highest: float) -> SqlRenderer:
    def form(call: Call, args: list[str]) -> str:
        bounds = f"{_double_literal(lowest)} AND {_double_literal(highest)}"
        return f"CASE WHEN {args[0]} BETWEEN {bounds} THEN {engine}({args[0]}) END"

    return form


def _sine_function(name: str, example: str) -> ScalarFunction:
    """Sine and cosine."""

    def domain(call: Call, args: Domains) -> Domain:
        return Domain(DOUBLE, True, Fraction(-1), Fraction(1))

    return ScalarFunction(
        name, example, _doubles_signature, domain, _render_guarded(name, -LARGEST_DOUBLE, LARGEST_DOUBLE)
    )


def _cube_root(number: float) -> float:
    return math.copysign(abs(number) ** (1 / 3), number)


def _acos_domain(call: Call, args: Domains) -> Domain:
    return Domain(DOUBLE, True, Fraction(0), Fraction(22, 7))


def _tan_domain(call: Call, args: Domains) -> Domain:
    return Domain(DOUBLE, True)


def _atan2_domain(call: Call, args: Domains) -> Domain:
    return Domain(DOUBLE, True, -Fraction(22, 7), Fraction(22, 7))


def _render_finite_call(call: Call, args: list[str]) -> str:
    sql = _render_call(call, args)
    return f"CASE WHEN isfinite({sql}) THEN {sql} END"


def _render_log(call: Call, args: list[str]) -> str:
    base, number = args
    positive = f"BETWEEN {_double_literal(SMALLEST_DOUBLE)} AND {_double_literal(LARGEST_DOUBLE)}"
    return f"(ln(CASE WHEN {number} {positive} THEN {number} END) / ln({base}))"


def _log_domain(call: Call, args: Domains) -> Domain:
    base = literal_argument(call, 0)
    assert isinstance(base, float)

    def log(number: float) -> float:
        return math.log(number, base)

    return map_increasing(args[1], log, SMALLEST_DOUBLE, LARGEST_DOUBLE, DOUBLE)


def _check_base(call: Call) -> str | None:
    base = literal_argument(call, 0)
    return None if isinstance(base, float) and base > 1 else "the base of log must be above 1"


# --- powers ----------------------------------------------------------------------------------------------------------


def _power_domain(call: Call, args: Domains) -> Domain:
    """Bounds for a literal exponent, or a base above 0; elsewhere powers turn round, or have poles."""
    unknown = Domain(DOUBLE, True)
    base, exponent = args
    if not (base.is_bounded and exponent.is_bounded) or max(abs(b) for d in args for b in d.bounds) > MAX_DOUBLE:
        return unknown
    (low, high), (lowest, highest) = base.bounds, exponent.bounds
    is_integer = lowest == highest and lowest.denominator == 1 and lowest >= 0
    if not is_integer and low <= 0:
        return unknown
    try:
        corners = [math.pow(b, e) for b in (float(low), float(high)) for e in (float(lowest), float(highest))]
    except (OverflowError, ValueError):
        return unknown
    corners += [0.0, *([1.0] if lowest == 0 else [])] if low <= 0 <= high else []
    bounds = widen_bounds(min(corners), max(corners))
    return unknown if bounds is None else Domain(DOUBLE, True, *bounds)


# --- whole numbers ---------------------------------------------------------------------------------------------------


def _render_bits(operator: str) -> SqlRenderer:
    def form(call: Call, args: list[str]) -> str:
        # Literals are of the column's type in some engines; 64 bits on both sides are the same everywhere.
        return f"{operator}(CAST({args[0]} AS BIGINT), CAST({args[1]} AS BIGINT))"

    def infix(call: Call, args: list[str]) -> str:
        return f"(CAST({args[0]} AS BIGINT) {operator} CAST({args[1]} AS BIGINT))"

    return form if operator == "xor" else infix


def _bits_domain(call: Call, args: Domains) -> Domain:
    non_negative = [arg.bounds for arg in args if arg.is_bounded and arg.bounds[0] >= 0]
    if call.function == "bitand" and non_negative:
        return Domain(BIGINT, has_nullable(args), Fraction(0), min(upper for _, upper in non_negative))
    if len(non_negative) < 2:
        return Domain(BIGINT, has_nullable(args))
    largest = max(int(upper) for _, upper in non_negative)
    return Domain(BIGINT, has_nullable(args), Fraction(0), Fraction((1 << largest.bit_length()) - 1))


def _evaluate_bits(call: Call, values: list[Value]) -> Value:
    left, right = values
    if left is None or right is None:
        return None
    assert isinstance(left, int) and isinstance(right, int)
    return {"bitand": left & right, "bitor": left | right, "bitxor": left ^ right}[call.function]


def _bucket_domain(call: Call, args: Domains) -> Domain:
    return Domain(BIGINT, args[0].nullable, Fraction(0), Fraction(integer_argument(call, 3) + 1))


def _render_bucket(call: Call, args: list[str]) -> str:
    """As PostgreSQL counts: 0 below, n + 1 at and beyond the upper bound; NULL of NULL, which LEAST would skip."""
    number, lower, upper, _ = args
    count = integer_argument(call, 3)
    bucket = f"TRY_CAST(floor(({number} - {lower}) / ({upper} - {lower}) * {_double_literal(float(count))}) AS BIGINT)"
    return (
        f"CASE WHEN {number} < {lower} THEN CAST(0 AS BIGINT) WHEN {number} >= {upper} "
        f"THEN CAST({count + 1} AS BIGINT) WHEN {number} >= {lower} "
        f"THEN least({bucket} + 1, CAST({count} AS BIGINT)) END"
    )


def _check_buckets(call: Call) -> str | None:
    lower, upper, count = (literal_argument(call, index) for index in (1, 2, 3))
    if not isinstance(lower, float) or not isinstance(upper, float) or not lower < upper < 1e300 or lower < -1e300:
        return "width_bucket takes a lower and a greater upper bound"
    fits = isinstance(count, int) and 1 <= count <= MAX_BUCKETS
    return None if fits else f"width_bucket takes between 1 and {MAX_BUCKETS} buckets"


def _rounding_function(function: str, example: str, step: Callable[[float], int] | None = None) -> ScalarFunction:
    """ROUND and its like: nothing to do for whole numbers. FLOOR and CEIL take no digits."""
    if step is not None:
        return ScalarFunction(
            function,
            example,
            _rounding_signature,
            _monotone_domain(lambda x: Fraction(step(x))),  # type: ignore[arg-type]
            _render_call,
            evaluate=_evaluate_rounding(step),
            doubles=True,
            shorter=_drop_integer_rounding,
        )
    domain = _round_domain
    return ScalarFunction(
        function,
        example,
        _rounding_signature,
        domain,
        _render_round,
        1,
        2,
        frozenset({1}),
        _check_digits,
        shorter=_drop_integer_rounding,
    )


NUMERIC_FUNCTIONS = (
    ScalarFunction("abs", "abs(cost)", _rounding_signature, _abs_domain, _render_abs, evaluate=_evaluate_abs),
    _rounding_function("floor", "floor(cost)", math.floor),
    _rounding_function("ceil", "ceil(cost)", math.ceil),
    _rounding_function("round", "round(cost, 1)"),
    _rounding_function("trunc", "trunc(cost, 1)"),
    ScalarFunction("sign", "sign(cost)", _rounding_signature, _sign_domain, _render_sign, evaluate=_evaluate_sign),
    ScalarFunction(
        "finite",
        "",
        _doubles_signature,
        _finite_domain,
        _render_finite,
        evaluate=_evaluate_finite,
        doubles=True,
        written=False,
    ),
    _increasing_function("sinh", math.sinh, -MAX_EXPONENT, MAX_EXPONENT, "sinh(cost / 1000)"),
    _increasing_function("tanh", math.tanh, -LARGEST_DOUBLE, LARGEST_DOUBLE, "tanh(cost / 1000)"),
    _increasing_function("asinh", math.asinh, -LARGEST_DOUBLE, LARGEST_DOUBLE, "asinh(cost)"),
    _increasing_function("acosh", math.acosh, 1.0, LARGEST_DOUBLE, "acosh(cost)"),
    _increasing_function("atanh", math.atanh, -BELOW_ONE, BELOW_ONE, "atanh(cost / 5000)"),
    _increasing_function("sqrt", math.sqrt, 0.0, LARGEST_DOUBLE, "sqrt(cost)"),
    _increasing_function("cbrt", _cube_root, -LARGEST_DOUBLE, LARGEST_DOUBLE, "cbrt(cost)"),
    _increasing_function("exp", math.exp, -LARGEST_DOUBLE, MAX_EXPONENT, "exp(cost / 1000)"),
    _increasing_function("ln", math.log, SMALLEST_DOUBLE, LARGEST_DOUBLE, "ln(cost)"),
    _increasing_function("log10", math.log10, SMALLEST_DOUBLE, LARGEST_DOUBLE, "log10(cost)"),
    _increasing_function("log2", math.log2, SMALLEST_DOUBLE, LARGEST_DOUBLE, "log2(cost)"),
    ScalarFunction(
        "log", "log(2, cost)", _doubles_signature, _log_domain, _render_log, 2, 2, frozenset({0}), _check_base
    ),
    ScalarFunction("power", "power(cost, 2)", _doubles_signature, _power_domain, _render_finite_call, 2, 2),
    _sine_function("sin", "sin(cost)"),
    _sine_function("cos", "cos(cost)"),
    ScalarFunction(
        "tan", "tan(cost)", _doubles_signature, _tan_domain, _render_guarded("tan", -LARGEST_DOUBLE, LARGEST_DOUBLE)
    ),
    _increasing_function("asin", math.asin, -1.0, 1.0, "asin(cost / 5000)"),
    ScalarFunction("acos", "acos(cost / 5000)", _doubles_signature, _acos_domain, _render_guarded("acos", -1.0, 1.0)),
    _increasing_function("atan", math.atan, -LARGEST_DOUBLE, LARGEST_DOUBLE, "atan(cost)"),
    ScalarFunction("atan2", "atan2(cost, paid)", _doubles_signature, _atan2_domain, _render_finite_call, 2, 2),
    _increasing_function("degrees", math.degrees, -3e306, 3e306, "degrees(cost)"),
    _increasing_function("radians", math.radians, -LARGEST_DOUBLE, LARGEST_DOUBLE, "radians(cost)"),
    ScalarFunction(
        "bitand", "score & 1", _integers_signature, _bits_domain, _render_bits("&"), 2, 2, evaluate=_evaluate_bits
    ),
    ScalarFunction(
        "bitor", "score | 1", _integers_signature, _bits_domain, _render_bits("|"), 2, 2, evaluate=_evaluate_bits
    ),
    ScalarFunction(
        "bitxor", "score # 1", _integers_signature, _bits_domain, _render_bits("xor"), 2, 2, evaluate=_evaluate_bits
    ),
    ScalarFunction(
        "width_bucket",
        "width_bucket(cost, 0, 100, 10)",
        _bucket_signature,
        _bucket_domain,
        _render_bucket,
        4,
        4,
        frozenset({1, 2, 3}),
        _check_buckets,
    ),
)
