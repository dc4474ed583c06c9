"""dpsql's own settings as pg_settings describes them, beside PostgreSQL's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OwnSetting:
    """`choices` are all the values that it can have; none: it is a number, or `none`."""

    short: str
    choices: tuple[str, ...] = ()
    switch: bool = False

    @property
    def vartype(self) -> str:
        return "bool" if self.switch else "enum" if self.choices else "string"


OWN_SETTINGS = {
    "epsilon": OwnSetting("The epsilon that one statement may lose."),
    "delta": OwnSetting("The delta that one statement may lose."),
    "contributions.rows": OwnSetting("The most rows that one privacy unit contributes to an answer."),
    "contributions.groups": OwnSetting("The most groups that are not listed which one privacy unit contributes to."),
    "noise": OwnSetting("The kind of noise.", ("auto", "laplace", "gaussian")),
    "nonnegative": OwnSetting("Whether counts below zero are shown as zero.", switch=True),
    "derive": OwnSetting("Whether answers are derived from releases that were paid for before.", switch=True),
    "max_error": OwnSetting("The error that an answer may have, from which epsilon follows."),
    "max_relative_error": OwnSetting("The error as a part of an answer, from which epsilon follows."),
    "confidence": OwnSetting("How sure the error that was asked for is kept."),
    "ranges": OwnSetting("Of which columns MIN and MAX are the declared bounds.", ("declared", "all", "release")),
    "mechanism": OwnSetting("How MEDIAN is found.", ("exponential", "smooth", "ptr")),
    "proposal": OwnSetting("The sensitivity that MEDIAN by ptr tests for, in the units of the values."),
}
