"""Long answers page by page, in the reader's own pager."""

from __future__ import annotations

import os
import shutil
import subprocess

from dpsql.display.screen import Screen
from dpsql.repl.commands import split_shell_words


def page_lines(lines: list[str], screen: Screen) -> None:
    """Through $DPSQL_PAGER or $PAGER, else less, where the answer is larger than the screen; else as it is."""
    command = _pager_command()
    size = shutil.get_terminal_size()
    if command is None or not screen.out.isatty() or len(lines) < size.lines - 1:
        for line in lines:
            screen.print(line)
        return
    screen.out.flush()
    text = "".join(f"{line}\n" for line in lines)
    environment = {"LESS": "-RFXS", "LESSCHARSET": "utf-8"} | dict(os.environ)
    try:
        subprocess.run(command, input=text, text=True, env=environment, check=False)
    except OSError:
        for line in lines:
            screen.print(line)
    except KeyboardInterrupt:
        return


def _pager_command() -> list[str] | None:
    configured = os.environ.get("DPSQL_PAGER", os.environ.get("PAGER"))
    if configured is not None:
        return split_shell_words(configured, "$PAGER") or None
    return ["less"] if shutil.which("less") else None
