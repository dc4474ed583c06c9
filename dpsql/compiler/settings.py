"""The settings of an analyst's statements, within the owner's policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum
from fractions import Fraction
from itertools import pairwise

from dpsql.base.lexer import TokenKind, split_tokens
from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.parse.create_commands import CreateCommand, read_artifact_command
from dpsql.compiler.parse.googlesql import PRIVACY_CLAUSES, Option, extract_options
from dpsql.compiler.parse.literals import parse_exact_number
from dpsql.compiler.parse.parser import tokenize
from dpsql.compiler.plan.measures import MedianBy
from dpsql.compiler.split.declared_range import RangeSource
from dpsql.compiler.split.integer_division import IntegerDivision
from dpsql.errors import DataError, Error, InvalidParameter, Unsupported
from dpsql.privacy.exponential import OVERSHOOT
from dpsql.privacy.filters import Composition
from dpsql.schema.model import Privacy, Schema, unit_columns_of

SETTING_NAMES = ("epsilon", "delta", "contributions.rows", "contributions.groups", "noise", "nonnegative", "derive",
         "max_error", "max_relative_error", "confidence", "ranges", "mechanism", "proposal",
         "integer_division", "overshoot", "empty_groups")  # fmt: skip
OPTION_SETTINGS = {
    "epsilon": "epsilon",
    "delta": "delta",
    "max_groups_contributed": "contributions.groups",
    "max_rows_contributed": "contributions.rows",
    "noise": "noise",
    "max_error": "max_error",
    "max_relative_error": "max_relative_error",
    "confidence": "confidence",
    "mechanism": "mechanism",
    "proposal": "proposal",
}
"""GoogleSQL's options of one statement, as settings; and those that ask for an accuracy."""

AUTOMATIC_CAPS = ("auto", "none")
"""Of contributions: chosen for each answer from a noisy histogram. The second word is an older one."""

EXCLUSIVE_OPTIONS = (("epsilon", "max_error"), ("max_error", "max_relative_error"))
ERROR_GOAL_EXAMPLES = {"max_error": "5", "max_relative_error": "0.05"}


class EmptyGroups(Enum):
    """What becomes of listed groups of whose rows nothing is seen but noise."""

    HIDE = "hide"
    SHOW = "show"


@dataclass(frozen=True)
class Settings:
    """What a statement may lose and how, within the owner's policy."""

    epsilon: Fraction
    delta: Fraction
    rows: int | None  # None: chosen from a noisy histogram of units
    groups: int | None
    noise: NoiseKind | None = None  # None: auto
    auto_noise: NoiseKind = NoiseKind.GAUSSIAN  # what auto stands for where delta is above 0
    max_error: Fraction | None = None  # of each answer: epsilon is then the least that keeps it
    max_relative_error: Fraction | None = None  # as a part of each answer: epsilon is that of a pilot
    confidence: Fraction = Fraction(19, 20)
    ranges: RangeSource = RangeSource.DECLARED  # of which columns MIN and MAX are declared bounds
    median: MedianBy = MedianBy.EXPONENTIAL
    overshoot: Fraction = OVERSHOOT  # of MIN and MAX: how likely a value beyond all rows may be
    division: IntegerDivision = IntegerDivision.REFUSE  # of whole numbers, where only 0 or 1 can come of it
    empty_groups: EmptyGroups = EmptyGroups.HIDE
    proposal: Fraction | None = None  # the sensitivity that ptr tests for; None is a hundredth of the range
    composition: Composition = Composition.ZCDP  # how the account that asks adds up its charges

    @property
    def has_error_goal(self) -> bool:
        """Whether an error was asked for, from which epsilon follows."""
        return self.max_error is not None or self.max_relative_error is not None

    @property
    def chosen_noise(self) -> NoiseKind:
        if self.noise is not None:
            return self.noise
        return self.auto_noise if self.delta > 0 else NoiseKind.LAPLACE

    @property
    def has_open_noise(self) -> bool:
        """Whether the kind of noise is for the session to choose."""
        return self.noise is None and self.delta > 0


@dataclass(frozen=True)
class SessionSettings:
    statement: Settings
    nonnegative: bool = False
    derive: bool = True  # from releases that were paid for before


def default_settings(privacy: Privacy) -> SessionSettings:
    caps = privacy.contributions
    return SessionSettings(Settings(privacy.query.epsilon, privacy.query.delta, caps.rows, caps.groups))


