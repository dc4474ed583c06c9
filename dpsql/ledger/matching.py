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
from dpsql.ledger.answers import CandidateRelease, HiddenReleases
from dpsql.ledger.base import ReleaseRequest
from dpsql.ledger.database import Transaction

_MAX_TRIED = 8
"""Own releases that are tried for one that fills holes."""

MatchedReleases = dict[int, CandidateRelease]


def matching_order(requests: Sequence[ReleaseRequest]) -> list[int]:
    """What fills holes comes before what has them; else the smallest errors first: they serve the same plan elsewhere
    in the statement."""
    first = [index for index, request in enumerate(requests) if not request.after]
    first.sort(key=lambda i: (requests[i].plan, requests[i].version, requests[i].errors))
    return first + [index for index, request in enumerate(requests) if request.after]


def with_filled_plan(request: ReleaseRequest, releases: Mapping[int, CandidateRelease]) -> ReleaseRequest:
    """The same, known by the releases that fill its holes."""
    if not request.after:
        return request
    text = "\n".join([request.plan, *(str(releases[index].release) for index in request.after)])
    return replace(request, plan=hashlib.sha256(text.encode()).hexdigest())


def match_releases(db: Transaction, account: str, requests: Sequence[ReleaseRequest], hidden: HiddenReleases) -> MatchedReleases | None:
    """The account's own releases for all of a statement, if it has paid for all; those that are stored first."""
    return _match_remaining(db, account, requests, hidden, matching_order(requests), {})


def _match_remaining(
    db: Transaction, account: str, requests: Sequence[ReleaseRequest], hidden: HiddenReleases, indexes: list[int], chosen: MatchedReleases
) -> MatchedReleases | None:
    if not indexes:
        return chosen
    index, *rest = indexes
    fills = any(index in requests[other].after for other in rest)
    serving = answers.list_own_releases(db, account, with_filled_plan(requests[index], chosen), hidden)
    for release in islice(serving, _MAX_TRIED if fills else 1):
        matched = _match_remaining(db, account, requests, hidden, rest, chosen | {index: release})
        if matched is not None:
            return matched
    return None
