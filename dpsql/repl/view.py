"""How answers are shown, as backslash commands and options have it."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.errors import InvalidParameter

OUTPUT_FORMATS = ("table", "csv", "json")


@dataclass
class DisplayOptions:
    format: str = "table"
    expanded: str = "auto"
    errors: bool = True
    digits: bool = True
    pager: bool = True
    timing: bool = False


def parse_switch(name: str, text: str, now: bool) -> bool:
    """On, off, or the other one where nothing is said."""
    match text.lower():
        case "":
            return not now
        case "on" | "true" | "1":
            return True
        case "off" | "false" | "0":
            return False
        case _:
            raise InvalidParameter(f"\\{name} takes on or off, not {text}")


def parse_choice(name: str, text: str, choices: tuple[str, ...]) -> str:
    if text.lower() not in choices:
        raise InvalidParameter(f"\\{name} takes {', '.join(choices[:-1])} or {choices[-1]}, not {text}")
    return text.lower()
