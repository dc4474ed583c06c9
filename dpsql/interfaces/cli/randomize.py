"""`dpsql randomize`: a file whose answers are randomized, and the entry that tells the schema so."""

from __future__ import annotations

import argparse
import csv
import json
from fractions import Fraction

from dpsql.interfaces.display.terminal import Screen, UsageError
from dpsql.owner.randomize import RandomizationRequest, format_declaration, randomize_file


def run(args: argparse.Namespace, screen: Screen) -> None:
    values = next(csv.reader([args.values], skipinitialspace=True), [])
    if args.null is not None and args.null not in values:
        values.append(args.null)
    if len(args.delimiter) != 1:
        raise UsageError("the delimiter is one character")
    request = RandomizationRequest(args.column, tuple(values), Fraction(args.epsilon), args.null, args.delimiter)
    randomize_file(args.file, args.output, request, force=args.force)
    entry = format_declaration(request, args.epsilon)
    if args.json:
        screen.print(json.dumps({"file": args.output, "column": args.column, "declaration": entry}))
        return
    screen.print(entry)
    screen.print_note(
        f'{args.output} has the randomized answers; declare its column "{args.column}" with the entry above.'
        f" {args.file} still has the true ones."
    )
