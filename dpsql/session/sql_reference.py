"""Functions with an example and settings with their choices: what SHOW FUNCTIONS, `\\df` and completion list.

After the noise all of DuckDB's functions are there; listed are those that analysts use most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.catalog.variables import VARIABLES
from dpsql.compiler.functions.table import FUNCTIONS
from dpsql.compiler.plan.measures import MedianBy
from dpsql.compiler.settings import SETTING_NAMES, EmptyGroups
from dpsql.compiler.split.integer_division import IntegerDivision


@dataclass(frozen=True)
class NamedFunction:
    """`kind` "aggregate": makes a release of private rows; "function": of a row's values; "after": over aggregates;
    "statistic": within BLOCKWISE; "model": one of the account's, for PREDICT and ACCURACY."""

    name: str
    kind: Literal["aggregate", "function", "after", "statistic", "model"]
    example: str


@dataclass(frozen=True)
class NamedSetting:
    """`choices` are the values that it can have, or some that it often has; `ours` tells it from PostgreSQL's."""

    name: str
    choices: tuple[str, ...]
    ours: bool


AGGREGATE_EXAMPLES = {
    "count": "count(*)",
    "count_if": "count_if(urgent)",
    "sum": "sum(cost)",
    "avg": "avg(cost)",
    "min": "min(cost)",
    "max": "max(cost)",
    "median": "median(cost)",
    "percentile_cont": "percentile_cont(0.9) WITHIN GROUP (ORDER BY cost)",
    "percentile_disc": "percentile_disc(0.9) WITHIN GROUP (ORDER BY cost)",
    "quantile_cont": "quantile_cont(cost, 0.9)",
    "quantile_disc": "quantile_disc(cost, [0.25, 0.75])",
    "mode": "mode(ward)",
    "histogram": "histogram(kind)",
    "approx_top_k": "approx_top_k(diagnosis, 3)",
    "private_argmax": "private_argmax(ward, count(*))",
    "private_top_k": "private_top_k(ward, sum(cost), 3)",
    "posterior_sample": "posterior_sample(urgent, draws => 10)",
    "approx_count_distinct": "approx_count_distinct(diagnosis)",
    "approx_quantile": "approx_quantile(cost, 0.5)",
    "var_pop": "var_pop(cost)",
    "var_samp": "var_samp(cost)",
    "variance": "variance(cost)",
    "stddev_pop": "stddev_pop(cost)",
    "stddev_samp": "stddev_samp(cost)",
    "stddev": "stddev(cost)",
    "covar_pop": "covar_pop(cost, nights)",
    "covar_samp": "covar_samp(cost, nights)",
    "corr": "corr(cost, nights)",
    "regr_slope": "regr_slope(cost, nights)",
    "regr_intercept": "regr_intercept(cost, nights)",
    "regr_r2": "regr_r2(cost, nights)",
    "regr_count": "regr_count(cost, nights)",
    "regr_avgx": "regr_avgx(cost, nights)",
    "regr_avgy": "regr_avgy(cost, nights)",
    "regr_sxx": "regr_sxx(cost, nights)",
    "regr_syy": "regr_syy(cost, nights)",
    "regr_sxy": "regr_sxy(cost, nights)",
    "blockwise": "blockwise(mad(cost), 0, 5000)",
    "randomized": "randomized(kind, 1)",
    "bool_and": "bool_and(urgent)",
    "bool_or": "bool_or(urgent)",
    "every": "every(urgent)",
    "accuracy": "accuracy(m)",
    "beta_posterior": "beta_posterior(urgent)",
    "normal_posterior": "normal_posterior(cost)",
    "dirichlet_posterior": "dirichlet_posterior(kind)",
    "beta_posterior_mean": "beta_posterior_mean(urgent)",
    "beta_posterior_low": "beta_posterior_low(urgent)",
    "beta_posterior_high": "beta_posterior_high(urgent)",
    "normal_posterior_mean": "normal_posterior_mean(cost)",
    "normal_posterior_low": "normal_posterior_low(cost)",
    "normal_posterior_high": "normal_posterior_high(cost)",
    "dirichlet_posterior_mean": "dirichlet_posterior_mean(kind)",
}
FUNCTION_EXAMPLES = {
    "clip": "clip(cost, 0, 100)",
    "concat": "concat(ward, '!')",
    "cast": "cast(nights AS double)",
    "now": "now()",
    "predict": "predict(m, cost, nights)",
    "year": "year(at)",
    "quarter": "quarter(at)",
    "month": "month(at)",
    "day": "day(at)",
    "hour": "hour(at)",
}
POSTPROCESSING_EXAMPLES = {
    "dp_stderr": "dp_stderr(avg(cost))",
    "dp_low": "dp_low(avg(cost))",
    "dp_high": "dp_high(avg(cost))",
    "row_number": "row_number() OVER (ORDER BY count(*) DESC)",
    "rank": "rank() OVER (ORDER BY count(*) DESC)",
    "dense_rank": "dense_rank() OVER (ORDER BY count(*) DESC)",
    "ntile": "ntile(4) OVER (ORDER BY count(*))",
    "lag": "lag(count(*)) OVER (ORDER BY kind)",
    "lead": "lead(count(*)) OVER (ORDER BY kind)",
    "first_value": "first_value(count(*)) OVER (ORDER BY kind)",
    "last_value": "last_value(count(*)) OVER (ORDER BY kind)",
}
STATISTIC_EXAMPLES = {
    "mad": "blockwise(mad(cost), 0, 5000)",
    "skewness": "blockwise(skewness(cost), -3, 3)",
    "kurtosis": "blockwise(kurtosis(cost), 0, 10)",
    "kurtosis_pop": "blockwise(kurtosis_pop(cost), 0, 10)",
    "entropy": "blockwise(entropy(kind), 0, 5)",
}
_SETTING_CHOICES = {
    "noise": ("auto", *(noise.value for noise in NoiseKind)),
    "nonnegative": ("on", "off"),
    "derive": ("on", "off"),
    "max_error": ("none",),
    "max_relative_error": ("none",),
    "epsilon": ("0.1", "0.5", "1"),
    "delta": ("0", "1e-9"),
    "confidence": ("0.9", "0.95", "0.99"),
    "ranges": ("declared", "all", "release"),
    "mechanism": tuple(by.value for by in MedianBy),
    "proposal": ("none",),
    "overshoot": ("0.05", "0.5", "1"),
    "integer_division": tuple(choice.value for choice in IntegerDivision),
    "empty_groups": tuple(choice.value for choice in EmptyGroups),
}


