"""The command line: which commands there are, and what they take. Who asks stands here, what the owner does in
`owners`."""

from __future__ import annotations

import argparse

import dpsql
from dpsql.cli import owners
from dpsql.cli.options import (
    Subcommands,
    CommandParser,
    add_format_options,
    add_json_option,
    add_schema_argument,
    add_setting_options,
    add_user_option,
    add_command,
)
from dpsql.cli.serve_arguments import add_serve

SHELL_NAMES = ("bash", "zsh", "fish")

_USAGE = "dpsql SCHEMA [OPTION …]\n       dpsql COMMAND [ARGUMENT …]"
_EPILOG = """\
dpsql SCHEMA opens a prompt on a terminal, and elsewhere asks what comes in; its options: dpsql help repl

examples:
  dpsql demo --keep demo
  dpsql query hospital.yaml "SELECT ward, COUNT(*), AVG(cost) FROM visits GROUP BY ward" --user ana
  echo "SELECT COUNT(*) FROM visits" | dpsql hospital.yaml --user ana --csv
  dpsql help query
"""
_STATEMENT_HELP = """
The statement may also come from --file, or from the standard input with - in its place.
SHOW TABLES, DESCRIBE table, SHOW ALL, SHOW BUDGET and EXPLAIN SELECT … are statements too.

A ? in the statement stands for a -p: 12 and 1.5 are numbers, true, false and null are what they say,
and all else is text. Text that looks like one of these goes in single quotes: -p "'12'".
"""


def build_parser() -> CommandParser:
    parser = CommandParser(
        prog="dpsql", usage=_USAGE, description="Ask SQL, get differentially private answers.", epilog=_EPILOG
    )
    parser.add_argument("--version", action="version", version=f"dpsql {dpsql.__version__}")
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True, parser_class=CommandParser, prog="dpsql"
    )
    _add_repl(commands)
    _add_query(commands)
    _add_explain(commands)
    add_serve(commands)
    owners.add_owner_commands(commands)
    _add_verify(commands)
    _add_demo(commands)
    _add_completion(commands)
    _add_help(commands)
    return parser


