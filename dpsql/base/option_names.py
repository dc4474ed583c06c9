"""The options that a statement may have, by name, with the values that some of them take: for parser and completion."""

from __future__ import annotations

from dataclasses import dataclass

SYNTHETIC_PREFIX = "synthetic rows: made by "
"""What a synthetic table's description begins with; its statement follows."""


@dataclass(frozen=True)
class OptionName:
    """`choices` are the values that it can have, or some that it often has."""

    name: str
    choices: tuple[str, ...] = ()


LOGISTIC_METHODS = ("objective", "output")
LINEAR_METHODS = ("moments",)

STATEMENT_OPTIONS = (
    OptionName("epsilon", ("0.1", "0.5", "1")),
    OptionName("delta", ("0", "1e-9")),
    OptionName("noise", ("auto", "laplace", "gaussian")),
    OptionName("max_rows_contributed"),
    OptionName("max_groups_contributed"),
)
"""Of whatever is asked or made."""

SYNTHETIC_TABLE_OPTIONS = (
    OptionName("method", ("mwem", "marginals", "independent", "auto")),
    OptionName("rounds"),
    OptionName("bins"),
    OptionName("rows"),
)
"""CREATE SYNTHETIC TABLE … WITH (…)."""

MODEL_OPTIONS = (
    OptionName("method", (*LOGISTIC_METHODS, *LINEAR_METHODS)),
    OptionName("lambda"),
    OptionName("n"),
    OptionName("bins"),
)
"""CREATE MODEL … WITH (…)."""

QUERY_OPTIONS = (
    *STATEMENT_OPTIONS,
    OptionName("max_error"),
    OptionName("max_relative_error", ("0.05", "0.1")),
    OptionName("confidence", ("0.9", "0.95", "0.99")),
    OptionName("mechanism", ("exponential", "smooth", "ptr")),
    OptionName("proposal"),
)
"""SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (…)."""


def list_option_names(options: tuple[OptionName, ...]) -> tuple[str, ...]:
    return tuple(option.name for option in options)


def list_option_choices(name: str, options: tuple[OptionName, ...]) -> tuple[str, ...]:
    return next((option.choices for option in options if option.name == name), ())
