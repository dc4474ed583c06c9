"""The studies that there are, by their kinds: how a stored one is read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsql.privacy.moments import read_moments
from dpsql.privacy.objective import read_objective
from dpsql.privacy.regression import read_output
from dpsql.privacy.response import Response
from dpsql.privacy.synthesis import read_synthesis
from dpsql.privacy.tally import Study

READERS: dict[str, Callable[[dict[str, Any]], Study]] = {
    "synthesis": read_synthesis,
    "output": read_output,
    "objective": read_objective,
    "moments": read_moments,
    "response": Response.read,
}


def write_study(study: Study) -> dict[str, Any]:
    return {"kind": study.kind, **study.written()}


def read_study(document: dict[str, Any]) -> Study:
    """What `write_study` wrote; KeyError if there is no such study."""
    rest = {name: value for name, value in document.items() if name != "kind"}
    return READERS[document["kind"]](rest)
