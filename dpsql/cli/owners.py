"""The commands of the owner, and what they take."""

from __future__ import annotations

from dpsql.cli.options import Subcommands, CommandParser, add_actions, add_json_option, add_schema_argument, add_command, parse_number
from dpsql.cli.owner_arguments import add_check, add_init, add_randomize


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
    more = """
        Without --user it is the owner's view of all accounts. --report tells what other accountants would say of the
        history: nothing is granted by it. RDP and PLD need: pip install 'dpsql[accountants]'
        """
    examples = (
        "dpsql budget hospital.yaml --report",
        "dpsql budget hospital.yaml --user ana --history ana.csv",
    )
    what = "tell what was lost and what is left, of one account or of all"
    parser = add_command(commands, "budget", what, more, examples=examples)
    add_schema_argument(parser, server=True)
    parser.add_argument("--user", metavar="NAME", help="one analyst of the schema, with her own figures only")
    add_json_option(parser, "the figures")
    parser.add_argument("--report", action="store_true", help="also what each accountant would say of the history")
    parser.add_argument("--history", metavar="FILE", help="write the entries as CSV to a file, or to - , instead")


def _add_audit(commands: Subcommands[CommandParser]) -> None:
    more = """
        Every entry of every account is read again, also of accounts that the schema has no more: an entry that was
        changed, removed or moved is named, and each loss is computed again from its mechanisms. A receipt that someone
        holds and the ledger lacks tells of an old backup that was put back; it reads account/number/hash, as answers
        show it.

        Exits with 0 if all is well, with 3 if something was found, with 1 for an error.
        """
    what = "verify the ledger, and the receipts that someone holds"
    parser = add_command(commands, "audit", what, more, examples=("dpsql audit hospital.yaml",))
    add_schema_argument(parser)
    parser.add_argument(
        "--receipt", metavar="RECEIPT", nargs="+", action="extend", default=[], help="account/number/hash"
    )
    add_json_option(parser, "the findings")


def _add_answers(commands: Subcommands[CommandParser]) -> None:
    subcommands = add_actions(add_command(commands, "answers", "the owner's commands about the stored answers"))
    what = "list the releases: what was asked, by whom it is paid, what was charged"
    list_parser = add_command(subcommands, "list", what, examples=("dpsql answers list hospital.yaml",))
    add_schema_argument(list_parser)
    add_json_option(list_parser, "the list")
    more = """
        One JSON object a line: statement, payers, loss, and the release as it is stored, with its keys, noisy cells and
        noise.
        """
    examples = ("dpsql answers export hospital.yaml 1 2 > answers.jsonl",)
    export = add_command(subcommands, "export", "print stored releases", more, examples=examples)
    add_schema_argument(export)
    export.add_argument("numbers", metavar="NUMBER", type=int, nargs="*", help="of `answers list`; all without one")
    more = """
        Only those of data versions before the last one. Who asks again pays again. What was charged stays charged, and
        the entries stay.
        """
    examples = ("dpsql answers drop hospital.yaml --before 2026-01-31",)
    drop = add_command(subcommands, "drop", "forget the answers that were charged before a day", more, examples=examples)
    add_schema_argument(drop)
    drop.add_argument("--before", metavar="DATE", required=True, help="in UTC, such as 2026-01-31")
    add_json_option(drop, "how many")


def _add_data(commands: Subcommands[CommandParser]) -> None:
    subcommands = add_actions(add_command(commands, "data", "the owner's commands about the data behind a schema"))
    what = "check the data as it is now and serve it as the next version"
    more = """
        Files are pinned when they are registered; when they change, nothing is served until this is run.
        Releases of earlier versions stay paid for, and what was charged stays charged.
        """
    changed = add_command(subcommands, "changed", what, more, examples=("dpsql data changed hospital.yaml",))
    add_schema_argument(changed)
    add_json_option(changed, "the version")


def _add_account(commands: Subcommands[CommandParser]) -> None:
    subcommands = add_actions(add_command(commands, "account", "the owner's commands about the accounts in a ledger"))
    what = "let an account ask again that was suspended after failed runs"
    resume = add_command(subcommands, "resume", what, examples=("dpsql account resume hospital.yaml ana",))
    add_schema_argument(resume)
    resume.add_argument("name", metavar="NAME", help="an analyst of the schema, or dataset")
    add_json_option(resume, "the account")
    more = """
        A budget that is raised in the schema counts only once it is recorded here, as an entry in the ledger. What was
        charged stays charged.
        """
    what = "record the budget that the schema now gives to an account"
    grant = add_command(subcommands, "grant", what, more, examples=("dpsql account grant hospital.yaml ana",))
    add_schema_argument(grant)
    grant.add_argument("name", metavar="NAME", help="an analyst or group of the schema, or dataset")
    add_json_option(grant, "the budget")


def _add_user(commands: Subcommands[CommandParser]) -> None:
    subcommands = add_actions(add_command(commands, "user", "the owner's commands about the analysts of a schema"))
    more = """
        A password is asked for twice, and the schema gets a SCRAM-SHA-256 verifier of it, never the password itself.
        It counts for connections to a server; who opens the schema in process has the file anyway. Comments and layout
        of the file stay.
        """
    examples = (
        "dpsql user add hospital.yaml bob --epsilon 1 --delta 1e-8 --generate",
        "echo correct-horse-battery-staple | dpsql user add hospital.yaml ana --password-stdin",
    )
    what = "add an analyst to the schema, or give one a password"
    add = add_command(subcommands, "add", what, more, examples=examples)
    add_schema_argument(add)
    add.add_argument("name", metavar="NAME", help="the analyst's name")
    add.add_argument("--epsilon", metavar="E", type=parse_number, help="the budget of a new analyst")
    add.add_argument("--delta", metavar="D", type=parse_number, help="the delta of a new analyst's budget")
    password_group = add.add_mutually_exclusive_group()
    password_group.add_argument("--password-stdin", action="store_true", help="the password is the first line that comes in")
    password_group.add_argument("--generate", action="store_true", help="make a password, and print it once")
    password_group.add_argument("--no-password", action="store_true", help="a new analyst, without a password")
    add.add_argument("--force", action="store_true", help="replace a password without asking")
    add_json_option(add, "what was done")
    what = "list the analysts: their budgets, and whether they have a password"
    list_parser = add_command(subcommands, "list", what, examples=("dpsql user list hospital.yaml",))
    add_schema_argument(list_parser)
    add_json_option(list_parser, "the list")
    more = """
        What was charged to the account stays charged, and its entries stay in the ledger.
        """
    what = "remove an analyst from the schema"
    remove = add_command(subcommands, "remove", what, more, examples=("dpsql user remove hospital.yaml ana --force",))
    add_schema_argument(remove)
    remove.add_argument("name", metavar="NAME", help="an analyst of the schema")
    remove.add_argument("--force", action="store_true", help="do not ask")
    add_json_option(remove, "what was done")
