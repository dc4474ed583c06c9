"""The statistical pass: releases of neighboring databases, thousands of each, must not be told apart beyond the claim.

A template's SQL runs once on each side; then the very code that makes releases draws many of them at once. The events
to look at are picked on one half of the draws (the likelihood ratio above some level; a key that appears), and judged
on the other (`bound_empirical_loss`): a sound release is accused with a chance of at most ALPHA. Every template is
run again with a planted bug, half of the noise or a lower threshold, which must be found: an audit that finds nothing
there shows nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.compile import ReleaseStep, compile_query
from dpsql.compiler.settings import Settings
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.privacy.exact import Exact
from dpsql.privacy.exponential import Exponential, Pick, bin_penalties
from dpsql.privacy.loss import sum_losses
from dpsql.privacy.noise import Gaussian, Laplace, Mechanism, scale_of
from dpsql.privacy.partition_selection import (
    GaussianThreshold,
    LaplaceThreshold,
    OptimalSelection,
    Selection,
    WeightedGaussian,
)
from dpsql.privacy.release import Release, ReleaseSpec, perturb
from dpsql.privacy.sampling import Sampler
from dpsql.schema.model import (
    Budget,
    Column,
    Contributions,
    Domain,
    EngineTable,
    ForeignUnit,
    Neighbors,
    OwnUnit,
    Privacy,
    Resolved,
    Schema,
    Table,
)
from dpsql.types import BIGINT, DOUBLE, INTEGER, TEXT
from dpsql.verify.epsilon_bound import Flags, Floats, LossBound, ReleaseSamples, bound_empirical_loss
from dpsql.verify.generate.columns import engine_type_name
from dpsql.verify.generate.neighbors import TableRows
from dpsql.verify.invariants import ExactCells
from dpsql.verify.paired_engine import reveal_cells

# Statements for the audit, each with two small neighboring databases on which it loses as much as it may.
#
# One unit, number 0, has all that it can: many rows, values at the far ends, keys of its own. Its neighbor is without
# it, or has it at the other end. Epsilons and deltas are large, so that a few thousand releases can tell.

_BOUNDED_DOUBLE = Domain(DOUBLE, True, Fraction(0), Fraction(10))
PEOPLE = Table(
    "people", EngineTable(("people",)), OwnUnit("uid"), (("uid",),),
    (Column("uid", Domain(BIGINT)), Column("town", Domain(TEXT)), Column("x", _BOUNDED_DOUBLE)),
)  # fmt: skip
VISITS = Table(
    "visits", EngineTable(("visits",)), ForeignUnit("uid", "people", "uid"), (),
    (Column("uid", Domain(BIGINT)), Column("ward", Domain(TEXT, True, values=("a", "b"))), Column("note", Domain(TEXT)),
     Column("x", _BOUNDED_DOUBLE), Column("n", Domain(INTEGER, True, Fraction(-2), Fraction(3)))),
)  # fmt: skip
TABLES = (PEOPLE, VISITS)


@dataclass(frozen=True)
class Template:
    name: str
    sql: str
    noise: NoiseKind = NoiseKind.LAPLACE
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    group_size: int = 1
    rows: int = 3
    groups: int = 2
    epsilon: Fraction = Fraction(1)
    delta: Fraction = Fraction(0)
    weaker: int = 2  # by how much the planted bug divides the noise: more, where no rows reach the whole claim

    @property
    def settings(self) -> Settings:
        return Settings(self.epsilon, self.delta, self.rows, self.groups, self.noise)

    @property
    def resolved_schema(self) -> Resolved:
        budget = Budget(self.epsilon, self.delta)
        caps = Contributions(self.rows, self.groups)
        privacy = Privacy(self.neighbors, "people.uid", budget, budget, caps, self.group_size)
        schema = Schema(Path("audit.yaml"), "duckdb://", "sqlite://", privacy, (), TABLES)
        physical = {table.name: {column.name: column.type for column in table.columns} for table in schema.tables}
        return Resolved(schema, 1, {table.name: table.source for table in schema.tables}, physical, "audit")

    @property
    def neighbor_pair(self) -> tuple[TableRows, TableRows]:
        """Neighbors, in as many units as are protected at once."""
        victims = range(self.group_size)
        first = _build_side([_extreme_unit(number) for number in victims])
        if self.neighbors is Neighbors.CHANGE_ONE:
            return first, _build_side([_opposite_unit(number) for number in victims])
        return first, _build_side([])


def _build_side(units: list[TableRows]) -> TableRows:
    everyone = [*units, *(_ordinary_unit(number) for number in range(10, 16))]
    return {table: tuple(row for unit in everyone for row in unit[table]) for table in ("people", "visits")}


def _extreme_unit(number: int) -> TableRows:
    """More rows than any norm, in a ward where the crowd is too, and under keys that it alone has."""
    visits = tuple((f"{number}", "'a'", f"'own{n}'", "1e9", "7") for n in range(30))
    return {"people": ((f"{number}", "'own'", "1e9"),), "visits": visits}


def _opposite_unit(number: int) -> TableRows:
    visits = tuple((f"{number}", "'b'", f"'other{n}'", "-1e9", "-7") for n in range(30))
    return {"people": ((f"{number}", "'other'", "-1e9"),), "visits": visits}


def _ordinary_unit(number: int) -> TableRows:
    visits = tuple((f"{number}", f"'{'ab'[n]}'", "'shared'", "5", "1") for n in range(2))
    return {"people": ((f"{number}", "'shared'", "5"),), "visits": visits}


_LARGE_DELTA, _LARGE_EPSILON = Fraction(1, 10), Fraction(4)
GAUSSIAN, CHANGE_ONE = NoiseKind.GAUSSIAN, Neighbors.CHANGE_ONE

TEMPLATES = (
    Template("one count", "SELECT COUNT(*) FROM people"),
    Template(
        "one count, gaussian", "SELECT COUNT(*) FROM people", GAUSSIAN, epsilon=_LARGE_EPSILON, delta=_LARGE_DELTA
    ),
    Template("a count of weighted rows", "SELECT COUNT(*) FROM visits"),
    Template(
        "a sum of weighted rows, gaussian",
        "SELECT SUM(x) FROM visits",
        GAUSSIAN,
        epsilon=_LARGE_EPSILON,
        delta=_LARGE_DELTA,
    ),
    Template("a sum that may be negative, change_one", "SELECT SUM(n) FROM visits", neighbors=CHANGE_ONE),
    Template("count, sum and average", "SELECT COUNT(x), SUM(x), AVG(x) FROM visits", group_size=2),
    Template(
        "a variance, gaussian", "SELECT VAR_POP(x) FROM visits", GAUSSIAN, epsilon=_LARGE_EPSILON, delta=_LARGE_DELTA
    ),
    Template("a correlation", "SELECT CORR(x, n) FROM visits", weaker=8),
    Template("distinct values", "SELECT COUNT(DISTINCT note) FROM visits"),
    Template("listed groups", "SELECT ward, COUNT(*), SUM(x) FROM visits GROUP BY ward"),
    Template(
        "listed groups, gaussian, change_one",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
        GAUSSIAN,
        CHANGE_ONE,
        epsilon=_LARGE_EPSILON,
        delta=_LARGE_DELTA,
    ),
    Template("grouping sets", "SELECT ward, COUNT(*) FROM visits GROUP BY ROLLUP (ward)"),
    Template("units of each group", "SELECT ward, COUNT(DISTINCT uid) FROM visits GROUP BY ward", weaker=4),
    Template("selected groups", "SELECT note, COUNT(*) FROM visits GROUP BY note", delta=_LARGE_DELTA),
    Template(
        "selected groups, gaussian", "SELECT note, COUNT(*) FROM visits GROUP BY note", GAUSSIAN, delta=_LARGE_DELTA
    ),
    Template(
        "thirty keys of one unit", "SELECT note, COUNT(*) FROM visits GROUP BY note", delta=_LARGE_DELTA, groups=30
    ),
    Template(
        "thirty keys of one unit, gaussian",
        "SELECT note, COUNT(*) FROM visits GROUP BY note",
        GAUSSIAN,
        delta=_LARGE_DELTA,
        groups=30,
    ),
    Template("one key for each unit", "SELECT DISTINCT town FROM people", delta=_LARGE_DELTA, neighbors=CHANGE_ONE),
    Template(
        "a mixed key, two units",
        "SELECT ward, note, COUNT(*) FROM visits GROUP BY ward, note",
        GAUSSIAN,
        group_size=2,
        delta=_LARGE_DELTA,
    ),
    Template("a median", "SELECT MEDIAN(n) FROM visits WHERE note <> 'shared'", weaker=4),
    Template("a median, two units", "SELECT MEDIAN(n) FROM visits WHERE note <> 'shared'", group_size=2, weaker=4),
    Template(
        "quantiles of groups, gaussian",
        "SELECT ward, QUANTILE_DISC(n, 0.9) FROM visits GROUP BY ward",
        GAUSSIAN,
        epsilon=_LARGE_EPSILON,
        delta=_LARGE_DELTA,
        weaker=4,
    ),
    Template("a largest value, change_one", "SELECT MAX(n) FROM visits", neighbors=CHANGE_ONE, weaker=8),
    Template("a most frequent value", "SELECT MODE(ward) FROM visits"),
)

DEFAULT_SAMPLES = 40_000
_BATCH_SIZE = 4_000
_MIN_SMOOTH_SIGMA = 1 << 10
_MAX_CONTRAST_CELLS = 5
"""Cells of which pairs are looked at."""


@dataclass(frozen=True)
class AuditResult:
    template: str
    samples: int
    shown: tuple[LossBound, ...]
    control: tuple[LossBound, ...]

    @property
    def holds(self) -> bool:
        return not any(bound.exceeds_claim for bound in self.shown)

    @property
    def has_power(self) -> bool:
        """Whether the planted bug was found."""
        return any(bound.exceeds_claim for bound in self.control)


def audit_template(
    template: Template, sampler: Sampler, engine: InMemoryEngine, samples: int = DEFAULT_SAMPLES
) -> AuditResult:
    resolved = template.resolved_schema
    steps = compile_query(template.sql, resolved, template.settings).steps
    steps = tuple({step.plan_hash: step for step in steps}.values())
    if any(step.holes for step in steps):
        raise ValueError("a template's steps stand alone")
    first, second = (_run_steps(engine, side, steps) for side in template.neighbor_pair)
    loss = sum_losses([step.loss for step in steps])
    observed = _sample_both_sides(steps, first, second, sampler, samples, lambda spec: spec)
    planted = _sample_both_sides(
        steps, first, second, sampler, samples, lambda spec: _weaken_spec(spec, template.weaker)
    )
    gaussian = all(_is_gaussian(step) for step in steps)
    return AuditResult(
        template.name,
        samples,
        bound_empirical_loss(observed, loss, gaussian),
        bound_empirical_loss(planted, loss, gaussian),
    )


def _is_gaussian(step: ReleaseStep) -> bool:
    """Nothing but Gaussian noise, of so many steps that its discrete form has the continuous one's curve."""
    calibrated = step.calibrated
    mechanisms = [bundle.mechanism for bundle in calibrated.bundles]
    return (
        calibrated.choice is None
        and calibrated.selection is None
        and all(isinstance(noise, Gaussian) and noise.sigma >= _MIN_SMOOTH_SIGMA for noise in mechanisms)
    )


