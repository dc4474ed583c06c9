"""`dpsql query` and `dpsql explain`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from decimal import Decimal

from dpsql.cli.explained import explanation_to_json
from dpsql.dbapi.answer import format_charge_lines
from dpsql.dbapi.cursor import Cursor
from dpsql.dbapi.opening import open_connection
from dpsql.display.screen import Screen, UsageError
from dpsql.display.text import escape_lines
from dpsql.repl.given import find_password_prompt, read_statements, settings_from_args
from dpsql.repl.show import format_answer
from dpsql.repl.view import DisplayOptions

Parameter = str | int | Decimal | bool | None


def run(args: argparse.Namespace, screen: Screen) -> None:
    sql = _read_statement(args)
    parameters = [parse_parameter(text) for text in args.parameters]
    with open_connection(args.schema, args.user, find_password_prompt(), **settings_from_args(args)) as connection:
        if args.command == "explain":
            explained = connection.explain(sql, parameters)
            screen.print(json.dumps(explanation_to_json(explained), indent=2) if args.json else escape_lines(str(explained)))
            return
        with connection.cursor() as cursor:
            try:
                cursor.execute(sql, parameters)
            except KeyboardInterrupt:
                screen.print_note("canceled; what runs is finished and stored first. Press Ctrl-C again to leave at once")
                raise
            print_answer(screen, cursor, args.format, args.errors, args.digits)


def _read_statement(args: argparse.Namespace) -> str:
    if (args.sql is None) == (args.file is None):
        raise UsageError("give one statement: as SQL, as - for the standard input, or by --file")
    if args.sql == "-":
        return sys.stdin.read()
    return str(args.sql) if args.file is None else read_statements(args.file)


def parse_parameter(text: str) -> Parameter:
    """
    >>> [parse_parameter(text) for text in ("12", "-1.5", "f", "'12'", "NULL")]
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
        screen.print_note(f"NOTICE:  {notice}")
    if not answer.columns and not answer.command.startswith(("CREATE", "DROP")):
        screen.print_note("NOTICE:  a setting lasts for one command here; give it as --epsilon, --delta or --set NAME=VALUE")
    if not answer.columns:
        return
    view = DisplayOptions(format=form, errors=form == "table" if errors is None else errors, digits=digits)
    for line in format_answer(answer, view, screen, "off"):
        screen.print(line)
    for line in format_charge_lines(answer):
        (screen.print if form == "table" else screen.print_note)(line)
    for receipt in answer.receipts:
        screen.print_note(f"receipt: {receipt}")
