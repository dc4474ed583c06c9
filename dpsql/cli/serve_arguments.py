"""What `dpsql serve` takes."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from dpsql.cli.options import Subcommands, CommandParser, add_command

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
    more = """
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
    parser = add_command(commands, "serve", "serve schemas to all that speaks to PostgreSQL", more, examples=examples)
    parser.add_argument("schemas", metavar="SCHEMA", nargs="+", help="a YAML schema; each is a database")
    parser.add_argument("--host", metavar="ADDRESS", action="append", help="where to listen; several times for several")
    parser.add_argument("--port", metavar="N", type=make_integer_parser(0, 65535), default=5433, help="5433; 0 takes a free one")
    parser.add_argument("--socket", metavar="DIR", help="listen on a socket in this folder too")
    _add_tls(parser)
    _add_bounds(parser)
    parser.add_argument("--metrics-port", metavar="N", type=make_integer_parser(0, 65535), help="serve /health and /metrics there")
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
    parser.add_argument("--threads", metavar="N", type=make_integer_parser(1, 1024), default=64, help="statements at once; 64")
    parser.add_argument("--max-connections", metavar="N", type=make_integer_parser(1, 10**5), default=500, help="of all; 500")
    parser.add_argument("--max-user-connections", metavar="N", type=make_integer_parser(1, 10**5), default=200, help="of one; 200")
    parser.add_argument(
        "--idle-timeout", metavar="SECONDS", type=parse_seconds, default=0.0, help="close connections that ask nothing; never"
    )
    parser.add_argument(
        "--grace", metavar="SECONDS", type=parse_seconds, default=30.0, help="for running answers, at the end; 30"
    )