def _run_steps(engine: InMemoryEngine, side: TableRows, steps: tuple[ReleaseStep, ...]) -> list[ExactCells]:
    for table in TABLES:
        engine.fill_table(
            table.name, [(column.name, engine_type_name(column.type)) for column in table.columns], side[table.name]
        )
    return [reveal_cells(engine.run_release(step.sql, len(step.keys), {})) for step in steps]


# --- many releases at once -------------------------------------------------------------------------------------------


def _sample_both_sides(
    steps: tuple[ReleaseStep, ...],
    first: list[ExactCells],
    second: list[ExactCells],
    sampler: Sampler,
    samples: int,
    change: Callable[[ReleaseSpec], ReleaseSpec],
) -> tuple[ReleaseSamples, ReleaseSamples]:
    """Draws of both sides. The ratio is that of the noise as claimed, whatever noise is drawn."""
    sides = []
    for cells in (first, second):
        ratio, keys = np.zeros(samples), dict[tuple[int, tuple[Any, ...]], Flags]()
        noisy: list[Floats] = []
        for index, step in enumerate(steps):
            spec = step.calibrated.spec
            drawn: list[Floats] = []
            for start in range(0, samples, _BATCH_SIZE):
                stop = min(start + _BATCH_SIZE, samples)
                release = perturb(_tile_cells(cells[index], stop - start), _tile_spec(change(spec)), sampler)
                ratio[start:stop] += _log_likelihood_ratio(release, spec, first[index], second[index], stop - start)
                if spec.selection is not None:
                    for key, flags in _flag_selected_keys(release, spec.selection.keys, stop - start).items():
                        keys.setdefault((index, key), np.zeros(samples, np.bool_))[start:stop] = flags
                elif spec.choice is None:
                    drawn.append(_scale_by_noise(release, spec, stop - start))
            if spec.selection is not None:
                keys |= _flag_one_sided_keys(index, keys, first[index], second[index], spec.selection.keys, samples)
            noisy += list(np.concatenate(drawn).T) if drawn else []
        sides.append(ReleaseSamples(ratio, keys, _pairwise_contrasts(noisy[:_MAX_CONTRAST_CELLS])))
    return sides[0], sides[1]


