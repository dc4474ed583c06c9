"""A number of a few characters may be one of millions of digits: none is written out."""

from __future__ import annotations

import ast
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest

import dpsql
from dpsql.compiler.compile import compile_query
from dpsql.compiler.parse.literals import MAX_DIGITS, parse_exact_number
from dpsql.compiler.settings import change_setting, default_settings
from dpsql.errors import DataError, Error
from dpsql.schema.model import Resolved

PACKAGE = Path(dpsql.__file__).parent
SOURCES = (
    *(f"compiler/{part}" for part in ("parse", "bind", "catalog", "split", "render", "postprocess")),
    *("compiler/settings.py", "compiler/parameter_types.py"),
    *(f"session/{name}.py" for name in ("transaction", "named_statements", "prepare")),
)
# Of numbers that are numbers already, and of texts that a pattern has found short and without an exponent.
KNOWN = {
    "compiler/bind/calls.py": {"Fraction(arg.value)", "Fraction(max(lower.__ceil__(), type_min))",
                               "Fraction(min(upper.__floor__(), type_max))"},
    # Its texts become floats, or whole numbers that were written without an exponent.
    "compiler/bind/coercion.py": {"Decimal(text)", "Fraction(value)", "Decimal(scaled.numerator)"},
    "compiler/bind/composed_calls.py": {"Fraction(value)"},
    "compiler/bind/expressions.py": {"Fraction(expr.left.value)", "Fraction(expr.right.value)"},
    # The largest priors, which nobody writes.
    "compiler/bind/posteriors.py": {"Fraction(10 ** 15)", "Fraction(10 ** 9)"},
    "compiler/catalog/variables.py": {"Fraction(_UNITS[match[2] or 'ms'])", "Fraction(match[1])"},
    "compiler/parameter_types.py": {"Decimal(f'{sample}.5')", "Decimal(str(sample))"},
    "compiler/parse/literals.py": {"Fraction(number)", "Decimal(text)"},
    "compiler/render/clipped_sums.py": {"Fraction(MAX_STEPS)", "Fraction(-MAX_STEPS)"},
    "compiler/render/expressions.py": {"Fraction(-719162)", "Fraction(value)"},
    "compiler/settings.py": {"Decimal(number.numerator)", "Decimal(number.denominator)", "Fraction(as_decimal)"},
    "compiler/split/declared_range.py": {"Decimal(round(bound * 10 ** scale))"},
    "compiler/split/runtime_parameters.py": {"Fraction(value)", "Fraction(low.__floor__())",
                                             "Fraction(high.__ceil__())"},
}  # fmt: skip


def conversions(path: Path) -> set[str]:
    calls = (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    return {
        ast.unparse(call)
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id in ("Fraction", "Decimal")
        if len(call.args) == 1 and not isinstance(call.args[0], ast.Constant)
    }


def test_texts_become_numbers_in_one_place() -> None:
    files = [
        path
        for source in SOURCES
        for path in ((PACKAGE / source).rglob("*.py") if "." not in source else [PACKAGE / source])
    ]
    found = {path.relative_to(PACKAGE).as_posix(): conversions(path) for path in files}
    assert {name: calls for name, calls in found.items() if calls} == KNOWN


@pytest.mark.parametrize("text", ["1e-999999999", "1e999999999", "0e-999999999", "-1E+401", "1e-401", "0." + "1" * 401])
def test_what_is_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_exact_number(text)
    assert caught.value.sqlstate == "22003"


def test_what_is_in_range_is_exact() -> None:
    assert parse_exact_number("1e-400") == Fraction(1, 10**400)
    assert parse_exact_number("9" * MAX_DIGITS) == 10**MAX_DIGITS - 1
    assert parse_exact_number("0") == 0
    assert [parse_exact_number(text) for text in ("nan", "inf", "x", "")] == [None] * 4


BOMBS = ("1e-99999999", "1e99999999", "1e-999999999", "0e-99999999", "1.5e99999999")
PLACES = (
    "QUANTILE_CONT(cost, {})", "QUANTILE_DISC(cost, [0.5, {}])", "APPROX_QUANTILE(cost, {})",
    "PERCENTILE_CONT({}) WITHIN GROUP (ORDER BY cost)", "SUM(CLAMP(cost, 0, {}))", "SUM(cost * {})", "SUM({})",
    "SUM(ROUND(cost, {}))", "SUM(POWER(cost, {}))", "SUM(CAST('{}' AS NUMERIC))", "COUNT(*) * {}",
    "APPROX_TOP_K(cost, {})", "COUNT(*) FILTER (WHERE cost > {})", "COUNT(*) FILTER (WHERE cost IN (1, {}))",
    "COUNT(*) FILTER (WHERE cost = '{}')", "SUM(WIDTH_BUCKET(cost, 0, {}, 5))", "MEDIAN(cost / {})",
    "COUNT(*) FILTER (WHERE cost BETWEEN 0 AND {})",
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("bomb", BOMBS)
def test_no_place_writes_it_out(place: str, bomb: str, clinic: Resolved) -> None:
    started = time.process_time()
    with suppress(Error):
        compile_query(
            f"SELECT {place.format(bomb)} FROM visits", clinic, default_settings(clinic.schema.privacy).statement
        )
    assert time.process_time() - started < 2


@pytest.mark.parametrize("value", [*BOMBS, "1/" + "3" * 5000, "0." + "1" * 100_000, "1/0e-99999999"])
def test_nor_does_a_setting(value: str, clinic: Resolved) -> None:
    privacy = clinic.schema.privacy
    for name in ("epsilon", "delta", "contributions.rows", "max_error", "confidence"):
        started = time.process_time()
        with pytest.raises(Error):
            change_setting(default_settings(privacy), privacy, name, value)
        assert time.process_time() - started < 1
