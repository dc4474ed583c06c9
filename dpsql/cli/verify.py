"""`dpsql verify`: try the claims on made-up databases, and say what was found."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from dpsql.cli.screen import Screen, Usage
from dpsql.dbapi.address import read_address
from dpsql.verify.run import Plan, Progress, verify

_WIDE = 30


def run(given: argparse.Namespace, screen: Screen) -> int:
    """0 where all claims held, 1 where one did not."""
    if given.seconds <= 0 or given.workers < 1 or (given.trials is not None and given.trials < 1):
        raise Usage("--seconds, --trials and --workers are above 0")
    bar = _Bar(screen)
    path = None if given.schema is None else read_address(given.schema, None, {}).path
    plan = Plan(path, given.seconds, given.trials, given.seed, given.workers, given.samples, given.statistics)
    report = verify(plan, bar.tell)
    bar.done()
    if given.report is not None:
        Path(given.report).write_text(json.dumps(report.as_json(), indent=2) + "\n", encoding="utf-8")
    if given.json:
        screen.print(json.dumps(report.as_json(), indent=2))
    else:
        screen.print(str(report))
    return 0 if report.holds else 1


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
