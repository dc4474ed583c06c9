"""`dpsql verify`: try the claims on made-up databases, and say what was found."""

from __future__ import annotations

import argparse
import json
import signal
import time
from pathlib import Path

from dpsql.dbapi.address import schema_path
from dpsql.display.screen import Screen, Usage
from dpsql.errors import OperationalError
from dpsql.verify.run import Plan, Progress, verify

_WIDE = 30
_BROKEN, _NOT_SHOWN, _INTERRUPTED = 3, 4, 130
_MOST = 1e9


def run(given: argparse.Namespace, screen: Screen) -> int:
    """0 where all claims held, 3 where one did not, 4 where the statistics had too few releases to tell."""
    names = ("seconds", "trials", "seed", "workers", "samples", "statistics", "findings")
    asked = {name: value for name in names if (value := getattr(given, name)) is not None}
    if any(not 0 < value < _MOST for name, value in asked.items() if name not in ("seed", "statistics")):
        raise Usage("--seconds, --trials, --workers, --samples and --findings are above 0")
    report_to = None if given.report is None else _writable(given.report)
    bar = _Bar(screen)
    path = None if given.schema is None else schema_path(given.schema)
    plan = Plan(path, **asked)
    signal.signal(signal.SIGTERM, _stop)  # the other processes end with this one
    report = verify(plan, bar.tell)
    bar.done()
    if report_to is not None:
        report_to.write_text(json.dumps(report.as_json(), indent=2) + "\n", encoding="utf-8")
    if given.json:
        screen.print(json.dumps(report.as_json(), indent=2))
    else:
        screen.print(str(report))
    if not report.holds:
        return _BROKEN
    if report.interrupted:
        return _INTERRUPTED
    return 0 if report.has_power else _NOT_SHOWN


def _writable(name: str) -> Path:
    """Before the work, not after it."""
    try:
        Path(name).write_text("", encoding="utf-8")
    except OSError as error:
        raise OperationalError(f'the report "{name}" cannot be written', detail=f"{error.strerror}.") from None
    return Path(name)


def _stop(signal_number: int, frame: object) -> None:
    raise KeyboardInterrupt


class _Bar:
    """One line on a terminal's standard error, drawn anew; nothing where it is no terminal."""

    def __init__(self, screen: Screen) -> None:
        self._screen, self._shown = screen, 0.0

    def tell(self, progress: Progress) -> None:
        now = time.monotonic()
        if not self._screen.draws or (now - self._shown < 0.1 and progress.done < 1.0):
            return
        self._shown = now
        filled = round(_WIDE * progress.done)
        bar = "█" * filled + "░" * (_WIDE - filled)
        found = f", {progress.findings} found" if progress.findings else ""
        self._screen.draw(f"{progress.stage:<10} {bar} {progress.trials} statements{found}")

    def done(self) -> None:
        if self._screen.draws:
            self._screen.draw("")
