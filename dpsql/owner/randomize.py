"""Randomizes a column of a file, for owners who do not want to keep the true answers.

Privacy: of each row, the answer that is written is private with epsilon whatever is known of all else; the other
columns are written as they are. Who runs it twice on the same answers, and gives away both files, loses twice.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from dpsql.engines.duckdb_admin import DuckDBAdmin
from dpsql.errors import InterfaceError
from dpsql.owner.yaml_text import format_number, format_scalar
from dpsql.privacy.randomized_response import randomize_responses
from dpsql.privacy.sampling import ExactSampler, Sampler
from dpsql.schema.document import printable_text
from dpsql.schema.locations import MEMORY_URL
from dpsql.schema.model import Files

FILE_FORMATS = (".csv", ".parquet")


@dataclass(frozen=True)
class RandomizationRequest:
    """`null` is the answer that stands for NULL, among `values`; None: there must be none."""

    column: str
    values: tuple[str, ...]
    epsilon: Fraction
    null: str | None = None
    delimiter: str = ","

    def __post_init__(self) -> None:
        if len(self.values) < 2:
            raise InterfaceError("an answer is one of two values or more", hint="Write for example --values yes,no.")
        if len(set(self.values)) < len(self.values):
            raise InterfaceError("a value is named twice", hint="Name each value once.")
        if self.epsilon <= 0:
            raise InterfaceError("epsilon must be above 0", hint="Write for example --epsilon 1.0986, the coin flip's.")


def randomize_file(
    source: str, target: str, request: RandomizationRequest, *, force: bool, sampler: Sampler | None = None
) -> None:
    """Rows keep their order, and the column its type; with an answer for NULL it becomes text."""
    kinds = [os.path.splitext(path)[1].lower() for path in (source, target)]
    if kinds[0] not in FILE_FORMATS or kinds[1] != kinds[0]:
        raise InterfaceError("only .csv and .parquet files are randomized, each into a file of its own kind")
    if os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target):
        raise InterfaceError(f'"{printable_text(target, 200)}" has the true answers, and is not written over',
                             hint="Name another file with -o; delete this one when you no longer need it.")  # fmt: skip
    if os.path.exists(target) and not force:
        raise InterfaceError(f'"{printable_text(target, 200)}" is there already',
                             hint="Write to another file with -o, or replace it with --force.")  # fmt: skip
    files = Files((os.path.abspath(source),), kinds[0][1:], delimiter=request.delimiter)
    drawing = sampler or ExactSampler()
    with DuckDBAdmin(MEMORY_URL) as owner:
        owner.replace_column(
            files,
            request.column,
            lambda answers: _randomize_answers(answers, request, drawing),
            Path(target),
            request.null is not None,
        )


def _randomize_answers(answers: Sequence[str | None], request: RandomizationRequest, sampler: Sampler) -> list[str]:
    indexes: dict[str | None, int] = {value: index for index, value in enumerate(request.values)}
    if request.null is not None:
        indexes[None] = indexes[request.null]
    invalid_row = next((row for row, answer in enumerate(answers, 1) if answer not in indexes), None)
    if invalid_row is not None:
        missing = answers[invalid_row - 1] is None
        raise InterfaceError(
            f'row {invalid_row} of "{printable_text(request.column)}" holds '
            f"{'NULL' if missing else 'a value that was not named'}",
            hint="Write --null NAME to make it an answer." if missing else "Name all values with --values.",
        )
    codes = np.array([indexes[answer] for answer in answers], np.int64)
    randomized = randomize_responses(codes, len(request.values), request.epsilon, sampler)
    return [request.values[index] for index in randomized.tolist()]


def format_declaration(request: RandomizationRequest, epsilon: str) -> str:
    """The entry for the schema. `epsilon` is as it was written.

    >>> print(format_declaration(RandomizationRequest("answer", ("yes", "no"), Fraction("1.0986")), "1.0986"))
    randomized: {epsilon: 1.0986, values: ["yes", "no"]}
    """
    return (
        f"randomized: {{epsilon: {format_number(epsilon)}, values: [{', '.join(map(format_scalar, request.values))}]}}"
    )
