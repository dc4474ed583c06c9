"""What is asked first: the pilot of `max_relative_error`, and the histograms that norms are chosen from.

Each is a statement of its own, charged, run and stored before the question is priced: a pilot's answers decide how
accurate the question must be, histograms of units which norms it has. What was answered are released values, so
whatever is worked out from them costs nothing (SOUNDNESS 11).

Privacy: only histograms that this account has paid for are read, in EXPLAIN too (CONTRIBUTIONS 5, rule 10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpsql.amounts import format_rounded_down, format_rounded_up
from dpsql.compiler.accuracy import (
    ErrorAims,
    calibrated_noise,
    interval_half_width,
    require_linear,
    rounding_error,
)
from dpsql.compiler.compiled import Compiled, NormStep
from dpsql.compiler.norm_steps import KnownNorms, norm_statement
from dpsql.errors import BudgetExceeded, InternalError, InvalidParameter
from dpsql.ledger.base import Account, Entitlement, Receipt
from dpsql.privacy.loss import NO_LOSS, Loss, sum_losses
from dpsql.privacy.norm_choice import UnitHistogram, make_histogram
from dpsql.privacy.release import Release
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


# --- norms that nobody declared ---------------------------------------------------------------------------------------


@dataclass
class NormPurchase:
    """The histograms that a statement has bought or found stored, and what was charged for them."""

    known: dict[str, UnitHistogram] = field(default_factory=dict)
    loss: Loss = NO_LOSS
    receipts: tuple[Receipt, ...] = ()
    statements: tuple[Compiled, ...] = ()  # that had them, where they were found stored
    releases: tuple[int, ...] = ()  # of the steps of these, in their order

    def add(self, statement: Compiled, norms: tuple[NormStep, ...], releases: Mapping[int, Release]) -> None:
        bins = {norm.step.plan_hash: norm.bins for norm in norms}
        for index, step in enumerate(statement.steps):
            if step.plan_hash in bins and index in releases:
                (counts,), (bundle,) = releases[index].cells, releases[index].spec.bundles
                self.known[step.plan_hash] = make_histogram(
                    bins[step.plan_hash], tuple(int(count) for count in counts), bundle.mechanism
                )

    def combine(self, answer: StatementResult) -> StatementResult:
        """The answer, with what was charged for its norms."""
        receipts = tuple(dict.fromkeys((*self.receipts, *answer.receipts)))
        return replace(answer, loss=sum_losses([self.loss, answer.loss]), receipts=receipts)


@dataclass(frozen=True)
class DecidedStatement:
    """A statement whose norms are chosen, and the stored histograms that they were read from.

    It is remembered, so that a repeat needs no compiler and looks its releases up at once.

    Privacy: a histogram is a release of an account, and what follows from it is known to that account alone. So this is
    remembered under the account's name, and is used where one snapshot of the ledger shows that the account still has
    all of it: for the registered version of the data, the question and these very releases of its histograms. It is
    kept under all else that norms depend on: what is asked, with the kind of noise and all other settings, the schema
    with its relation of neighbors, time zone and names of who asks (CONTRIBUTIONS 5, rules 9 to 11).
    """

    compiled: Compiled
    norms: NormPurchase

    @property
    def statements(self) -> tuple[Compiled, ...]:
        """All of it, in the order in which it was bought."""
        return (*self.norms.statements, self.compiled)

    def of_text(self, statement: str) -> Compiled:
        same = statement == self.compiled.statement
        return self.compiled if same else replace(self.compiled, statement=statement)

    def match(self, stored: Sequence[tuple[Entitlement, ...]]) -> NormPurchase | None:
        """What is `stored` of its histograms, where these are the ones that it was decided with."""
        histograms = [entitlement for each in stored[:-1] for entitlement in each]
        if tuple(entitlement.release for entitlement in histograms) != self.norms.releases:
            return None
        return replace(self.norms, receipts=tuple(dict.fromkeys(e.receipt for e in histograms)), loss=NO_LOSS)


def choose_norms(
    compiled: Compiled,
    recompile: Callable[[KnownNorms], Compiled],
    load: Callable[[Compiled, Compiled], Mapping[int, Release] | None],
    purchase: NormPurchase,
) -> Compiled:
    """The statement with the norms that `load` gives the histograms of; undecided where it gives none.

    A norm about a centre comes after that centre, and norms of rows that a hole chooses after those of the release that
    fills it: there may be several turns.
    """
    while compiled.undecided:
        statement, before = norm_statement(compiled), len(purchase.known)
        releases = load(statement, compiled)
        if releases is None:
            return compiled
        purchase.add(statement, compiled.norm_steps, releases)
        if len(purchase.known) == before:
            raise InternalError("a histogram of units is asked for again")
        compiled = recompile(purchase.known)
    return compiled


def with_undecided_histograms(compiled: Compiled) -> Compiled:
    """The statement with the histograms that it would buy first as further steps, for prices and EXPLAIN alone."""
    steps = tuple(norm.step for norm in compiled.norm_steps if not norm.decided)
    return replace(compiled, steps=(*compiled.steps, *steps)) if steps else compiled
