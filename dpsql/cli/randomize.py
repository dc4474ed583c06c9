"""`dpsql randomize`: a file whose answers are randomized, and the entry that tells the schema so."""

from __future__ import annotations

import argparse
import csv
import json
from fractions import Fraction

from dpsql.display.screen import Screen, Usage
from dpsql.owner.randomize import Wanted, declaration, randomize_file


def run(given: argparse.Namespace, screen: Screen) -> None:
    values = next(csv.reader([given.values], skipinitialspace=True), [])
    if given.null is not None and given.null not in values:
        values.append(given.null)
    if len(given.delimiter) != 1:
        raise Usage("the delimiter is one character")
    wanted = Wanted(given.column, tuple(values), Fraction(given.epsilon), given.null, given.delimiter)
    randomize_file(given.file, given.output, wanted, force=given.force)
    entry = declaration(wanted, given.epsilon)
    if given.json:
        screen.print(json.dumps({"file": given.output, "column": given.column, "declaration": entry}))
        return
    screen.print(entry)
    screen.note(f'{given.output} has the randomized answers; declare its column "{given.column}" with the entry above.'
                f" {given.file} still has the true ones.")  # fmt: skip
