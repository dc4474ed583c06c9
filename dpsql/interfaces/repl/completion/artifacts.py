"""Candidates for models and synthetic tables: options in WITH (…) and OPTIONS (…), and the account's own names."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.base.lexer import Token, TokenKind
from dpsql.base.option_names import (
    LINEAR_METHODS,
    LOGISTIC_METHODS,
    MODEL_OPTIONS,
    QUERY_OPTIONS,
    STATEMENT_OPTIONS,
    SYNTHETIC_PREFIX,
    SYNTHETIC_TABLE_OPTIONS,
    OptionName,
    list_option_choices,
)
from dpsql.interfaces.repl.completion.candidates import CandidateMenu, CompletionNames, quote_literal
from dpsql.interfaces.repl.completion.context import CursorContext


def words_before_cursor(statement: Sequence[Token], cursor: int) -> list[str]:
    """The words before the cursor, without EXPLAIN."""
    tokens = [
        token for token in statement if token.kind not in (TokenKind.SPACE, TokenKind.COMMENT) and token.end <= cursor
    ]
    words = [token.text.lower() for token in tokens]
    return words[1:] if words[:1] == ["explain"] else words


def options_at_cursor(context: CursorContext, words: Sequence[str]) -> tuple[OptionName, ...] | None:
    """Those of the parenthesis that the cursor is in; None where it is in none of options."""
    opener = context.opener
    if opener == "options":
        return QUERY_OPTIONS
    if opener != "with" or words[:1] != ["create"]:
        return None
    if "synthetic" in words[:5]:
        return (*STATEMENT_OPTIONS, *SYNTHETIC_TABLE_OPTIONS)
    methods = LINEAR_METHODS if "linear" in words else LOGISTIC_METHODS
    model_options = tuple(
        OptionName("method", methods) if option.name == "method" else option for option in MODEL_OPTIONS
    )
    return (*STATEMENT_OPTIONS, *model_options)


def complete_options(menu: CandidateMenu, context: CursorContext, options: tuple[OptionName, ...]) -> None:
    if context.last in ("(", ","):
        set_names = {option for option, sign in zip(context.words, context.words[1:], strict=False) if sign == "="}
        for option in options:
            if option.name not in set_names:
                menu.add("setting", option.name, f"{option.name} = ", ", ".join(option.choices), option.name)
    elif context.last == "=":
        for choice in list_option_choices(context.before_last, options):
            menu.add("value", choice, choice)


def complete_option_text(
    menu: CandidateMenu, context: CursorContext, options: tuple[OptionName, ...], typed_text: str, next_: str
) -> None:
    """Complete the value of an option within quotes."""
    menu.typed = typed_text[1:]
    for choice in list_option_choices(context.before_last, options) if context.last == "=" else ():
        text = quote_literal(choice)
        menu.add("value", choice, text[:-1] if next_ == "'" else text, "", text)


def is_after_create_options(context: CursorContext, words: Sequence[str]) -> bool:
    """Whether the options of a CREATE stand there, behind which nothing can."""
    return words[:1] == ["create"] and context.words[-2:] == ["with", ")"]


def add_models(menu: CandidateMenu, names: CompletionNames) -> None:
    for function in names.functions:
        if function.kind == "model":
            menu.add_name("table", function.name, "model")


def add_synthetic_tables(menu: CandidateMenu, names: CompletionNames) -> None:
    for table in names.tables:
        if (table.description or "").startswith(SYNTHETIC_PREFIX):
            menu.add_name("table", table.name, "synthetic table")


def complete_object_names(menu: CandidateMenu, words: Sequence[str], names: CompletionNames) -> bool:
    """Names behind SHOW and DROP of models and synthetic tables; whether one was asked for."""
    tail = [word for word in words if word not in ("if", "exists")]
    if tail == ["model"]:
        add_models(menu, names)
    elif tail == ["synthetic", "table"]:
        add_synthetic_tables(menu, names)
    elif tail == ["synthetic"]:
        menu.add_keywords("TABLE")
    else:
        return False
    return True
