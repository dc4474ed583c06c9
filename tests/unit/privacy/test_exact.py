"""Exact rows are sealed: nothing but `reveal` tells anything of them."""

from __future__ import annotations

import copy
import json
import pickle
import pprint
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpsql.privacy.exact import Exact

SECRET = "Ms Rossi"


@pytest.fixture
def exact() -> Exact:
    return Exact([(SECRET,)], [np.array([4177], np.int64)])


@pytest.mark.parametrize(
    "show", [str, repr, "{}".format, "{!r:>9}".format, lambda x: f"{[x]}", pprint.pformat, lambda x: repr(x.reveal())]
)
def test_it_prints_nothing(exact: Exact, show: Callable[[Any], str]) -> None:
    assert SECRET not in show(exact) and "4177" not in show(exact)


@pytest.mark.parametrize(
    "use",
    [
        pickle.dumps, copy.copy, copy.deepcopy, lambda x: copy.deepcopy([x]), lambda x: x.__getstate__(),
        lambda x: x.__reduce__(), lambda x: x.__reduce_ex__(4), list, iter, len, bool, hash, set, vars, json.dumps,
        lambda x: x == x.reveal(), lambda x: x != 1, lambda x: x < x, lambda x: x > x, lambda x: x[0], lambda x: 1 in x,
        lambda x: {x: 1}, lambda x: [*x], lambda x: setattr(x, "y", 1),
    ],
)  # fmt: skip
def test_it_is_not_copied_compared_or_iterated(exact: Exact, use: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, AttributeError)) as caught:
        use(exact)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
