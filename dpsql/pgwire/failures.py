"""Failed logins: who fails often waits, and then is sent away.

Law: how long a login waits depends on failures under its name and from its address, never on whether the name is
known. What is remembered is bounded, whatever names and addresses are tried.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

FREE = 6
"""Failures that cost no time: people mistype, and with `sslmode=prefer`, their default, PostgreSQL's clients try each
wrong password twice, with TLS and without."""
FIRST = 0.25
"""Seconds after the first that does; each further one doubles it."""
FORGOTTEN = 900.0
"""Seconds after which a failure counts no more."""
MOST = 10_000
"""Names, and addresses, that are remembered; the oldest is forgotten first."""
PATIENCE = 15.0
"""Seconds that a login waits at most; who would wait longer is sent away."""
LONGEST_OF_ADDRESS = 8.0
"""Seconds between two tries from an address that has failed often."""
LONGEST_OF_USER = 2.0
"""Seconds between two tries of a name. Short, since others than the analyst may try it and she must wait too; unless
she comes from where she has logged in before."""


@dataclass(eq=False)
class _Failing:
    failures: int = 0
    last: float = 0.0
    free_at: float = 0.0


class _Book:
    """Failures by name or by address."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._entries: OrderedDict[str, _Failing] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def failed(self, key: str, now: float) -> None:
        entry = self._current(key, now) or _Failing()
        entry.failures, entry.last = entry.failures + 1, now
        self._entries[key] = entry
        self._entries.move_to_end(key)
        while len(self._entries) > MOST:
            self._entries.popitem(last=False)

    def forget(self, key: str) -> None:
        self._entries.pop(key, None)

    def waits(self, key: str, now: float) -> float:
        """Seconds until the next try of this key may be looked at."""
        entry = self._current(key, now)
        return 0.0 if entry is None or entry.failures < FREE else max(0.0, entry.free_at - now)

    def take(self, key: str, now: float, start: float) -> None:
        """A try that begins at `start`: the next one begins a step after it, however many come at once."""
        entry = self._current(key, now)
        if entry is not None and entry.failures >= FREE:
            step = min(FIRST * 2 ** min(entry.failures - FREE, 30), self._longest)
            entry.free_at = max(entry.free_at, start) + step

    def _current(self, key: str, now: float) -> _Failing | None:
        entry = self._entries.get(key)
        if entry is not None and now - entry.last > FORGOTTEN:
            del self._entries[key]
            return None
        return entry


class Failures:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._users = _Book(LONGEST_OF_USER)
        self._addresses = _Book(LONGEST_OF_ADDRESS)
        self._good: OrderedDict[tuple[str, str], float] = OrderedDict()

    def __len__(self) -> int:
        """What is remembered."""
        return len(self._users) + len(self._addresses) + len(self._good)

    def wait(self, user: str, address: str) -> float | None:
        """Seconds to wait before this login's proof is looked at; None: send it away."""
        now, place = self._clock(), place_of(address)
        books = [(self._addresses, place)]
        if not self._is_good(user, place, now):
            books.append((self._users, user))
        waits = max(book.waits(key, now) for book, key in books)
        if waits > PATIENCE:
            return None
        for book, key in books:
            book.take(key, now, now + waits)
        return waits

    def failed(self, user: str, address: str) -> None:
        now, place = self._clock(), place_of(address)
        self._good.pop((user, place), None)
        self._users.failed(user, now)
        self._addresses.failed(place, now)

    def succeeded(self, user: str, address: str) -> None:
        """The address's failures are forgotten. The name's are not, but do not slow it from this address any more."""
        now, place = self._clock(), place_of(address)
        self._addresses.forget(place)
        self._good[user, place] = now
        self._good.move_to_end((user, place))
        while len(self._good) > MOST:
            self._good.popitem(last=False)

    def _is_good(self, user: str, place: str, now: float) -> bool:
        return now - self._good.get((user, place), float("-inf")) <= FORGOTTEN


def place_of(address: str) -> str:
    """Who has one address of IPv6 has at least 2^64 of them: they count as one.

    >>> place_of("192.0.2.7"), place_of("2001:db8:1:2:3::4"), place_of("::ffff:192.0.2.7"), place_of("local")
    ('192.0.2.7', '2001:db8:1:2::/64', '192.0.2.7', 'local')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))
