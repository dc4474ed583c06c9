"""All functions by name."""

from __future__ import annotations

from dpsql.functions.dates import DATE_FUNCTIONS
from dpsql.functions.differences import DIFFERENCE_FUNCTIONS
from dpsql.functions.logic import LOGICAL_FUNCTIONS
from dpsql.functions.numbers import NUMERIC_FUNCTIONS
from dpsql.functions.patterns import PATTERN_FUNCTIONS
from dpsql.functions.record import ScalarFunction
from dpsql.functions.spans import INTERVAL_FUNCTIONS
from dpsql.functions.text import TEXT_FUNCTIONS
from dpsql.functions.zones import TIME_ZONE_FUNCTIONS

FUNCTIONS: dict[str, ScalarFunction] = {
    function.name: function
    for family in (LOGICAL_FUNCTIONS, NUMERIC_FUNCTIONS, TEXT_FUNCTIONS, PATTERN_FUNCTIONS, DATE_FUNCTIONS, INTERVAL_FUNCTIONS, DIFFERENCE_FUNCTIONS, TIME_ZONE_FUNCTIONS)
    for function in family
}
