"""EXPLAIN: what a statement would cost and how accurate it would be, before it runs; stable fields for tools."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.amounts import TextRepr, format_rounded_down, format_rounded_up
from dpsql.compiler.accuracy import NoiseTerms, noise_stderr, release_noise
from dpsql.compiler.calibrate.calibrate import CalibratedPlan, NoisyBundle
from dpsql.compiler.calibrate.local_sensitivity import describe_pick
from dpsql.compiler.clipping import declared_caps
from dpsql.compiler.compiled import Compiled, ReleaseStep
from dpsql.compiler.norm_steps import format_norm
from dpsql.compiler.plan.aggregate import Tally
from dpsql.compiler.plan.estimators import BlockMean, BySet, Linear, recipes_by_set
from dpsql.compiler.plan.steps import VALUE_KEY
from dpsql.compiler.render.expressions import render_text as quoted
from dpsql.compiler.render.relations import render_source
from dpsql.compiler.split.release_block import ErrorBar
from dpsql.ledger.budget import MAX_COUNTED
from dpsql.privacy.loss import Loss
from dpsql.privacy.noise import Gaussian, interval_factor, standard_error
from dpsql.privacy.partition_selection import units_needed
from dpsql.privacy.release_spec import ReleaseSpec
from dpsql.privacy.score_selection import SHARE_STEPS, PosteriorDraws, Ranking, Scores, score_error
from dpsql.schema.model import Files, Resolved

NORMS_NOTE = (
    "how much one unit may contribute is chosen from a noisy histogram of units, which is charged first and stored; "
    "the expected error is known once it is chosen"
)
HIDDEN_NOTE = (
    "listed groups in whose counts nothing but noise is seen are left out; {}; SET empty_groups = show lists all groups"
)
FREE_COUNT = "the counts are those of the answers and cost nothing more"
OWN_COUNT = "their counts are no part of the answer and have a tenth of the loss (release {})"
PILOT_NOTE = (
    "this is the pilot of max_relative_error: what it answers decides the price of the statement, charged after it"
)


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
    told: str | None = None  # in the place of an error, where nothing is added to the cells


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
    study: tuple[str, ...] = ()  # what a study of these rows does, a line each
    undecided: bool = False  # norms are chosen first: errors are not known, and the SQL has placeholders
    histogram: bool = False  # it is what norms are chosen from
    norms: tuple[tuple[str, Fraction], ...] = ()  # that were chosen, by the first cell that each is for
    caps: tuple[str, ...] = ()  # what is declared or set and holds for an undecided release
    price_open: bool = False  # what it loses follows from max_error, once norms are chosen


@dataclass(frozen=True)
class Offer:
    """The statement with one kind of noise: what it costs the caller, and how good it is.

    `rho` is that of a fresh statement, `price` what would be charged now, `expected` the error of what is delivered.
    `more` counts fresh ones that could be asked after it: the caller's own budget covers them, and the owner's policy
    allows them. `reason` says why there are none, and the statement itself is `refused` for it, unless it is free.
    """

    noise: str
    chosen: bool
    epsilon: Fraction
    rho: Fraction
    price: Loss
    expected: tuple[float | None, ...]  # as in `Explanation`
    within: tuple[float | None, ...]  # half of the 95 % interval of each output
    more: int
    paid: bool
    undecided: bool = False  # it is a pilot; what follows is charged by what it answers
    refused: bool = False
    reason: str | None = None
    part: Fraction | None = None  # of the budget, that a fresh one takes; None where that is more than is left

    @property
    def affordable_count(self) -> int:
        """How many fresh ones could be asked, this one among them if it has to be paid for."""
        return 0 if self.refused else self.more + (not self.paid)


@dataclass(frozen=True)
class Explanation(TextRepr):
    """At most this is charged; what was paid for and stored before is free. Of a pilot, what follows comes on top."""

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
    undecided: bool = False  # it is a pilot: what it answers decides what is charged after it
    warnings: tuple[str, ...] = ()  # the notices without which its answers would be misread
    price_open: bool = False  # what max_error needs is known once norms are chosen; figures are of the histogram alone
    noise: str = ""  # the kind of noise that was chosen, and why; empty where there was no choice

    @property
    def norms_undecided(self) -> bool:
        """Whether a histogram of units is charged first, from which norms are chosen."""
        return any(release.undecided for release in self.releases)

    def __repr__(self) -> str:
        """In figures for people; the fields are exact, and the text says more."""
        columns = ", ".join(name for name, _ in self.outputs)
        return (
            f"Explanation(epsilon={format_rounded_up(self.epsilon)}, delta={format_rounded_up(self.delta)}, "
            f"releases={len(self.releases)}, columns=({columns}))"
        )

    def __str__(self) -> str:
        return "\n".join(_explanation_lines(self))


def explain(compiled: Compiled, engine: str, outputs: Sequence[tuple[str, str]]) -> Explanation:
    """Nothing in it depends on norms that are not chosen: `compiled` has those that the caller has paid for."""
    impure = any(step.loss.epsilon is None for step in compiled.steps)
    histograms = {norm.step.plan_hash for norm in compiled.norm_steps}
    return Explanation(
        releases=tuple(
            _explain_norms(
                _explain_release(step, engine),
                step,
                step.plan_hash in histograms,
                declared_caps(step, compiled.settings),
                is_price_open(compiled),
            )
            for step in compiled.steps
        ),
        epsilon=compiled.epsilon,
        delta=compiled.settings.delta if impure else Fraction(0),
        post_sql=compiled.post_sql,
        outputs=tuple(outputs),
        expected=(None if compiled.pilot else expected_errors(compiled)) or (None,) * len(outputs),
        notices=(*compiled.notices, *compiled.unknown_clipping, *_explain_hidden_groups(compiled)),
        undecided=compiled.pilot,
        warnings=compiled.warnings,
        price_open=is_price_open(compiled),
    )


def _explain_hidden_groups(compiled: Compiled) -> tuple[str, ...]:
    """That groups may be left out, and what the counts cost by which they are."""
    counted = [table for table in compiled.tables if table.counted is not None]
    if not counted:
        return ()
    own = {table.measures[t.measure].step + 1 for table in counted if (t := table.counted) is not None and t.alone}
    places = " and ".join(str(place) for place in sorted(own))
    return (HIDDEN_NOTE.format(OWN_COUNT.format(places) if own else FREE_COUNT),)


def with_declared_sources(explained: Explanation, resolved: Resolved) -> Explanation:
    """Files as the schema writes them: how many match, and their names, are a fact about the data; where they stand, or
    the snapshot of a text file, a fact about the machine. Of Parquet, the SQL runs by hand in the schema's folder."""
    written: dict[str, str] = {}
    for table in resolved.schema.tables:
        if isinstance(table.source, Files):
            written[render_source(resolved.relations[table.name])] = _render_declared_source(table.source)

    def restore_sources(sql: str) -> str:
        for files, source in written.items():
            sql = sql.replace(files, source)
        return sql

    return replace(
        explained, releases=tuple(replace(release, sql=restore_sources(release.sql)) for release in explained.releases)
    )