@cache
def named_functions() -> tuple[NamedFunction, ...]:
    """Aggregates first, and of them the most used; then those of values, in alphabetical order."""
    called = {
        function.name: function.example
        for function in FUNCTIONS.values()
        if function.written and function.example.lower().startswith(f"{function.name}(")
    }
    functions = [NamedFunction(name, "aggregate", example) for name, example in AGGREGATE_EXAMPLES.items()]
    functions += [
        NamedFunction(name, "function", example) for name, example in sorted((called | FUNCTION_EXAMPLES).items())
    ]
    functions += [NamedFunction(name, "after", example) for name, example in POSTPROCESSING_EXAMPLES.items()]
    return tuple(functions)


def own_functions(
    statistics: Sequence[tuple[str, Sequence[str]]], models: Sequence[tuple[str, Sequence[str]]]
) -> tuple[NamedFunction, ...]:
    """What only BLOCKWISE knows, the owner's statistics among it, by names and arguments; and models with features."""
    functions = [NamedFunction(name, "statistic", example) for name, example in STATISTIC_EXAMPLES.items()]
    for name, of in statistics:
        functions.append(NamedFunction(name, "statistic", f"blockwise({name}({', '.join(of)}), 0, 100)"))
    for name, features in models:
        functions.append(NamedFunction(name, "model", f"predict({', '.join((name, *features))})"))
    return tuple(functions)


@cache
def named_settings() -> tuple[NamedSetting, ...]:
    """dpsql's own first, then PostgreSQL's that can be set."""
    own = [NamedSetting(name, _SETTING_CHOICES.get(name, ()), True) for name in SETTING_NAMES]
    others = [
        NamedSetting(variable.name, tuple(dict.fromkeys((variable.allowed or {}).values())), False)
        for variable in VARIABLES.values()
        if not variable.fixed and not variable.planner
    ]
    return (*own, *others)
