"""How released rows are laid out, whatever is drawn from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Expanded = Literal["off", "on", "auto"]
Digits = Literal["significant", "all"]


@dataclass(frozen=True)
class Layout:
    """`width` is the terminal's, in columns; None where there is none, as in a file: then nothing is cut.

    `expanded` "auto": one line for each value where a table is wider than the terminal. `digits` "significant": only
    those that the noise leaves. `errors`: whether ± is shown. `plain`: nothing but ASCII.
    """

    width: int | None = None
    expanded: Expanded = "off"
    digits: Digits = "significant"
    errors: bool = True
    colour: bool = False
    plain: bool = False
