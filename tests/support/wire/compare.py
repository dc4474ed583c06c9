"""Whether what a client saw of dpsql is what it saw of PostgreSQL."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

NEAR = 0.25  # of a value: several times the noise at the hospital's epsilon; what is public is compared exactly
DAYS = dt.timedelta(days=60)


def differences(due: Any, got: Any, noisy: bool = False, where: str = "") -> list[str]:
    """Each place where they differ, in value or in type; with `noisy`, numbers and times need only be near."""
    if type(due) is not type(got):
        return [f"{where}: due {due!r} ({type(due).__name__}), got {got!r} ({type(got).__name__})"]
    if isinstance(due, (list, tuple)):
        if len(due) != len(got):
            return [f"{where}: due {due!r}, got {got!r}"]
        return [
            told
            for number, (one, other) in enumerate(zip(due, got, strict=True))
            for told in differences(one, other, noisy, f"{where}[{number}]")
        ]
    if isinstance(due, dict):
        if due.keys() != got.keys():
            return [f"{where}: due {sorted(due)}, got {sorted(got)}"]
        return [told for key in due for told in differences(due[key], got[key], noisy, f"{where}[{key!r}]")]
    alike = near(due, got) if noisy else due == got and str(due) == str(got)
    return [] if alike else [f"{where}: due {due!r}, got {got!r}"]


def near(due: Any, got: Any) -> bool:
    if isinstance(due, bool) or due is None or isinstance(due, str):
        return bool(due == got)
    if isinstance(due, dt.date):
        return bool(abs(due - got) <= DAYS)
    if isinstance(due, (int, float, Decimal)):
        return abs(due - got) <= NEAR * float(abs(due)) + 2
    return bool(due == got)
