"""Choices can be made again, and a shorter record is a simpler one."""

from __future__ import annotations

from dpsql.verify.draws import Draws


def made(draws: Draws) -> list[object]:
    return [draws.below(100), draws.choice("abc"), draws.chance(0.5), draws.between(-5, 5), draws.sample([1, 2, 3], 2)]


def test_a_seed_or_a_record_gives_the_same_choices() -> None:
    first = Draws(7)
    found = made(first)
    assert found == made(Draws(7)) == made(Draws(record=first.record)) != made(Draws(8))
    assert Draws("7").below(1 << 30) == Draws("7").below(1 << 30)


def test_what_the_record_lacks_is_the_simplest() -> None:
    assert made(Draws(record=())) == [0, "a", False, -5, [1, 2]]
    assert made(Draws(record=(99, 2))) == [99, "c", False, -5, [1, 2]]
    assert Draws(record=(50,)).below(3) == 2  # what no longer fits is moved into its range


def test_a_chance_is_what_it_says() -> None:
    draws = Draws(1)
    assert abs(sum(draws.chance(0.2) for _ in range(10_000)) - 2000) < 300
    assert not any(Draws(n).chance(0.0) for n in range(100)) and all(Draws(n).chance(1.0) for n in range(100))
