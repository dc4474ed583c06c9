"""`dpsql verify`: try the claims on made-up databases, and say what was found."""

from __future__ import annotations

import argparse
import json
import signal
import time
from pathlib import Path

from dpsql.errors import OperationalError
from dpsql.interfaces.dbapi.url import schema_path
from dpsql.interfaces.display.terminal import Screen, UsageError
from dpsql.verify.run import Progress, VerifyOptions, verify_claims

_BAR_WIDTH = 30
_EXIT_BROKEN, _EXIT_NOT_SHOWN, _EXIT_INTERRUPTED = 3, 4, 130
_MAX_VALUE = 1e9


def run(args: argparse.Namespace, screen: Screen) -> int:
    """0 where all claims held, 3 where one did not, 4 where the statistics had too few releases to tell."""
    names = ("seconds", "trials", "seed", "workers", "samples", "statistics", "findings")
    options = {name: value for name in names if (value := getattr(args, name)) is not None}
    if any(not 0 < value < _MAX_VALUE for name, value in options.items() if name not in ("seed", "statistics")):
        raise UsageError("--seconds, --trials, --workers, --samples and --findings are above 0")
    report_to = None if args.report is None else _require_writable(args.report)
    bar = _ProgressBar(screen)
    path = None if args.schema is None else schema_path(args.schema)
    plan = VerifyOptions(path, **options)
    signal.signal(signal.SIGTERM, _raise_interrupt)  # the other processes end with this one
    report = verify_claims(plan, bar.show_progress)
    bar.clear_line()
    if report_to is not None:
        report_to.write_text(json.dumps(report.as_json(), indent=2) + "\n", encoding="utf-8")
    if args.json:
        screen.print(json.dumps(report.as_json(), indent=2))
    else:
        screen.print(str(report))
    if not report.holds:
        return _EXIT_BROKEN
    if report.interrupted:
        return _EXIT_INTERRUPTED
    return 0 if report.has_power else _EXIT_NOT_SHOWN


def _require_writable(name: str) -> Path:
    """Before the work, not after it."""
    try:
        Path(name).write_text("", encoding="utf-8")
    except OSError as error:
        raise OperationalError(f'the report "{name}" cannot be written', detail=f"{error.strerror}.") from None
    return Path(name)


def _raise_interrupt(signal_number: int, frame: object) -> None:
    raise KeyboardInterrupt


class _ProgressBar:
    """One line on a terminal's standard error, drawn anew; nothing where it is no terminal."""

    def __init__(self, screen: Screen) -> None:
        self._screen, self._shown = screen, 0.0

    def show_progress(self, progress: Progress) -> None:
        now = time.monotonic()
        if not self._screen.can_redraw or (now - self._shown < 0.1 and progress.done < 1.0):
            return
        self._shown = now
        filled = round(_BAR_WIDTH * progress.done)
        bar = "█" * filled + "░" * (_BAR_WIDTH - filled)
        findings = f", {progress.findings} found" if progress.findings else ""
        self._screen.redraw_line(f"{progress.stage:<10} {bar} {progress.trials} statements{findings}")

    def clear_line(self) -> None:
        if self._screen.can_redraw:
            self._screen.redraw_line("")
