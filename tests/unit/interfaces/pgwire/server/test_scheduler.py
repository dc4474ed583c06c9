"""Threads are shared: none takes all, and who waits is served in a fair order."""

from __future__ import annotations

import asyncio

import pytest

from dpsql.interfaces.pgwire.server.scheduler import FairScheduler


def greedy(turns: FairScheduler, account: str) -> int:
    count = 0
    while turns.try_acquire(account):
        count += 1
    return count


def test_an_account_takes_half_of_what_others_leave() -> None:
    turns = FairScheduler(64)
    assert [greedy(turns, name) for name in "abcdefgh"] == [32, 16, 8, 4, 2, 1, 1, 0]


def test_a_fixed_number_takes_the_place_of_the_share() -> None:
    turns = FairScheduler(64, 40)
    assert [greedy(turns, name) for name in "abc"] == [40, 24, 0]


@pytest.mark.parametrize("places", [1, 2, 3, 5, 64])
def test_one_alone_can_always_run_and_two_share(places: int) -> None:
    turns = FairScheduler(places)
    first = greedy(turns, "a")
    assert first == (places + 1) // 2
    assert places == 1 or greedy(turns, "b") >= 1
    assert turns.used_slots <= places


def test_the_longest_waiter_is_not_passed_by_its_own_account_and_others_are_not_stalled() -> None:
    async def main() -> list[str]:
        turns, order = FairScheduler(4), list[str]()
        gate = asyncio.Event()

        async def work(name: str) -> None:
            async with turns.hold_slot(name[0]):
                order.append(name)
                await gate.wait()

        hogs = [asyncio.create_task(work(f"a{number}")) for number in range(10)]
        await asyncio.sleep(0)
        other = asyncio.create_task(work("b0"))
        await asyncio.sleep(0.01)
        assert "b0" in order and [one for one in order if one[0] == "a"] == ["a0", "a1"], order
        gate.set()
        await asyncio.gather(*hogs, other)
        assert turns.used_slots == turns.waiting_count == 0 and not turns.slots_by_account
        return order

    order = asyncio.run(main())
    assert [one for one in order if one[0] == "a"] == [f"a{number}" for number in range(10)]


def test_the_next_turn_goes_to_the_account_with_the_fewest() -> None:
    async def main() -> list[str]:
        turns, order = FairScheduler(2), list[str]()
        assert turns.try_acquire("a") and turns.try_acquire("b")

        async def work(name: str) -> None:
            async with turns.hold_slot(name[0]):
                order.append(name)

        tasks = []
        for name in ("a1", "a2", "a3", "c1"):
            tasks.append(asyncio.create_task(work(name)))
            await asyncio.sleep(0)
        turns.release_slot("b")
        await asyncio.sleep(0.01)
        turns.release_slot("a")
        await asyncio.gather(*tasks)
        return order

    assert asyncio.run(main())[0] == "c1"


def test_a_waiter_that_leaves_gives_back_its_place() -> None:
    async def main() -> None:
        turns = FairScheduler(1)
        assert turns.try_acquire("a")

        async def work() -> None:
            async with turns.hold_slot("b"):
                pass

        waiting = [asyncio.create_task(work()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        turns.release_slot("a")  # the turn goes to the second, which is canceled before it runs
        waiting[1].cancel()
        async with asyncio.timeout(5):
            await asyncio.gather(*waiting, return_exceptions=True)
        assert turns.used_slots == 0 and turns.waiting_count == 0 and turns.try_acquire("c")

    asyncio.run(main())
