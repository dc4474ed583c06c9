"""What an engine returns before noise: sealed, so that no other module can look at it by accident."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

Cells = npt.NDArray[np.int64]
Row = tuple[Any, ...]


@dataclass(frozen=True, repr=False, eq=False)
class ExactRows:
    """Exact rows: the keys of each group, and one array of integer cells per column."""

    keys: tuple[Row, ...]
    cells: tuple[Cells, ...]


class Exact:
    """Sealed. Only `privacy/release.py` may call `reveal`, and `verify/paired_engine.py` on generated rows (law 5)."""

    __slots__ = ("__revealed",)

    def __init__(self, keys: Sequence[Row], cells: Sequence[Cells]) -> None:
        if any(column.dtype != np.int64 or len(column) != len(keys) for column in cells):
            raise TypeError("exact cells must be 64-bit integers, one for each key")
        self.__revealed = ExactRows(tuple(keys), tuple(cells))

    def reveal(self) -> ExactRows:
        return self.__revealed

    def __repr__(self) -> str:
        return "Exact(sealed)"

    __str__ = __repr__

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("exact rows are not to be copied, compared or looked at")

    # Each would let rows, or a fact about them, out by accident: into a file, a set, a test's message.
    __reduce__ = __reduce_ex__ = __getstate__ = __copy__ = __deepcopy__ = _refuse
    __eq__ = __lt__ = __hash__ = __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = _refuse
