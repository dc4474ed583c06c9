"""Imports what a session needs, part by part, behind a prompt that may be left meanwhile.

An interface sees the session only. So this gives out no module: it says when the next part is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

_MODULES = (
    "dpsql.compiler.plan.aggregate",
    "dpsql.engines.duckdb",
    "dpsql.privacy.sampling",
    "dpsql.compiler.parse.parser",
    "dpsql.compiler.split.split",
    "dpsql.compiler.compile",
    "dpsql.session.session",
)


def preload_modules() -> Iterator[None]:
    """Import one part for each step; who stops asking leaves the others out."""
    for part in _MODULES:
        yield
        import_module(part)
