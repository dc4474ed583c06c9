"""Reads and writes studies (models, synthetic tables, randomized responses), by their kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsql.privacy.randomized_response import RandomizedResponse
from dpsql.privacy.regression.noisy_moments import moments_from_json
from dpsql.privacy.regression.objective_perturbation import objective_from_json
from dpsql.privacy.regression.output_perturbation import output_from_json
from dpsql.privacy.synthetic.synthesis import synthesis_from_json
from dpsql.privacy.weighted_rows import WeightedRowsMechanism

STUDY_READERS: dict[str, Callable[[dict[str, Any]], WeightedRowsMechanism]] = {
    "synthesis": synthesis_from_json,
    "output": output_from_json,
    "objective": objective_from_json,
    "moments": moments_from_json,
    "response": RandomizedResponse.from_json,
}


def study_to_json(study: WeightedRowsMechanism) -> dict[str, Any]:
    return {"kind": study.kind, **study.to_json()}


def study_from_json(document: dict[str, Any]) -> WeightedRowsMechanism:
    """What `study_to_json` wrote; KeyError if there is no such study."""
    rest = {name: value for name, value in document.items() if name != "kind"}
    return STUDY_READERS[document["kind"]](rest)
