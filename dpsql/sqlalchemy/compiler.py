"""SQLAlchemy's statements as SQL that dpsql reads: PostgreSQL's, by its own compilers, where the two agree."""

from __future__ import annotations

from typing import Any

from sqlalchemy import types
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGIdentifierPreparer, PGTypeCompiler
from sqlalchemy.sql.elements import Cast

__all__ = ["DpsqlCompiler", "DpsqlTypeCompiler", "PGIdentifierPreparer"]


class DpsqlCompiler(PGCompiler):
    def visit_truediv_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """In doubles: NUMERIC without a precision, which PostgreSQL's own casts say, has three digits here."""
        right = binary.right
        if right.type._type_affinity not in (types.Numeric, types.Float):
            right = Cast(right, types.DOUBLE_PRECISION())
        return f"{self.process(binary.left, **kw)} / {self.process(right, **kw)}"


class DpsqlTypeCompiler(PGTypeCompiler):
    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:
        """To the microsecond, whatever precision is asked for."""
        return "INTERVAL"