def _render_declared_source(source: Files) -> str:
    declared = replace(source, patterns=source.written or source.patterns)
    if declared.format == "parquet":
        return render_source(declared)
    return f"read_{declared.format}([{', '.join(map(quoted, declared.patterns))}])"


def expected_errors(compiled: Compiled, delivered: Mapping[int, ReleaseSpec] | None = None) -> tuple[float | None, ...]:
    """The standard error of each output that is a sum of cells: it depends on noise alone.

    `delivered` is what was done to the releases that are there already, by the place of their step.
    """
    noises = (_output_noise(compiled, bar, delivered or {}) for bar in compiled.errors)
    return tuple(None if noise is None else noise_stderr(noise) for noise in noises)


def expected_widths(compiled: Compiled, delivered: Mapping[int, ReleaseSpec]) -> tuple[float | None, ...]:
    """Half of the 95 % interval of each such output, as the answer will tell it."""
    noises = (_output_noise(compiled, bar, delivered) for bar in compiled.errors)
    return tuple(None if noise is None else noise_stderr(noise) * _widest_factor(noise) for noise in noises)


def _widest_factor(noise: NoiseTerms) -> float:
    return max((interval_factor(mechanism) for _, mechanism in noise), default=0.0)


def _output_noise(compiled: Compiled, bar: ErrorBar | None, delivered: Mapping[int, ReleaseSpec]) -> NoiseTerms | None:
    if bar is None or bar.measure is None:
        return None
    table = next(table for table in compiled.tables if table.name == bar.release)
    answer = table.measures[bar.measure]
    recipes = recipes_by_set(answer.recipe) if isinstance(answer.recipe, BySet | Linear | BlockMean) else ()
    linear = [recipe for recipe in recipes if isinstance(recipe, Linear | BlockMean)]
    if not linear:
        return None
    step = compiled.steps[answer.step]
    if step.undecided:  # its norms are placeholders
        return None
    calibrated = step.calibrated
    spec = delivered.get(answer.step)
    spec = calibrated.spec if spec is None else spec
    noises = [release_noise(recipe, calibrated.columns, spec) for recipe in linear]
    return max(noises, key=noise_stderr)  # of the grouping set that has the most


