"""`dpsql user`: the owner adds, lists and removes the analysts of a schema."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from pathlib import Path

from dpsql.dbapi.address import schema_path
from dpsql.display.cells import Figure
from dpsql.display.screen import Screen, Usage
from dpsql.display.table import print_table
from dpsql.errors import InterfaceError
from dpsql.figures import short_up
from dpsql.owner.users import (
    User,
    add_user,
    check_password,
    give_password,
    make_password,
    others_can_read,
    remove_user,
    user_named,
    users,
)

_HEADS = ("user", "of epsilon", "at delta", "parent", "password")


def run(given: argparse.Namespace, screen: Screen) -> None:
    path = schema_path(given.schema)
    match given.action:
        case "add":
            _add(path, given, screen)
        case "list":
            _list(path, given.json, screen)
        case "remove":
            _remove(path, given, screen)


def _add(path: Path, given: argparse.Namespace, screen: Screen) -> None:
    known, first = user_named(path, given.name), not users(path)
    if known is None and (given.epsilon is None or given.delta is None):
        raise Usage(f'"{given.name}" is new: give the budget by --epsilon and --delta')
    if known is not None and (given.epsilon is not None or given.delta is not None):
        raise Usage(f'"{given.name}" has a budget; change it in the schema, and record it by dpsql account grant')
    if known is not None and given.no_password:
        raise Usage(f'there is an analyst "{given.name}" already')
    if known is not None and known.password != "none" and not given.force:
        _agree(f'"{known.name}" has a password. Replace it?', given)
    password = None if given.no_password else _password(given)
    if known is None:
        add_user(path, given.name, given.epsilon, given.delta, password, os.urandom)
    elif password is not None:
        give_password(path, given.name, password, os.urandom)
    shown = password if given.generate else None
    if given.json:
        done = {"user": given.name, "added": known is None, "has_password": password is not None, "password": shown}
        screen.print(json.dumps(done, indent=2))
        return
    what = f'the analyst "{given.name}" is in the schema now' if known is None else f'"{given.name}" has a new password'
    screen.print(what)
    if shown is not None:
        screen.print(f"password: {shown}")
        screen.note("It is stored nowhere: the schema has a verifier, from which nobody can log in.")
    if password is not None and others_can_read(path):
        screen.note(f"NOTICE:  everyone here can read the schema, and try passwords on it; write: chmod 640 {path}")
    if first and known is None:
        screen.note("NOTICE:  she is the first analyst: from now on, who connects must name one")


def _password(given: argparse.Namespace) -> str:
    if given.generate:
        return make_password(os.urandom)
    if given.password_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise Usage("there is no terminal to ask for a password: give --password-stdin, --generate or --no-password")
    password = getpass.getpass(f"Password for {given.name}: ")
    check_password(password)
    if getpass.getpass("Again: ") != password:
        raise InterfaceError("the two passwords differ", hint="Nothing was changed; try it again.")
    return password


def _agree(question: str, given: argparse.Namespace) -> None:
    """The owner says yes, or nothing is done."""
    if getattr(given, "password_stdin", False) or not sys.stdin.isatty():
        raise Usage(f"{question} There is no terminal to ask at: agree by --force")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InterfaceError("nothing was changed")


def _list(path: Path, as_json: bool, screen: Screen) -> None:
    found = users(path)
    if as_json:
        screen.print(json.dumps([_told(user) for user in found], indent=2))
    elif found:
        print_table(screen, _HEADS, [_row(user) for user in found])
    else:
        screen.print("the schema has no analysts: who opens it asks as the dataset")


def _row(user: User) -> tuple[object, ...]:
    budget = user.budget
    return user.name, Figure(short_up(budget.epsilon)), Figure(short_up(budget.delta)), user.parent, user.password


def _told(user: User) -> dict[str, object]:
    return {
        "user": user.name,
        "epsilon": float(user.budget.epsilon),
        "delta": float(user.budget.delta),
        "parent": user.parent,
        "password": user.password,
    }


def _remove(path: Path, given: argparse.Namespace, screen: Screen) -> None:
    if not given.force and user_named(path, given.name) is not None:
        _agree(f'Remove "{given.name}" from the schema?', given)
    remove_user(path, given.name)
    told = f'the analyst "{given.name}" is no more in the schema; what was charged stays charged'
    screen.print(json.dumps({"user": given.name, "removed": True}) if given.json else told)
