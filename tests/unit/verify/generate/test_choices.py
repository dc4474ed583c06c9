"""Choices can be made again, and a shorter record is a simpler one."""

from __future__ import annotations

from dpsql.verify.generate.choices import ChoiceStream


def made(draws: ChoiceStream) -> list[object]:
    return [
        draws.draw_below(100),
        draws.choice("abc"),
        draws.draw_bool(0.5),
        draws.draw_between(-5, 5),
        draws.sample([1, 2, 3], 2),
    ]


def test_a_seed_or_a_record_gives_the_same_choices() -> None:
    first = ChoiceStream(7)
    found = made(first)
    assert found == made(ChoiceStream(7)) == made(ChoiceStream(record=first.record)) != made(ChoiceStream(8))
    assert ChoiceStream("7").draw_below(1 << 30) == ChoiceStream("7").draw_below(1 << 30)


def test_what_the_record_lacks_is_the_simplest() -> None:
    assert made(ChoiceStream(record=())) == [0, "a", False, -5, [1, 2]]
    assert made(ChoiceStream(record=(99, 2))) == [99, "c", False, -5, [1, 2]]
    assert ChoiceStream(record=(50,)).draw_below(3) == 2  # what no longer fits is moved into its range


def test_a_chance_is_what_it_says() -> None:
    draws = ChoiceStream(1)
    assert abs(sum(draws.draw_bool(0.2) for _ in range(10_000)) - 2000) < 300
    assert not any(ChoiceStream(n).draw_bool(0.0) for n in range(100)) and all(
        ChoiceStream(n).draw_bool(1.0) for n in range(100)
    )