def _explain_release(step: ReleaseStep, engine: str) -> ExplainedRelease:
    calibrated = step.calibrated
    if isinstance(calibrated.plan, Tally):
        return _explain_study(step, calibrated.plan, engine)
    gather, selection = calibrated.gather, calibrated.selection
    if calibrated.scores is not None:
        grids = dict.fromkeys(calibrated.columns, _score_grid(calibrated.scores, calibrated))
    elif calibrated.choice is not None:  # the engine's only column counts rows, or parts of them
        grids = {calibrated.columns[0]: Fraction(1, calibrated.choice.whole)}
    else:
        grids = dict(zip(calibrated.columns, calibrated.grids, strict=True))
    return ExplainedRelease(
        sql=step.sql,
        engine=engine,
        holes=tuple(hole.name for hole in step.holes),
        keys=tuple(key.name for key in step.keys),
        columns=tuple(ExplainedColumn(name, grid) for name, grid in grids.items()),
        bundles=tuple(_explain_bundle(bundle, grids) for bundle in calibrated.bundles)
        + _explain_picks(calibrated)
        + _explain_scores(calibrated),
        selection=gather.selection.cell if gather.selection is not None else None,
        groups=gather.listed.count if gather.listed is not None and selection is None else None,
        units_to_appear=None if selection is None else units_needed(selection, 1),
        epsilon=step.loss.epsilon,
        rho=step.loss.rho,
        delta=step.loss.delta,
    )


def is_price_open(compiled: Compiled) -> bool:
    """Whether the price follows from an error that was asked for, and so from norms that are not chosen."""
    return compiled.undecided and compiled.settings.max_error is not None


def _explain_norms(
    release: ExplainedRelease, step: ReleaseStep, histogram: bool, caps: tuple[str, ...], price_open: bool
) -> ExplainedRelease:
    """Figures that follow from a norm are left out until it is chosen: those of placeholders would mislead."""
    norms = tuple((cell, chosen.norm) for cell, chosen in step.norms)
    if step.undecided:
        return replace(release, bundles=(), units_to_appear=None, undecided=True, caps=caps, price_open=price_open)
    return replace(release, histogram=histogram, norms=norms)


def _explain_study(step: ReleaseStep, tally: Tally, engine: str) -> ExplainedRelease:
    study = step.calibrated.study
    assert study is not None
    *codes, weight = tally.columns
    columns = (*(ExplainedColumn(name, Fraction(1)) for name in codes),
               ExplainedColumn(weight, Fraction(1, study.mass.whole)))  # fmt: skip
    return ExplainedRelease(
        step.sql, engine, (), (), columns, (), None, None, None, step.loss.epsilon, step.loss.rho, step.loss.delta,
        study.explain_lines(),
    )  # fmt: skip


def _explain_bundle(bundle: NoisyBundle, grids: dict[str, Fraction]) -> ExplainedBundle:
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


def _explain_picks(calibrated: CalibratedPlan) -> tuple[ExplainedBundle, ...]:
    """One mechanism for each target, all on the same counts."""
    choice, counted = calibrated.choice, calibrated.counted
    if choice is None or counted is None:
        return ()
    moved, descriptions = (
        counted.sensitivity,
        [describe_pick(pick, choice, calibrated.grids[0]) for pick in choice.picks],
    )
    l2 = math.nextafter(math.sqrt(moved.l2_squared), math.inf)
    return tuple(
        ExplainedBundle(counted.cells, how, scale, moved.l1, l2, moved.linf, off) for how, scale, off in descriptions
    )


def _score_grid(scores: Scores, calibrated: CalibratedPlan) -> Fraction:
    """What a step of a cell is worth, of which scores are made."""
    return Fraction(1, scores.whole) if isinstance(scores, PosteriorDraws) else calibrated.errors[0] / scores.scale


