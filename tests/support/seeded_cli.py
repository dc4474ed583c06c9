"""`dpsql` with noise that is the same each time, so that screens can be kept. Never for data of anyone."""

from __future__ import annotations

import hashlib
import sys

from dpsql.interfaces.cli.main import main
from dpsql.privacy.sampling import ExactSampler


class Stream:
    """Bits that depend on how many were asked before, and on nothing else."""

    def __init__(self) -> None:
        self._asked = 0

    def __call__(self, count: int) -> bytes:
        self._asked += 1
        return hashlib.shake_256(f"a screen {self._asked}".encode()).digest(count)


if __name__ == "__main__":
    ExactSampler.__init__.__defaults__ = (Stream(),)  # type: ignore[attr-defined]
    sys.exit(main())
