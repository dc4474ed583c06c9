"""Bounds and values that CHECK constraints state. What is not plainly a range or a list of one column is not read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from dpsql.schema.literals import read_number

_NAME = r'(?P<name>"(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_$]*)'
_NUMBER = r"'?(?P<number>[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)'?"
_COMPARED = re.compile(rf"{_NAME} *(?P<sign><=|>=|<|>) *{_NUMBER}")
_BETWEEN = re.compile(rf"{_NAME} BETWEEN {_NUMBER} AND {_NUMBER.replace('number', 'other')}", re.IGNORECASE)
_TEXT = r"'(?:[^']|'')*'"
_LIST = re.compile(rf"{_NAME} *(?:IN|= *ANY) *(?:ARRAY)? *(?P<list>{_TEXT}(?: *, *{_TEXT})*)", re.IGNORECASE)
_CAST = re.compile(r"::[a-z][a-z ]*(\(\d+(,\d+)?\))?(\[\])?", re.IGNORECASE)


@dataclass(frozen=True)
class Stated:
    """What constraints say of a column; bounds that they leave open are None."""

    low: Fraction | None = None
    high: Fraction | None = None
    values: tuple[str, ...] = ()


def stated(checks: tuple[str, ...], column: str) -> Stated:
    """
    >>> stated(("(((age >= 0) AND (age <= 120)))",), "age")
    Stated(low=Fraction(0, 1), high=Fraction(120, 1), values=())
    >>> stated(("((sex = ANY (ARRAY['f'::text, 'm'::text])))",), "sex").values
    ('f', 'm')
    """
    result = Stated()
    for check in checks:
        for one in _parts(check, column):
            result = Stated(
                one.low if result.low is None else result.low,
                one.high if result.high is None else result.high,
                one.values or result.values,
            )
    return result


def _parts(check: str, column: str) -> list[Stated]:
    listed = _LIST.fullmatch(_bare(check, quotes=True))
    if listed is not None:
        return [Stated(values=_items(listed["list"]))] if _same(listed["name"], column) else []
    text = _bare(check, quotes=False)
    between = _BETWEEN.fullmatch(text)
    if between is not None:
        low, high = read_number(between["number"]), read_number(between["other"])
        return [Stated(low, high)] if _same(between["name"], column) else []
    matches = [_COMPARED.fullmatch(part.strip()) for part in re.split(r" AND ", text, flags=re.IGNORECASE)]
    if any(match is None for match in matches):  # one part that is not read could be an OR of all
        return []
    return [_compared(match) for match in matches if match is not None and _same(match["name"], column)]


def _bare(check: str, quotes: bool) -> str:
    """Without casts and parentheses; those inside of quotes would be lost too, so a check with such is not read."""
    text = _CAST.sub("", check.strip())
    if quotes and any(c in "()[]" for literal in re.findall(_TEXT, text) for c in literal):
        return ""
    return " ".join(re.sub(r"[()\[\]]", " ", text).split())


def _compared(match: re.Match[str]) -> Stated:
    bound = read_number(match["number"])
    return Stated(low=bound) if match["sign"].startswith(">") else Stated(high=bound)


def _items(text: str) -> tuple[str, ...]:
    return tuple(item[1:-1].replace("''", "'") for item in re.findall(_TEXT, text))


def _same(name: str, column: str) -> bool:
    plain = name[1:-1].replace('""', '"') if name.startswith('"') else name
    return plain.casefold() == column.casefold()
