"""The commands and their arguments."""

from __future__ import annotations

import argparse
import textwrap

import dpsql

_EXAMPLES = """
examples:
  dpsql demo
  dpsql query clinic.yaml "SELECT ward, COUNT(*), AVG(cost) FROM visits GROUP BY ward" --user ana
  dpsql explain clinic.yaml "SELECT COUNT(*) FROM visits" --user ana --epsilon 0.5
  dpsql budget clinic.yaml
  dpsql audit clinic.yaml
  dpsql verify clinic.yaml --seconds 60
"""
_STATEMENT = """
The statement may also come from --file, or from the standard input with - in its place.
SHOW TABLES, DESCRIBE table, SHOW ALL, SHOW BUDGET and EXPLAIN SELECT … are statements too.

A ? in the statement stands for a -p: 12 and 1.5 are numbers, true, false and null are what they say,
and all else is text. Text that looks like one of these goes in single quotes: -p "'12'".
"""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dpsql",
        description="Ask SQL, get differentially private answers.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dpsql {dpsql.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_query(commands)
    _add_explain(commands)
    _add_budget(commands)
    _add_audit(commands)
    _add_answers(commands)
    _add_data(commands)
    _add_account(commands)
    _add_verify(commands)
    _add_demo(commands)
    return parser


_Commands = argparse._SubParsersAction  # argparse has no public name for it


