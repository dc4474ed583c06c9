"""The commands of the command line and their arguments, for analysts, the owner and the server."""

from __future__ import annotations

import argparse
import difflib
import os
from collections.abc import Callable, Sequence

from dpsql.interfaces.cli.parser import (
    CommandParser,
    Subcommands,
    add_actions,
    add_command,
    add_format_options,
    add_json_option,
    add_schema_argument,
    add_setting_options,
    add_user_option,
    parse_number,
)
from dpsql.interfaces.dbapi.url import is_server_url
from dpsql.version import VERSION

# What `dpsql serve` takes.

LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")


def make_integer_parser(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f'"{text}" is no whole number from {low} to {high}')
        return int(text)

    return read


def parse_seconds(text: str) -> float:
    return float(make_integer_parser(0, 10**6)(text))


def add_serve(commands: Subcommands[CommandParser]) -> None:
    details = """
        Every tool that speaks to PostgreSQL connects, as an analyst of the schema who has a password (dpsql user add).
        The database is named as the file is, without .yaml. Passwords are asked for by SCRAM-SHA-256 only.

        SIGTERM or Ctrl-C ends it: running answers finish, all others are sent away; a second one, or the end of
        --grace, does not wait. SIGHUP reads schemas, passwords, data versions and the certificate again, for those who
        connect after it.

        Without a certificate it listens on this machine alone, unless --allow-plain says that the network is private.
        """
    examples = (
        "dpsql serve hospital.yaml --port 5433",
        "dpsql serve hospital.yaml --host 0.0.0.0 --tls-cert server.crt --tls-key server.key --require-tls",
    )
    parser = add_command(
        commands, "serve", "serve schemas to all that speaks to PostgreSQL", details, examples=examples
    )
    parser.add_argument("schemas", metavar="SCHEMA", nargs="+", help="a YAML schema; each is a database")
    parser.add_argument("--host", metavar="ADDRESS", action="append", help="where to listen; several times for several")
    parser.add_argument(
        "--port", metavar="N", type=make_integer_parser(0, 65535), default=5433, help="5433; 0 takes a free one"
    )
    parser.add_argument("--socket", metavar="DIR", help="listen on a socket in this folder too")
    _add_tls(parser)
    _add_bounds(parser)
    parser.add_argument(
        "--metrics-port", metavar="N", type=make_integer_parser(0, 65535), help="serve /health and /metrics there"
    )
    parser.add_argument("--metrics-host", metavar="ADDRESS", default="127.0.0.1", help="where; 127.0.0.1")
    parser.add_argument(
        "--metrics-token-file", metavar="FILE", help="who brings this token sees the accounts' budgets in /metrics"
    )
    parser.add_argument("--log-level", choices=LOG_LEVELS, default="info", help="info")
    parser.add_argument("--log-format", choices=LOG_FORMATS, default="text", help="text")


