"""One statement under way, as its client sees it: until when it may wait, whether it was canceled, how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpsql.errors import QueryCanceled

NOT_FREE_MESSAGE = "it would be charged, and only what is free was asked for"


@dataclass(eq=False)
class StatementHandle:
    """`delivered` of its `releases` are there. What is `free` may be served only what is charged to nobody.

    Privacy: a release is delivered when its run is seen to have ended, and so on the grid of `min_latency`. How far the
    engine is with a run is told nowhere: it would be a clock of the rows.
    """

    deadline: int | None = None
    canceled: bool = False
    releases: int = 0
    delivered: int = 0
    free: bool = False
    interrupt: Callable[[], None] | None = None  # ends post-processing, which reads no private row

    def check_cancellation(self, now: int, hint: str | None = None) -> None:
        if self.canceled:
            raise QueryCanceled("canceling statement due to user request", hint=hint)
        if self.deadline is not None and now >= self.deadline:
            raise QueryCanceled("canceling statement due to statement timeout", hint=hint)
