"""What `dpsql check` has found, as frozen values: for the owner, not to be published.

Law: the figures are exact facts about rows. They go to whoever has the data, and into no answer, ledger or log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

REPORT_HEADING = "For the owner, not to be published: exact figures, read from the data"


class Severity(Enum):
    """How much a finding matters: nothing is served; answers are bad; answers could be better."""

    BROKEN = "broken"
    MEND = "mend"
    BETTER = "better"


@dataclass(frozen=True)
class SchemaFinding:
    """`where` is a place in the schema, `try_` what could be written there; `from_data`: that is not private then.
    `is_promise`: of it depends whom the schema protects, and only the owner knows."""

    level: Severity
    where: str
    what: str
    try_: str | None = None
    from_data: bool = False
    is_promise: bool = False


@dataclass(frozen=True)
class ColumnReport:
    """Shares of all rows. `unfit`: no value of the declared type; `unlisted`: not among the declared values."""

    name: str
    type: str
    declared: str
    null: float
    unfit: float
    below: float
    above: float
    unlisted: float
    too_long: float


@dataclass(frozen=True)
class NormReport:
    """What `contributions.rows` does to COUNT(*) over all rows: shares of units clipped and rows lost, and the noise of
    95 % of all answers as a share of the rows. None: not known."""

    rows: int
    units_clipped: float
    rows_lost: float
    noise: float | None


@dataclass(frozen=True)
class KeyReport:
    """An undeclared key: its groups, those that would show without noise, and units with more keys than are counted."""

    column: str
    groups: int
    shown: int
    rows_hidden: float
    units_to_appear: int | None
    units_over: float


@dataclass(frozen=True)
class QueryReport:
    """A typical question at the default epsilon. Of groups, figures are those of the median one.

    `lost` is what bounds and norms take, as a share of the exact value; `noise` that of the 95 % error; `epsilon` what
    would make the noise 5 %. `refused` says why there is no answer.
    """

    sql: str
    groups: int | None
    exact: float | None
    lost: float | None
    noise: float | None
    epsilon: float | None
    refused: str | None = None


@dataclass(frozen=True)
class TableReport:
    """`norms` has the declared one first; it is empty where none is declared, and where each unit has one row.

    `automatic` is COUNT(*) with automatic contributions, where others are declared.
    """

    name: str
    rows: int
    units: int | None  # None: public
    without_unit: int
    orphans: int
    columns: tuple[ColumnReport, ...]
    norms: tuple[NormReport, ...] = ()
    keys: tuple[KeyReport, ...] = ()
    questions: tuple[QueryReport, ...] = ()
    most_rows: int = 0  # of a unit
    unit_key: str | None = None  # a column of few declared values, of which no two rows of a unit share one
    keys_left: int = 0  # undeclared keys that were not looked at
    automatic: QueryReport | None = None


@dataclass(frozen=True)
class AccountReport:
    """How many statements at the default a new ledger would grant to the account."""

    name: str
    epsilon: float
    delta: float
    statements: int


@dataclass(frozen=True)
class SchemaReport:
    schema: str
    unit: str
    neighbors: str
    query: Mapping[str, float]
    accounts: tuple[AccountReport, ...]
    tables: tuple[TableReport, ...]
    findings: tuple[SchemaFinding, ...]
    data: bool  # whether rows were read
    declared: tuple[str, ...] = ()  # the tables of the schema, looked at or not

    @property
    def is_ok(self) -> bool:
        return all(finding.level is Severity.BETTER for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        document = asdict(self)
        for finding in document["findings"]:
            finding["level"] = finding["level"].value
            finding["try"] = finding.pop("try_")
        return {"for": REPORT_HEADING if self.data else "For the owner", "well": self.is_ok, **document}
