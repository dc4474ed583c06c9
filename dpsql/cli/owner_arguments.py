"""What `dpsql init`, `dpsql check` and `dpsql randomize` take."""

from __future__ import annotations

import argparse

from dpsql.cli.options import Subcommands, CommandParser, add_json_option, add_schema_argument, add_command, parse_number


def add_init(commands: Subcommands[CommandParser]) -> None:
    more = """
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
    parser = add_command(commands, "init", "draft a schema from data", more, examples=examples)
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
    more = """
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
    parser = add_command(commands, "check", "tell the owner how well a schema fits its data", more, examples=examples)
    add_schema_argument(parser)
    parser.add_argument("--table", metavar="NAME", action="append", default=[], dest="tables", help="this one only")
    parser.add_argument(
        "--data", action=argparse.BooleanOptionalAction, default=True, help="read the data too, or the schema alone"
    )
    add_json_option(parser, "the report")


def add_randomize(commands: Subcommands[CommandParser]) -> None:
    more = """
        Randomized response: each answer of the column is kept with probability e^E / (e^E + k - 1), of k values, and
        otherwise replaced by one of the others. FILE is a .csv file with a header or a .parquet file, and so is the
        output; all other columns and the order of rows stay. The entry that is printed tells a schema how the column
        came about: counts are debiased by it. E is 1.0986 (ln 3) for the survey with two coins.
        """
    examples = ("dpsql randomize patients.csv --column sex --values f,m,x --null x --epsilon 1.0986 -o randomized.csv",)
    parser = add_command(commands, "randomize", "randomize the answers in a column of a file", more, examples=examples)
    parser.add_argument("file", metavar="FILE", help="a .csv or .parquet file")
    parser.add_argument("--column", metavar="NAME", required=True, help="the column with the answers")
    parser.add_argument("--values", metavar="VALUES", required=True, help="all answers, with commas between them")
    parser.add_argument("--epsilon", metavar="E", type=parse_number, required=True, help="with which each answer is private")
    parser.add_argument("--null", metavar="NAME", help="the answer that NULL counts as; without it NULL is an error")
    parser.add_argument("--delimiter", metavar="C", default=",", help="what stands between the fields of CSV; a comma")
    parser.add_argument("--output", "-o", metavar="FILE", required=True, help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    add_json_option(parser, "the entry")
