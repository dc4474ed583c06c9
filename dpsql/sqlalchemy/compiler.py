"""SQLAlchemy's statements as SQL that dpsql reads: PostgreSQL's, by its own compilers."""

from __future__ import annotations

from sqlalchemy.dialects.postgresql.base import PGCompiler, PGIdentifierPreparer, PGTypeCompiler

__all__ = ["DpsqlCompiler", "DpsqlTypeCompiler", "PGIdentifierPreparer"]


class DpsqlCompiler(PGCompiler):
    pass


class DpsqlTypeCompiler(PGTypeCompiler):
    pass
