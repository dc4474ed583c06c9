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
class _WaitingStatement:
    account: str
    turn: asyncio.Future[None]


class FairScheduler:
    """Shares the threads of a pool (`places`) fairly among accounts; belongs to one event loop."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.held: Counter[str] = Counter()
        self._waiting: list[_WaitingStatement] = []

    @property
    def used_slots(self) -> int:
        return self.held.total()

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    def can_acquire(self, account: str) -> bool:
        free_of_others = self.places - (self.used_slots - self.held[account])
        return self.used_slots < self.places and self.held[account] < (free_of_others + 1) // 2

    def try_acquire(self, account: str) -> bool:
        """Whether a slot was free, and is now held; `release_slot` gives it back."""
        if not self.can_acquire(account):
            return False
        self.held[account] += 1
        return True

    @asynccontextmanager
    async def hold_slot(self, account: str) -> AsyncIterator[None]:
        await self._acquire_slot(account)
        try:
            yield
        finally:
            self.release_slot(account)

    async def _acquire_slot(self, account: str) -> None:
        if not any(other.account == account for other in self._waiting) and self.can_acquire(account):
            self.held[account] += 1
            return
        waiting = _WaitingStatement(account, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            await waiting.turn
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            else:  # it was given the turn, and leaves without having used it
                self.release_slot(account)
            raise

    def release_slot(self, account: str) -> None:
        self.held[account] -= 1
        if not self.held[account]:
            del self.held[account]
        self._wake_waiting()

    def _wake_waiting(self) -> None:
        while (chosen := self._next_waiting()) is not None:
            self._waiting.remove(chosen)
            self.held[chosen.account] += 1
            chosen.turn.set_result(None)

    def _next_waiting(self) -> _WaitingStatement | None:
        allowed = [candidate for candidate in self._waiting if self.can_acquire(candidate.account)]
        return min(allowed, key=lambda candidate: self.held[candidate.account], default=None)
