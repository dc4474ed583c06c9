"""TO_CHAR of released numbers, by PostgreSQL's formats: to_char(COUNT(*), '999,999') over DuckDB's functions.

FM990.00 of 7.5  →  7.50        999,999 of 1234  →     1,234        000 of 7  →   007
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from dpsql.compiler.bind.outputs import infer_type
from dpsql.compiler.parse.dialect import span_of
from dpsql.compiler.parse.function_names import FORMAT_NOTE
from dpsql.errors import Unsupported

_FORMAT = re.compile(r"(FM)?(\$?)([90]+|[90]{1,3}(?:,[90]{3})+)(?:\.([90]*))?(%?)", re.IGNORECASE)
MAX_FORMAT_DIGITS = 18


@dataclass(frozen=True)
class NumberFormat:
    """How many digits there are before the point at most, how many at least, and behind it."""

    fill: bool  # with blanks up to the width
    prefix: str
    suffix: str
    digits: int
    least: int
    commas: bool
    decimals: int
    kept: int  # decimals that are shown even where they are 0
    width: int
    too_large: str  # what is shown for a number that does not fit


def parse_number_format(written: str) -> NumberFormat | None:
    """What a format of numbers says; None where it is none, or one that is not written here."""
    matched = _FORMAT.fullmatch(written.strip())
    if matched is None:
        return None
    modifier, prefix, whole, decimals, suffix = (part or "" for part in matched.groups())
    digits = whole.replace(",", "")
    least = len(digits) - digits.find("0") if "0" in digits else 0
    commas = "," in whole
    if len(digits) + len(decimals) > MAX_FORMAT_DIGITS or (commas and least > 1) or (prefix and not modifier):
        return None
    min_decimals = len(decimals) if not modifier else decimals.rfind("0") + 1
    rest = written.strip()[len(modifier) :]
    marks = " " * (not modifier) + re.sub("[90]", "#", rest)
    return NumberFormat(
        not modifier, prefix, suffix, len(digits), least, commas, len(decimals), min_decimals, len(rest) + 1, marks
    )


def rewrite_number_formats(post: exp.Query) -> None:
    """Replace TO_CHAR of numbers, in place; one that cannot be written is refused before anything is charged."""
    for node in list(post.find_all(exp.TimeToStr)):
        written = node.meta.get(FORMAT_NOTE)
        type_ = infer_type(node.this)
        format_ = parse_number_format(str(written)) if written is not None else None
        if format_ is not None and (type_ is None or type_.is_number):
            node.replace(_print_number(node.this, format_))
        elif type_ is not None and type_.is_number:
            raise Unsupported(
                "TO_CHAR of a number has a format such as '999,999', 'FM990.00' or '000'",
                hint="Write ROUND(x, 2), or format('{:,}', x), of a number x.",
                span=span_of(node),
            )


def _print_number(number: exp.Expr, fmt: NumberFormat) -> exp.Expr:
    rounded = exp.Round(this=exp.cast(number.copy(), "double"), decimals=_number_literal(fmt.decimals))
    size = exp.Abs(this=rounded)
    digits = f"{{:{',' if fmt.commas else ''}.{fmt.decimals}f}}"
    text: exp.Expr = _make_call("format", exp.Literal.string(digits), size)
    text = _pad_digits(text, fmt)
    sign = exp.Case().when(exp.LT(this=rounded.copy(), expression=_number_literal(0)), exp.Literal.string("-"))
    sign = sign.else_(exp.Literal.string(""))
    parts: list[exp.Expr] = [sign, exp.Literal.string(fmt.prefix), text, exp.Literal.string(fmt.suffix)]
    shown = parts[0]
    for part in parts[1:]:
        shown = exp.DPipe(this=shown, expression=part)
    if fmt.fill:
        shown = _make_call("lpad", exp.Paren(this=shown), _number_literal(fmt.width), exp.Literal.string(" "))
    too_large = exp.GTE(this=size.copy(), expression=exp.Literal.number(f"1e{fmt.digits}"))
    return exp.Paren(this=exp.Case().when(too_large, exp.Literal.string(fmt.too_large)).else_(exp.Paren(this=shown)))


def _pad_digits(text: exp.Expr, fmt: NumberFormat) -> exp.Expr:
    """Leading zeros as the format has them, and trailing ones as far as they are kept."""
    if fmt.kept < fmt.decimals:
        zeros = exp.Literal.string(f"0{{1,{fmt.decimals - fmt.kept}}}$")
        text = _make_call("regexp_replace", text, zeros, exp.Literal.string(""))
    if fmt.least == 0 and fmt.decimals:
        text = _make_call("regexp_replace", text, exp.Literal.string(r"^0\."), exp.Literal.string("."))
    if fmt.least > 1:
        start = exp.Literal.string(rf"^\d{{1,{fmt.least - 1}}}(\.|$)")
        point = fmt.least + (fmt.decimals + 1 if fmt.decimals else 0)
        filled = _make_call("lpad", text.copy(), _number_literal(point), exp.Literal.string("0"))
        text = exp.Case().when(_make_call("regexp_matches", text.copy(), start), filled).else_(text)
    return text


def _number_literal(number: int) -> exp.Expr:
    return exp.Literal.number(number)


def _make_call(name: str, *args: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(args))
