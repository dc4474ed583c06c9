"""What rewriting may use: the caps of this statement, never above the owner's."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.plan.nodes import Norm


@dataclass(frozen=True)
class ContributionPolicy:
    rows: int | None
    groups: int | None
    norm: Norm
