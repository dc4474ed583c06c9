"""The one number that a question to an interactive mechanism asks for, read off the compiled statement."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from dpsql.compile import MeasureSource, Compiled
from dpsql.errors import Unsupported
from dpsql.plan.recipes import Linear
from dpsql.privacy.threshold import ThresholdQuery
from dpsql.sql.parameters import Parameter

SINGLE_NUMBER_HINT = "For example: SELECT COUNT(*) FROM visits WHERE ward = 'surgery', or SELECT SUM(cost) FROM visits."

# What post-processing is where it gives a measure out as it is, with or without its error bars.
_UNCHANGED_MEASURE = re.compile(
    r'SELECT (\w+)\."(\w+)" AS "(?:[^"]|"")*"(?:, \1\."\2_(?:stderr|low|high)" AS "_error\d")* FROM \1'
)

BoundStatement = tuple[str, tuple[Parameter, ...]]


@dataclass(frozen=True)
class MeasuredQuestion:
    """A statement of one number: what the engine runs, what a step of its cell is worth, how far a unit moves it."""

    sql: str
    worth: Fraction
    l1: int

    @property
    def sensitivity(self) -> Fraction:
        return ThresholdQuery(self.worth, self.l1).sensitivity


def measure_question(compiled: Compiled) -> MeasuredQuestion | None:
    """The statement's only number, if that is one sum over private rows, given out as it is; else None.

    Privacy: its sensitivity is the claim of the plan whose text runs (law 2).
    """
    if len(compiled.steps) != 1 or len(compiled.tables) != 1 or len(compiled.tables[0].measures) != 1:
        return None
    (step,), (answer,), calibrated = compiled.steps, compiled.tables[0].measures, compiled.steps[0].calibrated
    plain = not step.keys and not step.holes and calibrated.choice is None and calibrated.selection is None
    if not plain or not _UNCHANGED_MEASURE.fullmatch(compiled.post_sql) or len(calibrated.bundles) != 1:
        return None
    match answer:
        case MeasureSource(0, Linear(((cell, coefficient),))) if calibrated.columns == (cell,) and coefficient:
            l1 = calibrated.bundles[0].claim.sensitivity.l1
            return MeasuredQuestion(step.sql, coefficient * calibrated.grids[0], l1)
        case _:
            return None


def not_single_number_error(sql: str) -> Unsupported:
    error = Unsupported(
        "a question is one COUNT or SUM over private rows, and nothing else",
        detail="No groups, no arithmetic on the number, no OPTIONS, no sub-select that is worked out first.",
        hint=SINGLE_NUMBER_HINT,
    )
    error.statement = sql
    return error
