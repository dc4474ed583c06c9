"""A run of the engine before it begins and after it has ended: what it needs, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from dpsql.engines.base import Engine
from dpsql.errors import Error
from dpsql.ledger.base import Ledger
from dpsql.privacy.release import ReleaseSpec
from dpsql.privacy.sampling import Sampler
from dpsql.privacy.threshold import ThresholdQuery, SparseVectorState


@dataclass(frozen=True)
class Clock:
    """Monotonic nanoseconds, and sleeping for seconds."""

    now: Callable[[], int] = time.monotonic_ns
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class ReleaseJob:
    """A release that was paid for, with all that its run needs: nothing of whoever asked."""

    release: int
    sql: str
    keys: int
    holes: Mapping[str, object]
    spec: ReleaseSpec
    errors: tuple[Fraction, ...]
    sampler: Sampler  # drawn from by several runs at once


@dataclass(frozen=True)
class InteractiveJob:
    """A question to an interactive mechanism that was paid for: it has one cell, and a number of its own."""

    release: int
    sql: str
    number: int
    question: ThresholdQuery
    watch: SparseVectorState
    keys: int = 0
    holes: Mapping[str, object] = field(default_factory=dict)


class RunContext(Protocol):
    """What a run reads and writes: a `Dataset`."""

    @property
    def engine(self) -> Engine: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def seconds(self) -> float: ...
    def check_read(self) -> None: ...


@dataclass(frozen=True)
class RunOutcome:
    """The body that was read back from the store, or an error, and whether it counts against those who asked."""

    body: bytes = b""
    error: Error | None = None
    failure: bool = False
