"""A dashboard costs what its distinct releases cost, however often and by whomever it is refreshed.

`benchmarks/dashboard.py` has the whole of it: ten analysts, a thousand refreshes, and how fast they are.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.dashboard import CHARTS, bill, refresh, write_dashboard
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from tests.support.ledgers import Shelf

pytestmark = pytest.mark.slow

USERS = ("ana", "ben", "cleo")


def test_twenty_charts_are_paid_for_once_by_the_dataset_and_once_by_each_analyst(shelf: Shelf, tmp_path: Path) -> None:
    path = write_dashboard(tmp_path, shelf.url(), USERS)
    dataset = open_dataset(path)
    assert (tmp_path / ("hospital.yaml.snapshots" if shelf.server else "a.ledger.snapshots")).is_dir()
    sessions = [Session(dataset, user) for user in USERS]
    first = [refresh(sessions[0], 0)]
    alone = bill(sessions[0])
    assert alone.kept, "each chart for no more than the price of one statement"
    first += [refresh(session, number) for number, session in enumerate(sessions[1:], start=1)]
    assert first == [len(CHARTS)] * len(USERS), "each analyst pays for each chart, once"
    once = bill(sessions[0])
    assert once.is_that_of(alone) and set(once.analysts) == {once.dataset}, "and the dataset for all of them once"
    again = [refresh(session, number) for number in (100, 2000) for session in sessions]
    dataset.close()

    dataset = open_dataset(path)  # and so does another process
    again.append(refresh(Session(dataset, USERS[0]), 3000))
    assert set(again) == {0}, "the same question at another time of the day is the same"
    assert bill(Session(dataset, USERS[0])) == once
    dataset.close()
