"""What a server uses, with all of its processes: CPU time and memory, as Linux counts them in /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def tree(root: int) -> Iterator[int]:
    """The process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for place in PROC.iterdir():
        if place.name.isdigit():
            with suppress(OSError):
                parents.setdefault(int(_fields(int(place.name))[1]), []).append(int(place.name))
    waiting = [root]
    while waiting:
        process = waiting.pop()
        yield process
        waiting += parents.get(process, [])


def cpu_seconds(root: int) -> float:
    """Of all of them, those included that have ended and were waited for."""
    ticks = 0
    for process in tree(root):
        with suppress(OSError):
            ticks += sum(map(int, _fields(process)[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mb(root: int) -> float:
    """Of all of them; a page that several share is counted once."""
    kilobytes = 0
    for process in tree(root):
        with suppress(OSError):
            lines = (PROC / str(process) / "smaps_rollup").read_text().splitlines()
            kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kilobytes / 1024


def _fields(process: int) -> list[str]:
    """Of its status, from the state on: the name before it may hold blanks."""
    return (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
