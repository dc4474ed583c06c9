"""Posteriors as recipes over the cells of one argument: the sums that AVG and VAR have, and no others.

Privacy: nothing else is asked of the rows, so the loss is that of AVG, or of VAR, of the same argument. How many rows
there are comes from the noisy cells too.
"""

from __future__ import annotations

from fractions import Fraction
from typing import assert_never

from dpsql.plan.measures import ConjugatePosterior
from dpsql.plan.recipes import BetaPosterior, NormalPosterior
from dpsql.rewrite.need_flag import need_flag
from dpsql.rewrite.sums import Sums, combined

ONE = Fraction(1)


def posterior(measure: ConjugatePosterior, sums: Sums) -> BetaPosterior | NormalPosterior:
    match measure.family:
        case "beta":
            return _beta(measure, sums)
        case "normal":
            return _normal(measure, sums)
        case _:
            assert_never(measure.family)


def _beta(measure: ConjugatePosterior, sums: Sums) -> BetaPosterior:
    need_flag("BETA_POSTERIOR", sums.lower, sums.upper, measure.text, measure.span)
    given = dict(measure.prior)
    zeros = combined((sums.count, ONE), (sums.total, -ONE))
    return BetaPosterior(sums.total, zeros, given.get("alpha", ONE), given.get("beta", ONE), measure.confidence,
                         measure.part)  # fmt: skip


def _normal(measure: ConjugatePosterior, sums: Sums) -> NormalPosterior:
    """Without a prior of one's own, every mean within the bounds and every variance is as likely as any other."""
    assert sums.first is not None and sums.second is not None
    given, center, half = dict(measure.prior), (sums.lower + sums.upper) / 2, (sums.upper - sums.lower) / 2
    square = combined((sums.second, 1 / half**2)) if half else ()
    return NormalPosterior(
        rest=combined((sums.count, ONE), (square, -ONE)),
        square=square,
        linear=combined((sums.first, 1 / half)) if half else (),
        center=center,
        half=half,
        prior_mean=given.get("prior_mean", center),
        prior_n=given.get("prior_n", Fraction(0)),
        prior_sd=given.get("prior_sd"),
        sigma=given.get("sigma"),
        confidence=measure.confidence,
        part=measure.part,
    )
