"""What becomes of a case: right, refused as expected, wrongly refused, or wrong."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.errors import EngineFailed, Error, InternalError, OperationalError
from tests.corpus.compare import difference, tolerance, unlike
from tests.corpus.environment import EngineLog, Ground
from tests.corpus.reader import Case

RIGHT = "right"
REFUSED = "refused as expected"
REWORDED = "refused in other words"
WRONGLY_REFUSED = "wrongly refused"
WRONG = "WRONG"
LOG = EngineLog()
VERDICTS = (RIGHT, REFUSED, REWORDED, WRONGLY_REFUSED, WRONG)


@dataclass(frozen=True)
class Verdict:
    """`why` is what differs, or the error's text."""

    word: str
    why: str = ""

    @property
    def good(self) -> bool:
        return self.word in (RIGHT, REFUSED)


def judge(case: Case, ground: Ground) -> Verdict:
    try:
        answer = ground.execute(case.sql)
    except EngineFailed as error:
        ground.forget()
        return Verdict(WRONG, f"{refusal(error)}\n{LOG.last}")
    except Error as error:
        return _refusal(case, error)
    except Exception as error:  # whatever else comes out is a bug of ours, and a finding
        return Verdict(WRONG, f"{type(error).__name__}: {error}")
    if case.refused:
        return Verdict(WRONG, f"answered with {len(answer.rows)} rows: {answer.rows[:2]}")
    reference = ground.reference.execute(case.reference)
    described = [(str(name), str(type_)) for name, type_, *_ in reference.description or ()]
    theirs = reference.fetchall()
    names = [column.name for column in answer.columns]
    allowed = tolerance(case.directive("tolerance"), names)
    ours = [(column.name, column.spelling) for column in answer.columns]
    found = unlike(ours, described, case.section("duckdb") is None)
    found = found or difference(answer.rows, theirs, names, case.empty, case.ordered, allowed)
    return Verdict(RIGHT) if found is None else Verdict(WRONG, found)


def _refusal(case: Case, error: Error) -> Verdict:
    text = refusal(error)
    if isinstance(error, InternalError | OperationalError):  # a refusal is about the statement, never about luck
        return Verdict(WRONG, text)
    if not case.refused:
        return Verdict(WRONGLY_REFUSED, text)
    return Verdict(REFUSED) if text == case.section("error") else Verdict(REWORDED, text)


def refusal(error: Error) -> str:
    return f"{type(error).__name__} {error.sqlstate}: {error}"
