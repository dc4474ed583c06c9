"""A fair scheduler: statements of all accounts share a bounded number of threads.

Law: an account holds at most half of the slots that the others leave free, rounded up. So no account can take them
all: of 64 slots, the first account gets at most 32, a second 16 more, and so on; a new account finds one at once as
long as fewer than seven are busy. Of those who wait, the account with the fewest slots comes first, then the oldest.
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
    """Shares the threads of a pool (`slots`) fairly among accounts; belongs to one event loop."""

    def __init__(self, slots: int, slots_of_account: int = 0) -> None:
        """`slots_of_account`: a fixed number, in the place of half of what the others leave."""
        self.slots, self.slots_of_account = slots, slots_of_account
        self.slots_by_account: Counter[str] = Counter()
        self._waiting: list[_WaitingStatement] = []

    @property
    def used_slots(self) -> int:
        return self.slots_by_account.total()

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    def can_acquire(self, account: str) -> bool:
        free_of_others = self.slots - (self.used_slots - self.slots_by_account[account])
        allowed = self.slots_of_account or (free_of_others + 1) // 2
        return self.used_slots < self.slots and self.slots_by_account[account] < allowed

    def try_acquire(self, account: str) -> bool:
        """Take a slot if one is free, and say whether; `release_slot` gives it back."""
        if not self.can_acquire(account):
            return False
        self.slots_by_account[account] += 1
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
            self.slots_by_account[account] += 1
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
        self.slots_by_account[account] -= 1
        if not self.slots_by_account[account]:
            del self.slots_by_account[account]
        self._wake_waiting()

    def _wake_waiting(self) -> None:
        while (chosen := self._next_waiting()) is not None:
            self._waiting.remove(chosen)
            self.slots_by_account[chosen.account] += 1
            chosen.turn.set_result(None)

    def _next_waiting(self) -> _WaitingStatement | None:
        allowed = [candidate for candidate in self._waiting if self.can_acquire(candidate.account)]
        return min(allowed, key=lambda candidate: self.slots_by_account[candidate.account], default=None)
