"""The histograms that a statement's norms are chosen from: bought first, remembered, and read again for free.

They are a statement of their own, charged, run and stored before the question is priced. What they answered are
released values, so whatever is worked out from them costs nothing (SOUNDNESS 11).

Privacy: only histograms that this account has paid for are read, in EXPLAIN too (docs/soundness.md 4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dpsql.compiler.compiled import Compiled, NormStep
from dpsql.compiler.norm_steps import KnownNorms, norm_statement
from dpsql.errors import InternalError
from dpsql.ledger.base import Entitlement, Receipt
from dpsql.privacy.loss import NO_LOSS, Loss, sum_losses
from dpsql.privacy.norm_choice import UnitHistogram, make_histogram
from dpsql.privacy.release import Release
from dpsql.session.result import StatementResult


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
    with its relation of neighbors, time zone and names of who asks (docs/soundness.md 4).
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
