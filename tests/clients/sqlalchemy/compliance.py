"""SQLAlchemy's suite for dialects; run by `test_compliance.py`, which is what pytest finds."""

from typing import Any

from sqlalchemy.testing.suite import *  # noqa: F403
from sqlalchemy.testing.suite import ComponentReflectionTest as _ComponentReflectionTest


class ComponentReflectionTest(_ComponentReflectionTest):
    def exp_columns(self, *args: Any, **kw: Any) -> Any:
        """Every column may be NULL: what does not fit its declaration becomes it. Comments end as sentences do."""
        expected = super().exp_columns(*args, **kw)
        for columns in expected.values():
            for column in columns:
                column["nullable"] = True
                comment = " ".join((column.get("comment") or "").split())
                column["comment"] = comment if not comment or comment[-1] in ".!?…" else f"{comment}."
                column["comment"] = column["comment"] or None
        return expected
