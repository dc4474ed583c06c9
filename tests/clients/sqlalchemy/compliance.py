"""SQLAlchemy's suite for dialects; run by `test_compliance.py`, which is what pytest finds."""

from typing import Any

from sqlalchemy.testing.suite import *  # noqa: F403
from sqlalchemy.testing.suite import ComponentReflectionTest as _ComponentReflectionTest


def _one_line(comment: str | None) -> str | None:
    return " ".join((comment or "").split()) or None


class ComponentReflectionTest(_ComponentReflectionTest):
    """Every column may be NULL: what does not fit its declaration becomes it. Comments tell what is declared too."""

    def exp_columns(self, *args: Any, **kw: Any) -> Any:
        expected = super().exp_columns(*args, **kw)
        for columns in expected.values():
            for column in columns:
                column["nullable"], column["comment"] = True, _one_line(column.get("comment"))
        return expected

    def exp_comments(self, *args: Any, **kw: Any) -> Any:
        expected = super().exp_comments(*args, **kw)
        kinds = {name: "A view." if name[1].endswith("_v") else "Public." for name in expected}
        return {
            name: {"text": f"{_one_line(comment['text'])}. {kinds[name]}" if comment["text"] else kinds[name]}
            for name, comment in expected.items()
        }
