"""Throttles failed logins, by user and by address: first with a delay, then with a refusal.

Law: how long a login waits depends on failures under its name and from its address, never on whether the name is
known. What is remembered is bounded, whatever names and addresses are tried.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

FREE_FAILURES = 6
"""Failures that cost no time: people mistype, and with `sslmode=prefer`, their default, PostgreSQL's clients try each
wrong password twice, with TLS and without."""
FIRST_DELAY_SECONDS = 0.25
"""Seconds after the first that does; each further one doubles it."""
FORGET_AFTER_SECONDS = 900.0
"""Seconds after which a failure counts no more."""
MAX_ENTRIES = 10_000
"""Names, and addresses, that are remembered; the oldest is forgotten first."""
MAX_WAIT_SECONDS = 15.0
"""Seconds that a login waits at most; who would wait longer is sent away."""
MAX_ADDRESS_DELAY_SECONDS = 8.0
"""Seconds between two tries from an address that has failed often."""
MAX_USER_DELAY_SECONDS = 2.0
"""Seconds between two tries of a name. Short, since others than the analyst may try it and she must wait too; unless
she comes from where she has logged in before."""


@dataclass(eq=False)
class _FailureEntry:
    failures: int = 0
    last: float = 0.0
    free_at: float = 0.0


class _FailureTable:
    """Failures by name or by address."""

    def __init__(self, max_delay: float) -> None:
        self._max_delay = max_delay
        self._entries: OrderedDict[str, _FailureEntry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def record_failure(self, key: str, now: float) -> None:
        entry = self._current_entry(key, now) or _FailureEntry()
        entry.failures, entry.last = entry.failures + 1, now
        self._entries[key] = entry
        self._entries.move_to_end(key)
        while len(self._entries) > MAX_ENTRIES:
            self._entries.popitem(last=False)

    def forget_failures(self, key: str) -> None:
        self._entries.pop(key, None)

    def seconds_to_wait(self, key: str, now: float) -> float:
        """Seconds until the next try of this key may be looked at."""
        entry = self._current_entry(key, now)
        return 0.0 if entry is None or entry.failures < FREE_FAILURES else max(0.0, entry.free_at - now)

    def reserve_attempt(self, key: str, now: float, start: float) -> None:
        """A try that begins at `start`: the next one begins a step after it, however many come at once."""
        entry = self._current_entry(key, now)
        if entry is not None and entry.failures >= FREE_FAILURES:
            step = min(FIRST_DELAY_SECONDS * 2 ** min(entry.failures - FREE_FAILURES, 30), self._max_delay)
            entry.free_at = max(entry.free_at, start) + step

    def _current_entry(self, key: str, now: float) -> _FailureEntry | None:
        entry = self._entries.get(key)
        if entry is not None and now - entry.last > FORGET_AFTER_SECONDS:
            del self._entries[key]
            return None
        return entry


class LoginThrottle:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._users = _FailureTable(MAX_USER_DELAY_SECONDS)
        self._addresses = _FailureTable(MAX_ADDRESS_DELAY_SECONDS)
        self._known_networks: OrderedDict[tuple[str, str], float] = OrderedDict()

    def __len__(self) -> int:
        """How many entries of users and addresses are remembered."""
        return len(self._users) + len(self._addresses) + len(self._known_networks)

    def reserve_login(self, user: str, address: str) -> float | None:
        """Seconds to wait before this login's proof is looked at; None: send it away."""
        now, network = self._clock(), network_of(address)
        tables = [(self._addresses, network)]
        if not self._has_succeeded(user, network, now):
            tables.append((self._users, user))
        seconds = max(table.seconds_to_wait(key, now) for table, key in tables)
        if seconds > MAX_WAIT_SECONDS:
            return None
        for table, key in tables:
            table.reserve_attempt(key, now, now + seconds)
        return seconds

    def record_failure(self, user: str, address: str) -> None:
        now, network = self._clock(), network_of(address)
        self._known_networks.pop((user, network), None)
        self._users.record_failure(user, now)
        self._addresses.record_failure(network, now)

    def record_success(self, user: str, address: str) -> None:
        """The address's failures are forgotten. The name's are not, but do not slow it from this address any more."""
        now, network = self._clock(), network_of(address)
        self._addresses.forget_failures(network)
        self._known_networks[user, network] = now
        self._known_networks.move_to_end((user, network))
        while len(self._known_networks) > MAX_ENTRIES:
            self._known_networks.popitem(last=False)

    def _has_succeeded(self, user: str, network: str, now: float) -> bool:
        return now - self._known_networks.get((user, network), float("-inf")) <= FORGET_AFTER_SECONDS


def network_of(address: str) -> str:
    """Who has one address of IPv6 has at least 2^64 of them: they count as one.

    >>> network_of("192.0.2.7"), network_of("2001:db8:1:2:3::4"), network_of("::ffff:192.0.2.7"), network_of("local")
    ('192.0.2.7', '2001:db8:1:2::/64', '192.0.2.7', 'local')
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip, 64), strict=False))
