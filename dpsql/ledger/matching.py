"""Which releases serve a statement, where some of them fill the holes of others.

A release with holes is another one for every release that fills them. So the best release that fills a hole may be one
for which the other has never been asked: what the account has paid for as a whole goes first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from dpsql.ledger import answers
from dpsql.ledger.answers import Found, Hidden
from dpsql.ledger.base import Asked
from dpsql.ledger.database import Transaction

_MOST_TRIED = 8
"""Own releases that are tried for one that fills holes."""

Chosen = dict[int, Found]


def in_order(asked: Sequence[Asked]) -> list[int]:
    """What fills holes comes before what has them; else the smallest errors first: they serve the same plan elsewhere
    in the statement."""
    first = [place for place, one in enumerate(asked) if not one.after]
    first.sort(key=lambda i: (asked[i].plan, asked[i].version, asked[i].errors))
    return first + [place for place, one in enumerate(asked) if one.after]


def filled(asked: Asked, found: Mapping[int, Found]) -> Asked:
    """The same, known by the releases that fill its holes."""
    if not asked.after:
        return asked
    text = "\n".join([asked.plan, *(str(found[place].release) for place in asked.after)])
    return replace(asked, plan=hashlib.sha256(text.encode()).hexdigest())


def own(db: Transaction, account: str, asked: Sequence[Asked], hidden: Hidden) -> Chosen | None:
    """The account's own releases for all of a statement, if it has paid for all; those that are stored first."""
    return _own(db, account, asked, hidden, in_order(asked), {})


def _own(
    db: Transaction, account: str, asked: Sequence[Asked], hidden: Hidden, places: list[int], chosen: Chosen
) -> Chosen | None:
    if not places:
        return chosen
    place, *rest = places
    fills = any(place in asked[other].after for other in rest)
    serving = answers.all_own(db, account, filled(asked[place], chosen), hidden)
    for found in islice(serving, _MOST_TRIED if fills else 1):
        whole = _own(db, account, asked, hidden, rest, chosen | {place: found})
        if whole is not None:
            return whole
    return None