def _scale_by_noise(release: Release, spec: ReleaseSpec, n: int) -> Floats:
    """The cells of each release, one row for each, in units of their noise."""
    scales = {column: float(scale_of(bundle.mechanism)) for bundle in spec.bundles for column in bundle.columns}
    columns = [release.cells[column].astype(np.float64).reshape(n, -1) / scale for column, scale in scales.items()]
    scaled: Floats = np.concatenate(columns, axis=1) if columns else np.zeros((n, 0))
    return scaled


def _pairwise_contrasts(cells: list[Floats]) -> tuple[Floats, ...]:
    pairs = [(first, second) for index, first in enumerate(cells) for second in cells[:index]]
    return tuple(contrast for first, second in pairs for contrast in (first - second, first + second))


def _flag_one_sided_keys(
    index: int,
    keys: dict[tuple[int, tuple[Any, ...]], Flags],
    first: ExactCells,
    second: ExactCells,
    unknown: int,
    n: int,
) -> dict[tuple[int, tuple[Any, ...]], Flags]:
    """Whether any of the keys appears that one side alone has: each is rare, all together are not as rare."""
    sides = [{key[:unknown] for key in cells.keys} for cells in (first, second)]
    any_flags: dict[tuple[int, tuple[Any, ...]], Flags] = {}
    for name, own_keys in (("any of D", sides[0] - sides[1]), ("any of D'", sides[1] - sides[0])):
        flags = [keys[index, key] for key in own_keys if (index, key) in keys]
        any_flags[index, (name,)] = np.logical_or.reduce(flags) if flags else np.zeros(n, np.bool_)
    return any_flags


