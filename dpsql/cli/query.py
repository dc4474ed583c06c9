"""`dpsql query` and `dpsql explain`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import dpsql
from dpsql.cli.explained import document
from dpsql.dbapi.cursor import Cursor
from dpsql.dbapi.frames import Frame, with_errors
from dpsql.display.formats import csv_lines, json_lines, unique_names
from dpsql.display.screen import Screen, Usage
from dpsql.display.table import print_table
from dpsql.figures import short_left, short_up
from dpsql.repl.given import read_statements, settings_of

Parameter = str | int | Decimal | bool | None


def run(given: argparse.Namespace, screen: Screen) -> None:
    sql = _statement(given)
    parameters = [read_parameter(text) for text in given.parameters]
    with dpsql.connect(given.schema, given.user, **settings_of(given)) as connection:
        if given.command == "explain":
            explained = connection.explain(sql, parameters)
            screen.print(json.dumps(document(explained), indent=2) if given.json else str(explained))
            return
        with connection.cursor() as cursor:
            try:
                cursor.execute(sql, parameters)
            except KeyboardInterrupt:
                screen.note("canceled; what runs is finished and stored first. Press Ctrl-C again to leave at once")
                raise
            print_answer(screen, cursor, given.format, given.errors)


def _statement(given: argparse.Namespace) -> str:
    if (given.sql is None) == (given.file is None):
        raise Usage("give one statement: as SQL, as - for the standard input, or by --file")
    if given.sql == "-":
        return sys.stdin.read()
    return str(given.sql) if given.file is None else read_statements(given.file)


def read_parameter(text: str) -> Parameter:
    """
    >>> [read_parameter(text) for text in ("12", "-1.5", "f", "'12'", "NULL")]
    [12, Decimal('-1.5'), 'f', '12', None]
    """
    words: dict[str, Parameter] = {"true": True, "false": False, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    if re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][+-]?[0-9]{1,3})?", text, re.ASCII):
        return Decimal(text)
    quoted = re.fullmatch(r"'(.*)'", text, re.DOTALL)
    return quoted[1] if quoted else text


def print_answer(screen: Screen, cursor: Cursor, form: str, errors: bool | None = None) -> None:
    """Rows to the standard output; notices, and what it cost where a program reads the rows, beside it."""
    for notice in cursor.notices:
        screen.note(f"NOTICE:  {notice}")
    if cursor.description is None:
        screen.note("NOTICE:  a setting lasts for one command here; give it as --epsilon, --delta or --set NAME=VALUE")
        return
    if form == "table":
        _print_rows(screen, cursor, errors is not False)
    else:
        _print_lines(screen, cursor, form, bool(errors))
    if (cursor.statusmessage or "").startswith("SELECT"):
        (screen.print if form == "table" else screen.note)(cost(cursor))
        for receipt in cursor.receipts:
            screen.note(f"receipt: {receipt}")


def _print_rows(screen: Screen, cursor: Cursor, errors: bool) -> None:
    names, bars, rows = [column[0] for column in cursor.description or ()], cursor.errors, cursor.fetchall()
    if names == ["QUERY PLAN"]:
        for (line,) in rows:
            screen.print(str(line))
        return
    print_table(screen, names, rows, bars, replace(screen.layout(), errors=errors))
    barred = errors and any(bar is not None for row in bars for bar in row)
    screen.print(f"({len(rows)} row{'' if len(rows) == 1 else 's'}{', ± 95 % intervals' if barred else ''})")


def _print_lines(screen: Screen, cursor: Cursor, form: str, errors: bool) -> None:
    described = cursor.description or []
    names, types = unique_names([c[0] for c in described]), tuple(c[1].type for c in described)
    frame = Frame(tuple(names), types, cursor.fetchall())
    if errors:
        frame = with_errors(frame, cursor.errors)
    for line in (csv_lines if form == "csv" else json_lines)(frame.names, frame.rows):
        screen.print(line)


def cost(cursor: Cursor) -> str:
    """What the statement was charged, and what is left."""
    balance = cursor.connection.budget()
    whose = "the dataset's" if cursor.connection.user is None else f"{balance.account}'s"
    left = short_left(balance.left_epsilon, balance.epsilon)
    part = short_left(100 * balance.fraction_left, Fraction(100))
    left_line = f"left of {whose} budget: {part} % (epsilon {left} of {short_up(balance.epsilon)})"
    return f"charged: {cursor.loss}\n{left_line}"