def _add_tls(parser: CommandParser) -> None:
    parser.add_argument("--tls-cert", metavar="FILE", help="the server's certificate, with those above it, in PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="its key; without it, in the same file")
    parser.add_argument("--require-tls", action="store_true", help="refuse connections without TLS")
    parser.add_argument("--allow-plain", action="store_true", help="listen beyond this machine without TLS")


def _add_bounds(parser: CommandParser) -> None:
    parser.add_argument(
        "--threads", metavar="N", type=make_integer_parser(1, 1024), default=64, help="statements at once; 64"
    )
    parser.add_argument(
        "--max-connections", metavar="N", type=make_integer_parser(1, 10**5), default=500, help="of all; 500"
    )
    parser.add_argument(
        "--max-user-connections", metavar="N", type=make_integer_parser(1, 10**5), default=200, help="of one; 200"
    )
    parser.add_argument(
        "--max-pending", metavar="N", type=make_integer_parser(1, 10**5), default=200, help="that log in at once; 200"
    )
    parser.add_argument(
        "--max-address-pending",
        metavar="N",
        type=make_integer_parser(1, 10**5),
        default=0,
        help="of them from one address; half of what the others leave",
    )
    parser.add_argument(
        "--idle-timeout",
        metavar="SECONDS",
        type=parse_seconds,
        default=0.0,
        help="close connections that ask nothing; never",
    )
    parser.add_argument(
        "--grace", metavar="SECONDS", type=parse_seconds, default=30.0, help="for running answers, at the end; 30"
    )


# What `dpsql init`, `dpsql check` and `dpsql randomize` take.


def add_init(commands: Subcommands[CommandParser]) -> None:
    details = """
        SOURCE is a DuckDB file, .parquet or .csv files, a pattern of them in quotes (one table), a folder (each file,
        and each folder in it, is a table), or postgresql://user@host/database. The draft is made of names, types, keys
        and constraints: it finds who might be the privacy unit and the way from each table to it, and marks with
        "decide:" what only the owner can know. A table without a way to the unit stays in comments.

        No value of a row is printed or written, unless you ask with --look-at-data: then bounds, values and norms are
        proposed from the rows, and are no secret any more for whoever sees the schema.
        """
    examples = (
        "dpsql init patients.csv visits.csv -o draft.yaml",
        "dpsql init . --unit patients.patient_id --analyst ana --epsilon 3 -o -",
    )
    parser = add_command(commands, "init", "draft a schema from data", details, examples=examples)
    parser.add_argument("sources", metavar="SOURCE", nargs="+", help="a file, pattern, folder or postgresql://…")
    parser.add_argument("--output", "-o", metavar="FILE", help="the schema to write, or - ; named after the source")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    parser.add_argument("--unit", metavar="TABLE.COLUMN", help="whom to protect, or row; else the likeliest is taken")
    parser.add_argument("--epsilon", metavar="E", type=parse_number, help="the dataset's budget; 4")
    parser.add_argument("--delta", metavar="D", type=parse_number, help="its delta; 1e-6")
    parser.add_argument("--neighbors", choices=("add_remove", "change_one"), help="add_remove")
    parser.add_argument(
        "--analyst", metavar="NAME", action="append", default=[], dest="analysts",
        help="who may ask; several share the budget evenly",
    )  # fmt: skip
    parser.add_argument(
        "--header", action=argparse.BooleanOptionalAction, help="whether the first lines of CSV files name columns"
    )
    parser.add_argument("--look-at-data", action="store_true", help="propose bounds, values and norms from the rows")
    add_json_option(parser, "what was drafted and what is left to decide")


def add_check(commands: Subcommands[CommandParser]) -> None:
    details = """
        For the owner, not to be published: the figures are exact. It tells whether the data is as declared, what share
        of rows the bounds clip and of units the contribution norm clips, which keys are undeclared and how many of
        their groups would show, how wrong typical questions would be at the default epsilon, how many of them the
        budgets hold, and what could be set better. It charges nothing, and registers no data version.

        Exits with 0 if all is well, with 3 if something should be mended, with 1 for an error.
        """
    examples = (
        "dpsql check hospital.yaml",
        "dpsql check hospital.yaml --table visits --json",
    )
    parser = add_command(
        commands, "check", "tell the owner how well a schema fits its data", details, examples=examples
    )
    add_schema_argument(parser)
    parser.add_argument("--table", metavar="NAME", action="append", default=[], dest="tables", help="this one only")
    parser.add_argument(
        "--data", action=argparse.BooleanOptionalAction, default=True, help="read the data too, or the schema alone"
    )
    add_json_option(parser, "the report")


def add_randomize(commands: Subcommands[CommandParser]) -> None:
    details = """
        Randomized response: each answer of the column is kept with probability e^E / (e^E + k - 1), of k values, and
        otherwise replaced by one of the others. FILE is a .csv file with a header or a .parquet file, and so is the
        output; all other columns and the order of rows stay. The entry that is printed tells a schema how the column
        came about: counts are debiased by it. E is 1.0986 (ln 3) for the survey with two coins.
        """
    examples = ("dpsql randomize patients.csv --column sex --values f,m,x --null x --epsilon 1.0986 -o randomized.csv",)
    parser = add_command(
        commands, "randomize", "randomize the answers in a column of a file", details, examples=examples
    )
    parser.add_argument("file", metavar="FILE", help="a .csv or .parquet file")
    parser.add_argument("--column", metavar="NAME", required=True, help="the column with the answers")
    parser.add_argument("--values", metavar="VALUES", required=True, help="all answers, with commas between them")
    parser.add_argument(
        "--epsilon", metavar="E", type=parse_number, required=True, help="with which each answer is private"
    )
    parser.add_argument("--null", metavar="NAME", help="the answer that NULL counts as; without it NULL is an error")
    parser.add_argument("--delimiter", metavar="C", default=",", help="what stands between the fields of CSV; a comma")
    parser.add_argument("--output", "-o", metavar="FILE", required=True, help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    add_json_option(parser, "the entry")


# The commands of the owner, and what they take.


def add_owner_commands(commands: Subcommands[CommandParser]) -> None:
    add_init(commands)
    add_check(commands)
    add_randomize(commands)
    _add_budget(commands)
    _add_audit(commands)
    _add_answers(commands)
    _add_data(commands)
    _add_account(commands)
    _add_user(commands)


def _add_budget(commands: Subcommands[CommandParser]) -> None:
    details = """
        Without --user it is the owner's view of all accounts. --report tells what other accountants would say of the
        history: nothing is granted by it. RDP, PLD and the exact Gaussian need: pip install 'dpsql[accountants]'
        """
    examples = (
        "dpsql budget hospital.yaml --report",
        "dpsql budget hospital.yaml --user ana --history ana.csv",
    )
    summary = "tell what was lost and what is left, of one account or of all"
    parser = add_command(commands, "budget", summary, details, examples=examples)
    add_schema_argument(parser, server=True)
    parser.add_argument("--user", metavar="NAME", help="one analyst of the schema, with her own figures only")
    add_json_option(parser, "the figures")
    parser.add_argument("--report", action="store_true", help="also what each accountant would say of the history")
    parser.add_argument("--history", metavar="FILE", help="write the entries as CSV to a file, or to - , instead")


def _add_audit(commands: Subcommands[CommandParser]) -> None:
    details = """
        Every entry of every account is read again, also of accounts that the schema has no more: an entry that was
        changed, removed or moved is named, and each loss is computed again from its mechanisms. A receipt that someone
        holds and the ledger lacks tells of an old backup that was put back; it reads account/number/hash, as answers
        show it.

        Exits with 0 if all is well, with 3 if something was found, with 1 for an error.
        """
    summary = "verify the ledger, and the receipts that someone holds"
    parser = add_command(commands, "audit", summary, details, examples=("dpsql audit hospital.yaml",))
    add_schema_argument(parser)
    parser.add_argument(
        "--receipt", metavar="RECEIPT", nargs="+", action="extend", default=[], help="account/number/hash"
    )
    add_json_option(parser, "the findings")


def _add_answers(commands: Subcommands[CommandParser]) -> None:
    subcommands = add_actions(add_command(commands, "answers", "the owner's commands about the stored answers"))
    summary = "list the releases: what was asked, by whom it is paid, what was charged"
    list_parser = add_command(subcommands, "list", summary, examples=("dpsql answers list hospital.yaml",))
    add_schema_argument(list_parser)
    add_json_option(list_parser, "the list")
    details = """
        One JSON object a line: statement, payers, loss, and the release as it is stored, with its keys, noisy cells and
        noise.
        """
    examples = ("dpsql answers export hospital.yaml 1 2 > answers.jsonl",)
    export = add_command(subcommands, "export", "print stored releases", details, examples=examples)
    add_schema_argument(export)
    export.add_argument("numbers", metavar="NUMBER", type=int, nargs="*", help="of `answers list`; all without one")
    details = """
        Only those of data versions before the last one. Who asks again pays again. What was charged stays charged, and
        the entries stay.
        """
    examples = ("dpsql answers drop hospital.yaml --before 2026-01-31",)
    drop = add_command(
        subcommands, "drop", "forget the answers that were charged before a day", details, examples=examples
    )
    add_schema_argument(drop)
    drop.add_argument("--before", metavar="DATE", required=True, help="in UTC, such as 2026-01-31")
    add_json_option(drop, "how many")


def _add_data(commands: Subcommands[CommandParser]) -> None:
    subcommands = add_actions(add_command(commands, "data", "the owner's commands about the data behind a schema"))
    summary = "check the data as it is now and serve it as the next version"
    details = """
        Files are pinned when they are registered; when they change, nothing is served until this is run.
        Releases of earlier versions stay paid for, and what was charged stays charged.
        """
    changed = add_command(subcommands, "changed", summary, details, examples=("dpsql data changed hospital.yaml",))
    add_schema_argument(changed)
    add_json_option(changed, "the version")


def _add_account(commands: Subcommands[CommandParser]) -> None:
    subcommands = add_actions(add_command(commands, "account", "the owner's commands about the accounts in a ledger"))
    summary = "let an account ask again that was suspended after failed runs"
    resume = add_command(subcommands, "resume", summary, examples=("dpsql account resume hospital.yaml ana",))
    add_schema_argument(resume)
    resume.add_argument("name", metavar="NAME", help="an analyst of the schema, or dataset")
    add_json_option(resume, "the account")
    details = """
        A budget that is raised in the schema counts only once it is recorded here, as an entry in the ledger. What was
        charged stays charged.
        """
    summary = "record the budget that the schema now gives to an account"
    grant = add_command(subcommands, "grant", summary, details, examples=("dpsql account grant hospital.yaml ana",))
    add_schema_argument(grant)
    grant.add_argument("name", metavar="NAME", help="an analyst or group of the schema, or dataset")
    add_json_option(grant, "the budget")


def _add_user(commands: Subcommands[CommandParser]) -> None:
    subcommands = add_actions(add_command(commands, "user", "the owner's commands about the analysts of a schema"))
    details = """
        A password is asked for twice, and the schema gets a SCRAM-SHA-256 verifier of it, never the password itself.
        It counts for connections to a server; who opens the schema in process has the file anyway. Comments and layout
        of the file stay.
        """
    examples = (
        "dpsql user add hospital.yaml bob --epsilon 1 --delta 1e-8 --generate",
        "echo correct-horse-battery-staple | dpsql user add hospital.yaml ana --password-stdin",
    )
    summary = "add an analyst to the schema, or give one a password"
    add = add_command(subcommands, "add", summary, details, examples=examples)
    add_schema_argument(add)
    add.add_argument("name", metavar="NAME", help="the analyst's name")
    add.add_argument("--epsilon", metavar="E", type=parse_number, help="the budget of a new analyst")
    add.add_argument("--delta", metavar="D", type=parse_number, help="the delta of a new analyst's budget")
    password_group = add.add_mutually_exclusive_group()
    password_group.add_argument(
        "--password-stdin", action="store_true", help="the password is the first line that comes in"
    )
    password_group.add_argument("--generate", action="store_true", help="make a password, and print it once")
    password_group.add_argument("--no-password", action="store_true", help="a new analyst, without a password")
    add.add_argument("--force", action="store_true", help="replace a password without asking")
    add_json_option(add, "what was done")
    summary = "list the analysts: their budgets, and whether they have a password"
    list_parser = add_command(subcommands, "list", summary, examples=("dpsql user list hospital.yaml",))
    add_schema_argument(list_parser)
    add_json_option(list_parser, "the list")
    details = """
        What was charged to the account stays charged, and its entries stay in the ledger.
        """
    summary = "remove an analyst from the schema"
    remove = add_command(
        subcommands, "remove", summary, details, examples=("dpsql user remove hospital.yaml ana --force",)
    )
    add_schema_argument(remove)
    remove.add_argument("name", metavar="NAME", help="an analyst of the schema")
    remove.add_argument("--force", action="store_true", help="do not ask")
    add_json_option(remove, "what was done")


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
    parser.add_argument("--version", action="version", version=f"dpsql {VERSION}")
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True, parser_class=CommandParser, prog="dpsql"
    )
    _add_repl(commands)
    _add_query(commands)
    _add_explain(commands)
    add_serve(commands)
    add_owner_commands(commands)
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
    return {
        name: command_parser
        for word, inner in subcommands.items()
        for name, command_parser in list_commands(inner, (*words, word)).items()
    }


def subcommands_of(parser: argparse.ArgumentParser) -> dict[str, CommandParser] | None:
    """The commands that a word may choose next; None where none follow."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return None


def _add_repl(commands: Subcommands[CommandParser]) -> None:
    details = """
        A prompt with completion, history and the price of what is typed; \\? there lists its commands. The word repl
        may be left out. Where the input is no terminal, its statements are asked one after the other, and the first
        error ends it.
        """
    examples = (
        'dpsql hospital.yaml --user ana -c "SHOW TABLES"',
        'echo "SELECT sex, COUNT(*) FROM patients GROUP BY sex" | dpsql hospital.yaml --user ana --csv',
    )
    parser = add_command(commands, "repl", "open a SQL prompt", details, examples=examples)
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
    summary = "run a statement and print the released rows"
    parser = add_command(commands, "query", summary, _STATEMENT_HELP, examples=examples)
    _add_statement(parser)
    add_format_options(parser)


def _add_explain(commands: Subcommands[CommandParser]) -> None:
    examples = ('dpsql explain hospital.yaml "SELECT COUNT(*) FROM visits" --user ana --epsilon 0.5',)
    summary = "tell what a statement would be charged and how good it would be; free"
    parser = add_command(commands, "explain", summary, _STATEMENT_HELP, examples=examples)
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
    summary = "try the privacy claims on made-up neighboring databases"
    details = """
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
    parser = add_command(commands, "verify", summary, details, examples=examples)
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
    summary = "make a small fictional hospital and ask it a few questions"
    parser = add_command(commands, "demo", summary, examples=("dpsql demo --keep another",))
    parser.add_argument("--keep", metavar="DIR", help="make it in this new or empty folder, and leave it there")


def _add_completion(commands: Subcommands[CommandParser]) -> None:
    details = """
        Put one of these where your shell starts:

          bash   eval "$(dpsql completion bash)"                                         in ~/.bashrc
          zsh    eval "$(dpsql completion zsh)"                                          in ~/.zshrc, after compinit
          fish   dpsql completion fish > ~/.config/fish/completions/dpsql.fish           once
        """
    summary = "print a script that lets a shell complete commands, options and files"
    parser = add_command(commands, "completion", summary, details, examples=('eval "$(dpsql completion bash)"',))
    parser.add_argument("shell", metavar="SHELL", choices=SHELL_NAMES, help="bash, zsh or fish")


def _add_help(commands: Subcommands[CommandParser]) -> None:
    examples = ("dpsql help query", "dpsql help answers list")
    parser = add_command(commands, "help", "tell what a command does", examples=examples)
    parser.add_argument("words", metavar="COMMAND", nargs="*", help="a command, such as query or answers list")


# From the words of a command line to a command: a schema alone means the prompt, and a word that is no command is told
# what it is near to.

_PARSER_OPTIONS = ("-h", "--help", "--version")


def route_arguments(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> list[str]:
    """The arguments with their command: `help` where there are none, `repl` where they begin with a schema or with an
    option of its own."""
    words = list(arguments)
    if not words:
        return ["help"]
    commands = subcommands_of(parser) or {}
    if words[0] in commands or words[0] in _PARSER_OPTIONS:
        _check_subcommands(parser, words)
        return words
    if not words[0].startswith("-") and not is_schema(words[0]):
        parser.error(unknown_command_message(words[0], list(commands)))
    return ["repl", *words]


def is_schema(text: str) -> bool:
    """Whether the text names a schema file or a server."""
    url = text.lower().startswith("dpsql:") or is_server_url(text)
    return url or text.lower().endswith((".yaml", ".yml")) or os.path.isfile(text)


def unknown_command_message(word: str, command_names: Sequence[str]) -> str:
    matches = difflib.get_close_matches(word, command_names, 1)
    details = f'; did you mean "{matches[0]}"?' if matches else f"; there are {', '.join(command_names)}"
    return f'there is no command "{word}"{details}'


def _check_subcommands(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """The second word of `answers list`, which argparse would only list the choices for."""
    subcommands = subcommands_of(parser)
    for word in words:
        if subcommands is None or word.startswith("-"):
            return
        if word not in subcommands:
            parser.error(unknown_command_message(word, list(subcommands)))
        parser, subcommands = subcommands[word], subcommands_of(subcommands[word])
