"""How well a name answers to what was typed: from its beginning, from a word within it, or by its letters in order."""

from __future__ import annotations

import re

MATCH_PREFIX, MATCH_WORD, MATCH_SUBSTRING, MATCH_LETTERS = range(4)

_WORD_SEPARATOR = re.compile(r"[^a-z0-9]+")


def rank_match(typed: str, name: str, loosely: bool = True) -> int | None:
    """The smaller the better; None: not at all. Both in any case.

    >>> [rank_match(typed, "patient_id") for typed in ("pat", "id", "tien", "ptd", "xyz")]
    [0, 1, 2, 3, None]
    """
    sought, lower = typed.lower(), name.lower()
    if lower.startswith(sought):
        return MATCH_PREFIX
    if not loosely:
        return None
    if any(word.startswith(sought) for word in _WORD_SEPARATOR.split(lower)[1:]):
        return MATCH_WORD
    if sought in lower:
        return MATCH_SUBSTRING if len(sought) > 1 else None
    return MATCH_LETTERS if len(sought) > 1 and lower[0] == sought[0] and _has_letters_in_order(sought, lower) else None


def _has_letters_in_order(letters: str, name: str) -> bool:
    at = 0
    for letter in letters:
        at = name.find(letter, at) + 1
        if not at:
            return False
    return True
