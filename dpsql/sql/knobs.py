"""Where a statement says its own epsilon and delta: what to write for another charge. SET has no effect on those."""

from __future__ import annotations

from itertools import pairwise

from dpsql.lex import Kind, tokens
from dpsql.sql.made_commands import CreateCommand, read_made_command
from dpsql.sql.options import CLAUSES, take_options
from dpsql.sql.parse import tokenize


def knobs_of(sql: str) -> tuple[str, str]:
    """Of epsilon and of delta, each with {} for the figure.

    >>> knobs_of("SELECT COUNT(*) FROM visits")
    ('SET epsilon = {}', 'SET delta = {}')
    >>> knobs_of("CREATE SYNTHETIC TABLE v AS SELECT ward FROM visits WITH (epsilon = 9)")
    ('WITH (epsilon = {})', 'SET delta = {}')
    >>> knobs_of("SELECT RANDOMIZED(answer, 9) FROM people")[0]
    'RANDOMIZED(…, {})'
    """
    epsilon, delta = (_knob(name, sql) for name in ("epsilon", "delta"))
    return ("RANDOMIZED(…, {})", delta) if _randomizes(sql) else (epsilon, delta)


def _knob(name: str, sql: str) -> str:
    clause, given = _options(sql) if name in sql.lower() else ("", ())
    return f"{clause} ({name} = {{}})" if name in given else f"SET {name} = {{}}"


def _options(sql: str) -> tuple[str, tuple[str, ...]]:
    """The names of a statement's options, and what stands before them."""
    command = read_made_command(sql)
    if isinstance(command, CreateCommand):
        return "WITH", tuple(option.name for option in command.options)
    if not any(clause in sql.upper() for clause in CLAUSES):
        return "", ()
    _, options = take_options(tokenize(sql))
    return "OPTIONS", tuple(option.name for option in options or ())


def _randomizes(sql: str) -> bool:
    if "randomized" not in sql.lower():
        return False
    said = [token for token in tokens(sql) if token.kind not in (Kind.SPACE, Kind.COMMENT)]
    return any(one.text.lower() == "randomized" and other.text == "(" for one, other in pairwise(said))
