"""What a statement would cost and how good it would be, before anything is asked: stable fields for tools."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsql.accuracy import noise_of, spread
from dpsql.calibrate import Calibrated, NoisyBundle
from dpsql.compiled import Compiled, ReleaseStep
from dpsql.ledger.how_many import MANY
from dpsql.plan.recipes import Linear
from dpsql.privacy.choice import rank_error
from dpsql.privacy.loss import Loss
from dpsql.privacy.mechanisms import Gaussian, standard_error
from dpsql.privacy.selection import units_needed
from dpsql.sql.block import ErrorBar

PILOT = "this is the pilot of max_relative_error: what it answers decides the price of the statement, charged after it"


@dataclass(frozen=True)
class ExplainedColumn:
    """A column of the engine's answer: integers that count steps of `grid`."""

    name: str
    grid: Fraction


@dataclass(frozen=True)
class ExplainedBundle:
    """Columns noised together; sensitivities are joint, in grid units, neighbors and group_size counted in."""

    columns: tuple[str, ...]
    mechanism: str
    scale: Fraction
    l1: int
    l2: float  # rounded up
    linf: int
    stderr: float  # of one cell, in the units of its values


@dataclass(frozen=True)
class ExplainedRelease:
    sql: str
    engine: str
    holes: tuple[str, ...]
    keys: tuple[str, ...]
    columns: tuple[ExplainedColumn, ...]
    bundles: tuple[ExplainedBundle, ...]
    selection: str | None
    groups: int | None  # public groups; None where they are selected
    units_to_appear: int | None  # units that a selected group needs to appear in half of all runs
    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction


@dataclass(frozen=True)
class Offer:
    """The statement with one kind of noise: what it costs the caller, and how good it is.

    `price` is what would be charged now; `covered` counts the questions of its full loss that the caller's own budget
    still covers, this one among them.
    """

    noise: str
    chosen: bool
    epsilon: Fraction
    rho: Fraction
    price: Loss
    expected: tuple[float | None, ...]  # as in `Explanation`
    covered: int
    paid: bool

    @property
    def more(self) -> int:
        """How many more like this could be asked, once it is."""
        return self.covered if self.paid else max(0, self.covered - 1)


@dataclass(frozen=True)
class Explanation:
    """At most this is charged; what was paid for and stored before is free."""

    releases: tuple[ExplainedRelease, ...]
    epsilon: Fraction
    delta: Fraction
    post_sql: str
    outputs: tuple[tuple[str, str], ...]  # name, type
    expected: tuple[float | None, ...]  # standard error of each output; None where it depends on the answer
    notices: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()  # one for each kind of noise that the statement may have
    paid: tuple[bool, ...] = ()  # of each release, whether the caller has it already
    sources: tuple[str, ...] = ()  # of each release, where it will come from

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def explain(compiled: Compiled, engine: str, outputs: Sequence[tuple[str, str]]) -> Explanation:
    spends = any(step.loss.rho > 0 for step in compiled.steps)
    impure = any(step.loss.epsilon is None for step in compiled.steps)
    return Explanation(
        releases=tuple(_release(step, engine) for step in compiled.steps),
        epsilon=compiled.settings.epsilon if spends else Fraction(0),
        delta=compiled.settings.delta if impure else Fraction(0),
        post_sql=compiled.post_sql,
        outputs=tuple(outputs),
        expected=expected_errors(compiled) or (None,) * len(outputs),
        notices=compiled.notices + ((PILOT,) if compiled.pilot else ()),
    )


def expected_errors(compiled: Compiled) -> tuple[float | None, ...]:
    """The standard error of each output that is a sum of cells: it depends on noise alone."""
    return tuple(_expected(compiled, bar) for bar in compiled.errors)


def _expected(compiled: Compiled, bar: ErrorBar | None) -> float | None:
    if bar is None or bar.measure is None:
        return None
    table = next(table for table in compiled.tables if table.name == bar.release)
    answer = table.measures[bar.measure]
    if not isinstance(answer.recipe, Linear):
        return None
    return spread(noise_of(answer.recipe, compiled.steps[answer.step].calibrated))


def _release(step: ReleaseStep, engine: str) -> ExplainedRelease:
    calibrated = step.calibrated
    gather, selection = calibrated.gather, calibrated.selection
    if calibrated.choice is not None:  # the engine's only column counts rows, or parts of them
        grids = {calibrated.columns[0]: Fraction(1, calibrated.choice.whole)}
    else:
        grids = dict(zip(calibrated.columns, calibrated.grids, strict=True))
    return ExplainedRelease(
        sql=step.sql,
        engine=engine,
        holes=tuple(hole.name for hole in step.holes),
        keys=tuple(key.name for key in step.keys),
        columns=tuple(ExplainedColumn(name, grid) for name, grid in grids.items()),
        bundles=tuple(_bundle(bundle, grids) for bundle in calibrated.bundles) + _picks(calibrated),
        selection=gather.selection.cell if gather.selection is not None else None,
        groups=gather.listed.count if gather.listed is not None and selection is None else None,
        units_to_appear=None if selection is None else units_needed(selection, 1),
        epsilon=step.loss.epsilon,
        rho=step.loss.rho,
        delta=step.loss.delta,
    )


