"""Statements that are not answered at all, family by family: each says why, and what to do instead."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.errors import Unsupported
from dpsql.span import Span


@dataclass(frozen=True)
class RefusedStatements:
    words: frozenset[str]
    why: str
    hint: str


def _refused_statements(words: str, why: str, hint: str) -> RefusedStatements:
    return RefusedStatements(frozenset(words.split()), why, hint)


REFUSED_STATEMENTS = (
    _refused_statements(
        "INSERT UPDATE DELETE MERGE UPSERT REPLACE TRUNCATE COPY IMPORT",
        "data is read, never written",
        "Questions are answered here; the owner changes the data at its source, then registers it.",
    ),
    _refused_statements(
        "CREATE",
        "the schema declares the tables",
        "The owner adds tables to the schema; for a temporary one, or a view, write WITH name AS (SELECT …) SELECT …."
        " CREATE SYNTHETIC TABLE makes one of rows like those of a private table.",
    ),
    _refused_statements(
        "DROP",
        "the schema declares the tables",
        "What you have made yourself is dropped by DROP SYNTHETIC TABLE or DROP MODEL.",
    ),
    _refused_statements(
        "ALTER COMMENT REINDEX REFRESH",
        "the schema declares the tables",
        "Questions are answered here, and nothing is changed; the owner edits the tables in the schema.",
    ),
    _refused_statements(
        "GRANT REVOKE REASSIGN",
        "the schema declares who may ask, and how much",
        "The owner edits analysts and budgets in the schema.",
    ),
    _refused_statements(
        "ANALYZE ATTACH CALL CHECKPOINT CLUSTER DETACH DO EXPORT FORCE INSTALL LOAD PRAGMA SECURITY USE VACUUM",
        "it would reach the engine",
        "SELECT, EXPLAIN SELECT, SET, SHOW, RESET and DESCRIBE are understood.",
    ),
    _refused_statements(
        "DECLARE EXECUTE FETCH MOVE PREPARE",
        "there are no cursors and prepared statements here",
        "Send the SELECT itself; the same question asked again is free.",
    ),
    _refused_statements(
        "ASK",
        "a query is expected here",
        "ASK stands in a statement of its own; EXPLAIN ASK … tells what it would be charged.",
    ),
    _refused_statements(
        "LISTEN LOCK NOTIFY",
        "sessions share nothing",
        "Leave it out.",
    ),
)


def refuse_statement(word: str, span: Span | None) -> None:
    """Raise if the statement's first word belongs to a family."""
    for family in REFUSED_STATEMENTS:
        if word.upper() in family.words:
            raise Unsupported(f"{word.upper()} is not answered: {family.why}", hint=family.hint, span=span)
