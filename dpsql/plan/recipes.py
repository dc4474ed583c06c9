"""How an answer is worked out from a release's noisy cells: pure arithmetic, the same whatever the noise.

Coefficients apply to cell * grid, so a recipe also fits a stored release of another resolution.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsql.types import Type


@dataclass(frozen=True)
class Linear:
    """The sum of coefficient * cell."""

    terms: tuple[tuple[str, Fraction], ...]
    type: Type


@dataclass(frozen=True)
class Mean:
    """lower + (upper - lower) * above / (above + below), within the bounds; NULL where nothing is left to count."""

    above: str
    below: str
    lower: Fraction
    upper: Fraction
    type: Type


Recipe = Linear | Mean