def change_setting(settings: SessionSettings, privacy: Privacy, name: str, value: str) -> SessionSettings:
    statement = settings.statement
    match name:
        case "epsilon":
            return replace(settings, statement=replace(statement, epsilon=_parse_epsilon(value)))
        case "delta":
            return replace(settings, statement=replace(statement, delta=_parse_delta(value)))
        case "contributions.rows":
            return replace(
                settings, statement=replace(statement, rows=_parse_cap(name, value, privacy.contributions.rows))
            )
        case "contributions.groups":
            groups = _parse_cap(name, value, privacy.contributions.groups)
            return replace(settings, statement=replace(statement, groups=groups))
        case "noise":
            return replace(settings, statement=replace(statement, noise=_parse_noise(value)))
        case "nonnegative":
            return replace(settings, nonnegative=_parse_switch(name, value))
        case "derive":
            return replace(settings, derive=_parse_switch(name, value))
        case "max_error" | "max_relative_error":
            return replace(settings, statement=_set_error_goal(statement, name, value))
        case "confidence":
            return replace(settings, statement=replace(statement, confidence=_parse_confidence(value)))
        case "ranges":
            return replace(settings, statement=replace(statement, ranges=_parse_ranges(value)))
        case "mechanism":
            return replace(settings, statement=replace(statement, median=_parse_median(value)))
        case "proposal":
            return replace(settings, statement=replace(statement, proposal=_parse_proposal(value)))
        case "overshoot":
            return replace(settings, statement=replace(statement, overshoot=_parse_overshoot(value)))
        case "integer_division":
            return replace(settings, statement=replace(statement, division=_parse_division(value)))
        case "empty_groups":
            return replace(settings, statement=replace(statement, empty_groups=_parse_empty_groups(value)))
        case _:
            raise unknown_setting_error(name)


def _set_error_goal(statement: Settings, name: str, value: str) -> Settings:
    """One of the two at a time: the later one counts."""
    number = None if value.strip("'\"").lower() == "none" else _parse_number(name, value)
    hint = f"For example: SET {name} = {ERROR_GOAL_EXAMPLES[name]}"
    if number is not None and not 0 < number <= 10**18:
        raise InvalidParameter(f"{name} must be above 0", hint=hint)
    if name == "max_relative_error" and number is not None and number > Fraction(1, 2):
        raise InvalidParameter("max_relative_error must be at most 0.5", hint=hint)
    other = replace(statement, max_error=None, max_relative_error=None) if number is not None else statement
    return replace(other, max_error=number) if name == "max_error" else replace(other, max_relative_error=number)


def reset_setting(settings: SessionSettings, privacy: Privacy, name: str, opened: SessionSettings) -> SessionSettings:
    """As `opened` has it; an aim that took the place of the other gives it back."""
    if name in ERROR_GOAL_EXAMPLES and show_setting(settings, name) != "none":
        return replace(settings, statement=replace(
            settings.statement,
            max_error=opened.statement.max_error,
            max_relative_error=opened.statement.max_relative_error,
        ))  # fmt: skip
    return change_setting(settings, privacy, name, show_setting(opened, name))


def show_setting(settings: SessionSettings, name: str) -> str:
    statement = settings.statement
    match name:
        case "epsilon":
            return _format_number(statement.epsilon)
        case "delta":
            return _format_number(statement.delta)
        case "contributions.rows":
            return _format_cap(statement.rows)
        case "contributions.groups":
            return _format_cap(statement.groups)
        case "noise":
            return "auto" if statement.noise is None else statement.noise.value
        case "nonnegative":
            return "on" if settings.nonnegative else "off"
        case "derive":
            return "on" if settings.derive else "off"
        case "max_error":
            return "none" if statement.max_error is None else _format_number(statement.max_error)
        case "max_relative_error":
            return "none" if statement.max_relative_error is None else _format_number(statement.max_relative_error)
        case "confidence":
            return _format_number(statement.confidence)
        case "ranges":
            return statement.ranges.value
        case "mechanism":
            return statement.median.value
        case "proposal":
            return "none" if statement.proposal is None else _format_number(statement.proposal)
        case "overshoot":
            return _format_number(statement.overshoot)
        case "integer_division":
            return statement.division.value
        case "empty_groups":
            return statement.empty_groups.value
        case _:
            raise unknown_setting_error(name)


def apply_options(settings: Settings, schema: Schema, options: tuple[Option, ...]) -> Settings:
    """The settings of one statement that brings options of its own; its own epsilon needs no aim of the session's."""
    names = {option.name for option in options}
    for first, second in EXCLUSIVE_OPTIONS:
        if {first, second} <= names:
            span = next(option.span for option in options if option.name == second)
            raise InvalidParameter(f"a statement has {first} or {second}, not both", span=span)
    if "epsilon" in names:
        settings = replace(settings, max_error=None, max_relative_error=None)
    for option in options:
        try:
            settings = _apply_option(settings, schema, option)
        except Error as error:
            error.span = option.span
            raise
    return settings


