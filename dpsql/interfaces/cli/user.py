"""`dpsql user`: the owner adds, lists and removes the analysts of a schema."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from pathlib import Path

from dpsql.amounts import format_rounded_up
from dpsql.errors import InterfaceError
from dpsql.interfaces.dbapi.url import schema_path
from dpsql.interfaces.display.cells import FormattedNumber
from dpsql.interfaces.display.table import print_table
from dpsql.interfaces.display.terminal import Screen, UsageError
from dpsql.owner.users import (
    User,
    add_user,
    check_password,
    find_user,
    generate_password,
    is_world_readable,
    list_users,
    remove_user,
    set_user_password,
)

_HEADINGS = ("user", "of epsilon", "at delta", "parent", "password")


def run(args: argparse.Namespace, screen: Screen) -> None:
    path = schema_path(args.schema)
    match args.action:
        case "add":
            _add_analyst(path, args, screen)
        case "list":
            _list_analysts(path, args.json, screen)
        case "remove":
            _remove_analyst(path, args, screen)


def _add_analyst(path: Path, args: argparse.Namespace, screen: Screen) -> None:
    user, first = find_user(path, args.name), not list_users(path)
    if user is None and (args.epsilon is None or args.delta is None):
        raise UsageError(f'"{args.name}" is new: give the budget by --epsilon and --delta')
    if user is not None and (args.epsilon is not None or args.delta is not None):
        raise UsageError(f'"{args.name}" has a budget; change it in the schema, and record it by dpsql account grant')
    if user is not None and args.no_password:
        raise UsageError(f'there is an analyst "{args.name}" already')
    if user is not None and user.password != "none" and not args.force:
        _require_agreement(f'"{user.name}" has a password. Replace it?', args)
    password = None if args.no_password else _read_password(args)
    if user is None:
        add_user(path, args.name, args.epsilon, args.delta, password, os.urandom)
    elif password is not None:
        set_user_password(path, args.name, password, os.urandom)
    shown_password = password if args.generate else None
    if args.json:
        done = {
            "user": args.name,
            "added": user is None,
            "has_password": password is not None,
            "password": shown_password,
        }
        screen.print(json.dumps(done, indent=2))
        return
    what = f'the analyst "{args.name}" is in the schema now' if user is None else f'"{args.name}" has a new password'
    screen.print(what)
    if shown_password is not None:
        screen.print(f"password: {shown_password}")
        screen.print_note("It is stored nowhere: the schema has a verifier, from which nobody can log in.")
    if password is not None and is_world_readable(path):
        screen.print_note(
            f"NOTICE:  everyone here can read the schema, and try passwords on it; write: chmod 640 {path}"
        )
    if first and user is None:
        screen.print_note("NOTICE:  she is the first analyst: from now on, who connects must name one")


def _read_password(args: argparse.Namespace) -> str:
    if args.generate:
        return generate_password(os.urandom)
    if args.password_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise UsageError(
            "there is no terminal to ask for a password: give --password-stdin, --generate or --no-password"
        )
    password = getpass.getpass(f"Password for {args.name}: ")
    check_password(password)
    if getpass.getpass("Again: ") != password:
        raise InterfaceError("the two passwords differ", hint="Nothing was changed; try it again.")
    return password


def _require_agreement(question: str, args: argparse.Namespace) -> None:
    """The owner says yes, or nothing is done."""
    if getattr(args, "password_stdin", False) or not sys.stdin.isatty():
        raise UsageError(f"{question} There is no terminal to ask at: agree by --force")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InterfaceError("nothing was changed")


def _list_analysts(path: Path, as_json: bool, screen: Screen) -> None:
    analysts = list_users(path)
    if as_json:
        screen.print(json.dumps([_user_to_json(user) for user in analysts], indent=2))
    elif analysts:
        print_table(screen, _HEADINGS, [_user_row(user) for user in analysts])
    else:
        screen.print("the schema has no analysts: who opens it asks as the dataset")


def _user_row(user: User) -> tuple[object, ...]:
    budget = user.budget
    return (
        user.name,
        FormattedNumber(format_rounded_up(budget.epsilon)),
        FormattedNumber(format_rounded_up(budget.delta)),
        user.parent,
        user.password,
    )


def _user_to_json(user: User) -> dict[str, object]:
    return {
        "user": user.name,
        "epsilon": float(user.budget.epsilon),
        "delta": float(user.budget.delta),
        "parent": user.parent,
        "password": user.password,
    }


def _remove_analyst(path: Path, args: argparse.Namespace, screen: Screen) -> None:
    if not args.force and find_user(path, args.name) is not None:
        _require_agreement(f'Remove "{args.name}" from the schema?', args)
    remove_user(path, args.name)
    message = f'the analyst "{args.name}" is no more in the schema; what was charged stays charged'
    screen.print(json.dumps({"user": args.name, "removed": True}) if args.json else message)