def _explain_scores(calibrated: CalibratedPlan) -> tuple[ExplainedBundle, ...]:
    """The best candidates, with how far their scores are from the best at 95 %; or draws, with their temper."""
    scores, counted = calibrated.scores, calibrated.counted
    if scores is None or counted is None:
        return ()
    on, grid, within = ", ".join(counted.cells), _score_grid(scores, calibrated), 0.0
    match scores:
        case Ranking():
            name = "permute-and-flip" if scores.flips else "exponential mechanism"
            within = score_error(scores, _count_candidates(calibrated)) * float(grid)
            description = (
                f"{name} on {on}: scores within {format_rounded_up(Fraction(within))} of the best that is left, at 95 %"
            )
        case PosteriorDraws():
            name, ends = "posterior draws", f"{scores.first / SHARE_STEPS:g} and {1 - scores.first / SHARE_STEPS:g}"
            power = format_rounded_down(scores.likelihood_power)
            description = f"{name} on {on}: {scores.draws} between {ends}, of the likelihood to the power of {power}"
    moved = counted.sensitivity
    l2 = math.nextafter(math.sqrt(moved.l2_squared), math.inf)
    return (ExplainedBundle(counted.cells, name, scores.scale, moved.l1, l2, moved.linf, within, description),)


def _count_candidates(calibrated: CalibratedPlan) -> int:
    """How many there are in a group, at most."""
    listed = calibrated.gather.listed
    factors = () if listed is None else listed.factors
    return max((f.count for f in factors if VALUE_KEY in [key.name for key in f.keys]), default=1)


def _explanation_lines(explanation: Explanation) -> list[str]:
    lines = [f"Loss: {_format_loss(explanation)}"]
    lines += [_format_price(explanation)] if explanation.offers else []
    if not explanation.price_open:
        lines += [_format_offer(explanation.outputs, offer) for offer in explanation.offers]
    lines += [f"Noise: {explanation.noise}"] if explanation.noise else []
    for index, release in enumerate(explanation.releases):
        paid = explanation.paid[index : index + 1] == (True,)
        lines += _release_lines(release, index + 1, paid, explanation.sources[index : index + 1])
    lines.append("Post-processing (released):")
    lines += [f"    {line}" for line in explanation.post_sql.splitlines()]
    lines += [f"Note: {PILOT_NOTE}"] if explanation.undecided else []
    lines += [f"Note: {NORMS_NOTE}"] if explanation.norms_undecided else []
    warnings = explanation.warnings
    lines += [f"{'Warning' if notice in warnings else 'Note'}: {notice}" for notice in explanation.notices]
    for (name, type_), error in zip(explanation.outputs, explanation.expected, strict=True):
        lines.append(f"Output {name} {type_}" + ("" if error is None else f": {_format_error(error)}"))
    return lines


def _format_loss(explanation: Explanation) -> str:
    if not explanation.releases:
        return "none, no private rows are read"
    if explanation.price_open:
        return "the histogram's, and then what max_error needs, which is known once the norm is chosen"
    cost = f"epsilon {format_rounded_up(explanation.epsilon)}, delta {format_rounded_up(explanation.delta)}"
    return f"the pilot's {cost}, and then what it decides" if explanation.undecided else f"at most {cost}"


def _release_lines(release: ExplainedRelease, number: int, paid: bool, source: tuple[str, ...]) -> list[str]:
    """Lines about one release. A stored release has its own noise: the figures are those of a run at present."""
    pure = "" if not release.epsilon else f", epsilon {format_rounded_up(release.epsilon)} without delta"
    price = "known once norms are chosen" if release.price_open else f"rho {format_rounded_up(release.rho)}{pure}"
    loss, fresh = ("nothing to pay", "a fresh one: ") if paid else (price, "")
    lines = [f"Release {number} (owned rows, aggregated on {release.engine}): {loss}"]
    lines += [f"  from: {text}" for text in source]
    if release.keys:
        groups = "groups are selected" if release.groups is None else f"{release.groups} public groups"
        lines.append(f"  keys: {', '.join(release.keys)} ({groups})")
    if release.histogram:
        lines.append("  a histogram of units, from which norms are chosen")
    if release.undecided:
        lines.append("  norms are chosen first: noise and error are known then; the SQL has placeholders")
        lines.append(f"  caps until then: {'; '.join(release.caps) or 'none is declared'}")
    lines += [f"  norm of {cell}: {format_norm(norm)} for each unit" for cell, norm in release.norms]
    if release.selection is not None and not release.undecided:
        lines.append(
            f"  {fresh}selection: a group appears in half of all runs with {release.units_to_appear} units"
            f" that are in no other group; delta {format_rounded_up(release.delta)}"
        )
    lines += [f"  {fresh}{_format_noise(bundle)}" for bundle in release.bundles]
    lines += [f"  {fresh}{line}" for line in release.study]
    return lines + [f"    {line}" for line in release.sql.splitlines()]