def list_commands(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> dict[tuple[str, ...], CommandParser]:
    """Every command that does something, by the words that are typed after `dpsql`; their groups are not among them."""
    subcommands = subcommands_of(parser)
    if subcommands is None:
        assert isinstance(parser, CommandParser)
        return {words: parser}
    return {name: command_parser for word, inner in subcommands.items() for name, command_parser in list_commands(inner, (*words, word)).items()}


def subcommands_of(parser: argparse.ArgumentParser) -> dict[str, CommandParser] | None:
    """The commands that a word may choose next; None where none follow."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return None


def _add_repl(commands: Subcommands[CommandParser]) -> None:
    more = """
        A prompt with completion, history and the price of what is typed; \\? there lists its commands. The word repl
        may be left out. Where the input is no terminal, its statements are asked one after the other, and the first
        error ends it.
        """
    examples = (
        'dpsql hospital.yaml --user ana -c "SHOW TABLES"',
        'echo "SELECT sex, COUNT(*) FROM patients GROUP BY sex" | dpsql hospital.yaml --user ana --csv',
    )
    parser = add_command(commands, "repl", "open a SQL prompt", more, examples=examples)
    add_schema_argument(parser, server=True)
    add_user_option(parser)
    add_setting_options(parser)
    parser.add_argument(
        "--command", "-c", metavar="SQL", action="append", default=[], dest="commands",
        help="ask this and leave; may be given several times",
    )  # fmt: skip
    parser.add_argument("--file", "-f", metavar="FILE", help="ask the statements of a file and leave")
    add_format_options(parser)
    parser.add_argument("--expanded", "-x", action="store_true", help="one line for each value")
    parser.add_argument("--timing", action="store_true", help="tell how long each statement took")
    parser.add_argument("--confirm", metavar="EPSILON", help="ask before a statement is charged more than this epsilon")
    parser.add_argument(
        "--history", action=argparse.BooleanOptionalAction, default=True, help="keep what is typed for the next time"
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="print answers only: no charges, no notices")


def _add_query(commands: Subcommands[CommandParser]) -> None:
    examples = (
        'dpsql query hospital.yaml "SELECT ward, COUNT(*), AVG(cost) FROM visits GROUP BY ward" --user ana',
        'dpsql query hospital.yaml "SELECT COUNT(*) FROM visits WHERE ward = ?" -p surgery --user ana --json --errors',
    )
    what = "run a statement and print the released rows"
    parser = add_command(commands, "query", what, _STATEMENT_HELP, examples=examples)
    _add_statement(parser)
    add_format_options(parser)


def _add_explain(commands: Subcommands[CommandParser]) -> None:
    examples = ('dpsql explain hospital.yaml "SELECT COUNT(*) FROM visits" --user ana --epsilon 0.5',)
    what = "tell what a statement would be charged and how good it would be; free"
    parser = add_command(commands, "explain", what, _STATEMENT_HELP, examples=examples)
    _add_statement(parser)
    add_json_option(parser, "it")


def _add_statement(parser: CommandParser) -> None:
    add_schema_argument(parser, server=True)
    parser.add_argument("sql", metavar="SQL", nargs="?", help="one statement; - reads the standard input")
    parser.add_argument("--file", "-f", metavar="FILE", help="read the statement from a file")
    add_user_option(parser)
    add_setting_options(parser)
    parser.add_argument(
        "--parameter", "-p", metavar="VALUE", action="append", default=[], dest="parameters", help="the value of a ?"
    )


def _add_verify(commands: Subcommands[CommandParser]) -> None:
    what = "try the privacy claims on made-up neighboring databases"
    more = """
        Random statements are asked of two databases that differ in one privacy unit. Every release must stay within the
        sensitivity that its noise was computed from and be paid for, public groups must be the same, the engine must
        fail on neither, and the order of rows may not matter. Then the noise is audited: thousands of releases, and a
        planted bug that must be found. No real rows are read.

        Exits with 0 if all claims held, with 3 if one did not, and then prints a minimal example; with 4 if the audit
        had too few releases to find its planted bugs; with 1 for an error, as all commands do.
        """
    examples = (
        "dpsql verify hospital.yaml --seconds 5 --no-statistics",
        "dpsql verify --trials 20 --no-statistics --report verify.json",
    )
    parser = add_command(commands, "verify", what, more, examples=examples)
    parser.add_argument("schema", metavar="SCHEMA", nargs="?", help="the YAML schema; without it, random ones")
    parser.add_argument("--seconds", type=float, metavar="N", help="time for random statements; 60")
    parser.add_argument("--trials", type=int, metavar="N", help="end after so many statements")
    parser.add_argument("--seed", type=int, metavar="N", help="the number of the first batch; 0")
    parser.add_argument("--workers", type=int, metavar="N", help="processes; one a core")
    parser.add_argument("--findings", type=int, metavar="N", help="end after so many findings; 10")
    parser.add_argument("--samples", type=int, metavar="N", help="releases of each side and template; 40000")
    parser.add_argument("--statistics", action=argparse.BooleanOptionalAction, help="audit the noise too (the default)")
    add_json_option(parser, "the report")
    parser.add_argument("--report", metavar="FILE", help="write the report to a file, as JSON")


def _add_demo(commands: Subcommands[CommandParser]) -> None:
    what = "make a small fictional hospital and ask it a few questions"
    parser = add_command(commands, "demo", what, examples=("dpsql demo --keep another",))
    parser.add_argument("--keep", metavar="DIR", help="make it in this new or empty folder, and leave it there")


def _add_completion(commands: Subcommands[CommandParser]) -> None:
    more = """
        Put one of these where your shell starts:

          bash   eval "$(dpsql completion bash)"                                         in ~/.bashrc
          zsh    eval "$(dpsql completion zsh)"                                          in ~/.zshrc, after compinit
          fish   dpsql completion fish > ~/.config/fish/completions/dpsql.fish           once
        """
    what = "print a script that lets a shell complete commands, options and files"
    parser = add_command(commands, "completion", what, more, examples=('eval "$(dpsql completion bash)"',))
    parser.add_argument("shell", metavar="SHELL", choices=SHELL_NAMES, help="bash, zsh or fish")


def _add_help(commands: Subcommands[CommandParser]) -> None:
    examples = ("dpsql help query", "dpsql help answers list")
    parser = add_command(commands, "help", "tell what a command does", examples=examples)
    parser.add_argument("words", metavar="COMMAND", nargs="*", help="a command, such as query or answers list")