def _tile_cells(cells: ExactCells, n: int) -> Exact:
    """The same cells n times, under a first key that tells them apart: n releases in one."""
    keys = [(copy, *key) for copy in range(n) for key in cells.keys]
    return Exact(keys, [np.tile(np.array(column, np.int64), n) for column in cells.columns])


def _tile_spec(spec: ReleaseSpec) -> ReleaseSpec:
    selection = spec.selection
    return spec if selection is None else replace(spec, selection=replace(selection, keys=selection.keys + 1))


def _log_likelihood_ratio(release: Release, spec: ReleaseSpec, first: ExactCells, second: ExactCells, n: int) -> Floats:
    if spec.choice is not None:
        return _bin_log_ratio(release, spec, first, second, n)
    copies = np.array([key[0] for key in release.keys], np.int64)
    first_rows = {key: index for index, key in enumerate(first.keys)}
    second_rows = {key: index for index, key in enumerate(second.keys)}
    shared = [key[1:] in first_rows and key[1:] in second_rows for key in release.keys]
    rows = np.flatnonzero(shared)
    first_indexes = [first_rows[release.keys[row][1:]] for row in rows]
    second_indexes = [second_rows[release.keys[row][1:]] for row in rows]
    result = np.zeros(n)
    for bundle in spec.bundles:
        for column in bundle.columns:
            drawn = release.cells[column][rows].astype(np.float64)
            ours = np.array(first.columns[column], np.float64)[first_indexes] if first_indexes else np.zeros(0)
            others = np.array(second.columns[column], np.float64)[second_indexes] if first_indexes else np.zeros(0)
            np.add.at(result, copies[rows], _noise_log_ratio(bundle.mechanism, drawn, ours, others))
    return result


