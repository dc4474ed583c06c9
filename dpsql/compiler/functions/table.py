"""All functions by name."""

from __future__ import annotations

from dpsql.compiler.functions.datetime import DATE_FUNCTIONS, DIFFERENCE_FUNCTIONS
from dpsql.compiler.functions.function import ScalarFunction
from dpsql.compiler.functions.intervals import INTERVAL_FUNCTIONS
from dpsql.compiler.functions.logical import LOGICAL_FUNCTIONS
from dpsql.compiler.functions.numeric import NUMERIC_FUNCTIONS
from dpsql.compiler.functions.regex import PATTERN_FUNCTIONS
from dpsql.compiler.functions.text import TEXT_FUNCTIONS
from dpsql.compiler.functions.time_zones import TIME_ZONE_FUNCTIONS

FUNCTIONS: dict[str, ScalarFunction] = {
    function.name: function
    for family in (
        LOGICAL_FUNCTIONS,
        NUMERIC_FUNCTIONS,
        TEXT_FUNCTIONS,
        PATTERN_FUNCTIONS,
        DATE_FUNCTIONS,
        INTERVAL_FUNCTIONS,
        DIFFERENCE_FUNCTIONS,
        TIME_ZONE_FUNCTIONS,
    )
    for function in family
}