def _bundle(bundle: NoisyBundle, grids: dict[str, Fraction]) -> ExplainedBundle:
    mechanism, sensitivity = bundle.mechanism, bundle.claim.sensitivity
    gaussian = isinstance(mechanism, Gaussian)
    return ExplainedBundle(
        columns=bundle.claim.cells,
        mechanism="gaussian" if gaussian else "laplace",
        scale=mechanism.sigma if isinstance(mechanism, Gaussian) else mechanism.scale,
        l1=sensitivity.l1,
        l2=math.nextafter(math.sqrt(sensitivity.l2_squared), math.inf),
        linf=sensitivity.linf,
        stderr=standard_error(mechanism) * float(grids[bundle.claim.cells[0]]),
    )


def _picks(calibrated: Calibrated) -> tuple[ExplainedBundle, ...]:
    """One exponential mechanism for each target, all on the same counts; the error is in rows by rank, at 95 %."""
    choice = calibrated.choice
    if choice is None or calibrated.counted is None:
        return ()
    sensitivity = calibrated.counted.sensitivity
    return tuple(
        ExplainedBundle(
            columns=calibrated.counted.cells,
            mechanism="exponential",
            scale=pick.mechanism.scale,
            l1=sensitivity.l1,
            l2=math.nextafter(math.sqrt(sensitivity.l2_squared), math.inf),
            linf=sensitivity.linf,
            stderr=rank_error(pick, choice.bins) / choice.whole,
        )
        for pick in choice.picks
    )


def _lines(explanation: Explanation) -> list[str]:
    cost = f"at most epsilon {_short(explanation.epsilon)}, delta {_short(explanation.delta)}"
    lines = [f"Loss: {cost}" if explanation.releases else "Loss: none, no private rows are read"]
    lines += [_price(explanation.paid)] if explanation.paid else []
    lines += [_offer(explanation.outputs, offer) for offer in explanation.offers]
    for number, release in enumerate(explanation.releases, 1):
        lines.append(f"Release {number} (owned rows, aggregated on {release.engine}): rho {_short(release.rho)}")
        lines += [f"  from: {source}" for source in explanation.sources[number - 1 : number]]
        if release.keys:
            groups = "groups are selected" if release.groups is None else f"{release.groups} public groups"
            lines.append(f"  keys: {', '.join(release.keys)} ({groups})")
        if release.selection is not None:
            lines.append(
                f"  selection: a group appears in half of all runs with {release.units_to_appear} units"
                f" that are in no other group; delta {_short(release.delta)}"
            )
        for bundle in release.bundles:
            lines.append(f"  {_noise(bundle)}")
        lines += [f"    {line}" for line in release.sql.splitlines()]
    lines.append("Post-processing (released):")
    lines += [f"    {line}" for line in explanation.post_sql.splitlines()]
    lines += [f"Note: {notice}" for notice in explanation.notices]
    for (name, type_), error in zip(explanation.outputs, explanation.expected, strict=True):
        lines.append(f"Output {name} {type_}" + ("" if error is None else f": standard error {error:.4g}"))
    return lines


def _price(paid: tuple[bool, ...]) -> str:
    if all(paid):
        return "Price: nothing, it was paid for before"
    return "Price: the whole loss" if not any(paid) else f"Price: {paid.count(False)} of {len(paid)} releases"


def _offer(outputs: tuple[tuple[str, str], ...], offer: Offer) -> str:
    """For example: with gaussian noise: standard error 45.3, rho 0.0001; you could ask 39 more like this."""
    named = zip(outputs, offer.expected, strict=False)
    errors = [(name, error) for (name, _), error in named if error is not None]
    shown = [f"standard error {error:.4g}" + (f" of {name}" if len(errors) > 1 else "") for name, error in errors]
    figures = ", ".join([*shown, f"epsilon {_short(offer.epsilon)}", f"rho {_short(offer.rho)}"])
    more = "over a million" if offer.covered >= MANY else str(offer.more)
    words = f"you could ask {more} more like this" if offer.covered else "your budget does not cover it"
    if offer.paid:
        words = f"free, and you could ask {more} more like this"
    return f"  {'with' if offer.chosen else 'or with'} {offer.noise} noise: {figures}; {words}"


def _noise(bundle: ExplainedBundle) -> str:
    if bundle.mechanism == "exponential":
        return f"exponential mechanism on {', '.join(bundle.columns)}: within {bundle.stderr:.4g} rows by rank, at 95 %"
    return f"{bundle.mechanism} noise on {', '.join(bundle.columns)}: standard error {bundle.stderr:.4g} each"


def _short(number: Fraction) -> str:
    return f"{float(number):.6g}"


