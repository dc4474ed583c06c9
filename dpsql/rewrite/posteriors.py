"""Posteriors as recipes over the cells of one argument: the sums that AVG and VAR have, and no others.

Privacy: nothing else is asked of the rows, so the loss is that of AVG, or of VAR, of the same argument. How many rows
there are comes from the noisy cells too.
"""

from __future__ import annotations

from fractions import Fraction
from typing import assert_never

from dpsql.plan.measures import ConjugatePosterior
from dpsql.plan.recipes import BetaPosterior, NormalPosterior
from dpsql.rewrite.need_flag import require_flag
from dpsql.rewrite.sums import ArgumentSums, combine_terms

ONE = Fraction(1)


def make_posterior(measure: ConjugatePosterior, sums: ArgumentSums) -> BetaPosterior | NormalPosterior:
    match measure.family:
        case "beta":
            return _make_beta_posterior(measure, sums)
        case "normal":
            return _make_normal_posterior(measure, sums)
        case _:
            assert_never(measure.family)


def _make_beta_posterior(measure: ConjugatePosterior, sums: ArgumentSums) -> BetaPosterior:
    require_flag("BETA_POSTERIOR", sums.lower, sums.upper, measure.text, measure.span)
    prior = dict(measure.prior)
    zeros = combine_terms((sums.count, ONE), (sums.total, -ONE))
    return BetaPosterior(sums.total, zeros, prior.get("alpha", ONE), prior.get("beta", ONE), measure.confidence,
                         measure.part)  # fmt: skip


def _make_normal_posterior(measure: ConjugatePosterior, sums: ArgumentSums) -> NormalPosterior:
    """Without a prior of one's own, every mean within the bounds and every variance is as likely as any other."""
    assert sums.first is not None and sums.second is not None
    prior, center, half = dict(measure.prior), (sums.lower + sums.upper) / 2, (sums.upper - sums.lower) / 2
    square = combine_terms((sums.second, 1 / half**2)) if half else ()
    return NormalPosterior(
        rest=combine_terms((sums.count, ONE), (square, -ONE)),
        square=square,
        linear=combine_terms((sums.first, 1 / half)) if half else (),
        center=center,
        half=half,
        prior_mean=prior.get("prior_mean", center),
        prior_n=prior.get("prior_n", Fraction(0)),
        prior_sd=prior.get("prior_sd"),
        sigma=prior.get("sigma"),
        confidence=measure.confidence,
        part=measure.part,
    )
