"""Formats of dates: PostgreSQL's (to_char) and C's (strftime), read into pieces before any row is.

    Mon YYYY   →   strftime(at, '%b %Y')
    YYYY-Q     →   strftime(at, '%Y-') || quarter

A piece knows its text in Python too, so that a column with bounds has a finite list of texts.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass

from dpsql.compiler.functions.calendar import DAY_NAMES, MONTH_NAMES, TRUNCATIONS, days_in_month
from dpsql.compiler.functions.function import quote_text

DatetimeText = Callable[[dt.datetime], str]


class UnknownFormat(Exception):
    """A part of a format that is not known; the text names it."""


@dataclass(frozen=True)
class FormatPiece:
    """One part of a format: what it prints, the finest period that it tells apart, and whether years matter."""

    python: DatetimeText
    directive: str = ""  # strftime's; else `form` is used
    form: Callable[[str], str] | None = None
    unit: str = ""  # none for plain text
    yearly: bool = True  # the same in every year
    reads: bool = False  # strptime reads it too


def _text_piece(text: str) -> FormatPiece:
    return FormatPiece(lambda at: text, text.replace("%", "%%"), reads=True)


def _number_piece(unit: str, width: int, number: Callable[[dt.datetime], int], directive: str, *, yearly: bool = True,
            reads: bool = False) -> FormatPiece:  # fmt: skip
    return FormatPiece(lambda at: f"{number(at):0{width}d}", directive, None, unit, yearly, reads)


def _name_piece(unit: str, name: DatetimeText, directive: str, reads: bool = False) -> FormatPiece:
    return FormatPiece(name, directive, None, unit, True, reads)


def _sql_piece(unit: str, python: DatetimeText, form: Callable[[str], str]) -> FormatPiece:
    return FormatPiece(python, "", form, unit)


def _twelve_hour(at: dt.datetime) -> int:
    return (at.hour - 1) % 12 + 1


def _day_of_year(at: dt.datetime) -> int:
    return at.timetuple().tm_yday


_NUMBERS: dict[str, tuple[str, int, Callable[[dt.datetime], int], bool]] = {
    "m": ("month", 2, lambda at: at.month, True),
    "d": ("day", 2, lambda at: at.day, True),
    "H": ("hour", 2, lambda at: at.hour, True),
    "I": ("hour", 2, _twelve_hour, True),
    "M": ("minute", 2, lambda at: at.minute, True),
    "S": ("second", 2, lambda at: at.second, True),
    "j": ("day", 3, _day_of_year, True),
}

DIRECTIVES: dict[str, FormatPiece] = {
    "%Y": _number_piece("year", 4, lambda at: at.year, "%Y", yearly=False, reads=True),
    "%y": _number_piece("year", 2, lambda at: at.year % 100, "%y", yearly=False),
    "%G": _number_piece("week", 4, lambda at: at.isocalendar().year, "%G", yearly=False),
    "%V": _number_piece("week", 2, lambda at: at.isocalendar().week, "%V", yearly=False),
    "%u": _number_piece("day", 1, lambda at: at.isoweekday(), "%u", yearly=False),
    "%w": _number_piece("day", 1, lambda at: at.isoweekday() % 7, "%w", yearly=False),
    "%f": _number_piece("microsecond", 6, lambda at: at.microsecond, "%f", reads=True),
    "%g": _number_piece("millisecond", 3, lambda at: at.microsecond // 1000, "%g"),
    "%b": _name_piece("month", lambda at: MONTH_NAMES[at.month - 1][:3], "%b", reads=True),
    "%B": _name_piece("month", lambda at: MONTH_NAMES[at.month - 1], "%B", reads=True),
    "%a": FormatPiece(lambda at: DAY_NAMES[at.weekday()][:3], "%a", None, "day", False),
    "%A": FormatPiece(lambda at: DAY_NAMES[at.weekday()], "%A", None, "day", False),
    "%p": _name_piece("hour", lambda at: "AM" if at.hour < 12 else "PM", "%p", reads=True),
    "%%": FormatPiece(lambda at: "%", "%%", reads=True),
    **{f"%{k}": _number_piece(unit, width, number, f"%{k}", reads=reads)
       for k, (unit, width, number, reads) in _NUMBERS.items()},
    **{f"%-{k}": _number_piece(unit, 1, number, f"%-{k}") for k, (unit, _, number, _) in _NUMBERS.items()},
}  # fmt: skip


def _case_piece(piece: FormatPiece, change: str, width: int = 0) -> FormatPiece:
    """A name in capitals or small letters, filled up with spaces to `width`."""

    def letters(name: str) -> str:
        return name.upper() if change == "upper" else name.lower() if change == "lower" else name

    def form(arg: str) -> str:
        name = f"strftime({arg}, {quote_text(piece.directive)})"
        name = f"{change}({name})" if change else name
        return f"rpad({name}, {width}, ' ')" if width else name

    return FormatPiece(lambda at: letters(piece.python(at)).ljust(width), "", form, piece.unit, piece.yearly)


def _render_part(part: str, work: str) -> Callable[[str], str]:
    return lambda arg: f"CAST({work.format(part=f'date_part({quote_text(part)}, {arg})')} AS VARCHAR)"


def _name_tokens(word: str, directive: str, width: int) -> dict[str, FormatPiece]:
    """PostgreSQL fills long names up to nine characters, unless FM stands before them."""
    piece = DIRECTIVES[directive]
    plain = {word: "", word.upper(): "upper", word.lower(): "lower"}
    filled = {name: _case_piece(piece, change, width) if change or width else piece for name, change in plain.items()}
    trimmed = {f"FM{name}": _case_piece(piece, change) if change else piece for name, change in plain.items()}
    return filled | trimmed


_NAMES = (
    _name_tokens("Month", "%B", 9)
    | _name_tokens("Mon", "%b", 0)
    | _name_tokens("Day", "%A", 9)
    | _name_tokens("Dy", "%a", 0)
)
_PERIODS = {"YYYY": "%Y", "YY": "%y", "IYYY": "%G", "IW": "%V", "ID": "%u", "MM": "%m", "DDD": "%j", "DD": "%d",
            "HH24": "%H", "HH12": "%I", "HH": "%I", "MI": "%M", "SS": "%S", "MS": "%g", "US": "%f", "AM": "%p",
            "PM": "%p"}  # fmt: skip
_UNPADDED = {"MM": "%-m", "DD": "%-d", "DDD": "%-j", "HH24": "%-H", "HH12": "%-I", "HH": "%-I", "MI": "%-M",
             "SS": "%-S"}  # fmt: skip
_TOKENS: dict[str, FormatPiece] = {
    "Q": _sql_piece("quarter", lambda at: str((at.month - 1) // 3 + 1), _render_part("quarter", "{part}")),
    "D": FormatPiece(lambda at: str(at.isoweekday() % 7 + 1), "", _render_part("dow", "{part} + 1"), "day", False),
    "WW": _sql_piece("day", lambda at: f"{(_day_of_year(at) - 1) // 7 + 1:02d}",
               lambda arg: f"lpad({_render_part('doy', '({part} - 1) // 7 + 1')(arg)}, 2, '0')"),
    "W": _sql_piece("day", lambda at: str((at.day - 1) // 7 + 1), _render_part("day", "({part} - 1) // 7 + 1")),
    **{token: DIRECTIVES[directive] for token, directive in _PERIODS.items()},
    **{f"FM{token}": DIRECTIVES[directive] for token, directive in _UNPADDED.items()},
    "am": _case_piece(DIRECTIVES["%p"], "lower"),
    "pm": _case_piece(DIRECTIVES["%p"], "lower"),
}  # fmt: skip
_LITERAL_CHARACTERS = set(" -/.,:;_()[]|+#*\t")


def list_format_parts() -> list[str]:
    """What a format of to_char may hold, in capitals."""
    return sorted({token.upper() for token in (*_NAMES, *_TOKENS) if not token.startswith("FM")})


def parse_to_char_format(format_text: str) -> tuple[FormatPiece, ...]:
    """The pieces of a format of to_char."""
    pieces: list[FormatPiece] = []
    at = 0
    while at < len(format_text):
        matched = _match_token(format_text, at)
        if matched is not None:
            token, piece = matched
            at += len(token)
        elif format_text[at] == '"' and '"' in format_text[at + 1 :]:
            end = format_text.index('"', at + 1)
            piece, at = _text_piece(format_text[at + 1 : end]), end + 1
        elif format_text[at] in _LITERAL_CHARACTERS:
            piece, at = _text_piece(format_text[at]), at + 1
        else:
            word = re.match(r"\w+|.", format_text[at:], re.DOTALL)
            raise UnknownFormat(word[0] if word else format_text[at])
        pieces.append(piece)
    return tuple(pieces)


def _match_token(format_text: str, at: int) -> tuple[str, FormatPiece] | None:
    """The longest token that starts here. Numbers may be written in small letters; names keep their case."""
    for length in range(min(7, len(format_text) - at), 0, -1):
        token = format_text[at : at + length]
        piece = _NAMES.get(token) or _TOKENS.get(token) or _TOKENS.get(token.upper())
        if piece is not None:
            return token, piece
    return None


def parse_strftime_format(format_text: str) -> tuple[FormatPiece, ...]:
    """The pieces of a format of strftime."""
    pieces: list[FormatPiece] = []
    for part in re.findall(r"%-?.|[^%]+|%", format_text, re.DOTALL):
        if part.startswith("%") and part not in DIRECTIVES:
            raise UnknownFormat(part)
        pieces.append(DIRECTIVES.get(part) or _text_piece(part))
    return tuple(pieces)


def strptime_format(pieces: tuple[FormatPiece, ...]) -> str | None:
    """The format for strptime; None where a piece cannot be read back."""
    return "".join(piece.directive for piece in pieces) if all(piece.reads for piece in pieces) else None


def format_datetime(pieces: tuple[FormatPiece, ...], at: dt.datetime) -> str:
    return "".join(piece.python(at) for piece in pieces)


def render_format(pieces: tuple[FormatPiece, ...], arg: str) -> str:
    parts: list[str] = []
    run = ""
    for piece in (*pieces, None):
        if piece is not None and piece.form is None:
            run += piece.directive
            continue
        if run:
            parts.append(f"strftime({arg}, {quote_text(run)})")
            run = ""
        if piece is not None and piece.form is not None:
            parts.append(piece.form(arg))
    if not parts:
        return f"CASE WHEN {arg} IS NOT NULL THEN '' END"
    return parts[0] if len(parts) == 1 else f"({' || '.join(parts)})"


def finest_unit(pieces: tuple[FormatPiece, ...]) -> str:
    """The finest period that the format tells apart; a week may lie in two months, so beside them it is days."""
    units = {piece.unit for piece in pieces if piece.unit}
    if "week" in units and units & {"month", "quarter", "year"}:
        units.add("day")
    return max(units, key=TRUNCATIONS.index, default="year")


def sample_cycle(pieces: tuple[FormatPiece, ...]) -> list[dt.datetime] | None:
    """Moments that show everything that a format without years can print; None where there are too many."""
    unit = finest_unit(pieces)
    units = {piece.unit for piece in pieces if piece.unit}
    if not all(piece.yearly for piece in pieces):
        weekly = all(not piece.unit or (not piece.yearly and piece.unit == "day") for piece in pieces)
        return [dt.datetime(2000, 1, 3) + dt.timedelta(days=n) for n in range(7)] if weekly else None
    if unit in ("second", "millisecond", "microsecond"):
        return None
    if unit in ("hour", "minute"):
        start, steps = dt.datetime(2000, 1, 1), 24 if unit == "hour" else 1440
        if not units <= {"hour", "minute"}:
            return None
        return [start + dt.timedelta(minutes=n * (1440 // steps)) for n in range(steps)]
    months = [(month, day) for month in range(1, 13) for day in range(1, days_in_month(2000, month) + 1)]
    return [dt.datetime(year, month, day) for year in (2000, 2001) for month, day in months
            if day <= days_in_month(year, month)]  # fmt: skip