def _command(
    commands: _Commands[argparse.ArgumentParser], name: str, what: str, more: str = ""
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.\n{textwrap.dedent(more)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_query(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "query", "run a statement and print the released rows", _STATEMENT)
    _add_statement(parser)
    parser.add_argument("--format", choices=("table", "csv", "json"), default="table", help="how to print the rows")
    parser.add_argument(
        "--errors",
        action=argparse.BooleanOptionalAction,
        help="95 %% error bars: beside the values of a table (the default there), as columns x_stderr, x_low and"
        " x_high in csv and json",
    )


def _add_explain(commands: _Commands[argparse.ArgumentParser]) -> None:
    what = "tell what a statement would cost and how good it would be; free"
    _add_statement(_command(commands, "explain", what, _STATEMENT))


def _add_budget(commands: _Commands[argparse.ArgumentParser]) -> None:
    more = """
        Without --user it is the owner's view of all accounts. --report tells what other accountants would say of the
        history: nothing is granted by it. RDP and PLD need: pip install 'dpsql[accountants]'

          dpsql budget clinic.yaml --report
          dpsql budget clinic.yaml --user ana --history ana.csv
        """
    parser = _command(commands, "budget", "tell what was spent and what is left, of one account or of all", more)
    parser.set_defaults(parser=parser)
    _add_schema(parser)
    parser.add_argument("--user", metavar="NAME", help="one analyst of the schema, with her own figures only")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--report", action="store_true", help="also what each accountant would say of the history")
    parser.add_argument("--history", metavar="FILE", help="write the entries as CSV to a file, or to - , instead")


def _add_audit(commands: _Commands[argparse.ArgumentParser]) -> None:
    more = """
        Every entry of every account is read again, also of accounts that the schema has no more: an entry that was
        changed, removed or moved is named, and each loss is computed again from its mechanisms. A receipt that someone
        holds and the ledger lacks tells of an old backup that was put back.

        Exits with 0 if all is well, with 3 if something was found, with 1 for an error.

          dpsql audit clinic.yaml --receipt ana/12/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
        """
    parser = _command(commands, "audit", "verify the ledger, and the receipts that someone holds", more)
    _add_schema(parser)
    parser.add_argument(
        "--receipt", metavar="RECEIPT", nargs="+", action="extend", default=[], help="account/number/hash"
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def _add_answers(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "answers", "the owner's commands about the stored answers")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = _command(actions, "list", "list the releases: what was asked, by whom it is paid, what it cost")
    _add_schema(listed)
    listed.add_argument("--json", action="store_true", help="print the list as JSON")
    more = """
        One JSON object a line: statement, payers, loss, and the release as it is stored, with its keys, noisy cells and
        noise.

          dpsql answers export clinic.yaml 1 2 > answers.jsonl
        """
    export = _command(actions, "export", "print stored releases", more)
    _add_schema(export)
    export.add_argument("numbers", metavar="NUMBER", type=int, nargs="*", help="of `answers list`; all without one")
    more = """
        Who asks again pays again. What was charged stays charged, and the entries stay.

          dpsql answers drop clinic.yaml --before 2026-01-31
        """
    drop = _command(actions, "drop", "forget the answers that were charged before a day", more)
    _add_schema(drop)
    drop.add_argument("--before", metavar="DATE", required=True, help="in UTC, such as 2026-01-31")
    for one in (listed, export, drop):
        one.set_defaults(parser=one)


def _add_data(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "data", "the owner's commands about the data behind a schema")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    what = "check the data as it is now and serve it as the next version"
    more = """
        Files are pinned when they are registered; when they change, nothing is served until this is run.
        Releases of earlier versions stay paid for, and what was spent stays spent.
        """
    _add_schema(_command(actions, "changed", what, more))


def _add_account(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "account", "the owner's commands about the accounts in a ledger")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    resume = _command(actions, "resume", "let an account ask again that was suspended after failed runs")
    _add_schema(resume)
    resume.add_argument("name", metavar="NAME", help="an analyst of the schema, or dataset")
    more = """
        A budget that is raised in the schema counts only once it is recorded here, as an entry in the ledger. What was
        spent stays spent.

          dpsql account grant clinic.yaml ana
        """
    grant = _command(actions, "grant", "record the budget that the schema now gives to an account", more)
    _add_schema(grant)
    grant.add_argument("name", metavar="NAME", help="an analyst or group of the schema, or dataset")


def _add_verify(commands: _Commands[argparse.ArgumentParser]) -> None:
    what = "try the privacy claims on made-up neighboring databases"
    more = """
        Random statements are asked of two databases that differ in one privacy unit. Every release must stay within the
        sensitivity that its noise was computed from and be paid for, public groups must be the same, the engine must
        fail on neither, and the order of rows may not matter. Then the noise is audited: thousands of releases, and a
        planted bug that must be found. No real rows are read.

        Exits with 0 if all claims held, with 3 if one did not, and then prints a minimal example; with 4 if the audit
        had too few releases to find its planted bugs; with 1 for an error, as all commands do.

          dpsql verify clinic.yaml --seconds 60
          dpsql verify --seconds 600 --report verify.json
        """
    parser = _command(commands, "verify", what, more)
    parser.set_defaults(parser=parser)
    parser.add_argument("schema", metavar="SCHEMA", nargs="?", help="the YAML schema; without it, random ones")
    parser.add_argument("--seconds", type=float, metavar="N", help="time for random statements; 60")
    parser.add_argument("--trials", type=int, metavar="N", help="end after so many statements")
    parser.add_argument("--seed", type=int, metavar="N", help="the number of the first batch; 0")
    parser.add_argument("--workers", type=int, metavar="N", help="processes; one a core")
    parser.add_argument("--findings", type=int, metavar="N", help="end after so many findings; 10")
    parser.add_argument("--samples", type=int, metavar="N", help="releases of each side and template; 40000")
    parser.add_argument(
        "--statistics", action=argparse.BooleanOptionalAction, help="audit the noise too (the default)"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--report", metavar="FILE", help="write the report to a file, as JSON")


def _add_demo(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "demo", "make a small fictional hospital and ask it a few questions")
    parser.add_argument("--keep", metavar="DIR", help="make it in this new or empty folder, and leave it there")


def _add_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("schema", metavar="SCHEMA", help="the YAML schema, or dpsql:///path/schema.yaml?user=ana")


def _add_statement(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(parser=parser)  # tells wrong usage with the command's own usage line
    _add_schema(parser)
    parser.add_argument("sql", metavar="SQL", nargs="?", help="one statement; - reads the standard input")
    parser.add_argument("--file", "-f", metavar="FILE", help="read the statement from a file")
    parser.add_argument("--user", metavar="NAME", help="the analyst who asks, where the schema declares some")
    parser.add_argument("--epsilon", metavar="E", help="the most that the statement may lose, instead of the default")
    parser.add_argument("--delta", metavar="D", help="its delta; 0 asks for pure differential privacy")
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="another setting; SHOW ALL lists them"
    )
    parser.add_argument(
        "--parameter", "-p", metavar="VALUE", action="append", default=[], dest="parameters", help="the value of a ?"
    )