def statement_overrides(overrides: Mapping[str, str]) -> dict[str, str]:
    """What one statement sets for itself, as by its options: its own epsilon needs no aim of the session's."""
    named = {name.lower(): value for name, value in overrides.items()}
    for first, second in EXCLUSIVE_OPTIONS:
        if {first, second} <= named.keys():
            raise InvalidParameter(f"a statement has {first} or {second}, not both")
    return {**dict.fromkeys(ERROR_GOAL_EXAMPLES, "none"), **named} if "epsilon" in named else named


def _apply_option(settings: Settings, schema: Schema, option: Option) -> Settings:
    option_names = ", ".join((*OPTION_SETTINGS, "privacy_unit_column"))
    if option.name in OPTION_SETTINGS:
        value = "none" if option.value.lower() == "null" else option.value
        return change_setting(SessionSettings(settings), schema.privacy, OPTION_SETTINGS[option.name], value).statement
    if option.name == "privacy_unit_column":
        _check_unit_column(schema, option.value)
        return settings
    raise Unsupported(f'there is no option "{option.name}"', hint=f"Options: {option_names}.", sqlstate="42704")


def _check_unit_column(schema: Schema, column: str) -> None:
    """The unit is the owner's choice; a statement may only name it."""
    units = {column for table in schema.tables for column in unit_columns_of(table)}
    name = column.split(".")[-1].lower()
    if name not in {unit.lower() for unit in units}:
        raise InvalidParameter(
            f'the privacy unit is "{schema.privacy.unit}", not "{column}"', hint="Leave privacy_unit_column out."
        )


def unknown_setting_error(name: str) -> InvalidParameter:
    near = get_close_matches(name.lower().replace("_", "."), SETTING_NAMES, n=1) or get_close_matches(
        name.lower(), SETTING_NAMES, n=1
    )
    perhaps = f'Perhaps you meant "{near[0]}". ' if near else ""
    hint = f"{perhaps}Settings: {', '.join(SETTING_NAMES)}."
    return InvalidParameter(f'there is no setting "{name}"', hint=hint, sqlstate="42704")


def _format_number(number: Fraction) -> str:
    as_decimal = Decimal(number.numerator) / Decimal(number.denominator)
    return str(as_decimal) if Fraction(as_decimal) == number else f"{number.numerator}/{number.denominator}"


def _parse_number(name: str, value: str) -> Fraction:
    text = value.strip("'\"")
    above, _, below = text.partition("/")
    try:
        number, parts = parse_exact_number(above), parse_exact_number(below or "1")
    except DataError:
        raise InvalidParameter(f"{name} is out of range") from None
    if number is None or not parts:
        raise InvalidParameter(f'{name} must be a number, not "{value}"')
    return number / parts


def _parse_epsilon(value: str) -> Fraction:
    number = _parse_number("epsilon", value)
    if not 0 < number <= 10**6:
        raise InvalidParameter("epsilon must be above 0 and at most 1000000", hint="For example: SET epsilon = 0.5")
    return number


def _parse_delta(value: str) -> Fraction:
    number = _parse_number("delta", value)
    if not 0 <= number < 1:
        raise InvalidParameter("delta must be at least 0 and below 1", hint="For example: SET delta = 1e-9")
    return number


def _parse_confidence(value: str) -> Fraction:
    number = _parse_number("confidence", value)
    if not Fraction(1, 2) <= number <= 1 - Fraction(1, 10**6):
        raise InvalidParameter("confidence must be at least 0.5 and at most 0.999999",
                               hint="For example: SET confidence = 0.95")  # fmt: skip
    return number


def _parse_cap(name: str, value: str, owners: int | None) -> int | None:
    """Analysts may lower the owner's caps, never raise them: a larger norm is more noise for everyone's data."""
    if value.strip("'\"").lower() in AUTOMATIC_CAPS:
        if owners is None:
            return None
        raise InvalidParameter(f"{name} cannot be automatic where the owner declares {owners}",
                               hint=f"RESET {name} gives the owner's, and a lower number may be set.")  # fmt: skip
    number = _parse_number(name, value)
    if number.denominator != 1 or number < 1 or number > 1 << 20:
        raise InvalidParameter(f"{name} must be a whole number of at least 1")
    if owners is not None and number > owners:
        raise InvalidParameter(f"{name} cannot be raised above the owner's {owners}")
    return int(number)


def _format_cap(cap: int | None) -> str:
    return AUTOMATIC_CAPS[0] if cap is None else str(cap)


