"""`dpsql query` and `dpsql explain`: run a statement, or show what it would cost."""

from __future__ import annotations

import argparse
import json
import re
import sys
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsql.interfaces.dbapi.background_open import open_connection
from dpsql.interfaces.dbapi.cursor import Cursor
from dpsql.interfaces.dbapi.result import format_charge_lines
from dpsql.interfaces.display.terminal import Screen, UsageError, escape_lines
from dpsql.interfaces.repl.cli_input import find_password_prompt, read_statements, settings_from_args
from dpsql.interfaces.repl.display_options import DisplayOptions, format_answer

if TYPE_CHECKING:
    from dpsql.session.session import Explanation

# `dpsql explain --json`: the fields of an explanation for tools; docs/cli.md describes them.


def explanation_to_json(explained: Explanation) -> dict[str, Any]:
    """Figures are the nearest floats; the ledger charges the exact ones."""
    outputs = zip(explained.outputs, explained.expected, strict=True)
    paid = explained.paid or (False,) * len(explained.releases)
    sources = explained.sources or (None,) * len(explained.releases)
    return {
        "epsilon": float(explained.epsilon),
        "delta": float(explained.delta),
        "undecided": explained.undecided,
        "norms_undecided": explained.norms_undecided,
        "price_open": explained.price_open,
        "noise": explained.noise or None,
        "outputs": [{"name": name, "type": kind, "stderr": error} for (name, kind), error in outputs],
        "offers": [
            {
                "noise": offer.noise,
                "chosen": offer.chosen,
                "epsilon": float(offer.epsilon),
                "rho": float(offer.rho),
                "price": {"rho": float(offer.price.rho), "delta": float(offer.price.delta)},
                "stderr": list(offer.expected),
                "part": _to_float(offer.part),
                "more": offer.more,
                "paid": offer.paid,
                "refused": offer.refused,
                "reason": offer.reason,
            }
            for offer in explained.offers
        ],
        "releases": [
            {
                "sql": release.sql,
                "engine": release.engine,
                "holes": list(release.holes),
                "keys": list(release.keys),
                "columns": [{"name": column.name, "grid": float(column.grid)} for column in release.columns],
                "bundles": [
                    {
                        "columns": list(bundle.columns),
                        "mechanism": bundle.mechanism,
                        "scale": float(bundle.scale),
                        "l1": bundle.l1,
                        "l2": bundle.l2,
                        "linf": bundle.linf,
                        "stderr": bundle.stderr,
                    }
                    for bundle in release.bundles
                ],
                "selection": release.selection,
                "groups": release.groups,
                "units_to_appear": release.units_to_appear,
                "epsilon": _to_float(release.epsilon),
                "rho": float(release.rho),
                "delta": float(release.delta),
                "histogram": release.histogram,
                "undecided": release.undecided,
                "caps": list(release.caps),
                "norms": [{"cell": cell, "norm": float(norm)} for cell, norm in release.norms],
                "paid": has,
                "source": source,
            }
            for release, has, source in zip(explained.releases, paid, sources, strict=True)
        ],
        "post_sql": explained.post_sql,
        "notices": list(explained.notices),
    }


def _to_float(number: Fraction | None) -> float | None:
    return None if number is None else float(number)


Parameter = str | int | Decimal | bool | None


def run(args: argparse.Namespace, screen: Screen) -> None:
    sql = _read_statement(args)
    parameters = [parse_parameter(text) for text in args.parameters]
    with open_connection(args.schema, args.user, find_password_prompt(), **settings_from_args(args)) as connection:
        if args.command == "explain":
            explained = connection.explain(sql, parameters)
            screen.print(
                json.dumps(explanation_to_json(explained), indent=2) if args.json else escape_lines(str(explained))
            )
            return
        with connection.cursor() as cursor:
            try:
                cursor.execute(sql, parameters)
            except KeyboardInterrupt:
                screen.print_note(
                    "canceled; what runs is finished and stored first. Press Ctrl-C again to leave at once"
                )
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
        screen.print_note(
            "NOTICE:  a setting lasts for one command here; give it as --epsilon, --delta or --set NAME=VALUE"
        )
    if not answer.columns:
        return
    view = DisplayOptions(format=form, errors=form == "table" if errors is None else errors, digits=digits)
    for line in format_answer(answer, view, screen, "off"):
        screen.print(line)
    for line in format_charge_lines(answer):
        (screen.print if form == "table" else screen.print_note)(line)
    for receipt in answer.receipts:
        screen.print_note(f"receipt: {receipt}")
