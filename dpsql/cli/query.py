"""`dpsql query` and `dpsql explain`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from decimal import Decimal

from dpsql.cli.explained import document
from dpsql.dbapi.answer import charge_lines
from dpsql.dbapi.cursor import Cursor
from dpsql.dbapi.opening import open_now
from dpsql.display.screen import Screen, Usage
from dpsql.display.text import shown_lines
from dpsql.repl.given import password_asker, read_statements, settings_of
from dpsql.repl.show import answer_lines
from dpsql.repl.view import View

Parameter = str | int | Decimal | bool | None


def run(given: argparse.Namespace, screen: Screen) -> None:
    sql = _statement(given)
    parameters = [read_parameter(text) for text in given.parameters]
    with open_now(given.schema, given.user, password_asker(), **settings_of(given)) as connection:
        if given.command == "explain":
            explained = connection.explain(sql, parameters)
            screen.print(json.dumps(document(explained), indent=2) if given.json else shown_lines(str(explained)))
            return
        with connection.cursor() as cursor:
            try:
                cursor.execute(sql, parameters)
            except KeyboardInterrupt:
                screen.note("canceled; what runs is finished and stored first. Press Ctrl-C again to leave at once")
                raise
            print_answer(screen, cursor, given.format, given.errors, given.digits)


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


def print_answer(screen: Screen, cursor: Cursor, form: str, errors: bool | None = None, digits: bool = True) -> None:
    """Rows to the standard output; notices, and what was charged where a program reads the rows, beside it."""
    answer = cursor.answer()
    for notice in answer.notices:
        screen.note(f"NOTICE:  {notice}")
    if not answer.columns and not answer.command.startswith(("CREATE", "DROP")):
        screen.note("NOTICE:  a setting lasts for one command here; give it as --epsilon, --delta or --set NAME=VALUE")
    if not answer.columns:
        return
    view = View(format=form, errors=form == "table" if errors is None else errors, digits=digits)
    for line in answer_lines(answer, view, screen, "off"):
        screen.print(line)
    for line in charge_lines(answer):
        (screen.print if form == "table" else screen.note)(line)
    for receipt in answer.receipts:
        screen.note(f"receipt: {receipt}")