def _parse_noise(value: str) -> NoiseKind | None:
    word = value.strip("'\"").lower()
    if word == "auto":
        return None
    try:
        return NoiseKind(word)
    except ValueError:
        raise InvalidParameter(f'noise must be laplace, gaussian or auto, not "{value}"') from None


def _parse_ranges(value: str) -> RangeSource:
    try:
        return RangeSource(value.strip("'\"").lower())
    except ValueError:
        raise InvalidParameter(f'ranges must be declared, all or release, not "{value}"') from None


def _parse_overshoot(value: str) -> Fraction:
    number = _parse_number("overshoot", value)
    if not Fraction(1, 10**6) <= number <= 1:
        raise InvalidParameter("overshoot must be at least 0.000001 and at most 1",
                               hint="For example: SET overshoot = 0.05")  # fmt: skip
    return number


def _parse_division(value: str) -> IntegerDivision:
    try:
        return IntegerDivision(value.strip("'\"").lower())
    except ValueError:
        raise InvalidParameter(f'integer_division must be refuse or allow, not "{value}"') from None


def _parse_empty_groups(value: str) -> EmptyGroups:
    try:
        return EmptyGroups(value.strip("'\"").lower())
    except ValueError:
        raise InvalidParameter(f'empty_groups must be hide or show, not "{value}"') from None


def _parse_median(value: str) -> MedianBy:
    try:
        return MedianBy(value.strip("'\"").lower())
    except ValueError:
        raise InvalidParameter(f'mechanism must be exponential, smooth or ptr, not "{value}"') from None


def _parse_proposal(value: str) -> Fraction | None:
    if value.strip("'\"").lower() == "none":
        return None
    number = _parse_number("proposal", value)
    if not 0 < number <= 10**18:
        raise InvalidParameter("proposal must be above 0", hint="For example: SET proposal = 5")
    return number


def _parse_switch(name: str, value: str) -> bool:
    word = value.strip("'\"").lower()
    if word not in ("on", "off", "true", "false"):
        raise InvalidParameter(f'{name} must be on or off, not "{value}"')
    return word in ("on", "true")


def apply_release_epsilons(settings: Settings, own: list[Fraction | None]) -> Settings:
    """The settings with the epsilons of releases that name their own; None stands for one that does not.

    Privacy: these are what a statement is held against, its account's largest query for one.
    """
    named = [epsilon for epsilon in own if epsilon is not None]
    if not named:
        return settings
    if len(named) < len(own):
        raise Unsupported("RANDOMIZED stands in a statement without other releases", hint="Ask in two statements.")
    return replace(settings, epsilon=sum(named, Fraction(0)), delta=Fraction(0))


# --- how another charge is asked for ---------------------------------------------------------------------------------
# Epsilon and delta may stand in a statement's own options, where SET has no effect.


def option_templates_of(sql: str) -> tuple[str, str]:
    """Of epsilon and of delta, each with {} for the figure.

    >>> option_templates_of("SELECT COUNT(*) FROM visits")
    ('SET epsilon = {}', 'SET delta = {}')
    >>> option_templates_of("CREATE SYNTHETIC TABLE v AS SELECT ward FROM visits WITH (epsilon = 9)")
    ('WITH (epsilon = {})', 'SET delta = {}')
    >>> option_templates_of("SELECT RANDOMIZED(answer, 9) FROM people")[0]
    'RANDOMIZED(…, {})'
    """
    epsilon, delta = (_option_template(name, sql) for name in ("epsilon", "delta"))
    return ("RANDOMIZED(…, {})", delta) if _is_randomized(sql) else (epsilon, delta)


def _option_template(name: str, sql: str) -> str:
    clause, names = _read_options_clause(sql) if name in sql.lower() else ("", ())
    return f"{clause} ({name} = {{}})" if name in names else f"SET {name} = {{}}"


def _read_options_clause(sql: str) -> tuple[str, tuple[str, ...]]:
    """The names of a statement's options, and what stands before them."""
    command = read_artifact_command(sql)
    if isinstance(command, CreateCommand):
        return "WITH", tuple(option.name for option in command.options)
    if not any(clause in sql.upper() for clause in PRIVACY_CLAUSES):
        return "", ()
    _, options = extract_options(tokenize(sql))
    return "OPTIONS", tuple(option.name for option in options or ())


def _is_randomized(sql: str) -> bool:
    if "randomized" not in sql.lower():
        return False
    words = [token for token in split_tokens(sql) if token.kind not in (TokenKind.SPACE, TokenKind.COMMENT)]
    return any(word.text.lower() == "randomized" and next_word.text == "(" for word, next_word in pairwise(words))
