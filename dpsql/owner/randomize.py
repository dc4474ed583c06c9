"""Making a column of randomized answers from a file: the owner's tool, for who wants to hold no true ones.

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

from dpsql.engines.owner import DuckDBOwner
from dpsql.errors import InterfaceError
from dpsql.owner.yaml_text import number, scalar
from dpsql.privacy.response import respond
from dpsql.privacy.sampling import ExactSampler, Sampler
from dpsql.schema.document import shown
from dpsql.schema.model import Files
from dpsql.schema.places import MEMORY

FORMATS = (".csv", ".parquet")


@dataclass(frozen=True)
class Wanted:
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


def randomize_file(source: str, target: str, wanted: Wanted, *, force: bool, sampler: Sampler | None = None) -> None:
    """Rows keep their order, and the column its type; with an answer for NULL it becomes text."""
    kinds = [os.path.splitext(path)[1].lower() for path in (source, target)]
    if kinds[0] not in FORMATS or kinds[1] != kinds[0]:
        raise InterfaceError("only .csv and .parquet files are randomized, each into a file of its own kind")
    if os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target):
        raise InterfaceError(f'"{shown(target, 200)}" has the true answers, and is not written over',
                             hint="Name another file with -o; delete this one when you no longer need it.")  # fmt: skip
    if os.path.exists(target) and not force:
        raise InterfaceError(f'"{shown(target, 200)}" is there already',
                             hint="Write to another file with -o, or replace it with --force.")  # fmt: skip
    files = Files((os.path.abspath(source),), kinds[0][1:], delimiter=wanted.delimiter)
    drawing = sampler or ExactSampler()
    with DuckDBOwner(MEMORY) as owner:
        owner.replace_column(
            files, wanted.column, lambda answers: _told(answers, wanted, drawing), Path(target), wanted.null is not None
        )


def _told(answers: Sequence[str | None], wanted: Wanted, sampler: Sampler) -> list[str]:
    places: dict[str | None, int] = {value: place for place, value in enumerate(wanted.values)}
    if wanted.null is not None:
        places[None] = places[wanted.null]
    strange = next((row for row, answer in enumerate(answers, 1) if answer not in places), None)
    if strange is not None:
        missing = answers[strange - 1] is None
        raise InterfaceError(
            f'row {strange} of "{shown(wanted.column)}" holds {"NULL" if missing else "a value that was not named"}',
            hint="Write --null NAME to make it an answer." if missing else "Name all values with --values.",
        )
    own = np.array([places[answer] for answer in answers], np.int64)
    told = respond(own, len(wanted.values), wanted.epsilon, sampler)
    return [wanted.values[place] for place in told.tolist()]


def declaration(wanted: Wanted, epsilon: str) -> str:
    """The entry for the schema. `epsilon` is as it was written.

    >>> print(declaration(Wanted("answer", ("yes", "no"), Fraction("1.0986")), "1.0986"))
    randomized: {epsilon: 1.0986, values: ["yes", "no"]}
    """
    return f"randomized: {{epsilon: {number(epsilon)}, values: [{', '.join(map(scalar, wanted.values))}]}}"
