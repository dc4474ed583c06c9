"""The pilot of `max_relative_error`: a statement that is asked first, and how accurate the question must be then.

It is charged, run and stored before the question is priced. What it answered are released values, so whatever is worked
out from them costs nothing (SOUNDNESS 11).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.amounts import format_rounded_down, format_rounded_up
from dpsql.compiler.accuracy import (
    ErrorAims,
    calibrated_noise,
    interval_half_width,
    require_linear,
    rounding_error,
)
from dpsql.compiler.compiled import Compiled
from dpsql.errors import BudgetExceeded, InvalidParameter
from dpsql.ledger.base import Account
from dpsql.privacy.loss import sum_losses
from dpsql.session.result import StatementResult


def aims_from_pilot(pilot: Compiled, answer: StatementResult) -> ErrorAims | None:
    """How far each answer may be off; None where the pilot's own are accurate enough.

    Claim: each answer that the pilot shows is off by more than its part with a probability of at most 1 - confidence.
    Half of that is for the pilot: but for it, no value is nearer to 0 than the pilot's less its half-width. The other
    half is for the answer itself.
    """
    part, miss = pilot.settings.max_relative_error, (1 - pilot.settings.confidence) / 2
    assert part is not None
    errors: dict[tuple[str, int], Fraction] = {}
    enough = True
    for index, bar in enumerate(pilot.errors):
        values = [abs(Fraction(row[index])) for row in answer.rows if bar is not None and row[index] is not None]
        if bar is None or bar.measure is None or not values:
            continue
        table = next(table for table in pilot.tables if table.name == bar.release)
        measured = table.measures[bar.measure]
        calibrated = pilot.steps[measured.step].calibrated
        half = max(
            interval_half_width(calibrated_noise(recipe, calibrated), miss) + rounding_error(recipe.type)
            for recipe in require_linear(measured.recipe, "max_relative_error")
        )
        least = min(values) - half
        if least <= 0:
            raise _too_small_error(pilot, answer, answer.columns[index].name, half)
        errors[bar.release, bar.measure] = part * least
        enough = enough and half <= part * least
    return None if enough else ErrorAims(tuple(errors.items()), 1 - miss)


@dataclass(frozen=True)
class PilotedStatement:
    """A statement as far as it is known before it is asked: itself; or its pilot, while that is not stored.

    `pilot` is the one that has decided it, and is `compiled` where nothing follows: the pilot is the answer, or
    `refused` says why there is none.
    """

    compiled: Compiled
    pilot: Compiled | None = None
    refused: str | None = None

    @property
    def undecided(self) -> bool:
        return self.compiled.pilot and self.pilot is None


def resolve_pilot(
    compiled: Compiled, answer: StatementResult | None, follow: Callable[[ErrorAims], Compiled]
) -> PilotedStatement:
    """What a statement is, given the stored answer of its pilot, if it has one.

    Privacy: the answer is a release that the caller has paid for.
    """
    if not compiled.pilot or answer is None:
        return PilotedStatement(compiled)
    try:
        aims = aims_from_pilot(compiled, answer)
        return PilotedStatement(compiled if aims is None else follow(aims), compiled)
    except InvalidParameter as error:  # a value too near to 0, or an error that no epsilon keeps
        return PilotedStatement(compiled, compiled, error.message)


def combine_with_pilot(pilot: StatementResult, answer: StatementResult) -> StatementResult:
    """The answer, with what was charged for both."""
    receipts = tuple(dict.fromkeys((*pilot.receipts, *answer.receipts)))
    return replace(answer, loss=sum_losses([pilot.loss, answer.loss]), receipts=receipts)


def _too_small_error(pilot: Compiled, answer: StatementResult, name: str, half: Fraction) -> InvalidParameter:
    return InvalidParameter(
        f'a value of "{name}" is too near to 0 for a relative error: the pilot knows it within '
        f"{format_rounded_up(half)}",
        detail=_describe_pilot_charge(pilot, answer),
        hint="Leave small groups out with HAVING, give the pilot a larger epsilon, or use max_error.",
    )


def _describe_pilot_charge(pilot: Compiled, answer: StatementResult) -> str:
    if not answer.loss.rho:
        return "The pilot was paid for before."
    return f"The pilot was charged epsilon {format_rounded_up(pilot.settings.epsilon)}."


def require_epsilon_allowed(
    compiled: Compiled, payers: Sequence[Account], before: tuple[Compiled, StatementResult] | None = None
) -> None:
    """What an accuracy costs is at most what may be asked for in one query.

    Privacy: `payers` are the account and all above it; of those only the owner's settings for single queries are
    looked at, which are no figures of anybody.
    """
    policies = [payer.largest_epsilon for payer in payers if payer.largest_epsilon is not None]
    settings, max_epsilon = compiled.settings, min([payers[0].epsilon, *policies])
    if not compiled.steps or not settings.has_error_goal or settings.epsilon <= max_epsilon:
        return
    raise BudgetExceeded(
        f"an error that small needs epsilon {format_rounded_up(settings.epsilon)}, and one query may ask for at most"
        f" {format_rounded_down(max_epsilon)}",
        detail=None if before is None else _describe_pilot_charge(*before),
        hint="Allow a larger error, or ask for coarser groups; EXPLAIN shows the price.",
    )
