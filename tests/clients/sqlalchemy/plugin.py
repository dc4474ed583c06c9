"""SQLAlchemy's own plugin for pytest, with the dialect of `owner_side`; it writes down how each test ended."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy.dialects import registry

from tests.clients.sqlalchemy.excluded import EXCLUDED

registry.register("dpsql.suite", "tests.clients.sqlalchemy.owner_side", "SuiteDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403

_BEFORE_REASON = re.compile(r"^Skipped: ('.*' unsupported on any DB implementation '[^']*'|'.* \(call\)' : )?")
_ENDED: Counter[tuple[str, str]] = Counter()
_REASONS: dict[tuple[str, str], set[str]] = {}


def _title(nodeid: str) -> tuple[str, str]:
    """The class and the test, without parameters and the name of the database."""
    _, cls, test = nodeid.split("::", 2)
    return cls.split("_dpsql+")[0], test.split("[")[0]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is excluded; keep one part of several, which run side by side."""
    part, parts = (int(number) for number in os.environ.get("SUITE_PART", "0/1").split("/"))
    classes = sorted({_title(item.nodeid)[0] for item in items})
    largest = "ComponentReflectionTest"  # half of all tests: a part of its own
    classes.sort(key=lambda name: name != largest)
    kept = {name for place, name in enumerate(classes) if _part(place, parts) == part}
    items[:] = [item for item in items if _title(item.nodeid)[0] in kept]
    for item in items:
        cls, test = _title(item.nodeid)
        reason = EXCLUDED.get(f"{cls}::{test}") or EXCLUDED.get(cls)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


def _part(place: int, parts: int) -> int:
    return 0 if place == 0 or parts == 1 else 1 + place % (parts - 1)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        reason = ""
        if report.outcome == "skipped":
            told = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            reason = _BEFORE_REASON.sub("", told)
        ended = ("::".join(_title(report.nodeid)), report.outcome)
        _ENDED[ended] += 1
        _REASONS.setdefault(ended, set()).add(reason.strip())


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = os.environ.get("SUITE_REPORT")
    if path is not None:
        lines = [f"{ended[1]}\t{count}\t{ended[0]}\t{min(_REASONS[ended])}" for ended, count in _ENDED.items()]
        Path(path).write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