def _format_price(explanation: Explanation) -> str:
    paid, price = explanation.paid, explanation.offers[0].price
    if explanation.undecided:
        return f"Price: {'nothing for the pilot' if all(paid) else 'that of the pilot'}, and then of what it decides"
    if all(paid):
        derived = any(source.startswith("derived") for source in explanation.sources)
        return "Price: nothing, it " + ("follows from what was paid for" if derived else "was paid for before")
    if explanation.norms_undecided:
        return f"Price: {_format_two_parts(explanation)}"
    if not any(paid):
        return "Price: the whole loss"
    epsilon = "" if price.epsilon is None else f"epsilon {format_rounded_up(price.epsilon)}, "
    had = f"{paid.count(True)} of {len(paid)} releases {'was' if paid.count(True) == 1 else 'were'} paid for before"
    return f"Price: {epsilon}rho {format_rounded_up(price.rho)}; {had}"


def _format_two_parts(explanation: Explanation) -> str:
    """What the histograms of units cost, and then the question; what is paid for already is left out."""
    if explanation.price_open:
        histograms = [r.rho for r in explanation.releases if r.histogram]
        first = format_rounded_up(sum(histograms, Fraction(0)))
        return f"in two parts: rho {first} for the histogram of units, and then what max_error needs"
    unpaid = [r for r, paid in zip(explanation.releases, explanation.paid, strict=True) if not paid]
    parts = [sum((r.rho for r in unpaid if r.histogram is histogram), Fraction(0)) for histogram in (True, False)]
    first, then = (format_rounded_up(part) for part in parts)
    return f"in two parts: rho {first} for the histogram of units, and then rho {then} for the question"


def _format_offer(outputs: tuple[tuple[str, str], ...], offer: Offer) -> str:
    """For example: with gaussian noise: standard error 45.3, rho 0.0001; you could ask 39 more like this."""
    named = zip(outputs, offer.expected, strict=False)
    errors = [(name, error) for (name, _), error in named if error is not None]
    error_texts = [_format_error(error) + (f" of {name}" if len(errors) > 1 else "") for name, error in errors]
    rho = f"rho {format_rounded_up(offer.rho)}"
    if not offer.paid and offer.price.rho < offer.rho:
        rho = f"rho {format_rounded_up(offer.price.rho)} of {format_rounded_up(offer.rho)}"
    request = f"epsilon {format_rounded_up(offer.epsilon)}, {rho}"
    figures = ", ".join(error_texts if offer.paid and error_texts else [*error_texts, request])
    pilot = "a pilot with " if offer.undecided else ""
    kind = f"{'with' if offer.chosen else 'or with'} {offer.noise} noise"
    return f"  {kind}: {pilot}{figures}; {_format_affordable_count(offer, request)}"


def _format_affordable_count(offer: Offer, request: str) -> str:
    more = "over a million" if offer.more >= MAX_COUNTED else str(offer.more)
    words = f"you could ask {more} more like this" + (f" at {request}" if offer.paid else "")
    if offer.refused:
        return f"it would be refused, and you could ask 0 more like this: {offer.reason}"
    if offer.undecided:
        return "free, and then what it decides" if offer.paid else "and then what it decides"
    because = "" if offer.reason is None else f": {offer.reason}"
    return ("free, and " if offer.paid else "") + words + because


def _format_noise(bundle: ExplainedBundle) -> str:
    if bundle.told is not None:
        return bundle.told
    if bundle.mechanism == "exponential":
        within = format_rounded_up(Fraction(bundle.stderr))
        (counted,) = bundle.columns  # rows, or blocks
        return f"exponential mechanism on {counted}: within {within} {counted} by rank, at 95 %"
    if bundle.mechanism == "smooth":
        return f"noise by smooth sensitivity: {_format_error(bundle.stderr)} at most; what it is depends on the rows"
    if bundle.mechanism == "ptr":
        return f"propose-test-release: no answer, or {_format_error(bundle.stderr)}"
    return f"{bundle.mechanism} noise on {', '.join(bundle.columns)}: {_format_error(bundle.stderr)} each"


def _format_error(error: float) -> str:
    return f"standard error {format_rounded_up(Fraction(error))}"
