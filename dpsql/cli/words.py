"""What can follow on a command line, as shells need to know it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ValueKind(Enum):
    """What an option or an argument takes, as far as a shell can offer something for it."""

    NOTHING = "nothing"
    TEXT = "text"
    FILE = "file"
    FOLDER = "folder"
    SCHEMA = "schema"
    USER = "user"
    SETTING = "setting"
    TABLE = "table"
    CHOICE = "choice"


SETTING_NAMES = (
    "epsilon", "delta", "contributions.rows", "contributions.groups", "noise", "nonnegative", "derive", "max_error",
    "max_relative_error", "confidence", "ranges", "mechanism", "proposal",
)  # fmt: skip
"""What `--set` can name: as `SHOW ALL` lists them."""


@dataclass(frozen=True)
class ArgumentSpec:
    """An option by its names, or an argument, which has none."""

    names: tuple[str, ...]
    takes: ValueKind
    choices: tuple[str, ...]
    help: str
    several: bool = False


@dataclass(frozen=True)
class CommandNode:
    """The words so far; the words that may come next with what they do, or else options and arguments."""

    words: tuple[str, ...]
    below: dict[str, str]
    options: tuple[ArgumentSpec, ...]
    arguments: tuple[ArgumentSpec, ...]

    @property
    def path(self) -> str:
        return "".join(f"/{word}" for word in self.words)
