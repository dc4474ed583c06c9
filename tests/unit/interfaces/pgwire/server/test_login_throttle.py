"""Failed logins cost time, by name and by address, and nothing grows without bound."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from dpsql.interfaces.pgwire.server import login_throttle
from dpsql.interfaces.pgwire.server.login_throttle import (
    FORGET_AFTER_SECONDS,
    FREE_FAILURES,
    MAX_ADDRESS_DELAY_SECONDS,
    MAX_ENTRIES,
    MAX_USER_DELAY_SECONDS,
    MAX_WAIT_SECONDS,
    LoginThrottle,
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def tried(failures: LoginThrottle, clock: Clock, user: str, address: str, times: int) -> list[float | None]:
    """Wrong passwords one after the other, each after its wait."""
    waits = []
    for _ in range(times):
        wait = failures.reserve_login(user, address)
        waits.append(wait)
        if wait is not None:
            clock.now += wait
            failures.record_failure(user, address)
    return waits


def test_one_wrong_password_causes_no_delay() -> None:
    clock = Clock()
    failures = LoginThrottle(clock)
    assert tried(failures, clock, "ana", "192.0.2.1", FREE_FAILURES) == [0.0] * FREE_FAILURES


def test_three_mistyped_passwords_do_not_wait_though_a_client_tries_each_twice() -> None:
    """libpq's `sslmode=prefer`: a wrong password is tried with TLS, and again without."""
    clock = Clock()
    assert tried(LoginThrottle(clock), clock, "ana", "192.0.2.1", 3 * 2) == [0.0] * 6


def test_waits_grow_and_have_an_end() -> None:
    clock = Clock()
    waits = tried(LoginThrottle(clock), clock, "ana", "192.0.2.1", 40)
    known = [one for one in waits if one is not None]
    assert len(known) == 40 and known[-1] == MAX_ADDRESS_DELAY_SECONDS and known == sorted(known)
    assert clock.now > 200, "forty guesses take minutes"


def test_many_at_once_are_no_faster_than_one_after_the_other() -> None:
    clock = Clock()
    failures = LoginThrottle(clock)
    tried(failures, clock, "ana", "192.0.2.1", FREE_FAILURES + 6)
    waits = [failures.reserve_login("ana", "192.0.2.1") for _ in range(50)]
    let = [one for one in waits if one is not None]
    assert None in waits and len(let) <= MAX_WAIT_SECONDS / MAX_ADDRESS_DELAY_SECONDS + 2
    assert all(later - earlier >= MAX_ADDRESS_DELAY_SECONDS for earlier, later in pairwise(let))


def test_a_name_that_is_tried_from_many_addresses_waits_too() -> None:
    clock = Clock()
    failures = LoginThrottle(clock)
    for number in range(20):
        tried(failures, clock, "ana", f"192.0.2.{number}", 1)
    assert [failures.reserve_login("ana", f"198.51.100.{number}") for number in (1, 2)] == [
        MAX_USER_DELAY_SECONDS,
        2 * MAX_USER_DELAY_SECONDS,
    ]
    assert failures.reserve_login("bob", "198.51.100.2") == 0.0


def test_an_address_with_a_login_before_does_not_wait_for_others() -> None:
    clock = Clock()
    failures = LoginThrottle(clock)
    failures.record_success("ana", "198.51.100.1")
    for number in range(40):
        failures.reserve_login("ana", f"192.0.2.{number}")
        failures.record_failure("ana", f"192.0.2.{number}")
    assert [failures.reserve_login("ana", "198.51.100.1") for _ in range(3)] == [0.0, 0.0, 0.0]
    failures.record_failure("ana", "198.51.100.1")
    assert failures.reserve_login("ana", "198.51.100.1") != 0.0, "a failure from there ends it"


def test_a_success_does_not_free_the_name_for_others() -> None:
    """Who has one account must not reset the count of another's, nor of her own name at other addresses."""
    clock = Clock()
    failures = LoginThrottle(clock)
    for number in range(30):
        failures.record_failure("ana", f"192.0.2.{number}")
    failures.record_success("mallory", "192.0.2.1")
    failures.reserve_login("ana", "192.0.2.200")
    assert failures.reserve_login("ana", "192.0.2.201") == MAX_USER_DELAY_SECONDS


def test_failures_are_forgotten() -> None:
    clock = Clock()
    failures = LoginThrottle(clock)
    tried(failures, clock, "ana", "192.0.2.1", 20)
    clock.now += FORGET_AFTER_SECONDS + 1
    assert failures.reserve_login("ana", "192.0.2.1") == 0.0 == failures.reserve_login("ana", "192.0.2.1")


def test_what_is_remembered_is_bounded() -> None:
    clock = Clock()
    failures = LoginThrottle(clock)
    tried(failures, clock, "ana", "192.0.2.1", 20)
    for number in range(3 * MAX_ENTRIES):
        failures.record_failure(f"user{number}", f"2001:db8:{number % 65536:x}:{number // 65536:x}::1")
        failures.record_success(f"user{number}", f"2001:db8:{number % 65536:x}:{number // 65536:x}::1")
    assert len(failures) <= 3 * MAX_ENTRIES


def test_addresses_of_one_network_of_ipv6_count_as_one() -> None:
    clock = Clock()
    failures = LoginThrottle(clock)
    for number in range(20):
        failures.record_failure(f"user{number}", f"2001:db8::{number:x}")
    failures.reserve_login("x", "2001:db8::ffff")
    assert failures.reserve_login("y", "2001:db8::fffe") == MAX_ADDRESS_DELAY_SECONDS
    assert failures.reserve_login("z", "2001:db8:0:1::1") == 0.0


def test_no_figure_depends_on_which_users_exist() -> None:
    """By construction: nothing of a schema is in reach."""
    source = Path(login_throttle.__file__).read_text(encoding="utf-8")
    assert not re.findall(r"^(?:from|import) dpsql\S*(?:schema|logins)", source, re.MULTILINE)