def _noise_log_ratio(mechanism: Mechanism, drawn: Floats, ours: Floats, others: Floats) -> Floats:
    match mechanism:
        case Laplace(scale):
            log_ratio: Floats = (np.abs(drawn - others) - np.abs(drawn - ours)) / float(scale)
        case Gaussian(sigma):
            log_ratio = ((drawn - others) ** 2 - (drawn - ours) ** 2) / (2 * float(sigma) ** 2)
    return log_ratio


def _bin_log_ratio(release: Release, spec: ReleaseSpec, first: ExactCells, second: ExactCells, n: int) -> Floats:
    choice = spec.choice
    assert choice is not None
    result = np.zeros(n)
    for pick, chosen in zip(choice.picks, release.cells, strict=True):
        sides = [
            bin_penalties(pick.target, np.array(cells.columns[0], np.int64).reshape(-1, choice.bins)).astype(np.float64)
            for cells in (first, second)
        ]
        bins = (chosen - choice.lower).reshape(n, -1)
        scale = float(_exponential_scale(pick))  # a multiple of it would do as well: levels are picked from the draws
        for group in range(bins.shape[1]):
            result += (sides[1][group][bins[:, group]] - sides[0][group][bins[:, group]]) / scale
    return result


def _exponential_scale(pick: Pick) -> Fraction:
    if not isinstance(pick.mechanism, Exponential):
        raise ValueError("a template chooses by the exponential mechanism")
    return pick.mechanism.scale


def _flag_selected_keys(release: Release, unknown: int, n: int) -> dict[tuple[Any, ...], Flags]:
    """Which of the copies have each selected key."""
    flags_by_key: dict[tuple[Any, ...], Flags] = {}
    for key in release.keys:
        flags_by_key.setdefault(key[1 : 1 + unknown], np.zeros(n, np.bool_))[key[0]] = True
    return flags_by_key


# --- planted bugs ----------------------------------------------------------------------------------------------------


def _weaken_spec(spec: ReleaseSpec, by: int) -> ReleaseSpec:
    """Half of the noise, or less; or a threshold that is too low."""
    if spec.choice is not None:
        picks = tuple(replace(p, mechanism=Exponential(_exponential_scale(p) / by)) for p in spec.choice.picks)
        return replace(spec, choice=replace(spec.choice, picks=picks))
    bundles = tuple(replace(bundle, mechanism=_divide_noise(bundle.mechanism, by)) for bundle in spec.bundles)
    selection = spec.selection
    if selection is not None:
        selection = replace(selection, mechanism=_lower_threshold(selection.mechanism))
    return replace(spec, bundles=bundles, selection=selection)


def _divide_noise(mechanism: Mechanism, by: int) -> Mechanism:
    return Laplace(mechanism.scale / by) if isinstance(mechanism, Laplace) else Gaussian(mechanism.sigma / by)


def _lower_threshold(selection: Selection) -> Selection:
    match selection:
        case OptimalSelection(scale, bound):
            return replace(selection, bound=max(1, bound - 1 - math.ceil(2 * scale)))
        case LaplaceThreshold(scale, threshold):
            return replace(selection, threshold=threshold - 1 - math.ceil(2 * scale))
        case GaussianThreshold(sigma, threshold) | WeightedGaussian(sigma, threshold):
            return replace(selection, threshold=threshold - 1 - math.ceil(sigma))
