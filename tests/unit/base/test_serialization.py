"""Values as JSON and back: exactly, and nothing else is read."""

import datetime as dt
import json
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.base.serialization import dumps, from_json, loads, to_json


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Leaf:
    figure: Fraction
    colour: Colour = Colour.RED


@dataclass(frozen=True)
class Tree:
    name: str
    kind: Literal["a", "b"]
    count: int
    size: float
    flag: bool
    leaves: tuple[Leaf, ...]
    pair: tuple[str, int]
    day: dt.date | None = None
    maybe: Fraction | None = None


TREE = Tree("x", "b", 3, 0.1, True, (Leaf(Fraction(1, 3)),), ("y", 2), dt.date(2020, 1, 2))


def through_json(plain):
    return json.loads(json.dumps(plain))


def test_a_dataclass_comes_back_as_it_was():
    assert from_json(Tree, through_json(to_json(TREE))) == TREE


def test_a_missing_field_has_its_default_and_an_unknown_one_is_left_out():
    plain = to_json(TREE)
    del plain["day"]
    assert from_json(Tree, plain | {"newer": 1}).day is None


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("name", 3), ("kind", "c"), ("count", True), ("count", 1.5), ("size", "1"), ("flag", 1), ("leaves", {}),
        ("leaves", [{"colour": "red"}]), ("leaves", [{"figure": "1e999999999"}]), ("leaves", [{"figure": "1/0"}]),
        ("leaves", [{"figure": 0.5}]), ("leaves", [{"figure": "1", "colour": "blue"}]), ("pair", ["y"]),
        ("pair", ["y", 2, 3]), ("day", "yesterday"), ("day", 3),
    ],
)  # fmt: skip
def test_what_is_of_another_type_is_not_read(field, wrong):
    with pytest.raises(ValueError):
        from_json(Tree, to_json(TREE) | {field: wrong})


def test_what_has_no_json_form_is_refused():
    with pytest.raises(TypeError):
        to_json(object())
    with pytest.raises(TypeError):
        dumps(object())


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
    | st.decimals(allow_nan=False) | st.dates() | st.times() | st.datetimes() | st.timedeltas() | st.uuids()
    | st.datetimes(timezones=st.just(dt.UTC))
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(SCALARS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_a_released_value_comes_back_with_its_type(value):
    back = loads(through_json(dumps(value)))
    assert back == value
    assert repr(back) == repr(value).replace(", fold=1", "")  # of an hour that comes twice: nothing that is released


@pytest.mark.parametrize("wrong", [{"decimal": "x"}, {"date": 3}, {"pickle": ""}, {"a": 1, "b": 2}, {}, {"uuid": "z"}])
def test_what_names_another_type_is_not_read(wrong):
    with pytest.raises(ValueError):
        loads(wrong)


def test_the_types_that_are_serialized():
    assert loads(dumps([Decimal("1.50"), UUID(int=1)])) == [Decimal("1.50"), UUID(int=1)]
