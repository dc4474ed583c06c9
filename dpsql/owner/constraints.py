"""Bounds and values that CHECK constraints state. What is not plainly a range or a list of one column is not read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from dpsql.schema.literals import read_number

_NAME = r'(?P<name>"(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_$]*)'
_NUMBER = r"'?(?P<number>[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)'?"
_COMPARISON = re.compile(rf"{_NAME} *(?P<sign><=|>=|<|>) *{_NUMBER}")
_BETWEEN = re.compile(rf"{_NAME} BETWEEN {_NUMBER} AND {_NUMBER.replace('number', 'other')}", re.IGNORECASE)
_TEXT = r"'(?:[^']|'')*'"
_LIST = re.compile(rf"{_NAME} *(?:IN|= *ANY) *(?:ARRAY)? *(?P<list>{_TEXT}(?: *, *{_TEXT})*)", re.IGNORECASE)
_CAST = re.compile(r"::[a-z][a-z ]*(\(\d+(,\d+)?\))?(\[\])?", re.IGNORECASE)


@dataclass(frozen=True)
class ColumnConstraints:
    """What constraints say of a column; bounds that they leave open are None."""

    low: Fraction | None = None
    high: Fraction | None = None
    values: tuple[str, ...] = ()


def read_constraints(checks: tuple[str, ...], column: str) -> ColumnConstraints:
    """
    >>> read_constraints(("(((age >= 0) AND (age <= 120)))",), "age")
    ColumnConstraints(low=Fraction(0, 1), high=Fraction(120, 1), values=())
    >>> read_constraints(("((sex = ANY (ARRAY['f'::text, 'm'::text])))",), "sex").values
    ('f', 'm')
    """
    result = ColumnConstraints()
    for check in checks:
        for part in _read_check(check, column):
            result = ColumnConstraints(
                part.low if result.low is None else result.low,
                part.high if result.high is None else result.high,
                part.values or result.values,
            )
    return result


def _read_check(check: str, column: str) -> list[ColumnConstraints]:
    value_list = _LIST.fullmatch(_strip_casts(check, quotes=True))
    if value_list is not None:
        return [ColumnConstraints(values=_split_items(value_list["list"]))] if _is_same_name(value_list["name"], column) else []
    text = _strip_casts(check, quotes=False)
    between = _BETWEEN.fullmatch(text)
    if between is not None:
        low, high = read_number(between["number"]), read_number(between["other"])
        return [ColumnConstraints(low, high)] if _is_same_name(between["name"], column) else []
    matches = [_COMPARISON.fullmatch(part.strip()) for part in re.split(r" AND ", text, flags=re.IGNORECASE)]
    if any(match is None for match in matches):  # one part that is not read could be an OR of all
        return []
    return [_read_comparison(match) for match in matches if match is not None and _is_same_name(match["name"], column)]


def _strip_casts(check: str, quotes: bool) -> str:
    """Without casts and parentheses; those inside of quotes would be lost too, so a check with such is not read."""
    text = _CAST.sub("", check.strip())
    if quotes and any(c in "()[]" for literal in re.findall(_TEXT, text) for c in literal):
        return ""
    return " ".join(re.sub(r"[()\[\]]", " ", text).split())


def _read_comparison(match: re.Match[str]) -> ColumnConstraints:
    bound = read_number(match["number"])
    return ColumnConstraints(low=bound) if match["sign"].startswith(">") else ColumnConstraints(high=bound)


def _split_items(text: str) -> tuple[str, ...]:
    return tuple(item[1:-1].replace("''", "'") for item in re.findall(_TEXT, text))


def _is_same_name(name: str, column: str) -> bool:
    plain = name[1:-1].replace('""', '"') if name.startswith('"') else name
    return plain.casefold() == column.casefold()
