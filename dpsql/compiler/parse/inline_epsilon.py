"""Epsilon and delta in a statement's own options, where SET has no effect: what to write for another charge."""

from __future__ import annotations

from itertools import pairwise

from dpsql.base.lexer import TokenKind, split_tokens
from dpsql.compiler.parse.create_commands import CreateCommand, read_artifact_command
from dpsql.compiler.parse.googlesql import PRIVACY_CLAUSES, extract_options
from dpsql.compiler.parse.parser import tokenize


def option_templates_of(sql: str) -> tuple[str, str]:
    """Of epsilon and of delta, each with {} for the figure.

    >>> option_templates_of("SELECT COUNT(*) FROM visits")
    ('SET epsilon = {}', 'SET delta = {}')
    >>> option_templates_of("CREATE SYNTHETIC TABLE v AS SELECT ward FROM visits WITH (epsilon = 9)")
    ('WITH (epsilon = {})', 'SET delta = {}')
    >>> option_templates_of("SELECT RANDOMIZED(answer, 9) FROM people")[0]
    'RANDOMIZED(…, {})'
    """
    epsilon, delta = (_option_template(name, sql) for name in ("epsilon", "delta"))
    return ("RANDOMIZED(…, {})", delta) if _is_randomized(sql) else (epsilon, delta)


def _option_template(name: str, sql: str) -> str:
    clause, names = _read_options_clause(sql) if name in sql.lower() else ("", ())
    return f"{clause} ({name} = {{}})" if name in names else f"SET {name} = {{}}"


def _read_options_clause(sql: str) -> tuple[str, tuple[str, ...]]:
    """The names of a statement's options, and what stands before them."""
    command = read_artifact_command(sql)
    if isinstance(command, CreateCommand):
        return "WITH", tuple(option.name for option in command.options)
    if not any(clause in sql.upper() for clause in PRIVACY_CLAUSES):
        return "", ()
    _, options = extract_options(tokenize(sql))
    return "OPTIONS", tuple(option.name for option in options or ())


def _is_randomized(sql: str) -> bool:
    if "randomized" not in sql.lower():
        return False
    words = [token for token in split_tokens(sql) if token.kind not in (TokenKind.SPACE, TokenKind.COMMENT)]
    return any(word.text.lower() == "randomized" and next_word.text == "(" for word, next_word in pairwise(words))
