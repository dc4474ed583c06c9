"""Whose turn it is: statements of all accounts share a bounded number of threads.

Law: an account holds at most half of what the others leave free, rounded up. So none can take all places, and who
comes next always finds one as long as there are fewer busy accounts than doublings in the number of places: of 64, one
holds at most 32, a second 16 more, and so on. Who waits is served by whose account holds the fewest, then by age.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(eq=False)
class _Waiting:
    account: str
    turn: asyncio.Future[None]


class Turns:
    """Of one event loop; `places` is the number of threads."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.held: Counter[str] = Counter()
        self._waiting: list[_Waiting] = []

    @property
    def taken(self) -> int:
        return self.held.total()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def may_take(self, account: str) -> bool:
        free_of_others = self.places - (self.taken - self.held[account])
        return self.taken < self.places and self.held[account] < (free_of_others + 1) // 2

    def take_now(self, account: str) -> bool:
        """Whether there was a place; who has one gives it back by `leave`."""
        if not self.may_take(account):
            return False
        self.held[account] += 1
        return True

    @asynccontextmanager
    async def turn(self, account: str) -> AsyncIterator[None]:
        await self._take(account)
        try:
            yield
        finally:
            self.leave(account)

    async def _take(self, account: str) -> None:
        if not any(one.account == account for one in self._waiting) and self.may_take(account):
            self.held[account] += 1
            return
        waiting = _Waiting(account, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            await waiting.turn
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            else:  # it was given the turn, and leaves without having used it
                self.leave(account)
            raise

    def leave(self, account: str) -> None:
        self.held[account] -= 1
        if not self.held[account]:
            del self.held[account]
        self._give()

    def _give(self) -> None:
        while (chosen := self._next()) is not None:
            self._waiting.remove(chosen)
            self.held[chosen.account] += 1
            chosen.turn.set_result(None)

    def _next(self) -> _Waiting | None:
        allowed = [one for one in self._waiting if self.may_take(one.account)]
        return min(allowed, key=lambda one: self.held[one.account], default=None)
