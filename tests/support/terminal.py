"""A program in a pseudo-terminal, as a person has it before her: keys in, screens out."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pexpect
import pyte

KEYS = {
    "enter": "\r", "tab": "\t", "escape": "\x1b", "ctrl-c": "\x03", "ctrl-d": "\x04", "ctrl-a": "\x01",
    "ctrl-e": "\x05", "ctrl-u": "\x15", "ctrl-r": "\x12", "up": "\x1b[A", "down": "\x1b[B", "left": "\x1b[D",
    "right": "\x1b[C", "backspace": "\x7f",
}  # fmt: skip
PATIENCE = 30.0
"""Seconds; a machine may be busy."""


class Terminal:
    """`screen` is what a person sees, `history` all that has scrolled away above it too."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        rows: int = 24,
        columns: int = 80,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._screen = pyte.HistoryScreen(columns, rows, history=2000)
        self._stream = pyte.ByteStream(self._screen)
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "PAGER", "LESS")}
        self._child = pexpect.spawn(
            command[0],
            list(command[1:]),
            cwd=str(folder),
            env={**kept, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **(environment or {})},
            dimensions=(rows, columns),
            timeout=PATIENCE,
        )
        self._child.delaybeforesend = None
        self._screen.write_process_input = self._child.send  # a terminal answers where its cursor is

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.close(force=True)

    # --- keys --------------------------------------------------------------------------------------------------------

    def type(self, text: str) -> None:
        self._child.send(text)

    def press(self, *keys: str) -> None:
        for key in keys:
            self._child.send(KEYS[key])

    def resize(self, rows: int, columns: int) -> None:
        self._child.setwinsize(rows, columns)
        self._screen.resize(rows, columns)

    # --- screens -----------------------------------------------------------------------------------------------------

    @property
    def screen(self) -> str:
        """The lines on the screen, without the empty ones at its end."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    @property
    def everything(self) -> str:
        """With what has scrolled away."""
        places = range(self._screen.columns)
        above = ["".join(line[x].data for x in places).rstrip() for line in self._screen.history.top]
        return "\n".join([*above, self.screen])

    @property
    def cursor(self) -> tuple[int, int]:
        return self._screen.cursor.y, self._screen.cursor.x

    def style_of(self, text: str) -> tuple[str, bool]:
        """The colour and boldness of the first place on the screen where the text stands."""
        for y, line in enumerate(self._screen.display):
            if text in line:
                cell = self._screen.buffer[y][line.index(text)]
                return cell.fg, cell.bold
        raise AssertionError(f"{text!r} is not on the screen:\n{self.screen}")

    def wait_for(self, pattern: str, *, times: int = 1) -> str:
        """Until the pattern stands on the screen, or above it, so many times; the whole screen then."""
        until = time.monotonic() + PATIENCE
        while len(re.findall(pattern, self.everything, re.MULTILINE)) < times:
            if time.monotonic() > until or not self._read():
                raise AssertionError(f"{pattern!r} did not come; the screen:\n{self.everything}")
        return self.screen

    def wait_for_prompt(self, pattern: str) -> None:
        """Until the cursor stands behind a line like this."""
        until = time.monotonic() + PATIENCE
        while not re.search(pattern, self._screen.display[self._screen.cursor.y].rstrip()):
            if time.monotonic() > until or not self._read():
                raise AssertionError(f"there is no prompt; the screen:\n{self.everything}")
        self.settle(0.2)

    def settle(self, quiet: float = 1.0) -> str:
        """Until nothing more comes for a while; the screen then."""
        last = time.monotonic()
        while time.monotonic() - last < quiet:
            if self._read(0.05):
                last = time.monotonic()
        return self.screen

    def ended(self) -> int:
        """The exit code, once the program has left."""
        while self._read(0.2, at_end=False):
            pass
        self._child.expect(pexpect.EOF)
        self._child.wait()
        return int(self._child.exitstatus if self._child.exitstatus is not None else -self._child.signalstatus)

    def _read(self, seconds: float = 0.1, at_end: bool = True) -> bool:
        """Whether something came, or (`at_end`) still may."""
        try:
            self._stream.feed(self._child.read_nonblocking(65536, timeout=seconds))
        except pexpect.TIMEOUT:
            return at_end and seconds >= 0.1
        except pexpect.EOF:
            return False
        return True
