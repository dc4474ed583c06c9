"""What counts as true or false: truth values, and whole numbers that are known to be 0 or 1."""

from __future__ import annotations

from fractions import Fraction

from dpsql.errors import TypeMismatch
from dpsql.span import Span


def require_flag(function_name: str, lower: Fraction | None, upper: Fraction | None, text: str, span: Span | None) -> None:
    """Refuse numbers that may be others: they would be moved to 0 or 1, and counted for what they are not."""
    if lower is None or upper is None or not 0 <= lower <= upper <= 1:
        raise TypeMismatch(f"{function_name} needs truth values, or whole numbers that are 0 or 1",
                           hint=f"For example: {function_name}({text} > 0).", span=span)  # fmt: skip
