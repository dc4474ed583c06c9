"""BETA_POSTERIOR, NORMAL_POSTERIOR and DIRICHLET_POSTERIOR: one in a SELECT list stands for a column of each part.

    SELECT sex, BETA_POSTERIOR(insured) AS p …
    →  SELECT sex, BETA_POSTERIOR_ALPHA(insured) AS p_alpha, …, BETA_POSTERIOR_HIGH(insured) AS p_high …

The parts are aggregates of their own, for expressions; all of them read one release.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Literal, NoReturn

from sqlglot import exp

from dpsql.compiler.bind.calls import read_arguments, require_number_between
from dpsql.compiler.bind.coercion import coerce_number_literal, narrow_integer
from dpsql.compiler.bind.expressions import bind_condition, bind_expr
from dpsql.compiler.bind.outputs import fold_identifier
from dpsql.compiler.bind.scope import Scope
from dpsql.compiler.parse.dialect import span_of, sql_name_of
from dpsql.compiler.plan.expressions import Cast, Expr
from dpsql.compiler.plan.measures import ConjugatePosterior, Measure, SharesPosterior
from dpsql.errors import InvalidParameter, TypeMismatch, Unsupported
from dpsql.types import BOOLEAN, INTEGER

PosteriorFamily = Literal["beta", "normal", "dirichlet"]

POSTERIOR_PARTS: dict[PosteriorFamily, tuple[str, ...]] = {
    "beta": ("alpha", "beta", "mean", "low", "high"),
    "normal": ("mean", "sd", "sigma", "n", "low", "high"),
    "dirichlet": ("alpha", "mean", "low", "high"),
}
_PRIOR_ARGUMENTS: dict[PosteriorFamily, tuple[str, ...]] = {
    "beta": ("alpha", "beta"),
    "normal": ("prior_mean", "prior_n", "prior_sd", "sigma"),
    "dirichlet": ("concentration",),
}
_EXAMPLES: dict[PosteriorFamily, str] = {
    "beta": "BETA_POSTERIOR(urgent, alpha => 1, beta => 1, confidence => 0.95)",
    "normal": "NORMAL_POSTERIOR(cost, prior_mean => 100, prior_n => 1, prior_sd => 50)",
    "dirichlet": "DIRICHLET_POSTERIOR(ward, concentration => 1, confidence => 0.95)",
}
ALL_PARTS_FUNCTIONS: dict[str, PosteriorFamily] = {f"{family}_posterior": family for family in POSTERIOR_PARTS}
_SINGLE_PART_FUNCTIONS: dict[str, tuple[PosteriorFamily, str]] = {
    f"{name}_{part}": (family, part) for name, family in ALL_PARTS_FUNCTIONS.items() for part in POSTERIOR_PARTS[family]
}
POSTERIOR_FUNCTIONS = frozenset({*ALL_PARTS_FUNCTIONS, *_SINGLE_PART_FUNCTIONS})

DEFAULT_CONFIDENCE, MIN_CONFIDENCE, MAX_CONFIDENCE = Fraction(95, 100), Fraction(1, 2), Fraction(999, 1000)
MIN_PRIOR_ROWS, MAX_PRIOR_ROWS, MAX_PRIOR_MAGNITUDE = Fraction(1, 1000), Fraction(10**9), Fraction(10**15)
"""What a prior may weigh, in rows, and how far from 0 it may lie: doubles work with all between."""


# --- columns ---------------------------------------------------------------------------------------------------------


def expand_posteriors(items: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    """SELECT items, a posterior as the columns of its parts; arguments stay the nodes that they were."""
    for item in items:
        node = item.this if isinstance(item, exp.Alias) else item
        call = node.this if isinstance(node, exp.Filter) else node
        family = ALL_PARTS_FUNCTIONS.get(str(call.this).lower()) if isinstance(call, exp.Anonymous) else None
        if family is None:
            yield item
            continue
        alias = fold_identifier(item.args["alias"]).name if isinstance(item, exp.Alias) else None
        for part in POSTERIOR_PARTS[family]:
            part_call = exp.Anonymous(this=f"{call.this}_{part}", expressions=call.expressions)
            part_call.meta.update(call.meta)
            column: exp.Expr = (
                exp.Filter(**{**node.args, "this": part_call}) if isinstance(node, exp.Filter) else part_call
            )
            name = part if alias is None else f"{alias}_{part}"
            yield exp.Alias(this=column, alias=exp.to_identifier(name, quoted=True))


# --- measures --------------------------------------------------------------------------------------------------------


def bind_posterior(node: exp.Expr, scope: Scope) -> Measure:
    name = str(node.this).lower()
    if name in ALL_PARTS_FUNCTIONS:
        raise Unsupported(
            f"{sql_name_of(node)} is several columns, and stands alone in the SELECT list",
            hint=f"In an expression write one of them: {name.upper()}_MEAN(…), {name.upper()}_LOW(…).",
            span=span_of(node),
        )
    family, part = _SINGLE_PART_FUNCTIONS[name]
    called = _posterior_name(family)
    argument_names = (*_PRIOR_ARGUMENTS[family], "confidence")
    plain, named = read_arguments(node, called, 1, argument_names, _EXAMPLES[family])
    prior = _read_prior(node, named, family)
    confidence = prior.pop("confidence", DEFAULT_CONFIDENCE)
    prior_items, span, text = tuple(sorted(prior.items())), span_of(node), str(plain[0].sql(dialect="postgres"))
    if isinstance(plain[0], exp.Distinct | exp.Order | exp.Star):
        raise Unsupported(f"{called} takes an expression", hint=f"For example: {_EXAMPLES[family]}.",
                          span=span_of(plain[0]) or span)  # fmt: skip
    if family == "dirichlet":
        return SharesPosterior(_bind_key(plain[0], scope, node), part, prior_items, confidence, span, text)
    arg = bind_flag(plain[0], scope, node, called) if family == "beta" else _bind_number(plain[0], scope, node)
    return ConjugatePosterior(arg, family, part, prior_items, confidence, span, text)


def _posterior_name(family: PosteriorFamily) -> str:
    """As it is written for all columns: one that was spread is not what the analyst wrote."""
    return f"{family.upper()}_POSTERIOR"


def bind_flag(arg: exp.Expr, scope: Scope, node: exp.Expr, called: str) -> Expr:
    """Truth values as 0 and 1; of whole numbers the bounds are looked at where they are known (`form_bundles.py`)."""
    bound = bind_expr(arg, scope)
    if bound.type.is_integer:
        return narrow_integer(bound)
    if bound.type != BOOLEAN:
        raise TypeMismatch(f"{called} needs truth values, not {bound.type}", hint=f"For example: {called}(cost > 100).",
                           span=span_of(arg) or span_of(node))  # fmt: skip
    return Cast(bind_condition(arg, scope), INTEGER)


def _bind_number(arg: exp.Expr, scope: Scope, node: exp.Expr) -> Expr:
    bound = narrow_integer(coerce_number_literal(bind_expr(arg, scope), arg))
    if not bound.type.is_number:
        raise TypeMismatch(f"NORMAL_POSTERIOR needs numbers, not {bound.type}",
                           hint="BETA_POSTERIOR is for truth values, DIRICHLET_POSTERIOR for texts.",
                           span=span_of(arg) or span_of(node))  # fmt: skip
    return bound


def _bind_key(arg: exp.Expr, scope: Scope, node: exp.Expr) -> Expr:
    bound = bind_expr(arg, scope)
    if bound.type.is_microsecond_interval:
        raise Unsupported("DIRICHLET_POSTERIOR of an interval is not supported",
                          hint="EXTRACT(day FROM …) gives whole days.", span=span_of(arg) or span_of(node))  # fmt: skip
    return bound


# --- arguments by name -----------------------------------------------------------------------------------------------


def _read_prior(node: exp.Expr, named: dict[str, exp.Expr], family: PosteriorFamily) -> dict[str, Fraction]:
    if "sigma" in named and "prior_sd" in named:
        _refuse_prior("a known sigma needs no prior_sd", family, node)
    if "prior_n" not in named and ("prior_mean" in named or "prior_sd" in named):
        _refuse_prior("prior_n tells how many rows prior_mean and prior_sd count for", family, node)
    example = _EXAMPLES[family]
    return {
        name: require_number_between(name, value, *_argument_range(name), node, example)
        for name, value in named.items()
    }


def _argument_range(name: str) -> tuple[Fraction, Fraction]:
    match name:
        case "confidence":
            return MIN_CONFIDENCE, MAX_CONFIDENCE
        case "prior_mean":
            return -MAX_PRIOR_MAGNITUDE, MAX_PRIOR_MAGNITUDE
        case "prior_sd" | "sigma":
            return 1 / MAX_PRIOR_MAGNITUDE, MAX_PRIOR_MAGNITUDE
        case _:
            return MIN_PRIOR_ROWS, MAX_PRIOR_ROWS


def _refuse_prior(message: str, family: PosteriorFamily, node: exp.Expr) -> NoReturn:
    raise InvalidParameter(message, hint=f"For example: {_EXAMPLES[family]}.", span=span_of(node))
