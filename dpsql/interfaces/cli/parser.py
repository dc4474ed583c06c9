"""Declares a command: its names, its examples, and the arguments that several share."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from dpsql.interfaces.repl.display_options import OUTPUT_FORMATS

# argparse has no public name for it.
Subcommands = argparse._SubParsersAction


def parse_number(text: str) -> str:
    """The words of a number, such as 0.5, 1e-6 or 1/3: what is none is wrong usage, whatever the schema says."""
    try:
        finite = Fraction(text) is not None if "/" in text else Decimal(text).is_finite()
    except (ArithmeticError, ValueError):
        finite = False
    if not finite:
        raise argparse.ArgumentTypeError(f'"{text}" is no number')
    return text


class CommandParser(argparse.ArgumentParser):
    """Options are written out, so that a new one never changes what an old command line means; examples are kept as
    they were given, for help and for the test that runs them."""

    examples: tuple[str, ...] = ()

    def __init__(self, **options: object) -> None:
        super().__init__(
            **options,  # type: ignore[arg-type]  # argparse's own, of many types
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )


def add_command(
    commands: Subcommands[CommandParser], name: str, summary: str, details: str = "", *, examples: Sequence[str] = ()
) -> CommandParser:
    """A command with its help: one line in the list of commands, then `details`, then examples that run in the
    folder of `dpsql demo --keep hospital`."""
    example_lines = "\n".join(f"  {line}" for line in examples)
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.\n{textwrap.dedent(details)}".rstrip(),
        epilog=f"examples:\n{example_lines}" if examples else None,
    )
    parser.examples = tuple(examples)
    parser.set_defaults(parser=parser)  # tells wrong usage with the command's own usage line
    return parser


def add_actions(parser: CommandParser) -> Subcommands[CommandParser]:
    """The second words of a command such as `answers list`."""
    return parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=CommandParser)


def add_schema_argument(parser: CommandParser, *, server: bool = False) -> None:
    """`server`: what the command does can be asked of one too."""
    also = ", or a server: dpsql://ana@host:5433/clinic" if server else ""
    help_text = f"the YAML schema, or dpsql:///path/schema.yaml?user=ana{also}"
    parser.add_argument("schema", metavar="SCHEMA", help=help_text)


def add_json_option(parser: CommandParser, subject: str) -> None:
    parser.add_argument("--json", action="store_true", help=f"print {subject} as JSON")


def add_user_option(parser: CommandParser) -> None:
    parser.add_argument("--user", metavar="NAME", help="the analyst who asks, where the schema declares some")


def add_setting_options(parser: CommandParser) -> None:
    help_text = "the most that a statement may lose, instead of the default"
    parser.add_argument("--epsilon", metavar="E", type=parse_number, help=help_text)
    parser.add_argument(
        "--delta", metavar="D", type=parse_number, help="its delta; 0 asks for pure differential privacy"
    )
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="another setting; SHOW ALL lists them"
    )


def add_format_options(parser: CommandParser) -> None:
    """`--csv` and `--json` are short for `--format`."""
    parser.add_argument("--format", choices=OUTPUT_FORMATS, default="table", help="how to print the rows")
    parser.add_argument("--csv", action="store_const", const="csv", dest="format", help="short for --format csv")
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="short for --format json")
    parser.add_argument(
        "--errors",
        action=argparse.BooleanOptionalAction,
        help="95 %% error bars: beside the values of a table (the default there), as columns x_stderr, x_low, x_high"
        " and x_clipped in csv and json",
    )
    parser.add_argument(
        "--digits", action=argparse.BooleanOptionalAction, default=True,
        help="of a table's numbers, only digits that the noise leaves meaning to",
    )  # fmt: skip
