"""What is forgotten first is what was neither put nor looked up for longest."""

from __future__ import annotations

from dpsql.base.lru_cache import LruCache


def full() -> LruCache[int]:
    recent: LruCache[int] = LruCache(2)
    recent.put("a", 1)
    recent.put("b", 2)
    return recent


def test_no_more_than_the_most_are_kept_and_the_first_put_goes_first() -> None:
    recent = full()
    assert recent.put("c", 3) == 3 and len(recent) == 2
    assert [recent.get(key) for key in "abc"] == [None, 2, 3]


def test_what_was_looked_up_stays() -> None:
    recent = full()
    assert recent.get("a") == 1
    recent.put("c", 3)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]


def test_what_was_put_again_stays_with_its_new_value() -> None:
    recent = full()
    recent.put("a", 4)
    recent.put("c", 3)
    assert [recent.get(key) for key in "abc"] == [4, None, 3]
