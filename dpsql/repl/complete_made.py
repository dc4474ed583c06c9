"""Candidates around what an account makes: options in WITH (…) and OPTIONS (…), and the names of its own objects."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.lex import Kind, Token
from dpsql.option_names import (
    LINEAR_METHODS,
    LOGISTIC_METHODS,
    MADE_BY,
    OF_MODELS,
    OF_QUERIES,
    OF_STATEMENTS,
    OF_TABLES,
    OptionName,
    choices_of,
)
from dpsql.repl.around import Around
from dpsql.repl.menu import Menu
from dpsql.repl.naming import Names, literal


def said(statement: Sequence[Token], cursor: int) -> list[str]:
    """The words before the cursor, without EXPLAIN."""
    kept = [token for token in statement if token.kind not in (Kind.SPACE, Kind.COMMENT) and token.end <= cursor]
    words = [token.text.lower() for token in kept]
    return words[1:] if words[:1] == ["explain"] else words


def known_options(around: Around, words: Sequence[str]) -> tuple[OptionName, ...] | None:
    """Those of the parenthesis that the cursor is in; None where it is in none of options."""
    opener = around.opener
    if opener == "options":
        return OF_QUERIES
    if opener != "with" or words[:1] != ["create"]:
        return None
    if "synthetic" in words[:5]:
        return (*OF_STATEMENTS, *OF_TABLES)
    methods = LINEAR_METHODS if "linear" in words else LOGISTIC_METHODS
    own = tuple(OptionName("method", methods) if one.name == "method" else one for one in OF_MODELS)
    return (*OF_STATEMENTS, *own)


def complete_options(menu: Menu, around: Around, options: tuple[OptionName, ...]) -> None:
    if around.last in ("(", ","):
        given = {one for one, sign in zip(around.words, around.words[1:], strict=False) if sign == "="}
        for one in options:
            if one.name not in given:
                menu.add("setting", one.name, f"{one.name} = ", ", ".join(one.choices), one.name)
    elif around.last == "=":
        for choice in choices_of(around.before_last, options):
            menu.add("value", choice, choice)


def complete_text(menu: Menu, around: Around, options: tuple[OptionName, ...], written: str, next_: str) -> None:
    """The same within quotes."""
    menu.typed = written[1:]
    for choice in choices_of(around.before_last, options) if around.last == "=" else ():
        text = literal(choice)
        menu.add("value", choice, text[:-1] if next_ == "'" else text, "", text)


def is_finished(around: Around, words: Sequence[str]) -> bool:
    """Whether the options of a CREATE stand there, behind which nothing can."""
    return words[:1] == ["create"] and around.words[-2:] == ["with", ")"]


def models(menu: Menu, names: Names) -> None:
    for one in names.functions:
        if one.kind == "model":
            menu.name("table", one.name, "model")


def synthetic_tables(menu: Menu, names: Names) -> None:
    for table in names.tables:
        if (table.description or "").startswith(MADE_BY):
            menu.name("table", table.name, "synthetic table")


def complete_own(menu: Menu, words: Sequence[str], names: Names) -> bool:
    """Names behind SHOW and DROP of models and synthetic tables; whether one was asked for."""
    behind = [word for word in words if word not in ("if", "exists")]
    if behind == ["model"]:
        models(menu, names)
    elif behind == ["synthetic", "table"]:
        synthetic_tables(menu, names)
    elif behind == ["synthetic"]:
        menu.words("TABLE")
    else:
        return False
    return True
