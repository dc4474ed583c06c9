"""All functions by name."""

from __future__ import annotations

from dpsql.functions.dates import DATES
from dpsql.functions.differences import DIFFERENCES
from dpsql.functions.logic import LOGIC
from dpsql.functions.numbers import NUMBERS
from dpsql.functions.patterns import PATTERNS
from dpsql.functions.record import Function
from dpsql.functions.spans import SPANS
from dpsql.functions.text import TEXTS
from dpsql.functions.zones import ZONED

FUNCTIONS: dict[str, Function] = {
    function.name: function
    for family in (LOGIC, NUMBERS, TEXTS, PATTERNS, DATES, SPANS, DIFFERENCES, ZONED)
    for function in family
}
